/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include "base/clock.h"
#include "pipeline/node_budget.h"

#define RATE 1000u
#define MOST 100u

static uint64_t take_new(struct mr_node_budget *budget, uint64_t *next, uint32_t tries)
{
    uint64_t taken = 0;

    for (uint32_t i = 0; i < tries; i++)
        taken += mr_node_budget_takes(budget, ++*next * UINT64_C(0xff51afd7ed558ccd));
    return taken;
}

static void the_first_half_is_for_any_node(void **state)
{
    struct mr_node_budget budget;
    uint64_t next = 0;

    (void)state;
    mr_node_budget_init(&budget, RATE, MOST);
    assert_int_equal(take_new(&budget, &next, 1000), MOST / 2);
    assert_int_equal(budget.credit, MOST / 2);
    mr_node_budget_fini(&budget);
}

static void the_second_half_is_for_nodes_met_before(void **state)
{
    struct mr_node_budget budget;
    uint64_t next = 0, taken = 0;

    (void)state;
    mr_node_budget_init(&budget, RATE, MOST);
    (void)take_new(&budget, &next, MOST / 2);
    assert_int_equal(take_new(&budget, &next, MOST), 0);
    next -= MOST;
    taken = take_new(&budget, &next, MOST);
    assert_int_equal(taken, MOST / 2);
    assert_int_equal(budget.credit, 0);
    next -= MOST;
    assert_int_equal(take_new(&budget, &next, MOST), 0); /* spent */
    mr_node_budget_fini(&budget);
}

static void time_gives_credit_up_to_the_most(void **state)
{
    struct mr_node_budget budget;
    uint64_t next = 0, now_ns = 5 * MR_SECOND_NS;

    (void)state;
    mr_node_budget_init(&budget, RATE, MOST);
    mr_node_budget_refill(&budget, now_ns);
    (void)take_new(&budget, &next, MOST / 2);
    mr_node_budget_refill(&budget, now_ns += 20 * MR_MILLISECOND_NS);
    assert_int_equal(budget.credit, MOST / 2 + 20);
    for (int i = 0; i < 100; i++) /* a tenth of a node each */
        mr_node_budget_refill(&budget, now_ns += MR_MILLISECOND_NS / 10);
    assert_int_equal(budget.credit, MOST / 2 + 30);
    mr_node_budget_refill(&budget, now_ns - MR_SECOND_NS); /* a clock that goes back */
    assert_int_equal(budget.credit, MOST / 2 + 30);
    mr_node_budget_refill(&budget, now_ns + MR_HOUR_NS);
    assert_int_equal(budget.credit, MOST);
    mr_node_budget_fini(&budget);
}

static void a_shape_is_paid_for_as_far_as_there_is_credit(void **state)
{
    struct mr_node_budget budget;
    uint64_t next = 0;

    (void)state;
    mr_node_budget_init(&budget, RATE, MOST);
    mr_node_budget_pay(&budget, MR_NODE_BUDGET_SHAPE);
    assert_int_equal(budget.credit, MOST - MR_NODE_BUDGET_SHAPE);
    assert_int_equal(take_new(&budget, &next, MOST), MOST / 2 - MR_NODE_BUDGET_SHAPE);
    mr_node_budget_pay(&budget, MOST);
    assert_int_equal(budget.credit, 0);
    mr_node_budget_fini(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_half_is_for_any_node),
        cmocka_unit_test(the_second_half_is_for_nodes_met_before),
        cmocka_unit_test(time_gives_credit_up_to_the_most),
        cmocka_unit_test(a_shape_is_paid_for_as_far_as_there_is_credit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
