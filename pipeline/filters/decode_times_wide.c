/* SPDX-License-Identifier: Apache-2.0 */
/* decode_times.c with 256-bit vectors, eight words in one pass, compiled for AVX2 (pipeline/CMakeLists.txt). */
#include "pipeline/filters/decode_run.h"

#include <immintrin.h>

#define GROUP 8u

static MR_ALWAYS_INLINE __m256i load(const void *at)
{
    return _mm256_loadu_si256((const __m256i *)at);
}

/* Four words each: the lower halves of all, or the upper ones. */
static MR_ALWAYS_INLINE __m256i halves(__m256i first, __m256i second, bool upper)
{
    const __m256 left = _mm256_castsi256_ps(first), right = _mm256_castsi256_ps(second);
    const __m256 mixed = upper ? _mm256_shuffle_ps(left, right, _MM_SHUFFLE(3, 1, 3, 1))
                               : _mm256_shuffle_ps(left, right, _MM_SHUFFLE(2, 0, 2, 0));

    return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), _MM_SHUFFLE(3, 1, 2, 0));
}

/* Each value's predecessor; that of the first is the last of `before`. */
static MR_ALWAYS_INLINE __m256i before_each(__m256i before, __m256i now)
{
    return _mm256_alignr_epi8(now, _mm256_permute2x128_si256(before, now, 0x21), 12);
}

/* Of the lower halves of four lanes of 64 bits. */
static MR_ALWAYS_INLINE __m256i tell_ns(const struct mr_words_base *base, __m256i now)
{
    const __m256i mult = _mm256_set1_epi64x(base->mult);
    const __m256i part = _mm256_set1_epi64x((long long)base->part);

    return _mm256_srl_epi64(_mm256_add_epi64(part, _mm256_mul_epu32(now, mult)),
                            _mm_cvtsi32_si128((int)base->shift));
}

static MR_ALWAYS_INLINE uint32_t or_of_all(__m256i values)
{
    __m128i four =
        _mm_or_si128(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));

    four = _mm_or_si128(four, _mm_srli_si128(four, 8));
    four = _mm_or_si128(four, _mm_srli_si128(four, 4));
    return (uint32_t)_mm_cvtsi128_si32(four);
}

void mr_words_times_wide(const struct mr_words_base *base, const uint32_t *wire,
                         const uint8_t *words, uint32_t count, struct mr_words_seen *seen,
                         uint32_t *times)
{
    const struct mr_words_base constants = *base; /* `times` may be anything */
    const __m256i start = _mm256_set1_epi32((int)constants.start);
    __m256i before = _mm256_set1_epi32((int)seen->now), other = _mm256_setzero_si256(),
            bad = before;

    for (uint32_t i = 0; i < count; i += GROUP, words += (size_t)GROUP * MR_WORD_SIZE) {
        const __m256i first = load(words), second = load(words + sizeof(first));
        const __m256i now = _mm256_sub_epi32(halves(first, second, false), start);
        const __m256i even = tell_ns(&constants, now);
        const __m256i odd = tell_ns(&constants, _mm256_srli_epi64(now, 32));

        other = _mm256_or_si256(
            other, _mm256_xor_si256(halves(first, second, true), load(wire + i)));
        bad = _mm256_or_si256(
            bad, _mm256_or_si256(now, _mm256_sub_epi32(now, before_each(before, now))));
        _mm256_storeu_si256((__m256i *)(void *)(times + i),
                            _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa));
        before = now;
    }
    seen->other |= or_of_all(other);
    seen->bad |= or_of_all(bad);
    seen->now = (uint32_t)_mm256_extract_epi32(before, GROUP - 1);
}
