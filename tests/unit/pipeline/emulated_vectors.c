/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filters/reduce_templates_wider.c with its AVX-512 instructions emulated (SIMDe), for processors that do not have them: else
 * nobody would notice there what a change does to it. Where they are missing in Debian 12's SIMDe, here by their definition.
 */
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/avx512.h>

#include <string.h>

#include "support_vectors.h"

#ifndef __mmask8
#define __mmask8 simde__mmask8
#endif

#define LANES 8

struct lanes32 {
    uint32_t value[LANES];
};

static struct lanes32 lanes32_of(__m256i vector)
{
    struct lanes32 lanes;

    memcpy(&lanes, &vector, sizeof(lanes));
    return lanes;
}

static __mmask8 emulate_cmpge_epu32(__m256i a, __m256i b)
{
    const struct lanes32 left = lanes32_of(a), right = lanes32_of(b);
    uint32_t mask = 0;

    for (int i = 0; i < LANES; i++)
        mask |= (uint32_t)(left.value[i] >= right.value[i]) << i;
    return (__mmask8)mask;
}

static __mmask8 emulate_cmpgt_epi32(__m256i a, __m256i b)
{
    const struct lanes32 left = lanes32_of(a), right = lanes32_of(b);
    uint32_t mask = 0;

    for (int i = 0; i < LANES; i++)
        mask |= (uint32_t)((int32_t)left.value[i] > (int32_t)right.value[i]) << i;
    return (__mmask8)mask;
}

static __m256i emulate_lzcnt_epi32(__m256i a)
{
    struct lanes32 lanes = lanes32_of(a);
    __m256i result;

    for (int i = 0; i < LANES; i++) {
        uint32_t zeros = 0;

        while (zeros < 32 && !(lanes.value[i] << zeros >> 31))
            zeros++;
        lanes.value[i] = zeros;
    }
    memcpy(&result, &lanes, sizeof(result));
    return result;
}

static __m512i emulate_cvtepu8_epi32(__m128i a)
{
    uint32_t wide[16];
    uint8_t bytes[16];
    __m512i result;

    memcpy(bytes, &a, sizeof(bytes));
    for (int i = 0; i < 16; i++)
        wide[i] = bytes[i];
    memcpy(&result, wide, sizeof(result));
    return result;
}

/* Some of them are macros of the compiler. */
#undef _mm256_cmpge_epu32_mask
#undef _mm256_cmpgt_epi32_mask
#undef _mm256_lzcnt_epi32
#undef _mm512_cvtepu8_epi32
#define _mm256_cmpge_epu32_mask(a, b) emulate_cmpge_epu32((a), (b))
#define _mm256_cmpgt_epi32_mask(a, b) emulate_cmpgt_epi32((a), (b))
#define _mm256_lzcnt_epi32(a) emulate_lzcnt_epi32(a)
#define _mm512_cvtepu8_epi32(a) emulate_cvtepu8_epi32(a)

#define mr_template_vectors_wider test_vectors_emulated
#include "pipeline/filters/reduce_templates_wider.c"
