/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One producer, one consumer, a small pipe, random pauses on both sides: order, contents,
 * sleeping and waking.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "pipeline/pipe.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 8
#define BATCHES 20000u

struct producer {
    struct mr_pipe *pipe;
    unsigned seed;
};

/* Now and then the other side gets ahead: by a yield, or so far that it goes to sleep. */
static void perturb(unsigned *seed)
{
    static const struct timespec nap = {0, 20000};
    int dice = rand_r(seed) % 1000;

    if (dice < 20)
        (void)sched_yield();
    else if (dice == 20)
        (void)nanosleep(&nap, NULL);
}

static void *produce(void *argument)
{
    struct producer *producer = argument;

    for (uint32_t i = 0; i < BATCHES; i++) {
        struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);

        if (!batch)
            abort();
        if (mr_buffer_append_le(&batch->bytes, i, 4) != MR_OK)
            abort();
        (void)mr_pipe_push(producer->pipe, batch, NULL);
        perturb(&producer->seed);
    }
    mr_pipe_close(producer->pipe);
    return NULL;
}

static void check(struct mr_batch *batch, uint32_t expected)
{
    struct mr_span bytes = mr_buffer_span(&batch->bytes);
    uint32_t number;

    assert_true(mr_span_take_u32(&bytes, &number));
    assert_int_equal(number, expected);
    mr_batch_free(batch);
}

static uint32_t consume(struct mr_pipe *pipe, struct mr_waker *waker, unsigned *seed)
{
    uint32_t count = 0;

    while (!mr_pipe_is_finished(pipe)) {
        struct mr_batch *batch = mr_pipe_pop(pipe);

        if (batch) {
            check(batch, count++);
            perturb(seed);
            continue;
        }
        mr_waker_arm(waker);
        /* A lost wake shows as the test's time-out. */
        if (mr_pipe_is_idle(pipe))
            mr_waker_sleep(waker, MR_HOUR_NS);
        else
            mr_waker_disarm(waker);
    }
    return count;
}

static void every_batch_crosses_once_and_in_order(void **state)
{
    unsigned seed = (unsigned)mr_clock_realtime_ns();

    (void)state;
    print_message("seed %u\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        struct mr_waker waker;
        struct producer producer = {.seed = seed + 2 * (unsigned)round};
        unsigned own_seed = producer.seed + 1;
        pthread_t thread;

        mr_waker_init(&waker);
        assert_int_equal(mr_pipe_new(round % 2 ? 4 : 64, &waker, &producer.pipe), MR_OK);
        assert_int_equal(pthread_create(&thread, NULL, produce, &producer), 0);
        assert_int_equal(consume(producer.pipe, &waker, &own_seed), BATCHES);
        assert_int_equal(pthread_join(thread, NULL), 0);
        mr_pipe_free(producer.pipe);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_batch_crosses_once_and_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
