/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of modules in the dictionary: what there was at the start, and every change
 * (probe/changes.h), each moment an epoch.
 */
#include "probe/writer.h"

#include "base/clock.h"

#include <string.h>

/* Loading takes longer between dlopen() and the first event of what came; then the helper finds it. */
#define CAREFUL_NS (10 * MR_SECOND_NS)

void mr_announce_module_item(const struct mr_module *module, struct mr_dict_item *item)
{
    *item = (struct mr_dict_item){
        .kind = MR_DICT_MODULE,
        .module = {.epoch = module->epoch,
                   .module = module->number,
                   .site_base = module->site_base,
                   .size = module->sites,
                   .flags = module->is_executable ? MR_MODULE_EXECUTABLE : 0,
                   .address = module->address,
                   .bias = module->bias,
                   .build_id = mr_span_of(module->build_id, module->build_id_size),
                   .path = module->path}};
}

static bool put_all(struct mr_writer *writer)
{
    for (uint32_t i = 0; i < writer->modules.count; i++) {
        struct mr_dict_item item;

        mr_announce_module_item(&writer->modules.items[i], &item);
        if (!mr_announce_put(writer, &item))
            return false;
    }
    return true;
}

/* Of the next word of any ring. */
static uint32_t oldest_epoch(const struct mr_writer *writer)
{
    const struct mr_epochs *epochs = &writer->epochs;
    struct mr_ring *ring = mr_load_acquire(&writer->probe->pool.rings);
    uint32_t oldest = epochs->newest;

    for (; ring; ring = ring->next) {
        uint32_t state = mr_load_acquire(&ring->state), epoch = ring->done.epoch;

        if ((state != MR_RING_OWNED && state != MR_RING_CLOSED) || ring->done.is_last)
            continue;
        if (epoch == 0)
            epoch = mr_epochs_at(epochs, ring->start_ticks);
        if (epoch < oldest)
            oldest = epoch;
    }
    return oldest;
}

static struct mr_module *find(struct mr_module_table *table,
                              const struct mr_module *module)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->items[i].address == module->address &&
            table->items[i].site_base == module->site_base)
            return &table->items[i];
    return NULL;
}

/* False: no room, and it is to be taken again. */
static bool take_gone(struct mr_writer *writer, const struct mr_module *module)
{
    struct mr_module *gone = find(&writer->modules, module);
    struct mr_dict_item item = {.kind = MR_DICT_MODULE_GONE,
                                .module_gone = {.epoch = writer->epochs.newest}};

    if (!gone)
        return true;
    item.module_gone.module = gone->number;
    if (!mr_announce_put(writer, &item))
        return false;
    mr_repeat_note_gone(writer, gone, writer->epochs.newest);
    *gone = writer->modules.items[--writer->modules.count];
    return true;
}

static bool take_new(struct mr_writer *writer, const struct mr_module *module)
{
    struct mr_module *added = &writer->modules.items[writer->modules.count];
    struct mr_dict_item item;

    if (writer->modules.count == MR_MODULES_MAX)
        return true;
    *added = *module;
    added->number = writer->next_module;
    added->epoch = writer->epochs.newest;
    mr_announce_module_item(added, &item);
    if (!mr_announce_put(writer, &item))
        return false;
    writer->next_module++;
    writer->modules.count++;
    return true;
}

/* What came and went at one moment begins one epoch. False: some ring is too far behind. */
static bool begin_epoch(struct mr_epochs *epochs, uint64_t ticks, uint32_t oldest)
{
    uint64_t newest = epochs->ticks[epochs->newest % MR_EPOCHS_KEPT];

    if (epochs->newest > 1 && ticks == newest)
        return true;
    if (!mr_epochs_has_room(epochs, oldest))
        return false;
    /* Two processors' counters: moments are in order, as the changes are. */
    mr_epochs_add(epochs, ticks > newest ? ticks : newest + 1);
    return true;
}

static bool take_changes(struct mr_writer *writer)
{
    struct mr_changes *changes = &writer->probe->changes;
    const struct mr_module_change *change = mr_changes_next(changes);
    uint32_t oldest = change ? oldest_epoch(writer) : 0;
    bool is_changed = false, is_told = true;

    while (change && is_told && begin_epoch(&writer->epochs, change->ticks, oldest)) {
        is_told = change->is_gone ? take_gone(writer, &change->module)
                                  : take_new(writer, &change->module);
        if (is_told)
            mr_changes_taken(changes);
        is_changed = true;
        change = mr_changes_next(changes);
    }
    if (is_changed)
        mr_epochs_learn(&writer->epochs, &writer->modules);
    /* A new receiver may just be told of them, in the order in which they were. */
    if (is_changed && writer->sender.state != MR_SENDER_OPEN)
        writer->are_modules_announced = false;
    return is_told;
}

bool mr_announce_modules(struct mr_writer *writer)
{
    struct mr_epochs *epochs = &writer->epochs;
    struct mr_changes *changes = &writer->probe->changes;
    uint64_t opened_ns = mr_load_relaxed(&changes->opened_ns); /* a hint of how soon */

    /* [E] pairs with [D] in probe/changes.c: before what it found is taken. */
    epochs->looks_done = mr_load_acquire(&changes->done);
    if (!writer->are_modules_announced)
        writer->are_modules_announced = put_all(writer);
    if (!writer->are_modules_announced || !take_changes(writer))
        return false;
    if (mr_clock_monotonic_ns() - opened_ns >= CAREFUL_NS)
        epochs->opened_over_ns = opened_ns;
    if (writer->gone_open > 0)
        mr_repeat_note_epoch(writer, oldest_epoch(writer));
    return true;
}
