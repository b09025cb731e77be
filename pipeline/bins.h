/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms on the hot path: counts at scale 5 (net/histogram.h), a contiguous run of counts per histogram in one
 * pool that is emptied as a whole with every delta. A histogram that outgrows its run moves to one at least twice as
 * large; the old run is lost until the pool is emptied. Bin b counts the values of index5 b - 1; zeros are counted apart.
 *
 *     pool:   | run of A | run of B | old run of A | ... used ->      free      <- limit
 *     carries | as long, each how often the count went past 255; only of a large pool
 *
 * A count is a word of 32 bits as long as there are few. A large pool has a byte at hand for each, of which caches hold four times as
 * many: with tens of thousands of histograms, some hundred bins each, where counts lie is what counting costs. What 256 come to
 * is carried to a word that is far away; few places have one, and what has none is neither read nor cleared. (To ask whether a byte
 * is full costs streams that hit few bins some percent.)
 *
 * One thread. Nobody may count more than 2^32 - 1 values between two resets: reduce empties the pool before.
 *
 *     if (!mr_bins_has(&bins, bin) && !mr_bins_grow(&bins, &pool, bin))
 *         ... the pool is full: send what there is, reset, again
 *     mr_bins_add(&bins, &pool, bin);
 */
#ifndef MR_PIPELINE_BINS_H
#define MR_PIPELINE_BINS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "net/histogram.h"

#define MR_BINS_COUNT 2049u /* bins 0 .. 2048 */
/* Counts at the beginning of a pool that nobody reads: for what is to be counted nowhere, without a branch. */
#define MR_BINS_NOWHERE 16u

struct mr_bins {
    uint32_t offset;       /* of its run in the pool */
    uint16_t first, count; /* bins first .. first + count - 1; count 0: none yet */
};

/*
 * The bin of a value without a search: of the 64 equal parts of a power of two, narrower than any bin, which bin begins or
 * lies there, and up to which fraction. From mr_histogram_index5(), with which it agrees for all values. Power and fraction
 * are those of the value as a double: x86-64's instruction that finds the highest bit waits for what was in its target
 * before, so that one call's bin waited for the last one's (13 cycles a call; 3 with doubles).
 */
struct mr_bin_index {
    uint64_t bounds[64]; /* fractions, from bit 63 down */
    uint8_t below[64];
};

void mr_bin_index_init(struct mr_bin_index *index);
/* Of values that a double may round. */
uint32_t mr_bin_of_large(const struct mr_bin_index *index, uint64_t value);

/* `value` is not 0. */
static MR_ALWAYS_INLINE uint32_t mr_bin_of(const struct mr_bin_index *index,
                                           uint64_t value)
{
    double exact = (double)(int64_t)value;
    uint32_t part;
    uint64_t bits;

    if (MR_UNLIKELY(value >> 53))
        return mr_bin_of_large(index, value);
    memcpy(&bits, &exact, sizeof(bits)); /* IEEE 754: power + 1023, 52 bits of fraction */
    part = (uint32_t)(bits >> 46) & 63;
    return ((uint32_t)(bits >> 52) - 1023) * 32 + index->below[part] +
           (bits << 12 > index->bounds[part]);
}

#define MR_BINS_LATER 16u

struct mr_bin_pool {
    void *counts;      /* words, or, if there are carries, bytes */
    uint32_t *carries; /* NULL: none */
    uint64_t *carried; /* with carries: a bit for each 64 of them, if one is not 0 */
    uint32_t shift;    /* of a place, to where in bytes its count is */
    uint32_t used, capacity, limit, words;
    /*
     * Bins that are still to be incremented. With tens of thousands of histograms they are in no near cache, and an
     * increment that waits for one holds up everything behind it; so each is asked for some calls ahead.
     */
    uint32_t later_at, settled_at, none;
    void *later[MR_BINS_LATER];
};

/*
 * `limit` counts, at least 2 * MR_BINS_COUNT. Up to `words` have 4 bytes each; where there are more, one, and 4 for such as lie
 * near one that passed 255. Allocates nothing yet.
 */
void mr_bin_pool_init(struct mr_bin_pool *pool, uint32_t limit, uint32_t words);
void mr_bin_pool_fini(struct mr_bin_pool *pool);
/* All runs are gone; every mr_bins is to be zeroed by its owner. */
void mr_bin_pool_reset(struct mr_bin_pool *pool);

static MR_ALWAYS_INLINE bool mr_bins_has(const struct mr_bins *bins, uint32_t bin)
{
    return bin - bins->first < bins->count;
}

/* Makes the run cover the bin. False when the pool is at its limit (or without memory). */
bool mr_bins_grow(struct mr_bins *bins, struct mr_bin_pool *pool, uint32_t bin);

/* The count at a place of the pool. */
static MR_ALWAYS_INLINE void *mr_bin_pool_at(const struct mr_bin_pool *pool,
                                             uint32_t place)
{
    return (uint8_t *)pool->counts + ((size_t)place << pool->shift);
}

/* A count that is a byte has come to 256. */
void mr_bin_pool_carry(struct mr_bin_pool *pool, const void *count);

static MR_ALWAYS_INLINE void mr_bin_pool_add(struct mr_bin_pool *pool, void *count)
{
    uint32_t *word = count;
    uint8_t *byte = count;

    if (!pool->carries)
        ++*word;
    else if (MR_UNLIKELY(++*byte == 0))
        mr_bin_pool_carry(pool, count);
}

/* Counts one in a bin that it has. */
static MR_ALWAYS_INLINE void mr_bins_add(const struct mr_bins *bins,
                                         struct mr_bin_pool *pool, uint32_t bin)
{
    void *at = mr_bin_pool_at(pool, bins->offset + (bin - bins->first));
    void **later = &pool->later[pool->later_at++ % MR_BINS_LATER];

    MR_PREFETCH_WRITE(at);
    mr_bin_pool_add(pool, *later);
    *later = at;
}

/* A first run over these bins, as far as there are so many, where the pool has room; else none. */
void mr_bins_begin(struct mr_bins *bins, struct mr_bin_pool *pool, uint32_t first,
                   uint32_t count);

/* Adds what was counted to `histogram`. */
enum mr_status mr_bins_put(const struct mr_bins *bins, struct mr_bin_pool *pool,
                           uint32_t zeros, struct mr_histogram *histogram);

#endif
