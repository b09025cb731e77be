/* SPDX-License-Identifier: Apache-2.0 */
/* What reduce keeps of single traces: the first and the slowest of each shape, and shapes' statistics per path. */
#include "../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "support_lane.h"
#include "support_model.h"

/* One call tree on stream 1: "1{2{3}4}" with `ns` before and after each call. */
static void write_tree(struct test_lane *lane, const char *tree, uint64_t ns)
{
    uint32_t stack[64], depth = 0;
    bool is_open = false;

    for (;; tree++) {
        if (is_open && *tree != '{') {
            test_lane_exit(lane, 1, stack[--depth], lane->streams[1].time + ns);
            is_open = false;
        }
        if (*tree == '\0')
            break;
        if (*tree == '}') {
            test_lane_exit(lane, 1, stack[--depth], lane->streams[1].time + ns);
        } else if (*tree != '{') {
            assert_true(depth < 64);
            stack[depth++] = (uint32_t)(*tree - '0');
            test_lane_enter(lane, 1, stack[depth - 1], lane->streams[1].time + ns);
            is_open = true;
        } else {
            is_open = false;
        }
    }
    assert_int_equal(depth, 0);
}

static void begin(struct test_lane *lane, const struct mr_reduce_config *reduce)
{
    const struct test_options options = {.reduce = reduce};

    test_lane_init(lane, &options);
    test_lane_announce(lane, 1, 0);
}

static void finish(struct test_lane *lane, struct test_text *text)
{
    test_lane_end(lane);
    *text = (struct test_text){0};
    test_model(lane, text);
    test_lane_fini(lane);
}

static void the_first_and_the_slowest_of_a_shape_are_kept_with_their_calls(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    begin(&lane, &reduce);
    write_tree(&lane, "1{23}", 1); /* from 1 */
    write_tree(&lane, "1{23}", 9); /* from 15 */
    write_tree(&lane, "1{23}", 4);
    write_tree(&lane, "1{2}", 2); /* from 86 */
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_string_equal(test_text_find(&text, "exemplar f1 1 f1{f2 f3} = "),
                        "0 1 0 1 3: 0 f1 0+5 0-0,0; 1 f2 1+1 0-0,0; 1 f3 3+1 0-0,0");
    assert_string_equal(test_text_find(&text, "exemplar f1 2 f1{f2 f3} = "),
                        "0 1 3 15 3: 0 f1 0+45 0-0,0; 1 f2 9+9 0-0,0; 1 f3 27+9 0-0,0");
    assert_string_equal(test_text_find(&text, "exemplar f1 1 f1{f2} = "),
                        "0 1 9 86 2: 0 f1 0+6 0-0,0; 1 f2 2+2 0-0,0");
    assert_int_equal(test_text_count(&text, "exemplar "), 4);
    test_text_fini(&text);
}

static void a_trace_over_the_budget_keeps_its_longest_calls_and_counts_the_rest(
    void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    reduce.exemplar_calls = 3;
    begin(&lane, &reduce);
    write_tree(&lane, "1{2{34}5{6{7}}}", 10);
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_string_equal(
        test_text_find(&text, "exemplar f1 2 f1{f2{f3 f4} f5{f6{f7}}} = "),
        "0 1 0 10 7: 0 f1 0+130 0-0,0; 1 f2 10+50 0-2,20; 1 f5 70+50 0-2,30");
    test_text_fini(&text);
}

static void traces_without_a_shape_are_kept_by_entry_point(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    reduce.trace_children_max = 16;
    begin(&lane, &reduce);
    write_tree(&lane, "1{23232323232323232323}", 1); /* past the limit */
    write_tree(&lane, "1{2}", 1);
    test_lane_enter(&lane, 1, 1, 100); /* never ends */
    test_lane_enter(&lane, 1, 2, 107);
    test_lane_exit(&lane, 1, 2, 109);
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_int_equal(
        strncmp(test_text_find(&text, "exemplar f1 2 - = "), "0 1 0 1 21: ", 12), 0);
    assert_string_equal(test_text_find(&text, "exemplar f1 2i - = "),
                        "2 1 23 100 2: 0 f1 0+9 2-0,0; 1 f2 7+2 0-0,0");
    test_text_fini(&text);
}

static void a_failed_trace_says_so_and_which_call(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    begin(&lane, &reduce);
    test_lane_enter(&lane, 1, 1, 1);
    test_lane_enter(&lane, 1, 2, 2);
    test_lane_status(&lane, 1, 3, true);
    test_lane_exit(&lane, 1, 2, 4);
    test_lane_status(&lane, 1, 5, true);
    test_lane_exit(&lane, 1, 1, 6);
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_string_equal(test_text_find(&text, "exemplar f1 2 f1{f2} = "),
                        "1 1 0 1 2: 0 f1 0+5 1-0,0; 1 f2 1+2 1-0,0");
    test_text_fini(&text);
}

static void shapes_that_recur_have_statistics_per_path_of_their_own(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    begin(&lane, &reduce);
    write_tree(&lane, "1{2{3}}", 1); /* the first is its exemplar alone */
    write_tree(&lane, "1{2{3}}", 2);
    write_tree(&lane, "1{2}", 7); /* once */
    write_tree(&lane, "1{2{3}}", 4);
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_string_equal(test_text_find(&text, "shape path f1{f2{f3}} f1 = "),
                        "2 0 self=12,4,8 total=30,10,20");
    assert_string_equal(test_text_find(&text, "shape path f1{f2{f3}} f1/f2 = "),
                        "2 0 self=12,4,8 total=18,6,12");
    assert_string_equal(test_text_find(&text, "shape path f1{f2{f3}} f1/f2/f3 = "),
                        "2 0 self=6,2,4 total=6,2,4");
    assert_int_equal(test_text_count(&text, "shape path "), 3);
    test_text_fini(&text);
}

static void beyond_the_credit_traces_are_not_counted_by_shape(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    reduce.shape_calls_s = 80; /* and so 10 at once */
    reduce.exemplar_calls = 4;
    begin(&lane, &reduce);
    for (int i = 0; i < 30; i++)
        write_tree(&lane, "1{2}", 1);
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_string_equal(test_text_find(&text, "shape path f1{f2} f1 = "),
                        "5 0 self=10,2,2 total=15,3,3");
    assert_string_equal(test_text_find(&text, "shape path f1{f2} f1/f2 = "),
                        "5 0 self=5,1,1 total=5,1,1");
    test_text_fini(&text);
}

static void without_a_budget_nothing_is_kept(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    reduce.exemplar_calls = 0;
    begin(&lane, &reduce);
    for (int i = 0; i < 9; i++) {
        write_tree(&lane, "1{2}", 1);
        test_lane_send(&lane, 1, 0);
    }
    finish(&lane, &text);
    assert_int_equal(test_text_count(&text, "exemplar "), 0);
    assert_int_equal(test_text_count(&text, "shape path "), 0);
    assert_int_equal(test_text_count(&text, "shape f1 "), 1);
    test_text_fini(&text);
}

/* One place per reason: the slowest of all shapes, and the shape that was there first. */
static void the_places_go_to_the_best_of_all_shapes(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    reduce.exemplars_max = 1;
    begin(&lane, &reduce);
    write_tree(&lane, "1{2}", 5);
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    write_tree(&lane, "1{3}", 2);
    write_tree(&lane, "1{4}", 9);
    test_lane_send(&lane, 1, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    write_tree(&lane, "1{5}", 6);
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_int_equal(test_text_count(&text, "exemplar f1 1 "), 1);
    assert_int_equal(test_text_count(&text, "exemplar f1 1 f1{f2}"), 1);
    assert_int_equal(test_text_count(&text, "exemplar f1 2 f1{f3}"), 0);
    assert_int_equal(test_text_count(&text, "exemplar f1 2 f1{f4}"), 1);
    assert_int_equal(test_text_count(&text, "exemplar f1 2 f1{f5}"), 0);
    test_text_fini(&text);
}

static void open_traces_past_the_memory_are_not_kept_and_counted(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_lane lane;
    struct test_text text;

    (void)state;
    reduce.exemplar_open_bytes = 1;
    begin(&lane, &reduce);
    test_lane_enter(&lane, 1, 1, 1);
    test_lane_send(&lane, 1, 0);
    test_lane_exit(&lane, 1, 1, 9);
    test_lane_send(&lane, 1, 0);
    finish(&lane, &text);
    assert_int_equal(test_text_count(&text, "exemplar "), 0);
    assert_string_equal(
        test_text_find(&text, "counter reduce_exemplars_without_memory = "), "1");
    test_text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_and_the_slowest_of_a_shape_are_kept_with_their_calls),
        cmocka_unit_test(
            a_trace_over_the_budget_keeps_its_longest_calls_and_counts_the_rest),
        cmocka_unit_test(traces_without_a_shape_are_kept_by_entry_point),
        cmocka_unit_test(a_failed_trace_says_so_and_which_call),
        cmocka_unit_test(shapes_that_recur_have_statistics_per_path_of_their_own),
        cmocka_unit_test(beyond_the_credit_traces_are_not_counted_by_shape),
        cmocka_unit_test(without_a_budget_nothing_is_kept),
        cmocka_unit_test(the_places_go_to_the_best_of_all_shapes),
        cmocka_unit_test(open_traces_past_the_memory_are_not_kept_and_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
