/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce: well-nested calls -> paths, shapes, entry points and the ledger, as deltas.
 *
 * At every CLOSE the call's path gains a count, total and self time, and a histogram bin of the second in which it
 * ended; and its subtree is interned as a node (shapes.h). At the CLOSE of a root the trace's shape gains one, if no loss
 * hit the trace (else it is incomplete) and no limit was passed (else it is in the paths only).
 *
 *  - A call is failed if its status was, or if it was left without an exit (UNWOUND). A trace has the status of its root.
 *  - INCOMPLETE and UNKNOWN calls are counted and not timed; nothing of them is taken off their caller's self time.
 *  - An outer frame has a path of its own kind; what runs below it is taken off its self time.
 *  - A forced root inside another call tree is a call tree of its own; its time is not its encloser's self time.
 *  - Coverage of a trace: whole; folded (a run of equal children was folded, or with `set` an order or repeat was);
 *    paths (more than trace_children child entries were open at a time, no room, or past the budget of new shapes:
 *    node_budget.h); incomplete.
 *
 * Of single traces, the first and the slowest of each shape are kept with their calls (reduce_exemplars.c), within
 * exemplar_calls and exemplars_max.
 *
 * About every delta_period_ns (up to four times that where many paths have gained), when the next filter has room, new nodes go out as DICT and then the gains as DELTA. When a
 * table is full this is done at once, and the tables forget everything but what open calls need (counted: nothing is
 * evicted silently). Calls that find no path even so are lost (budget). Memory is bounded by the limits below.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_H
#define MR_PIPELINE_FILTERS_REDUCE_H

#include "base/clock.h"
#include "net/control.h"
#include "net/exemplar.h"
#include "pipeline/filter.h"
#include "pipeline/paths.h"
#include "pipeline/sites.h"
#include "pipeline/wanted.h"

/* That only some processors have: none; AVX2; AVX-512. */
enum mr_vectors { MR_VECTORS_NONE, MR_VECTORS_WIDE, MR_VECTORS_WIDER };

struct mr_reduce_config {
    const struct mr_sites *sites; /* of the lane; borrowed */
    uint32_t level;               /* of this worker */
    enum mr_exactness exactness;
    uint64_t delta_period_ns; /* the shortest, see mr_reduce_period() */
    uint32_t
        delta_bytes_max; /* of one DELTA payload; a few kilobytes more for its last row */
    uint32_t paths_max, nodes_max, shapes_max;
    uint32_t
        path_depth_max; /* its row names all of a path: so deep that it fits a frame */
    uint32_t
        scopes_max; /* of applications that come and go; of such as have streams, all */
    uint32_t node_children_max;    /* entries of all stored child lists */
    uint32_t trace_children_max;   /* child entries of the open calls of one trace */
    uint32_t bins_max, bins_words; /* histogram counts per delta; see pipeline/bins.h */
    uint32_t window_s;             /* width of a window */
    bool has_marks;   /* tells the spool what its deltas hold (pipeline/mark.h) */
    bool has_repeats; /* decode runs on this thread: it may be told what streams repeat */
    bool is_one_by_one;      /* no templates: for tests, as nothing else comes out */
    enum mr_vectors vectors; /* at most these; the same comes out with any */
    uint32_t
        exemplar_calls; /* of one exemplar, at most MR_EXEMPLAR_CALLS_MAX; 0: none are kept */
    uint32_t exemplars_max; /* per reason, over the time of the lane */
    /* The first log_most and guess_ns of pipeline/condense.h: for tests, as the same comes out with any. */
    uint32_t exemplar_log;
    uint64_t exemplar_guess_ns;
    size_t exemplar_open_bytes; /* for traces that are still open */
    /*
     * Traces that somebody asks for (reduce_asked.c): by `wanted`, borrowed, NULL: nobody; with so many calls at most, 0:
     * none are kept; bytes while they are open and until the next delta. Not where exemplar_calls is 0.
     */
    struct mr_wanted_board *wanted;
    uint32_t asked_calls;
    size_t asked_bytes;
    uint64_t new_nodes_s; /* budget of new nodes (shapes.h), at most 10^9 a second */
    uint32_t new_nodes_at_once; /* and so many of them saved up */
    uint64_t shape_calls_s; /* calls a second that are counted by path of their shape */
    /*
     * Time by which these three grow, in ns, never backwards, not 0; asked on the lane's thread when it opens and with each tick. NULL:
     * CLOCK_MONOTONIC. For who runs a lane now and then, and measures it.
     */
    uint64_t (*budget_clock)(void *context);
    void *budget_context;
};
#define MR_REDUCE_DELTA_PERIOD_DEFAULT (100 * MR_MILLISECOND_NS)
#define MR_REDUCE_DELTA_BYTES_DEFAULT (1u << 20)
#define MR_REDUCE_PATHS_DEFAULT (1u << 18)         /* 33 MiB */
#define MR_REDUCE_NODES_DEFAULT (1u << 18)         /* 12 MiB */
#define MR_REDUCE_NODE_CHILDREN_DEFAULT (1u << 22) /* 32 MiB */
#define MR_REDUCE_NEW_NODES_DEFAULT 50000u
#define MR_REDUCE_NEW_NODES_AT_ONCE_DEFAULT (1u << 18)
#define MR_REDUCE_SHAPES_DEFAULT (1u << 16) /* 8 MiB */
#define MR_REDUCE_SCOPES_DEFAULT 65536u
#define MR_REDUCE_TRACE_CHILDREN_DEFAULT 65536u
#define MR_REDUCE_BINS_DEFAULT                                                           \
    (1u << 24) /* 16 to 80 MiB, in a burst over many paths: pipeline/bins.h */
#define MR_REDUCE_BINS_WORDS_DEFAULT (1u << 23) /* 32 MiB */
#define MR_REDUCE_EXEMPLAR_CALLS_DEFAULT 512u
#define MR_REDUCE_EXEMPLARS_DEFAULT 1024u
#define MR_REDUCE_EXEMPLAR_OPEN_DEFAULT ((size_t)16 << 20)
#define MR_REDUCE_SHAPE_CALLS_DEFAULT 200000u
#define MR_REDUCE_CONFIG_DEFAULT                                                         \
    ((struct mr_reduce_config){.exactness = MR_EXACTNESS_FOLDED,                         \
                               .delta_period_ns = MR_REDUCE_DELTA_PERIOD_DEFAULT,        \
                               .delta_bytes_max = MR_REDUCE_DELTA_BYTES_DEFAULT,         \
                               .paths_max = MR_REDUCE_PATHS_DEFAULT,                     \
                               .path_depth_max = MR_PATHS_DEPTH_MAX,                     \
                               .nodes_max = MR_REDUCE_NODES_DEFAULT,                     \
                               .new_nodes_s = MR_REDUCE_NEW_NODES_DEFAULT,               \
                               .new_nodes_at_once = MR_REDUCE_NEW_NODES_AT_ONCE_DEFAULT, \
                               .shapes_max = MR_REDUCE_SHAPES_DEFAULT,                   \
                               .scopes_max = MR_REDUCE_SCOPES_DEFAULT,                   \
                               .node_children_max = MR_REDUCE_NODE_CHILDREN_DEFAULT,     \
                               .trace_children_max = MR_REDUCE_TRACE_CHILDREN_DEFAULT,   \
                               .bins_max = MR_REDUCE_BINS_DEFAULT,                       \
                               .bins_words = MR_REDUCE_BINS_WORDS_DEFAULT,               \
                               .window_s = 1,                                            \
                               .vectors = MR_VECTORS_WIDER,                              \
                               .exemplar_calls = MR_REDUCE_EXEMPLAR_CALLS_DEFAULT,       \
                               .exemplars_max = MR_REDUCE_EXEMPLARS_DEFAULT,             \
                               .exemplar_open_bytes = MR_REDUCE_EXEMPLAR_OPEN_DEFAULT,   \
                               .shape_calls_s = MR_REDUCE_SHAPE_CALLS_DEFAULT})

/* A path's row costs some 1.5 us here, in merge and at the master: at this pace 4 % of a processor. */
#define MR_REDUCE_ROW_PACE_NS (40 * MR_MICROSECOND_NS)
#define MR_REDUCE_PERIODS_MAX 4u

/* Time from one delta to the next (ns) where `paths` of them have gained. */
static inline uint64_t mr_reduce_period(const struct mr_reduce_config *config,
                                        uint32_t paths)
{
    uint64_t most = MR_REDUCE_PERIODS_MAX * config->delta_period_ns;
    uint64_t paced = paths * MR_REDUCE_ROW_PACE_NS;

    if (paced <= config->delta_period_ns)
        return config->delta_period_ns;
    return paced < most ? paced : most;
}

extern const struct mr_filter_kind mr_reduce_filter;

#endif
