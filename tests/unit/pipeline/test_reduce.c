/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include "support_reduce.h"

static void calls_are_counted_and_timed_per_path(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 t2 +2 t4 -2 t1 +2 t8 -2 t1 -1 +2 t1 -2", &result);
    test_reduce_expect(&result,
                       "path f1 @0 = ", "1 0 0 self=4,4,4 total=16,16,16 hist=0;5;127;1");
    test_reduce_expect(
        &result, "path f1/f2 @0 = ",
        "2 0 0 self=12,4,8 total=12,4,8 "
        "hist=0;5;63;1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1");
    test_reduce_expect(&result,
                       "path f2 @0 = ", "1 0 0 self=1,1,1 total=1,1,1 hist=0;5;-1;1");
    assert_int_equal(test_text_count(&result.text, "path "), 3);
    test_reduce_done(&result);
}

static void calls_of_no_time_are_counted_as_zeros(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 +2 -2 -1", &result);
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "1 0 0 self=0,0,0 total=0,0,0 hist=1");
    test_reduce_expect(&result, "shape f1 @0 f1{f2} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    test_reduce_done(&result);
}

static void a_run_of_equal_children_is_folded_and_said_so(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 +2 -2 -1 t1 +1 +2 -2 +2 -2 -1 t1 +1 +2 -2 +3 -3 +2 -2 t1 -1",
                    &result);
    test_reduce_expect(&result, "shape f1 @0 f1{f2} = ", "2 0 5 1 0 1 time=0,0,0 hist=2");
    test_reduce_expect(
        &result, "shape f1 @0 f1{f2 f3 f2} = ", "1 0 4 0 3 3 time=1,1,1 hist=0;5;-1;1");
    test_reduce_expect(&result, "entry f1 @0 = ", "2,6,1 1,3,0 0,0,0 0,0,0");
    test_reduce_done(&result);
}

static void exact_shapes_know_how_often(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_reduced result;

    (void)state;
    reduce.exactness = MR_EXACTNESS_EXACT;
    test_reduce_run_with(&options, 0, "+1 +2 -2 -1 +1 +2 -2 +2 -2 +2 -2 -1", &result);
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f2x1} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f2x3} = ", "1 0 4 0 0 0 time=0,0,0 hist=1");
    test_reduce_done(&result);
}

static void set_shapes_know_neither_order_nor_number(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_reduced result;

    (void)state;
    reduce.exactness = MR_EXACTNESS_SET;
    test_reduce_run_with(
        &options, 0, "+1 +2 -2 +3 -3 +2 -2 -1 +1 +3 -3 +2 -2 -1 +1 +3 -3 -1", &result);
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f2 f3} = ", "2 0 7 2 0 0 time=0,0,0 hist=2");
    test_reduce_expect(&result, "shape f1 @0 f1{f3} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    test_reduce_expect(&result, "entry f1 @0 = ", "1,2,0 2,7,0 0,0,0 0,0,0");
    test_reduce_done(&result);
}

static void a_trace_has_the_status_of_its_root(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 +2 s1 -2 -1 +1 +2 -2 s1 -1", &result);
    test_reduce_expect(&result, "shape f1 @0 f1{f2} = ", "1 1 4 0 0 0 time=0,0,0 hist=2");
    test_reduce_expect(&result, "path f1 @0 = ", "1 1 0 self=0,0,0 total=0,0,0 hist=2");
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "1 1 0 self=0,0,0 total=0,0,0 hist=2");
    test_reduce_done(&result);
}

static void a_call_without_an_exit_of_its_own_has_failed_and_is_timed(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 +2 t3 -1", &result);
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "0 1 0 self=3,3,3 total=3,3,3 hist=0;5;50;1");
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f2} = ", "1 0 2 0 3 3 time=3,3,3 hist=0;5;50;1");
    test_reduce_expect(&result, "ledger 1 = ", "3 3 0");
    test_reduce_done(&result);
}

static void a_trace_hit_by_a_loss_has_no_shape(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 t1 +2 t1 -2 t1 l5,0,0 -1 +1 -1", &result);
    test_reduce_expect(&result, "shape f1 @0 f1 = ", "1 0 1 0 3 3 time=0,0,0 hist=1");
    assert_int_equal(test_text_count(&result.text, "shape "), 1);
    test_reduce_expect(&result, "entry f1 @0 = ", "1,1,0 0,0,0 0,0,0 1,2,3");
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "1 0 0 self=1,1,1 total=1,1,1 hist=0;5;-1;1");
    test_reduce_expect(&result, "ledger 1 = ", "11 6 0 1:5");
    test_reduce_done(&result);
}

static void a_call_that_a_loss_cut_is_incomplete_and_not_timed(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 +2 t5 l1,1,0 t1 -1", &result);
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "0 0 1 self=0,0,0 total=0,0,0 hist=0");
    test_reduce_expect(&result,
                       "path f1 @0 = ", "1 0 0 self=6,6,6 total=6,6,6 hist=0;5;82;1");
    test_reduce_expect(&result, "ledger 1 = ", "4 3 0 1:1");
    test_reduce_done(&result);
}

static void a_call_entered_in_a_loss_is_counted_where_its_exit_says(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 l1,0,1 +3 -3 -2 -1 l1,0,1 -4", &result);
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "0 0 1 self=0,0,0 total=0,0,0 hist=0");
    test_reduce_expect(&result,
                       "path f1/f0/f3 @0 = ", "1 0 0 self=0,0,0 total=0,0,0 hist=1");
    test_reduce_expect(&result, "path f4 @0 = ", "0 0 1 self=0,0,0 total=0,0,0 hist=0");
    test_reduce_expect(&result, "entry f4 @0 = ", "0,0,0 0,0,0 0,0,0 1,1,0");
    test_reduce_expect(&result, "ledger 1 = ", "8 6 0 1:2");
    test_reduce_done(&result);
}

static void outer_frames_have_paths_and_no_shapes(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run_with(NULL, 1, "+1 t1 +2 t2 -2 t4 -1", &result);
    test_reduce_expect(&result,
                       "path (f1) @0 = ", "1 0 0 self=5,5,5 total=7,7,7 hist=0;5;89;1");
    test_reduce_expect(&result,
                       "path f2 @0 = ", "1 0 0 self=2,2,2 total=2,2,2 hist=0;5;31;1");
    test_reduce_expect(&result, "outer f1 ", "0");
    assert_int_equal(test_text_count(&result.text, "shape "), 1);
    assert_int_equal(test_text_count(&result.text, "entry "), 1);
    test_reduce_done(&result);
}

static void a_learned_outer_frame_is_no_trace(void **state)
{
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    test_lane_init(&lane, NULL);
    test_lane_enter(&lane, 1, 1, 0);
    for (uint32_t i = 0; i < 70; i++) {
        test_lane_enter(&lane, 1, 2, (i + 1) * MR_SECOND_NS);
        test_lane_exit(&lane, 1, 2, (i + 1) * MR_SECOND_NS);
    }
    test_lane_exit(&lane, 1, 1, 71 * MR_SECOND_NS);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "outer f1 ", "2");
    assert_int_equal(test_text_count(&result.text, "path f1/f2 "), 64);
    assert_int_equal(test_text_count(&result.text, "path f2 "), 6);
    assert_int_equal(test_text_count(&result.text, "path (f1) @71 = 1 0 0 "), 1);
    assert_int_equal(test_text_count(&result.text, "path f1 "), 0);
    test_reduce_expect(&result, "entry f1 @64 = ", "0,0,0 0,0,0 0,64,0 0,0,0");
    assert_int_equal(test_text_count(&result.text, "shape f2 "), 6);
    test_reduce_expect(&result, "ledger 1 = ", "142 142 0");
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

/* A wrong guess, or a right one, costs no time and no call: outer frames that return are timed as what they were. */
static void a_loop_below_wrappers_that_is_learned_keeps_all_times(void **state)
{
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    test_lane_init(&lane, NULL);
    for (uint32_t function = 1; function <= 3; function++)
        test_lane_enter(&lane, 1, function, 0);
    for (uint32_t i = 2; i < 72; i++) {
        test_lane_enter(&lane, 1, 4, i * MR_SECOND_NS);
        test_lane_exit(&lane, 1, 4, i * MR_SECOND_NS + 5);
    }
    for (uint32_t function = 3; function >= 1; function--)
        test_lane_exit(&lane, 1, function, 75 * MR_SECOND_NS);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "outer f1 ", "2");
    test_reduce_expect(&result, "outer f2 ", "2");
    test_reduce_expect(&result, "outer f3 ", "2");
    assert_int_equal(test_text_count(&result.text, "path f1/f2/f3/f4 "), 64);
    assert_int_equal(test_text_count(&result.text, "path f4 "), 6);
    test_reduce_expect(&result, "path (f1)/(f2)/(f3) @75 = ",
                       "1 0 0 self=74999999650,74999999650,74999999650"
                       " total=75000000000,75000000000,75000000000 hist=0;5;1156;1");
    test_reduce_expect(
        &result, "path (f1) @75 = ",
        "1 0 0 self=0,0,0 total=75000000000,75000000000,75000000000 hist=0;5;1156;1");
    /* What ended before is told at the entry point: no path has time that nothing else has. */
    test_reduce_expect(&result, "entry f1 @65 = ", "0,0,0 0,0,0 0,64,320 0,0,0");
    assert_int_equal(test_text_count(&result.text, "entry f4 "), 6);
    test_reduce_expect(&result, "ledger 1 = ", "146 146 0");
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

/* What was foretold below the root that it was is not below the outer frame that it is. */
static void what_a_learned_outer_frame_calls_is_a_root(void **state)
{
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    test_lane_init(&lane, NULL);
    test_lane_enter(&lane, 1, 1, 0);
    for (uint32_t i = 0; i < 70; i++) {
        test_lane_enter(&lane, 1, 2, (i + 1) * MR_SECOND_NS);
        test_lane_enter(&lane, 1, 3, (i + 1) * MR_SECOND_NS);
        test_lane_exit(&lane, 1, 3, (i + 1) * MR_SECOND_NS);
        test_lane_exit(&lane, 1, 2, (i + 1) * MR_SECOND_NS);
    }
    test_lane_exit(&lane, 1, 1, 71 * MR_SECOND_NS);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    assert_int_equal(test_text_count(&result.text, "path f1/f2/f3 "), 64);
    assert_int_equal(test_text_count(&result.text, "path f2/f3 "), 6);
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

static const char *name_of(void *context, const struct mr_site *site)
{
    (void)context;
    return site->offset == 16 * 3 ? "three" : "other";
}

static void a_forced_root_is_a_trace_of_its_own_in_another(void **state)
{
    static const char *const globs[] = {"three"};
    struct mr_reconstruct_config reconstruct = {
        .depth_max = 100,
        .learns_nothing = true,
        .outer = {.root_globs = globs, .root_glob_count = 1, .resolve = name_of}};
    struct test_options options = {.reconstruct = &reconstruct};
    struct test_reduced result;

    (void)state;
    test_reduce_run_with(&options, 0, "+1 t1 +2 t1 -2 +3 +2 t4 -2 -3 +2 t1 -2 -1",
                         &result);
    test_reduce_expect(&result,
                       "path f3/f2 @0 = ", "1 0 0 self=4,4,4 total=4,4,4 hist=0;5;63;1");
    test_reduce_expect(&result,
                       "path f1 @0 = ", "1 0 0 self=1,1,1 total=7,7,7 hist=0;5;89;1");
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f2} = ", "1 0 3 1 7 7 time=7,7,7 hist=0;5;89;1");
    test_reduce_expect(&result,
                       "shape f3 @0 f3{f2} = ", "1 0 2 0 6 6 time=4,4,4 hist=0;5;63;1");
    test_reduce_expect(&result, "entry f1 @0 = ", "0,0,0 1,3,7 0,0,0 0,0,0");
    test_reduce_done(&result);
}

/* What followed f3 below f1 is not foretold below f5. */
static void what_follows_a_forced_root_depends_on_its_caller(void **state)
{
    static const char *const globs[] = {"three"};
    struct mr_reconstruct_config reconstruct = {
        .depth_max = 100,
        .learns_nothing = true,
        .outer = {.root_globs = globs, .root_glob_count = 1, .resolve = name_of}};
    struct test_options options = {.reconstruct = &reconstruct};
    struct test_reduced result;

    (void)state;
    test_reduce_run_with(
        &options, 0,
        "+1 +3 -3 +2 -2 -1 +1 +3 -3 +2 -2 -1 +5 +3 -3 +2 -2 -5 +5 +3 -3 +2 -2 -5",
        &result);
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "2 0 0 self=0,0,0 total=0,0,0 hist=2");
    test_reduce_expect(&result,
                       "path f5/f2 @0 = ", "2 0 0 self=0,0,0 total=0,0,0 hist=2");
    test_reduce_expect(&result, "path f3 @0 = ", "4 0 0 self=0,0,0 total=0,0,0 hist=4");
    test_reduce_done(&result);
}

static void call_f1(struct test_lane *lane, uint64_t ns)
{
    test_lane_enter(lane, 1, 1, lane->streams[1].time);
    test_lane_exit(lane, 1, 1, lane->streams[1].time + ns);
}

/* On both sides of what a path's first cache line can tell of the extremes. */
static void the_longest_and_the_shortest_may_be_any_time(void **state)
{
    static const uint64_t ns[] = {UINT32_MAX, UINT32_MAX - UINT64_C(1), UINT32_MAX,
                                  5000000000, 4999999999};
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_reduced result = {.text = {0}};
    struct test_lane lane;

    (void)state;
    reduce.window_s = 1000;
    test_lane_init(&lane, &options);
    test_lane_enter(&lane, 1, 2, 0);
    for (uint32_t i = 0; i < 5; i++)
        call_f1(&lane, ns[i]);
    test_lane_exit(&lane, 1, 2, lane.streams[1].time);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    assert_int_equal(test_text_count(&result.text,
                                     "path f2/f1 @0 = 5 0 0 "
                                     "self=22884901883,4294967294,5000000000 "
                                     "total=22884901883,4294967294,5000000000 "),
                     1);
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

static void the_window_is_the_second_in_which_a_call_ended(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 +2 w -2 w -1", &result);
    assert_int_equal(test_text_count(&result.text, "path f1/f2 @1 = 1 0 0"), 1);
    assert_int_equal(test_text_count(&result.text, "path f1 @2 = 1 0 0"), 1);
    assert_int_equal(test_text_count(&result.text, "shape f1 @2 "), 1);
    test_reduce_done(&result);
}

static void windows_may_be_wider(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_reduced result;

    (void)state;
    reduce.window_s = 10;
    test_reduce_run_with(&options, 0, "+1 w w -1 +1 w w w -1", &result);
    assert_int_equal(test_text_count(&result.text, "path f1 @0 = 2 0 0"), 1);
    test_reduce_done(&result);
}

static void a_trace_in_which_a_site_is_pruned_is_in_the_paths_only(void **state)
{
    struct test_reduced result;

    (void)state;
    test_reduce_run("+1 +2 -2 -1 +1 +2 -2 p2 +3 -3 t1 -1 +1 +3 -3 -1", &result);
    test_reduce_expect(&result, "shape f1 @0 f1{f2} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    test_reduce_expect(&result, "shape f1 @0 f1{f3} = ", "1 0 2 0 1 1 time=0,0,0 hist=1");
    assert_int_equal(test_text_count(&result.text, "shape "), 2);
    test_reduce_expect(&result, "entry f1 @0 = ", "2,4,0 0,0,0 1,3,1 0,0,0");
    test_reduce_expect(&result, "counter reduce_traces_pruned = ", "1");
    test_reduce_done(&result);
}

static void open_traces_are_told_and_held(void **state)
{
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    test_lane_init(&lane, NULL);
    test_reduce_write(&lane, "+1 +2 -2");
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "open f1 = ", "1");
    test_reduce_expect(&result,
                       "path f1/f2 @0 = ", "1 0 0 self=0,0,0 total=0,0,0 hist=1");
    test_reduce_expect(&result,
                       "ledger 1 = ", "3 2 1"); /* f1's enter is held until its exit */
    test_reduce_done(&result);
    test_reduce_write(&lane, "-1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "ledger 1 = ", "4 4 0");
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

static void deltas_come_once_a_period_and_not_when_nothing_happens(void **state)
{
    struct test_lane lane;
    uint64_t deltas;

    (void)state;
    test_lane_init(&lane, NULL);
    test_reduce_write(&lane, "+1 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    deltas = lane.out->deltas;
    assert_true(deltas >= 1);
    for (int i = 0; i < 20; i++)
        test_lane_tick(&lane, MR_SECOND_NS);
    assert_int_equal(lane.out->deltas, deltas);
    test_lane_end(&lane);
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_and_timed_per_path),
        cmocka_unit_test(calls_of_no_time_are_counted_as_zeros),
        cmocka_unit_test(a_run_of_equal_children_is_folded_and_said_so),
        cmocka_unit_test(exact_shapes_know_how_often),
        cmocka_unit_test(set_shapes_know_neither_order_nor_number),
        cmocka_unit_test(a_trace_has_the_status_of_its_root),
        cmocka_unit_test(a_call_without_an_exit_of_its_own_has_failed_and_is_timed),
        cmocka_unit_test(a_trace_hit_by_a_loss_has_no_shape),
        cmocka_unit_test(a_call_that_a_loss_cut_is_incomplete_and_not_timed),
        cmocka_unit_test(a_call_entered_in_a_loss_is_counted_where_its_exit_says),
        cmocka_unit_test(outer_frames_have_paths_and_no_shapes),
        cmocka_unit_test(a_learned_outer_frame_is_no_trace),
        cmocka_unit_test(a_loop_below_wrappers_that_is_learned_keeps_all_times),
        cmocka_unit_test(what_a_learned_outer_frame_calls_is_a_root),
        cmocka_unit_test(a_forced_root_is_a_trace_of_its_own_in_another),
        cmocka_unit_test(what_follows_a_forced_root_depends_on_its_caller),
        cmocka_unit_test(the_longest_and_the_shortest_may_be_any_time),
        cmocka_unit_test(the_window_is_the_second_in_which_a_call_ended),
        cmocka_unit_test(windows_may_be_wider),
        cmocka_unit_test(a_trace_in_which_a_site_is_pruned_is_in_the_paths_only),
        cmocka_unit_test(open_traces_are_told_and_held),
        cmocka_unit_test(deltas_come_once_a_period_and_not_when_nothing_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
