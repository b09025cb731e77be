/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field              written by  read by   access
 * calls, cheap,      writer      anybody   relaxed: each for itself; who acts on them
 *  replaced, slots                         looks twice
 * reset_wanted       anybody     writer    relaxed: it is seen at some next look
 * reset_done         writer      anybody   relaxed
 * Progress: wait-free. Checked by: tests/unit/probe/test_site_stats.c
 */
#include "probe/site_stats.h"

#include "net/wire.h"

#include <string.h>

#define WORD_BYTES sizeof(uint64_t)
#define WINDOW 4
/* Words that are all looked at. */
#define FIRST_WORDS (UINT64_C(1) << 18)
/* Of all calls, so many are shorter than the shortest that is typical: clamped times. */
#define LEAST_SHARE 100
#define LEAST_FIRST 4096
#define LEAST_AGAIN (1u << 18)
#define HALVE_CALLS (UINT64_C(1) << 22)

void mr_site_stats_limit(struct mr_site_stats *stats, uint64_t brief_ticks,
                         uint64_t cheap_ticks)
{
    stats->brief_ticks =
        brief_ticks < UINT32_MAX / 2 ? (uint32_t)brief_ticks : UINT32_MAX / 2;
    stats->cheap_ticks =
        cheap_ticks < UINT32_MAX / 2 ? (uint32_t)cheap_ticks : UINT32_MAX / 2;
}

static void halve(_Atomic uint32_t *value)
{
    mr_store_relaxed(value, mr_load_relaxed(value) / 2);
}

static void halve_slot(struct mr_site_stat_slot *slot)
{
    halve(&slot->calls);
    halve(&slot->brief);
    halve(&slot->cheap);
}

static void halve_all(struct mr_site_stats *stats)
{
    for (uint32_t i = 0; i < MR_SITE_STATS_SLOTS; i++)
        halve_slot(&stats->slots[i]);
    mr_store_relaxed(&stats->calls, mr_load_relaxed(&stats->calls) / 2);
    mr_store_relaxed(&stats->cheap, mr_load_relaxed(&stats->cheap) / 2);
}

static void reset(struct mr_site_stats *stats)
{
    for (uint32_t i = 0; i < MR_SITE_STATS_SLOTS; i++) {
        mr_store_relaxed(&stats->slots[i].site, 0);
        mr_store_relaxed(&stats->slots[i].calls, 0);
        mr_store_relaxed(&stats->slots[i].brief, 0);
        mr_store_relaxed(&stats->slots[i].cheap, 0);
    }
    mr_store_relaxed(&stats->calls, 0);
    mr_store_relaxed(&stats->cheap, 0);
    mr_store_relaxed(&stats->replaced, 0);
    stats->due = stats->looked = 0;
}

/* In place of `victim`, once that has been halved to nothing: what is called often stays. */
static struct mr_site_stat_slot *replace(struct mr_site_stats *stats,
                                         struct mr_site_stat_slot *victim, uint32_t site)
{
    if (mr_load_relaxed(&victim->calls) > 1) {
        halve_slot(victim);
        return NULL;
    }
    if (mr_load_relaxed(&victim->site) != 0)
        mr_count_single_writer(&stats->replaced, 1);
    mr_store_relaxed(&victim->calls, 0);
    mr_store_relaxed(&victim->brief, 0);
    mr_store_relaxed(&victim->cheap, 0);
    mr_store_relaxed(&victim->site, site);
    return victim;
}

static struct mr_site_stat_slot *slot_of(struct mr_site_stats *stats, uint32_t site)
{
    uint32_t at = (site * UINT32_C(0x9e3779b1)) >> (32 - MR_SITE_STATS_SLOTS_LOG2);
    struct mr_site_stat_slot *victim = &stats->slots[at & ~(WINDOW - 1u)];
    struct mr_site_stat_slot *slot = victim;

    for (uint32_t i = 0; i < WINDOW; i++, slot++) {
        if (mr_load_relaxed(&slot->site) == site)
            return slot;
        if (mr_load_relaxed(&slot->calls) < mr_load_relaxed(&victim->calls))
            victim = slot;
    }
    return replace(stats, victim, site);
}

/* What the shortest calls take; at most as much as is cheap, where there are none. */
static void set_least(struct mr_site_stats *stats)
{
    uint32_t sum = 0, ticks = 0;

    while (ticks < stats->cheap_ticks && ticks < MR_SITE_STATS_TIMES - 1 &&
           (sum += stats->times[ticks]) <= stats->time_count / LEAST_SHARE)
        ticks++;
    stats->least_ticks = ticks;
    stats->has_least = true;
    stats->time_count = 0;
    memset(stats->times, 0, sizeof(stats->times));
}

static void add_time(struct mr_site_stats *stats, uint32_t ticks)
{
    stats->times[ticks < MR_SITE_STATS_TIMES ? ticks : MR_SITE_STATS_TIMES - 1]++;
    if (++stats->time_count == (stats->has_least ? LEAST_AGAIN : LEAST_FIRST))
        set_least(stats);
}

static uint64_t word_at(const uint8_t *body, size_t index)
{
    uint64_t word;

    memcpy(&word, body + index * WORD_BYTES, WORD_BYTES);
    return word;
}

/* `next` ends the call that `word` begins. Ticks between them; UINT32_MAX: it does not. */
static uint32_t leaf_ticks(uint64_t word, uint64_t next)
{
    const uint64_t same = MR_WORD_EXIT | (uint64_t)MR_WORD_SITE_MASK
                                             << MR_WORD_SITE_SHIFT;

    return ((word ^ next) & same) == MR_WORD_EXIT ? (uint32_t)next - (uint32_t)word
                                                  : UINT32_MAX;
}

/* Calls that are brief, or cheap, come to *cheap. */
static void count_call(struct mr_site_stats *stats, uint32_t site, uint32_t ticks,
                       uint64_t *cheap)
{
    struct mr_site_stat_slot *slot = slot_of(stats, site);
    bool is_cheap;

    if (!stats->has_least)
        return;
    is_cheap = ticks <= stats->least_ticks + stats->cheap_ticks;
    *cheap += is_cheap;
    if (!slot)
        return;
    mr_count_single_writer(&slot->calls, 1);
    mr_count_single_writer(&slot->brief,
                           ticks <= stats->least_ticks + stats->brief_ticks);
    mr_count_single_writer(&slot->cheap, is_cheap);
}

/* The loop: every word of a chunk. */
static void look(struct mr_site_stats *stats, const uint8_t *body, size_t count)
{
    uint64_t calls = 0, cheap = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t word = word_at(body, i);
        uint32_t site = mr_word_site(word), ticks = UINT32_MAX;

        if (site < MR_SITE_FIRST_NAMED) {
            i += site >> 8 & 0xff; /* its payload */
            continue;
        }
        if (word & MR_WORD_EXIT || site < MR_SITE_FIRST_MODULE)
            continue;
        if (i + 1 < count)
            ticks = leaf_ticks(word, word_at(body, i + 1));
        if (ticks != UINT32_MAX)
            add_time(stats, ticks);
        calls++;
        count_call(stats, site, ticks, &cheap);
    }
    if (stats->has_least) {
        mr_count_single_writer(&stats->calls, calls);
        mr_count_single_writer(&stats->cheap, cheap);
    }
}

void mr_site_stats_look(struct mr_site_stats *stats, const uint8_t *body, size_t count)
{
    uint32_t wanted = mr_load_relaxed(&stats->reset_wanted);

    if (mr_load_relaxed(&stats->reset_done) != wanted) {
        reset(stats);
        mr_store_relaxed(&stats->reset_done, wanted);
    }
    stats->due += count < MR_SITE_STATS_LONG
                      ? count * (MR_SITE_STATS_LONG_SHARE / MR_SITE_STATS_SHARE)
                      : count;
    if (stats->looked > stats->due / MR_SITE_STATS_LONG_SHARE + FIRST_WORDS)
        return;
    stats->looked += count;
    look(stats, body, count);
    if (mr_load_relaxed(&stats->calls) > HALVE_CALLS)
        halve_all(stats);
}

void mr_site_stats_reset(struct mr_site_stats *stats)
{
    (void)mr_add_relaxed(&stats->reset_wanted, 1);
}

bool mr_site_stats_total(const struct mr_site_stats *stats, uint64_t *calls,
                         uint64_t *cheap)
{
    *calls = mr_load_relaxed(&stats->calls);
    *cheap = mr_load_relaxed(&stats->cheap);
    return *calls > 0 &&
           mr_load_relaxed(&stats->reset_done) == mr_load_relaxed(&stats->reset_wanted);
}

bool mr_site_stats_read(const struct mr_site_stats *stats, uint32_t index,
                        struct mr_site_stat *stat)
{
    const struct mr_site_stat_slot *slot = &stats->slots[index];

    *stat = (struct mr_site_stat){.site = mr_load_relaxed(&slot->site),
                                  .calls = mr_load_relaxed(&slot->calls),
                                  .brief = mr_load_relaxed(&slot->brief),
                                  .cheap = mr_load_relaxed(&slot->cheap)};
    return stat->site != 0;
}
