/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static void success_is_zero(void **state)
{
    (void)state;
    assert_int_equal(MR_OK, 0);
}

static void the_numbers_never_change(void **state)
{
    (void)state;
    assert_int_equal(MR_AGAIN, 1);
    assert_int_equal(MR_END, 2);
    assert_int_equal(MR_EUSAGE, 3);
    assert_int_equal(MR_ECHECKSUM, 14);
    assert_int_equal(MR_STATUS_COUNT, 15);
}

static void every_status_has_a_name_and_a_text_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < MR_STATUS_COUNT; i++) {
        const char *name = mr_status_name((enum mr_status)i);

        assert_true(strlen(name) > 0);
        assert_true(strlen(mr_status_text((enum mr_status)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, mr_status_name((enum mr_status)j));
    }
    assert_string_equal(mr_status_name(MR_EFORMAT), "format");
    assert_string_equal(mr_status_text(MR_EFORMAT), "the bytes break the format");
}

static void a_number_that_is_no_status_is_called_unknown(void **state)
{
    (void)state;
    assert_string_equal(mr_status_name(MR_STATUS_COUNT), "unknown");
    assert_string_equal(mr_status_text((enum mr_status)12345), "unknown status");
}

static void outcomes_are_no_errors(void **state)
{
    (void)state;
    assert_false(mr_status_is_error(MR_OK));
    assert_false(mr_status_is_error(MR_AGAIN));
    assert_false(mr_status_is_error(MR_END));
    assert_true(mr_status_is_error(MR_EUSAGE));
    assert_true(mr_status_is_error(MR_ECHECKSUM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_zero),
        cmocka_unit_test(the_numbers_never_change),
        cmocka_unit_test(every_status_has_a_name_and_a_text_of_its_own),
        cmocka_unit_test(a_number_that_is_no_status_is_called_unknown),
        cmocka_unit_test(outcomes_are_no_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
