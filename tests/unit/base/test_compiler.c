/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compiler.h"

#include "tests/unit/unit_test.h"

struct outer {
    int before;
    long inner;
};

static void the_container_is_found_from_its_member(void **state)
{
    struct outer outer = {1, 2};
    long *inner = &outer.inner;

    (void)state;
    assert_ptr_equal(MR_CONTAINER_OF(inner, struct outer, inner), &outer);
}

static void an_array_knows_its_count(void **state)
{
    int array[7];

    (void)state;
    assert_int_equal(MR_ARRAY_COUNT(array), 7);
}

static void a_cache_line_aligned_object_is(void **state)
{
    static MR_ALIGNED(MR_CACHE_LINE) char line[1];

    (void)state;
    assert_int_equal((uintptr_t)line % MR_CACHE_LINE, 0);
}

static void zeros_are_counted_from_both_ends(void **state)
{
    (void)state;
    assert_int_equal(MR_LEADING_ZEROS64(UINT64_C(1)), 63);
    assert_int_equal(MR_LEADING_ZEROS64(UINT64_MAX), 0);
    assert_int_equal(MR_TRAILING_ZEROS64(UINT64_C(1) << 40), 40);
}

static void products_past_64_bits_hold(void **state)
{
    mr_u128 product = (mr_u128)UINT64_MAX * 1000;

    (void)state;
    assert_true((uint64_t)(product / 1000) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_container_is_found_from_its_member),
        cmocka_unit_test(an_array_knows_its_count),
        cmocka_unit_test(a_cache_line_aligned_object_is),
        cmocka_unit_test(zeros_are_counted_from_both_ends),
        cmocka_unit_test(products_past_64_bits_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
