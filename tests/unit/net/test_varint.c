/* SPDX-License-Identifier: Apache-2.0 */
#include "net/varint.h"

#include "tests/unit/net/net_test.h"

static void check(uint64_t value, const char *hex)
{
    uint8_t bytes[MR_VARINT_MAX];
    size_t size = (size_t)(mr_varint_put(bytes, value) - bytes);
    struct mr_span span = mr_span_of(bytes, size);
    uint64_t read;

    assert_hex(span, hex);
    assert_int_equal(mr_varint_size(value), size);
    assert_true(mr_varint_get(&span, &read));
    assert_int_equal(read, value);
    assert_int_equal(span.size, 0);
}

static void a_varint_has_seven_bits_per_byte_low_ones_first(void **state)
{
    (void)state;
    check(0, "00");
    check(127, "7f");
    check(128, "8001");
    check(300, "ac02");
    check(UINT64_MAX, "ffffffffffffffffff01");
}

static void a_varint_that_is_cut_or_too_long_is_refused_and_left(void **state)
{
    static const char *const bad[] = {"", "80", "ffffffffffffffffff",
                                      "ffffffffffffffffff02", "80808080808080808080 00"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct mr_test_bytes bytes = mr_test_bytes(bad[i]);
        struct mr_span span = mr_test_span(&bytes);
        uint64_t value = 7;

        assert_false(mr_varint_get(&span, &value));
        assert_int_equal(span.size, bytes.size);
        assert_int_equal(value, 7);
    }
}

static void a_varint_above_32_bits_is_no_u32(void **state)
{
    struct mr_test_bytes bytes = mr_test_bytes("8080808010");
    struct mr_span span = mr_test_span(&bytes);
    uint32_t value = 0;

    (void)state;
    assert_false(mr_varint_get_u32(&span, &value));
    assert_int_equal(span.size, 5);
    bytes = mr_test_bytes("ffffffff0f");
    span = mr_test_span(&bytes);
    assert_true(mr_varint_get_u32(&span, &value));
    assert_int_equal(value, UINT32_MAX);
}

static void zigzag_keeps_small_numbers_of_either_sign_small(void **state)
{
    static const int64_t values[] = {0, -1, 1, -2, 63, -64, 64, INT64_MAX, INT64_MIN};
    static const char *const hex[] = {"00",
                                      "01",
                                      "02",
                                      "03",
                                      "7e",
                                      "7f",
                                      "8001",
                                      "feffffffffffffffff01",
                                      "ffffffffffffffffff01"};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        uint8_t bytes[MR_VARINT_MAX];
        struct mr_span span =
            mr_span_of(bytes, (size_t)(mr_zigzag_put(bytes, values[i]) - bytes));
        int64_t read;

        assert_hex(span, hex[i]);
        assert_true(mr_zigzag_get(&span, &read));
        assert_true(read == values[i]);
    }
}

static void random_numbers_come_back(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_buffer buffer;
    struct mr_span span;
    uint64_t values[1000], read;

    (void)state;
    mr_buffer_init(&buffer, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        values[i] = mr_test_random_next(&random) >> mr_test_random_below(&random, 64);
        assert_int_equal(mr_varint_append(&buffer, values[i]), MR_OK);
    }
    span = mr_buffer_span(&buffer);
    for (int i = 0; i < 1000; i++) {
        assert_true(mr_varint_get(&span, &read));
        assert_int_equal(read, values[i]);
    }
    assert_int_equal(span.size, 0);
    mr_buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_varint_has_seven_bits_per_byte_low_ones_first),
        cmocka_unit_test(a_varint_that_is_cut_or_too_long_is_refused_and_left),
        cmocka_unit_test(a_varint_above_32_bits_is_no_u32),
        cmocka_unit_test(zigzag_keeps_small_numbers_of_either_sign_small),
        cmocka_unit_test(random_numbers_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
