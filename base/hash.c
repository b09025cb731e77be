/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "base/compiler.h"
#include "base/hash_private.h"

/* Header-only, so that the probe needs no shared library for it. */
#define XXH_INLINE_ALL
#include <xxhash.h>

/* xxHash reads nothing of an empty input, but wants a pointer. */
static const void *bytes_of(struct mr_span span)
{
    return span.size ? (const void *)span.data : "";
}

uint64_t mr_hash64(struct mr_span span)
{
    return XXH3_64bits(bytes_of(span), span.size);
}

uint64_t mr_hash64_seed(struct mr_span span, uint64_t seed)
{
#if MR_HAS_WIDE_BUILD
    if (span.size >= MR_HASH_WIDE_MIN && MR_CPU_IS_WIDE())
        return mr_hash64_wide(span.data, span.size, seed);
#endif
    return XXH3_64bits_withSeed(bytes_of(span), span.size, seed);
}

static struct mr_id to_id(XXH128_hash_t hash)
{
    return (struct mr_id){.hi = hash.high64, .lo = hash.low64};
}

struct mr_id mr_hash128(struct mr_span span)
{
    return to_id(XXH3_128bits(bytes_of(span), span.size));
}

struct mr_id mr_hash128_seed(struct mr_span span, uint64_t seed)
{
    return to_id(XXH3_128bits_withSeed(bytes_of(span), span.size, seed));
}

uint64_t mr_hash_key(void)
{
    struct mr_id random = {0, 0};

    if (mr_id_random(&random) != MR_OK) /* then where things lie in memory has to do */
        random.lo = (uint64_t)(uintptr_t)&random * UINT64_C(0x9e3779b97f4a7c15);
    return random.lo | 1;
}
