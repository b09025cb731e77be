/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bump arena: memory that is taken piece by piece and given back all at once. One per
 * stage, reset per batch, so that the hot path meets malloc only until the arena has
 * grown to the size of the largest batch.
 *
 *     chunk:  [header | piece | piece | ... |<- used   free   size ->]  -> next chunk
 *
 * Chunks are kept by reset and freed by fini. Pieces are aligned to 16 bytes and not
 * cleared. The caller owns the struct. One thread at a time.
 *
 * Use:
 *     struct mr_arena arena;
 *     mr_arena_init(&arena, 64 << 10, 16 << 20);
 *     struct node *node = mr_arena_take(&arena, sizeof(*node));
 *     if (!node)
 *         return MR_ELIMIT;
 *     mr_arena_reset(&arena);
 *     mr_arena_fini(&arena);
 */
#ifndef MR_BASE_ARENA_H
#define MR_BASE_ARENA_H

#include "base/span.h"

#include <stddef.h>

#define MR_ARENA_ALIGN 16

struct mr_arena_chunk;

struct mr_arena {
    struct mr_arena_chunk *first;
    struct mr_arena_chunk
        *current;           /* pieces come from here; the chunks after it are empty */
    size_t chunk_bytes;     /* of a new chunk, unless one piece needs more */
    size_t allocated_bytes; /* of all chunks; <= limit_bytes */
    size_t limit_bytes;
    size_t taken_bytes; /* since the last reset, with alignment */
};

/*
 * An empty arena. `chunk_bytes` > 0; `limit_bytes` bounds all chunks together. Allocates
 * nothing yet.
 */
void mr_arena_init(struct mr_arena *arena, size_t chunk_bytes, size_t limit_bytes);

/* Frees everything. Allowed again after itself. */
void mr_arena_fini(struct mr_arena *arena);

/* Gives back all pieces, keeps the chunks. */
void mr_arena_reset(struct mr_arena *arena);

/*
 * `size` bytes, aligned to 16, valid until reset or fini. NULL when the limit (or the
 * machine's memory) is reached; pieces taken before stay valid. Size 0 gives a valid
 * pointer.
 */
void *mr_arena_take(struct mr_arena *arena, size_t size);

/*
 * As mr_arena_take() for `count` items of `size` bytes, all zero. NULL also if the
 * product overflows.
 */
void *mr_arena_take_zeroed(struct mr_arena *arena, size_t count, size_t size);

/* A copy of the bytes of `span` with a zero byte after them. NULL as above. */
char *mr_arena_copy(struct mr_arena *arena, struct mr_span span);

#endif
