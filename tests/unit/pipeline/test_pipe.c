/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pipeline/pipe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CAPACITY 8u

static struct mr_batch *numbered(uint32_t number)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_END);

    assert_non_null(batch);
    batch->end_state = number;
    return batch;
}

static struct mr_pipe *new_pipe(struct mr_waker *waker)
{
    struct mr_pipe *pipe = NULL;

    mr_waker_init(waker);
    assert_int_equal(mr_pipe_new(CAPACITY, waker, &pipe), MR_OK);
    return pipe;
}

static void batches_come_out_in_order(void **state)
{
    struct mr_waker waker;
    struct mr_pipe *pipe = new_pipe(&waker);

    (void)state;
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(mr_pipe_push(pipe, numbered(i), NULL), 0);
    assert_int_equal(mr_pipe_fill(pipe), 5);
    for (uint32_t i = 0; i < 5; i++) {
        struct mr_batch *batch = mr_pipe_pop(pipe);

        assert_non_null(batch);
        assert_int_equal(batch->end_state, i);
        mr_batch_free(batch);
    }
    assert_null(mr_pipe_pop(pipe));
    mr_pipe_free(pipe);
}

static void a_full_pipe_refuses_and_keeps_what_it_has(void **state)
{
    struct mr_waker waker;
    struct mr_pipe *pipe = new_pipe(&waker);
    struct mr_batch *extra = numbered(99), *batch;

    (void)state;
    assert_int_equal(mr_pipe_room_total(pipe), CAPACITY - 1);
    for (uint32_t i = 0; i < CAPACITY - 1; i++) {
        assert_true(mr_pipe_has_room(pipe));
        assert_int_equal(mr_pipe_try_push(pipe, numbered(i)), MR_OK);
    }
    assert_false(mr_pipe_has_room(pipe));
    assert_int_equal(mr_pipe_try_push(pipe, extra), MR_AGAIN);
    batch = mr_pipe_pop(pipe);
    assert_int_equal(batch->end_state, 0);
    mr_batch_free(batch);
    assert_int_equal(mr_pipe_try_push(pipe, extra), MR_OK);
    mr_pipe_free(
        pipe); /* with seven batches in it: the leak checker sees whether they are freed */
}

static void a_closed_pipe_is_finished_once_it_is_empty(void **state)
{
    struct mr_waker waker;
    struct mr_pipe *pipe = new_pipe(&waker);

    (void)state;
    assert_true(mr_pipe_is_idle(pipe));
    mr_pipe_push(pipe, numbered(1), NULL);
    assert_false(mr_pipe_is_idle(pipe));
    mr_pipe_close(pipe);
    mr_pipe_close(pipe);
    assert_true(mr_pipe_is_closed(pipe));
    assert_false(mr_pipe_is_finished(pipe));
    mr_batch_free(mr_pipe_pop(pipe));
    assert_true(mr_pipe_is_finished(pipe));
    assert_false(mr_pipe_is_idle(pipe));
    mr_pipe_free(pipe);
    mr_pipe_free(NULL);
}

static void a_wake_before_the_sleep_is_not_lost(void **state)
{
    struct mr_waker waker;
    uint64_t start_ns = mr_clock_monotonic_ns();

    (void)state;
    mr_waker_init(&waker);
    mr_waker_arm(&waker);
    mr_waker_wake(&waker);
    mr_waker_sleep(&waker, MR_HOUR_NS); /* returns at once, or the test times out */
    assert_true(mr_clock_monotonic_ns() - start_ns < MR_HOUR_NS);
}

static void *pop_one_later(void *argument)
{
    struct mr_pipe *pipe = argument;
    struct mr_batch *batch;

    while (!(batch = mr_pipe_pop(pipe)))
        ;
    mr_batch_free(batch);
    return NULL;
}

static void a_push_into_a_full_pipe_waits_for_room(void **state)
{
    struct mr_waker waker;
    struct mr_pipe *pipe = new_pipe(&waker);
    pthread_t consumer;

    (void)state;
    for (uint32_t i = 0; i < CAPACITY - 1; i++)
        mr_pipe_push(pipe, numbered(i), NULL);
    assert_int_equal(pthread_create(&consumer, NULL, pop_one_later, pipe), 0);
    mr_pipe_push(pipe, numbered(CAPACITY), NULL);
    assert_int_equal(pthread_join(consumer, NULL), 0);
    assert_int_equal(mr_pipe_fill(pipe), CAPACITY - 1);
    mr_pipe_free(pipe);
}

/* The naive model is two counters: what went in, what came out. */
static void random_sequences_agree_with_a_counter_model(void **state)
{
    struct mr_waker waker;
    struct mr_pipe *pipe = new_pipe(&waker);
    unsigned seed = (unsigned)mr_clock_realtime_ns();
    uint32_t in = 0, out = 0;

    (void)state;
    print_message("seed %u\n", seed);
    for (int i = 0; i < 20000; i++) {
        if (rand_r(&seed) % 2) {
            struct mr_batch *batch = numbered(in);
            bool fits = in - out < CAPACITY - 1;

            assert_int_equal(mr_pipe_try_push(pipe, batch), fits ? MR_OK : MR_AGAIN);
            if (!fits)
                mr_batch_free(batch);
            in += fits;
        } else {
            struct mr_batch *batch = mr_pipe_pop(pipe);

            assert_int_equal(batch != NULL, in != out);
            if (batch)
                assert_int_equal(batch->end_state, out++);
            mr_batch_free(batch);
        }
        assert_int_equal(mr_pipe_fill(pipe), in - out);
    }
    mr_pipe_free(pipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_out_in_order),
        cmocka_unit_test(a_full_pipe_refuses_and_keeps_what_it_has),
        cmocka_unit_test(a_closed_pipe_is_finished_once_it_is_empty),
        cmocka_unit_test(a_wake_before_the_sleep_is_not_lost),
        cmocka_unit_test(a_push_into_a_full_pipe_waits_for_room),
        cmocka_unit_test(random_sequences_agree_with_a_counter_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
