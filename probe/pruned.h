/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sites that are pruned: called often, with little in them, and so recorded no more
 * (probe/prune.h says which). Their calls are still counted, each one:
 *
 *     patchable   exits are off; the entry's thunk goes to mr_site_stub_count
 *     hooks       a bit says that they do not record; mr_pruned_count() is called instead
 *
 * A thread counts in memory of its ring, one instruction a call, so a signal handler
 * counts too; who has no such memory adds with a lock. What is recorded all the same,
 * because a thread was under way while the code was switched, the writer takes out of the
 * stream behind the mark and counts (probe/drain_prune.c). So
 *
 *     calls = enters in the streams + mr_pruned_calls()
 *
 * A site keeps its slot for the life of the process; recorded again, its count stands.
 *
 *     slot = mr_pruned_add(site);                       // MR_PRUNED_NONE: no room
 *     mr_pruned_count(&mr_thread_self, site);           // in a hook
 *     calls = mr_pruned_calls(&probe->pool, slot);
 *
 * add: who prunes, one at a time. count: any thread, handlers; wait-free. The rest: any.
 */
#ifndef MR_PROBE_PRUNED_H
#define MR_PROBE_PRUNED_H

#include "probe/pool.h"
#include "probe/ring.h"

#define MR_PRUNED_SLOTS_LOG2 11
#define MR_PRUNED_SLOTS (1u << MR_PRUNED_SLOTS_LOG2)
#define MR_PRUNED_MAX (MR_PRUNED_SLOTS / 2)
#define MR_PRUNED_NONE UINT32_MAX
#define MR_PRUNED_HASH UINT32_C(0x9e3779b1)

/* What threads look at. The assembler knows these by offset: stub.h. */
struct mr_pruned {
    _Atomic uint32_t count;                  /* sites in it; 0: nobody looks further */
    _Atomic uint32_t sites[MR_PRUNED_SLOTS]; /* 0: free */
    _Atomic uint64_t alone[MR_PRUNED_SLOTS]; /* calls of threads without own counts */
};

MR_HIDDEN extern struct mr_pruned mr_pruned;

/*
 * Numbers of the marks (probe/prune_marks.h) + 1: a stream that was told `since` marks, and
 * not yet `until`, holds no enter of the site; told `settled`, no exit either. 0: none.
 */
struct mr_pruned_site {
    _Atomic uint32_t since, settled, until;
    _Atomic uint32_t is_pruned, is_hooked, is_refused;
    _Atomic uint32_t changes;       /* of is_pruned, which is released with it */
    _Atomic uint64_t changed_ticks; /* the time of the mark that is_pruned is of */
    _Atomic uint64_t limit_ns;
    _Atomic uint64_t dropped; /* taken out of streams; the writer's */
    uint64_t module;          /* which it was of; who prunes */
    uint64_t inherited;       /* counted by the process that we are a copy of */
    /* The writer's: what it has told (probe/announce_pruned.c). */
    uint64_t told_calls;
    uint32_t told_changes;
};

/* The slot of a site, or MR_PRUNED_NONE. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint32_t mr_pruned_find(uint32_t site)
{
    uint32_t at = (site * MR_PRUNED_HASH) >> (32 - MR_PRUNED_SLOTS_LOG2);
    uint32_t there;

    /* Relaxed: a slot is set once; who does not see it yet records or counts nothing. */
    while ((there = mr_load_relaxed(&mr_pruned.sites[at])) != site) {
        if (there == 0)
            return MR_PRUNED_NONE;
        at = (at + 1) & (MR_PRUNED_SLOTS - 1);
    }
    return at;
}

/* The hooks' rare way: the function does not record. */
static inline MR_NO_INSTRUMENT void mr_pruned_count(struct mr_thread *thread,
                                                    uint32_t site)
{
    uint32_t slot = mr_pruned_find(site);
    uint64_t *counts = NULL;

    if (slot == MR_PRUNED_NONE || thread->flags & MR_THREAD_OWN)
        return;
    if (thread->ring)
        counts =
            mr_load_acquire(&thread->ring->pruned); /* [N] pairs with [M] in pool.c */
    if (counts)
        (void)mr_arch_reserve(&counts[slot]);
    else
        (void)mr_add_relaxed(&mr_pruned.alone[slot], 1);
}

/* In hooks: an enter that is not recorded; mostly nothing is pruned. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_pruned_enter(struct mr_thread *thread,
                                                              uint64_t bits)
{
    if (mr_load_relaxed(&mr_pruned.count) && !(bits & MR_WORD_EXIT))
        mr_pruned_count(thread, mr_word_site(bits));
}

/* The slot of the i-th of mr_pruned.count. */
uint32_t mr_pruned_slot(uint32_t i);
/* Its slot, made where there is none. MR_PRUNED_NONE: MR_PRUNED_MAX there are. */
uint32_t mr_pruned_add(uint32_t site);
struct mr_pruned_site *mr_pruned_at(uint32_t slot);
/* Calls that were counted so far, those taken out of streams among them. */
uint64_t mr_pruned_calls(const struct mr_pool *pool, uint32_t slot);
/* Sites that are pruned now. */
uint32_t mr_pruned_now(void);
/* In a forked child, with the code as it was: counts begin anew. */
void mr_pruned_after_fork(const struct mr_pool *pool);

#endif
