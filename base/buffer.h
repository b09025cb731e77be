/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable run of bytes with a hard limit. It never aborts: past the limit it says
 * MR_ELIMIT, without memory MR_ENOMEM, and holds what it held before. The caller owns the
 * struct, the buffer owns `data`. One thread at a time.
 *
 * Use:
 *     struct mr_buffer buffer;
 *     mr_buffer_init(&buffer, 1 << 20);
 *     status = mr_buffer_append(&buffer, payload, payload_size);
 *     ...
 *     mr_buffer_clear(&buffer);
 *     mr_buffer_fini(&buffer);
 */
#ifndef MR_BASE_BUFFER_H
#define MR_BASE_BUFFER_H

#include "base/compiler.h"
#include "base/span.h"
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct mr_buffer {
    uint8_t *data;
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated; <= limit */
    size_t limit;
};

/* An empty buffer that will hold at most `limit` bytes. Allocates nothing yet. */
void mr_buffer_init(struct mr_buffer *buffer, size_t limit);

/* Frees the bytes. Allowed again after itself. */
void mr_buffer_fini(struct mr_buffer *buffer);

/* Forgets the contents, keeps the memory. */
void mr_buffer_clear(struct mr_buffer *buffer);

/*
 * Makes room for `size` more bytes and points `at` to them; they count from
 * mr_buffer_commit() on. The pointer is valid until the next call on the buffer.
 * MR_ELIMIT, MR_ENOMEM.
 */
enum mr_status mr_buffer_reserve(struct mr_buffer *buffer, size_t size, uint8_t **at);

/* Adds `size` bytes that were written after mr_buffer_reserve() of at least as many. */
void mr_buffer_commit(struct mr_buffer *buffer, size_t size);

/*
 * Adds a copy of `size` bytes. `data` may be NULL if `size` is 0. MR_ELIMIT, MR_ENOMEM.
 */
enum mr_status mr_buffer_append(struct mr_buffer *buffer, const void *data, size_t size);
enum mr_status mr_buffer_append_byte(struct mr_buffer *buffer, uint8_t byte);
/* The characters of `text`, without its terminating zero. */
enum mr_status mr_buffer_append_text(struct mr_buffer *buffer, const char *text);
/* The low `size` (1 to 8) bytes of `value`, little-endian. */
enum mr_status mr_buffer_append_le(struct mr_buffer *buffer, uint64_t value, size_t size);

/*
 * Adds formatted text, without a terminating zero. All or nothing. MR_ELIMIT, MR_ENOMEM.
 */
MR_PRINTF(2, 3)
enum mr_status mr_buffer_append_format(struct mr_buffer *buffer, const char *format, ...);
/* The same. `values` are the caller's to end, and used up. */
MR_PRINTF(2, 0)
enum mr_status mr_buffer_append_values(struct mr_buffer *buffer, const char *format,
                                       va_list values);

/* Drops the first `size` bytes (at most all) and moves the rest to the front. */
void mr_buffer_consume(struct mr_buffer *buffer, size_t size);

/* Shortens the contents to `size` bytes, which is not more than it has. */
void mr_buffer_truncate(struct mr_buffer *buffer, size_t size);

/* Borrows the contents: valid until the next call that changes the buffer. */
static inline struct mr_span mr_buffer_span(const struct mr_buffer *buffer)
{
    return mr_span_of(buffer->data, buffer->size);
}

#endif
