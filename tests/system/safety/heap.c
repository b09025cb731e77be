/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replacement of malloc() that is traced, and makes a traced call while it holds its lock: linked in or preloaded. What
 * is freed is not used again.
 */
#include "safety.h"

#include <millrace/probe.h>

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHOWN TRACED __attribute__((visibility("default")))
#define ARENA_BYTES ((size_t)256 << 20)
#define ALIGNMENT 16

void *malloc(size_t size);
void free(void *memory);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
int posix_memalign(void **memory, size_t alignment, size_t size);
void *aligned_alloc(size_t alignment, size_t size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(ALIGNMENT) char arena[ARENA_BYTES];
static size_t used = ALIGNMENT;

/* Its size lies in front of each piece. */
TRACED static void *carve(size_t alignment, size_t size)
{
    size_t start = (used + ALIGNMENT + alignment - 1) & ~(alignment - 1);

    HERE;
    if (size > ARENA_BYTES / 2 || start + size > ARENA_BYTES)
        return NULL;
    used = start + size;
    memcpy(arena + start - sizeof(size), &size, sizeof(size));
    return arena + start;
}

PLAIN static void *take(size_t alignment, size_t size)
{
    void *memory;

    (void)pthread_mutex_lock(&lock);
    memory = carve(alignment, size);
    (void)pthread_mutex_unlock(&lock);
    if (!memory)
        errno = ENOMEM;
    return memory;
}

SHOWN void *malloc(size_t size)
{
    void *memory;

    HERE;
    memory = take(ALIGNMENT, size);
    KEEP;
    return memory;
}

SHOWN void free(void *memory)
{
    HERE;
    (void)memory;
}

SHOWN void *calloc(size_t count, size_t size)
{
    void *memory;

    HERE;
    memory = take(ALIGNMENT, count * size); /* the arena is zero */
    KEEP;
    return memory;
}

SHOWN void *realloc(void *memory, size_t size)
{
    void *larger;
    size_t old = 0;

    HERE;
    larger = take(ALIGNMENT, size);
    if (memory)
        memcpy(&old, (char *)memory - sizeof(old), sizeof(old));
    if (larger && memory)
        memcpy(larger, memory, old < size ? old : size);
    return larger;
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
    void *memory;

    HERE;
    memory = take(alignment < ALIGNMENT ? ALIGNMENT : alignment, size);
    KEEP;
    return memory;
}

SHOWN int posix_memalign(void **memory, size_t alignment, size_t size)
{
    HERE;
    *memory = take(alignment < ALIGNMENT ? ALIGNMENT : alignment, size);
    return *memory ? 0 : ENOMEM;
}
