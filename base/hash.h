/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Non-cryptographic hashes of bytes, XXH3 of xxHash 0.8: the same on every machine and in
 * every version, so they may be stored and sent. 64 bits for checksums and tables, 128
 * bits for identities. Any thread, no memory. Specification: XXH3 as frozen in xxHash
 * v0.8.0 (github.com/Cyan4973/xxHash).
 *
 * Use:
 *     uint64_t checksum = mr_hash64(mr_span_of(payload, payload_size));
 *     struct mr_id site = mr_hash128(mr_span_of(key, key_size));
 */
#ifndef MR_BASE_HASH_H
#define MR_BASE_HASH_H

#include "base/id.h"
#include "base/span.h"

#include <stdint.h>

/* XXH3_64bits of the bytes; seed 0. An empty span has a hash too. */
uint64_t mr_hash64(struct mr_span span);
uint64_t mr_hash64_seed(struct mr_span span, uint64_t seed);

/* XXH3_128bits of the bytes; seed 0. hi is the high half. */
struct mr_id mr_hash128(struct mr_span span);
struct mr_id mr_hash128_seed(struct mr_span span, uint64_t seed);

/*
 * A random odd number, for tables in memory whose keys a stranger chooses: what is multiplied by it before its upper bits choose
 * a slot cannot be made to meet in one. Any thread.
 */
uint64_t mr_hash_key(void);

#endif
