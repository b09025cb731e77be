/* SPDX-License-Identifier: Apache-2.0 */
#include "net/attach.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static struct mr_attach_message message;
static struct mr_error error;
static char text[MR_ATTACH_ANSWER_MAX];

static enum mr_status parse(const char *bytes, size_t size)
{
    memcpy(text, bytes, size);
    mr_error_clear(&error);
    return mr_attach_parse(text, size, &message, &error);
}

static void what_is_written_is_read(void **state)
{
    struct mr_attach_writer writer;
    char out[256];
    uint64_t number = 0;
    size_t size;

    (void)state;
    mr_attach_begin(&writer, out, sizeof(out), "on");
    mr_attach_put(&writer, "only", "%s", "parse_*");
    mr_attach_put(&writer, "only", "%s", "a b");
    mr_attach_put(&writer, "empty", "%s", "");
    mr_attach_put(&writer, "min-size", "%d", 64);
    size = mr_attach_end(&writer);
    assert_true(mr_attach_is_whole(out, size));
    assert_false(mr_attach_is_whole(out, size - 1));
    assert_int_equal(parse(out, size), MR_OK);
    assert_string_equal(message.word, "on");
    assert_int_equal(message.count, 4);
    assert_string_equal(message.fields[1].key, "only");
    assert_string_equal(message.fields[1].value, "a b");
    assert_string_equal(mr_attach_get(&message, "empty"), "");
    assert_null(mr_attach_get(&message, "except"));
    assert_true(mr_attach_get_u64(&message, "min-size", &number));
    assert_int_equal(number, 64);
    assert_false(mr_attach_get_u64(&message, "only", &number));
    assert_false(mr_attach_get_u64(&message, "empty", &number));
}

static void bytes_that_no_value_may_have_are_replaced(void **state)
{
    struct mr_attach_writer writer;
    char out[256];

    (void)state;
    mr_attach_begin(&writer, out, sizeof(out), "ok");
    mr_attach_put(&writer, "name", "%s", "a\nb\x7f\tc\xff\xc3\xa9");
    assert_int_equal(parse(out, mr_attach_end(&writer)), MR_OK);
    assert_string_equal(mr_attach_get(&message, "name"), "a?b??c?\xc3\xa9");
}

static void what_does_not_fit_is_told(void **state)
{
    struct mr_attach_writer writer;
    char out[128];

    (void)state;
    mr_attach_begin(&writer, out, sizeof(out), "ok");
    for (int i = 0; i < 20; i++)
        mr_attach_put(&writer, "name", "number %d", i);
    assert_int_equal(mr_attach_end(&writer), 0);
    assert_int_equal(parse(out, mr_attach_end_cut(&writer)), MR_OK);
    assert_string_equal(mr_attach_get(&message, "cut"), "1");
    assert_string_equal(mr_attach_get(&message, "name"), "number 0");
}

static void there_are_not_more_fields_than_can_be_read(void **state)
{
    struct mr_attach_writer writer;
    static char out[MR_ATTACH_ANSWER_MAX];

    (void)state;
    mr_attach_begin(&writer, out, sizeof(out), "ok");
    for (int i = 0; i < 2 * MR_ATTACH_FIELDS_MAX; i++)
        mr_attach_put(&writer, "n", "%d", i);
    assert_int_equal(parse(out, mr_attach_end_cut(&writer)), MR_OK);
    assert_int_equal(message.count, MR_ATTACH_FIELDS_MAX);
    assert_string_equal(mr_attach_get(&message, "cut"), "1");
}

static void a_message_that_breaks_a_rule_is_refused(void **state)
{
    static const struct {
        const char *bytes, *why;
        enum mr_status status;
    } cases[] = {
        {"millrace/1 on\n", "no empty line at the end", MR_EFORMAT},
        {"\n\n", "line 1 is not 'millrace/1 NAME'", MR_EFORMAT},
        {"hello on\n\n", "line 1 is not 'millrace/1 NAME'", MR_EFORMAT},
        {"millrace/1\n\n", "line 1 is not 'millrace/1 NAME'", MR_EFORMAT},
        {"millrace/2 on\n\n", "version 2, this is 1", MR_EVERSION},
        {"millrace/1 On\n\n", "line 1: 'On' is no name", MR_EFORMAT},
        {"millrace/1 on\nonly\n\n", "line 2 is not 'KEY VALUE'", MR_EFORMAT},
        {"millrace/1 on\na 1\nB 2\n\n", "line 3 is not 'KEY VALUE'", MR_EFORMAT},
        {"millrace/1 on\na 1\n\nmore", "more behind the empty line", MR_EFORMAT},
        {"millrace/1 on\r\n\n", "byte 13 is 0x0d", MR_EFORMAT},
        {"millrace/1 on\na \x7f\n\n", "byte 16 is 0x7f", MR_EFORMAT},
    };

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(cases); i++) {
        assert_int_equal(parse(cases[i].bytes, strlen(cases[i].bytes)), cases[i].status);
        assert_string_equal(error.text, cases[i].why);
    }
    assert_int_equal(parse("millrace/1 on\na \0\n\n", 19), MR_EFORMAT);
}

static void numbers_past_64_bits_are_none(void **state)
{
    static const char *const lines[] = {"millrace/1 on\nn 18446744073709551616\n\n",
                                        "millrace/1 on\nn -1\n\n",
                                        "millrace/1 on\nn 1x\n\n"};
    const char most[] = "millrace/1 on\nn 18446744073709551615\n\n";
    uint64_t number = 0;

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(lines); i++) {
        assert_int_equal(parse(lines[i], strlen(lines[i])), MR_OK);
        assert_false(mr_attach_get_u64(&message, "n", &number));
    }
    assert_int_equal(parse(most, strlen(most)), MR_OK);
    assert_true(mr_attach_get_u64(&message, "n", &number));
    assert_true(number == UINT64_MAX);
}

/* Mutations of a good message are read whole or refused, and never more than they are. */
static void damaged_messages_are_read_or_refused(void **state)
{
    static const char good[] = "millrace/1 on\nonly parse_*\nmin-size 64\n\n";
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char bytes[sizeof(good)];
        size_t size = sizeof(good) - 1;

        memcpy(bytes, good, sizeof(good));
        for (uint64_t i = 0; i <= mr_test_random_below(&random, 3); i++)
            bytes[mr_test_random_below(&random, size)] =
                (char)mr_test_random_below(&random, 256);
        if (parse(bytes, size) == MR_OK)
            assert_in_range(message.count, 0, 3);
        else
            assert_true(error.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(bytes_that_no_value_may_have_are_replaced),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(there_are_not_more_fields_than_can_be_read),
        cmocka_unit_test(a_message_that_breaks_a_rule_is_refused),
        cmocka_unit_test(numbers_past_64_bits_are_none),
        cmocka_unit_test(damaged_messages_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
