/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "tests/unit/unit_test.h"

static void monotonic_time_never_goes_back(void **state)
{
    uint64_t last_ns = mr_clock_monotonic_ns();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t now_ns = mr_clock_monotonic_ns();

        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
}

static void real_time_is_in_nanoseconds_since_1970(void **state)
{
    uint64_t before_s = (uint64_t)time(NULL);
    uint64_t now_s = mr_clock_realtime_ns() / MR_SECOND_NS;

    (void)state;
    /* time() may lag by a tick; a day allows for a clock that is being set. */
    assert_in_range(now_s, before_s - 86400, before_s + 86400);
}

static void ticks_advance(void **state)
{
    uint64_t start_ns = mr_clock_monotonic_ns();
    uint64_t start = mr_clock_ticks();

    (void)state;
    while (mr_clock_monotonic_ns() - start_ns < 2 * MR_MILLISECOND_NS)
        ;
    assert_true(mr_clock_ticks() > start);
}

static void the_kind_of_ticks_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(mr_clock_ticks_name(MR_CLOCK_TICKS_TSC), "tsc");
    assert_string_equal(mr_clock_ticks_name(MR_CLOCK_TICKS_CNTVCT), "cntvct");
    assert_string_equal(mr_clock_ticks_name(MR_CLOCK_TICKS_MONOTONIC), "monotonic");
#if defined(__x86_64__)
    assert_int_equal(mr_clock_ticks_kind(), MR_CLOCK_TICKS_TSC);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monotonic_time_never_goes_back),
        cmocka_unit_test(real_time_is_in_nanoseconds_since_1970),
        cmocka_unit_test(ticks_advance),
        cmocka_unit_test(the_kind_of_ticks_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
