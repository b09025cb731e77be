/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When recording was switched: from each such moment on, nobody can know from a stream
 * which calls are open. The writer says so in every stream that began before it
 * (docs/FORMAT.md section 6.1, record `cut`), at the place in the stream that has this
 * time; so events cost nothing for it, and no thread is waited for.
 *
 *     mr_cuts_add(&cuts, mr_clock_ticks());       // before the first change
 *     ... at least MR_CUT_MARGIN_NS ...           // clocks of other threads are past it
 *     change
 *     mr_cuts_add(&cuts, mr_clock_ticks());       // after the last
 *     mr_cuts_settle(&cuts);
 *
 * A thread that begins after a switch is whole: it remembers at its start how many cuts
 * had settled. One that begins within a switch may have missed calls, and is cut.
 *
 * field           written by          read by          access
 * ticks[], ns[]   who switches (one)  writer           relaxed, before count [P]
 * count           who switches        writer           release [P], acquire [C]
 * settled,        who switches        new threads      release [S], acquire [T]
 *  settled_ns
 * Invariant: a reader that is MR_CUTS_KEPT - 1 or more behind uses no ticks.
 * Checked by: tests/unit/probe/test_cuts.c
 */
#ifndef MR_PROBE_CUTS_H
#define MR_PROBE_CUTS_H

#include "base/atomics.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define MR_CUTS_KEPT 16
/* What a thread records after the switch has a later time than the cut before it. */
#define MR_CUT_MARGIN_NS MR_MILLISECOND_NS
/* Clock hybrid: times lag behind as long as its ticker is not run. */
#define MR_CUT_MARGIN_HYBRID_NS (20 * MR_MILLISECOND_NS)
/* A stream at rest is cut so long after the switch: what was under way has come. */
#define MR_CUT_REST_NS (100 * MR_MILLISECOND_NS)

struct mr_cuts {
    _Atomic uint32_t count, settled;
    _Atomic uint64_t settled_ns; /* CLOCK_BOOTTIME, which tells when threads began */
    _Atomic uint64_t ticks[MR_CUTS_KEPT], ns[MR_CUTS_KEPT];
};

static inline void mr_cuts_add(struct mr_cuts *cuts, uint64_t ticks_now)
{
    uint32_t count = mr_load_relaxed(&cuts->count);

    mr_store_relaxed(&cuts->ticks[count % MR_CUTS_KEPT], ticks_now);
    mr_store_relaxed(&cuts->ns[count % MR_CUTS_KEPT], mr_clock_monotonic_ns());
    mr_store_release(&cuts->count, count + 1); /* [P] */
}

static inline void mr_cuts_settle(struct mr_cuts *cuts)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    mr_store_relaxed(&cuts->settled_ns,
                     (uint64_t)now.tv_sec * MR_SECOND_NS + (uint64_t)now.tv_nsec);
    mr_store_release(&cuts->settled, mr_load_relaxed(&cuts->count)); /* [S] */
}

static inline uint32_t mr_cuts_count(const struct mr_cuts *cuts)
{
    return mr_load_acquire(&cuts->count); /* [C] */
}

/* Time of cut `number` (from 0), in ticks and monotonic ns; 0 and 0: long ago. */
static inline void mr_cuts_at(const struct mr_cuts *cuts, uint32_t number,
                              uint64_t *ticks, uint64_t *ns)
{
    bool is_kept = mr_cuts_count(cuts) - number < MR_CUTS_KEPT - 1;

    *ticks = is_kept ? mr_load_relaxed(&cuts->ticks[number % MR_CUTS_KEPT]) : 0;
    *ns = is_kept ? mr_load_relaxed(&cuts->ns[number % MR_CUTS_KEPT]) : 0;
    if (mr_cuts_count(cuts) - number >= MR_CUTS_KEPT - 1)
        *ticks = *ns = 0; /* given up meanwhile */
}

#endif
