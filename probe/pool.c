/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field         written by       read by         access
 * rings (head)  taking threads   writer, stats   compare-exchange [P], acquire load [L]
 * ring.state    see probe/ring.c                 FREE -> TAKEN by compare-exchange [A],
 *                                                release store of FREE [F]
 * mapped_bytes, taking threads,  the same        relaxed: sums alone, nothing hangs on
 *  warm_count    writer                          their order
 * Pairs: [P]-[L] a ring's constant fields; [F]-[A] the writer's last use of a ring.
 * Invariant: mapped_bytes <= ceiling_bytes.
 * Progress: take is lock-free. Checked by: tests/race/test_ring.c
 */
#include "probe/pool.h"

#include <sys/mman.h>

#define PAGE_BYTES UINT64_C(4096)

/* Taken, not yet published: neither free nor to be read by the writer. */
#define STATE_TAKEN 3

void mr_pool_init(struct mr_pool *pool, uint64_t ring_bytes, uint64_t ceiling_bytes)
{
    *pool = (struct mr_pool){.ring_bytes = ring_bytes, .ceiling_bytes = ceiling_bytes};
    mr_store_relaxed(&pool->next_stream, 1);
}

static uint64_t header_bytes(void)
{
    return (sizeof(struct mr_ring) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static bool budget_take(struct mr_pool *pool, uint64_t bytes)
{
    uint64_t seen = mr_load_relaxed(&pool->mapped_bytes);

    do
        if (seen + bytes > pool->ceiling_bytes)
            return false;
    while (!mr_compare_exchange_relaxed(&pool->mapped_bytes, &seen, seen + bytes));
    return true;
}

static struct mr_ring *take_free(struct mr_pool *pool)
{
    /* [L] pairs with [P] in append(). */
    struct mr_ring *ring = mr_load_acquire(&pool->rings);

    for (; ring; ring = ring->next) {
        uint32_t state = MR_RING_FREE;

        /* [A] pairs with [F] in mr_pool_give(). */
        if (mr_load_relaxed(&ring->state) == MR_RING_FREE &&
            mr_compare_exchange_acq_rel(&ring->state, &state, STATE_TAKEN)) {
            if (mr_load_relaxed(&pool->warm_count) > 0)
                (void)mr_add_relaxed(&pool->warm_count, -1);
            return ring;
        }
    }
    return NULL;
}

static void append(struct mr_pool *pool, struct mr_ring *ring)
{
    struct mr_ring *head = mr_load_relaxed(&pool->rings);

    do
        ring->next = head;
    while (!mr_compare_exchange_acq_rel(&pool->rings, &head, ring)); /* [P] */
}

static void *map(uint64_t bytes, int flags)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static struct mr_ring *map_ring(struct mr_pool *pool)
{
    struct mr_ring *ring = map(header_bytes(), 0);

    if (!ring)
        return NULL;
    ring->words = map(pool->ring_bytes, MAP_POPULATE);
    if (!ring->words) {
        (void)munmap(ring, header_bytes());
        return NULL;
    }
    (void)madvise((void *)(uintptr_t)ring->words, pool->ring_bytes, MADV_WIPEONFORK);
    ring->capacity = pool->ring_bytes / sizeof(uint64_t);
    ring->shared = &pool->shared;
    mr_ring_reset(ring);
    mr_store_relaxed(&ring->state, STATE_TAKEN);
    return ring;
}

static struct mr_ring *take_new(struct mr_pool *pool)
{
    uint64_t bytes = header_bytes() + pool->ring_bytes;
    struct mr_ring *ring;

    if (!budget_take(pool, bytes))
        return NULL;
    ring = map_ring(pool);
    if (ring)
        append(pool, ring);
    else
        (void)mr_add_relaxed(&pool->mapped_bytes, -bytes);
    return ring;
}

struct mr_ring *mr_pool_take(struct mr_pool *pool)
{
    struct mr_ring *ring = take_free(pool);

    if (!ring)
        ring = take_new(pool);
    if (!ring)
        return NULL;
    ring->stream = mr_add_relaxed(&pool->next_stream, 1);
    mr_store_relaxed(&ring->name_version, 0);
    return ring;
}

bool mr_pool_may_give(const struct mr_pool *pool)
{
    const struct mr_ring *ring = mr_load_acquire(&pool->rings); /* [L] */

    for (; ring; ring = ring->next) {
        uint32_t state = mr_load_relaxed(&ring->state); /* a hint */

        if (state == MR_RING_CLOSED || state == MR_RING_FREE)
            return true;
    }
    return false;
}

void mr_pool_publish(struct mr_ring *ring)
{
    /* [O] pairs with the acquire of a round in probe/drain.c. */
    mr_store_release(&ring->state, MR_RING_OWNED);
}

/*
 * A ring goes on at the number where it ended, so its words need no clearing; one whose
 * pages go back is zero, and begins at number 0.
 */
void mr_pool_give(struct mr_pool *pool, struct mr_ring *ring)
{
    uint64_t tail = ring->done.tail;

    if (mr_load_relaxed(&pool->warm_count) >= MR_POOL_WARM_COUNT &&
        madvise((void *)(uintptr_t)ring->words, pool->ring_bytes, MADV_DONTNEED) == 0)
        tail = 0;
    mr_ring_reset(ring);
    ring->done.tail = tail;
    mr_store_relaxed(&ring->tail, tail);
    (void)mr_add_relaxed(&pool->warm_count, 1);
    /* [F] pairs with [A] in take_free(). */
    mr_store_release(&ring->state, MR_RING_FREE);
}

void mr_pool_after_fork(struct mr_pool *pool)
{
    for (struct mr_ring *ring = mr_load_relaxed(&pool->rings); ring; ring = ring->next) {
        /* Not every kernel wipes; this one is cheap on pages that are not there. */
        (void)madvise((void *)(uintptr_t)ring->words, pool->ring_bytes, MADV_DONTNEED);
        mr_ring_reset(ring);
        mr_store_relaxed(&ring->state, MR_RING_FREE);
    }
    mr_store_relaxed(&pool->next_stream, 1);
    mr_store_relaxed(&pool->warm_count, 0);
    mr_store_relaxed(&pool->shared.stalled, 0);
}

void mr_pool_fini(struct mr_pool *pool)
{
    struct mr_ring *ring = mr_load_relaxed(&pool->rings);

    while (ring) {
        struct mr_ring *next = ring->next;

        (void)munmap((void *)(uintptr_t)ring->words, pool->ring_bytes);
        (void)munmap(ring, header_bytes());
        ring = next;
    }
    mr_store_relaxed(&pool->rings, NULL);
}
