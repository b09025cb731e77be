/* SPDX-License-Identifier: Apache-2.0 */
#include "base/atomics.h"

#include "tests/unit/unit_test.h"

#include <pthread.h>

enum { ROUNDS = 20000 };

/* A one-slot mailbox: `value` is plain, `full` orders it. */
struct mailbox {
    uint64_t value;
    _Atomic int full;
    _Atomic uint64_t puts;
};

static void *put_all(void *argument)
{
    struct mailbox *box = argument;

    for (uint64_t i = 1; i <= ROUNDS; i++) {
        while (mr_load_acquire(&box->full)) /* [B] pairs with [A] of the taker */
            mr_cpu_relax();
        box->value = i;
        mr_store_release(&box->full, 1); /* [P] pairs with [C] of the taker */
        mr_count_single_writer(&box->puts, 1);
    }
    return NULL;
}

static void a_release_store_hands_plain_data_over(void **state)
{
    struct mailbox box = {0};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, put_all, &box), 0);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        while (!mr_load_acquire(&box.full)) /* [C] */
            mr_cpu_relax();
        assert_true(box.value == i);
        mr_store_release(&box.full, 0); /* [A] */
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(mr_load_relaxed(&box.puts) == ROUNDS);
}

static void each_operation_does_what_its_name_says(void **state)
{
    _Atomic int value = 1;
    int expected = 1;

    (void)state;
    assert_int_equal(mr_add_relaxed(&value, 2), 1);
    assert_int_equal(mr_add_acq_rel(&value, 2), 3);
    assert_int_equal(mr_sub_acq_rel(&value, 1), 5);
    assert_int_equal(mr_exchange_acq_rel(&value, 9), 4);
    assert_false(mr_compare_exchange_acq_rel(&value, &expected, 7));
    assert_int_equal(expected, 9);
    assert_true(mr_compare_exchange_acq_rel(&value, &expected, 7));
    expected = 7;
    assert_true(mr_compare_exchange_relaxed(&value, &expected, 8));
    mr_store_seq_cst(&value, mr_load_seq_cst(&value) + 1);
    assert_int_equal(mr_load_relaxed(&value), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_store_hands_plain_data_over),
        cmocka_unit_test(each_operation_does_what_its_name_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
