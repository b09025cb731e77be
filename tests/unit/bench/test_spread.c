/* SPDX-License-Identifier: Apache-2.0 */
/* bench/spread.h: against sorted arrays. */
#include "bench/spread.h"

#include "bench/stats.h"
#include "tests/unit/unit_test.h"

#include <math.h>
#include <stdlib.h>

#define COUNT 20000

static uint32_t random_value(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) >> (*state >> 59); /* all magnitudes */
}

static void is_what_sorting_finds(void **unused)
{
    static const double shares[] = {0, 0.25, 0.5, 0.75, 0.99, 0.999, 1};
    struct mr_spread *spread = mr_spread_new(), *all = mr_spread_new();
    double *values = malloc(COUNT * sizeof(*values)), sum = 0;
    uint64_t state = 7;

    (void)unused;
    assert_non_null(spread);
    assert_non_null(all);
    assert_non_null(values);
    for (int i = 0; i < COUNT; i++) {
        uint32_t value = random_value(&state);

        values[i] = value;
        sum += value;
        mr_spread_add(spread, value);
        if (i == COUNT / 3) { /* in two parts */
            mr_spread_merge(all, spread);
            mr_spread_clear(spread);
        }
    }
    mr_spread_merge(all, spread);
    mr_stats_sort(values, COUNT);
    assert_int_equal(all->count, COUNT);
    assert_int_equal(all->least, values[0]);
    assert_int_equal(all->largest, values[COUNT - 1]);
    assert_true(fabs(mr_spread_mean(all) - sum / COUNT) < 1e-6 * sum / COUNT);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        size_t rank = (size_t)ceil(shares[i] * COUNT);
        double truth = values[rank > 0 ? rank - 1 : 0];
        double found = mr_spread_quantile(all, shares[i]);

        assert_true(found >= truth && found <= truth * (1 + 1.0 / 2048) + 1e-9);
        assert_true(mr_spread_share(all, found) >= shares[i]);
    }
    free(values);
    mr_spread_free(all);
    mr_spread_free(spread);
}

static void edges(void **unused)
{
    struct mr_spread *spread = mr_spread_new();

    (void)unused;
    assert_non_null(spread);
    assert_true(isnan(mr_spread_mean(spread)));
    assert_true(isnan(mr_spread_quantile(spread, 0.5)));
    assert_true(isnan(mr_spread_deviation(spread)));
    mr_spread_add(spread, UINT32_MAX);
    mr_spread_add(spread, 0);
    assert_true(mr_spread_quantile(spread, 0.5) <= 0);
    assert_true(mr_spread_quantile(spread, 1) >= UINT32_MAX);
    assert_true(fabs(mr_spread_deviation(spread) - UINT32_MAX / sqrt(2)) < 1);
    assert_true(fabs(mr_spread_share(spread, 5) - 0.5) < 1e-12);
    mr_spread_free(spread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_what_sorting_finds),
        cmocka_unit_test(edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
