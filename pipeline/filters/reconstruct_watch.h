/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reconstruct_outer.c is told of a stream, event by event, to learn which calls never return: by whoever follows the calls,
 * which is reconstruct, or reduce in its place (pipeline/nesting.h). One thread.
 */
#ifndef MR_PIPELINE_FILTERS_RECONSTRUCT_WATCH_H
#define MR_PIPELINE_FILTERS_RECONSTRUCT_WATCH_H

#include "base/compiler.h"
#include "pipeline/filters/reconstruct.h"

#define MR_RECONSTRUCT_LEVELS 16u /* of calls above the outer frames that are watched */
#define MR_RECONSTRUCT_PLACES 8u

/* A call that has been open since then, while none of its callers below the outer frames had a child that ended. */
struct mr_reconstruct_candidate {
    uint64_t since_ns;
    uint32_t depth;    /* of the stack when it is innermost */
    uint32_t children; /* that ended since then */
};

/* Plain numbers. */
struct mr_reconstruct_watch {
    uint64_t first_ns; /* of the stream's first call; 0: none yet */
    uint64_t
        last_ns; /* when the innermost candidate became one, or a child of it ended */
    /* While a call tree is open: its root, then others ever deeper. */
    struct mr_reconstruct_candidate candidates[MR_RECONSTRUCT_LEVELS];
    uint32_t count;
    /* Roots that were learned: outer frames again where so many lie below. */
    uint32_t place_count;
    struct {
        uint32_t depth, site;
    } places[MR_RECONSTRUCT_PLACES];
};

/* Whether what is open since then, with so many calls completed in it, is an outer frame by the rule. */
static inline bool mr_reconstruct_is_long(const struct mr_reconstruct_config *config,
                                          uint64_t since_ns, uint64_t ns,
                                          uint64_t children)
{
    return children >= config->learn_children && ns - since_ns > config->learn_ns;
}

/* Depth of the innermost candidate; a call tree is open. */
static inline uint32_t mr_reconstruct_watch_low(const struct mr_reconstruct_watch *watch)
{
    return watch->candidates[watch->count - 1].depth;
}

/*
 * A call ended, and `depth` remain, where a candidate has been open at most. False, with nothing changed, when
 * mr_reconstruct_child_ended() has to see it.
 */
static MR_ALWAYS_INLINE bool mr_reconstruct_count_child(
    struct mr_reconstruct_watch *watch, const struct mr_reconstruct_config *config,
    uint32_t depth, uint64_t ns)
{
    struct mr_reconstruct_candidate *top = &watch->candidates[watch->count - 1];

    if (depth != top->depth ||
        mr_reconstruct_is_long(config, top->since_ns, ns, top->children + 1))
        return false;
    top->children++;
    watch->last_ns = ns;
    return true;
}

#endif
