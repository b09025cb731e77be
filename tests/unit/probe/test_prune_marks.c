/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "probe/pruned.h"

#define SITE MR_SITE_FIRST_MODULE
#define WORDS MR_RING_WORDS_MIN

/* As probe/prune.c does it. Marks are numbered from 1. */
static void add(struct rig *rig, uint32_t site, uint64_t ticks, uint64_t what)
{
    struct mr_prune_marks *marks = &rig->pool.shared.prunes;
    struct mr_pruned_site *told = mr_pruned_at(mr_pruned_add(site));
    uint32_t number = mr_prune_marks_count(marks) + 1;

    if (what == 0) {
        mr_store_relaxed(&told->since, number);
        mr_store_relaxed(&told->settled, 0);
        mr_store_relaxed(&told->until, 0);
    } else if (what == MR_PRUNE_SETTLED) {
        mr_store_relaxed(&told->settled, number);
    } else if (what == (MR_PRUNE_SETTLED | MR_PRUNE_ON_AGAIN)) {
        mr_store_relaxed(&told->until, number);
    }
    mr_prune_marks_add(marks, ticks, &site, 1, what);
}

/* All that is there, over as many frames as it takes, lies in one payload. */
static void drain_all(struct rig *rig, uint64_t now_ns)
{
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    while (mr_drain_ring(&rig->frame, rig->ring, 1, now_ns)) {
        struct mr_drain_frame frame = rig->frame;

        mr_drain_commit(&rig->frame, &rig->pool);
        rig->frame = frame;
        rig->frame.staged = NULL;
        rig->frame.drop_count = 0;
    }
    rig->payload = mr_span_of(rig->out, rig->frame.size);
    rig->reader.left = 0;
}

static void expect_prune(struct rig *rig, uint64_t ticks, uint64_t payload)
{
    rig_expect_kind(rig, MR_RECORD_SYNC);
    assert_true(rig->record.ticks == ticks);
    rig_expect_kind(rig, MR_RECORD_PRUNE);
    assert_true(rig->record.ticks == ticks);
    assert_true(rig->record.payload[0] == payload);
}

static uint64_t dropped(uint32_t site)
{
    return mr_load_relaxed(&mr_pruned_at(mr_pruned_find(site))->dropped);
}

static void calls_behind_the_mark_are_taken_out_and_counted(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 100;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    rig_enter(rig, site, RIG_TICKS + 1);
    rig_exit(rig, site, RIG_TICKS + 2);
    rig_enter(rig, site, RIG_TICKS + 3); /* open at the mark */
    add(rig, site, RIG_TICKS + 4, 0);
    rig_enter(rig, site, RIG_TICKS + 5);
    rig_exit(rig, site, RIG_TICKS + 6);
    rig_exit(rig, site, RIG_TICKS + 7); /* of the open one */
    rig_enter(rig, SITE + 1, RIG_TICKS + 8);
    rig_enter(rig, site, RIG_TICKS + 9); /* its exit is off already */
    add(rig, site, RIG_TICKS + 10, MR_PRUNE_SETTLED);
    rig_enter(rig, site, RIG_TICKS + 11);
    rig_exit(rig, site, RIG_TICKS + 12);
    rig_exit(rig, site, RIG_TICKS + 13);
    rig_exit(rig, SITE + 1, RIG_TICKS + 14);
    drain_all(rig, 0);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_event(rig, site, false, RIG_TICKS + 1);
    rig_expect_event(rig, site, true, RIG_TICKS + 2);
    rig_expect_event(rig, site, false, RIG_TICKS + 3);
    expect_prune(rig, RIG_TICKS + 4, site);
    rig_expect_event(rig, site, true, RIG_TICKS + 7);
    assert_true(rig->chunk.first_event == 4 && rig->chunk.events == 2);
    rig_expect_event(rig, SITE + 1, false, RIG_TICKS + 8);
    expect_prune(rig, RIG_TICKS + 10, site | MR_PRUNE_SETTLED);
    rig_expect_event(rig, SITE + 1, true, RIG_TICKS + 14);
    assert_true(rig->chunk.first_event == 6 && rig->chunk.lost == 0);
    assert_false(rig_next(rig));
    assert_int_equal(dropped(site), 3);
    rig_free(rig);
}

static void in_a_recursion_each_exit_goes_with_its_enter(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 200;

    (void)state;
    rig_enter(rig, site, RIG_TICKS);
    add(rig, site, RIG_TICKS + 1, 0);
    rig_enter(rig, site, RIG_TICKS + 2);
    rig_enter(rig, site, RIG_TICKS + 3);
    rig_exit(rig, site, RIG_TICKS + 4);
    rig_exit(rig, site, RIG_TICKS + 5);
    rig_exit(rig, site, RIG_TICKS + 6);
    drain_all(rig, 0);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, site, false, RIG_TICKS);
    expect_prune(rig, RIG_TICKS + 1, site);
    rig_expect_event(rig, site, true, RIG_TICKS + 6);
    assert_false(rig_next(rig));
    assert_int_equal(dropped(site), 2);
    rig_free(rig);
}

static void recorded_again_calls_come_from_where_that_is_settled(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 300;
    const uint64_t again = MR_PRUNE_ON_AGAIN;

    (void)state;
    add(rig, site, RIG_TICKS - 9, 0);
    add(rig, site, RIG_TICKS - 8, MR_PRUNE_SETTLED);
    rig_enter(rig, SITE, RIG_TICKS);
    add(rig, site, RIG_TICKS + 1, again);
    rig_enter(rig, site, RIG_TICKS + 2);
    rig_exit(rig, site, RIG_TICKS + 3);
    rig_exit(rig, site, RIG_TICKS + 4); /* entered while it was off */
    add(rig, site, RIG_TICKS + 5, again | MR_PRUNE_SETTLED);
    rig_enter(rig, site, RIG_TICKS + 6);
    rig_exit(rig, site, RIG_TICKS + 7);
    drain_all(rig, 0);
    expect_prune(rig, RIG_TICKS, site); /* where the stream begins */
    expect_prune(rig, RIG_TICKS, site | MR_PRUNE_SETTLED);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_kind(rig, MR_RECORD_SYNC); /* nothing is said of where it begins */
    expect_prune(rig, RIG_TICKS + 5, site | again);
    rig_expect_event(rig, site, false, RIG_TICKS + 6);
    rig_expect_event(rig, site, true, RIG_TICKS + 7);
    assert_false(rig_next(rig));
    assert_int_equal(dropped(site), 1);
    rig_free(rig);
}

static void a_thread_that_took_its_ring_later_is_told_nothing(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 400;

    (void)state;
    add(rig, site, RIG_TICKS - 9, 0);
    add(rig, site, RIG_TICKS - 8, MR_PRUNE_SETTLED);
    rig->ring->prunes_before = 2;
    rig_enter(rig, SITE, RIG_TICKS);
    drain_all(rig, 0);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void a_stream_at_rest_is_told_after_a_while(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 500;
    uint64_t now_ns;

    (void)state;
    rig_enter(rig, site, RIG_TICKS);
    drain_all(rig, 0);
    add(rig, site, RIG_TICKS + 5, 0);
    add(rig, site, RIG_TICKS + 6, MR_PRUNE_SETTLED);
    now_ns = mr_clock_monotonic_ns();
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    assert_false(mr_drain_ring(&rig->frame, rig->ring, 1, now_ns));
    drain_all(rig, now_ns + 2 * MR_CUT_REST_NS);
    expect_prune(rig, RIG_TICKS + 5, site);
    expect_prune(rig, RIG_TICKS + 6, site | MR_PRUNE_SETTLED);
    assert_false(rig_next(rig));
    rig_free(rig);
}

/* Values of counters are of the event before them. */
static void values_go_with_the_call_that_they_are_of(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 600;
    const uint64_t values[] = {42};

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    add(rig, site, RIG_TICKS + 1, 0);
    mr_ring_event_counted(&rig->thread, mr_event_enter(site), RIG_TICKS + 2, values, 1);
    mr_ring_event_counted(&rig->thread, mr_event_exit(site), RIG_TICKS + 3, values, 1);
    mr_ring_event_counted(&rig->thread, mr_event_exit(SITE), RIG_TICKS + 4, values, 1);
    drain_all(rig, 0);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    expect_prune(rig, RIG_TICKS + 1, site);
    rig_expect_event(rig, SITE, true, RIG_TICKS + 4);
    rig_expect_kind(rig, MR_RECORD_COUNTER);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void a_frame_that_is_given_up_counts_nothing(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 700;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    add(rig, site, RIG_TICKS + 1, 0);
    drain_all(rig, 0);
    drain_all(rig, mr_clock_monotonic_ns() + 2 * MR_CUT_REST_NS);
    rig_enter(rig, site, RIG_TICKS + 2);
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    assert_true(mr_drain_ring(&rig->frame, rig->ring, 1, 0));
    mr_drain_abort(&rig->frame);
    assert_int_equal(dropped(site), 0);
    drain_all(rig, 0);
    assert_int_equal(dropped(site), 1);
    rig_free(rig);
}

static void more_marks_than_are_kept_are_a_cut(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    const uint32_t site = SITE + 800;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    for (uint64_t i = 0; i < 2 * MR_PRUNE_MARKS_KEPT; i++)
        add(rig, site, RIG_TICKS + 1 + i, i % 2 ? MR_PRUNE_SETTLED : 0);
    rig_enter(rig, SITE, RIG_TICKS + 1000);
    drain_all(rig, 0);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_kind(rig, MR_RECORD_CUT);
    rig_free(rig);
}

/* A model: each call is in the stream whole, or counted. */
static void random_calls_are_recorded_or_counted(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
        const uint32_t site = SITE + 1000 + (uint32_t)round;
        uint64_t ticks = RIG_TICKS, calls = 0, enters = 0, depth = 0, open = 0;
        uint64_t steps[] = {0, MR_PRUNE_SETTLED};
        uint32_t step = 0;

        for (int i = 0; i < 150; i++) {
            uint64_t what = mr_test_random_below(&random, 20);

            ticks += 1 + mr_test_random_below(&random, 1 << 20);
            if (what == 0 && step < 2) {
                add(rig, site, ticks, steps[step++]);
            } else if (what < 10) {
                rig_enter(rig, site, ticks);
                calls++;
                depth++;
            } else if (depth > 0) {
                rig_exit(rig, site, ticks);
                depth--;
            }
        }
        drain_all(rig, 0);
        while (rig_next(rig)) {
            if (rig->record.site != site)
                continue;
            enters += !rig->record.is_exit;
            assert_true(open > 0 || !rig->record.is_exit);
            open += rig->record.is_exit ? UINT64_MAX : 1;
        }
        if (step == 0)
            (void)mr_pruned_add(site);
        assert_true(enters + dropped(site) == calls);
        rig_free(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_behind_the_mark_are_taken_out_and_counted),
        cmocka_unit_test(in_a_recursion_each_exit_goes_with_its_enter),
        cmocka_unit_test(recorded_again_calls_come_from_where_that_is_settled),
        cmocka_unit_test(a_thread_that_took_its_ring_later_is_told_nothing),
        cmocka_unit_test(a_stream_at_rest_is_told_after_a_while),
        cmocka_unit_test(values_go_with_the_call_that_they_are_of),
        cmocka_unit_test(a_frame_that_is_given_up_counts_nothing),
        cmocka_unit_test(more_marks_than_are_kept_are_a_cut),
        cmocka_unit_test(random_calls_are_recorded_or_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
