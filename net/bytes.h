/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Little-endian integers at any alignment, for the fixed layouts of docs/FORMAT.md. No bounds are checked: the caller
 * has checked the size of the whole layout. Reading piecemeal from untrusted bytes is base/span.h's. Any thread.
 *
 *     at = mr_put_u16(mr_put_u32(out, MR_WIRE_MAGIC), flags);   // each returns the byte behind what it wrote
 */
#ifndef MR_NET_BYTES_H
#define MR_NET_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "see net/wire.h");

static inline uint8_t *mr_put_u8(uint8_t *at, uint8_t value)
{
    *at = value;
    return at + 1;
}

static inline uint8_t *mr_put_u16(uint8_t *at, uint16_t value)
{
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline uint8_t *mr_put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline uint8_t *mr_put_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline uint16_t mr_get_u16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint32_t mr_get_u32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static inline uint64_t mr_get_u64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

#endif
