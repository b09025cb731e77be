/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All rings of the process: a list that only grows, under a ceiling of bytes. Rings are
 * never unmapped, a free one serves the next thread, so the writer walks the list
 * without a lock.
 *
 * The first half of the ceiling goes to rings of the size that was asked for, half of the
 * rest to rings of half that size, and so on down to 4 KiB: with 64 MiB and 256 KiB, 128
 * threads have whole rings, and some 800 have one.
 *
 * Policy overwrite: words lie in the recorder's file. Nobody drains, so no ring is ever
 * free; what a thread left stays until another needs its ring, which then is the one
 * whose thread ended first, and not before half of the ceiling is taken.
 *
 * Words are mapped apart from what describes them and are wiped in a forked child
 * (MADV_WIPEONFORK): the parent then takes no copy-on-write fault per page after a fork,
 * and the child finds them as new.
 *
 *     mr_pool_init(&pool, ring_bytes, ceiling_bytes);
 *     struct mr_ring *ring = mr_pool_take(&pool);      // NULL: no memory under the ceiling
 *     ...                                               // fill in stream, tid ...
 *     mr_pool_publish(ring);                            // the writer sees it from here on
 *
 * take: any thread, signals blocked, async-signal-safe. give: the writer. The rest: one
 * thread.
 */
#ifndef MR_PROBE_POOL_H
#define MR_PROBE_POOL_H

#include "probe/ring.h"

struct mr_recorder;

/* Free rings that keep their pages; the words of others go back to the system. */
#define MR_POOL_WARM_COUNT 32

struct mr_pool {
    struct mr_ring_shared shared;
    uint64_t ring_bytes;          /* of words; a power of two */
    uint64_t ceiling_bytes;       /* over all rings */
    struct mr_recorder *recorder; /* policy overwrite; borrowed */
    MR_ALIGNED(MR_CACHE_LINE) struct mr_ring *_Atomic rings;
    _Atomic uint64_t mapped_bytes;
    _Atomic uint32_t next_stream;
    _Atomic int32_t warm_count;
};

void mr_pool_init(struct mr_pool *pool, uint64_t ring_bytes, uint64_t ceiling_bytes);
struct mr_ring *mr_pool_take(struct mr_pool *pool);
/* A ring is free, or will be soon because its thread has ended. */
bool mr_pool_may_give(const struct mr_pool *pool);
void mr_pool_publish(struct mr_ring *ring);
/* A drained, closed ring is free again. */
void mr_pool_give(struct mr_pool *pool, struct mr_ring *ring);
/* In a forked child, which has one thread: every ring is free and as new, or, under policy overwrite, gone. */
void mr_pool_after_fork(struct mr_pool *pool);
/* Unmaps everything; for tests. */
/*
 * Memory for what the ring's threads count (probe/pruned.h), within the ceiling; stays
 * with the ring. One thread at a time. False: there is none.
 */
bool mr_pool_counts(struct mr_pool *pool, struct mr_ring *ring, uint64_t bytes);
void mr_pool_fini(struct mr_pool *pool);

#endif
