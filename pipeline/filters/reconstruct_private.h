/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of reconstruct: reconstruct.c is the filter and its hot loop, reconstruct_step.c takes the events that the loop
 * leaves, reconstruct_find.c finds the call of an exit that is out of order, reconstruct_last.c knows the last trace again,
 * reconstruct_landing.c takes what the probe tells of exceptions and jumps, reconstruct_outer.c learns which calls never return,
 * reconstruct_resume.c goes on from a spool. Not for others.
 */
#ifndef MR_PIPELINE_FILTERS_RECONSTRUCT_PRIVATE_H
#define MR_PIPELINE_FILTERS_RECONSTRUCT_PRIVATE_H

#include "pipeline/counters.h"
#include "pipeline/dict_batch.h"
#include "pipeline/filters/reconstruct.h"
#include "pipeline/filters/reconstruct_watch.h"
#include "pipeline/nesting.h"
#include "pipeline/source.h"

enum mr_reconstruct_counter {
    MR_RECONSTRUCT_UNMATCHED,  /* exits without an enter */
    MR_RECONSTRUCT_UNWOUND,    /* calls without an exit of their own */
    MR_RECONSTRUCT_INCOMPLETE, /* calls that a loss or the end cut */
    MR_RECONSTRUCT_TOO_DEEP,   /* events past depth_max */
    MR_RECONSTRUCT_BROKEN,     /* times a call tree was broken */
    MR_RECONSTRUCT_LEARNED,
    MR_RECONSTRUCT_UNWINDS_UNKNOWN, /* unwind records that could not be used */
    MR_RECONSTRUCT_PRUNED, /* marks of sites that are recorded no more, or again */
    MR_RECONSTRUCT_COUNTERS
};

/* Why a call is an outer frame, as it is told upward (FORMAT.md section 5). */
#define MR_RECONSTRUCT_WHY_START 0u
#define MR_RECONSTRUCT_WHY_OPTION 1u
#define MR_RECONSTRUCT_WHY_LEARNED 2u

#define MR_CALL_MARK (UINT64_C(1) << 63)   /* reconstruct_find.c is told when it closes */
#define MR_CALL_LANDED (UINT64_C(1) << 62) /* of a frame that was landed in */
#define MR_RECONSTRUCT_NOT_OPEN UINT32_MAX

#define MR_RECONSTRUCT_LANDINGS_MAX 8u

struct mr_call_block;

/* A call in whose frame an unwinder landed. */
struct mr_reconstruct_landing {
    uint32_t site, at; /* place on the stack */
    uint16_t tag;
};

struct mr_reconstruct_stream {
    struct mr_stream *stream;
    struct mr_reconstruct_stream *next, **at; /* list of all, for close() */
    uint64_t *calls;                          /* open ones, outermost first */
    uint32_t depth, capacity;
    struct mr_call_block *blocks; /* reconstruct_find.c */
    uint32_t block_count, block_capacity;
    uint32_t outer_depth;  /* how many of the bottom ones are outer frames */
    uint32_t forced_depth; /* depth of the open forced root, 0: none */
    /*
     * mr_attach(): within a call tree, calls right below attach_depth are forced roots, unless it is inside of a forced root
     * itself. It ends with the call at attach_depth, whether a detach came or not.
     */
    uint32_t attached, attach_depth; /* how many are open; 0: none within a tree */
    uint32_t scope;
    uint64_t overflow; /* open calls past depth_max */
    struct mr_reconstruct_watch watch;
    /* After a loss of unknown nesting. Set by mr_reconstruct_set_unsynced(). */
    bool is_unsynced;
    uint64_t unsynced_ns, unsynced_roots;
    /* reconstruct_landing.c: frames landed in, outermost first; whether the last landing's call is found. */
    struct mr_reconstruct_landing landings[MR_RECONSTRUCT_LANDINGS_MAX];
    uint32_t landing_count;
    bool is_landed;
};

#define MR_LAST_TRACE_EVENTS 128u
#define MR_LAST_TRACES 64u

/*
 * The words (all but the times) of a trace that lay whole in a batch, the last of a root: where the same come again, their
 * calls are in order, and need not be matched one by one. Of whatever stream: what it says does not depend on that.
 */
struct mr_last_trace {
    uint32_t count, depth; /* events, 0: none; calls open at a time */
    uint32_t score;        /* how often it helped of late */
    uint32_t traces;       /* that did not try it */
    uint64_t words[MR_LAST_TRACE_EVENTS];
};

struct mr_reconstruct {
    struct mr_filter *filter;
    const struct mr_reconstruct_config *config;
    struct mr_counters counters;
    struct mr_dict_batch dict;
    struct mr_outer outer;
    struct mr_reconstruct_stream *streams;
    struct mr_last_trace last[MR_LAST_TRACES]; /* by the low bits of the root's site */
    /*
     * The batch being rewritten. While out == in, `written` <= `read`: what was read may be overwritten. When an event makes
     * more than there is room for, the output moves to batches of its own (out != in).
     */
    struct mr_batch *in, *out;
    uint32_t read;    /* events of `in` taken */
    uint32_t look_at; /* before this one of `in` mr_reconstruct_look() is due */
    uint32_t written; /* events of `out` */
    uint32_t turns;   /* times that reduce followed events of the batch at hand */
    struct mr_nesting nesting;
};

/* Appends an event to the output. MR_ENOMEM, or what emitting returns. */
enum mr_status mr_reconstruct_put(struct mr_reconstruct *rebuild,
                                  const struct mr_event *event);
/* Any event at all. */
enum mr_status mr_reconstruct_step(struct mr_reconstruct *rebuild,
                                   struct mr_reconstruct_stream *stream,
                                   const struct mr_event *event);
/* Whether the base is sure, from here on. */
void mr_reconstruct_set_unsynced(struct mr_reconstruct_stream *stream, bool is_unsynced);
/* A new stream goes on where another process stood. MR_ENOMEM. */
enum mr_status mr_reconstruct_resume(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream);
/*
 * Before its first event, into the batch. Calls past depth_max are not told (pipeline/resume.h): above a stack that was full nobody knows how
 * many there were, so whose the next exits are.
 */
enum mr_status mr_reconstruct_go_on(struct mr_reconstruct *rebuild,
                                    struct mr_reconstruct_stream *stream, uint64_t ns);
/* Depth below the innermost call that an exit of `site` may be of: one of its site, or an UNKNOWN one. Or NOT_OPEN. */
uint32_t mr_reconstruct_find(struct mr_reconstruct_stream *stream, uint32_t site);
/* The marked call at `at`, the innermost, is being closed. */
void mr_reconstruct_unmark(struct mr_reconstruct_stream *stream, uint32_t at);
/* LEFT and LANDED events. */
enum mr_status mr_reconstruct_left(struct mr_reconstruct *rebuild,
                                   struct mr_reconstruct_stream *stream,
                                   const struct mr_event *event);
enum mr_status mr_reconstruct_landed(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream,
                                     const struct mr_event *event);
/* Closes what is open above `depth` as unwound. */
enum mr_status mr_reconstruct_unwind(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream, uint32_t depth,
                                     uint64_t ns);
/* A call has ended inside a call tree: learns what is open as outer frames where it is that. */
enum mr_status mr_reconstruct_child_ended(struct mr_reconstruct *rebuild,
                                          struct mr_reconstruct_stream *stream,
                                          uint64_t ns);
/* The batch begins: sets look_at. */
void mr_reconstruct_look_first(struct mr_reconstruct *rebuild);
/* The event at look_at is next: it may find the candidate quiet. Moves look_at on. */
void mr_reconstruct_look(struct mr_reconstruct *rebuild,
                         struct mr_reconstruct_stream *stream);
/* Tells an outer frame upward, once per scope and site. `why`: as FORMAT.md section 5 has it. */
enum mr_status mr_reconstruct_announce(struct mr_reconstruct *rebuild,
                                       const struct mr_reconstruct_stream *stream,
                                       uint32_t site, uint32_t why);

/* Whether `count` events from a root on begin with the last trace. */
bool mr_reconstruct_is_again(struct mr_last_trace *last, const struct mr_event *events,
                             uint64_t count);
/* A trace that is in order, with or without the marks of its root. */
void mr_reconstruct_remember(struct mr_last_trace *last, const struct mr_event *events,
                             uint64_t count);

/* Whether a root that was learned stood at the base as it is now. */
static inline bool mr_reconstruct_is_place(const struct mr_reconstruct_stream *stream,
                                           uint32_t site)
{
    const struct mr_reconstruct_watch *watch = &stream->watch;

    for (uint32_t i = 0; i < watch->place_count; i++)
        if (watch->places[i].site == site &&
            watch->places[i].depth == stream->outer_depth)
            return true;
    return false;
}

/* A call that ends where no more than these remain is a candidate, or a child of one. 0: no call tree is open. */
static inline uint32_t mr_reconstruct_low(const struct mr_reconstruct_stream *stream)
{
    if (stream->depth == stream->outer_depth)
        return 0;
    return mr_reconstruct_watch_low(&stream->watch);
}

/* A root opens. */
static inline void mr_reconstruct_watch_root(struct mr_reconstruct_stream *stream,
                                             uint64_t ns)
{
    struct mr_reconstruct_watch *watch = &stream->watch;

    watch->last_ns = ns;
    watch->count = 1;
    watch->candidates[0] = (struct mr_reconstruct_candidate){
        .since_ns = ns, .depth = stream->outer_depth + 1};
}

#endif
