/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled for AVX2 (pipeline/CMakeLists.txt). As reduce_templates_wider.c, where there are no registers for whole tables: those
 * that find bins are looked up by bytes and by eighths.
 */
#include "pipeline/filters/reduce_templates_part.h"
#include "pipeline/filters/reduce_templates_vectors.h"

static_assert(MR_EVENT_CLOSE == 1 && (uint32_t)MR_EVENT_ROOT << 16 << 13 == MR_CODE_ROOT,
              "mr_template_codes_wide() shifts them");

/* Of an event, in each trace. */
typedef int32_t mr_template_times[MR_TEMPLATE_WAITING];

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

static MR_ALWAYS_INLINE uint32_t bits_of(__m256i signs)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(signs));
}

/* Of four, the first `count`. */
static MR_ALWAYS_INLINE __m256i first_of(__m256i values, uint32_t count)
{
    return _mm256_and_si256(values, _mm256_cmpgt_epi64(_mm256_set1_epi64x(count),
                                                       _mm256_setr_epi64x(0, 1, 2, 3)));
}

/* mr_template_product() of four. */
static MR_ALWAYS_INLINE __m256i products(const uint64_t *keys, __m256i codes)
{
    const __m256i sums =
        _mm256_add_epi32(codes, _mm256_loadu_si256((const __m256i *)(const void *)keys));

    return _mm256_mul_epu32(sums, _mm256_srli_epi64(sums, 32));
}

struct mr_template_key mr_template_sum_wide(const struct mr_templates *templates,
                                            const uint32_t *codes, uint32_t count)
{
    const uint64_t *key = &templates->keys[1];
    const __m256i open = in_all(codes[0] & ~MR_CODE_ROOT);
    const __m256i close = in_all(mr_code_close_of(codes[0]));
    __m256i sums = _mm256_setzero_si256();
    uint32_t depth = 1;

    for (uint32_t at = 1; at < count; at += MR_CODE_BLOCK, key += MR_CODE_BLOCK / 2) {
        const __m256i block = load_lanes((const int32_t *)(codes + at));
        const __m256i is_open = _mm256_cmpeq_epi32(block, open);
        const __m256i is_close =
            _mm256_cmpeq_epi32(_mm256_andnot_si256(in_all(MR_CODE_ROOT), block), close);
        const __m256i any = _mm256_or_si256(is_open, is_close);
        const __m256i shares = products(key, block);

        if (MR_UNLIKELY(!_mm256_testz_si256(any, any))) {
            uint32_t place = find_end(bits_of(is_close), bits_of(is_open), &depth);

            if (place < MR_CODE_BLOCK && (place % 2 || at + place >= count))
                break; /* not in order, or behind what is at hand */
            if (place < MR_CODE_BLOCK)
                return (struct mr_template_key){
                    sum_of_four(_mm256_add_epi64(sums, first_of(shares, place / 2))),
                    at + place + 1};
        }
        sums = _mm256_add_epi64(sums, shares);
    }
    return (struct mr_template_key){0, 0};
}

/* The low halves of eight words, or the high ones. */
static MR_ALWAYS_INLINE __m256i pick(__m256i even, __m256i odd, int which)
{
    const __m256 low = _mm256_castsi256_ps(even), high = _mm256_castsi256_ps(odd);

    return _mm256_castps_si256(
        which == 0 ? _mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0))
                   : _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
}

uint32_t mr_template_codes_wide(const struct mr_event *events, uint32_t count,
                                uint32_t *codes)
{
    const __m256i known = in_all((uint32_t)MR_EVENT_ROOT << 16 | MR_EVENT_CLOSE);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    uint32_t done = 0;

    for (; count - done >= MR_CODE_BLOCK; done += MR_CODE_BLOCK) {
        const __m256i *at = (const __m256i *)(const void *)(events + done);
        const __m256i words[2] = {
            /* without their times */
            _mm256_unpackhi_epi64(_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)),
            _mm256_unpackhi_epi64(_mm256_loadu_si256(at + 2),
                                  _mm256_loadu_si256(at + 3))};
        const __m256i sites = pick(words[0], words[1], 0);
        const __m256i kinds = pick(words[0], words[1], 1); /* and flags */
        const __m256i is_call =
            _mm256_cmpeq_epi32(_mm256_andnot_si256(known, kinds), _mm256_setzero_si256());
        const __m256i marks = _mm256_or_si256(
            _mm256_slli_epi32(kinds, 31),
            _mm256_and_si256(_mm256_slli_epi32(kinds, 13), in_all(MR_CODE_ROOT)));
        const __m256i calls = _mm256_or_si256(sites, marks);
        const __m256i any =
            _mm256_or_si256(calls, _mm256_andnot_si256(is_call, in_all(MR_CODE_OTHER)));

        store_lanes(codes + done, _mm256_permutevar8x32_epi32(any, order));
    }
    return done;
}

/* The times of eight events in eight traces: of each event those of all traces. */
static MR_ALWAYS_INLINE void turn(const uint32_t *times, size_t size,
                                  mr_template_times *events)
{
    __m256i rows[8], pairs[8], fours[8];

    for (size_t i = 0; i < 8; i++)
        rows[i] = load_lanes((const int32_t *)(times + i * size));
    for (size_t i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4)
        for (size_t j = 0; j < 2; j++) {
            fours[i + 2 * j] = _mm256_unpacklo_epi64(pairs[i + j], pairs[i + 2 + j]);
            fours[i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[i + j], pairs[i + 2 + j]);
        }
    for (size_t i = 0; i < 4; i++) {
        store_lanes(events[i], _mm256_permute2x128_si256(fours[i], fours[4 + i], 0x20));
        store_lanes(events[4 + i],
                    _mm256_permute2x128_si256(fours[i], fours[4 + i], 0x31));
    }
}

bool mr_template_fill_wide(struct mr_template_call *calls, uint32_t count,
                           const uint32_t *times)
{
    const size_t size = 2 * (size_t)count;
    mr_template_times events[MR_TEMPLATE_EVENTS_MAX];
    __m256i bad = _mm256_setzero_si256();

    static_assert(MR_TEMPLATE_EVENTS_MAX % 8 == 0, "all of the last eight have room");
    for (size_t i = 0; i < size; i += 8)
        turn(times + i, size, events + i);
    for (uint32_t i = 0; i < count; i++) {
        struct mr_template_call *call = &calls[i];
        const __m256i totals =
            _mm256_sub_epi32(load_lanes(events[mr_template_place(call->exit)]),
                             load_lanes(events[mr_template_place(call->enter)]));
        const __m256i no_time = _mm256_cmpeq_epi32(totals, _mm256_setzero_si256());
        const struct mr_known known = {.low = call->low, .width = call->width};

        bad = _mm256_or_si256(bad, _mm256_andnot_si256(no_time, is_new(known, totals)));
        store_lanes(call->totals, totals);
    }
    return _mm256_testz_si256(bad, bad);
}

struct mr_template *mr_template_find_part_wide(struct mr_reduce *reduce, uint32_t path,
                                               const uint32_t *codes, uint32_t count)
{
    return mr_template_find_part(reduce, path, codes, count);
}

const struct mr_template_vectors mr_template_vectors_wide = {
    gain, mr_template_find_part_wide, mr_template_sum_wide, mr_template_codes_wide,
    mr_template_fill_wide};
