/* SPDX-License-Identifier: Apache-2.0 */
/* bench/probe_counters.h */
#include "bench/probe_counters.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void names_of_counters_pass(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    assert_int_equal(mr_probe_counters_check("--counters", "", &error), MR_OK);
    assert_int_equal(mr_probe_counters_check("--counters",
                                             ",page-faults,,task-clock:u,r01c2,", &error),
                     MR_OK);
}

static void what_is_no_counter_is_named_with_the_nearest(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    assert_int_equal(
        mr_probe_counters_check("--counters", "task-clock,page-fauls", &error),
        MR_EUSAGE);
    assert_non_null(strstr(error.text, "--counters: page-fauls: no counter"));
    assert_non_null(strstr(error.text, "page-faults"));
}

/* Here it has no descriptor left, elsewhere the processor has no such event: the reason is the kernel's. */
static void what_the_kernel_refuses_has_a_word(void **state)
{
    struct mr_bench_report report;
    struct rlimit limit, none;

    MR_UNUSED(state);
    mr_bench_report_init(&report, "millrace bench x", ".");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    mr_probe_counters_leave_out("page-faults,task-clock", &report);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(mr_buffer_append_byte(&report.skipped, 0), MR_OK);
    assert_non_null(strstr((const char *)report.skipped.data, "counter page-faults: "));
    assert_non_null(strstr((const char *)report.skipped.data, "counter task-clock: "));
    mr_bench_report_fini(&report);
}

static void none_asked_for_has_no_word(void **state)
{
    struct mr_bench_report report;

    MR_UNUSED(state);
    mr_bench_report_init(&report, "millrace bench x", ".");
    mr_probe_counters_leave_out("", &report);
    assert_int_equal(report.skipped.size, 0);
    mr_bench_report_fini(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_counters_pass),
        cmocka_unit_test(what_is_no_counter_is_named_with_the_nearest),
        cmocka_unit_test(what_the_kernel_refuses_has_a_word),
        cmocka_unit_test(none_asked_for_has_no_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
