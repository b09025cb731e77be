/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sites that are pruned (docs/FORMAT.md section 5, kind 12): at once when that changes, and
 * each second, and at the end, how many calls were counted.
 *
 * field      written by   read by  access
 * changes    who prunes   we       acquire load [H], pairs with [G] in prune.c
 * counts     see probe/pruned.c
 */
#include "base/clock.h"
#include "probe/pruned.h"
#include "probe/writer.h"

static bool put_site(struct mr_writer *writer, uint32_t slot, uint32_t changes,
                     uint64_t calls)
{
    struct mr_pruned_site *site = mr_pruned_at(slot);
    bool is_pruned = mr_load_relaxed(&site->is_pruned);
    struct mr_dict_item item = {
        .kind = MR_DICT_PRUNED,
        .pruned = {.site = mr_load_relaxed(&mr_pruned.sites[slot]),
                   .epoch = writer->epochs.newest,
                   .flags = MR_PRUNED_COUNTED | (is_pruned ? MR_PRUNED_NOW : 0),
                   .ticks = mr_load_relaxed(&site->changed_ticks),
                   .calls = calls,
                   .limit_ns = mr_load_relaxed(&site->limit_ns)}};

    if (!mr_announce_put(writer, &item))
        return false;
    site->told_changes = changes;
    site->told_calls = calls;
    return true;
}

/* `has_time`: it is time to tell counts that have grown. */
static bool put_slot(struct mr_writer *writer, uint32_t slot, bool has_time)
{
    const struct mr_pruned_site *site = mr_pruned_at(slot);
    uint32_t changes = mr_load_acquire(&site->changes); /* [H] */
    uint64_t calls;

    if (changes == 0 || (!has_time && changes == site->told_changes))
        return true;
    calls = mr_pruned_calls(&writer->probe->pool, slot);
    return (changes == site->told_changes && calls == site->told_calls) ||
           put_site(writer, slot, changes, calls);
}

/* While connected, or at the end: without a receiver they would fill the outbox. */
bool mr_announce_pruned(struct mr_writer *writer, uint64_t now_ns)
{
    bool is_end = mr_load_relaxed(&writer->probe->stop_wanted);
    bool has_time = is_end || now_ns >= writer->pruned_at_ns;

    if (mr_load_relaxed(&mr_pruned.count) == 0 ||
        (!is_end && writer->sender.state != MR_SENDER_OPEN))
        return true;
    for (; writer->pruned_next < mr_load_acquire(&mr_pruned.count); writer->pruned_next++)
        if (!put_slot(writer, mr_pruned_slot(writer->pruned_next), has_time))
            return false;
    writer->pruned_next = 0;
    if (has_time)
        writer->pruned_at_ns = now_ns + MR_SECOND_NS;
    return true;
}
