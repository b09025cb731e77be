/* SPDX-License-Identifier: Apache-2.0 */
/* Clock hybrid, with the test as the ticker. */
#include "rig.h"

#define SITE MR_SITE_FIRST_MODULE

#define NEVER UINT64_MAX        /* does a tick become stale */
#define ANY (UINT64_C(1) << 56) /* pace lets as many share as may at most */

static void set_lengths(uint64_t stale_ticks, uint64_t pace_ticks)
{
    mr_store_relaxed(&mr_tick.stale_ticks, stale_ticks);
    mr_store_relaxed(&mr_tick.pace_ticks, pace_ticks);
}

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
    for (int pass = 0; pass < 2;
         pass++) { /* the newest words are left for a second one */
        rig_drain(rig, RIG_FRAME_SIZE);
        while (rig_next(rig))
            if (rig->record.site == SITE) {
                assert_false(rig->record.is_inversion);
                ticks[seen++] = rig->record.ticks;
            }
    }
    assert_int_equal(seen, count);
}

static void within_a_tick_the_counter_is_read_now_and_then(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[1000];
    uint32_t run = 1, longest = 1, shortest = UINT32_MAX;

    (void)state;
    set_lengths(NEVER, ANY);
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
    assert_in_range(shortest, 31, longest);
    assert_in_range(longest, 31, 32); /* the requirement: one in 32 reads */
    rig_free(rig);
}

static void a_new_number_makes_the_next_event_read(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[3], before;

    (void)state;
    set_lengths(NEVER, ANY);
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
    uint64_t ticks[3 * MR_TICK_EVENTS];

    (void)state;
    set_lengths(1, ANY); /* any two reads are further apart */
    publish(8);
    events(rig, 3 * MR_TICK_EVENTS, ticks);
    /* One run at the most before the standstill shows, and then none. */
    for (uint32_t i = MR_TICK_EVENTS + 1; i < 3 * MR_TICK_EVENTS; i++)
        assert_true(ticks[i] > ticks[i - 1]);
    publish(9); /* it moves again */
    events(rig, 2, ticks);
    assert_true(ticks[0] == ticks[1]);
    rig_free(rig);
}

#define PERIOD 20000

/* The counter moves on by `span` at least. */
static void wait_for(uint64_t span)
{
    uint64_t start = mr_clock_ticks();

    while (mr_clock_ticks() - start < span)
        mr_cpu_relax();
}

/* What comes once in a tick or less shares no read, whether the ticker goes on or not. */
static void rare_events_share_no_read(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[2];

    (void)state;
    set_lengths(2 * PERIOD, PERIOD);
    for (uint64_t number = 20; number < 30; number++) {
        publish(number);
        wait_for(2 * PERIOD);
        events(rig, 1, ticks);
    }
    events(rig, 1, ticks + 1); /* the number is that of the one before */
    assert_true(ticks[1] > ticks[0]);
    rig_free(rig);
}

/* Two events in most of a pace: no more share a read, though the tick is longer. */
static void few_events_share_a_read_within_a_longer_tick(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t pace = UINT64_C(100) * PERIOD, ticks[8];
    uint32_t reads = 0;

    (void)state;
    set_lengths(NEVER, pace);
    publish(31);
    for (int i = 0; i < 2; i++)
        mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    wait_for(pace / 2);
    publish(32);
    mr_ring_event_hybrid(&rig->thread,
                         mr_event_enter(SITE)); /* reads, and tells the pace */
    for (int i = 0; i < 5; i++)
        mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    (void)rig_drain(rig, RIG_FRAME_SIZE);
    for (uint32_t i = 0; i < 8;) {
        assert_true(rig_next(rig));
        if (rig->record.site == SITE)
            ticks[i++] = rig->record.ticks;
    }
    for (uint32_t i = 3; i < 8; i++)
        reads += ticks[i] != ticks[i - 1];
    assert_true(reads > 0);
    rig_free(rig);
}

/* One that was rare, then many: they do not read until the tick is over. */
static void who_shares_nothing_thinks_again_after_a_pace(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t pace = UINT64_C(100) * PERIOD;

    (void)state;
    set_lengths(NEVER, pace);
    publish(33);
    mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    assert_false(mr_ring_shares(&rig->thread, 33));
    for (int i = 0; i < 2000; i++)
        mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    wait_for(pace);
    mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    assert_true(mr_ring_shares(&rig->thread, 33));
    rig_free(rig);
}

static void a_new_ring_begins_with_a_read(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[2], before;

    (void)state;
    set_lengths(NEVER, ANY);
    publish(10);
    events(rig, 2, ticks);
    before = mr_clock_ticks();
    mr_ring_attach(&rig->thread, rig->ring);
    events(rig, 1, ticks);
    assert_true(ticks[0] >= before);
    rig_free(rig);
}

/*
 * A word is made of what was worked out at the read: that ends with the lap, and the ring. Where the test has to wait, a sync
 * record ends sharing for a pace, here for ever, or until the next number.
 */
static void events_share_reads_over_many_laps(void **state)
{
    struct rig *rig = rig_new(512, MR_POLICY_DROP);
    uint64_t ticks[300], last = 0, shared = 0;

    (void)state;
    set_lengths(NEVER, ANY);
    for (uint64_t round = 0; round < 100; round++) {
        publish(11 + round);
        events(rig, 300, ticks);
        for (int i = 0; i < 300; i++) {
            assert_true(ticks[i] >= last);
            shared += ticks[i] == last;
            last = ticks[i];
        }
    }
    assert_true(rig->thread.cursor > 50 * 512);
    assert_true(shared > 100 * 200);
    rig_free(rig);
}

/* Where it took a number, and a handler later ones, the number is used, else given back. */
static void an_event_begins_again_unless_a_handler_came(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    uint64_t ticks[2], index, before;

    (void)state;
    set_lengths(NEVER, ANY);
    publish(12);
    events(rig, 2, ticks);
    index = mr_arch_reserve(&rig->thread.cursor);
    mr_ring_event_again(&rig->thread, mr_event_enter(SITE), index);
    assert_true(rig->thread.cursor == index + 1);
    before = rig->thread.tick.ticks;
    index = mr_arch_reserve(&rig->thread.cursor);
    mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE + 1));
    mr_ring_event_again(&rig->thread, mr_event_enter(SITE + 2), index);
    assert_true(rig->thread.cursor == index + 2);
    (void)rig_drain(rig, RIG_FRAME_SIZE);
    assert_true(rig_next(rig) && rig->record.site == SITE);
    rig_expect_event(rig, SITE + 2, false, before);
    assert_true(rig_next(rig) && rig->record.site == SITE + 1);
    assert_false(rig->record.is_inversion);
    rig_free(rig);
}

/* A precise record stands between: what follows it is not told a time before it. */
static void nothing_is_shared_across_a_record_or_a_loss(void **state)
{
    struct rig *rig = rig_new(4096, MR_POLICY_DROP);
    struct mr_event event = {.bits = mr_event_enter(SITE), .words = 1};
    uint64_t ticks[2], now;

    (void)state;
    set_lengths(NEVER, ANY);
    publish(13);
    events(rig, 2, ticks);
    assert_true(mr_ring_shares(&rig->thread, 13));
    now = mr_clock_ticks();
    mr_ring_wide(&rig->thread, 0, 0x1234, now);
    assert_false(mr_ring_shares(&rig->thread, 13));
    events(rig, 1, ticks);
    assert_true(ticks[0] >= now);
    publish(14);
    events(rig, 2, ticks);
    assert_true(mr_ring_shares(&rig->thread, 14));
    mr_ring_drop(&rig->thread, &event, MR_LOSS_RING_FULL);
    assert_false(mr_ring_shares(&rig->thread, 14));
    mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    (void)rig_drain(rig, RIG_FRAME_SIZE);
    rig_expect_kind(rig, MR_RECORD_SYNC); /* the period was given up with the loss */
    rig_expect_loss(rig, 1, MR_LOSS_RING_FULL, 0, 1);
    assert_true(rig_next(rig) && rig->record.site == SITE);
    publish(15);
    mr_ring_event_hybrid(&rig->thread, mr_event_enter(SITE));
    assert_true(mr_ring_shares(&rig->thread, 15));
    mr_ring_detach(&rig->thread);
    assert_false(mr_ring_shares(&rig->thread, 15));
    rig_free(rig);
}

static struct mr_ticker *make_ticker(void)
{
    struct mr_ticker *ticker = aligned_alloc(MR_CACHE_LINE, sizeof(*ticker));

    assert_non_null(ticker);
    memset(ticker, 0, sizeof(*ticker));
    return ticker;
}

static void who_drains_ticks_where_nobody_else_does(void **state)
{
    struct mr_ticker *ticker = make_ticker();
    uint64_t number, start = mr_clock_ticks();

    (void)state;
    mr_store_relaxed(&mr_tick.stale_ticks, 0); /* not known yet what a tick is */
    publish(MR_TICK_NONE);
    assert_true(mr_tick_beat(ticker) == 0);
    mr_store_relaxed(&mr_tick.stale_ticks, 2 * PERIOD);
    number = mr_tick_beat(ticker);
    assert_true(number >= start && mr_load_relaxed(&mr_tick.number) == number);
    assert_true(mr_tick_count(ticker) == 0); /* from no tick there is no gap */
    wait_for(PERIOD);
    number = mr_tick_beat(ticker);
    assert_true(mr_load_relaxed(&mr_tick.number) == number && number > start);
    assert_true(mr_tick_count(ticker) == 1);
    assert_true(mr_tick_gap_max(ticker) >= PERIOD);
    mr_tick_publish(&ticker->own,
                    mr_clock_ticks() + UINT64_C(1000) * PERIOD); /* somebody else did */
    number = mr_load_relaxed(&mr_tick.number);
    assert_true(mr_tick_beat(ticker) == 0 && mr_load_relaxed(&mr_tick.number) == number);
    free(ticker);
}

static void spans_of_time_are_told_in_ticks_of_the_clock(void **state)
{
    (void)state;
    mr_store_relaxed(&mr_tick.stale_ticks, 0);
    assert_true(mr_tick_span(MR_SECOND_NS) == 0);
    mr_store_relaxed(&mr_tick.stale_ticks, 2 * PERIOD);
    assert_true(mr_tick_span(MR_TICK_NS) == PERIOD);
    assert_true(mr_tick_span(MR_TICK_NS / 4) == PERIOD / 4); /* shorter than a tick */
    assert_true(mr_tick_span(UINT64_C(500) * MR_TICK_NS) == UINT64_C(500) * PERIOD);
}

static void who_drained_and_rests_ticks_no_more(void **state)
{
    struct mr_ticker *ticker = make_ticker();

    (void)state;
    mr_store_relaxed(&mr_tick.stale_ticks, 2 * PERIOD);
    publish(77);
    mr_tick_rest(ticker, 0); /* it never ticked */
    mr_tick_rest(ticker, 76);
    assert_true(mr_load_relaxed(&mr_tick.number) == 77); /* another's number */
    mr_store_relaxed(&ticker->given, mr_clock_ticks() + UINT64_C(1000000) * PERIOD);
    mr_tick_rest(ticker, 77);
    assert_true(mr_load_relaxed(&mr_tick.number) == 77); /* the ticker runs */
    mr_store_relaxed(&ticker->given, 0);
    mr_tick_rest(ticker, 77);
    assert_true(mr_load_relaxed(&mr_tick.number) == MR_TICK_NONE);
    free(ticker);
}

static void gaps_are_weighed_by_their_length(void **state)
{
    struct mr_ticker *ticker = make_ticker();

    (void)state;
    assert_true(mr_tick_gap(ticker, 990000) == 0);
    for (int i = 0; i < 1000; i++)
        mr_tick_note(&ticker->own, 2600);
    assert_in_range(mr_tick_gap(ticker, 990000), 2600, 3250);
    mr_tick_note(&ticker->beats, 2600 * 5); /* half a per cent of the time */
    assert_in_range(mr_tick_gap(ticker, 990000), 2600, 3250);
    assert_true(mr_tick_gap(ticker, 1000000) == 2600 * 5); /* no more than the longest */
    mr_tick_note(&ticker->own, 2600 * 1000);               /* half of the time */
    assert_true(mr_tick_gap(ticker, 990000) == 2600 * 1000);
    assert_in_range(mr_tick_gap(ticker, 400000), 2600, 3250);
    assert_true(mr_tick_gap_max(ticker) == 2600 * 1000);
    for (int shift = 0; shift < 64; shift++) /* every length has a bucket */
        mr_tick_note(&ticker->own, UINT64_C(1) << shift);
    free(ticker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(within_a_tick_the_counter_is_read_now_and_then),
        cmocka_unit_test(a_new_number_makes_the_next_event_read),
        cmocka_unit_test(without_a_ticker_every_event_reads),
        cmocka_unit_test(a_ticker_that_stands_still_is_noticed),
        cmocka_unit_test(rare_events_share_no_read),
        cmocka_unit_test(few_events_share_a_read_within_a_longer_tick),
        cmocka_unit_test(who_shares_nothing_thinks_again_after_a_pace),
        cmocka_unit_test(a_new_ring_begins_with_a_read),
        cmocka_unit_test(events_share_reads_over_many_laps),
        cmocka_unit_test(an_event_begins_again_unless_a_handler_came),
        cmocka_unit_test(nothing_is_shared_across_a_record_or_a_loss),
        cmocka_unit_test(who_drains_ticks_where_nobody_else_does),
        cmocka_unit_test(spans_of_time_are_told_in_ticks_of_the_clock),
        cmocka_unit_test(who_drained_and_rests_ticks_no_more),
        cmocka_unit_test(gaps_are_weighed_by_their_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
