/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a worker is in use, 0 .. 1, over about the last second:
 *
 *     utilisation  the busier of: the lanes' mean, the trunk. Busy is a thread that is inside a filter; of a lane or trunk
 *                  with several threads the busiest counts, as it bounds the others. A trunk whose next level does not
 *                  take what it has is busy, too
 *     process      CPU time of the whole process, of what its processors have
 *
 * What a balancer's weight is made of, and by what a level grows and shrinks. One thread, the main one.
 *
 *     mr_worker_load_sample(&load, graphs, graph_count, now_ns);      // each turn
 */
#ifndef MR_WORKER_LOAD_H
#define MR_WORKER_LOAD_H

#include "pipeline/graph.h"

#define MR_WORKER_LOAD_PARTS 257 /* lanes, and the trunk behind them */

struct mr_worker_load {
    double utilisation, process; /* smoothed over two samples */
    uint32_t lane_threads;       /* that the lanes could fill; 0: one each. Set before */
    uint64_t sampled_ns;         /* 0: never */
    uint64_t cpu_ns;             /* at that time */
    /* Per graph: time inside the filters of each of its threads at that time. */
    uint64_t busy_ns[MR_WORKER_LOAD_PARTS][MR_GRAPH_NODES_MAX];
};

/* `graphs`: the lanes', then the trunk. Does something once a second; true when it did. */
bool mr_worker_load_sample(struct mr_worker_load *load, struct mr_graph *const *graphs,
                           uint32_t graph_count, uint64_t now_ns);

#endif
