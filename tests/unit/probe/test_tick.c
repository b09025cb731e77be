/* SPDX-License-Identifier: Apache-2.0 */
/* Clock hybrid, with the test as the ticker. */
#include "rig.h"

#define SITE MR_SITE_FIRST_MODULE

static void publish(uint64_t number)
{
    mr_store_relaxed(&mr_tick.number, number);
}

/* Times of `count` events of a thread, one after the other. */
static void events(struct rig *rig, uint32_t count, uint64_t *ticks)
{
    uint32_t seen = 0;

    for (uint32_t i = 0; i < count; i++)
        mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    rig_drain(rig, RIG_FRAME_SIZE);
    while (rig_next(rig))
        if (rig->record.site == SITE) {
            assert_false(rig->record.is_inversion);
            ticks[seen++] = rig->record.ticks;
        }
    assert_int_equal(seen, count);
}

static void within_a_tick_the_counter_is_read_now_and_then(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[1000];
    uint32_t run = 1, longest = 1, shortest = UINT32_MAX;

    (void)state;
    mr_store_relaxed(&mr_tick.stale_ticks, UINT64_MAX);
    publish(5);
    events(rig, 1000, ticks);
    for (uint32_t i = 1; i < 1000; i++) {
        if (ticks[i] == ticks[i - 1]) {
            run++;
            continue;
        }
        if (i > run && run < shortest) /* but the first: a sync stands before it */
            shortest = run;
        longest = run > longest ? run : longest;
        run = 1;
    }
    assert_in_range(longest, MR_TICK_EVENTS - MR_TICK_JITTER_MASK, MR_TICK_EVENTS);
    assert_in_range(shortest, MR_TICK_EVENTS - MR_TICK_JITTER_MASK, MR_TICK_EVENTS);
    rig_free(rig);
}

static void a_new_number_makes_the_next_event_read(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[3], before;

    (void)state;
    mr_store_relaxed(&mr_tick.stale_ticks, UINT64_MAX);
    publish(6);
    events(rig, 2, ticks);
    assert_true(ticks[0] == ticks[1]);
    before = mr_clock_ticks();
    events(rig, 1, ticks);
    assert_true(ticks[0] <= before);
    publish(7);
    events(rig, 1, ticks);
    assert_true(ticks[0] >= before);
    rig_free(rig);
}

static void without_a_ticker_every_event_reads(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[100];

    (void)state;
    publish(MR_TICK_NONE);
    events(rig, 100, ticks);
    for (uint32_t i = 1; i < 100; i++)
        assert_true(ticks[i] > ticks[i - 1]);
    rig_free(rig);
}

static void a_ticker_that_stands_still_is_noticed(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[100];

    (void)state;
    mr_store_relaxed(&mr_tick.stale_ticks, 1); /* any two reads are further apart */
    publish(8);
    events(rig, 100, ticks);
    /* One run at the most before the standstill shows, and then none. */
    for (uint32_t i = MR_TICK_EVENTS + 1; i < 100; i++)
        assert_true(ticks[i] > ticks[i - 1]);
    publish(9); /* it moves again */
    events(rig, 2, ticks);
    assert_true(ticks[0] == ticks[1]);
    rig_free(rig);
}

static void a_new_ring_begins_with_a_read(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[2], before;

    (void)state;
    mr_store_relaxed(&mr_tick.stale_ticks, UINT64_MAX);
    publish(10);
    events(rig, 2, ticks);
    before = mr_clock_ticks();
    mr_ring_attach(&rig->thread, rig->ring);
    events(rig, 1, ticks);
    assert_true(ticks[0] >= before);
    rig_free(rig);
}

static void gaps_are_weighed_by_their_length(void **state)
{
    struct mr_ticker *ticker = calloc(1, sizeof(*ticker));

    (void)state;
    assert_non_null(ticker);
    assert_true(mr_tick_gap(ticker, 990000) == 0);
    for (int i = 0; i < 1000; i++)
        mr_tick_note(ticker, 2600);
    assert_in_range(mr_tick_gap(ticker, 990000), 2600, 3250);
    mr_tick_note(ticker, 2600 * 5); /* half a per cent of the time */
    assert_in_range(mr_tick_gap(ticker, 990000), 2600, 3250);
    assert_true(mr_tick_gap(ticker, 1000000) == 2600 * 5); /* no more than the longest */
    mr_tick_note(ticker, 2600 * 1000);                     /* half of the time */
    assert_true(mr_tick_gap(ticker, 990000) == 2600 * 1000);
    assert_in_range(mr_tick_gap(ticker, 400000), 2600, 3250);
    assert_true(mr_load_relaxed(&ticker->gap_ticks_max) == 2600 * 1000);
    for (int shift = 0; shift < 64; shift++) /* every length has a bucket */
        mr_tick_note(ticker, UINT64_C(1) << shift);
    free(ticker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_a_tick_the_counter_is_read_now_and_then),
        cmocka_unit_test(a_new_number_makes_the_next_event_read),
        cmocka_unit_test(without_a_ticker_every_event_reads),
        cmocka_unit_test(a_ticker_that_stands_still_is_noticed),
        cmocka_unit_test(a_new_ring_begins_with_a_read),
        cmocka_unit_test(gaps_are_weighed_by_their_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
