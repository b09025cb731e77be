/* SPDX-License-Identifier: Apache-2.0 */
/* worker/spread.h: which lane goes where; and that any load settles, as even as lanes of its sizes can be. */
#include "worker/spread.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

static const struct mr_spread_rules rules = {
    .hot = 0.9, .gain = 0.1, .periods = 2, .rest = 4};

struct table {
    struct mr_spread spread;
    struct mr_spread_lane lanes[MR_SPREAD_LANES_MAX];
    uint32_t lane_count, driver_count;
};

static void add(struct table *table, uint32_t driver, double busy)
{
    table->lanes[table->lane_count++] = (struct mr_spread_lane){driver, busy};
}

static void begin(struct table *table, uint32_t driver_count)
{
    table->driver_count = driver_count;
    mr_spread_init(&table->spread, &rules, table->lane_count, driver_count);
}

/* One period; what is to go has gone then. */
static bool look(struct table *table, struct mr_spread_move *move)
{
    if (!mr_spread_look(&table->spread, table->lanes, move))
        return false;
    assert_int_equal(table->lanes[move->lane].driver, move->from);
    assert_int_not_equal(move->from, move->to);
    table->lanes[move->lane].driver = move->to;
    return true;
}

static void nothing_goes(struct table *table, uint32_t periods)
{
    struct mr_spread_move move;

    for (uint32_t i = 0; i < periods; i++)
        assert_false(look(table, &move));
}

static void a_hot_driver_gives_the_lane_that_evens_out_most(void **state)
{
    struct table table = {.lane_count = 0};
    struct mr_spread_move move;

    MR_UNUSED(state);
    add(&table, 0, 0.15);
    add(&table, 0, 0.5);
    add(&table, 0, 0.3);
    add(&table, 1, 0.25);
    begin(&table, 2);
    nothing_goes(&table, 1); /* once may be noise */
    assert_true(look(&table, &move));
    assert_int_equal(move.lane, 2);
    assert_int_equal(move.from, 0);
    assert_int_equal(move.to, 1);
    assert_true(move.before > 0.949 && move.before < 0.951);
    assert_true(move.after > 0.649 && move.after < 0.651);
    nothing_goes(&table, 20);
}

static void the_least_busy_driver_gets_it(void **state)
{
    struct table table = {.lane_count = 0};
    struct mr_spread_move move;

    MR_UNUSED(state);
    add(&table, 0, 0.4);
    add(&table, 1, 0.5);
    add(&table, 1, 0.5);
    add(&table, 2, 0.1);
    begin(&table, 3);
    nothing_goes(&table, 1);
    assert_true(look(&table, &move));
    assert_int_equal(move.from, 1);
    assert_int_equal(move.to, 2);
}

static void a_lane_alone_stays_however_hot(void **state)
{
    struct table table = {.lane_count = 0};

    MR_UNUSED(state);
    add(&table, 0, 1);
    add(&table, 1, 0);
    add(&table, 1, 0);
    begin(&table, 2);
    nothing_goes(&table, 20);
}

static void what_would_only_trade_places_stays(void **state)
{
    struct table table = {.lane_count = 0};

    MR_UNUSED(state);
    add(&table, 0, 0.93); /* elsewhere it would make that driver as hot */
    add(&table, 0, 0.02);
    add(&table, 1, 0.01);
    begin(&table, 2);
    nothing_goes(&table, 20);
}

static void drivers_below_the_limit_or_all_hot_are_left_alone(void **state)
{
    struct table table = {.lane_count = 0};

    MR_UNUSED(state);
    add(&table, 0, 0.4);
    add(&table, 0, 0.49);
    add(&table, 1, 0);
    begin(&table, 2);
    nothing_goes(&table, 20);
    table.lanes[1].busy = 0.6;
    table.lanes[2].busy = 0.99;
    nothing_goes(&table, 20);
}

static void a_moment_of_heat_is_no_reason(void **state)
{
    struct table table = {.lane_count = 0};

    MR_UNUSED(state);
    add(&table, 0, 0.5);
    add(&table, 0, 0.5);
    add(&table, 1, 0);
    begin(&table, 2);
    for (uint32_t i = 0; i < 20; i++) {
        table.lanes[0].busy = i % 2 ? 0.1 : 0.5;
        nothing_goes(&table, 1);
    }
}

static void a_lane_rests_where_it_has_come(void **state)
{
    struct table table = {.lane_count = 0};
    struct mr_spread_move move;

    MR_UNUSED(state);
    add(&table, 0, 0.6);
    add(&table, 0, 0.4);
    for (uint32_t i = 0; i < 9; i++)
        add(&table, 1, 0);
    begin(&table, 2);
    nothing_goes(&table, 1);
    assert_true(look(&table, &move));
    assert_int_equal(move.lane, 0);
    table.lanes[0].busy =
        0.5; /* it would go back at once; each of the others is too small */
    table.lanes[1].busy = 0;
    for (uint32_t i = 2; i < table.lane_count; i++)
        table.lanes[i].busy = 0.05;
    nothing_goes(&table, rules.rest);
    assert_true(look(&table, &move));
    assert_int_equal(move.lane, 0);
    assert_int_equal(move.to, 0);
}

static void one_hot_lane_does_not_hide_another_hot_driver(void **state)
{
    struct table table = {.lane_count = 0};
    struct mr_spread_move move;

    MR_UNUSED(state);
    add(&table, 0, 1);
    add(&table, 1, 0.5);
    add(&table, 1, 0.48);
    add(&table, 2, 0.1);
    begin(&table, 3);
    nothing_goes(&table, 1);
    assert_true(look(&table, &move));
    assert_int_equal(move.from, 1);
    assert_int_equal(move.to, 2);
}

static void a_lane_that_nobody_has_does_not_count(void **state)
{
    struct table table = {.lane_count = 0};

    MR_UNUSED(state);
    add(&table, 0, 0.5);
    add(&table, UINT32_MAX, 0.5);
    add(&table, 2, 0.5); /* of a driver that there is not */
    add(&table, 1, 0);
    begin(&table, 2);
    nothing_goes(&table, 20);
}

static double add_up(const struct table *table, double *loads)
{
    double most = 0;

    for (uint32_t i = 0; i < table->driver_count; i++)
        loads[i] = 0;
    for (uint32_t i = 0; i < table->lane_count; i++)
        loads[table->lanes[i].driver] += table->lanes[i].busy;
    for (uint32_t i = 0; i < table->driver_count; i++)
        most = loads[i] > most ? loads[i] : most;
    return most;
}

static double busiest(const struct table *table)
{
    double loads[MR_SPREAD_LANES_MAX];

    return add_up(table, loads);
}

/* Whether a lane of a hot driver had better be with any other. */
static bool could_be_better(const struct table *table)
{
    double loads[MR_SPREAD_LANES_MAX];

    (void)add_up(table, loads);
    for (uint32_t i = 0; i < table->lane_count; i++) {
        double before = loads[table->lanes[i].driver], busy = table->lanes[i].busy;

        for (uint32_t to = 0; to < table->driver_count; to++) {
            double there = loads[to] + busy, left = before - busy;
            double after = there > left ? there : left;

            if (to != table->lanes[i].driver && before >= rules.hot &&
                before - after >= rules.gain)
                return true;
        }
    }
    return false;
}

/* The busiest driver has ever less to do, until nothing pays; then all stays as it is. */
static void any_steady_load_settles(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    MR_UNUSED(state);
    for (int round = 0; round < 500; round++) {
        struct table table = {.lane_count = 0};
        uint32_t drivers = 2 + (uint32_t)mr_test_random_below(&random, 6);
        uint32_t lanes = 1 + (uint32_t)mr_test_random_below(&random, 32);
        struct mr_spread_move move;

        for (uint32_t i = 0; i < lanes; i++)
            add(&table, (uint32_t)mr_test_random_below(&random, drivers),
                (double)mr_test_random_below(&random, 60) / 100);
        begin(&table, drivers);
        for (uint32_t i = 0; i < 1000; i++) {
            double before = busiest(&table);

            (void)look(&table, &move);
            assert_true(busiest(&table) <= before);
        }
        assert_false(could_be_better(&table));
        nothing_goes(&table, 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hot_driver_gives_the_lane_that_evens_out_most),
        cmocka_unit_test(the_least_busy_driver_gets_it),
        cmocka_unit_test(a_lane_alone_stays_however_hot),
        cmocka_unit_test(what_would_only_trade_places_stays),
        cmocka_unit_test(drivers_below_the_limit_or_all_hot_are_left_alone),
        cmocka_unit_test(a_moment_of_heat_is_no_reason),
        cmocka_unit_test(a_lane_rests_where_it_has_come),
        cmocka_unit_test(one_hot_lane_does_not_hide_another_hot_driver),
        cmocka_unit_test(a_lane_that_nobody_has_does_not_count),
        cmocka_unit_test(any_steady_load_settles)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
