/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a sender's addresses as its endpoints' names have them now: a thread asks the resolver every 30 s, and at once when the
 * sender has lost its connection (but not within a second of the last time). The thread that polls the sender never waits for
 * it. What does not resolve leaves the addresses as they were.
 *
 *     mr_resolver_start(&endpoints, &resolver, &error);      // NULL where there is no name
 *     mr_resolver_serve(resolver, &sender);                  // before each mr_sender_poll()
 *     mr_resolver_stop(resolver);                            // behind the last; waits while the resolver is asked
 */
#ifndef MR_NET_RESOLVER_H
#define MR_NET_RESOLVER_H

#include "net/endpoint.h"

struct mr_resolver;

/* `*resolver` is NULL when all hosts are numeric: nothing is to be done. MR_ENOMEM, MR_EIO. */
enum mr_status mr_resolver_start(const struct mr_endpoints *endpoints,
                                 struct mr_resolver **resolver, struct mr_error *error);
/* By the sender's thread. NULL is allowed, and does nothing. */
void mr_resolver_serve(struct mr_resolver *resolver, struct mr_sender *sender);
void mr_resolver_stop(struct mr_resolver *resolver); /* NULL allowed */

#endif
