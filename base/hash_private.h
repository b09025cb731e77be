/* SPDX-License-Identifier: Apache-2.0 */
/* Between hash.c and hash_wide.c; not for others. */
#ifndef MR_BASE_HASH_PRIVATE_H
#define MR_BASE_HASH_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

/* Shorter inputs take another way through XXH3, which wide registers do not help. */
#define MR_HASH_WIDE_MIN 512u

/* Where MR_CPU_IS_WIDE() alone. */
uint64_t mr_hash64_wide(const void *bytes, size_t size, uint64_t seed);

#endif
