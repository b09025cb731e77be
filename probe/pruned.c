/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field              written by       read by          access
 * sites[], order[]   who prunes       threads, writer  relaxed: a slot is set once
 * count              who prunes       all              release [A], acquire [B]; threads
 *                                                      relaxed: only whether it is 0
 * alone[]            threads          writer, stats    relaxed: sums
 * counts of a ring   its thread       writer, stats    one instruction; relaxed loads
 * since, settled,    who prunes       writer           relaxed, before the mark that makes
 *  is_*                                                them known [P] of prune_marks.h
 * until              who prunes       writer           the same; release, acquire [U]: none
 *                                                      is seen with the `since` before it
 * changes            who prunes       writer           release [G], acquire [H]
 * dropped            writer           stats            relaxed
 * told_*             writer           writer
 * Invariant: counts only grow, but in a forked child, where `inherited` is taken off.
 */
#include "probe/pruned.h"

MR_HIDDEN struct mr_pruned mr_pruned;

static struct mr_pruned_site details[MR_PRUNED_SLOTS];
static _Atomic uint32_t order[MR_PRUNED_MAX]; /* slots */

static uint32_t used(void)
{
    return mr_load_acquire(&mr_pruned.count); /* [B] */
}

uint32_t mr_pruned_slot(uint32_t i)
{
    return mr_load_relaxed(&order[i]);
}

uint32_t mr_pruned_add(uint32_t site)
{
    uint32_t count = mr_load_relaxed(&mr_pruned.count), slot = mr_pruned_find(site);

    if (slot != MR_PRUNED_NONE || count == MR_PRUNED_MAX)
        return slot;
    slot = (site * MR_PRUNED_HASH) >> (32 - MR_PRUNED_SLOTS_LOG2);
    while (mr_load_relaxed(&mr_pruned.sites[slot]) != 0)
        slot = (slot + 1) & (MR_PRUNED_SLOTS - 1);
    mr_store_relaxed(&mr_pruned.sites[slot], site);
    mr_store_relaxed(&order[count], slot);
    mr_store_release(&mr_pruned.count, count + 1); /* [A] */
    return slot;
}

struct mr_pruned_site *mr_pruned_at(uint32_t slot)
{
    return &details[slot];
}

static uint64_t counted(const struct mr_pool *pool, uint32_t slot)
{
    const struct mr_ring *ring = mr_load_acquire(&pool->rings);
    uint64_t calls = mr_load_relaxed(&mr_pruned.alone[slot]);

    for (; ring; ring = ring->next) {
        uint64_t *counts = mr_load_acquire(&ring->pruned); /* [N] */

        if (counts)
            calls += mr_arch_count(&counts[slot]);
    }
    return calls;
}

uint64_t mr_pruned_calls(const struct mr_pool *pool, uint32_t slot)
{
    return counted(pool, slot) + mr_load_relaxed(&details[slot].dropped) -
           details[slot].inherited;
}

uint32_t mr_pruned_now(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < used(); i++)
        count += mr_load_relaxed(&details[mr_pruned_slot(i)].is_pruned);
    return count;
}

void mr_pruned_after_fork(const struct mr_pool *pool)
{
    for (uint32_t i = 0; i < used(); i++) {
        struct mr_pruned_site *site = &details[mr_pruned_slot(i)];

        mr_store_relaxed(&site->dropped, 0);
        site->inherited = counted(pool, mr_pruned_slot(i));
        site->told_calls = site->told_changes = 0;
        mr_store_relaxed(&site->since, 0);
        mr_store_relaxed(&site->settled, 0);
        mr_store_relaxed(&site->until, 0);
    }
}
