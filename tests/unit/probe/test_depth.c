/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit_test.h"

#include "probe/depth.h"

#include <stdlib.h>

#define SITE(i) (MR_SITE_FIRST_MODULE + (uint32_t)(i))
#define SPAN(i) (MR_SITE_FIRST_NAMED + (uint32_t)(i))
#define TOP UINT64_C(0x7fff00000000)
#define LIMIT 3

/* The place of a call at a level. */
#define AT(level) (TOP - (level)*UINT64_C(64))

static struct mr_levels *levels;

static bool enter(uint32_t site, uint64_t stack)
{
    return mr_levels_enter(levels, LIMIT, site, stack);
}

static bool leave(uint32_t site, uint64_t stack)
{
    return mr_levels_exit(levels, LIMIT, site, stack);
}

static int setup(void **state)
{
    MR_UNUSED(state);
    levels = calloc(1, sizeof(*levels) + MR_LEVELS_MAX * sizeof(levels->items[0]));
    return levels ? 0 : -1;
}

static int teardown(void **state)
{
    MR_UNUSED(state);
    free(levels);
    return 0;
}

static void test_recursion_is_cut(void **state)
{
    MR_UNUSED(state);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(enter(SITE(1), AT(i)), i < LIMIT);
    for (uint32_t i = 10; i-- > 0;)
        assert_int_equal(leave(SITE(1), AT(i)), i < LIMIT);
    assert_int_equal(levels->count, 0);
}

static void test_deeper_than_kept(void **state)
{
    const uint32_t depth = MR_LEVELS_MAX + 100;

    MR_UNUSED(state);
    for (uint32_t i = 0; i < depth; i++)
        assert_int_equal(enter(SITE(1), AT(i)), i < LIMIT);
    for (uint32_t i = depth; i-- > 0;)
        assert_int_equal(leave(SITE(1), AT(i)), i < LIMIT);
    assert_true(enter(SITE(2), AT(0)));
}

/* longjmp from below the deepest that is kept. */
static void test_left_when_deeper_than_kept(void **state)
{
    MR_UNUSED(state);
    for (uint32_t i = 0; i < MR_LEVELS_MAX + 100; i++)
        (void)enter(SITE(1 + (i > 0)), AT(i));
    assert_true(leave(SITE(1), AT(0)));
    assert_int_equal(levels->count, 0);
    assert_true(enter(SITE(2), AT(0)));
}

static void test_exit_without_enter_is_recorded(void **state)
{
    MR_UNUSED(state);
    assert_true(leave(SITE(1), AT(0)));
    assert_true(enter(SITE(2), AT(1)));
    assert_true(leave(SITE(1), AT(0)));
    assert_true(leave(SITE(2), AT(1)));
}

/* In a loop a function is left by longjmp; the loop goes on. */
static void test_no_drift_of_one_function(void **state)
{
    MR_UNUSED(state);
    assert_true(enter(SITE(1), AT(0)));
    for (int i = 0; i < 1000; i++)
        assert_true(enter(SITE(2), AT(1)));
    assert_true(leave(SITE(1), AT(0)));
    assert_int_equal(levels->count, 0);
}

/* The same with a function that called others; they have other places. */
static void test_no_drift_of_several(void **state)
{
    MR_UNUSED(state);
    assert_true(enter(SITE(1), AT(0)));
    for (int i = 0; i < 1000; i++) {
        assert_true(enter(SITE(2), AT(1)));
        assert_true(enter(SITE(3), AT(2)));
        assert_false(enter(SITE(4), AT(3)));
    }
}

static void test_far_below_is_gone(void **state)
{
    MR_UNUSED(state);
    assert_true(enter(SITE(1), TOP));
    assert_true(enter(SITE(2), TOP - 100000));
    assert_true(enter(SITE(3), TOP - 200000));
    assert_false(enter(SITE(4), TOP - 300000));
    assert_true(enter(SITE(5), TOP - 64));
    assert_int_equal(levels->count, 2);
}

/* A span may be begun by a function that has returned: its depth on the stack says nothing. */
static void test_spans_stay(void **state)
{
    MR_UNUSED(state);
    assert_true(enter(SITE(1), TOP));
    assert_true(enter(SPAN(1), TOP - 300000));
    assert_true(enter(SPAN(2), TOP - 300000));
    for (int i = 0; i < 10; i++) {
        assert_false(enter(SITE(2), TOP - 64));
        assert_false(leave(SITE(2), TOP - 64));
    }
    assert_true(leave(SPAN(2), TOP - 200000));
    assert_true(leave(SPAN(1), TOP - 200000));
    assert_true(leave(SITE(1), TOP));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_recursion_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_deeper_than_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_when_deeper_than_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exit_without_enter_is_recorded, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_drift_of_one_function, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_drift_of_several, setup, teardown),
        cmocka_unit_test_setup_teardown(test_far_below_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_spans_stay, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
