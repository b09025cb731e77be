/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of its senders a worker should ask to go elsewhere, so that its level evens out: pure arithmetic over what the
 * agents of the level say (worker/peers.h). A worker sheds what it has above the mean, in proportion; it never asks others
 * for senders, nobody commands it.
 *
 *     utilisation  0.15 or more above the mean: senders x (own - mean) / own, rounded down
 *     senders      2 or more above the mean (an eighth of it, if that is more), and no less busy than the mean: what is
 *                  above it, rounded down. This is what evens out a level that is idle, or full everywhere
 *
 * At most half of its senders at a time, never the only one: a single sender that is too much for a worker is as much
 * elsewhere.
 */
#ifndef MR_WORKER_SHARE_H
#define MR_WORKER_SHARE_H

#include "worker/agent.h"

/* `others` are the workers of the level but us; those that are not up, or of another level, do not count. */
uint32_t mr_share_excess(const struct mr_agent_view *own,
                         const struct mr_agent_view *others, uint32_t count);

#endif
