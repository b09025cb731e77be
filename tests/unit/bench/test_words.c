/* SPDX-License-Identifier: Apache-2.0 */
/* bench/command.h: words, and programs that are run. */
#include "bench/command.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void text_splits_as_pkg_config_writes_it(void **state)
{
    struct mr_words words = {0};
    char line[100];

    MR_UNUSED(state);
    mr_words_split(&words, "  -I/a\\ b -Wl,-rpath,/c\n");
    mr_words_split(&words, "");
    mr_words_split(&words, NULL);
    assert_int_equal(words.count, 2);
    assert_string_equal(words.items[0], "-I/a b");
    assert_string_equal(words.items[1], "-Wl,-rpath,/c");
    assert_null(words.items[2]);
    assert_string_equal(mr_words_join(&words, line, sizeof(line)),
                        "-I/a b -Wl,-rpath,/c");
    mr_words_fini(&words);
}

static void too_many_words_are_noticed(void **state)
{
    struct mr_words words = {0};

    MR_UNUSED(state);
    for (int i = 0; i < MR_WORDS_MAX; i++)
        mr_words_add(&words, "%d", i);
    assert_false(words.failed);
    mr_words_add(&words, "one more");
    assert_true(words.failed);
    mr_words_fini(&words);
}

static enum mr_status run(struct mr_command *command, const char *script,
                          struct mr_error *error)
{
    struct mr_words argv = {0}, env = {0};
    enum mr_status status;

    mr_words_split(&argv, "sh -c");
    mr_words_add(&argv, "%s", script);
    mr_words_add(&env, "GREETING=hello");
    *command =
        (struct mr_command){.argv = &argv, .env = &env, .timeout_ns = 60 * MR_SECOND_NS};
    status = mr_command_run(command, error);
    mr_words_fini(&argv);
    mr_words_fini(&env);
    return status;
}

static void a_program_is_run_in_a_clean_environment(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_command command;

    MR_UNUSED(state);
    assert_int_equal(setenv("MILLRACE_ENDPOINT", "tcp://127.0.0.1:1", 1), 0);
    assert_int_equal(
        run(&command, "echo $GREETING; echo x$MILLRACE_ENDPOINT >&2", &error), MR_OK);
    assert_string_equal(mr_command_text(&command.output), "hello\n");
    assert_string_equal(mr_command_text(&command.errors), "x\n");
    assert_true(command.wall_ns > 0);
    assert_true(mr_usage_peak_kib(getpid()) > 0);
    mr_command_fini(&command);
}

static void a_failure_brings_its_last_words(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_command command;

    MR_UNUSED(state);
    assert_int_equal(run(&command, "echo first >&2; echo last >&2; exit 3", &error),
                     MR_EIO);
    assert_string_equal(error.text, "sh ended with 3: last");
    assert_int_equal(command.exit_status, 3);
    mr_command_fini(&command);
}

static void a_program_that_is_not_there_is_not_found(void **state)
{
    struct mr_words argv = {0};
    struct mr_command command = {.argv = &argv, .timeout_ns = 60 * MR_SECOND_NS};
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    mr_words_add(&argv, "no-such-program-anywhere");
    assert_int_equal(mr_command_run(&command, &error), MR_ENOTFOUND);
    assert_non_null(strstr(error.text, "no-such-program-anywhere: No such file"));
    mr_command_fini(&command);
    mr_words_fini(&argv);
}

static void one_that_does_not_end_is_ended(void **state)
{
    struct mr_words argv = {0};
    struct mr_command command = {.argv = &argv, .timeout_ns = MR_MILLISECOND_NS};
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    mr_words_split(&argv, "sleep 1000");
    assert_int_equal(mr_command_run(&command, &error), MR_ETIMEOUT);
    mr_command_fini(&command);
    mr_words_fini(&argv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_splits_as_pkg_config_writes_it),
        cmocka_unit_test(too_many_words_are_noticed),
        cmocka_unit_test(a_program_is_run_in_a_clean_environment),
        cmocka_unit_test(a_failure_brings_its_last_words),
        cmocka_unit_test(a_program_that_is_not_there_is_not_found),
        cmocka_unit_test(one_that_does_not_end_is_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
