/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/drain_private.h"

#include "base/clock.h"

#include <string.h>

/* A machine with twenty processes for each processor answers within a second. */
#define HELD_NS (5 * MR_SECOND_NS)

void mr_epochs_learn(struct mr_epochs *epochs, const struct mr_module_table *modules)
{
    memset(epochs->pages, 0, sizeof(epochs->pages));
    epochs->modules = modules;
    for (uint32_t i = 0; i < modules->count; i++) {
        const struct mr_module *module = &modules->items[i];
        uint64_t end = (uint64_t)module->site_base + module->sites;

        if (module->site_base < MR_WINDOW_LIBRARIES || end > MR_SITE_LIMIT)
            continue;
        for (uint64_t site = module->site_base; site < end;
             site += UINT64_C(1) << MR_EPOCHS_PAGE_SHIFT)
            mr_epochs_know(epochs, (uint32_t)site);
        mr_epochs_know(epochs, (uint32_t)end - 1);
    }
}

uint64_t mr_drain_epoch_due(const struct mr_drain_frame *frame,
                            const struct mr_ring *ring)
{
    const struct mr_epochs *epochs = frame->epochs;
    const struct mr_module_change *change;
    uint32_t next = ring->staged.epoch + 1;

    if (!epochs)
        return UINT64_MAX;
    if (mr_drain_has_epoch(frame, ring))
        return epochs->ticks[next % MR_EPOCHS_KEPT];
    change = mr_changes_next(epochs->changes);
    return change ? change->ticks : UINT64_MAX;
}

static bool is_of_nobody(const struct mr_epochs *epochs, uint64_t word)
{
    uint32_t site = mr_word_site(word);

    return site >= MR_WINDOW_LIBRARIES && !mr_epochs_knows(epochs, site);
}

static bool is_in_a_module(const struct mr_module_table *modules, uint64_t address)
{
    for (uint32_t i = 0; i < modules->count; i++)
        if (address - modules->items[i].address < modules->items[i].size)
            return true;
    return false;
}

static uint64_t word_at(const uint8_t *body, size_t index)
{
    uint64_t word;

    memcpy(&word, body + index * WORD_BYTES, sizeof(word));
    return word;
}

/* An event or a record, at `index` of `count` words; of a record that is not whole nobody knows. */
static bool is_any_of_nobody(const struct mr_epochs *epochs, const uint8_t *body,
                             size_t index, size_t count)
{
    uint64_t word = word_at(body, index);
    uint32_t site = mr_word_site(word);

    if (site >= MR_SITE_FIRST_NAMED)
        return is_of_nobody(epochs, word);
    return (site & 0xff) == MR_RECORD_WIDE && index + 1 < count &&
           !is_in_a_module(epochs->modules,
                           word_at(body, index + 1) & MR_WORD_PAYLOAD_MASK);
}

/* The first from `from` on of `count` plain events whose module is not known. */
static size_t find_plain(const struct mr_epochs *epochs, const uint8_t *body, size_t from,
                         size_t count)
{
    size_t i = from;

    while (i < count && !is_of_nobody(epochs, word_at(body, i)))
        i++;
    return i;
}

/* The same among records of all kinds. */
static size_t find_event(const struct mr_epochs *epochs, const struct mr_ring *ring,
                         const uint8_t *body, size_t from, size_t count)
{
    struct mr_ring_place place = ring->staged;
    struct mr_drain_totals totals;
    size_t i = 0, words = 1;

    memset(&totals, 0, sizeof(totals));
    while (i < count && words > 0 &&
           (i < from || !is_any_of_nobody(epochs, body, i, count))) {
        words = mr_drain_account_one(body, i, count, &place, &totals);
        i += words;
    }
    return words > 0 ? i : count; /* not whole: the caller sees that, too */
}

/* Half of the ring is written: names are not worth losing events. */
static bool is_ring_filling(const struct mr_ring *ring)
{
    uint64_t index = ring->staged.tail + ring->capacity / 2;
    uint64_t lap = (index & ring->capacity) ? 0 : MR_WORD_LAP;

    /* Relaxed: only whether it is there. */
    return ((mr_load_relaxed(&ring->words[index & (ring->capacity - 1)]) ^ lap) &
            MR_WORD_LAP) == 0;
}

/* The first `count` words wait for a look that begins from now on. */
static void hold(const struct mr_epochs *epochs, struct mr_ring *ring, size_t count,
                 uint64_t now_ns)
{
    ring->hold.has_look = true;
    /* [E] pairs with [B] in probe/changes.c: the next one sees the modules of the words. */
    ring->hold.look = mr_load_acquire(&epochs->changes->begun) + 1;
    ring->hold.until = ring->staged.tail + count;
    ring->hold.since_ns = now_ns;
}

static bool is_over(const struct mr_epochs *epochs, const struct mr_ring *ring,
                    uint64_t now_ns)
{
    return (int32_t)(epochs->looks_done - ring->hold.look) >= 0 ||
           now_ns - ring->hold.since_ns > HELD_NS || is_ring_filling(ring);
}

size_t mr_drain_known(struct mr_drain_frame *frame, struct mr_ring *ring,
                      const uint8_t *body, size_t count, bool is_special, uint64_t now_ns)
{
    struct mr_epochs *epochs = frame->epochs;
    uint64_t tail = ring->staged.tail;
    size_t from = 0, found;

    if (ring->hold.has_look && tail < ring->hold.until && is_over(epochs, ring, now_ns))
        from = (size_t)(ring->hold.until - tail);
    found = is_special ? find_event(epochs, ring, body, from, count)
                       : find_plain(epochs, body, from < count ? from : count, count);
    if (found > 0) /* a word that is to wait comes first next time */
        return found;
    if (!ring->hold.has_look || tail >= ring->hold.until)
        hold(epochs, ring, count, now_ns);
    epochs->is_look_wanted = true;
    return 0;
}
