/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of the strings of one payload, each with a zero byte behind it, in one piece of memory of the payload's size:
 * the head that a string has in msgpack pays for its zero byte, so it always suffices. Inside net/ only.
 */
#ifndef MR_NET_TEXT_POOL_H
#define MR_NET_TEXT_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/span.h"
#include "net/control.h"

struct mr_text_pool {
    uint8_t *memory;
    size_t used, size;
};

static inline struct mr_span mr_text_pool_copy(struct mr_text_pool *pool,
                                               struct mr_span bytes)
{
    uint8_t *to = pool->memory + pool->used;

    MR_ASSERT(bytes.size < pool->size - pool->used);
    if (bytes.size)
        memcpy(to, bytes.data, bytes.size);
    to[bytes.size] = 0;
    pool->used += bytes.size + 1;
    return mr_span_of(to, bytes.size);
}

/* False for a string that breaks MR_TEXT_MAX or has a zero byte in it. */
static inline bool mr_text_pool_add(struct mr_text_pool *pool, struct mr_span text,
                                    const char **copy)
{
    if (text.size > MR_TEXT_MAX || (text.size && memchr(text.data, 0, text.size)))
        return false;
    *copy = (const char *)mr_text_pool_copy(pool, text).data;
    return true;
}

#endif
