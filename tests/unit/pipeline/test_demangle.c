/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipeline/demangle.h"

#include <string.h>

static void mangled_names_become_readable(void **state)
{
    char text[64];

    (void)state;
    assert_true(mr_demangle("_ZN3fooC1Ev", text, sizeof(text)));
    assert_string_equal(text, "foo::foo()");
    assert_true(mr_demangle("_Z5twiceIiET_S0_", text, sizeof(text)));
    assert_string_equal(text, "int twice<int>(int)");
}

static void other_names_are_left_alone(void **state)
{
    char text[64], name[MR_DEMANGLE_NAME_MAX + 2] = "_Z";

    (void)state;
    assert_false(mr_demangle("main", text, sizeof(text)));
    assert_false(mr_demangle("", text, sizeof(text)));
    assert_false(mr_demangle("_Z", text, sizeof(text)));
    assert_false(mr_demangle("_Znonsense", text, sizeof(text)));
    memset(name + 2, 'P', sizeof(name) - 3);
    assert_false(mr_demangle(name, text, sizeof(text)));
}

static void a_result_that_does_not_fit_is_cut(void **state)
{
    char text[8];

    (void)state;
    assert_true(mr_demangle("_ZN3fooC1Ev", text, sizeof(text)));
    assert_string_equal(text, "foo:...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mangled_names_become_readable),
        cmocka_unit_test(other_names_are_left_alone),
        cmocka_unit_test(a_result_that_does_not_fit_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
