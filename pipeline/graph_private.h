/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a graph, shared by graph.c (life), graph_run.c (calls and threads) and
 * graph_stats.c. Nobody else includes it.
 *
 *     nodes     [decode] [reconstruct] | [reduce]        | = MR_PLACE_THREAD: a pipe, and a thread behind it
 *     sections  [------- 0 ----------]   [-- 1 -]
 *
 * A section is a run of filters on one thread: calls inside, one pipe out. Section 0 of a
 * graph whose first node is fused is the head: the caller's thread runs it. Every other
 * section has a thread, a waker, and pipes that lead in.
 *
 * field                    written by            read by            access
 * filter.stats[]           section's thread      any                relaxed: single writer, counters
 * filter.status            section's thread      section's thread   plain
 * graph.status             any section's thread  any                release store [E] after error under mutex, acquire load [F]
 * graph.error              any section's thread  any                under error_mutex
 * section.stop, .abandoned  drain, free           section's thread   release store [G], acquire load [H]
 * input pipes              see pipeline/pipe.c
 * everything else          new, join, inlet      all                before the threads start
 *
 * Pairs: [E]-[F] nothing but the value itself; [G]-[H] what drain's caller did before.
 * Checked by: tests/race/test_graph.c
 */
#ifndef MR_PIPELINE_GRAPH_PRIVATE_H
#define MR_PIPELINE_GRAPH_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/compiler.h"
#include "pipeline/graph.h"
#include "pipeline/pipe.h"

#define MR_GRAPH_NAME_SIZE 32
#define MR_GRAPH_TICK_NS UINT64_C(10000000) /* filter.h: "about every 10 ms" */

enum mr_filter_stat {
    MR_STAT_BATCHES_IN,
    MR_STAT_BATCHES_OUT,
    MR_STAT_EVENTS_IN,
    MR_STAT_BYTES_IN,
    MR_STAT_DISCARDED,
    MR_STAT_BUSY_NS,
    MR_STAT_EMIT_WAIT_NS,
    MR_STAT_PROGRESS_NS,
    MR_STAT_COUNT
};

enum mr_filter_phase {
    MR_PHASE_CLOSED,
    MR_PHASE_OPENING,
    MR_PHASE_RUNNING,
    MR_PHASE_CLOSING
};

struct mr_section;

struct mr_filter {
    MR_ALIGNED(MR_CACHE_LINE) const struct mr_filter_kind *kind;
    void *state;
    struct mr_section *section;
    struct mr_filter *next; /* in the same section; NULL: the section's out */
    enum mr_status status;  /* latched */
    enum mr_filter_phase phase;
    const char *counter_names[MR_FILTER_COUNTERS];
    MR_ALIGNED(MR_CACHE_LINE) _Atomic uint64_t stats[MR_STAT_COUNT];
    _Atomic uint64_t counters[MR_FILTER_COUNTERS];
};

/* Time is kept per call of a filter; what it spends inside the filters that it emits into, and waiting at a pipe, is not its own. */
struct mr_call {
    uint64_t start_ns, inner_ns;
    uint64_t told_ns; /* of its own time; the filter's busy time has it already */
};

struct mr_inlet {
    struct mr_pipe *pipe;
};

struct mr_section {
    struct mr_graph *graph;
    struct mr_filter *first; /* in graph->filters */
    uint32_t filter_count;
    bool has_thread;
    bool is_running; /* thread made and not joined; the owner's thread alone */
    pthread_t thread;
    struct mr_pipe
        *out; /* into the next section, here or in the graph joined; NULL: the end */
    struct mr_call call; /* the one that runs */
    struct mr_waker waker;
    struct mr_inlet inputs[MR_GRAPH_INPUTS_MAX]; /* owned */
    uint32_t input_count;
    _Atomic bool stop;      /* no more inputs will come: end when they have */
    _Atomic bool abandoned; /* free without drain: discard what comes */
};

struct mr_graph {
    char name[MR_GRAPH_NAME_SIZE];
    struct mr_filter *filters;
    uint32_t filter_count;
    struct mr_section *sections;
    uint32_t section_count;
    bool is_started, is_drained;
    void (*on_wait)(void *context); /* of its owner's thread; NULL: nobody is told */
    void *wait_context;
    _Atomic int status; /* enum mr_status, the first error */
    pthread_mutex_t error_mutex;
    struct mr_error error;
};

/* graph_run.c: calls on the section's own thread. */
void mr_section_feed(struct mr_section *section, struct mr_batch *batch); /* takes it */
void mr_section_tick(struct mr_section *section, uint64_t now_ns);
void mr_section_drain(struct mr_section *section);
void *mr_section_run(void *section); /* body of a section's thread */
void mr_graph_latch(struct mr_graph *graph, enum mr_status status, const char *filter,
                    const char *where);

#endif
