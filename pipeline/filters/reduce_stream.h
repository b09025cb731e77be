/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reduce knows of a stream: its open calls, outermost first, the call trees that are open in it, and its ledger. Not for others than reduce.
 *
 *     frames   O O R . . . .        outer frames, the root of a tree, and what it calls
 *     traces       ^                at most MR_REDUCE_TRACES_OPEN, the innermost last
 *     children     a b c | d | e    the lists of the open calls so far, one behind the other (shapes.h)
 *
 * Of the lane that has the stream; one thread.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_STREAM_H
#define MR_PIPELINE_FILTERS_REDUCE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/id.h"
#include "pipeline/batch.h"
#include "pipeline/condense.h"
#include "pipeline/resume.h"
#include "pipeline/source.h"

#define MR_REDUCE_TRACES_OPEN 2 /* a call tree, and that of a forced root in it */

/* In the flags of an open call: an unwinder landed in its frame. Other calls that have its place later have it not. */
#define MR_OPEN_LANDED (UINT32_C(1) << 16)

/*
 * One open call. The two times do not stand side by side: compilers would load them as one
 * vector, which waits until both, stored apart, have left the store buffer.
 */
struct mr_open_call {
    uint64_t enter_ns;
    uint32_t path;
    uint32_t first_child; /* its children on the child stack begin here */
    uint64_t child_ns;
    uint32_t flags; /* enum mr_event_flag of its OPEN; FAILED: so far; MR_OPEN_LANDED */
    uint32_t
        opened; /* place of its OPEN among all events taken; see mr_reduce_age_calls() */
    uint32_t last, next; /* paths of the child before, and of the likely next one */
    uint64_t closes;     /* its site in the low half; see mr_open_call_closes() */
    uint64_t hash;       /* folded: of its site and its children so far (shapes.h) */
};

/* The word of the event that ends a call inside a call tree in order, without flags; one that there is not for calls with flags. */
static MR_ALWAYS_INLINE uint64_t mr_open_call_closes(uint32_t site, uint32_t flags)
{
    return (uint64_t)(flags ? UINT32_MAX : (uint32_t)MR_EVENT_CLOSE) << 32 | site;
}

static MR_ALWAYS_INLINE uint32_t mr_open_call_site(const struct mr_open_call *frame)
{
    return (uint32_t)frame->closes;
}

static inline void mr_open_call_set_flags(struct mr_open_call *frame, uint32_t flags)
{
    frame->flags = flags;
    frame->closes = mr_open_call_closes(mr_open_call_site(frame), flags);
}

/* One open call tree. */
struct mr_trace {
    uint64_t closed;              /* the stream's count of closed calls when it began */
    uint64_t elsewhere;           /* calls since then that belong to another tree */
    struct mr_condense *condense; /* what earlier batches had of it; NULL: nothing */
    struct mr_condense *asked;    /* the same, for who asked for it; NULL: nobody does */
    uint32_t first; /* event of this batch from which on it is not condensed */
    uint32_t frame; /* of its root */
    bool is_broken; /* a loss hit it: no shape */
    bool is_over;   /* past a limit: no shape */
    bool is_folded;
    bool is_carried; /* it began in an earlier batch */
    bool is_partial; /* it began at another worker: nobody has all of its calls */
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
    struct mr_reduce_links *links;   /* NULL: no event of it ever joined call trees */
    bool has_links;                  /* its open call trees, or the next one, are parts */
    uint64_t *children; /* child stack: the lists of the open calls, outermost first */
    uint32_t child_count, child_capacity;
    uint32_t scope;
    uint32_t base, outer_base; /* paths of the scope; MR_PATH_NONE: not made yet */
    struct mr_trace traces[MR_REDUCE_TRACES_OPEN];
    uint32_t trace_count;
    bool is_collecting; /* the innermost open tree may still become a shape */
    uint64_t closed;
    /* The template of the last traces that were taken whole, and how often in a row. */
    uint32_t again, again_count;
    /* Ledger: totals, and what was told of them. */
    uint64_t base_event, last, reduced, lost_sum;
    uint64_t parts_before; /* no more than so many were told by another process */
    uint64_t told_reduced;
    int64_t told_held;
    uint64_t lost[MR_LOSS_REASON_COUNT]; /* since the last delta */
    uint64_t seen_ns;                    /* of an event of it, for the marks */
    uint32_t serial;                     /* of its source */
    /* For the marks: calls in whose frames an unwinder landed, outermost first; NULL: there was none. */
    struct mr_resume_landing *landings;
    uint32_t landing_count;
};

#endif
