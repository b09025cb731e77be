/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/bins.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define POOL_FIRST 16384u
#define ALIGN 16u /* bins: a cache line of counts, half an octave */

void mr_bin_pool_init(struct mr_bin_pool *pool, uint32_t limit)
{
    MR_ASSERT(limit >= 2 * MR_BINS_COUNT);
    *pool = (struct mr_bin_pool){.limit = limit};
}

void mr_bin_pool_fini(struct mr_bin_pool *pool)
{
    free(pool->counts);
    *pool = (struct mr_bin_pool){.limit = pool->limit};
}

void mr_bin_pool_reset(struct mr_bin_pool *pool)
{
    pool->used = 0;
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
        grown = realloc(pool->counts, capacity * sizeof(*grown));
        if (!grown)
            return false;
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
    if (bins->count)
        memcpy(pool->counts + offset + (bins->first - first), pool->counts + bins->offset,
               bins->count * sizeof(*pool->counts));
    *bins = (struct mr_bins){
        .offset = offset, .first = (uint16_t)first, .count = (uint16_t)(end - first)};
    return true;
}

enum mr_status mr_bins_put(const struct mr_bins *bins, const struct mr_bin_pool *pool,
                           uint32_t zeros, struct mr_histogram *histogram)
{
    const uint32_t *counts = bins->count ? pool->counts + bins->offset : NULL;
    uint32_t from = 0, to = bins->count;
    uint64_t wide[MR_BINS_COUNT];
    enum mr_status status = MR_OK;

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
