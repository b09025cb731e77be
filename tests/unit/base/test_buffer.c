/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buffer.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static void assert_holds(const struct mr_buffer *buffer, const char *text)
{
    assert_true(mr_span_equal(mr_buffer_span(buffer), mr_span_of_text(text)));
}

static void a_new_buffer_is_empty_and_owns_nothing(void **state)
{
    struct mr_buffer buffer;

    (void)state;
    mr_buffer_init(&buffer, 10);
    assert_int_equal(buffer.size, 0);
    assert_null(buffer.data);
    assert_int_equal(mr_buffer_append(&buffer, NULL, 0), MR_OK);
    mr_buffer_fini(&buffer);
    mr_buffer_fini(&buffer);
}

static void what_is_appended_stays_in_order(void **state)
{
    struct mr_buffer buffer;

    (void)state;
    mr_buffer_init(&buffer, 1000);
    assert_int_equal(mr_buffer_append(&buffer, "ab", 2), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&buffer, 'c'), MR_OK);
    assert_int_equal(mr_buffer_append_text(&buffer, "de"), MR_OK);
    assert_int_equal(mr_buffer_append_format(&buffer, "%d-%s", 42, "x"), MR_OK);
    assert_int_equal(mr_buffer_append_le(&buffer, 0x6261, 2), MR_OK);
    assert_holds(&buffer, "abcde42-xab");
    mr_buffer_fini(&buffer);
}

static void past_the_limit_it_says_so_and_keeps_what_it_had(void **state)
{
    struct mr_buffer buffer;
    uint8_t *at;

    (void)state;
    mr_buffer_init(&buffer, 4);
    assert_int_equal(mr_buffer_append_text(&buffer, "abc"), MR_OK);
    assert_int_equal(mr_buffer_append_text(&buffer, "de"), MR_ELIMIT);
    assert_int_equal(mr_buffer_append_format(&buffer, "%d", 12), MR_ELIMIT);
    assert_int_equal(mr_buffer_reserve(&buffer, SIZE_MAX, &at), MR_ELIMIT);
    assert_holds(&buffer, "abc");
    assert_int_equal(mr_buffer_append_text(&buffer, "d"), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&buffer, 'e'), MR_ELIMIT);
    assert_true(buffer.capacity <= 4);
    mr_buffer_fini(&buffer);
}

static void reserved_bytes_count_once_they_are_committed(void **state)
{
    struct mr_buffer buffer;
    uint8_t *at;

    (void)state;
    mr_buffer_init(&buffer, 100);
    assert_int_equal(mr_buffer_reserve(&buffer, 10, &at), MR_OK);
    memcpy(at, "hello", 5);
    assert_int_equal(buffer.size, 0);
    mr_buffer_commit(&buffer, 5);
    assert_holds(&buffer, "hello");
    mr_buffer_fini(&buffer);
}

static void consuming_and_truncating_cut_the_ends(void **state)
{
    struct mr_buffer buffer;

    (void)state;
    mr_buffer_init(&buffer, 100);
    assert_int_equal(mr_buffer_append_text(&buffer, "abcdef"), MR_OK);
    mr_buffer_consume(&buffer, 2);
    assert_holds(&buffer, "cdef");
    mr_buffer_truncate(&buffer, 3);
    assert_holds(&buffer, "cde");
    mr_buffer_consume(&buffer, 3);
    assert_holds(&buffer, "");
    mr_buffer_fini(&buffer);
}

static void clearing_keeps_the_memory(void **state)
{
    struct mr_buffer buffer;
    const uint8_t *data;

    (void)state;
    mr_buffer_init(&buffer, 100);
    assert_int_equal(mr_buffer_append_text(&buffer, "abcdef"), MR_OK);
    data = buffer.data;
    mr_buffer_clear(&buffer);
    assert_int_equal(buffer.size, 0);
    assert_int_equal(mr_buffer_append_text(&buffer, "x"), MR_OK);
    assert_ptr_equal(buffer.data, data);
    mr_buffer_fini(&buffer);
}

static void memory_that_the_machine_does_not_have_is_a_status(void **state)
{
    const char *sanitizer = getenv("MR_SANITIZE");
    struct mr_buffer buffer;
    uint8_t *at;

    (void)state;
    if (sanitizer && *sanitizer)
        skip(); /* sanitizers end the program instead of returning NULL */
    mr_buffer_init(&buffer, SIZE_MAX);
    assert_int_equal(mr_buffer_append_text(&buffer, "abc"), MR_OK);
    assert_int_equal(mr_buffer_reserve(&buffer, SIZE_MAX / 2, &at), MR_ENOMEM);
    assert_holds(&buffer, "abc");
    mr_buffer_fini(&buffer);
}

/* The model is an array of bytes that is long enough. */
static void random_operations_agree_with_a_plain_array(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    uint8_t model[2048];
    size_t model_size = 0;
    struct mr_buffer buffer;

    (void)state;
    mr_buffer_init(&buffer, sizeof(model));
    for (int step = 0; step < 20000; step++) {
        uint8_t data[300];
        size_t size = (size_t)mr_test_random_below(&random, sizeof(data));
        enum mr_status expected = size <= sizeof(model) - model_size ? MR_OK : MR_ELIMIT;

        memset(data, step & 0xff, sizeof(data));
        assert_int_equal(mr_buffer_append(&buffer, data, size), expected);
        if (expected == MR_OK) {
            memcpy(model + model_size, data, size);
            model_size += size;
        }
        if (mr_test_random_below(&random, 3) == 0) {
            size = (size_t)mr_test_random_below(&random, model_size + 1);
            mr_buffer_consume(&buffer, size);
            memmove(model, model + size, model_size - size);
            model_size -= size;
        }
        assert_true(
            mr_span_equal(mr_buffer_span(&buffer), mr_span_of(model, model_size)));
    }
    mr_buffer_fini(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_buffer_is_empty_and_owns_nothing),
        cmocka_unit_test(what_is_appended_stays_in_order),
        cmocka_unit_test(past_the_limit_it_says_so_and_keeps_what_it_had),
        cmocka_unit_test(reserved_bytes_count_once_they_are_committed),
        cmocka_unit_test(consuming_and_truncating_cut_the_ends),
        cmocka_unit_test(clearing_keeps_the_memory),
        cmocka_unit_test(memory_that_the_machine_does_not_have_is_a_status),
        cmocka_unit_test(random_operations_agree_with_a_plain_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
