/* SPDX-License-Identifier: Apache-2.0 */
/* The board: what one thread puts, others find, until its time is over. */
#include "pipeline/wanted.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

static struct mr_wanted wanted_of(uint64_t number, uint32_t left_ms)
{
    return (struct mr_wanted){
        .id = {1, number}, .entry = {2, 3}, .left_ms = left_ms, .count = 1};
}

static void nothing_is_known_before_the_first_list(void **state)
{
    static struct mr_wanted_board board;
    static struct mr_wanted_list list;

    (void)state;
    mr_wanted_board_init(&board);
    assert_int_equal(mr_wanted_board_revision(&board), 0);
    assert_int_equal(mr_wanted_board_take(&board, 5, &list), 0);
    assert_int_equal(list.count, 0);
    mr_wanted_board_put(&board, &list, 5); /* that nothing is wanted is news */
    assert_int_equal(mr_wanted_board_revision(&board), 1);
    mr_wanted_board_fini(&board);
}

static void a_list_is_news_if_it_asks_for_anything_else(void **state)
{
    static struct mr_wanted_board board;
    static struct mr_wanted_list list, taken;

    (void)state;
    mr_wanted_board_init(&board);
    list.count = 2;
    list.items[0] = wanted_of(1, 1000);
    list.items[1] = wanted_of(2, 2000);
    list.items[1].depth = 1;
    list.items[1].sites[0] = 99;
    mr_wanted_board_put(&board, &list, 0);
    assert_int_equal(mr_wanted_board_take(&board, 0, &taken), 1);
    assert_int_equal(taken.count, 2);
    assert_true(mr_wanted_is_same(&taken.items[1], &list.items[1]));
    list.items[0].left_ms = 500; /* the same, told again */
    mr_wanted_board_put(&board, &list, 500 * MR_MILLISECOND_NS);
    assert_int_equal(mr_wanted_board_revision(&board), 1);
    list.count = 1;
    mr_wanted_board_put(&board, &list, 500 * MR_MILLISECOND_NS);
    assert_int_equal(mr_wanted_board_take(&board, 500 * MR_MILLISECOND_NS, &taken), 2);
    assert_int_equal(taken.count, 1);
    mr_wanted_board_fini(&board);
}

/* It comes again over a new connection, when answers may be lost. */
static void a_list_that_is_told_again_is_news(void **state)
{
    static struct mr_wanted_board board;
    static struct mr_wanted_list list, taken;

    (void)state;
    mr_wanted_board_init(&board);
    list.count = 1;
    list.items[0] = wanted_of(1, 1000);
    mr_wanted_board_ask_again(&board, &list, 0);
    mr_wanted_board_ask_again(&board, &list, 0);
    assert_int_equal(mr_wanted_board_take(&board, 0, &taken), 2);
    assert_int_equal(taken.count, 1);
    assert_true(mr_wanted_is_same(&taken.items[0], &list.items[0]));
    mr_wanted_board_fini(&board);
}

static void a_request_ends_by_the_clock_alone(void **state)
{
    static struct mr_wanted_board board;
    static struct mr_wanted_list list;

    (void)state;
    mr_wanted_board_init(&board);
    list.count = 2;
    list.items[0] = wanted_of(1, 1000);
    list.items[1] = wanted_of(2, 3000);
    mr_wanted_board_put(&board, &list, 0);
    (void)mr_wanted_board_take(&board, 2000 * MR_MILLISECOND_NS, &list);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].id.lo, 2);
    assert_int_equal(list.items[0].left_ms, 1000);
    (void)mr_wanted_board_take(&board, 3000 * MR_MILLISECOND_NS, &list);
    assert_int_equal(list.count, 0);
    mr_wanted_board_fini(&board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_before_the_first_list),
        cmocka_unit_test(a_list_is_news_if_it_asks_for_anything_else),
        cmocka_unit_test(a_list_that_is_told_again_is_news),
        cmocka_unit_test(a_request_ends_by_the_clock_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
