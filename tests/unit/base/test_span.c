/* SPDX-License-Identifier: Apache-2.0 */
#include "base/span.h"

#include "tests/unit/unit_test.h"

static void taking_moves_the_front(void **state)
{
    struct mr_span rest = mr_span_of_text("abcdef");
    struct mr_span head;

    (void)state;
    assert_true(mr_span_take(&rest, 2, &head));
    assert_true(mr_span_equal(head, mr_span_of_text("ab")));
    assert_true(mr_span_equal(rest, mr_span_of_text("cdef")));
    assert_true(mr_span_take(&rest, 4, &head));
    assert_true(mr_span_is_empty(rest));
}

static void taking_too_much_changes_nothing(void **state)
{
    struct mr_span rest = mr_span_of_text("abc");
    struct mr_span head = mr_span_of_text("x");

    (void)state;
    assert_false(mr_span_take(&rest, 4, &head));
    assert_false(mr_span_take(&rest, SIZE_MAX, &head));
    assert_false(mr_span_skip(&rest, 4));
    assert_int_equal(rest.size, 3);
    assert_int_equal(head.size, 1);
}

static void an_empty_span_may_have_no_memory(void **state)
{
    struct mr_span rest = mr_span_of(NULL, 0);
    struct mr_span head;

    (void)state;
    assert_true(mr_span_take(&rest, 0, &head));
    assert_true(mr_span_skip(&rest, 0));
    assert_true(mr_span_equal(rest, mr_span_of_text("")));
}

static void integers_are_little_endian_at_any_alignment(void **state)
{
    static const uint8_t bytes[] = {0xff, 0x02, 0x01, 0x06, 0x05, 0x04, 0x03, 0x08,
                                    0,    0,    0,    0,    0,    0,    0x80};
    struct mr_span rest = mr_span_of(bytes, sizeof(bytes));
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;

    (void)state;
    assert_true(mr_span_take_u8(&rest, &u8));
    assert_true(mr_span_take_u16(&rest, &u16));
    assert_true(mr_span_take_u32(&rest, &u32));
    assert_true(mr_span_take_u64(&rest, &u64));
    assert_int_equal(u8, 0xff);
    assert_int_equal(u16, 0x0102);
    assert_int_equal(u32, 0x03040506);
    assert_true(u64 == UINT64_C(0x8000000000000008));
    assert_true(mr_span_is_empty(rest));
}

static void a_short_span_gives_no_integer(void **state)
{
    struct mr_span rest = mr_span_of_text("abc");
    struct mr_span none = mr_span_of(NULL, 0);
    uint64_t u64;
    uint32_t u32;
    uint16_t u16;
    uint8_t u8;

    (void)state;
    assert_false(mr_span_take_u64(&rest, &u64));
    assert_false(mr_span_take_u32(&rest, &u32));
    assert_false(mr_span_take_u16(&none, &u16));
    assert_false(mr_span_take_u8(&none, &u8));
    assert_int_equal(rest.size, 3);
}

static void spans_are_equal_by_their_bytes(void **state)
{
    (void)state;
    assert_true(mr_span_equal(mr_span_of("abc", 3), mr_span_of("abcd", 3)));
    assert_false(mr_span_equal(mr_span_of("abc", 3), mr_span_of("abd", 3)));
    assert_false(mr_span_equal(mr_span_of("abc", 3), mr_span_of("abc", 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taking_moves_the_front),
        cmocka_unit_test(taking_too_much_changes_nothing),
        cmocka_unit_test(an_empty_span_may_have_no_memory),
        cmocka_unit_test(integers_are_little_endian_at_any_alignment),
        cmocka_unit_test(a_short_span_gives_no_integer),
        cmocka_unit_test(spans_are_equal_by_their_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
