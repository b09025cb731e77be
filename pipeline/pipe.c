/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field            written by          read by             access
 * ring p_tail      producer            consumer, any       ck_ring: store fence before it [P], load fence after it [C]
 * ring c_head      consumer            producer, any       ck_ring [R] [A]
 * closed           producer            consumer, any       release store [X], acquire load [Y]
 * waker.state      sleeper, wakers     sleeper, wakers     acq_rel exchanges [S] [W]
 *
 * Pairs: [P]-[C] the batch before its pointer; [R]-[A] the slot is read before it is used
 * again; [X]-[Y] the last push before
 *        the close.
 * Sleep: arm is an exchange [S], wake is an exchange [W], both on `state`, so they are
 * ordered. If the wake comes first, the arm
 *        reads from it and the sleeper's second look sees what was made visible before the wake. If the arm comes first, the
 *        wake sees ARMED and calls the kernel, whose futex compares the state again. No wake is lost.
 * Invariant: p_tail - c_head < capacity (free-running).
 * Progress: try_push and pop wait-free; push waits for the consumer.
 * Checked by: tests/race/test_pipe.c. ThreadSanitizer does not see ck_ring's assembly:
 * [P]-[C] is told by MR_TSAN_*, the slots by the suppression race:^_ck_ring_.
 */
#include "pipeline/pipe.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/compiler.h"

#include <ck_ring.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum waker_state { AWAKE = 0, ARMED = 1 };

/*
 * A push that finds the pipe full looks this often before it sleeps: about 2 us, a third
 * of a futex round trip.
 */
#define FULL_SPINS 50
#define FULL_SLEEP_NS                                                                    \
    (100 *                                                                               \
     MR_MILLISECOND_NS) /* only a bound: the pop wakes; and how often who waits is told */

struct mr_pipe {
    MR_ALIGNED(MR_CACHE_LINE) struct ck_ring ring; /* pads its two sides itself */
    MR_ALIGNED(MR_CACHE_LINE)
    struct mr_waker room; /* where the producer sleeps; the consumer wakes */
    MR_ALIGNED(MR_CACHE_LINE) _Atomic bool closed;
    struct mr_waker *consumer;
    ck_ring_buffer_t slots[];
};

_Static_assert(offsetof(struct ck_ring, p_tail) - offsetof(struct ck_ring, c_head) >=
                   MR_CACHE_LINE,
               "the sides of the ring have different writers");

void mr_waker_init(struct mr_waker *waker)
{
    atomic_init(&waker->state, AWAKE);
}

void mr_waker_arm(struct mr_waker *waker)
{
    (void)mr_exchange_acq_rel(&waker->state,
                              ARMED); /* [S] pairs with [W] in mr_waker_wake() */
}

void mr_waker_disarm(struct mr_waker *waker)
{
    mr_store_relaxed(&waker->state,
                     AWAKE); /* relaxed: only the next arm orders anything */
}

void mr_waker_sleep(struct mr_waker *waker, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / MR_SECOND_NS),
                               .tv_nsec = (long)(timeout_ns % MR_SECOND_NS)};

    /* Woken, timed out, state changed already, signal: all mean "look again". */
    (void)syscall(SYS_futex, &waker->state, FUTEX_WAIT_PRIVATE, ARMED, &timeout, NULL, 0);
    mr_waker_disarm(waker);
}

void mr_waker_wake(struct mr_waker *waker)
{
    /* [W] pairs with [S] in mr_waker_arm() */
    if (MR_UNLIKELY(mr_exchange_acq_rel(&waker->state, AWAKE) == ARMED))
        (void)syscall(SYS_futex, &waker->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

enum mr_status mr_pipe_new(uint32_t capacity, struct mr_waker *consumer,
                           struct mr_pipe **pipe)
{
    struct mr_pipe *made;
    size_t bytes = sizeof(*made) + capacity * sizeof(made->slots[0]);

    MR_ASSERT(capacity >= 2 && capacity <= MR_PIPE_CAPACITY_MAX);
    MR_ASSERT((capacity & (capacity - 1)) == 0);
    MR_ASSERT(consumer);
    bytes = (bytes + MR_CACHE_LINE - 1) & ~(size_t)(MR_CACHE_LINE - 1);
    made = aligned_alloc(MR_CACHE_LINE, bytes);
    if (!made)
        return MR_ENOMEM;
    ck_ring_init(&made->ring, capacity);
    mr_waker_init(&made->room);
    atomic_init(&made->closed, false);
    made->consumer = consumer;
    *pipe = made;
    return MR_OK;
}

void mr_pipe_free(struct mr_pipe *pipe)
{
    struct mr_batch *batch;

    if (!pipe)
        return;
    while ((batch = mr_pipe_pop(pipe)))
        mr_batch_free(batch);
    free(pipe);
}

enum mr_status mr_pipe_try_push(struct mr_pipe *pipe, struct mr_batch *batch)
{
    MR_DEBUG_ASSERT(batch);
    MR_DEBUG_ASSERT(!mr_load_relaxed(&pipe->closed)); /* relaxed: this thread wrote it */
    MR_TSAN_RELEASE(pipe);
    if (!ck_ring_enqueue_spsc(&pipe->ring, pipe->slots,
                              batch)) /* [P] pairs with [C] in mr_pipe_pop() */
        return MR_AGAIN;
    mr_waker_wake(pipe->consumer);
    return MR_OK;
}

static bool spin_push(struct mr_pipe *pipe, struct mr_batch *batch)
{
    for (uint32_t i = 0; i < FULL_SPINS; i++) {
        mr_cpu_relax();
        if (mr_pipe_try_push(pipe, batch) == MR_OK)
            return true;
    }
    return false;
}

/* Adds what went by since `*since_ns`, which becomes now. */
static uint64_t tell_wait(_Atomic uint64_t *waited_ns, uint64_t *since_ns)
{
    uint64_t now_ns = mr_clock_monotonic_ns(), gone_ns = now_ns - *since_ns;

    if (waited_ns)
        mr_count_single_writer(waited_ns, gone_ns);
    *since_ns = now_ns;
    return gone_ns;
}

static MR_COLD uint64_t push_waiting(struct mr_pipe *pipe, struct mr_batch *batch,
                                     _Atomic uint64_t *waited_ns, void (*on_wait)(void *),
                                     void *context)
{
    uint64_t since_ns = mr_clock_monotonic_ns(), all_ns = 0;

    while (!spin_push(pipe, batch)) {
        mr_waker_arm(&pipe->room);
        if (mr_pipe_has_room(pipe))
            mr_waker_disarm(&pipe->room);
        else
            mr_waker_sleep(&pipe->room, FULL_SLEEP_NS);
        if (on_wait)
            on_wait(context);
        all_ns += tell_wait(waited_ns, &since_ns);
    }
    return all_ns + tell_wait(waited_ns, &since_ns);
}

uint64_t mr_pipe_push(struct mr_pipe *pipe, struct mr_batch *batch,
                      _Atomic uint64_t *waited_ns)
{
    if (MR_LIKELY(mr_pipe_try_push(pipe, batch) == MR_OK))
        return 0;
    return push_waiting(pipe, batch, waited_ns, NULL, NULL);
}

uint64_t mr_pipe_push_telling(struct mr_pipe *pipe, struct mr_batch *batch,
                              _Atomic uint64_t *waited_ns, void (*on_wait)(void *),
                              void *context)
{
    if (MR_LIKELY(mr_pipe_try_push(pipe, batch) == MR_OK))
        return 0;
    return push_waiting(pipe, batch, waited_ns, on_wait, context);
}

bool mr_pipe_has_room(const struct mr_pipe *pipe)
{
    return ck_ring_size(&pipe->ring) <
           ck_ring_capacity(&pipe->ring) - 1; /* [A] pairs with [R] in mr_pipe_pop() */
}

void mr_pipe_close(struct mr_pipe *pipe)
{
    mr_store_release(&pipe->closed, true); /* [X] pairs with [Y] in mr_pipe_is_closed() */
    mr_waker_wake(pipe->consumer);
}

struct mr_batch *mr_pipe_pop(struct mr_pipe *pipe)
{
    void *batch = NULL;

    /*
     * Two steps, so that ThreadSanitizer's acquire lies between seeing the tail and using
     * the batch.
     */
    if (ck_ring_size(&pipe->ring) == 0)
        return NULL;
    MR_TSAN_ACQUIRE(pipe);
    /* [C] pairs with [P] in mr_pipe_try_push(); [R] with [A] in mr_pipe_has_room() */
    if (!ck_ring_dequeue_spsc(&pipe->ring, pipe->slots, &batch))
        return NULL;
    mr_waker_wake(&pipe->room);
    MR_DEBUG_ASSERT(batch);
    return batch;
}

bool mr_pipe_is_closed(const struct mr_pipe *pipe)
{
    return mr_load_acquire(&pipe->closed); /* [Y] pairs with [X] in mr_pipe_close() */
}

bool mr_pipe_is_idle(const struct mr_pipe *pipe)
{
    return ck_ring_size(&pipe->ring) == 0 && !mr_pipe_is_closed(pipe);
}

bool mr_pipe_is_finished(const struct mr_pipe *pipe)
{
    /* In this order: a push before the close is seen once the close is. */
    return mr_pipe_is_closed(pipe) && ck_ring_size(&pipe->ring) == 0;
}

uint32_t mr_pipe_fill(const struct mr_pipe *pipe)
{
    return ck_ring_size(&pipe->ring);
}

uint32_t mr_pipe_room_total(const struct mr_pipe *pipe)
{
    return ck_ring_capacity(&pipe->ring) - 1;
}
