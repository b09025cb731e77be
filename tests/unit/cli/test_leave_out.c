/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <stdio.h>
#include <string.h>

#include "cli/leave_out.h"

static void check_globs(const char *const *names, size_t count, const char *globs)
{
    char expected[256];
    struct mr_buffer out;

    (void)snprintf(expected, sizeof(expected), "Leave them out: MILLRACE_EXCEPT='%s'\n",
                   globs);
    mr_buffer_init(&out, 4096);
    assert_int_equal(mr_leave_out_put(names, count, &out), MR_OK);
    assert_true(out.size > strlen(expected));
    assert_memory_equal(out.data, expected, strlen(expected));
    mr_buffer_fini(&out);
}

static void a_glob_is_named_once(void **state)
{
    static const char *const names[] = {"step",        "add(int)", "step",
                                        "add(double)", "add",      "stepper"};

    (void)state;
    check_globs(names, 6, "step,add*,add,stepper");
    check_globs(names, 3, "step,add*");
}

static void what_has_no_name_is_not_all_functions(void **state)
{
    static const char *const names[] = {"(unknown)", "step", "(unknown)", "add(int)"};

    (void)state;
    check_globs(names, 4, "step,add*");
}

static void without_symbols_nothing_is_named(void **state)
{
    static const char said[] = "By name they cannot be left out";
    struct mr_buffer out;

    (void)state;
    mr_buffer_init(&out, 4096);
    assert_int_equal(mr_leave_out_put(NULL, 0, &out), MR_OK);
    assert_memory_equal(out.data, said, sizeof(said) - 1);
    mr_buffer_clear(&out);
    assert_int_equal(mr_leave_out_put((const char *const[]){"(unknown)"}, 1, &out),
                     MR_OK);
    assert_memory_equal(out.data, said, sizeof(said) - 1);
    mr_buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_glob_is_named_once),
        cmocka_unit_test(what_has_no_name_is_not_all_functions),
        cmocka_unit_test(without_symbols_nothing_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
