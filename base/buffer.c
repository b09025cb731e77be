/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buffer.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CAPACITY 64

void mr_buffer_init(struct mr_buffer *buffer, size_t limit)
{
    MR_ASSERT(buffer);
    *buffer = (struct mr_buffer){.limit = limit};
}

void mr_buffer_fini(struct mr_buffer *buffer)
{
    MR_ASSERT(buffer);
    free(buffer->data);
    *buffer = (struct mr_buffer){.limit = buffer->limit};
}

void mr_buffer_clear(struct mr_buffer *buffer)
{
    MR_ASSERT(buffer);
    buffer->size = 0;
}

/*
 * At least `needed`, doubling so that appending stays linear, and within the limit, which
 * is not below `needed`.
 */
static size_t grown_capacity(const struct mr_buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity < MIN_CAPACITY ? MIN_CAPACITY : buffer->capacity;

    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    return capacity > buffer->limit ? buffer->limit : capacity;
}

static enum mr_status grow(struct mr_buffer *buffer, size_t needed)
{
    size_t capacity = grown_capacity(buffer, needed);
    uint8_t *data = realloc(buffer->data, capacity);

    if (!data)
        return MR_ENOMEM;
    buffer->data = data;
    buffer->capacity = capacity;
    return MR_OK;
}

enum mr_status mr_buffer_reserve(struct mr_buffer *buffer, size_t size, uint8_t **at)
{
    enum mr_status status = MR_OK;

    MR_ASSERT(buffer->size <= buffer->capacity || buffer->capacity == 0);
    MR_ASSERT(at);
    if (size > buffer->limit || buffer->size > buffer->limit - size)
        return MR_ELIMIT;
    if (size > buffer->capacity - buffer->size)
        status = grow(buffer, buffer->size + size);
    if (status == MR_OK)
        *at = buffer->data ? buffer->data + buffer->size : NULL;
    return status;
}

void mr_buffer_commit(struct mr_buffer *buffer, size_t size)
{
    MR_ASSERT(size <= buffer->capacity - buffer->size);
    buffer->size += size;
}

enum mr_status mr_buffer_append(struct mr_buffer *buffer, const void *data, size_t size)
{
    uint8_t *at;
    enum mr_status status = mr_buffer_reserve(buffer, size, &at);

    if (status != MR_OK || size == 0)
        return status;
    MR_DEBUG_ASSERT(at);
    memcpy(at, data, size);
    buffer->size += size;
    return MR_OK;
}

enum mr_status mr_buffer_append_byte(struct mr_buffer *buffer, uint8_t byte)
{
    return mr_buffer_append(buffer, &byte, 1);
}

enum mr_status mr_buffer_append_text(struct mr_buffer *buffer, const char *text)
{
    return mr_buffer_append(buffer, text, strlen(text));
}

enum mr_status mr_buffer_append_le(struct mr_buffer *buffer, uint64_t value, size_t size)
{
    uint8_t bytes[sizeof(value)];

    MR_ASSERT(size >= 1 && size <= sizeof(value));
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    return mr_buffer_append(buffer, bytes, size);
}

enum mr_status mr_buffer_append_values(struct mr_buffer *buffer, const char *format,
                                       va_list values)
{
    enum mr_status status;
    uint8_t *at = NULL;
    va_list measured;
    int needed;

    va_copy(measured, values);
    needed = vsnprintf(NULL, 0, format, measured);
    va_end(measured);
    if (needed < 0)
        return MR_EUSAGE;
    /* One more byte while printing, for the zero that vsnprintf() writes. */
    status = mr_buffer_reserve(buffer, (size_t)needed + 1, &at);
    if (status != MR_OK)
        return status;
    (void)vsnprintf((char *)at, (size_t)needed + 1, format, values);
    mr_buffer_commit(buffer, (size_t)needed);
    return MR_OK;
}

enum mr_status mr_buffer_append_format(struct mr_buffer *buffer, const char *format, ...)
{
    enum mr_status status;
    va_list values;

    va_start(values, format);
    status = mr_buffer_append_values(buffer, format, values);
    va_end(values);
    return status;
}

void mr_buffer_consume(struct mr_buffer *buffer, size_t size)
{
    MR_ASSERT(size <= buffer->size);
    buffer->size -= size;
    if (size && buffer->size)
        memmove(buffer->data, buffer->data + size, buffer->size);
}

void mr_buffer_truncate(struct mr_buffer *buffer, size_t size)
{
    MR_ASSERT(size <= buffer->size);
    buffer->size = size;
}
