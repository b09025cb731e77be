/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nesting that reduce checks (pipeline/nesting.h) against nesting that reconstruct checks: the same comes out, also of what is
 * counted in bulk and then meets a limit of reconstruct's.
 */
#include "../unit_test.h"

#include "support_lane.h"
#include "support_model.h"
#include "support_text.h"

#define OUTER_FUNCTION 8u
#define LEARN_NS (UINT64_C(1000000))
#define TRACES 200u /* of which templates are made */

static const char *name_of(void *context, const struct mr_site *site)
{
    (void)context;
    return site->offset == UINT64_C(16) * OUTER_FUNCTION ? "outer" : "other";
}

struct script {
    struct test_lane lane;
    uint64_t ns;
};

static void enter(struct script *script, uint32_t function)
{
    test_lane_enter(&script->lane, 1, function, script->ns += 10);
}

static void leave(struct script *script, uint32_t function)
{
    test_lane_exit(&script->lane, 1, function, script->ns += 10);
}

static void call(struct script *script, uint32_t function)
{
    enter(script, function);
    leave(script, function);
}

/* Plays it, and returns how many calls were counted in bulk. */
static uint64_t run(void (*play)(struct script *), bool is_followed,
                    struct test_text *text)
{
    static const char *const outer[] = {"outer"};
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct mr_reconstruct_config reconstruct = {
        .outer = {.outer_globs = outer, .outer_glob_count = 1, .resolve = name_of},
        .level = 1,
        .depth_max = 6,
        .learn_ns = LEARN_NS,
        .learn_children = 1,
        .is_followed = is_followed};
    struct test_options options = {.reduce = &reduce, .reconstruct = &reconstruct};
    struct script script = {.ns = 0};
    uint64_t bulk;

    reduce.shape_calls_s = 0; /* how many traces are counted by path, the clock decides */
    test_lane_init(&script.lane, &options);
    test_lane_announce(&script.lane, 1, 0);
    play(&script);
    test_lane_send(&script.lane, 1, MR_CHUNK_LAST);
    test_lane_end(&script.lane);
    assert_false(mr_source_is_broken(script.lane.source));
    bulk = test_lane_counter(&script.lane, "in_bulk");
    test_model(&script.lane, text);
    test_text_drop(text, "open "); /* with an age by the clock of this machine */
    test_lane_fini(&script.lane);
    return bulk;
}

static void check(void (*play)(struct script *))
{
    struct test_text followed = {0}, checked = {0};
    uint64_t bulk = run(play, true, &followed);

    assert_true(bulk > 0);
    assert_true(run(play, false, &checked) > 0);
    test_text_compare(&checked, &followed);
    test_text_fini(&followed);
    test_text_fini(&checked);
}

static void play_short_traces(struct script *script)
{
    for (uint32_t i = 0; i < TRACES; i++) {
        enter(script, 1);
        call(script, 2);
        leave(script, 1);
        if (i % 50 == 49)
            test_lane_send(&script->lane, 1, 0); /* nodes are older than a batch then */
    }
}

/* One of many traces that are alike takes long, and its child ends late: its root is a loop. */
static void play_a_loop(struct script *script)
{
    play_short_traces(script);
    enter(script, 1);
    call(script, 2);
    script->ns += 2 * LEARN_NS;
    leave(script, 1);
    enter(script, 1);
    script->ns += 2 * LEARN_NS;
    call(script, 2);
    leave(script, 1);
    play_short_traces(script);
}

static void a_trace_in_bulk_may_be_a_loop(void **state)
{
    (void)state;
    check(play_a_loop);
}

/* As many calls as a part has at least that has a template. */
static void play_deep(struct script *script)
{
    enter(script, 2);
    enter(script, 3);
    call(script, 4);
    call(script, 6);
    leave(script, 3);
    leave(script, 2);
}

/* So many that the trace is too long for a template: its parts have some. */
static void play_leaves(struct script *script)
{
    for (uint32_t i = 0; i < 150; i++)
        call(script, 5);
}

static void play_deeper(struct script *script, bool has_leaves)
{
    for (uint32_t i = 1; i <= TRACES; i++) {
        if (i % 40 == 0)
            for (uint32_t deep = 0; deep < 3; deep++)
                enter(script, OUTER_FUNCTION);
        enter(script, 1);
        if (has_leaves)
            play_leaves(script);
        play_deep(script);
        leave(script, 1);
        if (i % 40 == 0)
            for (uint32_t deep = 0; deep < 3; deep++)
                leave(script, OUTER_FUNCTION);
        if (i % 20 == 0)
            test_lane_send(&script->lane, 1, 0);
    }
}

static void play_traces_deeper(struct script *script)
{
    play_deeper(script, false);
}

static void play_calls_deeper(struct script *script)
{
    play_deeper(script, true);
}

static void a_trace_in_bulk_may_be_too_deep(void **state)
{
    (void)state;
    check(play_traces_deeper);
}

static void a_call_in_bulk_may_be_too_deep(void **state)
{
    (void)state;
    check(play_calls_deeper);
}

/* What comes next keeps the first batch: it is not touched again. */
static void a_batch_that_does_not_come_back_is_let_go(void **state)
{
    const struct mr_reconstruct_config reconstruct = {
        .depth_max = 6, .learn_ns = LEARN_NS, .learn_children = 1, .is_followed = true};
    struct test_options options = {.stages = 2, .reconstruct = &reconstruct};
    struct script script = {.ns = 0};

    (void)state;
    test_lane_init(&script.lane, &options);
    test_lane_announce(&script.lane, 1, 0);
    play_short_traces(&script);
    test_lane_send(&script.lane, 1, MR_CHUNK_LAST);
    test_lane_end(&script.lane);
    assert_non_null(script.lane.out->first);
    test_lane_fini(&script.lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_in_bulk_may_be_a_loop),
        cmocka_unit_test(a_trace_in_bulk_may_be_too_deep),
        cmocka_unit_test(a_call_in_bulk_may_be_too_deep),
        cmocka_unit_test(a_batch_that_does_not_come_back_is_let_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
