/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconstruct: enters and exits -> well-nested OPEN and CLOSE, in place where nothing has to be inserted.
 *
 *  - The exit of the innermost call closes it. The exit of a call further down closes those above it as UNWOUND, at that
 *    time. An exit of a site that is not open is counted and dropped (MR_EVENT_COUNTED).
 *  - A loss that tells its nesting closes `pops` calls as INCOMPLETE and opens `pushes` UNKNOWN ones; an exit that finds an
 *    UNKNOWN call before one of its own site takes it, and its CLOSE names the true site. The trees it hits are marked with
 *    TRACE_BROKEN. When the stack is back at its base, the next root is whole again.
 *  - A loss of which nobody knows the nesting closes everything above the outer frames. Until the base is sure again, the
 *    trees that follow are marked broken: until an outer frame exits, or until what may enclose them would itself be an
 *    outer frame by the rule for learning (64 trees over 10 s without an unmatched exit).
 *  - Calls deeper than depth_max are lost (budget), and so are their exits; their tree is broken.
 *  - Outer frames: the bottom call of the announced start site, sites by option or attribute (outer.h), learned ones: a loop that
 *    has not returned for long, and its callers (reconstruct_outer.c). A forced root starts a call tree of its own also inside another, which then does not contain it; inside the tree of
 *    a forced root there is no other.
 *
 * Where reduce is next on the same thread, it checks the nesting of what is in order itself (pipeline/nesting.h), and all of the above is
 * only done for what it gives back.
 *
 * Every OPEN and CLOSE of a root carries ROOT, of an outer frame OUTER. Memory: 8 bytes a call (11 after exits out of
 * order), depth_max a stream.
 */
#ifndef MR_PIPELINE_FILTERS_RECONSTRUCT_H
#define MR_PIPELINE_FILTERS_RECONSTRUCT_H

#include "base/clock.h"
#include "pipeline/filter.h"
#include "pipeline/outer.h"

struct mr_reconstruct_config {
    struct mr_outer_config outer;
    uint32_t level;     /* of this worker, for its deltas */
    uint32_t depth_max; /* open calls per stream */
    uint64_t learn_ns;  /* a loop is learned when it is open for longer than this ... */
    uint32_t learn_children; /* ... and has at least so many completed children */
    bool learns_nothing;     /* both then only say when a base is sure again */
    bool
        is_followed; /* reduce is next, on this thread: it checks the nesting (pipeline/nesting.h) */
};
#define MR_RECONSTRUCT_DEPTH_DEFAULT 262144u
#define MR_RECONSTRUCT_LEARN_NS_DEFAULT (10 * MR_SECOND_NS)
#define MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT 64u
#define MR_RECONSTRUCT_PUSHES_MAX                                                        \
    4096u /* UNKNOWN calls that one loss opens; more are beyond the limit of depth */

extern const struct mr_filter_kind mr_reconstruct_filter;

#endif
