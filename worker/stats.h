/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's numbers as JSON (--stats-file): its connections, every filter of every graph, the sums
 * over lanes of the filters' named counters, what is above it, and memory. Also the ready file. Called
 * by the main thread; the numbers are a moment old.
 *
 *     {"level":1, "pid":.., "rss_bytes":.., "uptime_ns":..,
 *      "connections":{"accepted":..,...},
 *      "forward":{"open":true,"acked":..,"held":..,"given_up":..},
 *      "drivers":[{"busy_share":0.42,"lanes":["lane0",...]},...], "lanes_passed":..,
 *      "counters":{"<name>":<sum over all graphs>,...},
 *      "filters":[{"graph":"lane0","filter":"decode","batches_in":..,"busy_share":0.42,...},...]}
 */
#ifndef MR_WORKER_STATS_H
#define MR_WORKER_STATS_H

#include "base/error.h"
#include "pipeline/filters/forward.h"
#include "pipeline/graph.h"
#include "worker/counters.h"
#include "worker/lanes_even.h"
#include "worker/standing.h"

#define MR_WORKER_FILTERS_MAX 4096 /* of all graphs: 256 lanes with 16 nodes each */

struct mr_worker_stats {
    const struct mr_worker_counters *counters;
    const struct mr_standing *standing;
    const struct mr_lanes_even *even; /* NULL: before the lanes run */
    const struct mr_forward_link *link;
    struct mr_graph *const *graphs;
    uint32_t graph_count;
    uint32_t level;
    uint64_t started_ns; /* CLOCK_MONOTONIC */
};

/* Bytes of memory that this process has resident; 0 where unknown. */
uint64_t mr_worker_rss_bytes(void);

enum mr_status mr_worker_stats_write(const struct mr_worker_stats *stats,
                                     const char *path, uint64_t now_ns,
                                     struct mr_error *error);

/* Where a worker can be reached; a host of NULL: not there. Borrowed. */
struct mr_worker_address {
    const char *name, *host;
    uint16_t port;
};

/* {"listen":"HOST:PORT","http":"HOST:PORT",...,"pid":N}: those that are there, by their names. */
enum mr_status mr_worker_ready_write(const char *path,
                                     const struct mr_worker_address *addresses,
                                     size_t count, struct mr_error *error);

#endif
