/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that do not return, below functions that do nothing else: docs/why/2026-11-23-wrappers.md. */
#include "../unit_test.h"

#include <string.h>

#include "pipeline/resume.h"
#include "support_events.h"

static void a_loop_below_wrappers_is_learned_with_them(void **state)
{
    (void)state;
    test_events_expect_repeated("+1 +2 +3 +4 t2 ", "+5 -5 ", 63, "t11 +5 -5 +6 +7 -7 -6",
                                "+1r +2 +3 +4", " +5 -5",
                                " +5 -5 L +6r +7 -7 -6r -4oi -3oi -2oi -1oi .");
}

static void what_its_callers_called_before_it_does_not_matter(void **state)
{
    (void)state;
    test_events_expect_repeated("+1 +8 -8 +2 +8 -8 +3 +9 -9 t2 ", "+5 -5 ", 63,
                                "t11 +5 -5 +6 -6 -3 -2 -1", "+1r +8 -8 +2 +8 -8 +3 +9 -9",
                                " +5 -5", " +5 -5 L +6r -6r -3o -2o -1o .");
}

/* This call of each: the next ones are what they were. */
static void a_loop_that_returns_is_learned_for_this_call_only(void **state)
{
    (void)state;
    test_events_expect_repeated(
        "+1 +2 +3 t2 ", "+5 -5 ", 63, "t11 +5 -5 -3 +3 +5 -5 -3 -2 -1 +1 +2 -2 -1",
        "+1r +2 +3", " +5 -5", " +5 -5 L -3o +3r +5 -5 -3r -2o -1o +1r +2 -2 -1r .");
}

static void a_call_that_itself_ends_is_no_loop(void **state)
{
    (void)state;
    test_events_expect_repeated("+1 +2 t2 ", "+3 +4 -4 -3 ", 63, "t11 +3 +4 -4 -3 +5 -5",
                                "+1r +2", " +3 +4 -4 -3",
                                " +3 +4 -4 -3 L +5r -5r -2oi -1oi .");
}

static void a_loop_that_ends_in_time_hands_on_to_its_caller(void **state)
{
    (void)state;
    test_events_expect_repeated("+1 +2 +3 t2 ", "+5 -5 ", 70, "t3 -3 t8 +5 -5 -2 -1",
                                "+1r +2 +3", " +5 -5", " -3 +5 -5 -2 -1r .");
}

/* Requests that take long are no loops of a stream that has gone on for longer. */
static void a_long_call_below_the_root_is_no_loop_after_a_longer_time(void **state)
{
    (void)state;
    test_events_expect_repeated("+9 -9 t30 +1 +2 +3 t2 ", "+5 -5 ", 70,
                                "t11 +5 -5 -3 -2 -1", "+9r -9r +1r +2 +3", " +5 -5",
                                " +5 -5 -3 -2 -1r .");
}

static void a_loop_outlives_what_was_before_it(void **state)
{
    (void)state;
    test_events_expect_repeated("+9 -9 t30 +1 +2 +3 t2 ", "+5 -5 ", 70, "t33 +5 -5 +5 -5",
                                "+9r -9r +1r +2 +3", " +5 -5",
                                " +5 -5 L +5r -5r -3oi -2oi -1oi .");
}

static void deep_recursion_is_no_loop(void **state)
{
    char deep[20 * 3 + 4] = "", opened[20 * 3 + 2] = "+1r";

    (void)state;
    for (int i = 0; i < 20; i++)
        strcat(deep, "+1 ");
    for (int i = 1; i < 20; i++)
        strcat(opened, " +1");
    strcat(deep, "t2 ");
    test_events_expect_repeated(
        deep, "+5 -5 ", 70, "t33 +5 -5 u1 -1", opened, " +5 -5",
        " +5 -5 #1 -1w -1w -1w -1w -1w -1w -1w -1w -1w -1w -1w -1w -1w -1w -1w"
        " -1w -1w -1w -1w -1r .");
}

static void a_learned_loop_that_is_unwound_leaves_its_callers(void **state)
{
    (void)state;
    test_events_expect_repeated("+1 +2 +3 t2 ", "+5 -5 ", 63, "t11 +5 -5 +6 u1 +7 -7 -1",
                                "+1r +2 +3", " +5 -5",
                                " +5 -5 L +6r #1 -6rw -3ow -2ow +7r -7r -1o .");
}

static void a_wrapper_that_a_loss_took_is_not_learned(void **state)
{
    (void)state;
    test_events_expect_repeated("+1 l4,0,1 +3 t2 ", "+5 -5 ", 70, "t11 +5 -5 -3",
                                "+1r !1:4 B +0u +3", " +5 -5", " +5 -5 -3 B -0iu -1ri .");
}

static void a_loss_of_unknown_nesting_leaves_what_was_learned(void **state)
{
    (void)state;
    test_events_expect_repeated(
        "+1 +2 +3 t2 ", "+5 -5 ", 63, "t11 +5 -5 +6 g5 +7 -7 -3 +8 -8", "+1r +2 +3",
        " +5 -5", " +5 -5 L +6r !7:5 B -6ri +7r B -7r -3o +8r -8r -2oi -1oi .");
}

/* Stream 1 goes on where f1, f2 and f3 were open, with these flags, since so many seconds. */
static void resume_stream(struct test_lane *lane, struct mr_resume_stream *from,
                          const uint16_t *flags, uint64_t seconds)
{
    static struct mr_resume_call calls[3];
    const struct mr_site_module *module = mr_sites_module(
        lane->sites, "/lib/test.so", mr_span_of("0123456789", 10)); /* support_lane.c */
    struct mr_stream *stream;

    *from = (struct mr_resume_stream){.id = 1, .depth = 3, .calls = calls};
    from->last_ns = (TEST_START_S + seconds) * MR_SECOND_NS;
    for (uint32_t i = 0; i < 3; i++) {
        calls[i] = (struct mr_resume_call){
            .enter_ns = TEST_START_S * MR_SECOND_NS,
            .site = mr_sites_add_function(lane->sites, module, 16 * (i + 1)),
            .flags = flags[i]};
        from->outer_depth += (flags[i] & MR_EVENT_OUTER) != 0;
    }
    assert_int_equal(mr_source_stream(lane->source, 1, TEST_STREAMS, &stream), MR_OK);
    stream->resume = from;
}

static void expect_resumed(const struct mr_reconstruct_config *config,
                           const uint16_t *flags, uint64_t seconds, const char *events,
                           const char *expected)
{
    struct test_options options = {.stages = 2, .reconstruct = config};
    struct mr_resume_stream from;
    struct test_lane lane;

    test_lane_init(&lane, &options);
    resume_stream(&lane, &from, flags, seconds);
    lane.streams[1].time = lane.streams[1].chunk_time = (seconds + 1) * MR_SECOND_NS;
    test_events_write(&lane, events);
    test_events_end(&lane, expected);
}

static void what_was_learned_is_so_after_a_kill(void **state)
{
    const uint16_t flags[] = {MR_EVENT_OUTER, MR_EVENT_OUTER, MR_EVENT_OUTER};

    (void)state;
    expect_resumed(NULL, flags, 1, "+5 +6 -6 -5 -3 +7 -7 -2 -1 +1 -1",
                   "+5r +6 -6 -5r -3o +7r -7r -2o -1o +1r -1r .");
}

static void what_was_not_yet_is_learned_after_a_kill(void **state)
{
    const uint16_t flags[] = {MR_EVENT_ROOT, 0, 0};
    char *events = test_events_repeat("t2 ", "+5 -5 ", 63, "t11 +5 -5 +6 -6 -3 -2 -1");
    char *expected =
        test_events_repeat("+5 -5", " +5 -5", 63, " L +6r -6r -3o -2o -1o .");

    (void)state;
    expect_resumed(NULL, flags, 1, events, expected);
    free(events);
    free(expected);
}

/* What had gone by before the kill is not waited for once more. */
static void what_was_nearly_learned_is_soon_after_a_kill(void **state)
{
    const uint16_t flags[] = {MR_EVENT_ROOT, 0, 0};
    char *events = test_events_repeat("", "+5 -5 ", 63, "t2 +5 -5 +6 -6 -3 -2 -1");
    char *expected =
        test_events_repeat("+5 -5", " +5 -5", 63, " L +6r -6r -3o -2o -1o .");

    (void)state;
    expect_resumed(NULL, flags, 8, events, expected);
    free(events);
    free(expected);
}

/* f3 has ended, and so is none; f2, which had called it, is the loop. */
static void what_ends_after_a_kill_hands_on_to_its_caller(void **state)
{
    const uint16_t flags[] = {MR_EVENT_ROOT, 0, 0};
    char *events = test_events_repeat("-3 ", "+5 -5 ", 63, "t2 +5 -5 +6 -6 -2 -1");
    char *expected =
        test_events_repeat("-3 +5 -5", " +5 -5", 62, " L +5r -5r +6r -6r -2o -1o .");

    (void)state;
    expect_resumed(NULL, flags, 10, events, expected);
    free(events);
    free(expected);
}

/* What of its calls were open at another worker, this one did not know before the kill either. */
static void a_stream_that_began_elsewhere_has_no_sure_base_after_a_kill(void **state)
{
    const uint16_t flags[] = {MR_EVENT_ROOT, 0, 0};
    const struct test_options options = {.stages = 2};
    struct mr_resume_stream from;
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options);
    resume_stream(&lane, &from, flags, 1);
    from.base_event = 5;
    lane.streams[1].time = lane.streams[1].chunk_time = 2 * MR_SECOND_NS;
    test_events_write(&lane, "-3 -2 -1 +5 -5 -7");
    test_events_end(&lane, "-3 -2 -1r +5r B -5r #1 .");
}

/* A root that was forced stays it, at the bottom, too: what is inside of it is no root, and its loop is not learned. */
static void a_forced_root_is_one_after_a_kill(void **state)
{
    static const char *const globs[] = {"function_1"};
    const struct mr_reconstruct_config config = {
        .depth_max = 100,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT,
        .outer = {.root_globs = globs,
                  .root_glob_count = 1,
                  .resolve = test_lane_function_name}};
    const uint16_t flags[] = {MR_EVENT_ROOT, 0, 0};
    char *events =
        test_events_repeat("+1 -1 t2 ", "+5 -5 ", 63, "t11 +5 -5 +6 -6 -3 -2 -1");
    char *expected =
        test_events_repeat("+1 -1 +5 -5", " +5 -5", 63, " +6 -6 -3 -2 -1r .");

    (void)state;
    expect_resumed(&config, flags, 1, events, expected);
    free(events);
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_below_wrappers_is_learned_with_them),
        cmocka_unit_test(what_its_callers_called_before_it_does_not_matter),
        cmocka_unit_test(a_loop_that_returns_is_learned_for_this_call_only),
        cmocka_unit_test(a_call_that_itself_ends_is_no_loop),
        cmocka_unit_test(a_loop_that_ends_in_time_hands_on_to_its_caller),
        cmocka_unit_test(a_long_call_below_the_root_is_no_loop_after_a_longer_time),
        cmocka_unit_test(a_loop_outlives_what_was_before_it),
        cmocka_unit_test(deep_recursion_is_no_loop),
        cmocka_unit_test(a_learned_loop_that_is_unwound_leaves_its_callers),
        cmocka_unit_test(a_wrapper_that_a_loss_took_is_not_learned),
        cmocka_unit_test(a_loss_of_unknown_nesting_leaves_what_was_learned),
        cmocka_unit_test(what_was_learned_is_so_after_a_kill),
        cmocka_unit_test(what_was_not_yet_is_learned_after_a_kill),
        cmocka_unit_test(what_was_nearly_learned_is_soon_after_a_kill),
        cmocka_unit_test(what_ends_after_a_kill_hands_on_to_its_caller),
        cmocka_unit_test(a_stream_that_began_elsewhere_has_no_sure_base_after_a_kill),
        cmocka_unit_test(a_forced_root_is_one_after_a_kill),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
