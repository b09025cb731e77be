/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/changes.h"

#include "probe/futex.h"
#include "probe/patience.h"
#include "probe/registry.h"
#include "probe/switch.h"

#include <string.h>

/* A look takes some microseconds; who holds the lock may wait for the loader's. */
#define LOCK_NS (100 * MR_MILLISECOND_NS)
#define FULL_NS MR_SECOND_NS
#define POLL_NS (20 * MR_MICROSECOND_NS)

static bool lock(struct mr_changes *changes)
{
    struct mr_patience patience = mr_patience_begin();
    uint32_t nobody = 0;

    while (!mr_compare_exchange_acq_rel(&changes->holder, &nobody, 1)) { /* [A] */
        if (mr_patience_left(&patience, LOCK_NS) == 0)
            return false;
        mr_sleep_ns(POLL_NS);
        nobody = 0;
    }
    MR_PROGRAM_TSAN_ACQUIRE(&changes->holder);
    return true;
}

static void unlock(struct mr_changes *changes)
{
    MR_PROGRAM_TSAN_RELEASE(&changes->holder);
    mr_store_release(&changes->holder, 0); /* [F] */
}

void mr_changes_start(struct mr_changes *changes, struct mr_windows *windows)
{
    changes->generation = mr_modules_generation();
    mr_modules_scan(&changes->known);
    mr_modules_windows(&changes->known, windows);
    changes->site_beyond = mr_modules_number(&changes->known, windows);
}

static bool has_room(const struct mr_changes *changes)
{
    return mr_load_relaxed(&changes->head) - mr_load_acquire(&changes->tail) < /* [R] */
           MR_CHANGES_MAX;
}

/* False: the queue is full. Without a writer nobody needs to be told. */
static bool push(struct mr_changes *changes, uint64_t ticks, bool is_gone,
                 const struct mr_module *module)
{
    uint32_t head = mr_load_relaxed(&changes->head);
    struct mr_module_change *change = &changes->queue[head % MR_CHANGES_MAX];

    if (!changes->has_writer)
        return true;
    if (!has_room(changes))
        return false;
    change->ticks = ticks;
    change->is_gone = is_gone;
    change->module = *module;
    mr_store_release(&changes->head, head + 1); /* [P] */
    return true;
}

static bool is_one_gone(const struct mr_changes *changes)
{
    for (uint32_t i = 0; i < changes->known.count; i++)
        if (!changes->is_there[i])
            return true;
    return false;
}

/* Something lies now where something else lay. */
static bool is_place_taken(const struct mr_changes *changes)
{
    for (uint32_t i = 0; i < changes->known.count; i++)
        for (uint32_t k = 0; k < changes->fresh.count && !changes->is_there[i]; k++) {
            const struct mr_module *old = &changes->known.items[i];
            const struct mr_module *new = &changes->fresh.items[k];

            if (old->address < new->address + new->size &&new->address <
                old->address + old->size)
                return true;
        }
    return false;
}

/* False: not all of it was told; the rest is found the next time. */
static bool tell(struct mr_changes *changes, uint64_t ticks,
                 const struct mr_windows *windows)
{
    struct mr_module_table *known = &changes->known, *fresh = &changes->fresh;
    uint32_t kept = 0;
    bool is_told = true;

    for (uint32_t i = 0; i < known->count; i++) {
        if (!changes->is_there[i])
            is_told = is_told && push(changes, ticks, true, &known->items[i]);
        if ((changes->is_there[i] || !is_told) && kept++ != i)
            known->items[kept - 1] = known->items[i];
    }
    known->count = kept;
    for (uint32_t i = 0; i < fresh->count && is_told && known->count < MR_MODULES_MAX;
         i++) {
        mr_modules_number_one(&fresh->items[i], windows, &changes->site_beyond);
        is_told = push(changes, ticks, false, &fresh->items[i]);
        if (is_told)
            known->items[known->count++] = fresh->items[i];
    }
    return is_told;
}

/*
 * The moment: before stock was taken where one module lies in another's place, whose
 * functions must not get the names of the old one's. Else after it: destructors may run
 * until the loader forgets a module.
 */
static bool look(struct mr_probe *probe, bool *is_one_lost)
{
    struct mr_changes *changes = &probe->changes;
    uint64_t before = mr_clock_read(probe->clock.mode);
    uint64_t generation = mr_modules_generation();

    if (generation == changes->generation)
        return false;
    mr_modules_compare(&changes->known, changes->is_there, &changes->fresh);
    *is_one_lost = is_one_gone(changes);
    if (!is_place_taken(changes))
        before = mr_clock_read(probe->clock.mode);
    changes->generation = tell(changes, before, &probe->windows) ? generation : 0;
    if (probe->recorder.header)
        mr_recorder_modules(&probe->recorder, &changes->known);
    return true;
}

static bool wait_for_room(struct mr_probe *probe)
{
    struct mr_patience patience = mr_patience_begin();

    /* is_full relaxed: a hint that the writer has no room itself. */
    while (!has_room(&probe->changes) && !mr_load_relaxed(&probe->is_full) &&
           mr_patience_left(&patience, FULL_NS) > 0)
        mr_sleep_ns(POLL_NS);
    return has_room(&probe->changes);
}

static bool look_once(struct mr_probe *probe, bool *is_one_lost, bool *is_complete)
{
    struct mr_changes *changes = &probe->changes;
    uint64_t mask = mr_signals_block();
    bool has_changed = false;

    *is_complete = true;
    if (lock(changes)) {
        uint32_t number = mr_load_relaxed(&changes->begun) + 1;

        mr_store_release(&changes->begun, number); /* [B] */
        has_changed = look(probe, is_one_lost);
        *is_complete = changes->generation != 0;
        mr_store_release(&changes->done, number); /* [D] */
        unlock(changes);
    }
    mr_signals_restore(mask);
    return has_changed;
}

bool mr_changes_look(struct mr_probe *probe, bool is_patient)
{
    bool is_one_lost = false, is_complete;
    bool has_changed = look_once(probe, &is_one_lost, &is_complete);

    while (!is_complete && is_patient && wait_for_room(probe))
        has_changed = look_once(probe, &is_one_lost, &is_complete) || has_changed;
    /* Times of what comes into the gone one's place are to be later. */
    if (is_patient && is_one_lost && probe->clock.mode == MR_CLOCK_MODE_HYBRID)
        mr_switch_wait_margin(probe);
    return has_changed;
}

enum mr_status mr_changes_attach(struct mr_changes *changes,
                                 struct mr_module_table *table)
{
    uint64_t mask = mr_signals_block();
    bool is_locked = lock(changes);

    if (is_locked) {
        table->count = changes->known.count;
        memcpy(table->items, changes->known.items, table->count * sizeof(*table->items));
        for (uint32_t i = 0; i < table->count; i++) {
            table->items[i].number = i;
            table->items[i].epoch = 1;
        }
        /* Nobody reads the queue yet. */
        mr_store_relaxed(&changes->tail, mr_load_relaxed(&changes->head));
        changes->has_writer = true;
        unlock(changes);
    }
    mr_signals_restore(mask);
    return is_locked ? MR_OK : MR_ENOMEM;
}

void mr_changes_before_fork(struct mr_changes *changes)
{
    bool is_locked = lock(changes);

    mr_store_relaxed(&changes->is_forking_locked,
                     is_locked); /* the same thread reads it */
}

/* A child has no writer yet; where the lock was another's, what it guards may be half done. */
void mr_changes_after_fork(struct mr_changes *changes, bool is_child)
{
    bool is_locked = mr_load_relaxed(&changes->is_forking_locked);

    if (is_child)
        changes->has_writer = false;
    if (is_child && !is_locked) {
        changes->known.count = 0;
        changes->generation = 0;
    }
    if (is_child || is_locked)
        unlock(changes);
}
