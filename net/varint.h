/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Varints of docs/FORMAT.md: `v` is unsigned LEB128 of at most 10 bytes, `z` the same of a zigzag-coded signed number
 * (0, -1, 1, -2, ... become 0, 1, 2, 3, ...). Writers write the shortest form; readers take longer ones too.
 *
 *     uint8_t bytes[MR_VARINT_MAX], *end = mr_varint_put(bytes, value);
 *     if (!mr_varint_get(&span, &value)) ...     // cut off, or more than 64 bits; span is then unchanged
 */
#ifndef MR_NET_VARINT_H
#define MR_NET_VARINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"

#define MR_VARINT_MAX 10

static inline size_t mr_varint_size(uint64_t value)
{
    size_t size = 1;

    while (value >>= 7)
        size++;
    return size;
}

/* Writes up to MR_VARINT_MAX bytes; the byte behind them. */
static inline uint8_t *mr_varint_put(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static inline bool mr_varint_get(struct mr_span *in, uint64_t *value)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < in->size && i < MR_VARINT_MAX; i++) {
        uint8_t byte = in->data[i];

        if (i == MR_VARINT_MAX - 1 && byte > 1)
            return false; /* past 64 bits */
        sum |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = sum;
            in->data += i + 1;
            in->size -= i + 1;
            return true;
        }
    }
    return false;
}

static inline bool mr_varint_get_u32(struct mr_span *in, uint32_t *value)
{
    struct mr_span rest = *in;
    uint64_t wide;

    if (!mr_varint_get(&rest, &wide) || wide > UINT32_MAX)
        return false;
    *value = (uint32_t)wide;
    *in = rest;
    return true;
}

static inline uint8_t *mr_zigzag_put(uint8_t *at, int64_t value)
{
    return mr_varint_put(at, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

static inline bool mr_zigzag_get(struct mr_span *in, int64_t *value)
{
    uint64_t coded;

    if (!mr_varint_get(in, &coded))
        return false;
    *value = (int64_t)(coded >> 1 ^ (UINT64_C(0) - (coded & 1)));
    return true;
}

static inline enum mr_status mr_varint_append(struct mr_buffer *out, uint64_t value)
{
    uint8_t bytes[MR_VARINT_MAX];

    return mr_buffer_append(out, bytes, (size_t)(mr_varint_put(bytes, value) - bytes));
}

#endif
