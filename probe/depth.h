/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depth limit (MILLRACE_DEPTH): of the calls that are open on a thread, only the
 * outermost so many levels are recorded.
 *
 *     if (mr_depth_takes(&probe->depth, &mr_thread_self, bits, stack))
 *         ... the event is recorded ...
 *
 * A thread keeps what is open: site and place on the stack of each call, recorded or not.
 * An exit ends the innermost open call of its site and all above it, as the analysis takes
 * it; it is recorded if its enter was, or if no enter is known. Calls that were left
 * without an exit (longjmp, exceptions past patchable sites) are found by their place on
 * the stack when the limit is reached: so the depth does not drift.
 *
 * Bounds: MR_LEVELS_MAX open calls of a thread are kept, 16 bytes each in pages that are
 * there once used; deeper ones are counted. A thread without memory for that is not
 * limited.
 *
 * takes, is_recorded, thread_end: the thread itself, and handlers on it, errno may
 * change. skipped: any thread.
 */
#ifndef MR_PROBE_DEPTH_H
#define MR_PROBE_DEPTH_H

#include "probe/ring.h"

#define MR_LEVELS_MAX 65536
#define MR_DEPTH_LIMIT_MAX 4096
#define MR_DEPTH_STRIPES 64

struct mr_level {
    uint64_t stack; /* address; a call of it has a lower one */
    uint32_t site;
};

struct mr_levels {
    uint32_t cuts;           /* probe/cuts.h: what was open before is not known */
    _Atomic uint32_t count;  /* open calls in items[] */
    uint64_t over;           /* open past them */
    struct mr_level items[]; /* MR_LEVELS_MAX */
};

struct mr_depth {
    uint32_t limit; /* levels; 0: none. Set at the start, then constant */
    struct mr_depth_stripe {
        MR_ALIGNED(MR_CACHE_LINE) _Atomic uint64_t calls;
    } skipped[MR_DEPTH_STRIPES];
};

/* Whether the event is to be recorded; `stack`: an address in the caller's frame. */
bool mr_depth_takes(struct mr_depth *depth, struct mr_thread *thread, uint64_t bits,
                    uint64_t stack);
/* Whether the innermost open call of the calling thread is. */
bool mr_depth_is_recorded(const struct mr_depth *depth);
/* Calls that were not recorded so far. */
uint64_t mr_depth_skipped(const struct mr_depth *depth);
/* Signals are blocked. */
void mr_depth_thread_end(void);
/* In a forked child: calls that are open in its parent are unknown to its stream. */
void mr_depth_after_fork(struct mr_depth *depth);

/* The same on levels of a test's own; `site` as in the word. */
bool mr_levels_enter(struct mr_levels *levels, uint32_t limit, uint32_t site,
                     uint64_t stack);
bool mr_levels_exit(struct mr_levels *levels, uint32_t limit, uint32_t site,
                    uint64_t stack);

#endif
