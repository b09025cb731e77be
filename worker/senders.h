/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The senders that a lane knows: those connected, those whose connection broke and who may return
 * within the grace time, and those that finished a moment ago (kept as long, so that frames they send
 * again because an acknowledgement was lost are known as duplicates). Bounded. The lane's thread only.
 *
 *     struct mr_lane_sender *sender = mr_senders_find(&senders, id);
 *     if (!sender)
 *         sender = mr_senders_add(&senders, id);       // NULL: full, or no memory
 */
#ifndef MR_WORKER_SENDERS_H
#define MR_WORKER_SENDERS_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_connection;
struct mr_source;

#define MR_SENDERS_BUCKETS                                                               \
    1024 /* chains: senders come and go, and base/table.h does not forget */

struct mr_lane_sender {
    struct mr_id id;
    struct mr_source *source;         /* owned by the lane; NULL once it ended */
    struct mr_connection *connection; /* NULL: away */
    uint64_t next_sequence;           /* every frame below it is taken; kept while away */
    uint64_t away_ns;                 /* since when there is no connection */
    struct mr_lane_sender *next;
};

struct mr_senders {
    struct mr_lane_sender *buckets[MR_SENDERS_BUCKETS];
    uint32_t count, limit;
};

void mr_senders_init(struct mr_senders *senders, uint32_t limit);
/* Frees the entries, not what they point to. */
void mr_senders_fini(struct mr_senders *senders);

struct mr_lane_sender *mr_senders_find(const struct mr_senders *senders, struct mr_id id);
/* A new entry, zeroed but for id and next_sequence = 1; NULL when full or without memory. */
struct mr_lane_sender *mr_senders_add(struct mr_senders *senders, struct mr_id id);

/*
 * Calls `visit` for each; where it says false, the entry is forgotten (what it points to has been
 * dealt with by then).
 */
void mr_senders_sweep(struct mr_senders *senders,
                      bool (*visit)(void *context, struct mr_lane_sender *sender),
                      void *context);

#endif
