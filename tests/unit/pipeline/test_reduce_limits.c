/* SPDX-License-Identifier: Apache-2.0 */
/* Reduce where something is full, or past a budget. */
#include "../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/bins.h"
#include "support_reduce.h"

static void a_trace_of_too_many_children_is_in_the_paths_only(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_reduced result;

    (void)state;
    reduce.trace_children_max = 3;
    test_reduce_run_with(
        &options, 0, "+1 +2 -2 +3 -3 +4 -4 -1 +1 +2 -2 +3 -3 +4 -4 +5 -5 t1 -1", &result);
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f2 f3 f4} = ", "1 0 4 0 0 0 time=0,0,0 hist=1");
    assert_int_equal(test_text_count(&result.text, "shape "), 1);
    test_reduce_expect(&result, "entry f1 @0 = ", "1,4,0 0,0,0 1,5,1 0,0,0");
    test_reduce_expect(&result, "counter reduce_traces_past_limit = ", "1");
    test_reduce_done(&result);
}

/* Of a budget of 20 nodes the first 10 are for any node, the others for those that were met before; a new shape is as dear as 8. */
static void past_the_budget_of_new_shapes_traces_are_in_the_paths_only(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_reduced result;

    (void)state;
    reduce.new_nodes_at_once = 20;
    reduce.new_nodes_s = 0;
    test_reduce_run_with(&options, 0,
                         "+1 +2 -2 t1 -1 " /* f2, f1{f2} */
                         "+1 +3 -3 t1 -1 " /* f3 is met */
                         "+1 +2 -2 t1 -1 " /* known */
                         "+1 +3 -3 t1 -1 " /* f3; f1{f3} is met */
                         "+1 +3 -3 t1 -1 " /* f1{f3}; the budget is spent */
                         "+1 +4 -4 t1 -1 +1 +4 -4 t1 -1 +1 +4 -4 t1 -1 +1 +3 -3 t1 -1",
                         &result);
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f2} = ", "2 0 4 0 1 3 time=2,1,1 hist=0;5;-1;2");
    test_reduce_expect(&result,
                       "shape f1 @0 f1{f3} = ", "2 0 4 0 5 9 time=2,1,1 hist=0;5;-1;2");
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f4} "), 0);
    test_reduce_expect(&result, "entry f1 @0 = ", "4,8,4 0,0,0 5,10,5 0,0,0");
    test_reduce_expect(&result, "counter reduce_traces_past_new_nodes = ", "5");
    test_reduce_expect(&result, "ledger 1 = ", "36 36 0");
    test_reduce_done(&result);
}

/* All is counted by path, and those of known shapes that are not looked at say so, too. */
static void an_entry_point_past_the_budget_rests(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    reduce.new_nodes_at_once = 1; /* f2 alone */
    reduce.new_nodes_s = 0;
    reduce.is_one_by_one = true;
    test_lane_init(&lane, &options);
    test_reduce_write(&lane, "+2 -2");
    for (uint32_t i = 0; i < 1000; i++)
        test_reduce_write(&lane, "+1 +2 -2 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "counter reduce_traces_past_new_nodes = ", "1000");
    test_reduce_expect(&result, "ledger 1 = ", "4002 4002 0");
    assert_int_equal(test_text_count(&result.text, "path f1 @0 = 1000 0 0"), 1);
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

/* f1{f2} is known, and all others are past the budget. */
static void an_entry_point_rests_longer_the_longer_it_is_past_the_budget(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    reduce.new_nodes_at_once = 2;
    reduce.new_nodes_s = 0;
    reduce.is_one_by_one = true;
    test_lane_init(&lane, &options);
    /* f1{f2} is met first: 2 traces of a shape. */
    test_reduce_write_times(&lane, 3, "+1 +2 -2 -1");
    test_reduce_write_times(&lane, 15, "+1 +3 -3 -1");
    test_reduce_write(&lane, "+1 +2 -2 -1"); /* came before: all begins anew */
    test_reduce_write_times(&lane, 16, "+1 +3 -3 -1");
    test_reduce_write_times(&lane, 100, "+1 +2 -2 -1"); /* 60 are not looked at */
    test_reduce_write_times(&lane, 16 + 4 * 64, "+1 +3 -3 -1");
    test_reduce_write_times(&lane, 1068, "+1 +2 -2 -1"); /* 1020 are not looked at */
    test_reduce_write_times(&lane, 16 + 4 * 64, "+1 +3 -3 -1");
    test_reduce_write(&lane, "w");
    test_reduce_write_times(&lane, 100, "+1 +2 -2 -1"); /* 1 and 60 are not looked at */
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "counter reduce_traces_past_new_nodes = ", "1717");
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f2} = 91 0 "), 1);
    assert_int_equal(test_text_count(&result.text, "shape f1 @1 f1{f2} = 39 0 "), 1);
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

/* The same as with a window: of 1,020 traces at most 60 are left. */
static void a_delta_cuts_a_long_rest(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    reduce.new_nodes_at_once = 2;
    reduce.new_nodes_s = 0;
    reduce.is_one_by_one = true;
    test_lane_init(&lane, &options);
    test_reduce_write_times(&lane, 3, "+1 +2 -2 -1"); /* 2 traces of a shape */
    test_reduce_write_times(&lane, 16 + 4 * 64, "+1 +3 -3 -1");
    test_reduce_write_times(&lane, 10, "+1 +2 -2 -1"); /* not looked at */
    test_lane_send(&lane, 1, 0);
    assert_int_equal(lane.out->deltas, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    assert_true(lane.out->deltas > 0);
    test_reduce_write_times(&lane, 100, "+1 +2 -2 -1"); /* 1 and 60 are not */
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f2} = 41 0 "), 1);
    test_reduce_done(&result);
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
    struct test_reduced result = {.text = {0}};

    (void)state;
    reduce.new_nodes_at_once = 40; /* 20 for any node: two shapes */
    reduce.new_nodes_s = 10;
    reduce.budget_clock = told_time;
    reduce.budget_context = &now_ns;
    reduce.is_one_by_one = true;
    test_lane_init(&lane, &options);
    test_lane_tick(&lane, 0);
    test_reduce_write(&lane, "+1 +2 -2 -1 +1 +3 -3 -1");
    for (uint32_t i = 0; i < 15; i++) {
        test_lane_enter(&lane, 1, 1, 0);
        test_lane_enter(&lane, 1, 10 + i, 0);
        test_lane_exit(&lane, 1, 10 + i, 0);
        test_lane_exit(&lane, 1, 1, 0);
    }
    test_lane_send(&lane, 1, 0);
    now_ns += MR_SECOND_NS;
    test_lane_tick(&lane, 0);
    test_reduce_write(&lane, "+1 +4 -4 -1"); /* 2 nodes and a shape */
    test_reduce_write(&lane, "+1 +5 -5 -1"); /* the 16th */
    test_reduce_write_times(&lane, 100, "+1 +2 -2 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "counter reduce_traces_past_new_nodes = ", "76");
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f2} = 41 0 "), 1);
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1{f4} = 1 0 "), 1);
    test_reduce_done(&result);
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
    struct test_reduced result = {.text = {0}};
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
    test_reduce_expect(&result, "ledger 1 = ", "40000 40000 0");
    assert_true(
        strtoull(test_text_find(&result.text, "counter reduce_tables_forgotten = "), NULL,
                 10) > 50);
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

static void calls_that_find_no_path_are_lost_for_budget(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    reduce.paths_max = 16;
    test_lane_init(&lane, &options);
    for (uint32_t i = 1; i <= 40; i++) /* open calls alone need more */
        test_lane_enter(&lane, 1, i, i);
    for (uint32_t i = 40; i >= 1; i--)
        test_lane_exit(&lane, 1, i, 100);
    test_reduce_write(&lane, "+1 -1");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "ledger 1 = ",
                       "82 30 0 4:52"); /* 14 of 40 found a path, and the last one */
    assert_int_equal(test_text_count(&result.text, "shape f1 @0 f1 = 1 0 1 "), 1);
    test_reduce_expect(&result, "entry f1 @0 = ", "1,1,0 0,0,0 0,0,0 1,40,99");
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

/* A base has no parent either: the call of a site whose number is that of its scope is not taken for it. */
static void below_a_call_without_a_path_no_call_finds_one(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce, .sites_max = 2};
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

    (void)state;
    reduce.paths_max = 16;
    test_lane_init(&lane, &options);
    /* All but f1 are of the unknown site, which is number 0. */
    for (uint32_t i = 1; i <= 40; i++)
        test_lane_enter(&lane, 1, i, i);
    for (uint32_t i = 40; i >= 1; i--)
        test_lane_exit(&lane, 1, i, 100);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &result.text);
    test_reduce_expect(&result, "ledger 1 = ", "80 28 0 4:52");
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

static void a_recursion_of_100_000_is_reduced_in_part_and_accounted_in_full(void **state)
{
    struct test_lane lane;
    struct test_reduced result = {.text = {0}};

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
    test_reduce_expect(&result, "ledger 1 = ", "200000 4000 0 4:196000");
    test_reduce_done(&result);
    test_lane_fini(&lane);
}

/* A function that calls itself `depth` times: how many calls are reduced. */
static void recurse(uint32_t depth, uint64_t reduced)
{
    struct test_lane lane;
    struct mr_ledger_entry sum;
    uint64_t ok, whole;

    test_lane_init(&lane, NULL);
    for (uint32_t i = 0; i < depth; i++)
        test_lane_enter(&lane, 1, 1, i);
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    for (uint32_t i = 0; i < depth; i++)
        test_lane_exit(&lane, 1, 1, depth + i);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_reduce_add_up(&lane, &ok, &whole, &sum);
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
        cmocka_unit_test(a_trace_of_too_many_children_is_in_the_paths_only),
        cmocka_unit_test(past_the_budget_of_new_shapes_traces_are_in_the_paths_only),
        cmocka_unit_test(an_entry_point_past_the_budget_rests),
        cmocka_unit_test(an_entry_point_rests_longer_the_longer_it_is_past_the_budget),
        cmocka_unit_test(a_delta_cuts_a_long_rest),
        cmocka_unit_test(a_new_shape_within_the_budget_ends_no_rest),
        cmocka_unit_test(full_tables_are_sent_and_forgotten_and_nothing_is_lost),
        cmocka_unit_test(calls_that_find_no_path_are_lost_for_budget),
        cmocka_unit_test(below_a_call_without_a_path_no_call_finds_one),
        cmocka_unit_test(a_recursion_of_100_000_is_reduced_in_part_and_accounted_in_full),
        cmocka_unit_test(a_recursion_of_100_000_passes_with_the_default_limits),
        cmocka_unit_test(many_paths_are_told_less_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
