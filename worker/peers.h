/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other workers of the level, as their agents tell (--peers ENDPOINTS; a name may have many addresses): a thread asks
 * each of them once a second, and names again every 5 s. Of more than 16 addresses 16 are asked, other ones after each
 * look-up: their mean is the level's, nearly. Who does not answer within half a second is not there. We may be among them
 * and know ourselves by the address.
 *
 *     mr_peers_start(&endpoints, own_port, &peers, &error);
 *     if (mr_peers_take(peers, views, &count))         // once for each round of questions
 *         excess = mr_share_excess(&own, views, count);
 *     mr_peers_stop(peers);
 */
#ifndef MR_WORKER_PEERS_H
#define MR_WORKER_PEERS_H

#include "net/endpoint.h"
#include "worker/agent.h"

#define MR_PEERS_MAX MR_SENDER_ADDRESSES_MAX

struct mr_peers;

/* `own_port`: where our own agent listens; 0: nowhere. MR_ENOMEM, MR_EIO. */
enum mr_status mr_peers_start(const struct mr_endpoints *endpoints, uint16_t own_port,
                              struct mr_peers **peers, struct mr_error *error);
/* What those that answered in the last round said. False when that was taken already. Any thread, one at a time. */
bool mr_peers_take(struct mr_peers *peers, struct mr_agent_view views[MR_PEERS_MAX],
                   uint32_t *count);
void mr_peers_stop(struct mr_peers *peers); /* NULL allowed; waits for half a second */

#endif
