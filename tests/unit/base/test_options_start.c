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

static enum mr_status refuse_three_lanes(void *options, struct mr_error *error)
{
    const struct sample_options *sample = options;

    if (sample->lanes != 3)
        return MR_OK;
    return mr_error_set(error, MR_EUSAGE, "--lanes: %d do not go together", 3);
}

/* As start(), of a command that has but options, with a struct that held something else. */
static int read_all(void *argument)
{
    char name[] = "sample";
    char *argv[] = {name, argument, NULL};
    struct mr_option_table table = sample_table;
    struct sample_options options;
    int exit_status;

    table.positionals = NULL;
    memset(&options, 0xff, sizeof(options));
    exit_status =
        mr_options_read(&table, &options, sizeof(options), 2, argv, refuse_three_lanes);
    return exit_status < 0 ? 77 : exit_status;
}

static void options_that_are_checked_go_on_without_a_word(void **state)
{
    char argument[] = "--lanes=2";
    struct capture result = capture_run(STDERR_FILENO, read_all, argument);

    (void)state;
    assert_int_equal(WEXITSTATUS(result.wait_status), 77);
    assert_int_equal(result.size, 0);
}

static void what_does_not_go_together_is_one_line_on_stderr_with_status_2(void **state)
{
    char lanes[] = "--lanes=3", positional[] = "word", help[] = "--help";
    struct capture result = capture_run(STDERR_FILENO, read_all, lanes);

    (void)state;
    assert_int_equal(WEXITSTATUS(result.wait_status), 2);
    assert_string_equal(result.text, "millrace sample: --lanes: 3 do not go together\n");
    result = capture_run(STDERR_FILENO, read_all, positional);
    assert_int_equal(WEXITSTATUS(result.wait_status), 2);
    assert_non_null(strstr(result.text, "unexpected argument 'word'"));
    result = capture_run(STDOUT_FILENO, read_all, help);
    assert_int_equal(WEXITSTATUS(result.wait_status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_arguments_go_on_without_a_word),
        cmocka_unit_test(help_goes_to_stdout_with_status_0),
        cmocka_unit_test(a_mistake_is_one_line_on_stderr_with_status_2),
        cmocka_unit_test(options_that_are_checked_go_on_without_a_word),
        cmocka_unit_test(what_does_not_go_together_is_one_line_on_stderr_with_status_2),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
