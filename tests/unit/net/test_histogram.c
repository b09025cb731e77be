/* SPDX-License-Identifier: Apache-2.0 */
#include "net/histogram.h"

#include <math.h>

#include "tests/unit/net/net_test.h"

static void powers_of_two_end_their_bucket(void **state)
{
    (void)state;
    assert_int_equal(mr_histogram_index5(1), -1);
    assert_int_equal(mr_histogram_index5(2), 31);
    assert_int_equal(mr_histogram_index5(3), 50); /* 32 * log2(3) = 50.7 */
    assert_int_equal(mr_histogram_index5(1000), 318);
    assert_int_equal(mr_histogram_index5(UINT64_MAX), 2047);
    for (int bit = 0; bit < 64; bit++)
        assert_int_equal(mr_histogram_index5(UINT64_C(1) << bit), 32 * bit - 1);
    for (int bit = 6; bit < 64; bit++)
        assert_int_equal(mr_histogram_index5((UINT64_C(1) << bit) + 1), 32 * bit);
}

/* The greatest integer of bucket `index`: floor(2^((index + 1) / 32)), from long double where that is exact enough. */
static void boundaries_of_integers_below_2_to_the_50_are_exact(void **state)
{
    (void)state;
    for (int index = 0; index < 32 * 50; index++) {
        long double bound = exp2l((long double)(index + 1) / 32);
        uint64_t last = (uint64_t)bound;

        if ((index + 1) % 32 != 0 && fabsl(bound - roundl(bound)) < 1e-9L * bound)
            continue; /* too close to call in 64 bits of mantissa */
        assert_true(mr_histogram_index5(last) <= index);
        assert_true(mr_histogram_index5(last + 1) > index);
    }
}

/* m is above 2^63 * 2^(k/32) when m^32 > 2^(63 * 32 + k); compared in numbers of 32 * 64 bits. */
struct big {
    uint32_t limb[65];
};

static void big_multiply(struct big *value, uint64_t by)
{
    struct big result = {{0}};
    const uint32_t halves[2] = {(uint32_t)by, (uint32_t)(by >> 32)};

    for (int half = 0; half < 2; half++) {
        uint64_t carry = 0;

        for (int i = 0; i + half < 65; i++) {
            uint64_t sum =
                (uint64_t)value->limb[i] * halves[half] + result.limb[i + half] + carry;

            result.limb[i + half] = (uint32_t)sum;
            carry = sum >> 32;
        }
    }
    *value = result;
}

static bool power_is_above(uint64_t mantissa, int bit)
{
    struct big power = {{1}};

    for (int i = 0; i < 32; i++)
        big_multiply(&power, mantissa);
    for (int i = 64; i > bit / 32; i--) {
        if (power.limb[i])
            return true;
    }
    return power.limb[bit / 32] >> bit % 32 != 0; /* never equal, but for k = 0 */
}

static uint64_t last_of_sub_bucket(int k)
{
    uint64_t low = UINT64_C(1) << 63, high = UINT64_MAX;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2 + 1;

        if (power_is_above(middle, 63 * 32 + k))
            high = middle - 1;
        else
            low = middle;
    }
    return low;
}

static void boundaries_of_the_largest_integers_are_exact(void **state)
{
    (void)state;
    for (int k = 1; k < 32; k++) {
        uint64_t last = last_of_sub_bucket(k);

        assert_int_equal(mr_histogram_index5(last), 63 * 32 + k - 1);
        assert_int_equal(mr_histogram_index5(last + 1), 63 * 32 + k);
    }
}

static uint64_t random_value(struct mr_test_random *random)
{
    return mr_test_random_next(random) >> mr_test_random_below(random, 64);
}

static bool same(const struct mr_histogram *x, const struct mr_histogram *y)
{
    return x->zero == y->zero && x->count == y->count &&
           (x->count == 0 ||
            (x->scale == y->scale && x->first == y->first &&
             memcmp(x->counts, y->counts, x->count * sizeof(*x->counts)) == 0));
}

static void random_order(struct mr_test_random *random, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int j = (int)mr_test_random_below(random, (uint64_t)i + 1);

        order[i] = order[j];
        order[j] = i;
    }
}

/* Values of one, spread over parts, merged in two orders. */
static void merging_is_the_same_in_any_order(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct mr_histogram whole = MR_HISTOGRAM_EMPTY, sums[2], parts[8];
        uint64_t shift = mr_test_random_below(&random, 60);

        sums[0] = sums[1] = MR_HISTOGRAM_EMPTY;
        for (int i = 0; i < 8; i++)
            parts[i] = MR_HISTOGRAM_EMPTY;
        for (int i = 0; i < 300; i++) {
            uint64_t value = random_value(&random) >> shift, count = 1 + (uint64_t)i % 3;

            assert_int_equal(mr_histogram_add(&whole, value, count), MR_OK);
            assert_int_equal(
                mr_histogram_add(&parts[mr_test_random_below(&random, 8)], value, count),
                MR_OK);
        }
        for (int s = 0; s < 2; s++) {
            int order[8];

            random_order(&random, order, 8);
            for (int i = 0; i < 8; i++)
                assert_int_equal(mr_histogram_merge(&sums[s], &parts[order[i]]), MR_OK);
            assert_true(same(&whole, &sums[s]));
        }
        for (int i = 0; i < 8; i++)
            mr_histogram_fini(&parts[i]);
        mr_histogram_fini(&sums[0]);
        mr_histogram_fini(&sums[1]);
        mr_histogram_fini(&whole);
    }
}

static void the_scale_is_the_largest_at_which_all_fits(void **state)
{
    struct mr_histogram h = MR_HISTOGRAM_EMPTY;

    (void)state;
    assert_int_equal(mr_histogram_add(&h, 2, 1), MR_OK); /* index 31 */
    assert_int_equal(h.scale, 5);
    assert_int_equal(mr_histogram_add(&h, UINT64_C(1) << 16, 1), MR_OK); /* index 511 */
    assert_int_equal(h.scale, 5);
    assert_int_equal(h.count, 481);
    assert_int_equal(mr_histogram_add(&h, 1, 1), MR_OK); /* index -1: 513 buckets */
    assert_int_equal(h.scale, 4);
    assert_int_equal(h.first, -1);
    assert_int_equal(h.count, 257);
    assert_int_equal(mr_histogram_add(&h, UINT64_MAX, 1), MR_OK);
    assert_int_equal(h.scale, 2);
    assert_int_equal(h.count, 257);
    assert_int_equal(mr_histogram_total(&h), 4);
    mr_histogram_fini(&h);
}

static int compare(const void *x, const void *y)
{
    uint64_t a, b;

    memcpy(&a, x, sizeof(a));
    memcpy(&b, y, sizeof(b));
    return (a > b) - (a < b);
}

static void a_quantile_lies_within_the_bounds_that_are_told(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    uint64_t values[1000];

    (void)state;
    for (int round = 0; round < 100; round++) {
        struct mr_histogram h = MR_HISTOGRAM_EMPTY;
        uint64_t shift = mr_test_random_below(&random, 60);

        for (int i = 0; i < 1000; i++) {
            values[i] = random_value(&random) >> shift;
            assert_int_equal(mr_histogram_add(&h, values[i], 1), MR_OK);
        }
        qsort(values, 1000, sizeof(values[0]), compare);
        for (int rank = 1; rank <= 1000; rank += 37) {
            double value, low, high, truth = (double)values[rank - 1];

            assert_int_equal(
                mr_histogram_quantile(&h, (rank - 0.5) / 1000, &value, &low, &high),
                MR_OK);
            assert_true(low <= truth * (1 + 1e-15) && truth <= high * (1 + 1e-15));
            assert_true(low <= value && value <= high);
        }
        mr_histogram_fini(&h);
    }
}

static void an_empty_histogram_has_no_quantile_and_zeros_are_zero(void **state)
{
    struct mr_histogram h = MR_HISTOGRAM_EMPTY;
    double value, low, high;

    (void)state;
    assert_int_equal(mr_histogram_quantile(&h, 0.5, &value, &low, &high), MR_ENOTFOUND);
    assert_int_equal(mr_histogram_add(&h, 0, 3), MR_OK);
    assert_int_equal(mr_histogram_add(&h, 1, 1), MR_OK);
    assert_int_equal(mr_histogram_quantile(&h, 0.75, &value, &low, &high), MR_OK);
    assert_true(value == 0 && low == 0 && high == 0);
    assert_int_equal(mr_histogram_quantile(&h, 1, &value, &low, &high), MR_OK);
    assert_true(value == 1 && low == 1 && high == 1);
    mr_histogram_fini(&h);
}

static void counts_stop_at_the_largest_number(void **state)
{
    struct mr_histogram h = MR_HISTOGRAM_EMPTY;

    (void)state;
    assert_int_equal(mr_histogram_add(&h, 5, UINT64_MAX), MR_OK);
    assert_int_equal(mr_histogram_add(&h, 5, 2), MR_OK);
    assert_int_equal(h.counts[0], UINT64_MAX);
    assert_int_equal(mr_histogram_total(&h), UINT64_MAX);
    mr_histogram_fini(&h);
}

static void buckets_that_no_value_has_are_refused(void **state)
{
    static uint64_t counts[3000];
    struct mr_histogram h = MR_HISTOGRAM_EMPTY;

    (void)state;
    for (int i = 0; i < 3000; i++)
        counts[i] = 1;
    assert_int_equal(mr_histogram_add_buckets(&h, 6, 0, counts, 1), MR_EFORMAT);
    assert_int_equal(mr_histogram_add_buckets(&h, -1, 0, counts, 1), MR_EFORMAT);
    assert_int_equal(mr_histogram_add_buckets(&h, 5, -2, counts, 1), MR_EFORMAT);
    assert_int_equal(mr_histogram_add_buckets(&h, 5, 2048, counts, 1), MR_EFORMAT);
    assert_int_equal(mr_histogram_add_buckets(&h, 5, 0, counts, 2049), MR_EFORMAT);
    assert_int_equal(mr_histogram_add_buckets(&h, 4, 0, counts, 256),
                     MR_EFORMAT); /* fits 5 */
    assert_int_equal(h.count, 0);
    assert_int_equal(mr_histogram_add_buckets(&h, 5, -1, counts, 2049), MR_OK);
    assert_int_equal(h.scale, 2);
    assert_int_equal(mr_histogram_total(&h), 2049);
    mr_histogram_fini(&h);
}

static void zeros_at_the_ends_of_buckets_are_left_out(void **state)
{
    static const uint64_t counts[] = {0, 0, 7, 0, 8, 0};
    struct mr_histogram h = MR_HISTOGRAM_EMPTY;

    (void)state;
    assert_int_equal(mr_histogram_add_buckets(&h, 5, 10, counts, 6), MR_OK);
    assert_int_equal(h.first, 12);
    assert_int_equal(h.count, 3);
    assert_int_equal(mr_histogram_add_buckets(&h, 5, 0, counts, 2), MR_OK);
    assert_int_equal(h.count, 3);
    mr_histogram_fini(&h);
}

static void assert_wire(const struct mr_histogram *h, const char *hex)
{
    struct mr_histogram read = MR_HISTOGRAM_EMPTY;
    struct mr_buffer buffer;
    struct mr_span span;

    mr_buffer_init(&buffer, 1 << 20);
    assert_int_equal(mr_histogram_put(h, &buffer), MR_OK);
    span = mr_buffer_span(&buffer);
    if (hex)
        assert_hex(span, hex);
    assert_int_equal(mr_histogram_get(&read, &span), MR_OK);
    assert_int_equal(span.size, 0);
    assert_true(same(h, &read));
    mr_histogram_fini(&read);
    mr_buffer_fini(&buffer);
}

static void a_histogram_on_the_wire_is_its_occupied_range(void **state)
{
    struct mr_histogram h = MR_HISTOGRAM_EMPTY;

    (void)state;
    assert_wire(&h, "00 00 00 00");
    assert_int_equal(mr_histogram_add(&h, 0, 300), MR_OK);
    assert_wire(&h, "ac02 00 00 00");
    assert_int_equal(mr_histogram_add(&h, 1000, 2), MR_OK); /* 318 */
    assert_int_equal(mr_histogram_add(&h, 1050, 1), MR_OK); /* 321 */
    assert_wire(&h, "ac02 0a fc04 04 02 00 00 01");
    mr_histogram_clear(&h);
    assert_int_equal(mr_histogram_add(&h, 1, 1), MR_OK);
    assert_wire(&h, "00 0a 01 01 01");
    assert_int_equal(mr_histogram_add(&h, UINT64_MAX, 1), MR_OK);
    assert_wire(&h, NULL);
    mr_histogram_fini(&h);
}

/* Counts of one byte come in runs, between longer ones; other bytes follow. */
static void random_counts(struct mr_test_random *random, uint64_t *counts, uint32_t n)
{
    uint32_t longer = 1 + (uint32_t)mr_test_random_below(random, 32);

    for (uint32_t i = 0; i < n; i++) {
        bool is_long = mr_test_random_below(random, longer) == 0;
        uint64_t shift = is_long ? mr_test_random_below(random, 64) : 57;

        counts[i] = mr_test_random_next(random) >> shift;
    }
    counts[0] += counts[0] == 0;
    counts[n - 1] += counts[n - 1] == 0;
}

static void counts_of_any_size_come_back_and_no_byte_more_is_taken(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 300; round++) {
        uint32_t n = 1 + (uint32_t)mr_test_random_below(&random, 60);
        struct mr_histogram h = MR_HISTOGRAM_EMPTY, read = MR_HISTOGRAM_EMPTY;
        uint64_t counts[64] = {0};
        struct mr_buffer buffer;
        struct mr_span span;
        size_t size;

        random_counts(&random, counts, n);
        assert_int_equal(mr_histogram_add_buckets(&h, 5, 100, counts, n), MR_OK);
        mr_buffer_init(&buffer, 1 << 20);
        assert_int_equal(mr_histogram_put(&h, &buffer), MR_OK);
        size = buffer.size;
        assert_int_equal(mr_buffer_append(&buffer, "\1\2\3\4\5\6\7\10\11", 9), MR_OK);
        span = mr_buffer_span(&buffer);
        assert_int_equal(mr_histogram_get(&read, &span), MR_OK);
        assert_int_equal(span.size, 9);
        assert_true(same(&h, &read));
        assert_memory_equal(read.counts, counts, n * sizeof(*counts));
        for (size_t cut = 0; cut < size; cut++) {
            span = mr_span_of(buffer.data, cut);
            assert_int_equal(mr_histogram_get(&read, &span), MR_EFORMAT);
        }
        mr_histogram_fini(&h);
        mr_histogram_fini(&read);
        mr_buffer_fini(&buffer);
    }
}

static enum mr_status get_hex(const char *hex)
{
    struct mr_histogram h = MR_HISTOGRAM_EMPTY;
    struct mr_test_bytes bytes = mr_test_bytes(hex);
    struct mr_span span = mr_test_span(&bytes);
    enum mr_status status = mr_histogram_get(&h, &span);

    mr_histogram_fini(&h);
    return status;
}

static void bytes_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    assert_int_equal(get_hex("00 0a 02 01 01"), MR_OK);
    assert_int_equal(get_hex("00 0a 02 01 00"), MR_EFORMAT);    /* not occupied */
    assert_int_equal(get_hex("00 0a 02 02 01 00"), MR_EFORMAT); /* last not occupied */
    assert_int_equal(get_hex("00 0a 02 02 01"), MR_EFORMAT);    /* cut */
    assert_int_equal(get_hex("00 0a"), MR_EFORMAT);
    assert_int_equal(get_hex("00 0c 02 01 01"), MR_EFORMAT);   /* scale 6 */
    assert_int_equal(get_hex("00 01 02 01 01"), MR_EFORMAT);   /* scale -1 */
    assert_int_equal(get_hex("00 08 02 01 01"), MR_EFORMAT);   /* scale 4 without need */
    assert_int_equal(get_hex("00 0a 03 01 01"), MR_EFORMAT);   /* first -2 */
    assert_int_equal(get_hex("00 0a 8020 01 01"), MR_EFORMAT); /* first 2048 */
    assert_int_equal(get_hex("00 0a 02 8104"), MR_EFORMAT);    /* 513 buckets */
    assert_int_equal(get_hex("00 0a 00 00"), MR_EFORMAT);      /* empty, with a scale */
    assert_int_equal(get_hex("00 00 02 00"), MR_EFORMAT);      /* empty, with a first */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two_end_their_bucket),
        cmocka_unit_test(boundaries_of_integers_below_2_to_the_50_are_exact),
        cmocka_unit_test(boundaries_of_the_largest_integers_are_exact),
        cmocka_unit_test(merging_is_the_same_in_any_order),
        cmocka_unit_test(the_scale_is_the_largest_at_which_all_fits),
        cmocka_unit_test(a_quantile_lies_within_the_bounds_that_are_told),
        cmocka_unit_test(an_empty_histogram_has_no_quantile_and_zeros_are_zero),
        cmocka_unit_test(counts_stop_at_the_largest_number),
        cmocka_unit_test(buckets_that_no_value_has_are_refused),
        cmocka_unit_test(zeros_at_the_ends_of_buckets_are_left_out),
        cmocka_unit_test(a_histogram_on_the_wire_is_its_occupied_range),
        cmocka_unit_test(counts_of_any_size_come_back_and_no_byte_more_is_taken),
        cmocka_unit_test(bytes_that_break_a_rule_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
