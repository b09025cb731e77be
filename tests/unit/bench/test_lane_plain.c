/* SPDX-License-Identifier: Apache-2.0 */
/* bench/lane_plain.h: the bars do what they are said to do, and both the same. */
#include "bench/lane_plain.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#define ENTER(site, time) ((uint64_t)(site) << 32 | (time))
#define EXIT(site, time) (UINT64_C(1) << 62 | (uint64_t)(site) << 32 | (time))

#define BITS 22
#define SHAPES ((1u << 21) + 1000)

/* 1(2(3), 2(3)) folds to 1(2(3)*); so does the next, with one more; 1(3, 2(3)) does not. */
static const uint64_t words[] = {
    ENTER(1, 10), ENTER(2, 11), ENTER(3, 12), EXIT(3, 13), EXIT(2, 14),  ENTER(2, 15),
    ENTER(3, 16), EXIT(3, 17),  EXIT(2, 18),  EXIT(1, 19), ENTER(1, 20), ENTER(2, 21),
    ENTER(3, 22), EXIT(3, 23),  EXIT(2, 24),  EXIT(1, 25), ENTER(1, 30), ENTER(3, 31),
    EXIT(3, 32),  ENTER(2, 33), ENTER(3, 34), EXIT(3, 35), EXIT(2, 36),  EXIT(1, 37),
};

static void check(bool is_consed, uint64_t trees)
{
    struct lane_plain *plain = lane_plain_new(is_consed);

    lane_plain_run(plain, words, 5); /* cut anywhere */
    lane_plain_choose(plain, 1);
    lane_plain_run(plain, words, 10); /* meanwhile on another stack */
    lane_plain_choose(plain, 0);
    lane_plain_run(plain, words + 5, MR_ARRAY_COUNT(words) - 5);
    assert_int_equal(lane_plain_calls(plain), 5 + 5 + 3 + 4);
    assert_int_equal(lane_plain_paths(plain), 4); /* 1, 1/2, 1/2/3, 1/3 */
    assert_int_equal(lane_plain_shapes(plain), 2);
    assert_int_equal(lane_plain_trees(plain), trees);
    lane_plain_free(plain);
}

static void counts_calls_paths_shapes(void **unused)
{
    (void)unused;
    check(false, 0);
}

static void interns_each_subtree(void **unused)
{
    (void)unused;
    check(true, 4); /* 3, 2(3), 1(2(3)*), 1(3, 2(3)) */
}

/* 1(4, 2 or 3, 4, 2 or 3, ...): a shape for each number, over four paths. */
static void run_number(struct lane_plain *plain, uint32_t number)
{
    uint64_t trace[2 + 4 * BITS];
    uint32_t used = 0;

    trace[used++] = ENTER(1, 1);
    for (uint32_t i = 0; i < BITS; i++) {
        uint32_t site = 2 + (number >> i & 1);

        trace[used++] = ENTER(4, 2);
        trace[used++] = EXIT(4, 3);
        trace[used++] = ENTER(site, 4);
        trace[used++] = EXIT(site, 5);
    }
    trace[used++] = EXIT(1, 6);
    lane_plain_run(plain, trace, used);
}

/* A stream that never repeats may be played for as long as one likes. */
static void shapes_without_end_are_no_end(void **unused)
{
    struct lane_plain *plain = lane_plain_new(true);

    (void)unused;
    for (uint32_t number = 0; number < SHAPES; number++)
        run_number(plain, number);
    assert_int_equal(lane_plain_shapes(plain), SHAPES);
    assert_true(lane_plain_trees(plain) >= SHAPES + 3);
    lane_plain_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_calls_paths_shapes),
        cmocka_unit_test(interns_each_subtree),
        cmocka_unit_test(shapes_without_end_are_no_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
