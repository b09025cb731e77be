/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "tests/unit/base/capture.h"
#include "tests/unit/base/sample.h"

/* Starts the sample command with one argument; its exit status, or 77 to go on. */
static int start(void *argument)
{
    char name[] = "sample";
    char *argv[] = {name, argument, NULL};
    struct sample_options options;
    int first = 0;
    int exit_status = mr_options_start(&sample_table, &options, 2, argv, &first);

    return exit_status < 0 ? 77 : exit_status;
}

static void good_arguments_go_on_without_a_word(void **state)
{
    char argument[] = "--compare";
    struct capture result = capture_run(STDOUT_FILENO, start, argument);

    (void)state;
    assert_int_equal(WEXITSTATUS(result.wait_status), 77);
    assert_int_equal(result.size, 0);
}

static void help_goes_to_stdout_with_status_0(void **state)
{
    char help[] = "--help";
    char man[] = "--help-man";
    struct capture result = capture_run(STDOUT_FILENO, start, help);

    (void)state;
    assert_int_equal(WEXITSTATUS(result.wait_status), 0);
    assert_int_equal(strncmp(result.text, "Usage: millrace sample", 22), 0);
    result = capture_run(STDOUT_FILENO, start, man);
    assert_int_equal(WEXITSTATUS(result.wait_status), 0);
    assert_int_equal(strncmp(result.text, "millrace-sample(1)", 18), 0);
}

static void a_mistake_is_one_line_on_stderr_with_status_2(void **state)
{
    char argument[] = "--lane=2";
    struct capture result = capture_run(STDERR_FILENO, start, argument);

    (void)state;
    assert_int_equal(WEXITSTATUS(result.wait_status), 2);
    assert_string_equal(result.text, "millrace sample: unknown option '--lane' (did you "
                                     "mean '--lanes'?)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_arguments_go_on_without_a_word),
        cmocka_unit_test(help_goes_to_stdout_with_status_0),
        cmocka_unit_test(a_mistake_is_one_line_on_stderr_with_status_2),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
