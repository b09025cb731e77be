/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field            written by         read by          access
 * limit_ns         who sets it        helper, writer   relaxed: seen at some next look
 * stats            writer             helper, control  see probe/site_stats.c
 * seen[]           helper             helper
 * sites, marks     who has the lock   writer, threads  probe/pruned.c, probe/prune_marks.h
 *                  of probe/switch.c
 * Checked by: tests/system/prune
 */
#include "probe/prune.h"

#include "base/hash.h"
#include "probe/futex.h"
#include "probe/pruned.h"
#include "probe/registry.h"
#include "probe/sites.h"
#include "probe/switch.h"

#include <inttypes.h>
#include <string.h>

/*
 * Clock hybrid: below, most calls may take 0, as even events share a read for a pace. Others
 * do for a tick at most, and one ends within half of the calls of this length or more, which
 * then are told no shorter than they are; a site is pruned for five short calls in eight.
 */
#define COARSE_NS (UINT64_C(2) * MR_TICK_PACE_NS)
_Static_assert(MR_TICK_NS <= 2 * COARSE_NS, "a tick ends in half of the calls");
#define COUNT_BYTES (MR_PRUNED_SLOTS * sizeof(uint64_t))

static enum mr_status check(const struct mr_probe *probe, uint64_t limit_ns,
                            struct mr_error *error)
{
    if (probe->config.policy == MR_POLICY_OVERWRITE)
        return mr_error_set(error, MR_EUSAGE,
                            "prune: a flight recorder (policy overwrite) has nobody who "
                            "looks at its calls");
    if (probe->clock.mode == MR_CLOCK_MODE_HYBRID && limit_ns < COARSE_NS)
        return mr_error_set(error, MR_EUSAGE,
                            "prune: times of clock hybrid are too coarse for %" PRIu64
                            " ns: use clock tsc, or %d ns and more",
                            limit_ns, (int)COARSE_NS);
    return MR_OK;
}

static void set_except(struct mr_probe *probe)
{
    const struct mr_site_globs *globs = &probe->config.prune_except;
    struct mr_site_filter filter = {.only = globs->items, .only_count = globs->count};

    probe->prune.has_except =
        globs->count > 0 &&
        mr_site_rule_init(&probe->prune.except, &filter, true, NULL) == MR_OK;
}

void mr_prune_start(struct mr_probe *probe, void (*remark)(const char *text))
{
    uint64_t limit_ns = probe->config.prune_ns;
    struct mr_error error = MR_ERROR_NONE;

    set_except(probe);
    if (limit_ns > 0 && check(probe, limit_ns, &error) == MR_OK)
        mr_store_relaxed(&probe->prune.limit_ns, limit_ns);
    if (error.status != MR_OK)
        remark(error.text);
}

/* Numbers of the two marks that follow, + 1: from where and until where nothing is sure. */
static void note_marks(const struct mr_prune_marks *marks, const uint32_t *sites,
                       uint32_t count, bool is_pruned)
{
    uint32_t first = mr_prune_marks_count(marks) + 1;

    for (uint32_t i = 0; i < count; i++) {
        struct mr_pruned_site *site = mr_pruned_at(mr_pruned_find(sites[i]));

        if (is_pruned) {
            mr_store_relaxed(&site->since, first);
            mr_store_relaxed(&site->settled, first + 1);
            mr_store_release(&site->until, 0); /* [U] */
        } else {
            mr_store_relaxed(&site->until, first + 1);
        }
    }
}

static void note_change(struct mr_probe *probe, const uint32_t *sites, uint32_t count,
                        uint64_t ticks)
{
    uint64_t limit_ns = mr_load_relaxed(&probe->prune.limit_ns);

    for (uint32_t i = 0; i < count; i++) {
        struct mr_pruned_site *site = mr_pruned_at(mr_pruned_find(sites[i]));

        mr_store_relaxed(&site->limit_ns, limit_ns);
        mr_store_relaxed(&site->changed_ticks, ticks);
        mr_store_release(&site->changes, mr_load_relaxed(&site->changes) + 1); /* [G] */
    }
}

/* At most MR_PRUNE_MARK_SITES sites with slots; who has the lock of switches. */
static enum mr_status change(struct mr_probe *probe, const uint32_t *sites,
                             uint32_t count, bool is_pruned, bool *is_done)
{
    struct mr_prune_marks *marks = &probe->pool.shared.prunes;
    uint64_t what = is_pruned ? 0 : MR_PRUNE_ON_AGAIN;
    uint64_t ticks = mr_clock_read(probe->clock.mode);
    enum mr_status status;

    note_marks(marks, sites, count, is_pruned);
    mr_prune_marks_add(marks, ticks, sites, count, what);
    mr_switch_wait_margin(probe);
    status = mr_sites_prune(sites, count, is_pruned, is_done);
    mr_prune_marks_add(marks, mr_clock_read(probe->clock.mode), sites, count,
                       what | MR_PRUNE_SETTLED);
    mr_prune_marks_settle(marks);
    note_change(probe, sites, count, ticks);
    mr_ring_wake_writer(&probe->pool.shared);
    return status;
}

/* What could not be switched whole is recorded again, and not tried again. */
static void take_back_failed(struct mr_probe *probe, const uint32_t *sites,
                             uint32_t count, const bool *is_done)
{
    uint32_t failed[MR_PRUNE_MARK_SITES], failed_count = 0;
    bool ignored[MR_PRUNE_MARK_SITES];

    for (uint32_t i = 0; i < count; i++)
        if (!is_done[i]) {
            mr_store_relaxed(&mr_pruned_at(mr_pruned_find(sites[i]))->is_refused, 1);
            failed[failed_count++] = sites[i];
        }
    if (failed_count > 0)
        (void)change(probe, failed, failed_count, false, ignored);
}

/* Rings that have come since get theirs with the next look. */
static void give_counts(struct mr_probe *probe)
{
    struct mr_ring *ring = mr_load_acquire(&probe->pool.rings);

    if (mr_load_relaxed(&mr_pruned.count) == 0)
        return;
    for (; ring; ring = ring->next)
        (void)mr_pool_counts(&probe->pool, ring, COUNT_BYTES);
}

/* 0: there is none. A module that is loaded where another was is another. */
static uint64_t module_of(const struct mr_probe *probe, uint32_t site)
{
    struct mr_module module;

    if (!mr_modules_find(mr_windows_address(&probe->windows, site), &module))
        return 0;
    return mr_hash64_seed(mr_span_of_text(module.path), module.address);
}

static void prune(struct mr_probe *probe, const uint32_t *sites, uint32_t count)
{
    bool is_done[MR_PRUNE_MARK_SITES];
    uint32_t with_slot[MR_PRUNE_MARK_SITES], number = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = mr_pruned_add(sites[i]);

        if (slot == MR_PRUNED_NONE)
            continue;
        mr_pruned_at(slot)->module = module_of(probe, sites[i]);
        with_slot[number++] = sites[i];
    }
    if (number == 0)
        return;
    give_counts(probe);
    if (change(probe, with_slot, number, true, is_done) == MR_OK)
        take_back_failed(probe, with_slot, number, is_done);
    /* Whoever called them may have nothing below it now. */
    mr_site_stats_reset(&probe->prune.stats);
}

static bool is_worth_it(const struct mr_site_stat *stat, uint64_t calls)
{
    uint32_t slot = mr_pruned_find(stat->site);

    if (stat->calls < MR_PRUNE_CALLS_MIN ||
        (uint64_t)stat->calls * MR_PRUNE_SHARE < calls ||
        (uint64_t)stat->brief * 8 <= (uint64_t)stat->calls * 5)
        return false;
    return slot == MR_PRUNED_NONE || !(mr_load_relaxed(&mr_pruned_at(slot)->is_pruned) ||
                                       mr_load_relaxed(&mr_pruned_at(slot)->is_refused));
}

static bool is_excepted(struct mr_probe *probe, uint32_t site)
{
    uint64_t address = mr_windows_address(&probe->windows, site);
    struct mr_symbols symbols;
    struct mr_module module;
    bool is_excepted;

    if (!probe->prune.has_except)
        return false;
    if (!mr_modules_find(address, &module) || mr_symbols_open(&symbols, &module) != MR_OK)
        return true; /* it may be one of them */
    is_excepted = mr_site_rule_matches(&probe->prune.except, &symbols, address, 0);
    mr_symbols_close(&symbols);
    return is_excepted;
}

static bool may_prune(struct mr_probe *probe, uint32_t site)
{
    uint32_t slot;

    if (mr_sites_may_prune(site) && !is_excepted(probe, site))
        return true;
    slot = mr_pruned_add(site); /* so that it is not looked up again */
    if (slot != MR_PRUNED_NONE)
        mr_store_relaxed(&mr_pruned_at(slot)->is_refused, 1);
    return false;
}

struct choice {
    uint32_t count;
    struct mr_site_stat items[MR_PRUNE_MARK_SITES]; /* most calls first */
};

static void choose(struct choice *choice, const struct mr_site_stat *stat)
{
    uint32_t at = choice->count;

    if (at == MR_PRUNE_MARK_SITES && choice->items[--at].calls >= stat->calls)
        return;
    for (; at > 0 && choice->items[at - 1].calls < stat->calls; at--)
        choice->items[at] = choice->items[at - 1];
    choice->items[at] = *stat;
    choice->count += choice->count < MR_PRUNE_MARK_SITES;
}

static bool was_seen(const struct mr_prune *state, uint32_t site)
{
    for (uint32_t i = 0; i < state->seen_count; i++)
        if (state->seen[i] == site)
            return true;
    return false;
}

static void find_worst(struct mr_probe *probe, struct choice *choice)
{
    const struct mr_site_stats *stats = &probe->prune.stats;
    struct mr_site_stat stat;
    uint64_t calls, cheap;

    choice->count = 0;
    if (!mr_site_stats_total(stats, &calls, &cheap))
        return;
    for (uint32_t i = 0; i < MR_SITE_STATS_SLOTS; i++)
        if (mr_site_stats_read(stats, i, &stat) && is_worth_it(&stat, calls))
            choose(choice, &stat);
}

/* What this look and the last one found. */
static uint32_t confirm(struct mr_probe *probe, const struct choice *choice,
                        uint32_t *sites)
{
    struct mr_prune *state = &probe->prune;
    uint32_t count = 0, seen = 0;

    for (uint32_t i = 0; i < choice->count; i++)
        if (was_seen(state, choice->items[i].site) &&
            may_prune(probe, choice->items[i].site))
            sites[count++] = choice->items[i].site;
    for (uint32_t i = 0; i < choice->count; i++)
        state->seen[seen++] = choice->items[i].site;
    state->seen_count = seen;
    return count;
}

static enum mr_status record_again(struct mr_probe *probe, const uint32_t *sites,
                                   uint32_t count)
{
    bool is_done[MR_PRUNE_MARK_SITES];
    enum mr_status status = change(probe, sites, count, false, is_done);

    for (uint32_t i = 0; i < count && status == MR_OK; i++)
        status = is_done[i] ? MR_OK : MR_EIO;
    return status;
}

/* A function of another module has the number, or this one's code is new: it is not pruned. */
static bool is_another(const struct mr_probe *probe, uint32_t slot)
{
    uint32_t site = mr_load_relaxed(&mr_pruned.sites[slot]);
    uint64_t module = module_of(probe, site);

    return module != 0 &&
           (module != mr_pruned_at(slot)->module || !mr_sites_is_pruned(site));
}

/* Modules came or went. Who has the lock of switches. */
static void take_back_gone(struct mr_probe *probe)
{
    for (uint32_t i = 0; i < mr_load_relaxed(&mr_pruned.count); i++) {
        uint32_t slot = mr_pruned_slot(i), site = mr_load_relaxed(&mr_pruned.sites[slot]);

        if (mr_load_relaxed(&mr_pruned_at(slot)->is_pruned) && is_another(probe, slot))
            (void)record_again(probe, &site, 1);
    }
}

static void look_for_gone(struct mr_probe *probe)
{
    uint64_t generation = mr_modules_generation();

    if (generation == probe->prune.generation || !mr_switch_lock(probe, 0))
        return;
    probe->prune.generation = generation;
    take_back_gone(probe);
    mr_switch_unlock(probe);
}

void mr_prune_look(struct mr_probe *probe)
{
    uint32_t sites[MR_PRUNE_MARK_SITES], count;
    struct choice choice;

    give_counts(probe);
    if (mr_load_relaxed(&mr_pruned.count) > 0)
        look_for_gone(probe);
    if (mr_load_relaxed(&probe->prune.limit_ns) == 0 || !mr_load_relaxed(&probe->is_on))
        return;
    find_worst(probe, &choice);
    count = confirm(probe, &choice, sites);
    /* A switch is under way: later. Asked for again under the lock: it may be off now. */
    if (count == 0 || !mr_switch_lock(probe, 0))
        return;
    if (mr_load_relaxed(&probe->prune.limit_ns) != 0)
        prune(probe, sites, count);
    mr_switch_unlock(probe);
}

/* Who has the lock of switches. The first failure, after all were tried. */
static enum mr_status record_all_again(struct mr_probe *probe)
{
    uint32_t sites[MR_PRUNE_MARK_SITES], count = 0;
    uint32_t used = mr_load_relaxed(&mr_pruned.count);
    enum mr_status first = MR_OK;

    for (uint32_t i = 0; i < used; i++) {
        uint32_t slot = mr_pruned_slot(i);

        if (mr_load_relaxed(&mr_pruned_at(slot)->is_pruned))
            sites[count++] = mr_load_relaxed(&mr_pruned.sites[slot]);
        if (count > 0 && (count == MR_PRUNE_MARK_SITES || i + 1 == used)) {
            enum mr_status status = record_again(probe, sites, count);

            first = first == MR_OK ? status : first;
            count = 0;
        }
    }
    return first;
}

enum mr_status mr_prune_set(struct mr_probe *probe, uint64_t limit_ns,
                            struct mr_error *error)
{
    enum mr_status status = limit_ns > 0 ? check(probe, limit_ns, error) : MR_OK;

    if (status != MR_OK)
        return status;
    if (!mr_switch_lock(probe, MR_SWITCH_LOCK_NS))
        return mr_error_set(error, MR_ETIMEOUT, "a switch does not end");
    mr_store_relaxed(&probe->prune.limit_ns, limit_ns);
    if (limit_ns == 0 && mr_load_relaxed(&mr_pruned.count) > 0)
        status = record_all_again(probe);
    mr_switch_unlock(probe);
    if (limit_ns == 0)
        mr_site_stats_reset(&probe->prune.stats);
    if (status != MR_OK)
        return mr_error_set(error, status, "some functions stay pruned: %s",
                            status == MR_EIO ? "the system lets nobody write to their "
                                               "code, or it is not what it was"
                                             : "out of memory");
    return MR_OK;
}

void mr_prune_after_fork(struct mr_probe *probe)
{
    memset(&probe->prune.stats, 0, sizeof(probe->prune.stats));
    probe->prune.seen_count = 0;
    mr_pruned_after_fork(&probe->pool);
}
