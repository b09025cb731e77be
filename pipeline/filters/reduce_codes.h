/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in 32 bits each, without their times: what templates are told apart by. Events are of 16 bytes, and what looks for a
 * template looks at many of them several times; as codes they are a quarter of that, and lie side by side. Not for others than reduce.
 *
 *     bit 31: it ends a call    bit 30: it is marked as a root    below: its site
 *
 * Of an event that is no call, or has any other flag, the code is MR_CODE_OTHER, which is that of no call. One thread.
 */
#ifndef MR_PIPELINE_FILTERS_REDUCE_CODES_H
#define MR_PIPELINE_FILTERS_REDUCE_CODES_H

#include <assert.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "pipeline/batch.h"
#include "pipeline/sites.h"

#define MR_CODE_CLOSE (UINT32_C(1) << 31)
#define MR_CODE_ROOT (UINT32_C(1) << 30)
#define MR_CODE_OTHER UINT32_MAX
#define MR_CODE_BLOCK 8u /* codes that are looked at together */

static_assert(MR_SITES_LIMIT_MAX < MR_CODE_ROOT, "sites leave the upper bits alone");

static MR_ALWAYS_INLINE uint32_t mr_code_of(const struct mr_event *event)
{
    if (event->kind > MR_EVENT_CLOSE || (event->flags & ~MR_EVENT_ROOT))
        return MR_CODE_OTHER;
    return event->site | (event->kind == MR_EVENT_CLOSE ? MR_CODE_CLOSE : 0) |
           (event->flags ? MR_CODE_ROOT : 0);
}

/* The code that ends a call which opens with `open`. */
static MR_ALWAYS_INLINE uint32_t mr_code_close_of(uint32_t open)
{
    return (open & ~MR_CODE_ROOT) | MR_CODE_CLOSE;
}

/* Whether `code` ends a root: it may have its mark, or not yet (pipeline/nesting.h). */
static MR_ALWAYS_INLINE bool mr_code_is_root_close(uint32_t code, uint32_t close)
{
    return (code & ~MR_CODE_ROOT) == close;
}

/* Two codes as one word, in memory's order. */
static MR_ALWAYS_INLINE uint64_t mr_code_pair(const uint32_t *codes)
{
    uint64_t pair;

    memcpy(&pair, codes, sizeof(pair));
    return pair;
}

/* Whether some of a block differ. In a file that is compiled for AVX2 a vector is compared. */
static MR_ALWAYS_INLINE bool mr_code_blocks_differ(const uint32_t *codes,
                                                   const uint32_t *others)
{
#if defined(__AVX2__)
    const __m256i differ =
        _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)codes),
                         _mm256_loadu_si256((const __m256i *)(const void *)others));

    return !_mm256_testz_si256(differ, differ);
#else
    uint64_t differ = 0;

    for (uint32_t i = 0; i < MR_CODE_BLOCK; i += 2)
        differ |= mr_code_pair(codes + i) ^ mr_code_pair(others + i);
    return differ != 0;
#endif
}

/* Whether `count` codes, a block or more, are these. The last ones differ most often. */
static MR_ALWAYS_INLINE bool mr_codes_are_like(const uint32_t *codes,
                                               const uint32_t *others, uint32_t count)
{
    uint32_t last = count - MR_CODE_BLOCK;

    if (mr_code_blocks_differ(codes + last, others + last))
        return false;
    for (uint32_t at = 0; at < last; at += MR_CODE_BLOCK)
        if (mr_code_blocks_differ(codes + at, others + at))
            return false;
    return true;
}

#endif
