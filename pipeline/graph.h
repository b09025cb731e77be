/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: which filters, in which order, on which threads. A graph is data; the runner opens the filters, makes pipes where
 * a thread boundary lies, calls, counts and latches errors.
 *
 *     static const struct mr_graph_node lane_nodes[] = {
 *         {&mr_decode_filter, &decode_config, MR_PLACE_FUSED},
 *         {&mr_reconstruct_filter, NULL, MR_PLACE_FUSED},        // or MR_PLACE_THREAD: a thread of its own
 *         {&mr_reduce_filter, &reduce_config, MR_PLACE_FUSED},
 *     };
 *     mr_graph_new(lane_nodes, 3, "lane0", &lane, &error);
 *     mr_graph_new(trunk_nodes, 2, "trunk", &trunk, &error);     // first node MR_PLACE_THREAD
 *     mr_graph_join(lane, trunk);                                // lane's last filter feeds trunk's first, over a pipe
 *     mr_graph_start(trunk); mr_graph_start(lane);
 *     mr_graph_push(lane, batch); mr_graph_tick(lane, now);      // by the thread that drives the lane
 *     mr_graph_drain(lane); mr_graph_drain(trunk);               // in flow order; each returns when all has passed
 *     mr_graph_free(lane); mr_graph_free(trunk);
 *
 * The head of a graph whose first node is MR_PLACE_FUSED runs on the thread that calls push and tick (one thread). A graph whose
 * first node is MR_PLACE_THREAD takes from any number of joined graphs (one SPSC pipe each) and from mr_graph_inlet()s, and
 * ticks itself.
 */
#ifndef MR_PIPELINE_GRAPH_H
#define MR_PIPELINE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pipeline/filter.h"

enum mr_place { MR_PLACE_FUSED = 0, MR_PLACE_THREAD = 1 };

struct mr_graph_node {
    const struct mr_filter_kind *kind;
    const void *config; /* given to open(); must live as long as the graph */
    enum mr_place place;
};

#define MR_GRAPH_NODES_MAX 16
#define MR_GRAPH_INPUTS_MAX 256
#define MR_GRAPH_PIPE_BATCHES 64 /* capacity of a pipe; power of two */

struct mr_graph;
struct mr_inlet; /* the sending end of a pipe into a graph; one thread */

enum mr_status mr_graph_new(const struct mr_graph_node *nodes, uint32_t count,
                            const char *name, struct mr_graph **graph,
                            struct mr_error *error);
enum mr_status mr_graph_join(struct mr_graph *from, struct mr_graph *to);
enum mr_status mr_graph_inlet(struct mr_graph *graph, struct mr_inlet **inlet);
enum mr_status mr_inlet_push(
    struct mr_inlet *inlet,
    struct mr_batch *batch); /* waits while full; takes the batch */
bool mr_inlet_has_room(const struct mr_inlet *inlet);
void mr_inlet_close(struct mr_inlet *inlet); /* no more from here; drain waits for it */

/*
 * From who pushes and ticks, once: it is called about each 100 ms that a push or tick of its own waits at a full pipe, as it may have
 * others to whom it is to say that it lives. Not to push or tick from it.
 */
void mr_graph_on_wait(struct mr_graph *graph, void (*on_wait)(void *context),
                      void *context);
enum mr_status mr_graph_start(struct mr_graph *graph);
enum mr_status mr_graph_push(struct mr_graph *graph,
                             struct mr_batch *batch); /* takes the batch */
enum mr_status mr_graph_tick(struct mr_graph *graph, uint64_t now_ns);
enum mr_status mr_graph_drain(struct mr_graph *graph);
void mr_graph_free(struct mr_graph *graph);

/* The first error of any filter, and which one it was. MR_OK while all is well. Any thread. */
enum mr_status mr_graph_status(const struct mr_graph *graph, struct mr_error *error);

struct mr_filter_stats {
    const char *graph, *filter;
    uint64_t batches_in, batches_out, events_in, bytes_in, discarded;
    uint64_t
        busy_ns; /* time inside process, tick and drain, without what it emitted into */
    uint64_t emit_wait_ns;             /* time waiting at a full pipe */
    uint32_t pipe_fill, pipe_capacity; /* of the pipe in front of it; 0 0 where fused */
    uint64_t progress_ns; /* CLOCK_MONOTONIC of the last call: for readiness */
    const char *counter_names[MR_FILTER_COUNTERS];
    uint64_t counters[MR_FILTER_COUNTERS];
};
/* Any thread; numbers are a moment old. Returns how many filters the graph has. */
uint32_t mr_graph_stats(const struct mr_graph *graph, struct mr_filter_stats *out,
                        uint32_t capacity);

#endif
