/* SPDX-License-Identifier: Apache-2.0 */
/* The book of requests for exemplars. */
#include "master/wanted.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#include <stdlib.h>

#define START_NS (UINT64_C(1000) * MR_SECOND_NS) /* CLOCK_MONOTONIC of the tests */

static struct mr_wanted_request request_of(uint64_t number, uint16_t count,
                                           uint32_t left_ms)
{
    return (struct mr_wanted_request){
        .wanted = {
            .id = {1, number}, .entry = {2, 3}, .count = count, .left_ms = left_ms}};
}

static struct mr_exemplar trace_of(uint64_t start_ns)
{
    return (struct mr_exemplar){.source = {4, 4},
                                .why = MR_EXEMPLAR_ASKED,
                                .before = start_ns,
                                .start_ns = start_ns};
}

static struct mr_wanted_book *new_book(void)
{
    struct mr_wanted_book *book = malloc(sizeof(*book));

    assert_non_null(book);
    mr_wanted_book_init(book);
    return book;
}

static void free_book(struct mr_wanted_book *book)
{
    mr_wanted_book_fini(book);
    free(book);
}

static void add(struct mr_wanted_book *book, uint64_t number, uint16_t count)
{
    struct mr_wanted_request request = request_of(number, count, 5000);

    assert_int_equal(mr_wanted_book_add(book, &request, START_NS), MR_OK);
}

/* Whether it is kept; `gone_ns`: when the one began that is not kept any more, 0 without one. */
static bool is_kept(struct mr_wanted_book *book, uint64_t number, uint64_t start_ns,
                    uint64_t *gone_ns)
{
    struct mr_exemplar trace = trace_of(start_ns), gone = trace_of(7);
    bool kept = mr_wanted_book_came(book, (struct mr_id){1, number}, &trace, &gone);

    *gone_ns = gone.start_ns;
    return kept;
}

static void came(struct mr_wanted_book *book, uint64_t number, uint64_t start_ns)
{
    uint64_t gone_ns;

    (void)is_kept(book, number, start_ns, &gone_ns);
}

/* How many requests senders are told of at that time, and the first one's number. */
static uint32_t told(struct mr_wanted_book *book, uint64_t now_ns, uint64_t *first)
{
    static struct mr_wanted_list list;

    (void)mr_wanted_board_take(&book->board, now_ns, &list);
    *first = list.count ? list.items[0].id.lo : 0;
    return list.count;
}

static void senders_are_told_at_once_that_nothing_is_wanted(void **state)
{
    struct mr_wanted_book *book = new_book();
    uint64_t first;

    (void)state;
    assert_int_not_equal(mr_wanted_board_revision(&book->board), 0);
    assert_int_equal(told(book, START_NS, &first), 0);
    free_book(book);
}

static void a_request_is_done_when_all_came(void **state)
{
    struct mr_wanted_book *book = new_book();
    struct mr_wanted_request request;
    uint64_t first;

    (void)state;
    add(book, 1, 2);
    add(book, 2, 1);
    assert_int_equal(told(book, START_NS, &first), 2);
    came(book, 1, 70);
    came(book, 1, 70); /* the same once more */
    assert_true(mr_wanted_book_at(book, 1, &request));
    assert_int_equal(request.state, MR_WANTED_OPEN);
    assert_int_equal(request.came, 1);
    came(book, 1, 60);
    assert_true(mr_wanted_book_at(book, 1, &request));
    assert_int_equal(request.state, MR_WANTED_DONE);
    assert_int_equal(request.came, 2);
    assert_int_equal(request.got[0].start_ns, 60);
    assert_int_not_equal(request.ended_ns, 0);
    mr_wanted_book_tick(book, START_NS);
    free_book(book);
}

static void of_more_than_were_asked_for_the_earliest_stay(void **state)
{
    static const uint64_t orders[][5] = {
        {50, 40, 30, 20, 10}, {10, 20, 30, 40, 50}, {30, 10, 50, 20, 40}};
    struct mr_wanted_request request;

    (void)state;
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        struct mr_wanted_book *book = new_book();

        add(book, 1, 3);
        for (size_t j = 0; j < 10; j++)
            came(book, 1, orders[i][j % 5]);
        assert_true(mr_wanted_book_at(book, 0, &request));
        assert_int_equal(request.came, 3);
        assert_true(request.beyond >= 2);
        for (uint64_t j = 0; j < 3; j++)
            assert_int_equal(request.got[j].start_ns, 10 * (j + 1));
        free_book(book);
    }
}

static void what_answers_no_request_is_not_kept(void **state)
{
    struct mr_wanted_book *book = new_book();
    uint64_t gone_ns;

    (void)state;
    add(book, 1, 2);
    add(book, 2, 1);
    assert_true(is_kept(book, 1, 30, &gone_ns) && gone_ns == 0);
    assert_true(is_kept(book, 2, 30, &gone_ns) && gone_ns == 0);
    assert_true(is_kept(book, 1, 40, &gone_ns) && gone_ns == 0);
    assert_true(!is_kept(book, 1, 40, &gone_ns) && gone_ns == 0);
    assert_true(!is_kept(book, 1, 50, &gone_ns) && gone_ns == 0);
    assert_true(is_kept(book, 1, 20, &gone_ns) && gone_ns == 40);
    assert_true(is_kept(book, 1, 10, &gone_ns) && gone_ns == 0); /* 30 is the other's */
    assert_true(is_kept(book, 2, 25, &gone_ns) && gone_ns == 30);
    assert_true(is_kept(book, 3, 90, &gone_ns) && gone_ns == 0); /* nobody knows of it */
    free_book(book);
}

static void a_request_ends_at_its_time_and_late_ones_still_count(void **state)
{
    struct mr_wanted_book *book = new_book();
    struct mr_wanted_request request;
    uint64_t first;

    (void)state;
    add(book, 1, 2);
    mr_wanted_book_tick(book, START_NS + 4999 * MR_MILLISECOND_NS);
    assert_true(mr_wanted_book_at(book, 0, &request));
    assert_int_equal(request.state, MR_WANTED_OPEN);
    mr_wanted_book_tick(book, START_NS + 5000 * MR_MILLISECOND_NS);
    assert_true(mr_wanted_book_at(book, 0, &request));
    assert_int_equal(request.state, MR_WANTED_EXPIRED);
    assert_int_equal(told(book, START_NS, &first), 0);
    came(book, 1, 9); /* it was on its way */
    assert_true(mr_wanted_book_at(book, 0, &request));
    assert_int_equal(request.state, MR_WANTED_EXPIRED);
    assert_int_equal(request.came, 1);
    free_book(book);
}

static void one_that_is_taken_out_is_told_no_more(void **state)
{
    struct mr_wanted_book *book = new_book();
    struct mr_wanted_request request;
    uint64_t first;

    (void)state;
    add(book, 1, 1);
    add(book, 2, 1);
    assert_true(mr_wanted_book_remove(book, (struct mr_id){1, 1}, START_NS));
    assert_false(mr_wanted_book_remove(book, (struct mr_id){1, 1}, START_NS));
    assert_int_equal(told(book, START_NS, &first), 1);
    assert_int_equal(first, 2);
    came(book, 1, 9);
    assert_int_equal(book->strangers, 1);
    assert_true(mr_wanted_book_at(book, 0, &request));
    assert_false(mr_wanted_book_at(book, 1, &request));
    free_book(book);
}

static void open_ones_are_bounded_and_old_ended_ones_go(void **state)
{
    struct mr_wanted_book *book = new_book();
    struct mr_wanted_request request = request_of(1000, 1, 5000);
    uint64_t first, number = 0;

    (void)state;
    for (uint32_t i = 0; i < MR_WANTED_MAX; i++)
        add(book, ++number, 1);
    assert_int_equal(mr_wanted_book_add(book, &request, START_NS), MR_ELIMIT);
    assert_int_equal(told(book, START_NS, &first), MR_WANTED_MAX);
    for (uint64_t i = 2; i <= MR_WANTED_MAX; i++) /* all but the first end */
        came(book, i, i);
    while (number < 1000 && book->count < MR_WANTED_BOOK_MAX) {
        add(book, ++number, 1);
        came(book, number, number);
    }
    add(book, ++number, 1); /* the oldest one that has ended gives its place up */
    assert_int_equal(book->count, MR_WANTED_BOOK_MAX);
    assert_true(mr_wanted_book_at(book, MR_WANTED_BOOK_MAX - 1, &request));
    assert_int_equal(request.wanted.id.lo, 1);
    assert_true(mr_wanted_book_at(book, MR_WANTED_BOOK_MAX - 2, &request));
    assert_int_equal(request.wanted.id.lo, 3);
    assert_int_equal(told(book, START_NS, &first), 2);
    free_book(book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(senders_are_told_at_once_that_nothing_is_wanted),
        cmocka_unit_test(a_request_is_done_when_all_came),
        cmocka_unit_test(of_more_than_were_asked_for_the_earliest_stay),
        cmocka_unit_test(what_answers_no_request_is_not_kept),
        cmocka_unit_test(a_request_ends_at_its_time_and_late_ones_still_count),
        cmocka_unit_test(one_that_is_taken_out_is_told_no_more),
        cmocka_unit_test(open_ones_are_bounded_and_old_ended_ones_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
