/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <string.h>

#include "pipeline/bins.h"

#define HISTOGRAMS 5

static bool add(struct mr_bins *bins, struct mr_bin_pool *pool, uint64_t value)
{
    uint32_t bin = (uint32_t)(mr_histogram_index5(value) + 1);

    if (!mr_bins_has(bins, bin) && !mr_bins_grow(bins, pool, bin))
        return false;
    mr_bins_add(bins, pool, bin);
    return true;
}

static void expect_equal(const struct mr_histogram *a, const struct mr_histogram *b)
{
    assert_int_equal(a->zero, b->zero);
    assert_int_equal(a->scale, b->scale);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->count, b->count);
    if (a->count)
        assert_memory_equal(a->counts, b->counts, a->count * sizeof(uint64_t));
}

/* Some values often, as a count of bytes would pass 255; of what is added at once, one after the other. */
static void add_some(struct mr_test_random *random, struct mr_bin_pool *pool,
                     struct mr_bins *bins, struct mr_histogram *expected)
{
    uint64_t value = mr_test_random_next(random) >> mr_test_random_below(random, 64);
    uint32_t times = mr_test_random_below(random, 8) ? 1 : 600;

    value += value == 0;
    for (uint32_t i = 0; i < times; i++)
        assert_true(add(bins, pool, value));
    assert_int_equal(mr_histogram_add(expected, value, times), MR_OK);
}

/* Up to `words` counts are words; nobody who reads them sees a difference. */
static void check_pool(uint32_t words)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_bin_pool pool;

    mr_bin_pool_init(&pool, 1u << 20, words);
    for (int round = 0; round < 50; round++) {
        struct mr_bins bins[HISTOGRAMS] = {{0, 0, 0}};
        struct mr_histogram expected[HISTOGRAMS];
        uint32_t zeros = (uint32_t)mr_test_random_below(&random, 3);

        if (round % 10 == 9)
            mr_bin_pool_fini(&pool); /* as between bursts: it begins small again */
        else
            mr_bin_pool_reset(&pool);
        for (int i = 0; i < HISTOGRAMS; i++) {
            expected[i] = MR_HISTOGRAM_EMPTY;
            if (zeros)
                assert_int_equal(mr_histogram_add(&expected[i], 0, zeros), MR_OK);
        }
        for (int i = 0; i < 1000; i++) {
            uint32_t which = (uint32_t)mr_test_random_below(&random, HISTOGRAMS);

            add_some(&random, &pool, &bins[which], &expected[which]);
        }
        for (int i = 0; i < HISTOGRAMS; i++) {
            struct mr_histogram actual = MR_HISTOGRAM_EMPTY;

            assert_int_equal(mr_bins_put(&bins[i], &pool, zeros, &actual), MR_OK);
            expect_equal(&expected[i], &actual);
            mr_histogram_fini(&actual);
            mr_histogram_fini(&expected[i]);
        }
        assert_int_equal(pool.carries != NULL, pool.capacity > words);
    }
    mr_bin_pool_fini(&pool);
}

static void bins_say_what_a_histogram_says(void **state)
{
    (void)state;
    check_pool(UINT32_MAX);
    check_pool(0);
    check_pool(1u << 14); /* becomes bytes when it first grows */
}

static void expect_bin(const struct mr_bin_index *index, uint64_t value)
{
    if (value != 0)
        assert_int_equal(mr_bin_of(index, value), mr_histogram_index5(value) + 1);
}

static void the_index_agrees_with_the_histogram(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    static struct mr_bin_index index;

    (void)state;
    mr_bin_index_init(&index);
    for (uint64_t value = 1; value < 100000; value++)
        expect_bin(&index, value);
    for (uint32_t part = 0; part < 64; part++) /* on both sides of each boundary */
        for (uint32_t shift = 0; shift < 64; shift++) {
            expect_bin(&index, index.bounds[part] >> shift);
            expect_bin(&index, (index.bounds[part] >> shift) + 1);
        }
    for (int i = 0; i < 1000000; i++)
        expect_bin(&index, mr_test_random_next(&random) >> i % 64);
}

static void a_first_run_is_as_wide_as_there_is_room(void **state)
{
    struct mr_bin_pool pool;
    struct mr_bins bins = {0, 0, 0};

    (void)state;
    mr_bin_pool_init(&pool, 2 * MR_BINS_COUNT, UINT32_MAX);
    mr_bins_begin(&bins, &pool, MR_BINS_COUNT - 10, 32);
    assert_true(mr_bins_has(&bins, MR_BINS_COUNT - 1));
    assert_false(mr_bins_has(&bins, MR_BINS_COUNT));
    bins = (struct mr_bins){0, 0, 0};
    mr_bins_begin(&bins, &pool, 0, MR_BINS_COUNT);
    assert_int_equal(bins.count, MR_BINS_COUNT);
    bins = (struct mr_bins){0, 0, 0};
    mr_bins_begin(&bins, &pool, 0, MR_BINS_COUNT); /* is too full now */
    assert_int_equal(bins.count, 0);
    mr_bin_pool_fini(&pool);
}

static void a_full_pool_says_so_and_is_as_good_as_new_after_a_reset(void **state)
{
    struct mr_bin_pool pool;
    struct mr_bins bins[4096] = {{0, 0, 0}};
    uint32_t i;

    (void)state;
    mr_bin_pool_init(&pool, 2 * MR_BINS_COUNT, UINT32_MAX);
    for (i = 0; i < 4096 && add(&bins[i], &pool, 1000); i++)
        assert_true(pool.capacity <= pool.limit);
    assert_true(i >= 2 * MR_BINS_COUNT / 64 && i < 4096);
    assert_true(add(&bins[0], &pool, 1000)); /* what has its place still counts */
    mr_bin_pool_reset(&pool);
    memset(bins, 0, sizeof(bins));
    assert_true(add(&bins[0], &pool, 1));
    assert_true(add(&bins[0], &pool, UINT64_MAX)); /* the widest there is */
    mr_bin_pool_fini(&pool);
}

/* A run that was moved, with what it carries, and one in whose place another one begins with the next delta. */
static void carries_move_and_are_forgotten(void **state)
{
    struct mr_bin_pool pool;
    struct mr_bins bins = {0, 0, 0};
    struct mr_histogram histogram = MR_HISTOGRAM_EMPTY;

    (void)state;
    mr_bin_pool_init(&pool, 1u << 16, 0);
    for (int i = 0; i < 1000; i++)
        assert_true(add(&bins, &pool, 1000));
    assert_true(add(&bins, &pool, 1)); /* moves */
    assert_int_equal(mr_bins_put(&bins, &pool, 0, &histogram), MR_OK);
    assert_int_equal(mr_histogram_total(&histogram), 1001);
    mr_histogram_fini(&histogram);

    mr_bin_pool_reset(&pool);
    bins = (struct mr_bins){0, 0, 0};
    for (uint64_t value = 1; value < 1u << 20; value *= 2)
        assert_true(add(&bins, &pool, value));
    histogram = MR_HISTOGRAM_EMPTY;
    assert_int_equal(mr_bins_put(&bins, &pool, 0, &histogram), MR_OK);
    assert_int_equal(mr_histogram_total(&histogram), 20);
    mr_histogram_fini(&histogram);
    mr_bin_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_say_what_a_histogram_says),
        cmocka_unit_test(the_index_agrees_with_the_histogram),
        cmocka_unit_test(a_first_run_is_as_wide_as_there_is_room),
        cmocka_unit_test(carries_move_and_are_forgotten),
        cmocka_unit_test(a_full_pool_says_so_and_is_as_good_as_new_after_a_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
