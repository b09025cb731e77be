/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled for AVX-512 (pipeline/CMakeLists.txt). What waits of a template's calls, eight totals at once: the tables that find
 * their bins stay in registers.
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

/* For all else wider ones are of no more use. */
const struct mr_template_vectors mr_template_vectors_wider = {
    gain, mr_template_find_part_wide, mr_template_sum_wide, mr_template_codes_wide,
    mr_template_fill_wide};
