/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/self_check.h"

#include "base/compiler.h"
#include "tests/unit/base/capture.h"

#include <math.h>

static enum mr_self_check judge(double low, double high)
{
    return mr_self_check_judge(&(struct mr_stats){
        .median = (low + high) / 2, .low = low, .high = high, .count = 10});
}

static void an_interval_within_5_percent_passes(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(judge(95, 105), MR_SELF_CHECK_PASS);
    assert_int_equal(judge(101.2, 101.9), MR_SELF_CHECK_PASS);
}

static void an_interval_outside_fails(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(judge(67, 69), MR_SELF_CHECK_FAIL);
    assert_int_equal(judge(105.1, 300), MR_SELF_CHECK_FAIL);
}

static void an_interval_over_a_border_tells_nothing(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(judge(94.9, 101), MR_SELF_CHECK_NOISY);
    assert_int_equal(judge(99, 105.1), MR_SELF_CHECK_NOISY);
    assert_int_equal(judge(-50, 250), MR_SELF_CHECK_NOISY);
    assert_int_equal(
        mr_self_check_judge(&(struct mr_stats){.median = NAN, .low = NAN, .high = NAN}),
        MR_SELF_CHECK_NOISY);
}

static int tell(void *argument)
{
    return mr_self_check_tell("millrace bench x", "each call", argument);
}

static void the_verdict_is_one_line(void **state)
{
    struct mr_stats stats = {.median = 101.5, .low = 100, .high = 102, .count = 3};
    struct capture result = capture_run(STDERR_FILENO, tell, &stats);

    MR_UNUSED(state);
    assert_int_equal(WEXITSTATUS(result.wait_status), 1);
    assert_string_equal(result.text,
                        "millrace bench x: 100 ns added to each call are measured as "
                        "101.50 ns (100.00 .. 102.00): pass: within 5 %\n");
    stats.low = 20;
    result = capture_run(STDERR_FILENO, tell, &stats);
    assert_int_equal(WEXITSTATUS(result.wait_status), 0);
    assert_non_null(strstr(result.text, ": too noisy"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_within_5_percent_passes),
        cmocka_unit_test(an_interval_outside_fails),
        cmocka_unit_test(an_interval_over_a_border_tells_nothing),
        cmocka_unit_test(the_verdict_is_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
