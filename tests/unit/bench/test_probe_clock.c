/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe_clock.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <string.h>

static const struct mr_probe_clock *clock_of(const char *name)
{
    for (size_t i = 0; i < mr_probe_clock_count; i++)
        if (strcmp(mr_probe_clocks[i].name, name) == 0)
            return &mr_probe_clocks[i];
    fail_msg("no clock %s", name);
    return NULL;
}

static enum mr_status check(const char *name, const char *output, const char *errors,
                            struct mr_error *error)
{
    *error = (struct mr_error)MR_ERROR_NONE;
    return mr_probe_clock_check(clock_of(name), output, errors, error);
}

static void the_clock_that_was_asked_for_passes(void **state)
{
    struct mr_error error;

    MR_UNUSED(state);
    assert_int_equal(check("tsc", "wall 1\nclock tsc\n", "", &error), MR_OK);
    assert_int_equal(check("hybrid", "clock hybrid\nmemory 3\n", "", &error), MR_OK);
    assert_int_equal(check("monotonic", "clock monotonic", "", &error), MR_OK);
}

static void another_clock_is_named_with_the_probes_own_words(void **state)
{
    struct mr_error error;

    MR_UNUSED(state);
    assert_int_equal(check("hybrid", "probe 1 1 0\nclock tsc\n",
                           "traces: something\nmillrace: clock hybrid needs a second "
                           "processor\nmillrace: more\n",
                           &error),
                     MR_EIO);
    assert_string_equal(error.text,
                        "clock hybrid was asked for, and the probe used tsc: millrace: "
                        "clock hybrid needs a second processor");
    assert_int_equal(check("tsc", "clock hybrid\n", "", &error), MR_EIO);
    assert_string_equal(error.text, "clock tsc was asked for, and the probe used hybrid");
    /* Not by its beginning. */
    assert_int_equal(check("tsc", "clock tsc2\n", "", &error), MR_EIO);
    assert_int_equal(check("tsc", "clock t\n", "", &error), MR_EIO);
}

static void a_counter_that_is_not_trusted_is_not_tsc(void **state)
{
    static const char word[] =
        "millrace: no stable time-stamp counter (x): times are read "
        "from CLOCK_MONOTONIC, which costs more\n";
    struct mr_error error;

    MR_UNUSED(state);
    assert_int_equal(check("tsc", "clock tsc\n", word, &error), MR_EIO);
    assert_non_null(strstr(error.text, "the probe used monotonic: millrace: no stable"));
    assert_int_equal(check("hybrid", "clock tsc\n", word, &error), MR_EIO);
    assert_int_equal(check("monotonic", "clock monotonic\n", "", &error), MR_OK);
}

static void a_program_that_does_not_tell_fails(void **state)
{
    struct mr_error error;

    MR_UNUSED(state);
    assert_int_equal(check("tsc", "", "", &error), MR_EIO);
    assert_int_equal(check("tsc", "the clock tsc\n", "", &error), MR_EIO);
    assert_non_null(strstr(error.text, "did not tell which clock"));
}

static void one_processor_leaves_out_what_needs_two(void **state)
{
    struct mr_bench_report report;
    uint32_t all = (UINT32_C(1) << mr_probe_clock_count) - 1, mask = all;

    MR_UNUSED(state);
    mr_bench_report_init(&report, "millrace bench x", ".");
    mr_probe_clocks_leave_out(&mask, 2, &report);
    assert_int_equal(mask, all);
    assert_int_equal(report.skipped.size, 0);
    mr_probe_clocks_leave_out(&mask, 1, &report);
    for (size_t i = 0; i < mr_probe_clock_count; i++)
        assert_int_equal(mask >> i & 1, !mr_probe_clocks[i].needs_two);
    assert_true(report.skipped.size > 0);
    mr_bench_report_fini(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_that_was_asked_for_passes),
        cmocka_unit_test(another_clock_is_named_with_the_probes_own_words),
        cmocka_unit_test(a_counter_that_is_not_trusted_is_not_tsc),
        cmocka_unit_test(a_program_that_does_not_tell_fails),
        cmocka_unit_test(one_processor_leaves_out_what_needs_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
