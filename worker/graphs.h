/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graphs of a worker, as data: one per lane and one trunk, joined by pipes.
 *
 *     lane i:  decode -> reconstruct -> reduce (-> gather)     fused, or each filter on a thread of its own
 *     trunk:   scatter -> names -> account -> join -> merge -> | forward   two threads: see pipeline/filters/forward.h
 *
 * gather, with a spool: what a lane tells at a time comes in one piece, so that the trunk never keeps half of it.
 *
 * Owns the graphs, what their filters are configured with, and the lanes' site tables. Made and freed
 * by the main thread.
 *
 *     status = mr_worker_graphs_new(&options, incarnation, &graphs, &error);
 *     ... mr_lane_start() with graphs->lanes[i] ...
 *     mr_worker_graphs_stop(graphs, true);        // after all lanes were joined: drains the trunk
 *     mr_worker_graphs_free(graphs);
 */
#ifndef MR_WORKER_GRAPHS_H
#define MR_WORKER_GRAPHS_H

#include "base/id.h"
#include "pipeline/filters/forward.h"
#include "pipeline/graph.h"
#include "worker/counters.h"
#include "worker/options.h"

#define MR_WORKER_LANES_MAX 256

struct mr_worker_graphs;

/* `counters` are told upward; borrowed, as asks, wanted and spool. */
enum mr_status mr_worker_graphs_new(const struct mr_worker_options *options,
                                    struct mr_id incarnation, struct mr_asks *asks,
                                    struct mr_wanted_board *wanted,
                                    struct mr_spool *spool,
                                    const struct mr_worker_counters *counters,
                                    struct mr_worker_graphs **graphs,
                                    struct mr_error *error);
/*
 * Before the lanes end: from now on forward gives up where nothing is acknowledged. A lane that waits to push into a full trunk
 * would not end before.
 */
void mr_worker_graphs_stop(struct mr_worker_graphs *graphs);
/* Behind that, drains the trunk: returns when everything is acknowledged above or given up. */
void mr_worker_graphs_drain(struct mr_worker_graphs *graphs);
void mr_worker_graphs_free(struct mr_worker_graphs *graphs); /* NULL allowed */

struct mr_graph *mr_worker_graphs_lane(struct mr_worker_graphs *graphs, uint32_t lane);
/* The lanes' graphs and, last, the trunk: `*count` of them; owned by `graphs`. */
struct mr_graph *const *mr_worker_graphs_all(const struct mr_worker_graphs *graphs,
                                             uint32_t *count);
const struct mr_forward_link *mr_worker_graphs_link(
    const struct mr_worker_graphs *graphs);

/* The first failure of any filter; MR_OK while all is well. */
enum mr_status mr_worker_graphs_status(const struct mr_worker_graphs *graphs,
                                       struct mr_error *error);

#endif
