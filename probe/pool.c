/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field         written by       read by         access
 * rings (head)  taking threads   writer, stats   compare-exchange [P], acquire load [L]
 * ring.state    see probe/ring.c                 FREE -> TAKEN by compare-exchange [A],
 *                                                release store of FREE [F]
 * mapped_bytes, taking threads,  the same        relaxed: sums alone, nothing hangs on
 *  warm_count    writer                          their order
 * ring.is_cold, writer; owner    taking threads  relaxed: a hint; whoever took the ring
 *  closed_order                                  has it by [A]
 * Pairs: [P]-[L] a ring's constant fields; [F]-[A] the writer's last use of a ring.
 * Invariant: mapped_bytes <= ceiling_bytes.
 * Progress: take is lock-free. Checked by: tests/race/test_ring.c
 */
#include "probe/pool.h"

#include "probe/recorder.h"

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

/* Of the rings in `state` the one that serves best; a hint, who takes it looks again. */
static struct mr_ring *find_best(struct mr_pool *pool, uint32_t state,
                                 bool (*is_better)(const struct mr_ring *,
                                                   const struct mr_ring *))
{
    /* [L] pairs with [P] in append(). */
    struct mr_ring *ring = mr_load_acquire(&pool->rings), *best = NULL;

    for (; ring; ring = ring->next)
        if (mr_load_relaxed(&ring->state) == state && (!best || is_better(ring, best)))
            best = ring;
    return best;
}

/* The larger one; of the same size, one that has its pages. */
static bool is_larger(const struct mr_ring *ring, const struct mr_ring *than)
{
    if (ring->capacity != than->capacity)
        return ring->capacity > than->capacity;
    return !mr_load_relaxed(&ring->is_cold) && mr_load_relaxed(&than->is_cold);
}

/* So that no event waits for a page. Where the kernel cannot (before 5.14), they come one by one. */
static void warm_up(struct mr_ring *ring)
{
    (void)madvise((void *)(uintptr_t)ring->words, ring->capacity * sizeof(uint64_t),
                  MADV_POPULATE_WRITE);
    mr_store_relaxed(&ring->is_cold, 0);
}

static struct mr_ring *take_free(struct mr_pool *pool)
{
    struct mr_ring *ring;
    uint32_t state = MR_RING_FREE;

    /* [A] pairs with [F] in mr_pool_give(). */
    while ((ring = find_best(pool, MR_RING_FREE, is_larger)) &&
           !mr_compare_exchange_acq_rel(&ring->state, &state, STATE_TAKEN))
        state = MR_RING_FREE;
    if (!ring)
        return NULL;
    if (mr_load_relaxed(&ring->is_cold))
        warm_up(ring);
    else
        (void)mr_add_relaxed(&pool->warm_count, -1);
    return ring;
}

static bool has_ended_before(const struct mr_ring *ring, const struct mr_ring *than)
{
    return mr_load_relaxed(&ring->closed_order) < mr_load_relaxed(&than->closed_order);
}

/* Policy overwrite: what the thread that ended first left is overwritten. */
static struct mr_ring *take_oldest(struct mr_pool *pool)
{
    struct mr_ring *ring;
    uint32_t state = MR_RING_CLOSED;
    uint64_t end;

    /* [A] pairs with [D] in mr_ring_detach(). */
    while ((ring = find_best(pool, MR_RING_CLOSED, has_ended_before)) &&
           !mr_compare_exchange_acq_rel(&ring->state, &state, STATE_TAKEN))
        state = MR_RING_CLOSED;
    if (!ring)
        return NULL;
    end = mr_load_relaxed(&ring->end);
    mr_ring_reset(ring);
    mr_store_relaxed(&ring->tail, end);
    return ring;
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

static bool map_words(struct mr_pool *pool, struct mr_ring *ring, uint64_t bytes)
{
    if (pool->recorder) {
        ring->recorded = mr_recorder_ring_new(pool->recorder, bytes, &ring->words);
        return ring->recorded != NULL;
    }
    ring->words = map(bytes, MAP_POPULATE);
    if (ring->words)
        (void)madvise((void *)(uintptr_t)ring->words, bytes, MADV_WIPEONFORK);
    return ring->words != NULL;
}

static struct mr_ring *map_ring(struct mr_pool *pool, uint64_t bytes)
{
    struct mr_ring *ring = map(header_bytes(), 0);

    if (!ring)
        return NULL;
    if (!map_words(pool, ring, bytes)) {
        (void)munmap(ring, header_bytes());
        return NULL;
    }
    ring->capacity = bytes / sizeof(uint64_t);
    ring->shared = &pool->shared;
    mr_ring_reset(ring);
    mr_store_relaxed(&ring->state, STATE_TAKEN);
    return ring;
}

/* As much as the ceiling is still away, the next ring may be as large: see pool.h. */
static uint64_t size_of_next(const struct mr_pool *pool)
{
    uint64_t used = mr_load_relaxed(&pool->mapped_bytes), bytes = pool->ring_bytes;
    uint64_t left = pool->ceiling_bytes > used ? pool->ceiling_bytes - used : 0;
    uint64_t share = pool->ceiling_bytes / 2;

    for (; bytes > MR_RING_WORDS_MIN * sizeof(uint64_t) && left <= share; share /= 2)
        bytes /= 2;
    return bytes;
}

static struct mr_ring *take_new(struct mr_pool *pool)
{
    uint64_t words = size_of_next(pool), bytes = header_bytes() + words;
    struct mr_ring *ring;

    if (!budget_take(pool, bytes))
        return NULL;
    ring = map_ring(pool, words);
    if (ring)
        append(pool, ring);
    else
        (void)mr_add_relaxed(&pool->mapped_bytes, -bytes);
    return ring;
}

static struct mr_ring *take_recorded(struct mr_pool *pool)
{
    bool is_roomy = size_of_next(pool) == pool->ring_bytes;
    struct mr_ring *ring = is_roomy ? take_new(pool) : NULL;

    if (!ring)
        ring = take_oldest(pool);
    return ring ? ring : take_new(pool);
}

struct mr_ring *mr_pool_take(struct mr_pool *pool)
{
    struct mr_ring *ring = pool->recorder ? take_recorded(pool) : take_free(pool);

    if (!ring && !pool->recorder)
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
    uint64_t tail = ring->done.tail, bytes = ring->capacity * sizeof(uint64_t);
    bool is_cold = mr_load_relaxed(&pool->warm_count) >= MR_POOL_WARM_COUNT &&
                   madvise((void *)(uintptr_t)ring->words, bytes, MADV_DONTNEED) == 0;

    if (is_cold)
        tail = 0;
    else
        (void)mr_add_relaxed(&pool->warm_count, 1);
    mr_ring_reset(ring);
    ring->done.tail = tail;
    mr_store_relaxed(&ring->tail, tail);
    mr_store_relaxed(&ring->is_cold, is_cold);
    /* [F] pairs with [A] in take_free(). */
    mr_store_release(&ring->state, MR_RING_FREE);
}

static void unmap_ring(struct mr_ring *ring)
{
    if (!ring->recorded)
        (void)munmap((void *)(uintptr_t)ring->words, ring->capacity * sizeof(uint64_t));
    if (mr_load_relaxed(&ring->pruned))
        (void)munmap(mr_load_relaxed(&ring->pruned), ring->pruned_bytes);
    (void)munmap(ring, header_bytes());
}

void mr_pool_after_fork(struct mr_pool *pool)
{
    if (pool->recorder) /* the words are the parent's */
        mr_pool_fini(pool);
    for (struct mr_ring *ring = mr_load_relaxed(&pool->rings); ring; ring = ring->next) {
        /* Not every kernel wipes; this one is cheap on pages that are not there. */
        (void)madvise((void *)(uintptr_t)ring->words, ring->capacity * sizeof(uint64_t),
                      MADV_DONTNEED);
        mr_ring_reset(ring);
        mr_store_relaxed(&ring->is_cold, 1);
        mr_store_relaxed(&ring->state, MR_RING_FREE);
    }
    mr_store_relaxed(&pool->next_stream, 1);
    mr_store_relaxed(&pool->warm_count, 0);
    mr_store_relaxed(&pool->shared.stalled, 0);
    mr_store_relaxed(&pool->shared.cuts.count, 0);
    mr_store_relaxed(&pool->shared.cuts.settled, 0);
    mr_prune_marks_after_fork(&pool->shared.prunes);
}

bool mr_pool_counts(struct mr_pool *pool, struct mr_ring *ring, uint64_t bytes)
{
    void *counts;

    if (mr_load_relaxed(&ring->pruned))
        return true;
    if (!budget_take(pool, bytes))
        return false;
    counts = map(bytes, 0);
    ring->pruned_bytes = bytes;
    if (counts)
        mr_store_release(&ring->pruned, counts); /* [M] */
    else
        (void)mr_add_relaxed(&pool->mapped_bytes, -bytes);
    return counts != NULL;
}

void mr_pool_fini(struct mr_pool *pool)
{
    struct mr_ring *ring = mr_load_relaxed(&pool->rings);

    while (ring) {
        struct mr_ring *next = ring->next;

        unmap_ring(ring);
        ring = next;
    }
    mr_store_relaxed(&pool->rings, NULL);
    mr_store_relaxed(&pool->mapped_bytes, 0);
}
