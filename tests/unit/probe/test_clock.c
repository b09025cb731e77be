/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit_test.h"

#include "probe/clock.h"

#include <string.h>

static const struct mr_clock_facts sound = {true, "tsc", 4};

static void expect(enum mr_clock_mode wanted, struct mr_clock_facts facts,
                   enum mr_clock_mode mode, const char *warning)
{
    struct mr_probe_clock clock;

    memset(&clock, 'x', sizeof(clock));
    mr_clock_choose(wanted, &facts, &clock);
    assert_int_equal(clock.mode, mode);
    if (warning)
        assert_non_null(strstr(clock.warning, warning));
    else
        assert_string_equal(clock.warning, "");
}

static void a_sound_counter_is_taken(void **state)
{
    struct mr_clock_facts facts = sound;

    (void)state;
    expect(MR_CLOCK_MODE_COUNTER, facts, MR_CLOCK_MODE_COUNTER, NULL);
    expect(MR_CLOCK_MODE_HYBRID, facts, MR_CLOCK_MODE_HYBRID, NULL);
    strcpy(facts.clocksource, "kvm-clock");
    expect(MR_CLOCK_MODE_COUNTER, facts, MR_CLOCK_MODE_COUNTER, NULL);
    facts.clocksource[0] = '\0'; /* no /sys here: the processor's word is all there is */
    expect(MR_CLOCK_MODE_COUNTER, facts, MR_CLOCK_MODE_COUNTER, NULL);
}

static void without_a_sound_counter_the_system_is_asked(void **state)
{
    struct mr_clock_facts facts = sound;

    (void)state;
    strcpy(facts.clocksource, "hpet");
    expect(MR_CLOCK_MODE_COUNTER, facts, MR_CLOCK_MODE_MONOTONIC, "clock source is hpet");
    expect(MR_CLOCK_MODE_HYBRID, facts, MR_CLOCK_MODE_MONOTONIC, "clock source is hpet");
    facts = sound;
    facts.has_counter = false;
    expect(MR_CLOCK_MODE_COUNTER, facts, MR_CLOCK_MODE_MONOTONIC, "invariant");
    expect(MR_CLOCK_MODE_MONOTONIC, facts, MR_CLOCK_MODE_MONOTONIC, NULL); /* asked for */
    expect(MR_CLOCK_MODE_MONOTONIC, sound, MR_CLOCK_MODE_MONOTONIC, NULL);
}

static void one_processor_has_none_for_a_ticker(void **state)
{
    struct mr_clock_facts facts = sound;

    (void)state;
    facts.cpus = 1;
    expect(MR_CLOCK_MODE_HYBRID, facts, MR_CLOCK_MODE_COUNTER, "second processor");
    expect(MR_CLOCK_MODE_COUNTER, facts, MR_CLOCK_MODE_COUNTER, NULL);
}

static void the_machine_tells_something(void **state)
{
    struct mr_clock_facts facts;

    (void)state;
    mr_clock_facts(&facts);
    assert_true(facts.cpus >= 1);
    assert_null(strchr(facts.clocksource, '\n'));
}

static void a_second_is_a_second(void **state)
{
    struct mr_clock_sample first = {.raw_ticks = 1000, .raw_ns = 5};
    struct mr_clock_sample second = {.raw_ticks = 1000 + UINT64_C(25960000),
                                     .raw_ns = 5 + 10000000,
                                     .real_ticks = 77,
                                     .real_ns = 88};
    struct mr_clock_info info;
    uint64_t ns;

    (void)state;
    mr_clock_calibrate(MR_CLOCK_MODE_COUNTER, &first, &second, &info);
    ns = mr_clock_info_ns(&info, 77 + UINT64_C(2596000000)) - 88;
    assert_true(ns > 999999990 && ns < 1000000010);
    assert_true(info.mult >= UINT32_C(1) << 31); /* all the precision there is */
    mr_clock_calibrate(MR_CLOCK_MODE_COUNTER, &first, &first, &info); /* nothing moved */
    assert_true(info.mult > 0);
}

static void a_tick_of_the_system_s_clock_is_a_nanosecond(void **state)
{
    struct mr_clock_sample first, second;
    struct mr_clock_info info;

    (void)state;
    mr_clock_sample(MR_CLOCK_MODE_MONOTONIC, &first);
    mr_clock_sample(MR_CLOCK_MODE_MONOTONIC, &second);
    mr_clock_calibrate(MR_CLOCK_MODE_MONOTONIC, &first, &second, &info);
    assert_int_equal(info.kind, MR_CLOCK_MONOTONIC);
    assert_true(mr_clock_info_ns(&info, second.real_ticks) == second.real_ns);
    assert_true(mr_clock_info_ns(&info, second.real_ticks + 12345) ==
                second.real_ns + 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_counter_is_taken),
        cmocka_unit_test(without_a_sound_counter_the_system_is_asked),
        cmocka_unit_test(one_processor_has_none_for_a_ticker),
        cmocka_unit_test(the_machine_tells_something),
        cmocka_unit_test(a_second_is_a_second),
        cmocka_unit_test(a_tick_of_the_system_s_clock_is_a_nanosecond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
