/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include "tests/unit/base/capture.h"

#include <signal.h>

static int asserts_a_falsehood(void *argument)
{
    int count = *(int *)argument;

    MR_ASSERT(count == 1);
    return 0;
}

static int debug_asserts_a_falsehood(void *argument)
{
    MR_DEBUG_ASSERT(*(int *)argument == 1);
    return 0;
}

static void a_falsehood_aborts_with_condition_and_place(void **state)
{
    int count = 2;
    struct capture result = capture_run(STDERR_FILENO, asserts_a_falsehood, &count);

    (void)state;
    assert_true(WIFSIGNALED(result.wait_status));
    assert_int_equal(WTERMSIG(result.wait_status), SIGABRT);
    assert_non_null(strstr(result.text, "millrace: assertion failed: count == 1 "
                                        "(asserts_a_falsehood, "));
    assert_non_null(strstr(result.text, "test_assert.c:"));
}

static void the_truth_goes_on(void **state)
{
    int count = 1;
    struct capture result = capture_run(STDERR_FILENO, asserts_a_falsehood, &count);

    (void)state;
    assert_true(WIFEXITED(result.wait_status));
    assert_int_equal(result.size, 0);
}

static void a_debug_assertion_is_there_unless_ndebug(void **state)
{
    int count = 2;
    struct capture result = capture_run(STDERR_FILENO, debug_asserts_a_falsehood, &count);

    (void)state;
#if defined(NDEBUG)
    assert_true(WIFEXITED(result.wait_status));
#else
    assert_true(WIFSIGNALED(result.wait_status));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_falsehood_aborts_with_condition_and_place),
        cmocka_unit_test(the_truth_goes_on),
        cmocka_unit_test(a_debug_assertion_is_there_unless_ndebug),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
