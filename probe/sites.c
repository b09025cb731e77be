/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field        written by                      read by              access
 * generation   constructors and destructors    any thread           release add [G], acquire
 *              of modules                                           load [L]
 * registry     constructors and destructors    the same, and any    under lock
 *              of modules, mr_sites_switch()   thread that asks
 * Code itself is written under the lock, too, and read by every thread that runs it:
 * probe/patch.h.
 *
 * Invariant: a module in the registry that has not ended is loaded, as its destructor
 * waits for the lock; so a switch needs no lock of the loader's. A module that has ended
 * keeps its stubs, for threads may still run its code at the end of the program; they are
 * given back when another module comes and the loader does not know the old one any more,
 * so the memory is bounded by what was ever loaded at once.
 * Fork: the lock is held over it, so a child never finds it taken.
 * Checked by: tests/system/patch
 */
#include "probe/sites.h"

#include "probe/futex.h"
#include "probe/hook_filter.h"
#include "probe/hook_sites.h"
#include "probe/include/millrace/probe.h"
#include "probe/pruned.h"
#include "probe/registry.h"
#include "probe/site_module.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Modules that come before the probe has decided: those of a static program. */
#define EARLY_MAX 8

/* The part of the probe's one registry that exists before the probe does. */
static struct {
    pthread_mutex_t lock;
    uint64_t signals; /* of who holds the lock, before it did */
    enum mr_sites_mode mode;
    const struct mr_windows *windows;
    struct mr_site_module early[EARLY_MAX];
    uint32_t early_count;
    struct mr_site_state *states[MR_SITES_MODULES_MAX];
    uint32_t count;
    uint32_t refused;
    char refused_why[MR_ERROR_TEXT_SIZE];
    uint64_t patched, foreign;  /* of modules that are gone */
    struct mr_site_rule *rules; /* in order; mapped, with room for one more */
    uint32_t rule_count;
    bool is_as_started; /* the last rule is the environment's */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* [G] before a module's table is given back: pairs with [L], of who kept a view of it. */
static _Atomic uint32_t generation;

/* Signals are blocked: a handler that forks would wait for its own thread. */
static void lock(void)
{
    uint64_t mask = mr_signals_block();

    (void)pthread_mutex_lock(&registry.lock);
    registry.signals = mask;
}

static void unlock(void)
{
    uint64_t mask = registry.signals;

    (void)pthread_mutex_unlock(&registry.lock);
    mr_signals_restore(mask);
}

static void refuse(const struct mr_error *error)
{
    registry.refused++;
    (void)snprintf(registry.refused_why, sizeof(registry.refused_why), "%s", error->text);
}

static bool is_gone(const struct mr_site_state *state, const struct mr_module *next)
{
    struct mr_module found;

    if (!state->is_ended)
        return false;
    if (state->module.address < next->address + next->size &&
        next->address < state->module.address + state->module.size)
        return true;
    return !mr_modules_find(state->key, &found) || found.address != state->module.address;
}

static void sweep(const struct mr_module *next)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < registry.count; i++) {
        struct mr_site_state *state = registry.states[i];

        if (is_gone(state, next)) {
            (void)mr_add_acq_rel(&generation, 1); /* [G] */
            registry.patched += state->patched;
            registry.foreign += state->foreign;
            mr_site_module_close(state);
        } else {
            registry.states[kept++] = state;
        }
    }
    registry.count = kept;
}

static void apply_rules(struct mr_site_state *state)
{
    struct mr_sites_result result = {0};

    for (uint32_t i = 0; i < registry.rule_count; i++)
        (void)mr_site_module_apply(state, &registry.rules[i], &result);
}

static void take(const struct mr_site_module *told)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_module module;
    struct mr_site_state *state;

    if (registry.mode == MR_SITES_LEAVE)
        return;
    if (registry.mode == MR_SITES_NEUTRAL) {
        (void)mr_site_module_neutralise(told, &error);
        return;
    }
    if (mr_modules_find(told->entry, &module))
        sweep(&module);
    if (registry.count == MR_SITES_MODULES_MAX)
        (void)mr_error_set(&error, MR_ELIMIT, "more than %d modules with sites",
                           MR_SITES_MODULES_MAX);
    else if (mr_site_module_open(&state, told, registry.windows, &error) == MR_OK) {
        registry.states[registry.count++] = state;
        (void)mr_add_acq_rel(&generation, 1);
        apply_rules(state);
    }
    if (error.status != MR_OK)
        refuse(&error);
}

void mr_probe_module_add(const struct mr_site_module *told)
{
    struct mr_probe *probe = mr_probe;
    int saved_errno = errno;

    lock();
    if (registry.mode != MR_SITES_WAIT)
        take(told);
    else if (registry.early_count < EARLY_MAX)
        registry.early[registry.early_count++] = *told;
    unlock();
    /* What runs in it has names from its first event on. */
    if (probe && mr_load_relaxed(&probe->is_running) &&
        !(mr_thread_self.flags & MR_THREAD_OWN))
        (void)mr_changes_look(probe, true);
    errno = saved_errno;
}

void mr_probe_module_remove(const struct mr_site_module *told)
{
    lock();
    for (uint32_t i = 0; i < registry.count; i++)
        if (registry.states[i]->key == told->entry)
            registry.states[i]->is_ended = true;
    (void)mr_add_acq_rel(&generation, 1); /* [G] */
    unlock();
}

static enum mr_status map_rules(void)
{
    void *memory = mmap(NULL, (MR_SITES_RULES_MAX + 1) * sizeof(struct mr_site_rule),
                        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return MR_ENOMEM;
    registry.rules = memory;
    return MR_OK;
}

/* An earlier rule of the same functions has no effect behind a later one. */
static void forget_same(uint32_t last)
{
    for (uint32_t i = 0; i < last; i++)
        if (mr_site_rule_is_same(&registry.rules[i], &registry.rules[last])) {
            memmove(&registry.rules[i], &registry.rules[i + 1],
                    (last - i) * sizeof(*registry.rules));
            registry.rule_count--;
            return;
        }
}

/* What all functions are in makes what was before it meaningless. */
static enum mr_status add_rule(const struct mr_site_filter *filter, bool is_on,
                               struct mr_error *error)
{
    enum mr_status status;
    uint32_t at;

    if (!registry.rules && map_rules() != MR_OK)
        return mr_error_set(error, MR_ENOMEM, "out of memory");
    if (filter->only_count + filter->except_count == 0 && filter->min_size == 0)
        registry.rule_count = 0;
    at = registry.rule_count;
    status = mr_site_rule_init(&registry.rules[at], filter, is_on, error);
    if (status != MR_OK)
        return status;
    registry.rule_count++;
    forget_same(at);
    if (registry.rule_count <= MR_SITES_RULES_MAX)
        return MR_OK;
    registry.rule_count--;
    return mr_error_set(error, MR_ELIMIT,
                        "%d filters already: switch all functions on or off first",
                        MR_SITES_RULES_MAX);
}

static enum mr_status switch_modules(struct mr_site_rule *rule,
                                     struct mr_sites_result *result,
                                     struct mr_error *error)
{
    enum mr_status status = MR_OK;
    const char *unmatched;
    uint32_t at = 0;

    for (uint32_t i = 0; i < registry.count; i++)
        if (!registry.states[i]->is_ended &&
            mr_site_module_apply(registry.states[i], rule, result) != MR_OK)
            status = mr_error_set(error, MR_EIO,
                                  "%s: the system lets nobody write to "
                                  "code",
                                  registry.states[i]->module.path);
    unmatched = mr_site_rule_unmatched(rule, &at);
    if (unmatched)
        (void)snprintf(result->unmatched, sizeof(result->unmatched), "%s", unmatched);
    return status;
}

static enum mr_status apply_to_hooks(struct mr_sites_result *result,
                                     struct mr_error *error)
{
    enum mr_status status = mr_hook_filter_apply(registry.windows, registry.rules,
                                                 registry.rule_count, result);

    if (status != MR_OK)
        return mr_error_set(error, status,
                            "no memory to choose among functions with hooks");
    return MR_OK;
}

void mr_sites_modules_changed(void)
{
    struct mr_sites_result result = {0};

    lock();
    if (registry.rule_count > 0)
        (void)apply_to_hooks(&result, NULL);
    unlock();
}

enum mr_status mr_sites_switch(const struct mr_site_filter *filter, bool is_on,
                               struct mr_sites_result *result, struct mr_error *error)
{
    struct mr_sites_result counted = {0};
    struct mr_site_rule *rule = NULL;
    enum mr_status status;

    lock();
    if (registry.mode < MR_SITES_OFF)
        status = mr_error_set(error, MR_EUSAGE, "the program is not traced");
    else
        status = add_rule(filter, is_on, error);
    if (status == MR_OK) {
        registry.is_as_started = false;
        status = apply_to_hooks(&counted, error);
        rule = &registry.rules[registry.rule_count - 1];
    }
    if (rule && switch_modules(rule, &counted, error) != MR_OK)
        status = MR_EIO;
    unlock();
    if (result)
        *result = counted;
    return status;
}

/* NULL: it has hooks, or is of a module that has gone. */
static struct mr_site_function *find_function(uint32_t site, struct mr_site_state **state)
{
    uint64_t address = mr_windows_address(registry.windows, site);

    for (uint32_t i = 0; i < registry.count; i++) {
        const struct mr_module *module = &registry.states[i]->module;

        *state = registry.states[i];
        if (!(*state)->is_ended && address - module->address < module->size)
            return mr_site_module_find(*state, address);
    }
    return NULL;
}

bool mr_sites_may_prune(uint32_t site)
{
    const struct mr_site_function *function;
    struct mr_site_state *state;
    bool may_prune;

    lock();
    function = registry.mode >= MR_SITES_OFF ? find_function(site, &state) : NULL;
    may_prune = registry.mode >= MR_SITES_OFF && !(function && function->is_always);
    unlock();
    return may_prune;
}

bool mr_sites_is_pruned(uint32_t site)
{
    const struct mr_site_function *function;
    struct mr_site_state *state;
    bool is_pruned;

    lock();
    function = find_function(site, &state);
    is_pruned = !function || function->is_pruned;
    unlock();
    return is_pruned;
}

static bool prune_patchable(uint32_t site, bool is_pruned, bool *is_done)
{
    struct mr_site_state *state;
    struct mr_site_function *function = find_function(site, &state);
    struct mr_patch patch;

    if (!function)
        return false;
    mr_patch_open(&patch, &state->module);
    *is_done = mr_site_module_prune(state, &patch, function, is_pruned);
    (void)mr_patch_close(&patch);
    return true;
}

enum mr_status mr_sites_prune(const uint32_t *sites, uint32_t count, bool is_pruned,
                              bool *is_done)
{
    enum mr_status status = MR_OK;

    lock();
    for (uint32_t i = 0; i < count; i++) {
        struct mr_pruned_site *told = mr_pruned_at(mr_pruned_find(sites[i]));

        is_done[i] = true;
        mr_store_relaxed(&told->is_hooked,
                         !prune_patchable(sites[i], is_pruned, &is_done[i]));
        mr_store_relaxed(&told->is_pruned, is_pruned);
    }
    status = mr_hook_filter_prune(registry.windows, registry.rules, registry.rule_count);
    unlock();
    return status;
}

void mr_sites_count(struct mr_sites_counts *counts)
{
    memset(counts, 0, sizeof(*counts));
    lock();
    counts->modules_refused = registry.refused;
    counts->patched = registry.patched;
    counts->foreign = registry.foreign;
    (void)snprintf(counts->refused_why, sizeof(counts->refused_why), "%s",
                   registry.refused_why);
    for (uint32_t i = 0; i < registry.count; i++) {
        const struct mr_site_state *state = registry.states[i];

        if (state->is_ended)
            continue;
        counts->modules++;
        counts->sites += state->table.function_count;
        counts->points += state->table.point_count;
        counts->points_unclear += state->table.unclear;
        counts->on += state->on;
        counts->patched += state->patched;
        counts->foreign += state->foreign;
    }
    unlock();
}

/* All functions, or those that the environment names. */
static void add_first_rules(const struct mr_config *config, enum mr_sites_mode mode)
{
    struct mr_site_filter filter = {0}, all = {0};
    struct mr_sites_result result = {0};

    filter.only = config->only.items;
    filter.only_count = config->only.count;
    filter.except = config->except.items;
    filter.except_count = config->except.count;
    filter.min_size = config->min_size;
    (void)add_rule(&all, false, NULL);
    if (mode == MR_SITES_ON)
        registry.is_as_started = add_rule(&filter, true, NULL) == MR_OK;
    (void)apply_to_hooks(&result, NULL);
}

void mr_sites_start(struct mr_probe *probe, enum mr_sites_mode mode)
{
    lock();
    registry.mode = mode;
    if (mode == MR_SITES_NEUTRAL)
        mr_hook_sites_switch(false);
    if (mode >= MR_SITES_OFF) {
        registry.windows = &probe->windows;
        add_first_rules(&probe->config, mode);
    }
    for (uint32_t i = 0; i < registry.early_count; i++)
        take(&registry.early[i]);
    registry.early_count = 0;
    unlock();
}

bool mr_sites_are_as_started(void)
{
    bool are_as_started;

    lock();
    are_as_started = registry.is_as_started;
    unlock();
    return are_as_started;
}

bool mr_sites_unmatched(uint32_t *at, char *glob, size_t capacity)
{
    const char *found = NULL;

    lock();
    if (registry.rule_count > 0)
        found = mr_site_rule_unmatched(&registry.rules[registry.rule_count - 1], at);
    if (found)
        (void)snprintf(glob, capacity, "%s", found);
    unlock();
    return found != NULL;
}

uint32_t mr_sites_generation(void)
{
    return mr_load_acquire(&generation); /* [L] */
}

bool mr_sites_view_has(const struct mr_sites_view *view, uint64_t function)
{
    uint64_t offset = function - view->address;
    uint32_t low = 0, high = view->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (view->functions[middle].offset == offset)
            return true;
        if (view->functions[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static void fill_view(struct mr_sites_view *view)
{
    for (uint32_t i = 0; i < registry.count; i++) {
        const struct mr_site_state *state = registry.states[i];

        if (state->is_ended || state->module.address - view->address >= view->size)
            continue;
        view->address = state->module.address;
        view->functions = state->table.functions;
        view->count = state->table.function_count;
        return;
    }
}

bool mr_sites_is_thunk(uint64_t address, uint64_t *pushed)
{
    uint64_t mask;
    bool is_found = false;

    if (mr_sites_generation() == 0)
        return false;
    mask = mr_signals_block();
    if (pthread_mutex_trylock(&registry.lock) == 0) {
        for (uint32_t i = 0; i < registry.count && !is_found; i++)
            is_found = mr_stub_is_thunk(&registry.states[i]->stubs, address, pushed);
        (void)pthread_mutex_unlock(&registry.lock);
    }
    mr_signals_restore(mask);
    return is_found;
}

bool mr_sites_look(uint64_t address, uint64_t size, struct mr_sites_view *view)
{
    uint64_t mask;
    bool is_free;

    *view = (struct mr_sites_view){
        .generation = mr_sites_generation(), .address = address, .size = size};
    if (view->generation == 0)
        return true;
    mask = mr_signals_block();
    is_free = pthread_mutex_trylock(&registry.lock) == 0;
    if (is_free) {
        fill_view(view);
        (void)pthread_mutex_unlock(&registry.lock);
    }
    mr_signals_restore(mask);
    return is_free;
}

void mr_sites_before_fork(void)
{
    lock();
}

void mr_sites_after_fork(void)
{
    unlock();
}
