/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipe: a bounded single-producer single-consumer ring of batch pointers between two
 * threads, and the waker on which its two ends sleep. The only user of Concurrency Kit's
 * ck_ring.
 *
 *     producer --push--> [ . . b b b . . ] --pop--> consumer
 *                 waits on pipe's room        waits on its waker, one for all its pipes
 *
 * A batch in the pipe belongs to the pipe; pop gives it away. One thread pushes and
 * closes, one thread pops; fill() and is_closed() may be asked by any. A capacity is a
 * power of two, of which one slot stays empty.
 *
 *     struct mr_waker waker;
 *     struct mr_pipe *pipe;
 *     mr_waker_init(&waker);
 *     status = mr_pipe_new(64, &waker, &pipe);
 *     mr_pipe_push(pipe, batch, &waited_ns);                     // producer
 *     mr_pipe_close(pipe);
 *
 *     while (!mr_pipe_is_finished(pipe)) {                       // consumer
 *         struct mr_batch *batch = mr_pipe_pop(pipe);
 *         if (batch)
 *             use(batch);
 *         else if (mr_waker_arm(&waker), mr_pipe_is_idle(pipe))  // look once more between arming and sleeping
 *             mr_waker_sleep(&waker, timeout_ns);
 *         else
 *             mr_waker_disarm(&waker);
 *     }
 */
#ifndef MR_PIPELINE_PIPE_H
#define MR_PIPELINE_PIPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "pipeline/batch.h"

/* Where one thread sleeps until another has something for it. Any number of wakers. */
struct mr_waker {
    _Atomic uint32_t state;
};
void mr_waker_init(struct mr_waker *waker);
/* The sleeper says that it is about to sleep; then it must look once more for work. */
void mr_waker_arm(struct mr_waker *waker);
/*
 * Sleeps until woken, `timeout_ns` have passed, or for no reason at all. Armed before,
 * disarmed after.
 */
void mr_waker_sleep(struct mr_waker *waker, uint64_t timeout_ns);
void mr_waker_disarm(struct mr_waker *waker);
/*
 * After making work visible: ends the sleep, or the one about to begin. Costs an atomic
 * exchange where nobody sleeps.
 */
void mr_waker_wake(struct mr_waker *waker);

struct mr_pipe;

#define MR_PIPE_CAPACITY_MAX (1u << 16)

/*
 * `capacity`: a power of two, 2 to MR_PIPE_CAPACITY_MAX. `consumer` is borrowed.
 * MR_ENOMEM.
 */
enum mr_status mr_pipe_new(uint32_t capacity, struct mr_waker *consumer,
                           struct mr_pipe **pipe);
/* Frees the batches left in it. No other thread may use it any more. NULL allowed. */
void mr_pipe_free(struct mr_pipe *pipe);

/*
 * Producer. Waits while full; takes the batch. Returns the ns it waited, and adds them to `*waited_ns` as they go by (NULL allowed; this
 * thread alone writes it). Not after close.
 */
uint64_t mr_pipe_push(struct mr_pipe *pipe, struct mr_batch *batch,
                      _Atomic uint64_t *waited_ns);
/* The same; about each 100 ms that it waits on_wait(context) is called, which may take its time. on_wait NULL: nothing is. */
uint64_t mr_pipe_push_telling(struct mr_pipe *pipe, struct mr_batch *batch,
                              _Atomic uint64_t *waited_ns, void (*on_wait)(void *),
                              void *context);
/* Producer. MR_AGAIN when full: the batch stays the caller's. */
enum mr_status mr_pipe_try_push(struct mr_pipe *pipe, struct mr_batch *batch);
/* Producer: whether a push would not wait. */
bool mr_pipe_has_room(const struct mr_pipe *pipe);
/* Producer: no more batches. Allowed again after itself. */
void mr_pipe_close(struct mr_pipe *pipe);

/* Consumer. NULL when empty. */
struct mr_batch *mr_pipe_pop(struct mr_pipe *pipe);
/* Consumer: empty now and not closed: there is a reason to sleep. */
bool mr_pipe_is_idle(const struct mr_pipe *pipe);
/* Consumer: closed and empty, for good. */
bool mr_pipe_is_finished(const struct mr_pipe *pipe);

/* Any thread. A moment old. */
uint32_t mr_pipe_fill(const struct mr_pipe *pipe);
bool mr_pipe_is_closed(const struct mr_pipe *pipe);
/* Batches it can hold. */
uint32_t mr_pipe_room_total(const struct mr_pipe *pipe);

#endif
