/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct mr_arena_chunk {
    struct mr_arena_chunk *next;
    size_t size; /* of bytes[] */
    size_t used; /* of bytes[]; a multiple of MR_ARENA_ALIGN */
    MR_ALIGNED(MR_ARENA_ALIGN) uint8_t bytes[];
};

_Static_assert(sizeof(struct mr_arena_chunk) % MR_ARENA_ALIGN == 0,
               "pieces start aligned, for malloc() aligns to 16");

void mr_arena_init(struct mr_arena *arena, size_t chunk_bytes, size_t limit_bytes)
{
    MR_ASSERT(arena);
    MR_ASSERT(chunk_bytes > 0);
    *arena = (struct mr_arena){.chunk_bytes = chunk_bytes, .limit_bytes = limit_bytes};
}

void mr_arena_fini(struct mr_arena *arena)
{
    struct mr_arena_chunk *chunk = arena->first;

    while (chunk) {
        struct mr_arena_chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
    mr_arena_init(arena, arena->chunk_bytes, arena->limit_bytes);
}

void mr_arena_reset(struct mr_arena *arena)
{
    for (struct mr_arena_chunk *chunk = arena->first; chunk; chunk = chunk->next)
        chunk->used = 0;
    arena->current = arena->first;
    arena->taken_bytes = 0;
}

/*
 * A new chunk with room for `size`, put after the current one; NULL at the limit or
 * without memory.
 */
static struct mr_arena_chunk *add_chunk(struct mr_arena *arena, size_t size)
{
    size_t header = sizeof(struct mr_arena_chunk);
    size_t room = arena->limit_bytes - arena->allocated_bytes;
    size_t bytes =
        size + header > arena->chunk_bytes ? size + header : arena->chunk_bytes;
    struct mr_arena_chunk *chunk;

    MR_DEBUG_ASSERT(arena->allocated_bytes <= arena->limit_bytes);
    if (bytes > room)
        bytes = room; /* the last chunk may be a short one */
    if (bytes < size + header)
        return NULL;
    chunk = malloc(bytes);
    if (!chunk)
        return NULL;
    *chunk = (struct mr_arena_chunk){.size = bytes - header};
    arena->allocated_bytes += bytes;
    if (arena->current) {
        chunk->next = arena->current->next;
        arena->current->next = chunk;
    } else {
        arena->first = chunk;
    }
    return chunk;
}

/* The first chunk from the current one on that has room for `size`, new if need be. */
static struct mr_arena_chunk *chunk_for(struct mr_arena *arena, size_t size)
{
    struct mr_arena_chunk *chunk = arena->current;

    while (chunk && chunk->size - chunk->used < size) {
        arena->current =
            chunk; /* a chunk that was passed keeps its free end until reset */
        chunk = chunk->next;
    }
    return chunk ? chunk : add_chunk(arena, size);
}

void *mr_arena_take(struct mr_arena *arena, size_t size)
{
    struct mr_arena_chunk *chunk;
    void *piece;

    MR_DEBUG_ASSERT(arena->chunk_bytes > 0);
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + MR_ARENA_ALIGN - 1) & ~(size_t)(MR_ARENA_ALIGN - 1);
    chunk = chunk_for(arena, size);
    if (!chunk)
        return NULL;
    arena->current = chunk;
    piece = chunk->bytes + chunk->used;
    chunk->used += size;
    arena->taken_bytes += size;
    return piece;
}

void *mr_arena_take_zeroed(struct mr_arena *arena, size_t count, size_t size)
{
    void *piece;

    if (size && count > SIZE_MAX / size)
        return NULL;
    piece = mr_arena_take(arena, count * size);
    if (piece)
        memset(piece, 0, count * size);
    return piece;
}

char *mr_arena_copy(struct mr_arena *arena, struct mr_span span)
{
    char *text = span.size < SIZE_MAX / 2 ? mr_arena_take(arena, span.size + 1) : NULL;

    if (!text)
        return NULL;
    if (span.size)
        memcpy(text, span.data, span.size);
    text[span.size] = '\0';
    return text;
}
