/* SPDX-License-Identifier: Apache-2.0 */
/* What both kinds of vectors need (reduce_templates_wide.c, reduce_templates_wider.c); elsewhere it is empty. Not for others. */
#ifndef MR_PIPELINE_FILTERS_REDUCE_TEMPLATES_VECTORS_H
#define MR_PIPELINE_FILTERS_REDUCE_TEMPLATES_VECTORS_H

#if defined(__AVX2__)

#include <assert.h>
#include <immintrin.h>

#include "pipeline/filters/reduce_private.h"

static_assert(MR_TEMPLATE_WAITING == 8, "a vector's lanes");
static_assert(MR_CODE_BLOCK == 8, "codes that are looked at together");
static_assert(MR_BINS_NOWHERE >= MR_TEMPLATE_WAITING, "somewhere for each lane");

/* reduce_templates_wide.c: all but `gain` of struct mr_template_vectors. */
struct mr_template *mr_template_find_part_wide(struct mr_reduce *reduce, uint32_t path,
                                               const uint32_t *codes, uint32_t count);
struct mr_template_key mr_template_sum_wide(const struct mr_templates *templates,
                                            const uint32_t *codes, uint32_t count);
uint32_t mr_template_codes_wide(const struct mr_event *events, uint32_t count,
                                uint32_t *codes);
bool mr_template_fill_wide(struct mr_template_call *calls, uint32_t count,
                           const uint32_t *times);

static MR_ALWAYS_INLINE __m256i load_lanes(const int32_t *lanes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)lanes);
}

static MR_ALWAYS_INLINE void store_lanes(void *lanes, __m256i values)
{
    _mm256_storeu_si256((__m256i *)lanes, values);
}

static MR_ALWAYS_INLINE __m256i in_all(uint32_t value)
{
    return _mm256_set1_epi32((int)value);
}

/* Some time is beyond what its path has known. */
static MR_NOINLINE void widen(struct mr_path *path, const int32_t *totals,
                              const int32_t *child)
{
    for (uint32_t i = 0; i < MR_TEMPLATE_WAITING; i++)
        mr_path_widen(path, (uint32_t)totals[i], (uint32_t)(totals[i] - child[i]));
}

/* The sums of both, each below 2^32. */
struct sums {
    uint32_t total, self;
};

static MR_ALWAYS_INLINE struct sums sums_of(__m256i totals, __m256i selfs)
{
    const __m256i pairs = _mm256_hadd_epi32(totals, selfs);
    __m128i sums =
        _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    uint64_t both;

    sums = _mm_add_epi32(sums, _mm_srli_epi64(sums, 32));
    sums = _mm_shuffle_epi32(sums, _MM_SHUFFLE(3, 1, 2, 0));
    both = (uint64_t)_mm_cvtsi128_si64(sums);
    return (struct sums){(uint32_t)both, (uint32_t)(both >> 32)};
}

/* Of a path that gains so much, and so often no time. */
static MR_ALWAYS_INLINE void count_sums(struct mr_path *path, struct sums sums,
                                        uint32_t zeros)
{
    path->ok += MR_TEMPLATE_WAITING;
    path->total_sum += sums.total;
    path->self_sum += sums.self;
    path->zeros += zeros;
}

/* Modulo 2^64. */
static MR_ALWAYS_INLINE uint64_t sum_of_four(__m256i values)
{
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(values),
                                      _mm256_extracti128_si256(values, 1));

    return (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_extract_epi64(two, 1);
}

/* Calls of the same site lie in the one that ends, or end with it: the general case. */
static MR_NOINLINE uint32_t find_nested_end(uint32_t closes, uint32_t opens,
                                            uint32_t *depth)
{
    for (uint32_t place = 0; place < MR_CODE_BLOCK; place++) {
        *depth += opens >> place & 1;
        *depth -= closes >> place & 1;
        if (*depth == 0)
            return place;
    }
    return MR_CODE_BLOCK;
}

/*
 * Of eight codes the one that ends the call, `*depth` calls of its site being open; MR_CODE_BLOCK: none, and `*depth` are
 * open behind them. `closes`, `opens`: which of them end and begin calls of the site.
 */
static MR_ALWAYS_INLINE uint32_t find_end(uint32_t closes, uint32_t opens,
                                          uint32_t *depth)
{
    const uint32_t before = closes ? (closes & (0 - closes)) - 1 : UINT8_MAX;

    if (MR_UNLIKELY(*depth > 1 || opens & before))
        return find_nested_end(closes, opens, depth);
    return (uint32_t)_mm_popcnt_u32(before);
}

#endif

#endif
