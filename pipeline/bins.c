/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/bins.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"

#define POOL_FIRST 16384u
#define ALIGN 16u /* bins: a cache line of counts, half an octave */

static void forget_later(struct mr_bin_pool *pool)
{
    for (uint32_t i = 0; i < MR_BINS_LATER; i++)
        pool->later[i] = &pool->none;
    pool->settled_at = pool->later_at;
}

/* Not more than 2^32 - 1 were counted since the last time (bins.h). */
static void settle(struct mr_bin_pool *pool)
{
    if (pool->later_at == pool->settled_at)
        return;
    for (uint32_t i = 0; i < MR_BINS_LATER; i++)
        ++*pool->later[i];
    forget_later(pool);
}

void mr_bin_pool_init(struct mr_bin_pool *pool, uint32_t limit)
{
    MR_ASSERT(limit >= 2 * MR_BINS_COUNT);
    *pool =
        (struct mr_bin_pool){.limit = limit + MR_BINS_NOWHERE, .used = MR_BINS_NOWHERE};
    forget_later(pool);
}

void mr_bin_pool_fini(struct mr_bin_pool *pool)
{
    mr_pages_free(pool->counts, pool->capacity * sizeof(*pool->counts));
    mr_bin_pool_init(pool, pool->limit - MR_BINS_NOWHERE);
}

void mr_bin_pool_reset(struct mr_bin_pool *pool)
{
    pool->used = MR_BINS_NOWHERE;
    forget_later(pool);
}

/* Zeroed counts, or false. */
static bool take(struct mr_bin_pool *pool, uint32_t count, uint32_t *offset)
{
    uint32_t capacity = pool->capacity ? pool->capacity : POOL_FIRST;
    uint32_t *grown;

    if (count > pool->limit - pool->used)
        return false;
    while (capacity < pool->used + count)
        capacity *= 2;
    capacity = capacity < pool->limit ? capacity : pool->limit;
    if (capacity > pool->capacity) {
        settle(pool);
        grown = mr_pages_alloc(capacity * sizeof(*grown));
        if (!grown)
            return false;
        if (pool->counts)
            memcpy(grown, pool->counts, pool->used * sizeof(*grown));
        mr_pages_free(pool->counts, pool->capacity * sizeof(*pool->counts));
        pool->counts = grown;
        pool->capacity = capacity;
    }
    *offset = pool->used;
    memset(pool->counts + pool->used, 0, count * sizeof(*pool->counts));
    pool->used += count;
    return true;
}

bool mr_bins_grow(struct mr_bins *bins, struct mr_bin_pool *pool, uint32_t bin)
{
    uint32_t first = bin & ~(ALIGN - 1), end = first + 2 * ALIGN, offset;

    MR_ASSERT(bin < MR_BINS_COUNT);
    if (bins->count &&
        bin < bins->first) { /* to the left, at least as much as there is */
        end = bins->first + bins->count;
        if (bins->first - first < bins->count)
            first = bins->first > bins->count ? (uint32_t)(bins->first - bins->count) : 0;
    } else if (bins->count) {
        first = bins->first;
        if (end < first + 2 * bins->count)
            end = first + 2 * bins->count;
    }
    end = end < MR_BINS_COUNT ? end : MR_BINS_COUNT;
    if (!take(pool, end - first, &offset))
        return false;
    settle(pool);
    if (bins->count)
        memcpy(pool->counts + offset + (bins->first - first), pool->counts + bins->offset,
               bins->count * sizeof(*pool->counts));
    *bins = (struct mr_bins){
        .offset = offset, .first = (uint16_t)first, .count = (uint16_t)(end - first)};
    return true;
}

void mr_bins_begin(struct mr_bins *bins, struct mr_bin_pool *pool, uint32_t first,
                   uint32_t count)
{
    uint32_t offset;

    MR_ASSERT(bins->count == 0 && first < MR_BINS_COUNT);
    if (count > MR_BINS_COUNT - first)
        count = MR_BINS_COUNT - first;
    if (count && take(pool, count, &offset))
        *bins = (struct mr_bins){offset, (uint16_t)first, (uint16_t)count};
}

/* The greatest value from `low` on, below 2^57 more, that is in the bin of `low`. */
static uint64_t end_of_bin(uint64_t low)
{
    uint64_t end = low, step;

    for (step = UINT64_C(1) << 56; step; step /= 2)
        if (mr_histogram_index5(end + step) == mr_histogram_index5(low))
            end += step;
    return end;
}

void mr_bin_index_init(struct mr_bin_index *index)
{
    for (uint64_t part = 0; part < 64; part++) {
        uint64_t low = UINT64_C(1) << 63 | part << 57;

        index->bounds[part] = end_of_bin(low) << 1; /* without the leading one */
        index->below[part] = (uint8_t)(mr_histogram_index5(low) + 1 - 63 * 32);
    }
}

uint32_t mr_bin_of_large(const struct mr_bin_index *index, uint64_t value)
{
    uint32_t shift = (uint32_t)MR_LEADING_ZEROS64(value);
    uint64_t mantissa = value << shift;
    uint32_t part = (uint32_t)(mantissa >> 57) & 63;

    return (63 - shift) * 32 + index->below[part] + (mantissa << 1 > index->bounds[part]);
}

enum mr_status mr_bins_put(const struct mr_bins *bins, struct mr_bin_pool *pool,
                           uint32_t zeros, struct mr_histogram *histogram)
{
    const uint32_t *counts = bins->count ? pool->counts + bins->offset : NULL;
    uint32_t from = 0, to = bins->count;
    uint64_t wide[MR_BINS_COUNT];
    enum mr_status status = MR_OK;

    settle(pool);
    while (from < to && counts[from] == 0)
        from++;
    while (to > from && counts[to - 1] == 0)
        to--;
    for (uint32_t i = from; i < to; i++)
        wide[i - from] = counts[i];
    if (zeros)
        status = mr_histogram_add(histogram, 0, zeros);
    if (status != MR_OK || from == to)
        return status;
    return mr_histogram_add_buckets(histogram, MR_HISTOGRAM_SCALE_MAX,
                                    (int32_t)(bins->first + from) - 1, wide, to - from);
}
