/* SPDX-License-Identifier: Apache-2.0 */
/* bench/names.h */
#include "bench/names.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <string.h>

static const char *const names[] = {"manual", "hooks", "patchable"};

static enum mr_status choose(const char *text, uint32_t *mask, struct mr_error *error)
{
    mr_error_clear(error);
    return mr_names_choose("--door", text, names, 3, mask, error);
}

static void names_choose_bits(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    uint32_t mask;

    MR_UNUSED(state);
    assert_int_equal(choose("hooks", &mask, &error), MR_OK);
    assert_int_equal(mask, 2);
    assert_int_equal(choose("patchable,manual", &mask, &error), MR_OK);
    assert_int_equal(mask, 5);
    assert_int_equal(choose("all", &mask, &error), MR_OK);
    assert_int_equal(mask, 7);
    assert_int_equal(choose("none", &mask, &error), MR_OK);
    assert_int_equal(mask, 0);
}

static void an_unknown_name_gets_the_nearest_or_all(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    uint32_t mask;

    MR_UNUSED(state);
    assert_int_equal(choose("hoks", &mask, &error), MR_EUSAGE);
    assert_string_equal(error.text,
                        "--door: unknown value 'hoks' (did you mean 'hooks'?)");
    assert_int_equal(choose("manual,zzzzzz", &mask, &error), MR_EUSAGE);
    assert_string_equal(error.text, "--door: unknown value 'zzzzzz' (there are: manual, "
                                    "hooks, patchable, all, none)");
    assert_int_equal(choose("", &mask, &error), MR_EUSAGE);
    assert_int_equal(choose("manual,", &mask, &error), MR_EUSAGE);
}

static void numbers_are_lists_and_ranges(void **state)
{
    struct mr_error error = MR_ERROR_NONE;
    uint32_t numbers[8];
    size_t count;

    MR_UNUSED(state);
    assert_int_equal(
        mr_names_numbers("--threads", "1,4-6,8", 64, numbers, 8, &count, &error), MR_OK);
    assert_int_equal(count, 5);
    assert_int_equal(numbers[0], 1);
    assert_int_equal(numbers[1], 4);
    assert_int_equal(numbers[3], 6);
    assert_int_equal(numbers[4], 8);
}

static void wrong_numbers_are_refused(void **state)
{
    static const char *const wrong[] = {"0",   "",   "x",  "1,", "65",
                                        "4-2", "1-", "-1", "2x"};
    uint32_t numbers[8];
    size_t count;

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(wrong); i++) {
        struct mr_error error = MR_ERROR_NONE;

        assert_int_equal(
            mr_names_numbers("--threads", wrong[i], 64, numbers, 8, &count, &error),
            MR_EUSAGE);
        assert_non_null(strstr(error.text, "--threads: "));
    }
    assert_int_equal(mr_names_numbers("--threads", "1-9", 64, numbers, 8, &count, NULL),
                     MR_EUSAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_choose_bits),
        cmocka_unit_test(an_unknown_name_gets_the_nearest_or_all),
        cmocka_unit_test(numbers_are_lists_and_ranges),
        cmocka_unit_test(wrong_numbers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
