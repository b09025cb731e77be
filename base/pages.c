/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static size_t round_up(size_t size, size_t align)
{
    return (size + align - 1) & ~(align - 1);
}

/* A mapping of its own: the heap would hand the advised range out again in small pieces, each on a large page. */
static void *map_large(size_t size)
{
    uint8_t *memory, *first;

    memory = mmap(NULL, size + MR_PAGES_LARGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    first = memory + (-(uintptr_t)memory & (MR_PAGES_LARGE - 1));
    if (first > memory)
        (void)munmap(memory, (size_t)(first - memory));
    if (first < memory + MR_PAGES_LARGE)
        (void)munmap(first + size, (size_t)(memory + MR_PAGES_LARGE - first));
    (void)madvise(first, size, MADV_HUGEPAGE); /* without them it is only slower */
    return first;
}

/* AddressSanitizer watches the ends of what comes from malloc alone. */
static bool is_mapped(size_t size)
{
    return size >= MR_PAGES_LARGE && !MR_SANITIZE_ADDRESS;
}

void *mr_pages_alloc(size_t size)
{
    size_t align = size < MR_PAGES_LARGE ? MR_CACHE_LINE : MR_PAGES_LARGE;

    if (size > SIZE_MAX - 2 * MR_PAGES_LARGE)
        return NULL;
    return is_mapped(size) ? map_large(round_up(size, align))
                           : aligned_alloc(align, round_up(size, align));
}

void mr_pages_free(void *memory, size_t size)
{
    if (!is_mapped(size))
        free(memory);
    else if (memory)
        (void)munmap(memory, round_up(size, MR_PAGES_LARGE));
}
