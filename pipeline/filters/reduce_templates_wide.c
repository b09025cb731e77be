/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled for AVX-512 (pipeline/CMakeLists.txt). What waits of a template's calls, eight totals at once: the tables that find
 * their bins stay in registers. And what a call is, eight events at once.
 */
#include <assert.h>
#include <immintrin.h>

#include "pipeline/filters/reduce_private.h"

static_assert(MR_TEMPLATE_WAITING == 8, "a vector's lanes");
static_assert(MR_BINS_NOWHERE >= MR_TEMPLATE_WAITING, "somewhere for each lane");

static MR_ALWAYS_INLINE __m256i load(const int32_t *lanes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)lanes);
}

static MR_ALWAYS_INLINE __m256i in_all(uint32_t value)
{
    return _mm256_set1_epi32((int)value);
}

/* A table of 64 entries, at eight places. */
struct table {
    __m512i part[4];
};

static MR_ALWAYS_INLINE struct table load_table(const uint32_t entries[64])
{
    struct table table;

    for (uint32_t i = 0; i < 4; i++)
        table.part[i] = _mm512_loadu_si512(entries + (size_t)16 * i);
    return table;
}

static MR_ALWAYS_INLINE __m256i look_up(const struct table *table, __m256i places)
{
    const __m512i at = _mm512_castsi256_si512(places);
    const __m256i low = _mm512_castsi512_si256(
        _mm512_permutex2var_epi32(table->part[0], at, table->part[1]));
    const __m256i high = _mm512_castsi512_si256(
        _mm512_permutex2var_epi32(table->part[2], at, table->part[3]));

    return _mm256_mask_blend_epi32(_mm256_test_epi32_mask(places, in_all(32)), low, high);
}

/* As mr_bin_of(); of 0 any. */
static MR_ALWAYS_INLINE __m256i bins_of(const struct table *below,
                                        const struct table *bounds, __m256i totals)
{
    const __m256i shift = _mm256_lzcnt_epi32(totals);
    const __m256i from_top = _mm256_sllv_epi32(totals, shift);
    const __m256i part = _mm256_and_si256(_mm256_srli_epi32(from_top, 25), in_all(63));
    const __m256i power = _mm256_sub_epi32(in_all(31), shift);
    const __m256i bin =
        _mm256_add_epi32(_mm256_slli_epi32(power, 5), look_up(below, part));
    const __mmask8 is_next =
        _mm256_cmpgt_epu32_mask(_mm256_slli_epi32(from_top, 1), look_up(bounds, part));

    return _mm256_mask_add_epi32(bin, is_next, bin, in_all(1));
}

static MR_ALWAYS_INLINE __mmask8 is_new(struct mr_known known, __m256i values)
{
    return _mm256_cmpge_epu32_mask(_mm256_sub_epi32(values, in_all(known.low)),
                                   in_all(known.width));
}

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

uint32_t mr_templates_gain_wide(struct mr_reduce *reduce,
                                const struct mr_template_call *calls, uint32_t count,
                                mr_template_below *child, mr_template_places *places)
{
    const struct table below = load_table(reduce->templates.parts.below);
    const struct table bounds = load_table(reduce->templates.parts.bounds);
    const __m256i nowhere = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    uint32_t binned = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct mr_path *path = &reduce->paths.nodes[calls[i].path];
        const __m256i totals = load(calls[i].totals);
        const __m256i selfs = _mm256_sub_epi32(totals, load(child[i]));
        const __mmask8 timed = _mm256_test_epi32_mask(totals, totals);
        const struct sums sums = sums_of(totals, selfs);
        int32_t *parent = child[calls[i].parent];

        _mm256_storeu_si256((__m256i *)(void *)parent,
                            _mm256_add_epi32(load(parent), totals));
        path->ok += MR_TEMPLATE_WAITING;
        path->total_sum += sums.total;
        path->self_sum += sums.self;
        path->zeros += MR_TEMPLATE_WAITING - (uint32_t)_mm_popcnt_u32(timed);
        if (MR_UNLIKELY(is_new(path->total, totals) | is_new(path->self, selfs)))
            widen(path, calls[i].totals, child[i]);
        _mm256_storeu_si256(
            (__m256i *)(void *)places[binned],
            _mm256_mask_add_epi32(nowhere, timed, bins_of(&below, &bounds, totals),
                                  in_all(path->bins.offset - path->bins.first)));
        MR_PREFETCH_WRITE(reduce->bins.counts + places[binned][0]);
        binned += timed != 0;
    }
    return binned;
}

/* The words of eight events; of fewer, with 0 for the others. */
static MR_ALWAYS_INLINE __m512i words_of(const struct mr_event *events, uint32_t count)
{
    const __m512i words = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    uint32_t halves;

    if (MR_LIKELY(count >= 8))
        return _mm512_permutex2var_epi64(_mm512_loadu_si512(events), words,
                                         _mm512_loadu_si512(events + 4));
    halves = (1u << 2 * count) - 1;
    return _mm512_permutex2var_epi64(
        _mm512_maskz_loadu_epi64((__mmask8)halves, events), words,
        _mm512_maskz_loadu_epi64((__mmask8)(halves >> 8), events + 4));
}

/* Calls of the same site lie in the one that ends, or end with it: the general case. */
static MR_NOINLINE uint32_t find_nested_end(uint32_t closes, uint32_t opens,
                                            uint32_t *depth)
{
    for (uint32_t place = 0; place < 8; place++) {
        *depth += opens >> place & 1;
        *depth -= closes >> place & 1;
        if (*depth == 0)
            return place;
    }
    return 8;
}

/* Of eight events the one that ends the call, `*depth` calls of its site being open; 8: none, and `*depth` are open behind them. */
static MR_ALWAYS_INLINE uint32_t find_end(uint32_t closes, uint32_t opens,
                                          uint32_t *depth)
{
    const uint32_t before = closes ? (closes & (0 - closes)) - 1 : UINT8_MAX;

    if (MR_UNLIKELY(*depth > 1 || opens & before))
        return find_nested_end(closes, opens, depth);
    return (uint32_t)_mm_popcnt_u32(before);
}

/* Modulo 2^64: _mm512_reduce_add_epi64() adds signed numbers, which may not overflow. */
static MR_ALWAYS_INLINE uint64_t sum_all(__m512i values)
{
    const __m256i four = _mm256_add_epi64(_mm512_castsi512_si256(values),
                                          _mm512_extracti64x4_epi64(values, 1));
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));

    return (uint64_t)_mm_cvtsi128_si64(two) + (uint64_t)_mm_extract_epi64(two, 1);
}

struct mr_template_key mr_templates_sum_wide(const struct mr_templates *templates,
                                             const struct mr_event *events,
                                             uint32_t count)
{
    const __m512i factors = _mm512_loadu_si512(templates->factors);
    const __m512i open = _mm512_set1_epi64(events[0].site);
    const __m512i close =
        _mm512_set1_epi64((int64_t)mr_open_call_closes(events[0].site, 0));
    const __m512i no_root = _mm512_set1_epi64((int64_t) ~((uint64_t)MR_EVENT_ROOT << 48));
    __m512i sums = _mm512_setzero_si512();
    uint32_t depth = 1;

    for (uint32_t at = 1; at < count; at += 8) {
        const __m512i words = words_of(events + at, count - at);
        const __mmask8 closes =
            _mm512_testn_epi64_mask(_mm512_xor_si512(words, close), no_root);
        const __mmask8 opens = _mm512_cmpeq_epi64_mask(words, open);
        const uint32_t place = find_end(closes, opens, &depth);
        const __mmask8 inside = (__mmask8)((1u << place) - 1);

        sums = _mm512_mullo_epi64(
            _mm512_add_epi64(sums, _mm512_maskz_mov_epi64(inside, words)), factors);
        if (place < 8)
            return (struct mr_template_key){sum_all(sums), at + place + 1};
    }
    return (struct mr_template_key){0, 0};
}

bool mr_templates_is_like_wide(const uint64_t *words, const struct mr_event *events,
                               uint32_t count)
{
    const uint32_t last = count - 1;
    uint32_t at = 1;

    for (; last - at >= 8; at += 8)
        if (_mm512_cmpneq_epi64_mask(words_of(events + at, 8),
                                     _mm512_loadu_si512(words + at)))
            return false;
    return _mm512_mask_cmpneq_epi64_mask((__mmask8)((1u << (last - at)) - 1),
                                         words_of(events + at, last - at),
                                         _mm512_loadu_si512(words + at)) == 0;
}
