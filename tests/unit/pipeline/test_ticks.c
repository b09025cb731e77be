/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include "base/clock.h"
#include "net/wire.h"
#include "pipeline/ticks.h"

static void times_are_those_of_the_format_for_any_clock(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int i = 0; i < 200000; i++) {
        struct mr_clock_info clock = {
            .mult = 1 + (uint32_t)mr_test_random_below(&random, UINT32_MAX),
            .shift = (uint8_t)mr_test_random_below(&random, 64),
            .ticks =
                mr_test_random_next(&random) >> (2 + mr_test_random_below(&random, 62)),
            .realtime_ns = mr_test_random_next(&random) >> 4};
        uint64_t t =
            mr_test_random_next(&random) >> (2 + mr_test_random_below(&random, 62));
        struct mr_ticks ticks;

        mr_ticks_init(&ticks, &clock);
        if (mr_ticks_fit(&clock, t))
            assert_int_equal(mr_ticks_ns(&ticks, t), mr_clock_info_ns(&clock, t));
    }
}

static void times_before_the_anchor_round_down(void **state)
{
    struct mr_clock_info clock = {
        .mult = 1, .shift = 1, .ticks = 100, .realtime_ns = 5 * MR_SECOND_NS};
    struct mr_ticks ticks;

    (void)state;
    mr_ticks_init(&ticks, &clock);
    assert_int_equal(mr_ticks_ns(&ticks, 100), 5 * MR_SECOND_NS);
    assert_int_equal(mr_ticks_ns(&ticks, 99), 5 * MR_SECOND_NS - 1);
    assert_int_equal(mr_ticks_ns(&ticks, 98), 5 * MR_SECOND_NS - 1);
    assert_int_equal(mr_ticks_ns(&ticks, 0), 5 * MR_SECOND_NS - 50);
}

static void times_outside_of_32_bits_of_seconds_do_not_fit(void **state)
{
    struct mr_clock_info clock = {.mult = 1,
                                  .shift = 0,
                                  .ticks = 2 * MR_SECOND_NS,
                                  .realtime_ns = 2 * MR_SECOND_NS};

    (void)state;
    assert_true(mr_ticks_fit(&clock, MR_SECOND_NS));
    assert_false(mr_ticks_fit(&clock, MR_SECOND_NS - 1));
    assert_false(mr_ticks_fit(&clock, MR_TICKS_LIMIT));
    clock.mult = UINT32_MAX;
    assert_false(mr_ticks_fit(&clock, 4 * MR_SECOND_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_those_of_the_format_for_any_clock),
        cmocka_unit_test(times_before_the_anchor_round_down),
        cmocka_unit_test(times_outside_of_32_bits_of_seconds_do_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
