/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "tests/unit/unit_test.h"

#include <errno.h>
#include <string.h>

static void setting_an_error_returns_its_status_and_keeps_the_text(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    assert_int_equal(mr_error_set(&error, MR_EFORMAT, "%s:%d: bad", "file", 7),
                     MR_EFORMAT);
    assert_int_equal(error.status, MR_EFORMAT);
    assert_string_equal(error.text, "file:7: bad");
}

static void the_first_error_is_kept(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    mr_error_set(&error, MR_EIO, "cause");
    assert_int_equal(mr_error_set(&error, MR_EUSAGE, "consequence"), MR_EUSAGE);
    assert_int_equal(mr_error_set_errno(&error, MR_EUSAGE, EIO, "another"), MR_EUSAGE);
    assert_int_equal(error.status, MR_EIO);
    assert_string_equal(error.text, "cause");
}

static void nobody_has_to_want_the_words(void **state)
{
    (void)state;
    assert_int_equal(mr_error_set(NULL, MR_ELIMIT, "%d", 1), MR_ELIMIT);
    assert_int_equal(mr_error_set_errno(NULL, MR_EIO, ENOENT, "x"), MR_EIO);
}

static void a_system_error_is_told_in_words(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    mr_error_set_errno(&error, MR_EIO, ENOENT, "cannot open %s", "x");
    assert_string_equal(error.text, "cannot open x: No such file or directory");
}

static void a_long_text_is_cut(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    mr_error_set(&error, MR_EIO, "%0300d", 0);
    assert_int_equal(strlen(error.text), MR_ERROR_TEXT_SIZE - 1);
}

static void the_cause_stays_where_a_long_text_is_cut(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    mr_error_set_errno(&error, MR_EIO, ENOENT, "%0300d", 0);
    assert_int_equal(strlen(error.text), MR_ERROR_TEXT_SIZE - 1);
    assert_non_null(strstr(error.text, "0: No such file or directory"));
}

static void a_text_drives_no_terminal_and_ends_no_line(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    mr_error_set(&error, MR_EUSAGE, "--lanes: '%s'", "\x1b[2J\n");
    assert_string_equal(error.text, "--lanes: '?[2J?'");
    mr_error_clear(&error);
    mr_error_set_errno(&error, MR_EIO, ENOENT, "%s", "a\nb");
    assert_string_equal(error.text, "a?b: No such file or directory");
}

static void a_cleared_error_can_be_used_again(void **state)
{
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    mr_error_set(&error, MR_EIO, "one");
    mr_error_clear(&error);
    assert_int_equal(error.status, MR_OK);
    assert_string_equal(error.text, "");
    mr_error_set(&error, MR_EUSAGE, "two");
    assert_string_equal(error.text, "two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_an_error_returns_its_status_and_keeps_the_text),
        cmocka_unit_test(the_first_error_is_kept),
        cmocka_unit_test(nobody_has_to_want_the_words),
        cmocka_unit_test(a_system_error_is_told_in_words),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(the_cause_stays_where_a_long_text_is_cut),
        cmocka_unit_test(a_text_drives_no_terminal_and_ends_no_line),
        cmocka_unit_test(a_cleared_error_can_be_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
