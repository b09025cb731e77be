/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum of long inputs, compiled for AVX2 (base/CMakeLists.txt): the same numbers from wider registers. */
#include "base/hash_private.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t mr_hash64_wide(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, size, seed);
}
