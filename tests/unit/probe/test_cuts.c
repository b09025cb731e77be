/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#define SITE MR_SITE_FIRST_MODULE
#define WORDS MR_RING_WORDS_MIN

static void expect_cut(struct rig *rig, uint64_t ticks, uint64_t number)
{
    rig_expect_kind(rig, MR_RECORD_SYNC);
    assert_true(rig->record.ticks == ticks);
    rig_expect_kind(rig, MR_RECORD_CUT);
    assert_true(rig->record.ticks == ticks);
    assert_true(rig->record.payload[0] == number);
}

/* All that is there, over as many frames as it takes, lies in one payload. */
static void drain_all(struct rig *rig)
{
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    while (mr_drain_ring(&rig->frame, rig->ring, 1, 0)) {
        struct mr_drain_frame frame = rig->frame;

        mr_drain_commit(&rig->frame, &rig->pool);
        rig->frame = frame;
        rig->frame.staged = NULL;
    }
    rig->payload = mr_span_of(rig->out, rig->frame.size);
    rig->reader.left = 0;
}

static void a_cut_stands_before_the_first_event_that_is_later(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    rig_enter(rig, SITE + 1, RIG_TICKS + 10);
    rig_exit(rig, SITE + 1, RIG_TICKS + 20);
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS + 15);
    drain_all(rig);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    rig_expect_event(rig, SITE + 1, false, RIG_TICKS + 10);
    expect_cut(rig, RIG_TICKS + 15, 1);
    assert_true(rig->chunk.events == 0 && rig->chunk.first_event == 2);
    rig_expect_event(rig, SITE + 1, true, RIG_TICKS + 20);
    assert_true(rig->chunk.first_event == 2);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void cuts_without_an_event_between_them_are_one(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS + 5);
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS + 7);
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS + 30);
    rig_exit(rig, SITE, RIG_TICKS + 20);
    rig_enter(rig, SITE, RIG_TICKS + 40);
    drain_all(rig);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    expect_cut(rig, RIG_TICKS + 7, 2);
    rig_expect_event(rig, SITE, true, RIG_TICKS + 20);
    expect_cut(rig, RIG_TICKS + 30, 3);
    rig_expect_event(rig, SITE, false, RIG_TICKS + 40);
    assert_false(rig_next(rig));
    rig_free(rig);
}

/* Times go on behind a cut that lies more than a half of 2^32 ticks after the last event. */
static void a_cut_long_after_the_last_event_keeps_the_time(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t later = RIG_TICKS + (UINT64_C(9) << 31);

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    mr_cuts_add(&rig->pool.shared.cuts, later - 100);
    rig_exit(rig, SITE, later);
    drain_all(rig);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    expect_cut(rig, later - 100, 1);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, true, later);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void a_thread_that_began_after_it_is_not_cut(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS - 100);
    rig->ring->cuts_before = 1;
    rig_enter(rig, SITE, RIG_TICKS);
    drain_all(rig);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void a_thread_that_began_before_it_is_cut_at_its_first_event(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS - 100);
    rig_exit(rig, SITE, RIG_TICKS);
    drain_all(rig);
    expect_cut(rig, RIG_TICKS, 1);
    assert_true(rig->chunk.flags & MR_CHUNK_FIRST);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, true, RIG_TICKS);
    assert_false(rig_next(rig));
    rig_free(rig);
}

static void a_stream_at_rest_is_cut_after_a_while(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
    uint64_t now_ns;

    (void)state;
    rig_enter(rig, SITE, RIG_TICKS);
    drain_all(rig);
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS + 5);
    mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS + 6);
    now_ns = mr_clock_monotonic_ns();
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    assert_false(mr_drain_ring(&rig->frame, rig->ring, 1, now_ns));
    assert_true(mr_drain_ring(&rig->frame, rig->ring, 1, now_ns + 2 * MR_CUT_REST_NS));
    mr_drain_commit(&rig->frame, &rig->pool);
    rig->payload = mr_span_of(rig->out, rig->frame.size);
    rig->reader.left = 0;
    expect_cut(rig, RIG_TICKS + 6, 2);
    assert_false(rig_next(rig));
    /* It is told once. */
    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    assert_false(mr_drain_ring(&rig->frame, rig->ring, 1, now_ns + 9 * MR_CUT_REST_NS));
    rig_free(rig);
}

static void more_cuts_than_are_kept_are_told_at_once(void **state)
{
    struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);

    (void)state;
    for (uint64_t i = 0; i < 3 * MR_CUTS_KEPT; i++)
        mr_cuts_add(&rig->pool.shared.cuts, RIG_TICKS + 100 + i);
    rig_enter(rig, SITE, RIG_TICKS + 10);
    rig_enter(rig, SITE, RIG_TICKS + 1000);
    drain_all(rig);
    rig_expect_kind(rig, MR_RECORD_SYNC); /* where the stream stands */
    rig_expect_kind(rig, MR_RECORD_CUT);
    assert_true(rig->record.payload[0] < 3 * MR_CUTS_KEPT);
    rig_expect_kind(rig, MR_RECORD_SYNC);
    rig_expect_event(rig, SITE, false, RIG_TICKS + 10);
    expect_cut(rig, RIG_TICKS + 100 + 3 * MR_CUTS_KEPT - 1, 3 * MR_CUTS_KEPT);
    rig_expect_event(rig, SITE, false, RIG_TICKS + 1000);
    assert_false(rig_next(rig));
    rig_free(rig);
}

/* Events and cuts at random: every event comes, in order, the cuts where they belong. */
static void random_streams_are_cut_where_they_belong(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct rig *rig = rig_new(WORDS, MR_POLICY_DROP);
        uint64_t ticks = RIG_TICKS, cuts[8], last_cut = 0, events = 0, expected = 0;
        uint32_t count = 0, told = 0;

        for (int i = 0; i < 100; i++) {
            ticks += 1 + mr_test_random_below(&random, 1 << 20);
            if (count < 8 && mr_test_random_below(&random, 12) == 0) {
                cuts[count++] = ticks;
                mr_cuts_add(&rig->pool.shared.cuts, ticks);
            } else {
                rig_enter(rig, SITE + (uint32_t)expected++, ticks);
            }
        }
        drain_all(rig);
        while (rig_next(rig)) {
            if (rig->record.kind == MR_RECORD_CUT) {
                told = (uint32_t)rig->record.payload[0];
                last_cut = rig->record.ticks;
                assert_true(last_cut == cuts[told - 1]);
            } else if (rig->record.site >= MR_SITE_FIRST_NAMED) {
                assert_true(rig->record.site == SITE + events++);
                assert_true(rig->record.ticks > last_cut);
                assert_true(told == count || rig->record.ticks < cuts[told]);
            }
        }
        assert_true(events == expected);
        rig_free(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_stands_before_the_first_event_that_is_later),
        cmocka_unit_test(cuts_without_an_event_between_them_are_one),
        cmocka_unit_test(a_cut_long_after_the_last_event_keeps_the_time),
        cmocka_unit_test(a_thread_that_began_after_it_is_not_cut),
        cmocka_unit_test(a_thread_that_began_before_it_is_cut_at_its_first_event),
        cmocka_unit_test(a_stream_at_rest_is_cut_after_a_while),
        cmocka_unit_test(more_cuts_than_are_kept_are_told_at_once),
        cmocka_unit_test(random_streams_are_cut_where_they_belong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
