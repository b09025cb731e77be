/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot loop of decode with 256-bit vectors, four words at a time, compiled for AVX2 (pipeline/CMakeLists.txt). A word's slot
 * is loaded from both of its places and chosen without a branch: what programs call next is guessed wrong too often. Places are
 * made by vectors; the loads are scalar ones, as gathers are slower (docs/why/2026-11-20-analysis.md).
 */
#include "pipeline/filters/decode_run.h"

#include <assert.h>
#include <immintrin.h>

#include "net/bytes.h"
#include "net/wire.h"

#define GROUP 4u
#define AHEAD 2048u /* bytes: processors do not look past a page for what comes next */

static_assert(sizeof(struct mr_event) == 16 && offsetof(struct mr_event, site) == 8 &&
                  offsetof(struct mr_event, kind) == 12 && MR_EVENT_EXIT == 1,
              "see store()");

/* A block's constants, in all lanes. */
struct lanes {
    __m256i start, part, ns, mult;
    __m256i keys; /* of the map's places, in the lower and upper halves */
    __m128i shift, map_shift;
};

static MR_ALWAYS_INLINE __m256i in_all(uint64_t value)
{
    return _mm256_set1_epi64x((long long)value);
}

static MR_ALWAYS_INLINE struct lanes lanes_of(const struct mr_words_base *base,
                                              const struct mr_site_map *map)
{
    return (struct lanes){.start = in_all(base->start),
                          .part = in_all(base->part),
                          .ns = in_all(base->ns),
                          .mult = in_all(base->mult),
                          .keys = in_all(map->key | (uint64_t)map->other_key << 32),
                          .shift = _mm_cvtsi32_si128((int)base->shift),
                          .map_shift = _mm_cvtsi32_si128((int)map->shift)};
}

static MR_ALWAYS_INLINE __m256i load(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

static MR_ALWAYS_INLINE __m256i four(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return _mm256_set_epi64x((long long)d, (long long)c, (long long)b, (long long)a);
}

/* Both places of the four words' sites, as mr_site_map_place() has them: of a lane the first is the lower half. */
static MR_ALWAYS_INLINE __m256i places_of(const struct lanes *lanes, __m256i sites)
{
    return _mm256_srl_epi32(_mm256_mullo_epi32(sites, lanes->keys), lanes->map_shift);
}

/* The slots of the four words; false where one of them is in no place. */
static MR_ALWAYS_INLINE bool find(const uint64_t *slots, const struct lanes *lanes,
                                  __m256i words, __m256i *found)
{
    __m256i sites =
        _mm256_and_si256(_mm256_shuffle_epi32(words, 0xf5), /* its upper half twice */
                         _mm256_set1_epi32(MR_WORD_SITE_MASK));
    _Alignas(__m256i) uint32_t at[2 * GROUP];

    _mm256_store_si256((__m256i *)(void *)at, places_of(lanes, sites));
    MR_KEEP_STORED(at); /* eight loads are faster than as many extracts */
    __m256i first = four(slots[at[0]], slots[at[2]], slots[at[4]], slots[at[6]]);
    __m256i other = four(slots[at[1]], slots[at[3]], slots[at[5]], slots[at[7]]);
    /* Upper halves alone count: what chooses and tests looks at bit 63. */
    __m256d is_first = _mm256_castsi256_pd(_mm256_cmpeq_epi32(first, sites));
    __m256d is_other = _mm256_castsi256_pd(_mm256_cmpeq_epi32(other, sites));

    *found = _mm256_castpd_si256(_mm256_blendv_pd(_mm256_castsi256_pd(other),
                                                  _mm256_castsi256_pd(first), is_first));
    return _mm256_movemask_pd(_mm256_or_pd(is_first, is_other)) == 0xf;
}

static MR_ALWAYS_INLINE __m256i tell_ns(const struct lanes *lanes, __m256i now)
{
    __m256i product = _mm256_add_epi64(lanes->part, _mm256_mul_epu32(now, lanes->mult));

    return _mm256_add_epi64(lanes->ns, _mm256_srl_epi64(product, lanes->shift));
}

/* Of an event the first half is the time; the second one the site, whether it is an exit, and no flags. */
static MR_ALWAYS_INLINE void store(struct mr_event *out, __m256i words, __m256i slots,
                                   __m256i ns)
{
    __m256i exits = _mm256_and_si256(_mm256_srli_epi64(words, 30), in_all(1ull << 32));
    __m256i calls = _mm256_or_si256(_mm256_and_si256(slots, in_all(UINT32_MAX)), exits);
    __m256i even = _mm256_unpacklo_epi64(ns, calls);
    __m256i odd = _mm256_unpackhi_epi64(ns, calls);
    __m256i *to = (__m256i *)(void *)out;

    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

uint32_t mr_words_read_wide(struct mr_words *words, struct mr_event *out, uint32_t count)
{
    const uint64_t *slots = words->map.slots; /* in registers: `out` may be anything */
    const struct mr_words_base base = mr_words_base(&words->clock, words->ticks);
    const struct lanes lanes = lanes_of(&base, &words->map);
    const uint8_t *at = words->at;
    __m256i bad = _mm256_setzero_si256(), four_words, before, found;
    uint32_t done = 0;

    if (count < GROUP || !slots)
        return 0;
    four_words = load(at);
    before = _mm256_permute4x64_epi64(four_words, 0x90); /* `now` tells of the first */
    while (MR_LIKELY(find(slots, &lanes, four_words, &found))) {
        __m256i now = _mm256_sub_epi32(four_words, lanes.start);

        MR_PREFETCH_READ((const void *)((uintptr_t)at + AHEAD));
        bad = _mm256_or_si256(bad, now);
        bad = _mm256_or_si256(bad, _mm256_sub_epi32(four_words, before)); /* bit 31 */
        store(out + done, four_words, found, tell_ns(&lanes, now));
        done += GROUP;
        at += (size_t)GROUP * MR_WORD_SIZE;
        if (count - done < GROUP)
            break;
        four_words = load(at);
        before = load(at - MR_WORD_SIZE);
    }
    bad = _mm256_and_si256(bad, in_all(UINT64_C(1) << 31));
    if (MR_UNLIKELY(!_mm256_testz_si256(bad, bad)))
        return 0;
    if (done > 0)
        words->ticks += (uint32_t)mr_get_u64(at - MR_WORD_SIZE) - base.start;
    words->at = at;
    return done;
}
