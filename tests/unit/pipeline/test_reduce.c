/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "net/delta.h"
#include "pipeline/bins.h"
#include "support_lane.h"
#include "support_model.h"

/*
 * Writes events of stream 1: "+1" enters f1, "-1" exits it, "s1" status failed, "l4,2,1" loses 4 events with 2 pops and 1 push,
 * "p1" prunes f1, "t9" goes on by 9 ns, "w" to the next second. Without a step the time stands.
 */
static void write_text(struct test_lane *lane, const char *text)
{
    unsigned a, b, c;

    for (; *text; text += strcspn(text, " "), text += *text == ' ') {
        uint64_t ns = lane->streams[1].time;

        if (sscanf(text, "+%u", &a) == 1)
            test_lane_enter(lane, 1, a, ns);
        else if (sscanf(text, "-%u", &a) == 1)
            test_lane_exit(lane, 1, a, ns);
        else if (sscanf(text, "s%u", &a) == 1)
            test_lane_status(lane, 1, ns, a);
        else if (sscanf(text, "l%u,%u,%u", &a, &b, &c) == 3)
            test_lane_loss(lane, 1, ns, a, MR_LOSS_RING_FULL, b, c);
        else if (sscanf(text, "p%u", &a) == 1)
            test_lane_prune(lane, 1, a, ns, 0);
        else if (sscanf(text, "t%u", &a) == 1)
            lane->streams[1].time = ns + a;
        else if (*text == 'w')
            lane->streams[1].time = (ns / MR_SECOND_NS + 1) * MR_SECOND_NS;
        else
            fail_msg("what is %s", text);
    }
}

struct result {
    struct test_text text;
};

static void run_with(const struct test_options *options, uint32_t start,
                     const char *events, struct result *result)
{
    struct test_lane lane;

    test_lane_init(&lane, options);
    test_lane_announce(&lane, 1, start);
    write_text(&lane, events);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    result->text = (struct test_text){0};
    test_model(&lane, &result->text);
    test_lane_fini(&lane);
}

static void run(const char *events, struct result *result)
{
    run_with(NULL, 0, events, result);
}

static void expect(struct result *result, const char *prefix, const char *rest)
{
    assert_string_equal(test_text_find(&result->text, prefix), rest);
}

static void done(struct result *result)
{
    test_text_fini(&result->text);
}

static void calls_are_counted_and_timed_per_path(void **state)
{
    struct result result;

    (void)state;
    run("+1 t2 +2 t4 -2 t1 +2 t8 -2 t1 -1 +2 t1 -2", &result);
    expect(&result, "path f1 @0 = ", "1 0 0 self=4,4,4 total=16,16,16 hist=0;5;127;1");
    expect(
        &result, "path f1/f2 @0 = ",
        "2 0 0 self=12,4,8 total=12,4,8 "
        "hist=0;5;63;1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1");
    expect(&result, "path f2 @0 = ", "1 0 0 self=1,1,1 total=1,1,1 hist=0;5;-1;1");
    assert_int_equal(test_text_count(&result.text, "path "), 3);
    done(&result);
}

static void calls_of_no_time_are_counted_as_zeros(void **state)
{
    struct result result;

    (void)state;
    run("+1 +2 -2 -1", &result);
    expect(&result, "path f1/f2 @0 = ", "1 0 0 self=0,0,0 total=0,0,0 hist=1");
    expect(&result, "shape f1 @0 f1{f2} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    done(&result);
}

static void a_run_of_equal_children_is_folded_and_said_so(void **state)
{
    struct result result;

    (void)state;
    run("+1 +2 -2 -1 t1 +1 +2 -2 +2 -2 -1 t1 +1 +2 -2 +3 -3 +2 -2 t1 -1", &result);
    expect(&result, "shape f1 @0 f1{f2} = ", "2 0 5 1 0 1 time=0,0,0 hist=2");
    expect(&result,
           "shape f1 @0 f1{f2 f3 f2} = ", "1 0 4 0 3 3 time=1,1,1 hist=0;5;-1;1");
    expect(&result, "entry f1 @0 = ", "2,6,1 1,3,0 0,0,0 0,0,0");
    done(&result);
}

static void exact_shapes_know_how_often(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct result result;

    (void)state;
    reduce.exactness = MR_EXACTNESS_EXACT;
    run_with(&options, 0, "+1 +2 -2 -1 +1 +2 -2 +2 -2 +2 -2 -1", &result);
    expect(&result, "shape f1 @0 f1{f2x1} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    expect(&result, "shape f1 @0 f1{f2x3} = ", "1 0 4 0 0 0 time=0,0,0 hist=1");
    done(&result);
}

static void set_shapes_know_neither_order_nor_number(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct result result;

    (void)state;
    reduce.exactness = MR_EXACTNESS_SET;
    run_with(&options, 0, "+1 +2 -2 +3 -3 +2 -2 -1 +1 +3 -3 +2 -2 -1 +1 +3 -3 -1",
             &result);
    expect(&result, "shape f1 @0 f1{f2 f3} = ", "2 0 7 2 0 0 time=0,0,0 hist=2");
    expect(&result, "shape f1 @0 f1{f3} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    expect(&result, "entry f1 @0 = ", "1,2,0 2,7,0 0,0,0 0,0,0");
    done(&result);
}

static void a_trace_has_the_status_of_its_root(void **state)
{
    struct result result;

    (void)state;
    run("+1 +2 s1 -2 -1 +1 +2 -2 s1 -1", &result);
    expect(&result, "shape f1 @0 f1{f2} = ", "1 1 4 0 0 0 time=0,0,0 hist=2");
    expect(&result, "path f1 @0 = ", "1 1 0 self=0,0,0 total=0,0,0 hist=2");
    expect(&result, "path f1/f2 @0 = ", "1 1 0 self=0,0,0 total=0,0,0 hist=2");
    done(&result);
}

static void a_call_without_an_exit_of_its_own_has_failed_and_is_timed(void **state)
{
    struct result result;

    (void)state;
    run("+1 +2 t3 -1", &result);
    expect(&result, "path f1/f2 @0 = ", "0 1 0 self=3,3,3 total=3,3,3 hist=0;5;50;1");
    expect(&result, "shape f1 @0 f1{f2} = ", "1 0 2 0 3 3 time=3,3,3 hist=0;5;50;1");
    expect(&result, "ledger 1 = ", "3 3 0");
    done(&result);
}

static void a_trace_hit_by_a_loss_has_no_shape(void **state)
{
    struct result result;

    (void)state;
    run("+1 t1 +2 t1 -2 t1 l5,0,0 -1 +1 -1", &result);
    expect(&result, "shape f1 @0 f1 = ", "1 0 1 0 3 3 time=0,0,0 hist=1");
    assert_int_equal(test_text_count(&result.text, "shape "), 1);
    expect(&result, "entry f1 @0 = ", "1,1,0 0,0,0 0,0,0 1,2,3");
    expect(&result, "path f1/f2 @0 = ", "1 0 0 self=1,1,1 total=1,1,1 hist=0;5;-1;1");
    expect(&result, "ledger 1 = ", "11 6 0 1:5");
    done(&result);
}

static void a_call_that_a_loss_cut_is_incomplete_and_not_timed(void **state)
{
    struct result result;

    (void)state;
    run("+1 +2 t5 l1,1,0 t1 -1", &result);
    expect(&result, "path f1/f2 @0 = ", "0 0 1 self=0,0,0 total=0,0,0 hist=0");
    expect(&result, "path f1 @0 = ", "1 0 0 self=6,6,6 total=6,6,6 hist=0;5;82;1");
    expect(&result, "ledger 1 = ", "4 3 0 1:1");
    done(&result);
}

static void a_call_entered_in_a_loss_is_counted_where_its_exit_says(void **state)
{
    struct result result;

    (void)state;
    run("+1 l1,0,1 +3 -3 -2 -1 l1,0,1 -4", &result);
    expect(&result, "path f1/f2 @0 = ", "0 0 1 self=0,0,0 total=0,0,0 hist=0");
    expect(&result, "path f1/f0/f3 @0 = ", "1 0 0 self=0,0,0 total=0,0,0 hist=1");
    expect(&result, "path f4 @0 = ", "0 0 1 self=0,0,0 total=0,0,0 hist=0");
    expect(&result, "entry f4 @0 = ", "0,0,0 0,0,0 0,0,0 1,1,0");
    expect(&result, "ledger 1 = ", "8 6 0 1:2");
    done(&result);
}

static void outer_frames_have_paths_and_no_shapes(void **state)
{
    struct result result;

    (void)state;
    run_with(NULL, 1, "+1 t1 +2 t2 -2 t4 -1", &result);
    expect(&result, "path (f1) @0 = ", "1 0 0 self=5,5,5 total=7,7,7 hist=0;5;89;1");
    expect(&result, "path f2 @0 = ", "1 0 0 self=2,2,2 total=2,2,2 hist=0;5;31;1");
    expect(&result, "outer f1 ", "0");
    assert_int_equal(test_text_count(&result.text, "shape "), 1);
    assert_int_equal(test_text_count(&result.text, "entry "), 1);
    done(&result);
}

static void a_learned_outer_frame_is_no_trace(void **state)
{
    struct test_lane lane;
    struct result result = {.text = {0}};

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
    expect(&result, "outer f1 ", "2");
    assert_int_equal(test_text_count(&result.text, "path f1/f2 "), 64);
    assert_int_equal(test_text_count(&result.text, "path f2 "), 6);
    assert_int_equal(test_text_count(&result.text, "path (f1) @71 = 1 0 0 "), 1);
    assert_int_equal(test_text_count(&result.text, "path f1 "), 0);
    expect(&result, "entry f1 @64 = ", "0,0,0 0,0,0 0,64,0 0,0,0");
    assert_int_equal(test_text_count(&result.text, "shape f2 "), 6);
    expect(&result, "ledger 1 = ", "142 142 0");
    done(&result);
    test_lane_fini(&lane);
}

/* A wrong guess, or a right one, costs no time and no call: outer frames that return are timed as what they were. */
static void a_loop_below_wrappers_that_is_learned_keeps_all_times(void **state)
{
    struct test_lane lane;
    struct result result = {.text = {0}};

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
    expect(&result, "outer f1 ", "2");
    expect(&result, "outer f2 ", "2");
    expect(&result, "outer f3 ", "2");
    assert_int_equal(test_text_count(&result.text, "path f1/f2/f3/f4 "), 64);
    assert_int_equal(test_text_count(&result.text, "path f4 "), 6);
    expect(&result, "path (f1)/(f2)/(f3) @75 = ",
           "1 0 0 self=74999999650,74999999650,74999999650"
           " total=75000000000,75000000000,75000000000 hist=0;5;1156;1");
    expect(&result, "path (f1) @75 = ",
           "1 0 0 self=0,0,0 total=75000000000,75000000000,75000000000 hist=0;5;1156;1");
    /* What ended before is told at the entry point: no path has time that nothing else has. */
    expect(&result, "entry f1 @65 = ", "0,0,0 0,0,0 0,64,320 0,0,0");
    assert_int_equal(test_text_count(&result.text, "entry f4 "), 6);
    expect(&result, "ledger 1 = ", "146 146 0");
    done(&result);
    test_lane_fini(&lane);
}

/* What was foretold below the root that it was is not below the outer frame that it is. */
static void what_a_learned_outer_frame_calls_is_a_root(void **state)
{
    struct test_lane lane;
    struct result result = {.text = {0}};

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
    done(&result);
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
    struct result result;

    (void)state;
    run_with(&options, 0, "+1 t1 +2 t1 -2 +3 +2 t4 -2 -3 +2 t1 -2 -1", &result);
    expect(&result, "path f3/f2 @0 = ", "1 0 0 self=4,4,4 total=4,4,4 hist=0;5;63;1");
    expect(&result, "path f1 @0 = ", "1 0 0 self=1,1,1 total=7,7,7 hist=0;5;89;1");
    expect(&result, "shape f1 @0 f1{f2} = ", "1 0 3 1 7 7 time=7,7,7 hist=0;5;89;1");
    expect(&result, "shape f3 @0 f3{f2} = ", "1 0 2 0 6 6 time=4,4,4 hist=0;5;63;1");
    expect(&result, "entry f1 @0 = ", "0,0,0 1,3,7 0,0,0 0,0,0");
    done(&result);
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
    struct result result;

    (void)state;
    run_with(&options, 0,
             "+1 +3 -3 +2 -2 -1 +1 +3 -3 +2 -2 -1 +5 +3 -3 +2 -2 -5 +5 +3 -3 +2 -2 -5",
             &result);
    expect(&result, "path f1/f2 @0 = ", "2 0 0 self=0,0,0 total=0,0,0 hist=2");
    expect(&result, "path f5/f2 @0 = ", "2 0 0 self=0,0,0 total=0,0,0 hist=2");
    expect(&result, "path f3 @0 = ", "4 0 0 self=0,0,0 total=0,0,0 hist=4");
    done(&result);
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
    struct result result = {.text = {0}};
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
    done(&result);
    test_lane_fini(&lane);
}

static void the_window_is_the_second_in_which_a_call_ended(void **state)
{
    struct result result;

    (void)state;
    run("+1 +2 w -2 w -1", &result);
    assert_int_equal(test_text_count(&result.text, "path f1/f2 @1 = 1 0 0"), 1);
    assert_int_equal(test_text_count(&result.text, "path f1 @2 = 1 0 0"), 1);
    assert_int_equal(test_text_count(&result.text, "shape f1 @2 "), 1);
    done(&result);
}

static void windows_may_be_wider(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct result result;

    (void)state;
    reduce.window_s = 10;
    run_with(&options, 0, "+1 w w -1 +1 w w w -1", &result);
    assert_int_equal(test_text_count(&result.text, "path f1 @0 = 2 0 0"), 1);
    done(&result);
}

static void a_trace_of_too_many_children_is_in_the_paths_only(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct result result;

    (void)state;
    reduce.trace_children_max = 3;
    run_with(&options, 0, "+1 +2 -2 +3 -3 +4 -4 -1 +1 +2 -2 +3 -3 +4 -4 +5 -5 t1 -1",
             &result);
    expect(&result, "shape f1 @0 f1{f2 f3 f4} = ", "1 0 4 0 0 0 time=0,0,0 hist=1");
    assert_int_equal(test_text_count(&result.text, "shape "), 1);
    expect(&result, "entry f1 @0 = ", "1,4,0 0,0,0 1,5,1 0,0,0");
    expect(&result, "counter reduce_traces_past_limit = ", "1");
    done(&result);
}

/* Of a budget of 4 nodes the first 2 are for any node, the others for those that were met before. */
static void past_the_budget_of_new_shapes_traces_are_in_the_paths_only(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct result result;

    (void)state;
    reduce.new_nodes_at_once = 4;
    reduce.new_nodes_s = 0;
    run_with(&options, 0,
             "+1 +2 -2 t1 -1 " /* f2, f1{f2} */
             "+1 +3 -3 t1 -1 " /* f3 is met */
             "+1 +2 -2 t1 -1 " /* known */
             "+1 +3 -3 t1 -1 " /* f3; f1{f3} is met */
             "+1 +3 -3 t1 -1 " /* f1{f3}; the budget is spent */
             "+1 +4 -4 t1 -1 +1 +4 -4 t1 -1 +1 +4 -4 t1 -1 +1 +3 -3 t1 -1",
             &result);
    expect(&result, "shape f1 @0 f1{f2} = ", "2 0 4 0 1 3 time=2,1,1 hist=0;5;-1;2");
    expect(&result, "shape f1 @0 f1{f3} = ", "2 0 4 0 5 9 time=2,1,1 hist=0;5;-1;2");
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f4} "), 0);
    expect(&result, "entry f1 @0 = ", "4,8,4 0,0,0 5,10,5 0,0,0");
    expect(&result, "counter reduce_traces_past_new_nodes = ", "5");
    expect(&result, "ledger 1 = ", "36 36 0");
    done(&result);
}

/* All is counted by path, and those of known shapes that are not looked at say so, too. */
static void an_entry_point_past_the_budget_rests(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct result result = {.text = {0}};

    (void)state;
    reduce.new_nodes_at_once = 1; /* f2 alone */
    reduce.new_nodes_s = 0;
    reduce.is_one_by_one = true;
    test_lane_init(&lane, &options);
    write_text(&lane, "+2 -2");
    for (uint32_t i = 0; i < 1000; i++)
        write_text(&lane, "+1 +2 -2 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    expect(&result, "counter reduce_traces_past_new_nodes = ", "1000");
    expect(&result, "ledger 1 = ", "4002 4002 0");
    assert_int_equal(test_text_count(&result.text, "path f1 @0 = 1000 0 0"), 1);
    done(&result);
    test_lane_fini(&lane);
}

static void write_times(struct test_lane *lane, uint32_t count, const char *text)
{
    while (count-- > 0)
        write_text(lane, text);
}

/* f1{f2} is known, and all others are past the budget. */
static void an_entry_point_rests_longer_the_longer_it_is_past_the_budget(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct result result = {.text = {0}};

    (void)state;
    reduce.new_nodes_at_once = 2;
    reduce.new_nodes_s = 0;
    reduce.is_one_by_one = true;
    test_lane_init(&lane, &options);
    write_times(&lane, 3, "+1 +2 -2 -1"); /* f1{f2} is met first: 2 traces of a shape */
    write_times(&lane, 15, "+1 +3 -3 -1");
    write_text(&lane, "+1 +2 -2 -1"); /* came before: all begins anew */
    write_times(&lane, 16, "+1 +3 -3 -1");
    write_times(&lane, 100, "+1 +2 -2 -1"); /* 60 are not looked at */
    write_times(&lane, 16 + 4 * 64, "+1 +3 -3 -1");
    write_times(&lane, 1068, "+1 +2 -2 -1"); /* 1020 are not looked at */
    write_times(&lane, 16 + 4 * 64, "+1 +3 -3 -1");
    write_text(&lane, "w");
    write_times(&lane, 100, "+1 +2 -2 -1"); /* 1 and 60 are not looked at */
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    expect(&result, "counter reduce_traces_past_new_nodes = ", "1717");
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f2} = 91 0 "), 1);
    assert_int_equal(test_text_count(&result.text, "shape f1 @1 f1{f2} = 39 0 "), 1);
    done(&result);
    test_lane_fini(&lane);
}

static uint64_t told_time(void *context)
{
    return *(const uint64_t *)context;
}

static void a_new_shape_within_the_budget_ends_no_rest(void **state)
{
    uint64_t now_ns = MR_SECOND_NS;
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct result result = {.text = {0}};

    (void)state;
    reduce.new_nodes_at_once = 8; /* 4 for any node */
    reduce.new_nodes_s = 2;
    reduce.budget_clock = told_time;
    reduce.budget_context = &now_ns;
    reduce.is_one_by_one = true;
    test_lane_init(&lane, &options);
    test_lane_tick(&lane, 0);
    write_text(&lane, "+1 +2 -2 -1 +1 +3 -3 -1");
    for (uint32_t i = 0; i < 15; i++) {
        test_lane_enter(&lane, 1, 1, 0);
        test_lane_enter(&lane, 1, 10 + i, 0);
        test_lane_exit(&lane, 1, 10 + i, 0);
        test_lane_exit(&lane, 1, 1, 0);
    }
    test_lane_send(&lane, 1, 0);
    now_ns += MR_SECOND_NS;
    test_lane_tick(&lane, 0);
    write_text(&lane, "+1 +4 -4 -1"); /* 2 nodes */
    write_text(&lane, "+1 +5 -5 -1"); /* the 16th */
    write_times(&lane, 100, "+1 +2 -2 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    expect(&result, "counter reduce_traces_past_new_nodes = ", "76");
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f2} = 41 0 "), 1);
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f4} = 1 0 "), 1);
    done(&result);
    test_lane_fini(&lane);
}

static void a_trace_in_which_a_site_is_pruned_is_in_the_paths_only(void **state)
{
    struct result result;

    (void)state;
    run("+1 +2 -2 -1 +1 +2 -2 p2 +3 -3 t1 -1 +1 +3 -3 -1", &result);
    expect(&result, "shape f1 @0 f1{f2} = ", "1 0 2 0 0 0 time=0,0,0 hist=1");
    expect(&result, "shape f1 @0 f1{f3} = ", "1 0 2 0 1 1 time=0,0,0 hist=1");
    assert_int_equal(test_text_count(&result.text, "shape "), 2);
    expect(&result, "entry f1 @0 = ", "2,4,0 0,0,0 1,3,1 0,0,0");
    expect(&result, "counter reduce_traces_pruned = ", "1");
    done(&result);
}

static void open_traces_are_told_and_held(void **state)
{
    struct test_lane lane;
    struct result result = {.text = {0}};

    (void)state;
    test_lane_init(&lane, NULL);
    write_text(&lane, "+1 +2 -2");
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    test_model(&lane, &result.text);
    expect(&result, "open f1 = ", "1");
    expect(&result, "path f1/f2 @0 = ", "1 0 0 self=0,0,0 total=0,0,0 hist=1");
    expect(&result, "ledger 1 = ", "3 2 1"); /* f1's enter is held until its exit */
    done(&result);
    write_text(&lane, "-1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    expect(&result, "ledger 1 = ", "4 4 0");
    done(&result);
    test_lane_fini(&lane);
}

static void deltas_come_once_a_period_and_not_when_nothing_happens(void **state)
{
    struct test_lane lane;
    uint64_t deltas;

    (void)state;
    test_lane_init(&lane, NULL);
    write_text(&lane, "+1 -1");
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

/* A call of a depth-first walk: `seed` decides the children, so equal seeds make equal subtrees. */
static void walk(struct test_lane *lane, uint32_t seed, uint32_t depth)
{
    uint32_t function = 1 + seed % 4000;

    test_lane_enter(lane, 1, function, ++lane->streams[1].time);
    for (uint32_t i = 0; depth && i < 3; i++)
        walk(lane, seed * 2654435761u + 40503 * i + depth, depth - 1);
    test_lane_exit(lane, 1, function, ++lane->streams[1].time);
}

static void full_tables_are_sent_and_forgotten_and_nothing_is_lost(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct result result = {.text = {0}};
    uint64_t calls = 0, traces = 0;

    (void)state;
    reduce.paths_max = 200;
    reduce.nodes_max = 200;
    reduce.node_children_max = 600;
    reduce.shapes_max = 30;
    reduce.bins_max = 2 * MR_BINS_COUNT;
    test_lane_init(&lane, &options);
    for (uint32_t i = 0; i < 500; i++) {
        walk(&lane, i * 7919, 3);
        test_lane_send(&lane, 1, 0);
    }
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    for (uint32_t i = 0; i < result.text.count; i++) {
        const char *line = result.text.lines[i];

        if (strncmp(line, "path ", 5) == 0)
            calls += strtoull(strstr(line, " = ") + 3, NULL, 10);
        if (strncmp(line, "shape ", 6) == 0)
            traces += strtoull(strstr(line, " = ") + 3, NULL, 10);
    }
    assert_int_equal(calls, 500 * 40);
    assert_int_equal(traces, 500);
    expect(&result, "ledger 1 = ", "40000 40000 0");
    assert_true(
        strtoull(test_text_find(&result.text, "counter reduce_tables_forgotten = "), NULL,
                 10) > 50);
    done(&result);
    test_lane_fini(&lane);
}

static void calls_that_find_no_path_are_lost_for_budget(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct result result = {.text = {0}};

    (void)state;
    reduce.paths_max = 16;
    test_lane_init(&lane, &options);
    for (uint32_t i = 1; i <= 40; i++) /* open calls alone need more */
        test_lane_enter(&lane, 1, i, i);
    for (uint32_t i = 40; i >= 1; i--)
        test_lane_exit(&lane, 1, i, 100);
    write_text(&lane, "+1 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    expect(&result,
           "ledger 1 = ", "82 30 0 4:52"); /* 14 of 40 found a path, and the last one */
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1 = 1 0 1 "), 1);
    expect(&result, "entry f1 @0 = ", "1,1,0 0,0,0 0,0,0 1,40,99");
    done(&result);
    test_lane_fini(&lane);
}

/* A base has no parent either: the call of a site whose number is that of its scope is not taken for it. */
static void below_a_call_without_a_path_no_call_finds_one(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce, .sites_max = 2};
    struct test_lane lane;
    struct result result = {.text = {0}};

    (void)state;
    reduce.paths_max = 16;
    test_lane_init(&lane, &options);
    for (uint32_t i = 1; i <= 40;
         i++) /* but for f1 all of the unknown site, which is number 0 */
        test_lane_enter(&lane, 1, i, i);
    for (uint32_t i = 40; i >= 1; i--)
        test_lane_exit(&lane, 1, i, 100);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    expect(&result, "ledger 1 = ", "80 28 0 4:52");
    done(&result);
    test_lane_fini(&lane);
}

static void a_recursion_of_100_000_is_reduced_in_part_and_accounted_in_full(void **state)
{
    struct test_lane lane;
    struct result result = {.text = {0}};

    (void)state;
    test_lane_init(&lane, NULL);
    lane.reconstruct.depth_max = 2000; /* the paths of 65,536 levels make long lines */
    for (uint32_t i = 0; i < 100000; i++)
        test_lane_enter(&lane, 1, 1, i);
    for (uint32_t i = 0; i < 100000; i++)
        test_lane_exit(&lane, 1, 1, 100000 + i);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    expect(&result, "ledger 1 = ", "200000 4000 0 4:196000");
    done(&result);
    test_lane_fini(&lane);
}

/* A function that calls itself `depth` times: how many calls are reduced. */
static void recurse(uint32_t depth, uint64_t reduced)
{
    struct test_lane lane;
    struct mr_ledger_entry sum = {0};
    uint64_t ok = 0;

    test_lane_init(&lane, NULL);
    for (uint32_t i = 0; i < depth; i++)
        test_lane_enter(&lane, 1, 1, i);
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    for (uint32_t i = 0; i < depth; i++)
        test_lane_exit(&lane, 1, 1, depth + i);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    for (const struct mr_batch *batch = lane.out->first; batch; batch = batch->next) {
        struct mr_delta_reader reader;
        struct mr_delta_item item;

        if (batch->kind != MR_BATCH_DELTA)
            continue;
        mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
        while (mr_delta_next(&reader, &item) == MR_OK) {
            if (item.tag == MR_DELTA_LEDGER)
                mr_ledger_entry_merge(&sum, item.ledger);
            if (item.tag == MR_DELTA_PATH_STAT)
                ok += item.path_stats->ok;
        }
        mr_delta_reader_fini(&reader);
    }
    assert_int_equal(ok, reduced);
    assert_int_equal(sum.last, 2 * (uint64_t)depth);
    assert_int_equal(sum.reduced, 2 * reduced);
    assert_int_equal(sum.held, 0);
    assert_int_equal(sum.lost[MR_LOSS_BUDGET], 2 * (depth - reduced));
    test_lane_fini(&lane);
}

static void a_recursion_of_100_000_passes_with_the_default_limits(void **state)
{
    (void)state;
    recurse(100000, 100000);
    recurse(MR_RECONSTRUCT_DEPTH_DEFAULT + 1000, MR_RECONSTRUCT_DEPTH_DEFAULT);
}

static void many_paths_are_told_less_often(void **state)
{
    const struct mr_reduce_config config = {.delta_period_ns = 100 * MR_MILLISECOND_NS};
    uint64_t last = 0;

    (void)state;
    assert_int_equal(mr_reduce_period(&config, 0), config.delta_period_ns);
    assert_int_equal(mr_reduce_period(&config, 1000), config.delta_period_ns);
    assert_int_equal(mr_reduce_period(&config, 5000), 5000 * MR_REDUCE_ROW_PACE_NS);
    assert_int_equal(mr_reduce_period(&config, UINT32_MAX),
                     MR_REDUCE_PERIODS_MAX * config.delta_period_ns);
    for (uint32_t paths = 0; paths < 20000; paths += 100) {
        assert_true(mr_reduce_period(&config, paths) >= last);
        last = mr_reduce_period(&config, paths);
    }
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
        cmocka_unit_test(a_trace_of_too_many_children_is_in_the_paths_only),
        cmocka_unit_test(past_the_budget_of_new_shapes_traces_are_in_the_paths_only),
        cmocka_unit_test(an_entry_point_past_the_budget_rests),
        cmocka_unit_test(an_entry_point_rests_longer_the_longer_it_is_past_the_budget),
        cmocka_unit_test(a_new_shape_within_the_budget_ends_no_rest),
        cmocka_unit_test(a_trace_in_which_a_site_is_pruned_is_in_the_paths_only),
        cmocka_unit_test(open_traces_are_told_and_held),
        cmocka_unit_test(deltas_come_once_a_period_and_not_when_nothing_happens),
        cmocka_unit_test(full_tables_are_sent_and_forgotten_and_nothing_is_lost),
        cmocka_unit_test(calls_that_find_no_path_are_lost_for_budget),
        cmocka_unit_test(below_a_call_without_a_path_no_call_finds_one),
        cmocka_unit_test(a_recursion_of_100_000_is_reduced_in_part_and_accounted_in_full),
        cmocka_unit_test(a_recursion_of_100_000_passes_with_the_default_limits),
        cmocka_unit_test(many_paths_are_told_less_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
