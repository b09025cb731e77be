/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/bins.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/pages.h"

#define POOL_FIRST 16384u
#define ALIGN 16u     /* bins: half a power of two */
#define WORD_SHIFT 2u /* to 4 bytes */
/* Carries that share a bit, and those of a word of bits. */
#define CARRIED 64u
#define CARRIED_WORD 4096u

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
        mr_bin_pool_add(pool, pool->later[i]);
    forget_later(pool);
}

static void carry(struct mr_bin_pool *pool, uint32_t at, uint32_t times)
{
    MR_ASSERT(pool->carries);
    pool->carries[at] += times;
    pool->carried[at / CARRIED_WORD] |= UINT64_C(1) << (at / CARRIED % 64);
}

void mr_bin_pool_carry(struct mr_bin_pool *pool, const void *count)
{
    uint32_t at;

    if (count == &pool->none)
        return;
    at = (uint32_t)((const uint8_t *)count - (uint8_t *)pool->counts);
    MR_DEBUG_ASSERT(at < pool->used);
    if (at >= MR_BINS_NOWHERE)
        carry(pool, at, 1);
}

static size_t words_for(uint32_t capacity)
{
    return ((size_t)capacity + CARRIED_WORD - 1) / CARRIED_WORD;
}

static bool is_carried(const struct mr_bin_pool *pool, uint32_t at)
{
    return pool->carried[at / CARRIED_WORD] >> (at / CARRIED % 64) & 1;
}

/* From `*at` on, or where the next carries are that may not be 0, up to which they are together; false: none before `end`. */
static bool next_carried(const struct mr_bin_pool *pool, uint32_t *at, uint32_t end,
                         uint32_t *until)
{
    while (*at < end && !is_carried(pool, *at))
        *at = (*at / CARRIED + 1) * CARRIED;
    *until = (*at / CARRIED + 1) * CARRIED;
    *until = *until < end ? *until : end;
    return *at < end;
}

static void forget_carries(struct mr_bin_pool *pool)
{
    for (uint32_t i = 0; pool->carried && i < words_for(pool->capacity); i++) {
        for (uint64_t bits = pool->carried[i]; bits; bits &= bits - 1) {
            uint32_t at =
                i * CARRIED_WORD + (uint32_t)MR_TRAILING_ZEROS64(bits) * CARRIED;

            memset(pool->carries + at, 0, CARRIED * sizeof(*pool->carries));
        }
        pool->carried[i] = 0;
    }
}

void mr_bin_pool_init(struct mr_bin_pool *pool, uint32_t limit, uint32_t words)
{
    MR_ASSERT(limit >= 2 * MR_BINS_COUNT);
    *pool = (struct mr_bin_pool){.limit = limit + MR_BINS_NOWHERE,
                                 .words = words,
                                 .used = MR_BINS_NOWHERE,
                                 .shift = WORD_SHIFT};
    forget_later(pool);
}

/* As many as there are places, and up to a whole word of bits: 0. False, with nothing allocated, without memory. */
static bool new_carries(struct mr_bin_pool *pool)
{
    const size_t words = words_for(pool->capacity);

    pool->carries = calloc(words * CARRIED_WORD, sizeof(*pool->carries));
    pool->carried = calloc(words, sizeof(*pool->carried));
    if (pool->carries && pool->carried)
        return true;
    free(pool->carries);
    free(pool->carried);
    return false;
}

static size_t size_of(const struct mr_bin_pool *pool)
{
    return (size_t)pool->capacity << pool->shift;
}

void mr_bin_pool_fini(struct mr_bin_pool *pool)
{
    mr_pages_free(pool->counts, size_of(pool));
    free(pool->carries);
    free(pool->carried);
    mr_bin_pool_init(pool, pool->limit - MR_BINS_NOWHERE, pool->words);
}

void mr_bin_pool_reset(struct mr_bin_pool *pool)
{
    pool->used = MR_BINS_NOWHERE;
    forget_later(pool);
    forget_carries(pool);
}

/* What was counted goes to `grown`, where a place's count is `shift` bits further. */
static void copy_counts(const struct mr_bin_pool *pool, struct mr_bin_pool *grown)
{
    const uint32_t *words = pool->counts;
    uint8_t *bytes = grown->counts;

    if (pool->shift == grown->shift) {
        memcpy(grown->counts, pool->counts, (size_t)pool->used << pool->shift);
        return;
    }
    for (uint32_t i = MR_BINS_NOWHERE; i < pool->used; i++) {
        bytes[i] = (uint8_t)words[i];
        if (words[i] > UINT8_MAX)
            carry(grown, i, words[i] >> 8);
    }
}

/* Those of the same places: `grown` has more behind them. */
static void copy_carries(const struct mr_bin_pool *pool, struct mr_bin_pool *grown)
{
    uint32_t until;

    for (uint32_t at = 0; next_carried(pool, &at, pool->used, &until); at = until)
        for (uint32_t i = at; i < until; i++)
            carry(grown, i, pool->carries[i]);
}

/* False without memory; nothing has changed then. */
static bool resize(struct mr_bin_pool *pool, uint32_t capacity)
{
    struct mr_bin_pool grown;

    settle(pool);
    grown = *pool;
    grown.capacity = capacity;
    grown.shift = capacity > pool->words ? 0 : WORD_SHIFT;
    grown.counts = mr_pages_alloc(size_of(&grown));
    grown.carries = NULL;
    grown.carried = NULL;
    if (!grown.counts || (grown.shift == 0 && !new_carries(&grown))) {
        mr_pages_free(grown.counts, size_of(&grown));
        return false;
    }
    if (pool->counts)
        copy_counts(pool, &grown);
    if (pool->carries && grown.carries)
        copy_carries(pool, &grown);
    mr_pages_free(pool->counts, size_of(pool));
    free(pool->carries);
    free(pool->carried);
    *pool = grown;
    forget_later(pool);
    return true;
}

/*
 * Twice as much, as long as that is little. What is on large pages takes no memory but those that were written to: it is as large as may be
 * at once, and neither cleared nor copied again in the burst that needs it.
 */
static uint32_t capacity_for(const struct mr_bin_pool *pool, uint32_t needed)
{
    uint32_t capacity = pool->capacity ? pool->capacity : POOL_FIRST;

    if (needed <= pool->capacity)
        return pool->capacity;
    while (capacity < needed)
        capacity *= 2;
    if ((size_t)capacity << WORD_SHIFT >= MR_PAGES_LARGE)
        capacity = needed <= pool->words ? pool->words : pool->limit;
    return capacity < pool->limit ? capacity : pool->limit;
}

/* Zeroed counts, or false. */
static bool take(struct mr_bin_pool *pool, uint32_t count, uint32_t *offset)
{
    uint32_t capacity;

    if (count > pool->limit - pool->used)
        return false;
    capacity = capacity_for(pool, pool->used + count);
    if (capacity > pool->capacity && !resize(pool, capacity))
        return false;
    *offset = pool->used;
    memset(mr_bin_pool_at(pool, pool->used), 0, (size_t)count << pool->shift);
    pool->used += count;
    return true;
}

/* Moves what a run has counted to `to`, which is zero. */
static void move(struct mr_bin_pool *pool, const struct mr_bins *bins, uint32_t to)
{
    const uint32_t end = bins->offset + bins->count;
    uint32_t until;

    settle(pool);
    memcpy(mr_bin_pool_at(pool, to), mr_bin_pool_at(pool, bins->offset),
           (size_t)bins->count << pool->shift);
    if (!pool->carries)
        return;
    for (uint32_t at = bins->offset; next_carried(pool, &at, end, &until); at = until)
        for (uint32_t i = at; i < until; i++)
            if (pool->carries[i])
                carry(pool, to + (i - bins->offset), pool->carries[i]);
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
        move(pool, bins, offset + (bins->first - first));
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

/* Those of a run, as they were counted. */
static void widen(const struct mr_bin_pool *pool, const struct mr_bins *bins,
                  uint64_t wide[MR_BINS_COUNT])
{
    const uint32_t *words = mr_bin_pool_at(pool, bins->offset);
    const uint8_t *bytes = mr_bin_pool_at(pool, bins->offset);
    const uint32_t end = bins->offset + bins->count;
    uint32_t until;

    for (uint32_t i = 0; !pool->carries && i < bins->count; i++)
        wide[i] = words[i];
    if (!pool->carries)
        return;
    for (uint32_t i = 0; i < bins->count; i++)
        wide[i] = bytes[i];
    for (uint32_t at = bins->offset; next_carried(pool, &at, end, &until); at = until)
        for (uint32_t i = at; i < until; i++)
            wide[i - bins->offset] += (uint64_t)pool->carries[i] << 8;
}

enum mr_status mr_bins_put(const struct mr_bins *bins, struct mr_bin_pool *pool,
                           uint32_t zeros, struct mr_histogram *histogram)
{
    uint32_t from = 0, to = bins->count;
    uint64_t wide[MR_BINS_COUNT];
    enum mr_status status = MR_OK;

    settle(pool);
    if (bins->count)
        widen(pool, bins, wide);
    while (from < to && wide[from] == 0)
        from++;
    while (to > from && wide[to - 1] == 0)
        to--;
    if (zeros)
        status = mr_histogram_add(histogram, 0, zeros);
    if (status != MR_OK || from == to)
        return status;
    return mr_histogram_add_buckets(histogram, MR_HISTOGRAM_SCALE_MAX,
                                    (int32_t)(bins->first + from) - 1, wide + from,
                                    to - from);
}
