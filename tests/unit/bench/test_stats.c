/* SPDX-License-Identifier: Apache-2.0 */
/* bench/stats.h: known data, and properties. */
#include "bench/stats.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <math.h>

static struct mr_stats stats_of(const double *values, size_t count)
{
    struct mr_stats stats;

    assert_int_equal(mr_stats_of(values, count, &stats), MR_OK);
    return stats;
}

static void quantiles_are_those_of_type_7(void **state)
{
    const double values[] = {1, 2, 3, 4, 10};

    MR_UNUSED(state);
    /* R: quantile(c(1, 2, 3, 4, 10), c(0, .1, .25, .5, .9, 1)) */
    assert_float_equal(mr_stats_quantile(values, 5, 0), 1, 0);
    assert_float_equal(mr_stats_quantile(values, 5, 0.1), 1.4, 1e-12);
    assert_float_equal(mr_stats_quantile(values, 5, 0.25), 2, 1e-12);
    assert_float_equal(mr_stats_quantile(values, 5, 0.5), 3, 1e-12);
    assert_float_equal(mr_stats_quantile(values, 5, 0.9), 7.6, 1e-12);
    assert_float_equal(mr_stats_quantile(values, 5, 1), 10, 0);
}

static void an_even_count_has_its_median_in_the_middle(void **state)
{
    const double values[] = {4, 1, 3, 2};

    MR_UNUSED(state);
    assert_float_equal(stats_of(values, 4).median, 2.5, 0);
    assert_float_equal(values[0], 4, 0); /* order kept */
}

static void equal_values_have_no_interval(void **state)
{
    const double values[] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    struct mr_stats stats = stats_of(values, 10);

    MR_UNUSED(state);
    assert_float_equal(stats.low, 7, 0);
    assert_float_equal(stats.high, 7, 0);
    assert_int_equal(stats.count, 10);
}

/*
 * Of 1..9 the median of a draw is at most m with probability P(Binomial(9, m/9) >= 5):
 * 0.022 at 2, 0.145 at 3: the 2.5 % point of the draws is 3, and by symmetry 7 the other.
 */
static void the_interval_is_the_bootstraps(void **state)
{
    const double values[] = {5, 1, 9, 2, 8, 3, 7, 4, 6};
    struct mr_stats stats = stats_of(values, 9);

    MR_UNUSED(state);
    assert_float_equal(stats.median, 5, 0);
    assert_float_equal(stats.low, 3, 1);
    assert_float_equal(stats.high, 7, 1);
    assert_true(stats.low > 1 && stats.high < 9);
}

static void one_outlier_moves_nothing(void **state)
{
    const double values[] = {10, 10.1, 9.9, 10, 10.2, 9.8, 10, 10.1, 9.9, 100000};
    struct mr_stats stats = stats_of(values, 10);

    MR_UNUSED(state);
    assert_float_equal(stats.median, 10, 0.1);
    assert_true(stats.high < 11);
}

static void what_is_absent_is_left_out(void **state)
{
    const double top[] = {2, (double)NAN, 6, 8}, bottom[] = {1, 5, 0, 4};
    struct mr_stats stats = stats_of(top, 4);

    MR_UNUSED(state);
    assert_int_equal(stats.count, 3);
    assert_float_equal(stats.median, 6, 0);
    assert_int_equal(mr_stats_of_ratio(top, bottom, 4, &stats), MR_OK);
    assert_int_equal(stats.count, 2);
    assert_float_equal(stats.median, 2, 0);
    assert_int_equal(mr_stats_of_difference(top, bottom, 4, &stats), MR_OK);
    assert_int_equal(stats.count, 3);
    assert_float_equal(stats.median, 4, 0);
    assert_int_equal(mr_stats_of(top + 1, 1, &stats), MR_OK);
    assert_int_equal(stats.count, 0);
    assert_true(isnan(stats.median) && isnan(stats.low) && isnan(stats.high));
}

static void the_interval_of_random_samples_mostly_holds_the_median(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    int held = 0;

    MR_UNUSED(state);
    for (int i = 0; i < 200; i++) {
        double values[20];
        struct mr_stats stats;

        for (int j = 0; j < 20; j++)
            values[j] = (double)mr_test_random_below(&random, 1000001);
        stats = stats_of(values, 20);
        assert_true(stats.low <= stats.median && stats.median <= stats.high);
        held += stats.low <= 500000 && 500000 <= stats.high;
    }
    assert_true(held >= 170); /* 190 are expected; 170 is 6 deviations off */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_type_7),
        cmocka_unit_test(an_even_count_has_its_median_in_the_middle),
        cmocka_unit_test(equal_values_have_no_interval),
        cmocka_unit_test(the_interval_is_the_bootstraps),
        cmocka_unit_test(one_outlier_moves_nothing),
        cmocka_unit_test(what_is_absent_is_left_out),
        cmocka_unit_test(the_interval_of_random_samples_mostly_holds_the_median),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
