/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers of unwind information one by one. A read past the end gives 0 and makes
 * the reader one that failed; so a caller looks once, at the end. Any thread.
 *
 *     struct mr_unwind_bytes bytes = {.at = at, .end = end};
 *     offset = mr_unwind_uleb(&bytes) * step;
 *     if (bytes.has_failed) ...
 */
#ifndef MR_PROBE_UNWIND_BYTES_H
#define MR_PROBE_UNWIND_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct mr_unwind_bytes {
    const uint8_t *at, *end;
    bool has_failed;
};

static inline const uint8_t *mr_unwind_take(struct mr_unwind_bytes *bytes, uint64_t size)
{
    const uint8_t *at = bytes->at;

    if (size > (uint64_t)(bytes->end - at)) {
        bytes->has_failed = true;
        bytes->at = bytes->end;
        return NULL;
    }
    bytes->at += size;
    return at;
}

/* An unsigned number of 1, 2, 4 or 8 bytes. */
static inline uint64_t mr_unwind_fixed(struct mr_unwind_bytes *bytes, uint32_t size)
{
    const uint8_t *at = mr_unwind_take(bytes, size);
    uint64_t value = 0;

    if (at)
        memcpy(&value, at, size);
    return value;
}

static inline int64_t mr_unwind_fixed_signed(struct mr_unwind_bytes *bytes, uint32_t size)
{
    uint64_t value = mr_unwind_fixed(bytes, size);
    uint32_t shift = 64 - 8 * size;

    return (int64_t)(value << shift) >> shift;
}

/* LEB128; bits past 64 are left out. */
static inline uint64_t mr_unwind_uleb(struct mr_unwind_bytes *bytes)
{
    uint64_t value = 0;

    for (unsigned shift = 0; bytes->at < bytes->end; shift += 7) {
        uint8_t byte = *bytes->at++;

        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    bytes->has_failed = true;
    return 0;
}

static inline int64_t mr_unwind_sleb(struct mr_unwind_bytes *bytes)
{
    uint64_t value = 0;
    unsigned shift = 0;

    while (bytes->at < bytes->end) {
        uint8_t byte = *bytes->at++;

        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        if (byte & 0x40 && shift < 64)
            value |= UINT64_MAX << shift;
        return (int64_t)value;
    }
    bytes->has_failed = true;
    return 0;
}

#endif
