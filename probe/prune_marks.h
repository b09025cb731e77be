/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From where on sites are recorded no more, or again. As with cuts (probe/cuts.h) the
 * writer says so in every stream, at the place that has this time, so that events cost
 * nothing for it; but what is said is of some sites alone (docs/FORMAT.md section 6.1,
 * record `prune`), and what else is open stays known.
 *
 *     number = mr_prune_marks_add(&marks, ticks, payloads, count);  // before the change
 *     change
 *     mr_prune_marks_add(...);                                      // after it
 *     mr_prune_marks_settle(&marks);
 *
 * A thread that begins later has recorded no call of these sites: it remembers how many
 * marks had settled.
 *
 * field     written by          read by      access
 * items[]   who prunes (one)    writer       relaxed, before count [P]
 * count     who prunes          writer       release [P], acquire [C]
 * settled   who prunes          new threads  release [S], acquire [T]
 * Invariant: a reader that is MR_PRUNE_MARKS_KEPT - 1 or more behind uses no item.
 * Checked by: tests/unit/probe/test_prune_marks.c, tests/race/test_prune.c
 */
#ifndef MR_PROBE_PRUNE_MARKS_H
#define MR_PROBE_PRUNE_MARKS_H

#include "base/atomics.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_PRUNE_MARKS_KEPT 64
/* Sites of a mark: their records fit the least room of a frame (probe/drain.h). */
#define MR_PRUNE_MARK_SITES 16

struct mr_prune_mark {
    _Atomic uint64_t ticks, ns;
    _Atomic uint32_t count;
    _Atomic uint64_t payloads[MR_PRUNE_MARK_SITES]; /* of prune records */
};

struct mr_prune_marks {
    _Atomic uint32_t count, settled;
    struct mr_prune_mark items[MR_PRUNE_MARKS_KEPT];
};

/* Payloads: the sites, each with `what` ored in. */
static inline void mr_prune_marks_add(struct mr_prune_marks *marks, uint64_t ticks_now,
                                      const uint32_t *sites, uint32_t count,
                                      uint64_t what)
{
    uint32_t number = mr_load_relaxed(&marks->count);
    struct mr_prune_mark *mark = &marks->items[number % MR_PRUNE_MARKS_KEPT];

    mr_store_relaxed(&mark->ticks, ticks_now);
    mr_store_relaxed(&mark->ns, mr_clock_monotonic_ns());
    mr_store_relaxed(&mark->count, count);
    for (uint32_t i = 0; i < count; i++)
        mr_store_relaxed(&mark->payloads[i], sites[i] | what);
    mr_store_release(&marks->count, number + 1); /* [P] */
}

static inline void mr_prune_marks_settle(struct mr_prune_marks *marks)
{
    mr_store_release(&marks->settled, mr_load_relaxed(&marks->count)); /* [S] */
}

static inline uint32_t mr_prune_marks_count(const struct mr_prune_marks *marks)
{
    return mr_load_acquire(&marks->count); /* [C] */
}

static inline bool mr_prune_marks_has(const struct mr_prune_marks *marks, uint32_t number)
{
    return mr_prune_marks_count(marks) - number < MR_PRUNE_MARKS_KEPT - 1;
}

/* In a forked child, whose streams begin anew. */
static inline void mr_prune_marks_after_fork(struct mr_prune_marks *marks)
{
    mr_store_relaxed(&marks->count, 0);
    mr_store_relaxed(&marks->settled, 0);
}

#endif
