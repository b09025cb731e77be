/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker that was killed goes on with (pipeline/resume.h), from the marks of its lane to reconstruct: whether the base of a stream is
 * sure, and which frames an unwinder has landed in. Its calls are in test_reconstruct_outer.c, its edges in test_links.c.
 */
#include "pipeline/resume.h"

#include "../unit_test.h"
#include "support_events.h"
#include "support_model.h"

static void put_in_place(struct test_lane *lane, const struct test_lane *before,
                         struct mr_resume_sites *sites)
{
    lane->source->resume = mr_resume_new(sites);
    assert_non_null(lane->source->resume);
    test_lane_take_marks(before, lane->source->resume, sites);
    lane->streams[1].next_event = before->streams[1].next_event;
    lane->streams[1].time = lane->streams[1].chunk_time = before->streams[1].time;
}

static uint32_t depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT; /* of all lanes */

/* A lane that has taken `events`, in the place of the one that took those before, if there is one. */
static void begin(struct test_lane *lane, const struct test_lane *before,
                  struct mr_resume_sites *sites, const char *events)
{
    test_lane_init(lane, NULL);
    lane->decode.has_marks = lane->reduce.has_marks = true;
    lane->reconstruct.depth_max = depth_max;
    if (before)
        put_in_place(lane, before, sites);
    else
        test_lane_announce(lane, 1, 9);
    test_events_write(lane, events);
    test_lane_send(lane, 1, before ? 0 : MR_CHUNK_FIRST);
    test_lane_tick(lane, MR_SECOND_NS);
}

/*
 * After `events` and a kill for each further one of them, what reconstruct makes of `rest`: of a stream with open calls first #0, a
 * count of nothing, by which it is met before it says anything itself.
 */
static void expect_after(const char *const *events, uint32_t count, const char *rest,
                         const char *expected)
{
    const struct test_options options = {.stages = 2};
    struct test_lane lanes[4], after;
    struct mr_resume_sites sites;

    assert_true(count > 0 && count <= 4);
    mr_resume_sites_init(&sites);
    for (uint32_t i = 0; i < count; i++)
        begin(&lanes[i], i ? &lanes[i - 1] : NULL, &sites, events[i]);
    test_lane_init(&after, &options);
    after.reconstruct.depth_max = depth_max;
    put_in_place(&after, &lanes[count - 1], &sites);
    for (uint32_t i = 0; i < count; i++) {
        test_lane_end(&lanes[i]);
        test_lane_fini(&lanes[i]);
    }
    test_events_write(&after, rest);
    test_events_end(&after, expected);
    mr_resume_sites_fini(&sites);
}

static void expect(const char *events, const char *rest, const char *expected)
{
    expect_after(&events, 1, rest, expected);
}

static void a_base_that_was_sure_is_so_after_a_kill(void **state)
{
    (void)state;
    expect("+9 +1", "+2 -2 -1 +3 -3 -9", "#0 +2 -2 -1r +3r -3r -9o .");
    expect("+9 +1 -1", "+3 -3 -9", "#0 +3r -3r -9o .");
}

static void a_cut_inside_a_call_is_known_after_a_kill(void **state)
{
    (void)state;
    expect("+9 +1 c1", "+3 -3 -1 -9 +4 -4", "#0 +3r B -3r #1 -9o +4r -4r .");
    expect("+9 +1 c1 +3 -3", "+3 -3 -1 -9 +4 -4", "#0 +3r B -3r #1 -9o +4r -4r .");
}

/* No call ends by it, and no event is lost. */
static void a_cut_between_calls_is_known_after_a_kill(void **state)
{
    (void)state;
    expect("+9 +1 -1 c1", "+3 -3 -9", "#0 +3r B -3r -9o .");
    expect("+9 +1 -1 | c1", "+3 -3 -9", "#0 +3r B -3r -9o .");
}

static void a_loss_that_hides_the_nesting_is_known_after_a_kill(void **state)
{
    (void)state;
    expect("+9 +1 g2", "+3 -3 -9", "#0 +3r B -3r -9o .");
}

static void it_is_known_after_each_further_kill(void **state)
{
    const char *const events[] = {"+9 +1 c1", "+3 -3", "+4 -4"};

    (void)state;
    expect_after(events, 2, "+5 -5 -9 +6 -6", "#0 +5r B -5r -9o +6r -6r .");
    expect_after(events, 3, "+5 -5 -9 +6 -6", "#0 +5r B -5r -9o +6r -6r .");
}

/* The exit of the outer frame tells how deep it is. */
static void a_base_that_became_sure_is_so_after_a_kill(void **state)
{
    const char *const events[] = {"+9 +1 c1 +3 -3", "+4 -4 -9"};

    (void)state;
    expect("+9 +1 c1 +3 -3 -9", "+4 -4", "+4r -4r .");
    expect_after(events, 2, "+5 -5", "+5r -5r .");
}

/*
 * The inner f2 is landed in, has told its exit, and is left then, as gcc's hooks do it; the outer one must not be taken for it. Where it is
 * the root, what it calls then would be call trees of their own.
 */
static void a_frame_that_was_landed_in_is_left_once_after_a_kill(void **state)
{
    const char *const events[] = {"+9 +1 +2 +2 L/2:5 +3", "-3 +4", "-4"};

    (void)state;
    expect("+9 +1 +2 +2 L/2:5 +3", "-3 -2 L2:5/2:6 +3 -3 -2 L2:6/1:7 +4 -4 -1 -9",
           "#0 -3 -2 +3 -3 -2 +4 -4 -1r -9o .");
    expect("+9 +2 +2 L/2:5", "+3 -3 -2 L2:5/2:6 +3 -3 -2 L2:6/9:7 -9",
           "#0 +3 -3 -2 +3 -3 -2r -9o .");
    expect_after(events, 3, "-2 L2:5/2:6 +3 -3 -2 L2:6/1:7 +4 -4 -1 -9",
                 "#0 -2 +3 -3 -2 +4 -4 -1r -9o .");
}

static void landings_are_each_of_its_own_call_after_a_kill(void **state)
{
    (void)state;
    expect("+1 +2 L/2:5 +3 +2 +4 L4:1/2:9", "L2:9/3:8 +5 -5 -3 L2:5/1:7 -1",
           "#0 -2w +5 -5 -3 -2w -1r .");
    expect("+1 L/1:1 +2 L/2:2 +3 L/3:3 +4 L/4:4 +5 L/5:5 +6 L/6:6 +7 L/7:7 +8 L/8:8 +9",
           "L/9:9 L9:9/8:8 L8:8,7:7,6:6,5:5,4:4,3:3,2:2/1:1 -1",
           "#0 -9w -8w -7w -6w -5w -4w -3w -2w -1r .");
}

/* f3 was landed in, and has ended; another f3 in its place was not. */
static void what_was_landed_in_and_is_over_is_not_after_a_kill(void **state)
{
    (void)state;
    expect("+1 +3 +2 L2:4/3:5 -3 L3:5/1:6 +3 +3", "L3:8,3:5/1:6 +4 -4 -1",
           "#0 -3w -3w +4 -4 -1r .");
    expect("+1 +3 +2 L2:4/3:5 -3 +3 +3", "L3:5/3:7 +4 -4 -3 -1", "#0 -3w +4 -4 -3 -1r .");
    /* by a coarse clock, both began at one time */
    expect("+1 +3 = +2 = L2:4/3:5 = -3 = +3 +3", "L3:5/3:7 +4 -4 -3 -1",
           "#0 -3w +4 -4 -3 -1r .");
}

/* How many calls there were past the limit is not told, so the exits of those would end others of their function, too early. */
static void calls_of_a_full_stack_end_without_a_time_after_a_kill(void **state)
{
    (void)state;
    depth_max = 4;
    expect("+9 +1 +1", "-1 -1 -9", "#0 -1 -1r -9o .");
    expect("+9 +1 +1 +1", "-1 -1 -1 -9", "B -1i -1i -1ri #0 #1 #1 #1 -9o .");
    expect("+9 +1 +1 +1 +1 +1", "-1 -1 -1 -1 -1 -9",
           "B -1i -1i -1ri #0 #1 #1 #1 #1 #1 -9o .");
    depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT;
}

/* As the spool keeps a stream whose calls found no room (mr_resume_shorten()). What was held is lost, and then the ledger adds up. */
static void enters_of_calls_that_were_not_kept_are_lost(void **state)
{
    struct mr_resume_sites sites;
    struct mr_resume_stream *stream;
    struct test_lane before, after;
    struct test_text text = {0};

    (void)state;
    mr_resume_sites_init(&sites);
    begin(&before, NULL, &sites, "+9 +1 +2 +3 -3");
    test_lane_init(&after, NULL);
    put_in_place(&after, &before, &sites);
    stream = &after.source->resume->streams[0];
    assert_int_equal(stream->depth, 3);
    stream->depth = stream->outer_depth = stream->trace_count = 0;
    stream->is_base_unsure = true;
    test_events_write(&after, "-2 -1 -9");
    test_lane_send(&after, 1, MR_CHUNK_LAST);
    test_lane_end(&after);
    test_model(&after, &text);
    assert_string_equal(test_text_find(&text, "ledger 1 = "), "8 3 -3 4:3"); /* budget */
    test_text_fini(&text);
    test_lane_fini(&after);
    test_lane_end(&before);
    test_lane_fini(&before);
    mr_resume_sites_fini(&sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_base_that_was_sure_is_so_after_a_kill),
        cmocka_unit_test(a_cut_inside_a_call_is_known_after_a_kill),
        cmocka_unit_test(a_cut_between_calls_is_known_after_a_kill),
        cmocka_unit_test(a_loss_that_hides_the_nesting_is_known_after_a_kill),
        cmocka_unit_test(it_is_known_after_each_further_kill),
        cmocka_unit_test(a_base_that_became_sure_is_so_after_a_kill),
        cmocka_unit_test(a_frame_that_was_landed_in_is_left_once_after_a_kill),
        cmocka_unit_test(landings_are_each_of_its_own_call_after_a_kill),
        cmocka_unit_test(what_was_landed_in_and_is_over_is_not_after_a_kill),
        cmocka_unit_test(calls_of_a_full_stack_end_without_a_time_after_a_kill),
        cmocka_unit_test(enters_of_calls_that_were_not_kept_are_lost)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
