/* SPDX-License-Identifier: Apache-2.0 */
/* The published number, and the gaps between numbers; the thread is in ticker.c. */
#include "probe/tick.h"

#define SHARE_ALL UINT32_C(1000000)

MR_HIDDEN struct mr_tick mr_tick;

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

void mr_tick_note(struct mr_ticker *ticker, uint64_t gap_ticks)
{
    mr_count_single_writer(&ticker->ticks, 1);
    mr_count_single_writer(&ticker->spent_ticks[bucket_of(gap_ticks)], gap_ticks);
    if (gap_ticks > mr_load_relaxed(&ticker->gap_ticks_max))
        mr_store_relaxed(&ticker->gap_ticks_max, gap_ticks);
}

uint64_t mr_tick_gap(const struct mr_ticker *ticker, uint32_t share)
{
    uint64_t spent[MR_TICK_BUCKETS], max = mr_load_relaxed(&ticker->gap_ticks_max);
    mr_u128 sum = 0, seen = 0;

    for (uint32_t i = 0; i < MR_TICK_BUCKETS; i++)
        sum += spent[i] = mr_load_relaxed(&ticker->spent_ticks[i]);
    for (uint32_t i = 0; i < MR_TICK_BUCKETS && sum > 0; i++) {
        seen += spent[i];
        if (seen * SHARE_ALL >= sum * share && spent[i] > 0)
            return bucket_end(i) < max ? bucket_end(i) : max;
    }
    return 0;
}
