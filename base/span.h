/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A borrowed run of bytes: pointer and size together, instead of a bare pointer. A span
 * owns nothing; it is valid as long as the memory it points into. Taking from a span
 * moves its front and never reads past its end.
 *
 * Use:
 *     struct mr_span rest = mr_span_of(frame, frame_size), head;
 *     if (!mr_span_take(&rest, 16, &head))
 *         return MR_EFORMAT;
 */
#ifndef MR_BASE_SPAN_H
#define MR_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct mr_span {
    const uint8_t *data; /* may be NULL when size is 0 */
    size_t size;
};

static inline struct mr_span mr_span_of(const void *data, size_t size)
{
    return (struct mr_span){(const uint8_t *)data, size};
}

/* The bytes of `text` without its terminating zero. */
static inline struct mr_span mr_span_of_text(const char *text)
{
    return mr_span_of(text, strlen(text));
}

static inline bool mr_span_is_empty(struct mr_span span)
{
    return span.size == 0;
}

/*
 * Moves the first `size` bytes of `span` into `head`. False, with nothing changed, if it
 * has fewer.
 */
static inline bool mr_span_take(struct mr_span *span, size_t size, struct mr_span *head)
{
    if (size > span->size)
        return false;
    *head = mr_span_of(span->data, size);
    if (size) { /* NULL + 0 is undefined in C17 */
        span->data += size;
        span->size -= size;
    }
    return true;
}

/* Drops the first `size` bytes. False, with nothing changed, if it has fewer. */
static inline bool mr_span_skip(struct mr_span *span, size_t size)
{
    struct mr_span ignored;

    return mr_span_take(span, size, &ignored);
}

static inline bool mr_span_equal(struct mr_span a, struct mr_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/*
 * Little-endian integers off the front, at any alignment. False, with nothing changed, if
 * the span is too short.
 */
static inline bool mr_span_take_u8(struct mr_span *span, uint8_t *value)
{
    struct mr_span head;

    if (!mr_span_take(span, 1, &head))
        return false;
    *value = head.data[0];
    return true;
}

static inline bool mr_span_take_le(struct mr_span *span, size_t size, uint64_t *value)
{
    struct mr_span head;

    if (!mr_span_take(span, size, &head))
        return false;
    *value = 0;
    for (size_t i = size; i-- > 0;)
        *value = *value << 8 | head.data[i];
    return true;
}

static inline bool mr_span_take_u16(struct mr_span *span, uint16_t *value)
{
    uint64_t wide;

    if (!mr_span_take_le(span, 2, &wide))
        return false;
    *value = (uint16_t)wide;
    return true;
}

static inline bool mr_span_take_u32(struct mr_span *span, uint32_t *value)
{
    uint64_t wide;

    if (!mr_span_take_le(span, 4, &wide))
        return false;
    *value = (uint32_t)wide;
    return true;
}

static inline bool mr_span_take_u64(struct mr_span *span, uint64_t *value)
{
    return mr_span_take_le(span, 8, value);
}

#endif
