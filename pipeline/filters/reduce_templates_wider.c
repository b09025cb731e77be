/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled for AVX-512 (pipeline/CMakeLists.txt). What waits of a template's calls, eight totals at once: the tables that find
 * their bins stay in registers. And what a call is, eight events at once.
 */
#include "pipeline/filters/reduce_templates_vectors.h"

struct tables {
    __m512i below[4];
    __m512i ends[2];
};

static MR_ALWAYS_INLINE struct tables load_tables(const struct mr_template_parts *parts)
{
    struct tables tables;

    for (size_t i = 0; i < 4; i++)
        tables.below[i] = _mm512_cvtepu8_epi32(
            _mm_loadu_si128((const __m128i *)(const void *)&parts->below[16 * i]));
    for (size_t i = 0; i < 2; i++)
        tables.ends[i] = _mm512_loadu_si512(&parts->ends[16 * i]);
    return tables;
}

static MR_ALWAYS_INLINE __m256i look_up(__m512i low, __m256i places, __m512i high)
{
    return _mm512_castsi512_si256(
        _mm512_permutex2var_epi32(low, _mm512_castsi256_si512(places), high));
}

/* Of 64 parts which bin begins before or with them. */
static MR_ALWAYS_INLINE __m256i below(const struct tables *tables, __m256i parts)
{
    return _mm256_mask_blend_epi32(_mm256_test_epi32_mask(parts, in_all(32)),
                                   look_up(tables->below[0], parts, tables->below[1]),
                                   look_up(tables->below[2], parts, tables->below[3]));
}

/* mr_bin_of() + `offset`; of 0 any. Below 2^31. */
static MR_ALWAYS_INLINE __m256i places_of(const struct tables *tables, __m256i totals,
                                          uint32_t offset)
{
    const __m256i shift = _mm256_lzcnt_epi32(totals);
    const __m256i fraction =
        _mm256_and_si256(_mm256_sllv_epi32(totals, shift), in_all(INT32_MAX));
    const __m256i bin = below(tables, _mm256_srli_epi32(fraction, 25));
    const __mmask8 is_next =
        _mm256_cmpgt_epi32_mask(fraction, look_up(tables->ends[0], bin, tables->ends[1]));
    const __mmask8 no_power = _mm256_test_epi32_mask(fraction, fraction);
    const __m256i first =
        _mm256_sub_epi32(in_all(offset + 31 * 32), _mm256_slli_epi32(shift, 5));
    const __m256i place = _mm256_add_epi32(first, bin);
    const __m256i next = _mm256_mask_add_epi32(place, no_power, place, in_all(1));

    return _mm256_mask_add_epi32(next, is_next, next, in_all(1));
}

static MR_ALWAYS_INLINE __mmask8 is_new(struct mr_known known, __m256i values)
{
    return _mm256_cmpge_epu32_mask(_mm256_sub_epi32(values, in_all(known.low)),
                                   in_all(known.width));
}

static uint32_t gain(struct mr_reduce *reduce, const struct mr_template_call *calls,
                     uint32_t count, mr_template_below *child, mr_template_places *places)
{
    const struct tables tables = load_tables(&reduce->templates.parts);
    const __m256i nowhere = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    uint32_t binned = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct mr_path *path = &reduce->paths.nodes[calls[i].path];
        const __m256i totals = load_lanes(calls[i].totals);
        const __m256i selfs = _mm256_sub_epi32(totals, load_lanes(child[i]));
        const __mmask8 timed = _mm256_test_epi32_mask(totals, totals);
        int32_t *parent = child[calls[i].parent];

        store_lanes(parent, _mm256_add_epi32(load_lanes(parent), totals));
        count_sums(path, sums_of(totals, selfs),
                   MR_TEMPLATE_WAITING - (uint32_t)_mm_popcnt_u32(timed));
        if (MR_UNLIKELY(is_new(path->total, totals) | is_new(path->self, selfs)))
            widen(path, calls[i].totals, child[i]);
        store_lanes(places[binned], _mm256_mask_mov_epi32(
                                        nowhere, timed,
                                        places_of(&tables, totals,
                                                  path->bins.offset - path->bins.first)));
        MR_PREFETCH_WRITE(mr_bin_pool_at(&reduce->bins, places[binned][0]));
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

/* mr_template_product() of eight. */
static MR_ALWAYS_INLINE __m512i products(const uint64_t *keys, __m512i words)
{
    const __m512i sums = _mm512_add_epi32(words, _mm512_loadu_si512(keys));

    return _mm512_mul_epu32(sums, _mm512_srli_epi64(sums, 32));
}

static MR_ALWAYS_INLINE uint64_t sum_all(__m512i values)
{
    return sum_of_four(_mm256_add_epi64(_mm512_castsi512_si256(values),
                                        _mm512_extracti64x4_epi64(values, 1)));
}

/* As find_end(). */
static MR_ALWAYS_INLINE uint32_t find_end_of(__mmask8 closes, __mmask8 opens,
                                             uint32_t *depth)
{
    if (MR_LIKELY((closes | opens) == 0))
        return MR_TEMPLATE_BLOCK;
    return find_end(closes, opens, depth);
}

static struct mr_template_key sum(const struct mr_templates *templates,
                                  const struct mr_event *events, uint32_t count)
{
    const __m512i open = _mm512_set1_epi64(events[0].site);
    const __m512i close =
        _mm512_set1_epi64((int64_t)mr_open_call_closes(events[0].site, 0));
    const __m512i no_root = _mm512_set1_epi64((int64_t) ~((uint64_t)MR_EVENT_ROOT << 48));
    __m512i sums = _mm512_setzero_si512();
    uint32_t depth = 1;

    for (uint32_t at = 1; at < count; at += MR_TEMPLATE_BLOCK) {
        const __m512i words = words_of(events + at, count - at);
        const __mmask8 closes =
            _mm512_testn_epi64_mask(_mm512_xor_si512(words, close), no_root);
        const __mmask8 opens = _mm512_cmpeq_epi64_mask(words, open);
        const __m512i shares = products(templates->keys + at, words);
        const uint32_t place = find_end_of(closes, opens, &depth);

        if (place < MR_TEMPLATE_BLOCK)
            return (struct mr_template_key){
                sum_all(_mm512_mask_add_epi64(sums, (__mmask8)((1u << place) - 1), sums,
                                              shares)),
                at + place + 1};
        sums = _mm512_add_epi64(sums, shares);
    }
    return (struct mr_template_key){0, 0};
}

static bool is_like(const uint64_t *words, const struct mr_event *events, uint32_t count)
{
    const uint32_t last = count - 1;
    uint32_t at = 1;

    for (; last - at >= MR_TEMPLATE_BLOCK; at += MR_TEMPLATE_BLOCK)
        if (_mm512_cmpneq_epi64_mask(words_of(events + at, MR_TEMPLATE_BLOCK),
                                     _mm512_loadu_si512(words + at)))
            return false;
    return _mm512_mask_cmpneq_epi64_mask((__mmask8)((1u << (last - at)) - 1),
                                         words_of(events + at, last - at),
                                         _mm512_loadu_si512(words + at)) == 0;
}

const struct mr_template_vectors mr_template_vectors_wider = {gain, sum, is_like};
