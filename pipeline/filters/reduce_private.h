/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of reduce; not for others. What a stream is, and each part that has data of its own, has a header: reduce_stream.h,
 * reduce_templates.h, reduce_counters.h, reduce_links.h, reduce_marks.h, reduce_exemplars.h (of the last three .c files below, too).
 *
 *     reduce.c         the filter, its streams
 *     reduce_run.c     the hot loop
 *     reduce_templates.c  calls that come back exactly as they were, in bulk; reduce_templates_find.c finds and
 *                      reduce_templates_play.c makes them, reduce_templates_wide.c and _wider.c do so with vectors
 *     reduce_follow.c  batches whose nesting is checked here (pipeline/nesting.h)
 *     reduce_calls.c   everything the hot loop leaves: roots, outer frames, broken and failed calls, new windows
 *     reduce_trace.c   the end of a call tree: entry points, shapes
 *     reduce_delta.c   what was gained -> DICT and DELTA
 *     reduce_forget.c  full tables
 *     reduce_counters.c  counters on spans
 *     reduce_links.c   sends, receives, hand-offs: parts
 *     reduce_marks.c   what the spool must know with a delta; streams that go on from one
 *     reduce_exemplars.c single traces: exemplars, statistics per path of a shape
 *     reduce_noted.c   what is known of a single trace's calls while they are counted
 *     reduce_asked.c   single traces that somebody asked for
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_PRIVATE_H
#define MR_PIPELINE_FILTERS_REDUCE_PRIVATE_H

#include <stdlib.h>

#include "base/table.h"
#include "net/delta.h"
#include "pipeline/condense.h"
#include "pipeline/counters.h"
#include "pipeline/dict_batch.h"
#include "pipeline/filters/reconstruct.h"
#include "pipeline/filters/reduce.h"
#include "pipeline/filters/reduce_counters.h"
#include "pipeline/filters/reduce_exemplars.h"
#include "pipeline/filters/reduce_links.h"
#include "pipeline/filters/reduce_marks.h"
#include "pipeline/filters/reduce_stream.h"
#include "pipeline/filters/reduce_templates.h"
#include "pipeline/nesting.h"
#include "pipeline/paths.h"
#include "pipeline/shapes.h"
#include "pipeline/source.h"

enum mr_reduce_counter {
    MR_REDUCE_FORGETS, /* times the tables were emptied because one was full */
    MR_REDUCE_EARLY,   /* deltas sent early for that, or for a full histogram pool */
    MR_REDUCE_NO_PATH, /* calls that found no path */
    MR_REDUCE_TRACES_TOO_BIG,  /* traces past a limit: paths only */
    MR_REDUCE_TRACES_NEW,      /* traces past the budget of new shapes: paths only */
    MR_REDUCE_TRACES_PRUNED,   /* traces in which a site was pruned: paths only */
    MR_REDUCE_NOT_KEPT,        /* exemplars for which there was no memory */
    MR_REDUCE_ASKED,           /* traces kept as answers to requests for exemplars */
    MR_REDUCE_ASKED_ELIDED,    /* of these, such as had more calls than fit a frame */
    MR_REDUCE_ASKED_NOT_KEPT,  /* traces that were asked for, past the budget or memory */
    MR_REDUCE_ASKED_BEGUN,     /* the same, of which the request missed the beginning */
    MR_REDUCE_VALUES_ALONE,    /* values of counters that belong to no call */
    MR_REDUCE_PARTS,           /* headers of call trees that are joined elsewhere */
    MR_REDUCE_LINKS_LOST,      /* sends and the like past a limit */
    MR_REDUCE_LINKS_MALFORMED, /* sends and receives of ids that are zero */
    MR_REDUCE_LINKS_UNMATCHED, /* detaches of nothing */
    MR_REDUCE_HANDED_OVER,     /* streams that another receiver goes on with, */
    MR_REDUCE_HANDED_SHORT,    /* of which there was no room for open calls */
    MR_REDUCE_COUNTERS
};

/* Sums of the ledger, for the metrics of this process alone: upward goes the ledger itself. */
enum mr_reduce_sum {
    MR_REDUCE_SUM_REDUCED = MR_REDUCE_COUNTERS,
    MR_REDUCE_SUM_LOST,
    MR_REDUCE_SUM_HELD,    /* goes up and down */
    MR_REDUCE_SUM_BULK,    /* calls that templates counted */
    MR_REDUCE_SUM_REPEATS, /* of them such as were no events: pipeline/repeat.h */
};

struct mr_shape {
    uint32_t root, node; /* path of the entry point; its node */
    struct mr_extremes extremes;
    uint32_t window;         /* 0: nothing gained */
    uint32_t payload, index; /* its number in that payload */
    uint32_t zeros;
    struct mr_bins bins;
    uint64_t ok, failed, calls, folded, first_ns, last_ns;
    struct mr_times time;
    bool is_touched;
    uint32_t asked_revision; /* of the requests in `asked` */
    uint64_t asked;          /* bit i: request i wants its traces */
};

struct mr_entry {
    uint32_t path, window;          /* window 0: nothing gained */
    uint32_t last_shape;            /* index + 1 */
    struct mr_extremes extremes[2]; /* of traces without a shape: whole, incomplete */
    bool is_touched;
    struct mr_entry_stats stats;
    uint16_t refused;          /* traces past the budget of new shapes in a row */
    uint16_t rest;             /* traces that are not looked at */
    struct mr_open_stats open; /* while a delta is written */
    uint32_t stack;            /* path of the innermost open call of the oldest */
    uint32_t asked_revision;   /* of the requests in `asked` */
    uint64_t asked;            /* bit i: request i names it */
};

/* A growing array of indices. */
struct mr_list {
    uint32_t *items;
    uint32_t count, capacity;
};

struct mr_scope {
    struct mr_id id;
    uint32_t payload, index;
    bool is_kept; /* while tables are emptied */
    bool is_free; /* forgotten; its number is in free_scopes */
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
    struct mr_node_budget node_budget;
    struct mr_bin_pool bins;
    struct mr_templates templates;
    uint32_t
        repeat_count; /* of the lane's streams; decode counts off (pipeline/repeat.h) */
    uint32_t taken;   /* events of earlier batches, modulo 2^32 */
    uint32_t aged;    /* `taken` at the last mr_reduce_age_calls() that did something */
    uint32_t place;   /* of the event at hand of mr_reduce_step(), among all */
    uint32_t nodes_known; /* nodes below this number are older than the batch */
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
    struct mr_list free_scopes; /* numbers below scope_count */
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
    struct mr_reduce_exemplars exemplars;
    struct mr_reduce_asked asked;
    /* The run at hand: all events of a batch, or those that are followed. */
    struct mr_event *events;
    uint32_t event_count;
    bool has_codes; /* they are made when somebody wants some of them */
    uint32_t codes[MR_BATCH_EVENTS_MAX + MR_CODE_BLOCK];
    uint16_t
        whole[MR_BATCH_EVENTS_MAX]; /* of them, as pipeline/condense.h wants it; else 0 */
    struct mr_reduce_noted noted;
    struct mr_nesting *nesting; /* is checked here; NULL: they are well nested */
    uint64_t told_ns;           /* CLOCK_MONOTONIC of the last delta */
    uint64_t group;             /* of the payloads of the next one */
    struct mr_id teller;        /* this lane, as a teller of open traces */
    uint64_t telling;           /* its last one that has said which there are */
    uint64_t gained_ns;         /* and of the last tick that found something gained */
    bool had_open;              /* the last delta told of open traces */
    struct mr_bin_index bin_index;
    struct mr_reduce_marks marks;
};

/* True time, not that of events: it pays for processor time. */
static inline uint64_t mr_reduce_budget_ns(const struct mr_reduce *reduce)
{
    const struct mr_reduce_config *config = reduce->config;

    return config->budget_clock ? config->budget_clock(config->budget_context)
                                : mr_clock_monotonic_ns();
}

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

/* reduce_codes.c: makes those of the run's events, all at once (docs/why/2026-11-28-codes.md). */
MR_NOINLINE void mr_reduce_make_codes(struct mr_reduce *reduce);

/* The codes of the run's events, from `events` on. */
static MR_ALWAYS_INLINE const uint32_t *mr_reduce_codes(struct mr_reduce *reduce,
                                                        const struct mr_event *events)
{
    if (MR_UNLIKELY(!reduce->has_codes))
        mr_reduce_make_codes(reduce);
    return reduce->codes + (events - reduce->events);
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
    frame->next = paths->nodes[path].likely[MR_PATH_NEXT];
}
/* Makes the window of `ns` the current one. */
void mr_reduce_enter_window(struct mr_reduce *reduce, uint64_t ns);

/* A call that ended ok, of a path that is ready for its window and bin. */
static MR_ALWAYS_INLINE void mr_reduce_count_call(struct mr_reduce *reduce,
                                                  struct mr_path *path, uint64_t total,
                                                  uint64_t self, uint32_t bin)
{
    path->ok++;
    path->total_sum += total;
    path->self_sum += self;
    if (MR_UNLIKELY(!mr_known_has(path->total, total) || !mr_known_has(path->self, self)))
        mr_path_widen(path, total, self);
    if (MR_LIKELY(total))
        mr_bins_add(&path->bins, &reduce->bins, bin);
    else
        path->zeros++;
}

/* reduce_inner.c: calls inside a call tree that end ok, from `first` on until an event is anything else; how many. */
uint32_t mr_reduce_inner(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                         uint32_t first);
/* reduce_run.c: takes events of the run from `*at` on until one needs mr_reduce_step(), whose place that is then. */
enum mr_status mr_reduce_run(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                             uint32_t *at);
/*
 * reduce_run.c: traces of a REPEATS batch from number `first` on, until some must be taken as events: the number of the first of
 * these, and how many (`leave`).
 */
uint32_t mr_reduce_run_repeats(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               const struct mr_batch *batch, uint32_t first,
                               uint32_t *leave);
/* reduce_follow.c, of a run whose nesting is checked here: whether the event at hand may be taken. A root is marked as one. */
bool mr_reduce_is_in_order(const struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream, struct mr_event *event);
/*
 * Whether so many calls, taken in bulk with `depth` others open, are within reconstruct's limit. They are no loop that it would
 * learn: a run ends where reconstruct has to look for one (reconstruct_outer.c, look_at), an eighth of that time after it began.
 */
static inline bool mr_reduce_has_depth(const struct mr_reduce *reduce, uint32_t depth,
                                       uint32_t calls)
{
    return !reduce->nesting || depth + calls <= reduce->nesting->config->depth_max;
}
/* The event was taken by mr_reduce_step(). False when no more of the run may be. */
bool mr_reduce_stepped(const struct mr_reduce *reduce,
                       const struct mr_reduce_stream *stream,
                       const struct mr_event *event);
/* The run ends, of which the first `taken` events were taken: tells reconstruct how calls nest now. */
void mr_reduce_tell_nesting(struct mr_reduce *reduce,
                            const struct mr_reduce_stream *stream, uint32_t taken);
/*
 * reduce_calls.c. How many events ago a call was opened is known modulo 2^32 only: after 86 s at 50 M events a second a call would be as
 * good as new, and other calls' events its own. So now and then, before a batch, calls that are older than MR_REDUCE_OLD are made exactly that old.
 */
#define MR_REDUCE_OLD (UINT32_C(1) << 31)
void mr_reduce_age_calls(struct mr_reduce *reduce);
/* Any event at all. */
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
/* Whole traces that ended ok, between these times: what they took, and how many there are; the rest is for the caller. */
static inline void mr_reduce_add_shapes(const struct mr_reduce *reduce,
                                        struct mr_shape *shape,
                                        const struct mr_times *times, uint64_t first_ns,
                                        uint64_t last_ns, uint64_t count)
{
    bool is_first = shape->ok + shape->failed == 0;

    first_ns += (uint64_t)reduce->wall_shift_ns;
    last_ns += (uint64_t)reduce->wall_shift_ns;
    mr_times_merge(&shape->time, times, is_first, false);
    if (is_first || first_ns < shape->first_ns)
        shape->first_ns = first_ns;
    if (last_ns > shape->last_ns)
        shape->last_ns = last_ns;
    shape->ok += count;
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
void mr_reduce_begin_trace(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                           const struct mr_event *open);
/* The open tree, the only one, will be none: counts what has ended of it at its entry point, as in the paths alone. */
enum mr_status mr_reduce_count_part(struct mr_reduce *reduce,
                                    const struct mr_reduce_stream *stream);
/* Takes the innermost tree, of which nothing is condensed, off without counting it. */
void mr_reduce_drop_trace(struct mr_reduce_stream *stream);
/* All open trees lost something: none will be a shape. */
void mr_reduce_break_traces(struct mr_reduce_stream *stream);
/* The innermost open tree will be no shape; counted as `why`. */
void mr_reduce_stop_collecting(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               enum mr_reduce_counter why);
/* The open trees go on in the paths alone; counted as `why`. */
void mr_reduce_leave_shapes(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                            enum mr_reduce_counter why);
/* The shape of traces of a node from an entry point: its place in the table + 1; 0 when there is none. */
uint32_t mr_reduce_find_shape(const struct mr_reduce *reduce, uint32_t root,
                              uint32_t node);
/* The entry point of a root's path, made when new; NULL without memory. */
struct mr_entry *mr_reduce_entry(struct mr_reduce *reduce, uint32_t path);
/*
 * The node of the innermost call; MR_NODE_NONE when there is no room even after forgetting, or, its tree collecting no more,
 * no budget.
 */
enum mr_status mr_reduce_node(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              uint32_t *node);

/* reduce_delta.c */
/* A payload with room for one more row; then numbers in it. */
enum mr_status mr_reduce_room(struct mr_reduce *reduce);
enum mr_status mr_reduce_path_number(struct mr_reduce *reduce, uint32_t path,
                                     uint32_t *number);
enum mr_status mr_reduce_site_number(struct mr_reduce *reduce, uint32_t site,
                                     uint32_t *number);
enum mr_status mr_reduce_shape_number(struct mr_reduce *reduce, struct mr_shape *shape);
uint32_t mr_reduce_source_number(struct mr_reduce *reduce, struct mr_id source);
enum mr_status mr_reduce_path_row(struct mr_reduce *reduce, uint32_t path);
enum mr_status mr_reduce_shape_row(struct mr_reduce *reduce, struct mr_shape *shape);
enum mr_status mr_reduce_entry_row(struct mr_reduce *reduce, struct mr_entry *entry);
enum mr_status mr_reduce_part_row(struct mr_reduce *reduce, const struct mr_part *part);
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

/* Of no trace; where no exemplars are kept, such that none comes before them. */
static inline struct mr_extremes mr_reduce_no_extremes(const struct mr_reduce *reduce)
{
    if (reduce->config->exemplar_calls == 0)
        return (struct mr_extremes){.longest_ns = UINT64_MAX};
    return (struct mr_extremes){.longest_start_ns = UINT64_MAX,
                                .earliest_ns = UINT64_MAX};
}
/* Whether a trace of so many calls, of a known shape, is counted by path. */
static inline bool mr_reduce_pays(const struct mr_reduce *reduce, uint64_t calls)
{
    return calls <= reduce->exemplars.credit && calls <= reduce->config->exemplar_calls;
}
/* Whether the trace, of a known shape, which began at `enter_ns`, is kept, or counted by path: the slow path does it. */
static inline bool mr_reduce_wants(struct mr_reduce *reduce, struct mr_shape *shape,
                                   const struct mr_ended *ended, uint64_t enter_ns)
{
    return mr_reduce_pays(reduce, ended->calls) ||
           mr_reduce_is_extreme(&shape->extremes, ended->ns,
                                enter_ns + (uint64_t)reduce->wall_shift_ns) ||
           (MR_UNLIKELY(reduce->asked.open) &&
            mr_reduce_asked_of_shape(reduce, shape, ended->ns));
}

static inline bool mr_reduce_may_flush(const struct mr_reduce *reduce)
{
    return !reduce->config->has_marks || !reduce->marks.is_amid;
}

/* reduce_forget.c: flushes, then forgets. */
enum mr_status mr_reduce_forget(struct mr_reduce *reduce);

#endif
