/* SPDX-License-Identifier: Apache-2.0 */
/* The published number, and the gaps between numbers; the thread is in ticker.c. */
#include "probe/tick.h"

#define SHARE_ALL UINT32_C(1000000)

MR_HIDDEN struct mr_tick mr_tick = {.number = MR_TICK_NONE};

static uint32_t bucket_of(uint64_t ticks)
{
    uint32_t log2 = 63 - (uint32_t)MR_LEADING_ZEROS64(ticks | 4);

    return log2 * 4 + (uint32_t)(ticks >> (log2 - 2) & 3);
}

static uint64_t bucket_end(uint32_t bucket)
{
    uint64_t quarter = UINT64_C(1) << (bucket / 4 - 2);

    return (4 + bucket % 4 + 1) * quarter - 1;
}

/* One thread adds, so no addition has to be locked: with such, half of the samples of a beat were here (perf, cpu-clock). */
static void add(_Atomic uint64_t *sum, uint64_t value)
{
    mr_store_relaxed(sum, mr_load_relaxed(sum) + value);
}

void mr_tick_note(struct mr_tick_gaps *gaps, uint64_t gap_ticks)
{
    add(&gaps->count, 1);
    add(&gaps->spent[bucket_of(gap_ticks)], gap_ticks);
    if (gap_ticks > mr_load_relaxed(&gaps->max))
        mr_store_relaxed(&gaps->max, gap_ticks);
}

void mr_tick_publish(struct mr_tick_gaps *gaps, uint64_t now)
{
    uint64_t last = mr_load_relaxed(&mr_tick.number);

    mr_store_relaxed(&mr_tick.number, now);
    if (last != MR_TICK_NONE && now > last)
        mr_tick_note(gaps, now - last);
}

uint64_t mr_tick_beat(struct mr_ticker *ticker)
{
    uint64_t period = mr_load_relaxed(&mr_tick.stale_ticks) / 2, now;

    if (period == 0)
        return 0;
    now = mr_clock_ticks();
    /* A time that is not of the past: somebody else was faster. */
    if ((int64_t)(now - mr_load_relaxed(&mr_tick.number)) < (int64_t)period)
        return 0;
    mr_tick_publish(&ticker->beats, now);
    return now;
}

uint64_t mr_tick_span(uint64_t ns)
{
    return mr_load_relaxed(&mr_tick.stale_ticks) / 2 * ns / MR_TICK_NS;
}

bool mr_tick_has_ticked(const struct mr_ticker *ticker, uint64_t within_ns)
{
    uint64_t age = mr_clock_ticks() - mr_load_relaxed(&ticker->given);

    /* Of another processor it may be of a moment to come. */
    return (int64_t)age < (int64_t)mr_tick_span(within_ns);
}

void mr_tick_rest(const struct mr_ticker *ticker, uint64_t number)
{
    if (number != 0 && !mr_tick_has_ticked(ticker, MR_TICK_ALIVE_NS))
        (void)mr_compare_exchange_relaxed(&mr_tick.number, &number, MR_TICK_NONE);
}

uint64_t mr_tick_count(const struct mr_ticker *ticker)
{
    return mr_load_relaxed(&ticker->own.count) + mr_load_relaxed(&ticker->beats.count);
}

uint64_t mr_tick_gap_max(const struct mr_ticker *ticker)
{
    uint64_t own = mr_load_relaxed(&ticker->own.max);
    uint64_t beats = mr_load_relaxed(&ticker->beats.max);

    return own > beats ? own : beats;
}

uint64_t mr_tick_gap(const struct mr_ticker *ticker, uint32_t share)
{
    uint64_t spent[MR_TICK_BUCKETS], max = mr_tick_gap_max(ticker);
    mr_u128 sum = 0, seen = 0;

    for (uint32_t i = 0; i < MR_TICK_BUCKETS; i++)
        sum += spent[i] = mr_load_relaxed(&ticker->own.spent[i]) +
                          mr_load_relaxed(&ticker->beats.spent[i]);
    for (uint32_t i = 0; i < MR_TICK_BUCKETS && sum > 0; i++) {
        seen += spent[i];
        if (seen * SHARE_ALL >= sum * share && spent[i] > 0)
            return bucket_end(i) < max ? bucket_end(i) : max;
    }
    return 0;
}
