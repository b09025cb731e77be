/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock hybrid between its ticker, threads with events, and who asks for ticks. Every
 * thread takes the time before and after each event: the event's must not be later, nor
 * run back, nor be that of more than 32.
 */
#include "tests/unit/unit_test.h"

#include "probe/registry.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define THREADS 3
#define EVENTS 200000
#define WAIT_NS (60 * MR_SECOND_NS)

static struct mr_probe probe;

void mr_interpose_after_fork(void);
void mr_interpose_after_fork(void)
{
}

static uint32_t stamp_of(const struct mr_thread *thread)
{
    return (uint32_t)mr_load_relaxed(&thread->words[(thread->cursor - 1) & thread->mask]);
}

/* A ring of its own, emptied by the thread itself. */
static void *events(void *argument)
{
    struct mr_ring *ring = mr_pool_take(&probe.pool);
    struct mr_thread thread;
    uint64_t last = 0;
    uint32_t stamp = 0, run = 0;

    (void)argument;
    memset(&thread, 0, sizeof(thread));
    assert_non_null(ring);
    mr_ring_attach(&thread, ring);
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint64_t now;

        mr_store_release(&ring->tail, thread.cursor);
        mr_ring_event_hybrid(&thread, mr_event_enter(MR_SITE_FIRST_MODULE));
        now = mr_clock_ticks();
        assert_true(thread.tick.ticks >= last && thread.tick.ticks <= now);
        last = thread.tick.ticks;
        run = stamp_of(&thread) == stamp ? run + 1 : 1;
        assert_true(run <= 32);
        stamp = stamp_of(&thread);
        if (i % 1000 == 0)
            mr_tick_want(&probe.ticker);
    }
    return NULL;
}

static void wait_until_ticking(bool is_ticking)
{
    uint64_t start_ns = mr_clock_monotonic_ns();

    while ((mr_load_relaxed(&mr_tick.number) != MR_TICK_NONE) != is_ticking) {
        assert_true(mr_clock_monotonic_ns() - start_ns < WAIT_NS);
        if (is_ticking)
            mr_tick_want(&probe.ticker);
        (void)usleep(100);
    }
}

static void times_are_of_the_past_and_never_run_back(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    probe.clock.mode = MR_CLOCK_MODE_HYBRID;
    mr_clock_sample(probe.clock.mode, &probe.source.first_sample);
    mr_pool_init(&probe.pool, 1 << 16, 1 << 24);
    assert_int_equal(mr_tick_start(&probe), MR_OK);
    wait_until_ticking(true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, events, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(mr_tick_count(&probe.ticker) > 0);
    assert_true(mr_tick_gap(&probe.ticker, 500000) > 0);
}

static void a_ticker_that_nobody_wants_sleeps_and_wakes(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        wait_until_ticking(false);
        wait_until_ticking(true);
    }
    assert_true(mr_load_relaxed(&probe.ticker.cpu_ns) > 0);
}

static void it_ends_when_the_probe_ends(void **state)
{
    (void)state;
    wait_until_ticking(true);
    mr_store_release(&probe.stop_wanted, 1);
    wait_until_ticking(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_of_the_past_and_never_run_back),
        cmocka_unit_test(a_ticker_that_nobody_wants_sleeps_and_wakes),
        cmocka_unit_test(it_ends_when_the_probe_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
