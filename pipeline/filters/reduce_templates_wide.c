/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled for AVX2 (pipeline/CMakeLists.txt). As reduce_templates_wider.c, where there are no registers for whole tables: those
 * that find bins are looked up by bytes and by eighths.
 */
#include "pipeline/filters/reduce_templates_vectors.h"

#define FLOAT_BIAS 127u /* IEEE 754: power + 127, 23 bits of fraction */

struct tables {
    __m256i below[4]; /* 16 entries of a byte in each half */
    __m256i ends[4];
};

static MR_ALWAYS_INLINE struct tables load_tables(const struct mr_template_parts *parts)
{
    struct tables tables;

    for (size_t i = 0; i < 4; i++) {
        tables.below[i] = _mm256_broadcastsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)&parts->below[16 * i]));
        tables.ends[i] = load_lanes((const int32_t *)&parts->ends[8 * i]);
    }
    return tables;
}

/* Of 64 parts which bin begins before or with them. */
static MR_ALWAYS_INLINE __m256i below(const struct tables *tables, __m256i parts)
{
    const __m256i at =
        _mm256_or_si256(parts, in_all(0x80808000));         /* the other bytes: 0 */
    const __m256i is_odd = _mm256_slli_epi32(parts, 7 - 4); /* the sixteen it is in */
    const __m256i low =
        _mm256_blendv_epi8(_mm256_shuffle_epi8(tables->below[0], at),
                           _mm256_shuffle_epi8(tables->below[1], at), is_odd);
    const __m256i high =
        _mm256_blendv_epi8(_mm256_shuffle_epi8(tables->below[2], at),
                           _mm256_shuffle_epi8(tables->below[3], at), is_odd);

    return _mm256_blendv_epi8(low, high, _mm256_slli_epi32(parts, 7 - 5));
}

static MR_ALWAYS_INLINE __m256i blend(__m256i no, __m256i yes, __m256i signs)
{
    return _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), _mm256_castsi256_ps(signs)));
}

/* Of 32 bins the last fraction in them. */
static MR_ALWAYS_INLINE __m256i end_of(const struct tables *tables, __m256i bins)
{
    const __m256i is_odd = _mm256_slli_epi32(bins, 31 - 3); /* the eight it is in */
    const __m256i low = blend(_mm256_permutevar8x32_epi32(tables->ends[0], bins),
                              _mm256_permutevar8x32_epi32(tables->ends[1], bins), is_odd);
    const __m256i high =
        blend(_mm256_permutevar8x32_epi32(tables->ends[2], bins),
              _mm256_permutevar8x32_epi32(tables->ends[3], bins), is_odd);

    return blend(low, high, _mm256_slli_epi32(bins, 31 - 4));
}

/* mr_bin_of() + `offset`; of 0 any. Below 2^31. */
static MR_ALWAYS_INLINE __m256i places_of(const struct tables *tables, __m256i totals,
                                          uint32_t offset)
{
    /* The bit below the highest is off, so that no float is rounded up to the next power. */
    const __m256i bits = _mm256_castps_si256(
        _mm256_cvtepi32_ps(_mm256_andnot_si256(_mm256_srli_epi32(totals, 1), totals)));
    const __m256i power = _mm256_srli_epi32(bits, 23); /* + FLOAT_BIAS */
    const __m256i fraction = _mm256_and_si256(
        _mm256_sllv_epi32(totals, _mm256_sub_epi32(in_all(FLOAT_BIAS + 31), power)),
        in_all(INT32_MAX));
    const __m256i bin = below(tables, _mm256_srli_epi32(fraction, 25));
    const __m256i is_next = _mm256_cmpgt_epi32(fraction, end_of(tables, bin));
    const __m256i is_power = _mm256_cmpeq_epi32(fraction, _mm256_setzero_si256());
    const __m256i first = _mm256_add_epi32(_mm256_slli_epi32(power, 5),
                                           in_all(offset + 1 - 32 * FLOAT_BIAS));

    return _mm256_add_epi32(_mm256_add_epi32(first, bin),
                            _mm256_sub_epi32(is_power, is_next));
}

/* Bits where a value is not known. */
static MR_ALWAYS_INLINE __m256i is_new(struct mr_known known, __m256i values)
{
    const __m256i over = _mm256_sub_epi32(values, in_all(known.low));

    return _mm256_cmpeq_epi32(_mm256_max_epu32(over, in_all(known.width)), over);
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
        const __m256i no_time = _mm256_cmpeq_epi32(totals, _mm256_setzero_si256());
        const uint32_t zeros = (uint32_t)_mm_popcnt_u32(
            (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(no_time)));
        const __m256i news =
            _mm256_or_si256(is_new(path->total, totals), is_new(path->self, selfs));
        int32_t *parent = child[calls[i].parent];
        __m256i at;

        store_lanes(parent, _mm256_add_epi32(load_lanes(parent), totals));
        count_sums(path, sums_of(totals, selfs), zeros);
        if (MR_UNLIKELY(!_mm256_testz_si256(news, news)))
            widen(path, calls[i].totals, child[i]);
        at = _mm256_blendv_epi8(
            places_of(&tables, totals, path->bins.offset - path->bins.first), nowhere,
            no_time);
        store_lanes(places[binned], at);
        MR_PREFETCH_WRITE(
            mr_bin_pool_at(&reduce->bins, (uint32_t)_mm256_cvtsi256_si32(at)));
        binned += zeros < MR_TEMPLATE_WAITING;
    }
    return binned;
}

/* Of eight events, in their order. */
struct words {
    __m256i low, high;
};

/* Of four halves of two events. */
static MR_ALWAYS_INLINE __m256i order(__m256i first, __m256i second)
{
    return _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(first, second),
                                    _MM_SHUFFLE(3, 1, 2, 0));
}

static MR_ALWAYS_INLINE __m256i words_of(const struct mr_event *events)
{
    return order(_mm256_loadu_si256((const __m256i *)(const void *)events),
                 _mm256_loadu_si256((const __m256i *)(const void *)(events + 2)));
}

/* Two events, of which `count` are there; the others are 0. */
static MR_ALWAYS_INLINE __m256i load_some(const struct mr_event *events, int64_t count)
{
    const __m256i is_there =
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 0, 1, 1));

    return _mm256_maskload_epi64((const long long *)(const void *)events, is_there);
}

static MR_NOINLINE struct words some_words_of(const struct mr_event *events,
                                              uint32_t count)
{
    const int64_t left = count;

    return (struct words){
        order(load_some(events, left), load_some(events + 2, left - 2)),
        order(load_some(events + 4, left - 4), load_some(events + 6, left - 6))};
}

static MR_ALWAYS_INLINE uint32_t bits_of(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(low)) |
           (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(high)) << 4;
}

/* mr_template_product() of four. */
static MR_ALWAYS_INLINE __m256i products(const uint64_t *keys, __m256i words)
{
    const __m256i sums =
        _mm256_add_epi32(words, _mm256_loadu_si256((const __m256i *)(const void *)keys));

    return _mm256_mul_epu32(sums, _mm256_srli_epi64(sums, 32));
}

/* What to look for: words of enters and exits of a site. */
struct ends {
    __m256i open, close, no_root;
};

/* As find_end(). */
static MR_ALWAYS_INLINE uint32_t find_end_of(const struct ends *ends, struct words words,
                                             uint32_t *depth)
{
    const __m256i close_low =
        _mm256_cmpeq_epi64(_mm256_and_si256(words.low, ends->no_root), ends->close);
    const __m256i close_high =
        _mm256_cmpeq_epi64(_mm256_and_si256(words.high, ends->no_root), ends->close);
    const __m256i open_low = _mm256_cmpeq_epi64(words.low, ends->open);
    const __m256i open_high = _mm256_cmpeq_epi64(words.high, ends->open);
    const __m256i any = _mm256_or_si256(_mm256_or_si256(close_low, close_high),
                                        _mm256_or_si256(open_low, open_high));

    if (MR_LIKELY(_mm256_testz_si256(any, any)))
        return MR_TEMPLATE_BLOCK;
    return find_end(bits_of(close_low, close_high), bits_of(open_low, open_high), depth);
}

/* Those of the first `count` of eight. */
static MR_ALWAYS_INLINE __m256i sum_some(__m256i low, __m256i high, uint32_t count)
{
    const __m256i counts = _mm256_set1_epi64x(count);
    const __m256i in_low = _mm256_cmpgt_epi64(counts, _mm256_setr_epi64x(0, 1, 2, 3));
    const __m256i in_high = _mm256_cmpgt_epi64(counts, _mm256_setr_epi64x(4, 5, 6, 7));

    return _mm256_add_epi64(_mm256_and_si256(low, in_low),
                            _mm256_and_si256(high, in_high));
}

static struct mr_template_key sum(const struct mr_templates *templates,
                                  const struct mr_event *events, uint32_t count)
{
    const struct ends ends = {
        _mm256_set1_epi64x(events[0].site),
        _mm256_set1_epi64x((int64_t)mr_open_call_closes(events[0].site, 0)),
        _mm256_set1_epi64x((int64_t) ~((uint64_t)MR_EVENT_ROOT << 48))};
    __m256i sums = _mm256_setzero_si256();
    uint32_t depth = 1;

    for (uint32_t at = 1; at < count; at += MR_TEMPLATE_BLOCK) {
        const struct words words =
            MR_LIKELY(count - at >= MR_TEMPLATE_BLOCK)
                ? (struct words){words_of(events + at), words_of(events + at + 4)}
                : some_words_of(events + at, count - at);
        const __m256i low = products(templates->keys + at, words.low);
        const __m256i high = products(templates->keys + at + 4, words.high);
        const uint32_t place = find_end_of(&ends, words, &depth);

        if (place < MR_TEMPLATE_BLOCK)
            return (struct mr_template_key){
                sum_of_four(_mm256_add_epi64(sums, sum_some(low, high, place))),
                at + place + 1};
        sums = _mm256_add_epi64(sums, _mm256_add_epi64(low, high));
    }
    return (struct mr_template_key){0, 0};
}

static bool is_like(const uint64_t *words, const struct mr_event *events, uint32_t count)
{
    const uint32_t last = count - 1;
    uint32_t at = 1;

    for (; last - at >= 4; at += 4) {
        const __m256i others =
            _mm256_loadu_si256((const __m256i *)(const void *)(words + at));
        const __m256i differ = _mm256_xor_si256(words_of(events + at), others);

        if (!_mm256_testz_si256(differ, differ))
            return false;
    }
    for (; at < last; at++)
        if (mr_event_word(&events[at]) != words[at])
            return false;
    return true;
}

const struct mr_template_vectors mr_template_vectors_wide = {gain, sum, is_like};
