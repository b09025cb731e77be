/* SPDX-License-Identifier: Apache-2.0 */
/* scale/rules.h: each rule; then a day of load over a simulated level, seen through from outside. */
#include "scale/rules.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#include <math.h>
#include <string.h>

#define S MR_SECOND_NS

static struct mr_scale_group group_of(uint32_t min, uint32_t max)
{
    return (struct mr_scale_group){.limits = {.high = 0.75,
                                              .low = 0.30,
                                              .min = min,
                                              .max = max,
                                              .cool_down_ns = 60 * S,
                                              .start_timeout_ns = 30 * S,
                                              .drain_timeout_ns = 120 * S}};
}

static void say(struct mr_scale_group *group, uint32_t number, enum mr_scale_state state,
                double utilisation, uint64_t now_ns)
{
    const struct mr_scale_answer answer = {state, utilisation, 1};

    mr_scale_hear(group, number, &answer, now_ns);
}

static struct mr_scale_action expect(struct mr_scale_group *group, uint64_t now_ns,
                                     enum mr_scale_verb verb, uint32_t number)
{
    struct mr_scale_action action = mr_scale_decide(group, now_ns);

    assert_int_equal(action.verb, verb);
    if (verb != MR_SCALE_NOTHING) {
        assert_int_equal(action.number, number);
        assert_true(strlen(action.reason) > 0);
    }
    return action;
}

static void as_many_as_min_are_started_at_once(void **state)
{
    struct mr_scale_group group = group_of(2, 4);
    struct mr_scale_action action;

    MR_UNUSED(state);
    action = expect(&group, S, MR_SCALE_START, 1);
    mr_scale_done(&group, &action, true, S);
    action = expect(&group, S, MR_SCALE_START, 2);
    assert_int_equal(action.count, 2);
    mr_scale_done(&group, &action, true, S);
    (void)expect(&group, S, MR_SCALE_NOTHING, 0);
}

static void what_runs_already_is_not_started(void **state)
{
    struct mr_scale_group group = group_of(2, 4);

    MR_UNUSED(state);
    say(&group, 1, MR_SCALE_UP, 0.5, S);
    say(&group, 3, MR_SCALE_UP, 0.5, S);
    (void)expect(&group, S, MR_SCALE_NOTHING, 0);
}

static void above_high_one_is_started_and_then_it_cools_down(void **state)
{
    struct mr_scale_group group = group_of(1, 4);
    struct mr_scale_action action;

    MR_UNUSED(state);
    say(&group, 1, MR_SCALE_UP, 0.9, S);
    say(&group, 2, MR_SCALE_UP, 0.62, S);
    action = expect(&group, S, MR_SCALE_START, 3);
    assert_non_null(strstr(action.reason, "76 %"));
    mr_scale_done(&group, &action, true, S);
    say(&group, 3, MR_SCALE_UP, 0.9, 2 * S);
    (void)expect(&group, 60 * S, MR_SCALE_NOTHING, 0);
    (void)expect(&group, 61 * S, MR_SCALE_START, 4);
}

static void the_cap_is_told_and_kept(void **state)
{
    struct mr_scale_group group = group_of(1, 2);

    MR_UNUSED(state);
    say(&group, 1, MR_SCALE_UP, 1, S);
    say(&group, 2, MR_SCALE_UP, 1, S);
    assert_non_null(strstr(expect(&group, S, MR_SCALE_NOTHING, 0).reason, "--max"));
}

static void below_low_the_least_used_is_drained_then_stopped(void **state)
{
    struct mr_scale_group group = group_of(1, 4);
    struct mr_scale_action action;

    MR_UNUSED(state);
    say(&group, 1, MR_SCALE_UP, 0.3, S);
    say(&group, 2, MR_SCALE_UP, 0.1, S);
    say(&group, 3, MR_SCALE_UP, 0.2, S);
    action = expect(&group, S, MR_SCALE_DRAIN, 2);
    assert_int_equal(action.count, 2);
    mr_scale_done(&group, &action, true, S);
    say(&group, 2, MR_SCALE_UP, 0.1, 2 * S); /* it has not heard of it */
    (void)expect(&group, 61 * S, MR_SCALE_NOTHING, 0);
    say(&group, 2, MR_SCALE_EMPTY, 0, 62 * S);
    action = expect(&group, 62 * S, MR_SCALE_STOP, 2);
    mr_scale_done(&group, &action, true, 62 * S);
    say(&group, 2, MR_SCALE_EMPTY, 0, 63 * S); /* nor of this */
    (void)expect(&group, 62 * S, MR_SCALE_DRAIN, 3);
    mr_scale_hear(&group, 2, NULL, 64 * S);
    assert_int_equal(group.workers[1].state, MR_SCALE_ABSENT);
}

static void a_stateful_sets_victim_is_the_last(void **state)
{
    struct mr_scale_group group = group_of(1, 4);

    MR_UNUSED(state);
    group.limits.takes_last = true;
    say(&group, 1, MR_SCALE_UP, 0, S);
    say(&group, 2, MR_SCALE_UP, 0.3, S);
    (void)expect(&group, S, MR_SCALE_DRAIN, 2);
}

static void one_is_not_drained_if_the_rest_would_be_too_busy(void **state)
{
    struct mr_scale_group group = group_of(1, 4);

    MR_UNUSED(state);
    group.limits.low = 0.5;
    group.limits.high = 0.6;
    say(&group, 1, MR_SCALE_UP, 0.4, S);
    say(&group, 2, MR_SCALE_UP, 0.4, S);
    (void)expect(&group, S, MR_SCALE_NOTHING, 0);
    group.limits.high = 0.9;
    (void)expect(&group, S, MR_SCALE_DRAIN, 1);
}

static void who_does_not_drain_in_time_is_stopped_as_it_is(void **state)
{
    struct mr_scale_group group = group_of(1, 4);
    struct mr_scale_action action;

    MR_UNUSED(state);
    say(&group, 1, MR_SCALE_UP, 0, S);
    say(&group, 2, MR_SCALE_UP, 0.1, S);
    action = expect(&group, S, MR_SCALE_DRAIN, 1);
    mr_scale_done(&group, &action, true, S);
    say(&group, 1, MR_SCALE_DRAINING, 0, 120 * S);
    (void)expect(&group, 120 * S, MR_SCALE_NOTHING, 0);
    action = expect(&group, 121 * S, MR_SCALE_STOP, 1);
    assert_non_null(strstr(action.reason, "--drain-timeout"));
}

static void a_stop_that_fails_holds_nothing_up(void **state)
{
    struct mr_scale_group group = group_of(1, 4);
    struct mr_scale_action action;

    MR_UNUSED(state);
    say(&group, 1, MR_SCALE_UP, 0.9, S);
    say(&group, 2, MR_SCALE_EMPTY, 0, S);
    action = expect(&group, S, MR_SCALE_STOP, 2);
    mr_scale_done(&group, &action, false, S);
    action = expect(&group, S, MR_SCALE_START, 3);
    mr_scale_done(&group, &action, true, S);
    say(&group, 3, MR_SCALE_UP, 0.5, 61 * S);
    (void)expect(&group, 60 * S, MR_SCALE_NOTHING, 0);
    (void)expect(&group, 61 * S, MR_SCALE_STOP, 2);
}

static void a_start_that_fails_leaves_its_number_alone_for_a_while(void **state)
{
    struct mr_scale_group group = group_of(1, 2);
    struct mr_scale_action action;

    MR_UNUSED(state);
    action = expect(&group, S, MR_SCALE_START, 1);
    mr_scale_done(&group, &action, false, S);
    action = expect(&group, S, MR_SCALE_START, 2);
    mr_scale_done(&group, &action, true, S);
    mr_scale_hear(&group, 1, NULL, 30 * S);
    mr_scale_hear(&group, 2, NULL, 31 * S);
    assert_int_equal(group.workers[1].state, MR_SCALE_FAILED);
    assert_non_null(strstr(expect(&group, 30 * S, MR_SCALE_NOTHING, 0).reason, "free"));
    mr_scale_hear(&group, 1, NULL, 31 * S);
    (void)expect(&group, 31 * S, MR_SCALE_START, 1);
}

static void a_worker_is_gone_after_three_looks_and_replaced(void **state)
{
    struct mr_scale_group group = group_of(1, 2);

    MR_UNUSED(state);
    say(&group, 1, MR_SCALE_UP, 0.5, S);
    mr_scale_hear(&group, 1, NULL, 2 * S);
    mr_scale_hear(&group, 1, NULL, 3 * S);
    (void)expect(&group, 3 * S, MR_SCALE_NOTHING, 0);
    mr_scale_hear(&group, 1, NULL, 4 * S);
    (void)expect(&group, 4 * S, MR_SCALE_START, 1);
}

/* A day of 160 instances by a cosine, a look a minute; each takes 3 % of a worker. */
static void a_day_is_followed_without_flapping(void **state)
{
    struct mr_scale_group group = group_of(1, 16);
    bool runs[17] = {[1] = true}, drains[17] = {false};
    uint32_t starts = 0, stops = 0, most = 0, over = 0;

    MR_UNUSED(state);
    for (uint64_t minute = 0; minute < 1440; minute++) {
        uint64_t now_ns = (minute + 1) * 60 * S;
        double load = 0.03 * (80 - 80 * cos(2 * 3.14159265 * (double)minute / 1440));
        uint32_t up = 0, left = 16;

        for (uint32_t n = 1; n <= 16; n++)
            up += runs[n] && !drains[n];
        over += load / up > 1;
        most = up > most ? up : most;
        for (uint32_t n = 1; n <= 16; n++) {
            if (!runs[n])
                mr_scale_hear(&group, n, NULL, now_ns);
            else
                say(&group, n, drains[n] ? MR_SCALE_EMPTY : MR_SCALE_UP,
                    drains[n] ? 0 : fmin(1, load / up), now_ns);
        }
        while (left-- > 0) {
            struct mr_scale_action action = mr_scale_decide(&group, now_ns);

            if (action.verb == MR_SCALE_NOTHING)
                break;
            starts += action.verb == MR_SCALE_START;
            stops += action.verb == MR_SCALE_STOP;
            if (action.verb == MR_SCALE_DRAIN)
                drains[action.number] = true;
            else
                drains[action.number] = false;
            runs[action.number] = action.verb != MR_SCALE_STOP;
            mr_scale_done(&group, &action, true, now_ns);
        }
    }
    assert_int_equal(over, 0);
    assert_in_range(most, 6, 8); /* 4.8 workers' worth, at 75 % */
    assert_in_range(starts, most - 1, most);
    assert_in_range(stops, starts - 1, starts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_as_min_are_started_at_once),
        cmocka_unit_test(what_runs_already_is_not_started),
        cmocka_unit_test(above_high_one_is_started_and_then_it_cools_down),
        cmocka_unit_test(the_cap_is_told_and_kept),
        cmocka_unit_test(below_low_the_least_used_is_drained_then_stopped),
        cmocka_unit_test(a_stateful_sets_victim_is_the_last),
        cmocka_unit_test(one_is_not_drained_if_the_rest_would_be_too_busy),
        cmocka_unit_test(who_does_not_drain_in_time_is_stopped_as_it_is),
        cmocka_unit_test(a_stop_that_fails_holds_nothing_up),
        cmocka_unit_test(a_start_that_fails_leaves_its_number_alone_for_a_while),
        cmocka_unit_test(a_worker_is_gone_after_three_looks_and_replaced),
        cmocka_unit_test(a_day_is_followed_without_flapping),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
