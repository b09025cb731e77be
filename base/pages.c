/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void *mr_pages_alloc(size_t size)
{
    size_t align = size < MR_PAGES_LARGE ? MR_CACHE_LINE : MR_PAGES_LARGE;
    void *memory;

    if (size > SIZE_MAX - align)
        return NULL;
    size = (size + align - 1) & ~(align - 1);
    memory = aligned_alloc(align, size);
    if (memory && align == MR_PAGES_LARGE)
        (void)madvise(memory, size, MADV_HUGEPAGE); /* without them it is only slower */
    return memory;
}
