/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of reduce; not for others.
 *
 *     reduce.c         the filter, its streams, the hot loop
 *     reduce_calls.c   everything the hot loop leaves: roots, outer frames, broken and failed calls, new windows
 *     reduce_trace.c   the end of a call tree: entry points, shapes
 *     reduce_delta.c   what was gained -> DICT and DELTA
 *     reduce_forget.c  full tables
 *     reduce_counters.c  counters on spans
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_PRIVATE_H
#define MR_PIPELINE_FILTERS_REDUCE_PRIVATE_H

#include <stdlib.h>

#include "base/table.h"
#include "net/delta.h"
#include "pipeline/counters.h"
#include "pipeline/dict_batch.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/paths.h"
#include "pipeline/shapes.h"
#include "pipeline/source.h"

enum mr_reduce_counter {
    MR_REDUCE_FORGETS, /* times the tables were emptied because one was full */
    MR_REDUCE_EARLY,   /* deltas sent early for that, or for a full histogram pool */
    MR_REDUCE_NO_PATH, /* calls that found no path */
    MR_REDUCE_TRACES_TOO_BIG, /* traces past a limit: paths only */
    MR_REDUCE_VALUES_ALONE,   /* values of counters that belong to no call */
    MR_REDUCE_COUNTERS
};

/* Sums of the ledger, for the metrics of this process alone: upward goes the ledger itself. */
enum mr_reduce_sum {
    MR_REDUCE_SUM_REDUCED = MR_REDUCE_COUNTERS,
    MR_REDUCE_SUM_LOST,
    MR_REDUCE_SUM_HELD, /* goes up and down */
};

#define MR_REDUCE_TRACES_OPEN 2 /* a call tree, and that of a forced root in it */

/*
 * One open call. The two times do not stand side by side: compilers would load them as one
 * vector, which waits until both, stored apart, have left the store buffer.
 */
struct mr_open_call {
    uint64_t enter_ns;
    uint32_t path;
    uint32_t first_child; /* its children on the child stack begin here */
    uint64_t child_ns;
    uint32_t like;  /* position of a stored list that its children are like so far */
    uint32_t flags; /* enum mr_event_flag of its OPEN */
    uint32_t site;
    uint32_t last, next; /* paths of the child before, and of the likely next one */
};

/* One open call tree. */
struct mr_trace {
    uint64_t closed;    /* the stream's count of closed calls when it began */
    uint64_t elsewhere; /* calls since then that belong to another tree */
    uint32_t frame;     /* of its root */
    bool is_broken;     /* a loss hit it: no shape */
    bool is_over;       /* past a limit: no shape */
    bool is_folded;
};

#define MR_REDUCE_SPAN_COUNTERS_MAX                                                      \
    64u /* in a lane; values of more are counted, not kept */
#define MR_REDUCE_COUNTER_NONE UINT32_MAX

/* What is known of an open call's counters, by their place in its source's set. */
struct mr_open_counts {
    uint64_t enter[MR_SOURCE_COUNTERS_MAX], children[MR_SOURCE_COUNTERS_MAX];
    uint32_t entered; /* bit i: enter[i] is known */
};

enum mr_counts_last { MR_COUNTS_NONE, MR_COUNTS_OPENED, MR_COUNTS_CLOSED };

/* Of a stream whose source has counters; reduce_counters.c. */
struct mr_reduce_counts {
    struct mr_open_counts *calls; /* beside the stream's frames */
    uint32_t capacity;
    uint32_t counter[MR_SOURCE_COUNTERS_MAX]; /* in reduce->span_counters, or NONE */
    enum mr_counts_last last;                 /* the call event that values belong to */
    /* CLOSED: the call that was at calls[depth]. */
    uint32_t path, window;
    uint32_t missing; /* bit i: its value has not come */
};

/* What a path gained of a counter since the last delta. */
struct mr_count_row {
    uint32_t path, counter, window;
    struct mr_counter_stats stats;
};
struct mr_count_rows {
    struct mr_count_row *items;
    uint32_t count, capacity;
    uint32_t *slots; /* open addressing: index + 1, 0: free */
    uint32_t slot_mask;
};
struct mr_span_counter_index {
    struct mr_id id;
    uint32_t payload, index; /* its number in that payload */
};

struct mr_reduce_stream {
    struct mr_stream *stream; /* NULL once it has ended */
    struct mr_id source;
    uint32_t id;
    struct mr_reduce_stream *next, **at; /* list of all */
    struct mr_reduce_stream *next_dirty; /* list of those whose ledger changed */
    bool is_dirty;
    struct mr_open_call *frames;
    uint32_t depth, capacity;
    struct mr_reduce_counts *counts; /* NULL: its source has no counters */
    uint64_t *children; /* child stack: the lists of the open calls, outermost first */
    uint32_t child_count, child_capacity;
    uint32_t scope;
    uint32_t base, outer_base; /* paths of the scope; MR_PATH_NONE: not made yet */
    struct mr_trace traces[MR_REDUCE_TRACES_OPEN];
    uint32_t trace_count;
    bool is_collecting; /* the innermost open tree may still become a shape */
    uint64_t closed;
    /* Ledger: totals, and what was told of them. */
    uint64_t base_event, last, reduced, lost_sum;
    uint64_t told_reduced;
    int64_t told_held;
    uint64_t lost[MR_LOSS_REASON_COUNT]; /* since the last delta */
};

struct mr_shape {
    uint32_t root, node;     /* path of the entry point; its node */
    uint32_t window;         /* 0: nothing gained */
    uint32_t payload, index; /* its number in that payload */
    uint32_t zeros;
    struct mr_bins bins;
    uint64_t ok, failed, calls, folded, first_ns, last_ns;
    struct mr_times time;
    bool is_touched;
};

struct mr_entry {
    uint32_t path, window; /* window 0: nothing gained */
    uint32_t last_shape;   /* index + 1 */
    bool is_touched;
    struct mr_entry_stats stats;
    struct mr_open_stats open; /* while a delta is written */
    uint32_t stack;            /* path of the innermost open call of the oldest */
};

/* A growing array of indices. */
struct mr_list {
    uint32_t *items;
    uint32_t count, capacity;
};

struct mr_scope {
    struct mr_id id;
    uint32_t payload, index;
};

struct mr_site_index { /* of a site in a payload */
    uint32_t payload, index;
};

struct mr_reduce {
    struct mr_filter *filter;
    const struct mr_reduce_config *config;
    struct mr_counters counters;
    struct mr_paths paths;
    struct mr_nodes nodes;
    struct mr_bin_pool bins;
    struct mr_shape *shapes;
    uint32_t shape_count, shape_capacity;
    uint32_t *shape_slots;
    uint32_t shape_mask;
    struct mr_list touched_shapes;
    struct mr_entry *entries;
    uint32_t entry_count, entry_capacity;
    struct mr_list touched_entries;
    struct mr_table scope_ids;
    struct mr_scope *scopes;
    uint32_t scope_count;
    struct mr_reduce_stream *streams, *dirty;
    struct mr_span_counter_index span_counters[MR_REDUCE_SPAN_COUNTERS_MAX];
    uint32_t span_counter_count;
    struct mr_count_rows count_rows;
    /* The window that the stream of events is in; its start by their clock. */
    uint64_t window_start_ns;
    int64_t wall_shift_ns; /* of the batch at hand */
    uint32_t window;
    uint64_t window_ns;
    uint64_t
        gains; /* calls counted since the last delta: keeps 32-bit counts from wrapping */
    uint32_t paths_kept, nodes_kept; /* by the last forget */
    /* What is being written. */
    struct mr_batch *batch;
    struct mr_delta_writer writer;
    uint32_t payload; /* counts up; numbers given in another payload are void */
    struct mr_site_index *site_index;
    uint32_t site_capacity;
    struct mr_dict_batch dict;
    struct mr_list walk;  /* nodes to be told */
    struct mr_list chain; /* paths to be told */
    struct mr_buffer children;
    struct mr_histogram histogram;
    struct mr_id
        told_source; /* the source whose number in this payload is told_source_index */
    uint32_t told_source_index, told_source_payload;
    uint64_t told_ns;   /* CLOCK_MONOTONIC of the last delta */
    uint64_t gained_ns; /* and of the last tick that found something gained */
    bool had_open;      /* the last delta told of open traces */
    struct mr_bin_index bin_index;
};

static inline bool mr_list_push(struct mr_list *list, uint32_t item)
{
    if (MR_UNLIKELY(list->count == list->capacity)) {
        uint32_t capacity = list->capacity ? 2 * list->capacity : 256;
        uint32_t *grown = realloc(list->items, capacity * sizeof(*grown));

        if (!grown)
            return false;
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return true;
}

/* Bin of a total of at least 1 ns. */
static MR_ALWAYS_INLINE uint32_t mr_reduce_bin(const struct mr_reduce *reduce,
                                               uint64_t ns)
{
    return mr_bin_of(&reduce->bin_index, ns);
}

static MR_ALWAYS_INLINE bool mr_reduce_in_window(const struct mr_reduce *reduce,
                                                 uint64_t ns)
{
    return ns - reduce->window_start_ns < reduce->window_ns;
}
/* A child of `frame` has been opened on `path`. */
static MR_ALWAYS_INLINE void mr_reduce_foretell(const struct mr_paths *paths,
                                                struct mr_open_call *frame, uint32_t path)
{
    frame->last = path;
    frame->next = paths->nodes[path].next;
}
/* Makes the window of `ns` the current one. */
void mr_reduce_enter_window(struct mr_reduce *reduce, uint64_t ns);

/* reduce_calls.c: any event at all. */
enum mr_status mr_reduce_step(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              const struct mr_event *event);
/*
 * Makes a path (not MR_PATH_NONE) ready to count in the current window, and a total in `bin` (MR_BINS_COUNT: nothing is
 * timed). MR_ENOMEM, or what emitting returns.
 */
enum mr_status mr_reduce_prepare(struct mr_reduce *reduce, uint32_t path, uint32_t bin);
/*
 * The innermost call has been counted: its children become a node, which joins its parent's list. Where there is no room
 * even after forgetting, the tree stops collecting. Then the call is off the stack.
 */
enum mr_status mr_reduce_collect(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream);

/* A whole trace that has ended. */
struct mr_ended {
    uint64_t ns, calls;
    uint32_t bin; /* of ns, if that is not 0 */
    bool is_folded;
};

/* Counts a trace in a shape and an entry point that are ready for its window and bin. */
static inline void mr_reduce_add_shape(struct mr_reduce *reduce, struct mr_shape *shape,
                                       const struct mr_ended *ended,
                                       const struct mr_event *close)
{
    bool is_failed = (close->flags & (MR_EVENT_FAILED | MR_EVENT_UNWOUND)) != 0;
    bool is_first = shape->ok + shape->failed == 0;
    uint64_t wall_ns = close->ns + (uint64_t)reduce->wall_shift_ns;

    mr_times_add(&shape->time, ended->ns, is_first);
    if (is_first || wall_ns < shape->first_ns)
        shape->first_ns = wall_ns;
    if (wall_ns > shape->last_ns)
        shape->last_ns = wall_ns;
    shape->ok += !is_failed;
    shape->failed += is_failed;
    shape->calls += ended->calls;
    shape->folded += ended->is_folded;
    shape->zeros += ended->ns == 0;
    if (ended->ns)
        mr_bins_add(&shape->bins, &reduce->bins, ended->bin);
}
static inline void mr_reduce_add_entry(const struct mr_reduce *reduce,
                                       struct mr_entry *entry,
                                       const struct mr_shape *shape,
                                       enum mr_coverage coverage, uint64_t calls,
                                       uint64_t ns)
{
    entry->last_shape = shape ? (uint32_t)(shape - reduce->shapes) + 1 : 0;
    entry->stats.traces[coverage]++;
    entry->stats.calls[coverage] += calls;
    entry->stats.time_ns[coverage] += ns;
}

/* reduce_trace.c */
/* The innermost call, a root, has been counted on `path`: counts its trace. The call stays on the stack. */
enum mr_status mr_reduce_end_trace(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream, uint32_t path,
                                   const struct mr_event *close);
void mr_reduce_begin_trace(struct mr_reduce_stream *stream);
/* Takes the innermost tree off without counting it. */
void mr_reduce_drop_trace(struct mr_reduce_stream *stream);
/* All open trees lost something: none will be a shape. */
void mr_reduce_break_traces(struct mr_reduce_stream *stream);
/* The innermost open tree passed a limit: it will be no shape. */
void mr_reduce_stop_collecting(struct mr_reduce *reduce, struct mr_reduce_stream *stream);
/* The entry point of a root's path, made when new; NULL without memory. */
struct mr_entry *mr_reduce_entry(struct mr_reduce *reduce, uint32_t path);
/* The node of the innermost call; MR_NODE_NONE when there is no room even after forgetting. */
enum mr_status mr_reduce_node(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              uint32_t *node);

/* reduce_delta.c */
enum mr_status mr_reduce_path_row(struct mr_reduce *reduce, uint32_t path);
enum mr_status mr_reduce_shape_row(struct mr_reduce *reduce, struct mr_shape *shape);
enum mr_status mr_reduce_entry_row(struct mr_reduce *reduce, struct mr_entry *entry);
static inline void mr_reduce_mark_dirty(struct mr_reduce *reduce,
                                        struct mr_reduce_stream *stream)
{
    if (stream->is_dirty)
        return;
    stream->is_dirty = true;
    stream->next_dirty = reduce->dirty;
    reduce->dirty = stream;
}
void mr_reduce_free_stream(struct mr_reduce_stream *stream); /* reduce.c */
/* Writes and emits all that was gained. */
enum mr_status mr_reduce_flush(struct mr_reduce *reduce);

/* reduce_counters.c; of streams with counts, but _value of any. */
enum mr_status mr_reduce_counts_new(struct mr_reduce_stream *stream);
void mr_reduce_counts_free(struct mr_reduce_stream *stream);
/* The innermost call has just been opened. */
enum mr_status mr_reduce_counts_open(struct mr_reduce_stream *stream);
/* The innermost call is about to be taken off the stack; `path`: MR_PATH_NONE if it has none. */
void mr_reduce_counts_close(const struct mr_reduce *reduce,
                            struct mr_reduce_stream *stream, uint32_t path);
/* What follows is no value of the last call event. */
void mr_reduce_counts_settle(struct mr_reduce_stream *stream);
enum mr_status mr_reduce_counts_value(struct mr_reduce *reduce,
                                      struct mr_reduce_stream *stream,
                                      const struct mr_event *event);
/* After the rows were written. */
void mr_reduce_counters_clear(struct mr_reduce *reduce);
void mr_reduce_counters_fini(struct mr_reduce *reduce);

/* reduce_forget.c: flushes, then forgets. */
enum mr_status mr_reduce_forget(struct mr_reduce *reduce);

#endif
