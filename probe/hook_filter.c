/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field                written by                  read by  access
 * mr_hook_state.clock  who switches recording      stubs,   release store [P] of
 *                                                  spans    probe/probe.c; relaxed loads
 * mode                 who applies filters         both     sequentially consistent
 *                                                  writers
 * mr_hook_state        both of them, from clock    hooks    release store [P]; relaxed
 *  .hook_clock         and mode                             load: depends on nothing but
 *                                                           what it points to
 * exceptions           who applies filters         hooks    release, acquire; once set,
 *                                                           never another
 * exceptions[]         who applies filters         hooks    relaxed bytes: a bit is seen a
 *                                                           little earlier or later
 * Invariant: what was stored to `hook_clock` last was computed from the last clock and
 * mode: who stored an older value looks again and stores the newer one.
 */
#include "probe/hook_filter.h"

#include "probe/counters.h"
#include "probe/hook.h"
#include "probe/hook_sites.h"
#include "probe/pruned.h"
#include "probe/registry.h"

#include <string.h>
#include <sys/mman.h>

#define MAP_BYTES (MR_SITE_LIMIT / 8)

enum mode {
    MODE_ALL,
    MODE_NONE,
    MODE_SOME,
};

/* Here and not with the hooks: a static program without hooks links none. */
MR_HIDDEN struct mr_hook_state mr_hook_state;

static _Atomic uint32_t mode;

/* Under the lock: whether any module had hooks when the loader last changed something. */
static bool has_hooks;
static uint64_t seen_generation;

static uint32_t wanted(void)
{
    uint32_t clock = mr_load_seq_cst(&mr_hook_state.clock);

    if (clock == 0 || mr_load_seq_cst(&mode) == MODE_NONE)
        return 0;
    if (mr_hook_state.counted & MR_COUNTED_FUNCTIONS)
        clock |= MR_HOOK_COUNTED;
    return mr_load_seq_cst(&mode) == MODE_SOME ? clock | MR_HOOK_FILTERED : clock;
}

static void update(void)
{
    uint32_t functions;

    do {
        functions = wanted();
        mr_store_seq_cst(&mr_hook_state.hook_clock, functions); /* [P] */
    } while (functions != wanted());
}

void mr_hook_set_clock(uint32_t clock)
{
    mr_store_seq_cst(&mr_hook_state.clock, clock); /* [P] */
    update();
}

static void set_mode(enum mode next)
{
    mr_store_seq_cst(&mode, next);
    update();
}

/* Calls of hooks are there before one records, and go when none does any more. */
static void settle_mode(enum mode next)
{
    if (next != MODE_NONE)
        mr_hook_sites_switch(true);
    set_mode(next);
    if (next == MODE_NONE)
        mr_hook_sites_switch(false);
}

/* All bits 0, which also gives their pages back. */
static enum mr_status clear_map(void)
{
    void *there =
        mr_load_relaxed(&mr_hook_state.exceptions); /* once set, never another */
    void *memory = mmap(
        there, MAP_BYTES, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (there ? MAP_FIXED : 0), -1, 0);

    if (memory == MAP_FAILED)
        return MR_ENOMEM;
    mr_store_release(&mr_hook_state.exceptions, memory);
    return MR_OK;
}

static void set_exception(uint32_t site, bool is_exception)
{
    _Atomic uint8_t *byte = mr_load_relaxed(&mr_hook_state.exceptions) + site / 8;
    uint8_t bit = (uint8_t)(1u << site % 8), there = mr_load_relaxed(byte);

    if (((there & bit) != 0) != is_exception)
        mr_store_relaxed(byte, there ^ bit);
}

static bool is_pruned(uint32_t site)
{
    uint32_t slot =
        mr_load_relaxed(&mr_pruned.count) ? mr_pruned_find(site) : MR_PRUNED_NONE;

    return slot != MR_PRUNED_NONE && mr_load_relaxed(&mr_pruned_at(slot)->is_pruned);
}

/* Functions with hooks that are, or were, pruned: their bits, where they have one. */
struct pruned {
    uint32_t now, before;
};

/* `is_default_on`: of the map. Those that are not pruned any more are as it says. */
static struct pruned set_pruned(bool is_default_on)
{
    struct pruned found = {0, 0};

    for (uint32_t i = 0; i < mr_load_acquire(&mr_pruned.count); i++) {
        const struct mr_pruned_site *told = mr_pruned_at(mr_pruned_slot(i));
        uint32_t site = mr_load_relaxed(&mr_pruned.sites[mr_pruned_slot(i)]);

        if (!mr_load_relaxed(&told->is_hooked))
            continue;
        set_exception(site, is_default_on && mr_load_relaxed(&told->is_pruned));
        if (mr_load_relaxed(&told->is_pruned))
            found.now++;
        else
            found.before++;
    }
    return found;
}

static bool is_hooked_and_pruned(uint32_t i)
{
    const struct mr_pruned_site *told = mr_pruned_at(mr_pruned_slot(i));

    return mr_load_relaxed(&told->is_hooked) && mr_load_relaxed(&told->is_pruned);
}

/* Of pruned functions alone, also of those without a name. */
static void put_pruned(bool is_default_on)
{
    for (uint32_t i = 0; i < mr_load_acquire(&mr_pruned.count); i++)
        if (is_hooked_and_pruned(i))
            set_exception(mr_load_relaxed(&mr_pruned.sites[mr_pruned_slot(i)]),
                          is_default_on);
}

static bool has_pruned(void)
{
    for (uint32_t i = 0; i < mr_load_acquire(&mr_pruned.count); i++)
        if (is_hooked_and_pruned(i))
            return true;
    return false;
}

/* All functions record but those that are pruned. The map is not looked at now. */
static enum mr_status choose_all_but_pruned(void)
{
    enum mr_status status = clear_map();

    if (status != MR_OK)
        return status;
    mr_store_relaxed(&mr_hook_state.is_default_on, 1);
    (void)set_pruned(true);
    settle_mode(MODE_SOME);
    return MR_OK;
}

struct work {
    const struct mr_windows *windows;
    struct mr_site_rule *rules;
    uint32_t count;
    struct mr_sites_result *result;
};

static void apply_to_function(const struct work *work, const struct mr_symbols *symbols,
                              const struct mr_symbol *symbol)
{
    uint32_t site = mr_windows_site(work->windows, symbol->address);
    bool is_default = work->rules[0].is_on, is_on = is_default;

    if (site == 0)
        return;
    for (uint32_t i = 1; i < work->count; i++)
        if (mr_site_rule_matches(&work->rules[i], symbols, symbol->address,
                                 symbol->size)) {
            is_on = work->rules[i].is_on;
            work->result->hooked += i == work->count - 1;
        }
    if (is_pruned(site))
        is_on = false;
    set_exception(site, is_on != is_default);
}

/* The library of the probe itself names the hooks because it has them. */
static bool is_own_library(const struct mr_module *module)
{
    uint64_t here = (uintptr_t)mr_hook_filter_apply;

    return !module->is_executable && here - module->address < module->size;
}

static void apply_to_module(const struct work *work, const struct mr_module *module)
{
    struct mr_symbols symbols;

    if (is_own_library(module) || mr_symbols_open(&symbols, module) != MR_OK)
        return;
    has_hooks |= symbols.has_hooks;
    for (uint32_t i = 0; i < symbols.count && symbols.has_hooks; i++)
        if (i == 0 || symbols.items[i].address != symbols.items[i - 1].address)
            apply_to_function(work, &symbols, &symbols.items[i]);
    mr_symbols_close(&symbols);
}

static enum mr_status apply_to_modules(const struct work *work)
{
    uint64_t generation = mr_modules_generation();
    struct mr_module_table *table;

    if (generation == seen_generation && !has_hooks)
        return MR_OK;
    table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if ((void *)table == MAP_FAILED)
        return MR_ENOMEM;
    seen_generation = generation;
    has_hooks = false;
    mr_modules_scan(table);
    for (uint32_t i = 0; i < table->count; i++)
        apply_to_module(work, &table->items[i]);
    (void)munmap(table, sizeof(*table));
    return MR_OK;
}

enum mr_status mr_hook_filter_apply(const struct mr_windows *windows,
                                    struct mr_site_rule *rules, uint32_t count,
                                    struct mr_sites_result *result)
{
    struct work work = {
        .windows = windows, .rules = rules, .count = count, .result = result};
    enum mr_status status = MR_OK;

    if (count <= 1 && (count == 0 || !rules[0].is_on || !has_pruned())) {
        settle_mode(count == 0 || rules[0].is_on ? MODE_ALL : MODE_NONE);
        return MR_OK;
    }
    if (count == 1) {
        set_mode(MODE_NONE);
        return choose_all_but_pruned();
    }
    if (!mr_load_relaxed(&mr_hook_state.exceptions) ||
        mr_load_relaxed(&mr_hook_state.is_default_on) != rules[0].is_on) {
        set_mode(MODE_NONE);
        status = clear_map();
    }
    if (status != MR_OK)
        return status;
    mr_store_relaxed(&mr_hook_state.is_default_on, rules[0].is_on);
    status = apply_to_modules(&work);
    put_pruned(rules[0].is_on);
    settle_mode(MODE_SOME);
    return status;
}

enum mr_status mr_hook_filter_prune(const struct mr_windows *windows,
                                    struct mr_site_rule *rules, uint32_t count)
{
    struct mr_sites_result ignored = {0};
    struct work work = {
        .windows = windows, .rules = rules, .count = count, .result = &ignored};
    struct pruned found;

    if (count == 0 || (count == 1 && !rules[0].is_on))
        return MR_OK; /* none records: the bits are set when some do */
    if (mr_load_relaxed(&mode) != MODE_SOME)
        return has_pruned() ? choose_all_but_pruned() : MR_OK;
    found = set_pruned(rules[0].is_on);
    if (count == 1 && found.now == 0)
        set_mode(MODE_ALL);
    if (count > 1 && found.before > 0)
        return apply_to_modules(&work);
    return MR_OK;
}
