/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lane a sender is at home in: one who returns meets the lane that has its state; a new one is given the lane that
 * has the fewest connections open. What is remembered is bounded: two generations of MR_HOMES_MAX senders each; when the
 * younger is full, the older is forgotten. A sender that was forgotten is as new, which a lane copes with as a worker does
 * with one that comes from another worker.
 *
 *     mr_homes_init(&homes);
 *     if (!mr_homes_find(&homes, id, &lane))
 *         mr_homes_put(&homes, id, lane = idlest());
 *
 * One thread.
 */
#ifndef MR_WORKER_HOMES_H
#define MR_WORKER_HOMES_H

#include "base/table.h"

#include <stdbool.h>

#define MR_HOMES_MAX 16384u

struct mr_homes {
    struct mr_table young, old;
};

void mr_homes_init(struct mr_homes *homes);
void mr_homes_fini(struct mr_homes *homes);
bool mr_homes_find(struct mr_homes *homes, struct mr_id sender, uint32_t *lane);
/* Without memory nothing is remembered. */
void mr_homes_put(struct mr_homes *homes, struct mr_id sender, uint32_t lane);

#endif
