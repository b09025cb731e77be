/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of new shapes: how many new nodes a lane takes. Each costs an id, a place, a definition on the wire and work at
 * every level above, some 20 times what a call costs; where shapes never come back, that is all that is done.
 *
 *     credit   0 ........... most / 2 ........... most      `rate` a second are added
 *              only nodes     any node
 *              met before
 *
 * So the nodes of shapes that come back are taken before those of a flood that does not. "Met before" is a table of marks
 * by hash: it forgets by being overwritten, and errs once in 65,536 times; identity has nothing to do with it.
 *
 * A new shape costs as much as MR_NODE_BUDGET_SHAPE nodes besides its own: it has a row, with statistics and a histogram,
 * wherever it is told.
 *
 *     mr_node_budget_init(&budget, 50000, 262144);
 *     mr_node_budget_refill(&budget, mr_clock_monotonic_ns());   // now and then
 *     if (mr_node_budget_takes(&budget, hash)) ...               // before a new node is stored
 *     mr_node_budget_pay(&budget, MR_NODE_BUDGET_SHAPE);         // its nodes were taken: a new shape
 *
 * One thread.
 */
#ifndef MR_PIPELINE_NODE_BUDGET_H
#define MR_PIPELINE_NODE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define MR_NODE_BUDGET_MARKS 65536u /* 128 KiB, made when they are first needed */
#define MR_NODE_BUDGET_SHAPE 8u

struct mr_node_budget {
    uint64_t rate, most; /* nodes: a second, at once */
    uint64_t credit;
    uint64_t told_ns;
    uint16_t *marks;
};

/* Begins with a credit of `most`. `rate` is at most 10^9. Allocates nothing. */
void mr_node_budget_init(struct mr_node_budget *budget, uint64_t rate, uint64_t most);
void mr_node_budget_fini(struct mr_node_budget *budget);
/* `now_ns` is true time: it pays for processor time. The first call only starts the clock. */
void mr_node_budget_refill(struct mr_node_budget *budget, uint64_t now_ns);
/* Whether a new node of this hash may be stored: it is then paid for. Otherwise it has been met. */
bool mr_node_budget_takes(struct mr_node_budget *budget, uint64_t hash);
/* What else a trace costs all of whose nodes were taken: so many nodes, or all that is left. */
void mr_node_budget_pay(struct mr_node_budget *budget, uint64_t nodes);

#endif
