/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for large tables that are read here and there. Each entry lies on another page, and where pages are small, finding
 * the page takes longer than the entry itself (even a prefetch waits for it); so the system is asked for large pages.
 *
 *     slots = mr_pages_alloc(count * sizeof(*slots));   // NULL: no memory
 *     mr_pages_free(slots, count * sizeof(*slots));
 *
 * Any thread.
 */
#ifndef MR_BASE_PAGES_H
#define MR_BASE_PAGES_H

#include <stddef.h>

#include "base/compiler.h"

#define MR_PAGES_LARGE ((size_t)2 << 20) /* bytes: of x86-64, and of aarch64 with 4 KiB */

/*
 * At least `size` bytes, not zeroed, on a cache line; from MR_PAGES_LARGE on at a multiple of it, and on large pages if the
 * system has some. What is never written to takes no memory but the rest of a large page. The caller's, for mr_pages_free() with the same size.
 * NULL without memory.
 */
MR_MUST_USE void *mr_pages_alloc(size_t size);
void mr_pages_free(void *memory, size_t size); /* NULL allowed */

#endif
