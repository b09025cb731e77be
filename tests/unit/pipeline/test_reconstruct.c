/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <string.h>

#include "net/ids.h"
#include "support_events.h"

static void nested_calls_open_and_close(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 -3 -2 +2 -2 -1 +4 -4",
                       "+1r +2 +3 -3 -2 +2 -2 -1r +4r -4r .");
}

static void the_exit_of_a_call_further_down_unwinds_those_above(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 -1 +1 -1", "+1r +2 +3 -3w -2w -1r +1r -1r .");
}

static void recursion_closes_the_innermost_call_of_a_site(void **state)
{
    (void)state;
    test_events_expect("+1 +1 +1 -1 -1 -1", "+1r +1 +1 -1 -1 -1r .");
}

static void an_exit_without_an_enter_is_counted_and_dropped(void **state)
{
    (void)state;
    test_events_expect("-9 +1 -9 +2 -2 -1", "#1 +1r #1 +2 -2 -1r .");
}

static void calls_open_at_the_end_are_incomplete(void **state)
{
    (void)state;
    test_events_expect("+1 +2", "+1r +2 B -2i -1ri .");
}

static void a_stream_that_ends_at_its_base_breaks_nothing(void **state)
{
    (void)state;
    test_events_expect("+1 -1", "+1r -1r .");
}

static void a_loss_closes_and_opens_as_it_was_told(void **state)
{
    (void)state;
    /* f2 has ended during the loss, an unknown call was entered. */
    test_events_expect("+1 +2 l3,1,1 -5 -1", "+1r +2 !1:3 B -2i +0u -5u -1r .");
}

static void after_a_loss_the_next_root_is_whole_again(void **state)
{
    (void)state;
    test_events_expect("+1 l2,1,0 +1 -1", "+1r !1:2 B -1ri +1r -1r .");
}

static void a_loss_between_trees_breaks_none(void **state)
{
    (void)state;
    test_events_expect("+1 -1 l4,0,0 +1 -1", "+1r -1r !1:4 +1r -1r .");
}

static void a_loss_inside_one_call_breaks_its_tree(void **state)
{
    (void)state;
    test_events_expect("+1 l4,0,0 -1", "+1r !1:4 B -1r .");
}

static void a_root_entered_in_a_loss_is_unknown_until_it_exits(void **state)
{
    (void)state;
    test_events_expect("l2,0,2 +3 -3 -2 -1 +1 -1",
                       "!1:2 +0ru +0u +3 -3 -2u -1ru +1r -1r .");
}

static void an_exit_prefers_the_nearer_call_of_its_site_to_an_unknown_one(void **state)
{
    (void)state;
    test_events_expect("+1 l1,0,1 +1 -1 -7 -1", "+1r !1:1 B +0u +1 -1 -7u -1r .");
}

static void known_calls_above_an_unknown_one_are_unwound_when_it_exits(void **state)
{
    (void)state;
    test_events_expect("+1 l1,0,1 +2 -7 -1", "+1r !1:1 B +0u +2 -2w -7u -1r .");
}

static void an_unknown_call_that_is_unwound_is_incomplete(void **state)
{
    (void)state;
    test_events_expect("+1 l1,0,1 u1 -1", "+1r !1:1 B +0u #1 -0iu -1r .");
}

static void more_pops_than_calls_empty_the_stack(void **state)
{
    (void)state;
    test_events_expect("+1 +2 l9,9,0 +1 -1", "+1r +2 !1:9 B -2i -1ri +1r -1r .");
}

static void status_is_of_the_innermost_call_and_the_last_one_counts(void **state)
{
    (void)state;
    test_events_expect("+1 +2 s1 -2 -1 +1 s1 s0 -1 s1",
                       "+1r +2 F -2f -1r +1r F O -1r #1 .");
}

static void an_unwind_closes_down_to_the_depth_that_remains(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 u1 +4 -4 -1 u0 u7",
                       "+1r +2 +3 #1 -3w -2w +4 -4 -1r #1 #1 .");
}

static void what_a_landing_has_left_is_unwound_and_calls_go_on_where_it_landed(
    void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 L3:9,2:8/1:7 +4 -4 -1", "+1r +2 +3 -3w -2w +4 -4 -1r .");
}

static void frames_of_functions_that_are_not_open_are_passed_over(void **state)
{
    (void)state;
    test_events_expect("+5 -5 +1 +2 L9:1,5:2,2:3,8:4/1:7 +4 -4 -1",
                       "+5r -5r +1r +2 -2w +4 -4 -1r .");
}

static void of_a_recursion_as_many_frames_are_left_as_were_told(void **state)
{
    (void)state;
    test_events_expect("+1 +1 +1 +1 +1 L1:5,1:4,1:3/1:2 +2 -2 -1 -1",
                       "+1r +1 +1 +1 +1 -1w -1w -1w +2 -2 -1 -1r .");
}

static void a_landing_of_more_than_one_record_goes_on(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 +4 L4:1 L3:2 L2:3/1:7 +4 -4 -1",
                       "+1r +2 +3 +4 -4w -3w -2w +4 -4 -1r .");
}

static void a_frame_that_was_landed_in_is_left_by_the_next(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +2 L/2:5 +3 -3 L2:5/2:6 +3 -3 L2:6/1:7 -1",
                       "+1r +2 +2 +3 -3 -2w +3 -3 -2w -1r .");
}

/* As gcc's hooks do: the inner f2 must not be taken for the outer one. */
static void unless_its_own_exit_came_in_between(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +2 L/2:5 +3 -3 -2 L2:5/2:6 +3 -3 -2 L2:6/1:7 -1",
                       "+1r +2 +2 +3 -3 -2 +3 -3 -2 -1r .");
}

/* The next call of f2 is at the same place on the stack: where f2 was landed in before says nothing about it. */
static void a_frame_where_one_was_that_was_landed_in_is_left_by_its_name(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 L3:4/2:5 -2 +2 +3 +2 +4 L4:3,2:5,3:6/2:7 -2 -1",
                       "+1r +2 +3 -3w -2 +2 +3 +2 +4 -4w -2w -3w -2 -1r .");
}

/* A frame of f2 that lies elsewhere, as far from a boundary as one that was landed in: coroutines, a deep recursion. */
static void a_frame_with_the_tag_of_one_further_out_is_the_innermost(void **state)
{
    (void)state;
    test_events_expect("+1 +2 L/2:5 +3 +2 +4 L4:1,2:5/3:8 +5 -5 -3 -2 -1",
                       "+1r +2 +3 +2 +4 -4w -2w +5 -5 -3 -2 -1r .");
}

/* An exception that a destructor throws and catches, while another one is under way. */
static void landings_nest(void **state)
{
    (void)state;
    test_events_expect("+1 +2 L/2:5 +3 +2 +4 L4:1/2:9 L2:9/3:8 +5 -5 -3 L2:5/1:7 -1",
                       "+1r +2 +3 +2 +4 -4w -2w +5 -5 -3 -2w -1r .");
}

static void many_landings_are_not_all_remembered(void **state)
{
    (void)state;
    test_events_expect(
        "+1 L/1:1 +2 L/2:2 +3 L/3:3 +4 L/4:4 +5 L/5:5 +6 L/6:6 +7 L/7:7 +8 L/8:8 "
        "+9 L/9:9 L9:9/8:8 L8:8,7:7,6:6,5:5,4:4,3:3,2:2/1:1 -1",
        "+1r +2 +3 +4 +5 +6 +7 +8 +9 -9w -8w -7w -6w -5w -4w -3w -2w -1r .");
}

static void all_above_the_call_landed_in_is_left_if_it_was_told_so(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 +4 L/2:0^ +5 -5 -2 -1",
                       "+1r +2 +3 +4 -4w -3w +5 -5 -2 -1r .");
    test_events_expect("+1 +2 +3 +4 L/2:0 +5 -5 -2 -1",
                       "+1r +2 +3 +4 +5 -5 -4w -3w -2 -1r .");
}

/* f9 is no site: it goes on in it, below f2, which called it. */
static void a_caller_stands_for_a_function_that_is_no_site(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 +4 L4:1/9:2^,2:0^,1:0^ +5 -5 -2 -1",
                       "+1r +2 +3 +4 -4w -3w +5 -5 -2 -1r .");
}

static void a_landing_that_names_nothing_known_changes_nothing(void **state)
{
    (void)state;
    test_events_expect("+1 +2 L L8:1 L/9:9^ L7:1,6:2/5:3^,4:4^ -2 -1", "+1r +2 -2 -1r .");
}

static void a_landing_may_leave_outer_frames(void **state)
{
    (void)state;
    test_events_expect_with(NULL, 1, "+1 +2 L2:1,1:2 +3 -3",
                            "+1o +2r -2rw -1ow +3r -3r .");
}

static void a_landing_follows_calls_past_depth_max(void **state)
{
    struct mr_reconstruct_config config = {
        .level = 1, .depth_max = 3, .learns_nothing = true};

    (void)state;
    test_events_expect_with(&config, 0, "+1 +2 +3 +4 +5 L5:1,4:2,3:3/2:4^ +3 -3 -2 -1",
                            "+1r +2 +3 B !4:1 !4:1 -3w +3 -3 -2 -1r .");
}

static void the_bottom_call_of_the_start_site_is_an_outer_frame(void **state)
{
    (void)state;
    test_events_expect_with(NULL, 1, "+1 +2 +1 -1 -2 +3 -3 -1",
                            "+1o +2r +1 -1 -2r +3r -3r -1o .");
}

static void an_outer_frame_that_a_loss_ends_uncovers_the_base(void **state)
{
    (void)state;
    test_events_expect_with(NULL, 1, "+1 +2 l2,2,0 +3 -3",
                            "+1o +2r !1:2 B -2ri -1oi +3r -3r .");
}

static void after_a_gap_trees_are_broken_until_an_outer_frame_exits(void **state)
{
    (void)state;
    test_events_expect_with(NULL, 1, "+1 +2 g5 +3 -3 -1 +4 -4",
                            "+1o +2r !7:5 B -2ri +3r B -3r -1o +4r -4r .");
}

/* `count` calls of f5 as text, then `tail`. */
static void after_a_gap_many_trees_over_10_s_make_the_base_sure(void **state)
{
    char *events = test_events_repeat("g5 t11 ", "+5 -5 ", 65, "+6 -6");
    char *expected = test_events_repeat("!7:5", " +5r B -5r", 64, " +5r -5r +6r -6r .");

    (void)state;
    test_events_expect(events, expected);
    free(events);
    free(expected);
}

static void after_a_gap_a_stray_exit_begins_the_wait_anew(void **state)
{
    char *events = test_events_repeat("g5 t11 ", "+5 -5 ", 63, "-9 +5 -5 +6 -6");
    char *expected =
        test_events_repeat("!7:5", " +5r B -5r", 63, " #1 +5r B -5r +6r B -6r .");

    (void)state;
    test_events_expect(events, expected);
    free(events);
    free(expected);
}

static void a_long_root_with_many_children_is_learned_as_an_outer_frame(void **state)
{
    char *events = test_events_repeat("+1 t11 ", "+5 -5 ", 65, "-1 +1 +2 -2 -1");
    char *expected =
        test_events_repeat("+1r", " +5 -5", 64, " L +5r -5r -1o +1o +2r -2r -1o .");

    (void)state;
    test_events_expect(events, expected);
    free(events);
    free(expected);
}

static void a_long_root_with_few_children_stays_a_root(void **state)
{
    char *events = test_events_repeat("+1 t11 ", "+5 -5 ", 63, "-1");
    char *expected = test_events_repeat("+1r", " +5 -5", 63, " -1r .");

    (void)state;
    test_events_expect(events, expected);
    free(events);
    free(expected);
}

static void a_quick_root_with_many_children_stays_a_root(void **state)
{
    char *events = test_events_repeat("+1 ", "+5 -5 ", 500, "-1");
    char *expected = test_events_repeat("+1r", " +5 -5", 500, " -1r .");

    (void)state;
    test_events_expect(events, expected);
    free(events);
    free(expected);
}

static void options_name_outer_frames(void **state)
{
    static const char *const globs[] = {"*_8", "function_[9]"};
    struct mr_reconstruct_config config = {.depth_max = 100,
                                           .learns_nothing = true,
                                           .outer = {.outer_globs = globs,
                                                     .outer_glob_count = 2,
                                                     .resolve = test_lane_function_name}};

    (void)state;
    test_events_expect_with(&config, 0, "+8 +9 +1 +8 -8 -1 -9 -8",
                            "+8o +9o +1r +8 -8 -1r -9o -8o .");
}

static void options_force_roots_inside_other_trees(void **state)
{
    static const char *const globs[] = {"function_3"};
    struct mr_reconstruct_config config = {.depth_max = 100,
                                           .learns_nothing = true,
                                           .outer = {.root_globs = globs,
                                                     .root_glob_count = 1,
                                                     .resolve = test_lane_function_name}};

    (void)state;
    test_events_expect_with(&config, 0, "+1 +3 +2 +3 -3 -2 -3 +3 -3 -1 +3 -3",
                            "+1r +3r +2 +3 -3 -2 -3r +3r -3r -1r +3r -3r .");
}

static void named_sites_may_be_roots_and_outer_frames_by_attribute(void **state)
{
    struct test_options options = {.stages = 2};
    struct test_lane lane;
    struct mr_dict_item item = {.kind = MR_DICT_NAMED_SITE,
                                .named_site = {.site = MR_SITE_FIRST_NAMED + 1,
                                               .name = "loop",
                                               .file = "",
                                               .flags = MR_NAMED_SITE_OUTER}};
    uint64_t loop = MR_SITE_FIRST_NAMED + 1, request = MR_SITE_FIRST_NAMED + 2;

    (void)state;
    test_lane_init(&lane, &options);
    test_lane_item(&lane, &item);
    item.named_site.site = (uint32_t)request;
    item.named_site.name = "request";
    item.named_site.flags = MR_NAMED_SITE_ROOT;
    test_lane_item(&lane, &item);
    test_lane_word(&lane, 1, mr_word_event((uint32_t)loop, 0, 1));
    test_lane_enter(&lane, 1, 5, 2);
    test_lane_word(&lane, 1, mr_word_event((uint32_t)request, 0, 3));
    test_lane_word(&lane, 1, mr_word_event((uint32_t)request, MR_WORD_EXIT, 4));
    test_lane_exit(&lane, 1, 5, 5);
    lane.streams[1].events = 5; /* words count as no events of their own here */
    test_events_end(&lane, "+0o +5r +0r -0r -5r -0oi .");
}

static void calls_past_the_depth_limit_are_lost_and_the_tree_goes_on(void **state)
{
    struct mr_reconstruct_config config = {.depth_max = 2, .learns_nothing = true};

    (void)state;
    test_events_expect_with(&config, 0, "+1 +2 +3 +4 -4 -3 -2 -1 +1 -1",
                            "+1r +2 B !4:1 !4:1 !4:1 !4:1 -2 -1r +1r -1r .");
}

#define DEEP 3000
#define DEEP_EVENTS 40000
#define DEEP_FUNCTIONS 2000

struct deep {
    uint32_t stack[DEEP];
    uint32_t depth;
    char *expected;
    size_t size;
};

static void deep_enter(struct deep *deep, uint32_t function)
{
    deep->size += (size_t)sprintf(deep->expected + deep->size, "+%u%s ", function,
                                  deep->depth ? "" : "r");
    deep->stack[deep->depth++] = function;
}

/* What an exit does by the words of reconstruct.h. */
static void deep_exit(struct deep *deep, uint32_t function)
{
    uint32_t at = deep->depth;

    while (at > 0 && deep->stack[at - 1] != function)
        at--;
    if (at == 0)
        deep->size += (size_t)sprintf(deep->expected + deep->size, "#1 ");
    for (uint32_t depth = deep->depth; at > 0 && depth >= at; depth--) {
        deep->depth--;
        deep->size += (size_t)sprintf(deep->expected + deep->size, "-%u%s%s ",
                                      deep->stack[depth - 1], depth > 1 ? "" : "r",
                                      depth > at ? "w" : "");
    }
}

/* Mostly deeper, in and out at block limits, now and then far back, and many exits of what is not open. */
static void deep_step(struct deep *deep, struct mr_test_random *random,
                      struct test_lane *lane, uint64_t ns)
{
    uint32_t function = 1 + (uint32_t)mr_test_random_below(random, DEEP_FUNCTIONS);
    uint64_t dice = mr_test_random_below(random, 100);

    if (deep->depth == 0 || (dice < 60 && deep->depth < DEEP)) {
        deep_enter(deep, function);
        test_lane_enter(lane, 1, function, ns);
        return;
    }
    if (dice < 85) /* the innermost, or sometimes any */
        function = deep->stack[mr_test_random_below(random, 1000) ? deep->depth - 1
                                                                  : deep->depth / 2];
    else /* most likely open only once the stack is full of them */
        function += DEEP_FUNCTIONS * (uint32_t)(mr_test_random_below(random, 100) > 0);
    deep_exit(deep, function);
    test_lane_exit(lane, 1, function, ns);
}

static void exits_out_of_order_on_a_deep_stack_find_what_a_search_finds(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_reconstruct_config config = {.depth_max = 65536, .learns_nothing = true};
    struct test_options options = {.stages = 2, .reconstruct = &config};
    struct deep *deep = calloc(1, sizeof(*deep));
    struct test_lane lane;
    char *actual;

    (void)state;
    assert_non_null(deep);
    deep->expected = calloc(1, 1 << 20);
    assert_non_null(deep->expected);
    test_lane_init(&lane, &options);
    for (uint32_t i = 0; i < DEEP_EVENTS; i++)
        deep_step(deep, &random, &lane, i);
    while (deep->depth > 0) {
        test_lane_exit(&lane, 1, deep->stack[deep->depth - 1], DEEP_EVENTS);
        deep_exit(deep, deep->stack[deep->depth - 1]);
    }
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    actual = test_events_text(&lane);
    strcat(deep->expected, ".");
    assert_string_equal(actual, deep->expected);
    free(actual);
    free(deep->expected);
    free(deep);
    test_lane_fini(&lane);
}

static void recursion_of_10_million_is_bounded(void **state)
{
    struct test_options options = {.stages = 2};
    struct test_lane lane;
    uint64_t ns = 0, opened = 0, closed = 0, lost = 0;
    const uint32_t depth = 10000000;

    (void)state;
    test_lane_init(&lane, &options);
    for (uint32_t i = 0; i < 2 * depth; i++) {
        if (i < depth)
            test_lane_enter(&lane, 1, 1, ns++);
        else
            test_lane_exit(&lane, 1, 1, ns++);
        if (lane.streams[1].count == 1000000)
            test_lane_send(&lane, 1, 0);
    }
    test_lane_end(&lane);
    for (const struct mr_batch *batch = lane.out->first; batch; batch = batch->next)
        for (uint32_t i = 0; batch->kind == MR_BATCH_EVENTS && i < batch->event_count;
             i++) {
            opened += batch->events[i].kind == MR_EVENT_OPEN;
            closed += batch->events[i].kind == MR_EVENT_CLOSE;
            if (batch->events[i].kind == MR_EVENT_COUNTED) {
                assert_int_equal(batch->events[i].flags, MR_LOSS_BUDGET);
                lost += batch->events[i].ns;
            }
        }
    assert_int_equal(opened, MR_RECONSTRUCT_DEPTH_DEFAULT);
    assert_int_equal(closed, opened);
    assert_int_equal(lost + opened + closed, 2 * (uint64_t)depth);
    test_lane_fini(&lane);
}

static void a_loss_with_absurd_pushes_is_bounded(void **state)
{
    struct test_options options = {.stages = 2};
    struct test_lane lane;
    char *text;

    (void)state;
    test_lane_init(&lane, &options);
    test_lane_loss(&lane, 1, 1, 5, MR_LOSS_RING_FULL, INT32_MAX, INT32_MAX);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    text = test_events_text(&lane);
    assert_int_equal(strncmp(text, "!1:5 +0ru +0u", 13), 0);
    assert_true(lane.out->events <= 8); /* 4096 calls that open and close */
    free(text);
    test_lane_fini(&lane);
}

static void a_batch_that_only_gets_longer_comes_out_in_several(void **state)
{
    char *events = test_events_repeat("", "+1 +2 +3 -1 ", 3000, "");
    char *expected = test_events_repeat("", "+1r +2 +3 -3w -2w -1r ", 3000, ".");

    (void)state;
    test_events_expect(events, expected);
    free(events);
    free(expected);
}

static void a_call_that_is_open_where_its_site_is_pruned_gets_its_exit(void **state)
{
    (void)state;
    test_events_expect("+1 +2 p2 -2 +3 P2 -3 -1 +1 +3 -3 -1",
                       "+1r +2 P -2 +3 -3 -1r +1r +3 -3 -1r .");
}

static void a_prune_between_call_trees_is_none_of_theirs(void **state)
{
    (void)state;
    test_events_expect("+1 +2 -2 -1 p2 P2 +1 -1", "+1r +2 -2 -1r +1r -1r .");
    test_events_expect("+1 -1 q2 +1 +2 -2 -1", "+1r -1r +1r +2 -2 -1r .");
    test_events_expect("+1 q2 +2 -2 -1", "+1r P +2 -2 -1r .");
}

static void an_innermost_call_whose_exit_will_not_come_ends_where_that_is_sure(
    void **state)
{
    (void)state;
    test_events_expect("+1 +2 p2 P2 +3 -3 -1", "+1r +2 P -2i +3 -3 -1r .");
    test_events_expect("+1 +2 +2 p2 P2 -1", "+1r +2 +2 P -2i -2i -1r .");
    test_events_expect("+2 p2 P2 +1 -1", "+2r P -2ri +1r -1r .");
}

/* Nobody knows when f2 ended: what comes might be below it or not. */
static void a_pruned_call_below_others_makes_the_nesting_unsure(void **state)
{
    (void)state;
    test_events_expect("+1 +2 +3 p2 P2 -3 +4 -4 -1",
                       "+1r +2 +3 P B -3i -2i -1ri #1 +4r B -4r #1 .");
}

static void an_outer_frame_stays_where_it_is_pruned(void **state)
{
    (void)state;
    test_events_expect_with(NULL, 1, "+1 +2 -2 p1 P1 +2 -2 -1",
                            "+1o +2r -2r +2r -2r -1o .");
}

static void random_prunes_leave_calls_well_nested(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 200; round++) {
        static const uint64_t kinds[] = {0, MR_PRUNE_SETTLED,
                                         MR_PRUNE_SETTLED | MR_PRUNE_ON_AGAIN};
        struct test_options options = {.stages = 2};
        struct test_lane lane;
        uint64_t depth = 0;

        test_lane_init(&lane, &options);
        for (uint64_t ns = 1; ns < 200; ns++) {
            uint32_t function = 1 + (uint32_t)mr_test_random_below(&random, 4);
            uint64_t what = mr_test_random_below(&random, 8);

            if (what < 4)
                test_lane_enter(&lane, 1, function, ns);
            else if (what < 7)
                test_lane_exit(&lane, 1, function, ns);
            else
                test_lane_prune(&lane, 1, function, ns,
                                kinds[mr_test_random_below(&random, 3)]);
        }
        test_lane_send(&lane, 1, MR_CHUNK_LAST);
        test_lane_end(&lane);
        assert_false(mr_source_is_broken(lane.source));
        for (const struct mr_batch *batch = lane.out->first; batch; batch = batch->next)
            for (uint32_t i = 0; batch->kind == MR_BATCH_EVENTS && i < batch->event_count;
                 i++) {
                depth += batch->events[i].kind == MR_EVENT_OPEN;
                assert_true(depth > 0 || batch->events[i].kind != MR_EVENT_CLOSE);
                depth -= batch->events[i].kind == MR_EVENT_CLOSE;
            }
        assert_true(depth == 0);
        test_lane_fini(&lane);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_calls_open_and_close),
        cmocka_unit_test(the_exit_of_a_call_further_down_unwinds_those_above),
        cmocka_unit_test(recursion_closes_the_innermost_call_of_a_site),
        cmocka_unit_test(an_exit_without_an_enter_is_counted_and_dropped),
        cmocka_unit_test(calls_open_at_the_end_are_incomplete),
        cmocka_unit_test(a_stream_that_ends_at_its_base_breaks_nothing),
        cmocka_unit_test(a_loss_closes_and_opens_as_it_was_told),
        cmocka_unit_test(after_a_loss_the_next_root_is_whole_again),
        cmocka_unit_test(a_loss_between_trees_breaks_none),
        cmocka_unit_test(a_loss_inside_one_call_breaks_its_tree),
        cmocka_unit_test(a_root_entered_in_a_loss_is_unknown_until_it_exits),
        cmocka_unit_test(an_exit_prefers_the_nearer_call_of_its_site_to_an_unknown_one),
        cmocka_unit_test(known_calls_above_an_unknown_one_are_unwound_when_it_exits),
        cmocka_unit_test(an_unknown_call_that_is_unwound_is_incomplete),
        cmocka_unit_test(more_pops_than_calls_empty_the_stack),
        cmocka_unit_test(status_is_of_the_innermost_call_and_the_last_one_counts),
        cmocka_unit_test(an_unwind_closes_down_to_the_depth_that_remains),
        cmocka_unit_test(a_call_that_is_open_where_its_site_is_pruned_gets_its_exit),
        cmocka_unit_test(a_prune_between_call_trees_is_none_of_theirs),
        cmocka_unit_test(
            an_innermost_call_whose_exit_will_not_come_ends_where_that_is_sure),
        cmocka_unit_test(a_pruned_call_below_others_makes_the_nesting_unsure),
        cmocka_unit_test(an_outer_frame_stays_where_it_is_pruned),
        cmocka_unit_test(random_prunes_leave_calls_well_nested),
        cmocka_unit_test(
            what_a_landing_has_left_is_unwound_and_calls_go_on_where_it_landed),
        cmocka_unit_test(frames_of_functions_that_are_not_open_are_passed_over),
        cmocka_unit_test(of_a_recursion_as_many_frames_are_left_as_were_told),
        cmocka_unit_test(a_landing_of_more_than_one_record_goes_on),
        cmocka_unit_test(a_frame_that_was_landed_in_is_left_by_the_next),
        cmocka_unit_test(unless_its_own_exit_came_in_between),
        cmocka_unit_test(a_frame_where_one_was_that_was_landed_in_is_left_by_its_name),
        cmocka_unit_test(a_frame_with_the_tag_of_one_further_out_is_the_innermost),
        cmocka_unit_test(landings_nest),
        cmocka_unit_test(many_landings_are_not_all_remembered),
        cmocka_unit_test(all_above_the_call_landed_in_is_left_if_it_was_told_so),
        cmocka_unit_test(a_caller_stands_for_a_function_that_is_no_site),
        cmocka_unit_test(a_landing_that_names_nothing_known_changes_nothing),
        cmocka_unit_test(a_landing_may_leave_outer_frames),
        cmocka_unit_test(a_landing_follows_calls_past_depth_max),
        cmocka_unit_test(the_bottom_call_of_the_start_site_is_an_outer_frame),
        cmocka_unit_test(an_outer_frame_that_a_loss_ends_uncovers_the_base),
        cmocka_unit_test(after_a_gap_trees_are_broken_until_an_outer_frame_exits),
        cmocka_unit_test(after_a_gap_many_trees_over_10_s_make_the_base_sure),
        cmocka_unit_test(after_a_gap_a_stray_exit_begins_the_wait_anew),
        cmocka_unit_test(a_long_root_with_many_children_is_learned_as_an_outer_frame),
        cmocka_unit_test(a_long_root_with_few_children_stays_a_root),
        cmocka_unit_test(a_quick_root_with_many_children_stays_a_root),
        cmocka_unit_test(options_name_outer_frames),
        cmocka_unit_test(options_force_roots_inside_other_trees),
        cmocka_unit_test(named_sites_may_be_roots_and_outer_frames_by_attribute),
        cmocka_unit_test(calls_past_the_depth_limit_are_lost_and_the_tree_goes_on),
        cmocka_unit_test(exits_out_of_order_on_a_deep_stack_find_what_a_search_finds),
        cmocka_unit_test(recursion_of_10_million_is_bounded),
        cmocka_unit_test(a_loss_with_absurd_pushes_is_bounded),
        cmocka_unit_test(a_batch_that_only_gets_longer_comes_out_in_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
