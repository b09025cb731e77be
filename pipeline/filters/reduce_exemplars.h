/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single traces: exemplars and statistics per path of a shape (reduce_exemplars.c), what is noted for them while calls are counted
 * (reduce_noted.c), and those that somebody asked for (reduce_asked.c). Not for others than reduce.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_EXEMPLARS_H
#define MR_PIPELINE_FILTERS_REDUCE_EXEMPLARS_H

#include "net/delta.h"
#include "net/wanted.h"
#include "pipeline/condense.h"
#include "pipeline/filters/reduce_stream.h"

struct mr_reduce;
struct mr_shape;
struct mr_template;

/* Of the traces so far: what comes before them in an order of exemplars is to be kept. */
struct mr_extremes {
    uint64_t longest_ns, longest_start_ns; /* Unix; UINT64_MAX: there was none */
    uint64_t earliest_ns;                  /* the same */
};

static inline bool mr_reduce_is_slowest(const struct mr_extremes *extremes, uint64_t ns,
                                        uint64_t start_ns)
{
    return ns > extremes->longest_ns ||
           (ns == extremes->longest_ns && start_ns <= extremes->longest_start_ns);
}
static inline bool mr_reduce_is_extreme(const struct mr_extremes *extremes, uint64_t ns,
                                        uint64_t start_ns)
{
    return start_ns <= extremes->earliest_ns ||
           mr_reduce_is_slowest(extremes, ns, start_ns);
}

/* An exemplar that waits for the next delta. */
struct mr_reduce_pending {
    uint32_t path, shape; /* of the entry point; number + 1, 0: none */
    bool is_incomplete;
    struct mr_exemplar exemplar; /* without its calls */
    struct mr_exemplar_call *calls;
};
/* Who has a place among the exemplars of this lane. */
struct mr_reduce_place {
    struct mr_id key; /* of its shape */
    uint64_t value;   /* the larger, the better */
};
struct mr_reduce_rank {
    struct mr_reduce_place *items; /* exemplars_max, or NULL */
    uint32_t count, worst;
};
struct mr_shape_path_row {
    uint32_t shape, path;
    struct mr_shape_path_stats stats;
};
struct mr_reduce_exemplars {
    struct mr_condense_budget budget;
    struct mr_condense *spare[16];
    uint32_t spare_count;
    struct mr_exemplar_call *calls; /* scratch: exemplar_calls of them */
    struct mr_reduce_rank ranks[MR_EXEMPLAR_WHYS];
    struct mr_reduce_pending *pending;
    uint32_t pending_count, pending_capacity;
    struct mr_shape_path_row *rows; /* since the last delta */
    uint32_t row_count;
    uint32_t *slots;    /* of rows; open addressing: number + 1, 0: free */
    uint64_t credit;    /* calls of known shapes that may be counted by path */
    uint64_t credit_ns; /* CLOCK_MONOTONIC up to which credit was given */
};

/* reduce_noted.c: of the run at hand. */
#define MR_REDUCE_NOTED_MAX 1024u
struct mr_reduce_noted {
    uint64_t least_ns; /* calls that took as long are noted; UINT64_MAX: none is */
    uint32_t root;     /* frame of the trace's root */
    uint32_t ended_count;
    bool is_left; /* there are other events, or too many calls: they must be looked at */
    struct mr_condense_noted ended[MR_REDUCE_NOTED_MAX], open[MR_CONDENSE_NOTED_DEPTH];
};

/* reduce_asked.c */
struct mr_reduce_answer { /* that waits for the next delta */
    struct mr_id request;
    uint32_t wanted; /* how many it asks for */
    struct mr_reduce_pending pending;
};
struct mr_reduce_asked {
    uint64_t open;     /* bit i: request i of the list wants more of this lane */
    uint32_t revision; /* of the list; 0: there was none */
    struct mr_condense_budget budget;
    struct mr_reduce_answer *answers;
    uint32_t answer_count, answer_capacity;
    uint32_t taken[MR_WANTED_MAX];    /* answers that this lane gave to this list */
    uint64_t until_ns[MR_WANTED_MAX]; /* CLOCK_MONOTONIC */
    struct mr_wanted_list list;
};

/* reduce_exemplars.c */
/* A trace that has been counted. */
struct mr_kept {
    struct mr_shape *shape;       /* NULL: none */
    struct mr_extremes *extremes; /* of the shape, or of the entry point's without one */
    uint64_t ns, start_ns, calls; /* start: Unix */
    uint32_t path;                /* of its entry point */
    bool is_failed, is_incomplete;
};
enum mr_status mr_reduce_exemplars_open(struct mr_reduce *reduce);
void mr_reduce_exemplars_close(struct mr_reduce *reduce);
void mr_reduce_exemplars_tick(struct mr_reduce *reduce);
/* The innermost tree ends with `close`, an event of the batch at hand: it is kept if it is wanted. */
enum mr_status mr_reduce_exemplars_end(struct mr_reduce *reduce,
                                       struct mr_reduce_stream *stream,
                                       const struct mr_kept *kept,
                                       const struct mr_event *close);
/* The batch at hand ends, and trees are open. */
void mr_reduce_exemplars_carry(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               uint32_t event_count);
/* What was condensed of a tree is not needed. */
void mr_reduce_exemplars_drop(struct mr_reduce *reduce, struct mr_trace *trace);
enum mr_status mr_reduce_exemplars_flush(struct mr_reduce *reduce);
/* A trace that has ended, without its calls and what it is kept for. */
struct mr_exemplar mr_reduce_exemplar_of(const struct mr_reduce_stream *stream,
                                         const struct mr_trace *trace,
                                         const struct mr_kept *kept);
/* A payload with room for one more, its numbers in it; the sites of its calls become numbers of the payload. */
enum mr_status mr_reduce_exemplar_numbers(struct mr_reduce *reduce,
                                          struct mr_reduce_pending *pending,
                                          uint32_t *path, uint32_t *shape);

/* reduce_noted.c */
/* A run of events begins: which calls are to be noted. */
void mr_reduce_noted_begin(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream);
/* The innermost call ends with event `at` of the run, after reduce->noted.least_ns or more. */
void mr_reduce_note(struct mr_reduce *reduce, const struct mr_open_call *frame,
                    uint32_t depth, uint32_t at);
/* A call that was counted in bulk took as long: notes it, and those in it that did. It began with event `at`. */
void mr_reduce_note_template(struct mr_reduce *reduce, const struct mr_template *template,
                             uint32_t depth, uint32_t at);
/* The run ends. False: the trace's events must be looked at. */
bool mr_reduce_noted_carry(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream,
                           const struct mr_trace *trace, uint32_t event_count);

/* reduce_asked.c */
void mr_reduce_asked_open(struct mr_reduce *reduce);
void mr_reduce_asked_close(struct mr_reduce *reduce);
/* Looks what is wanted now. */
void mr_reduce_asked_tick(struct mr_reduce *reduce);
/* As of the exemplars; before theirs, which begins the next batch for the trace. */
void mr_reduce_asked_end(struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                         struct mr_trace *trace, const struct mr_kept *kept,
                         const struct mr_event *close);
void mr_reduce_asked_carry(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream, struct mr_trace *trace,
                           uint32_t event_count);
void mr_reduce_asked_drop(struct mr_trace *trace);
enum mr_status mr_reduce_asked_flush(struct mr_reduce *reduce);
/* The open requests that want a trace of the shape that took so long; bit i is request i. */
uint64_t mr_reduce_asked_of_shape(struct mr_reduce *reduce, struct mr_shape *shape,
                                  uint64_t ns);

#endif
