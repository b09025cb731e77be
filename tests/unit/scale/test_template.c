/* SPDX-License-Identifier: Apache-2.0 */
#include "scale/template.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#include <string.h>

static const struct mr_template_values values = {.n = 3, .count = 7, .level = 2};

static void assert_filled(const char *text, const char *expected)
{
    char out[256];

    assert_int_equal(mr_template_check("--start", text, NULL), MR_OK);
    assert_true(mr_template_fill(text, &values, out, sizeof(out)));
    assert_string_equal(out, expected);
}

static void places_are_filled_in(void **state)
{
    MR_UNUSED(state);
    assert_filled("systemctl start millrace-worker@{n}",
                  "systemctl start millrace-worker@3");
    assert_filled("127.0.0.1:{n+7480}", "127.0.0.1:7483");
    assert_filled("worker-{n-1}.workers:7481", "worker-2.workers:7481");
    assert_filled("--replicas={count} {level}{n}{n}", "--replicas=7 233");
    assert_filled("", "");
}

static void braces_of_a_shell_stay(void **state)
{
    MR_UNUSED(state);
    assert_filled("{ echo ${X}; echo {}; } {1,2}", "{ echo ${X}; echo {}; } {1,2}");
}

static void other_places_are_refused(void **state)
{
    static const char *const bad[] = {"{m}",         "{n",       "{n+}",
                                      "{n+x}",       "{n*2}",    "{count+1}",
                                      "{n+1234567}", "{number}", "a{levels}"};
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(bad); i++) {
        mr_error_clear(&error);
        assert_int_equal(mr_template_check("--start", bad[i], &error), MR_EUSAGE);
        assert_non_null(strstr(error.text, "--start"));
    }
}

static void what_does_not_fit_is_told(void **state)
{
    char out[8];

    MR_UNUSED(state);
    assert_true(mr_template_fill("1234567", &values, out, sizeof(out)));
    assert_false(mr_template_fill("12345678", &values, out, sizeof(out)));
    assert_false(mr_template_fill("12345{n+900}", &values, out, sizeof(out)));
}

static void a_command_that_fails_is_told_with_its_last_word(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    assert_int_equal(mr_template_run("test {n} = 3", &values, 60 * MR_SECOND_NS, &error),
                     MR_OK);
    assert_int_equal(mr_template_run("echo first >&2; echo no worker {n} >&2; exit 4",
                                     &values, 60 * MR_SECOND_NS, &error),
                     MR_EIO);
    assert_non_null(strstr(error.text, "ended with 4: no worker 3"));
    mr_error_clear(&error);
    assert_int_equal(mr_template_run("kill -9 $$", &values, 60 * MR_SECOND_NS, &error),
                     MR_EIO);
    assert_non_null(strstr(error.text, "137"));
}

static void a_command_that_does_not_end_is_killed_with_its_children(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    assert_int_equal(
        mr_template_run("sleep 1000; true", &values, 300 * MR_MILLISECOND_NS, &error),
        MR_ETIMEOUT);
    assert_non_null(strstr(error.text, "--command-timeout"));
}

static void a_command_that_says_much_is_read_to_its_end(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    MR_UNUSED(state);
    assert_int_equal(mr_template_run("i=0; while [ $i -lt 20000 ]; do echo line $i >&2; "
                                     "i=$((i+1)); done; exit 1",
                                     &values, 60 * MR_SECOND_NS, &error),
                     MR_EIO);
    assert_non_null(strstr(error.text, "line 19999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_filled_in),
        cmocka_unit_test(braces_of_a_shell_stay),
        cmocka_unit_test(other_places_are_refused),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(a_command_that_fails_is_told_with_its_last_word),
        cmocka_unit_test(a_command_that_does_not_end_is_killed_with_its_children),
        cmocka_unit_test(a_command_that_says_much_is_read_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
