/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <string.h>

#define SIZE 64

static const char *valid(const char *from)
{
    static char text[SIZE];

    (void)strcpy(text, from);
    mr_text_make_valid(text, strlen(text));
    return text;
}

static const char *plain(const char *from)
{
    static char text[SIZE];

    (void)strcpy(text, from);
    text[mr_text_make_plain(text, strlen(text))] = '\0';
    return text;
}

static void characters_stay(void **state)
{
    static const char *const texts[] = {"",
                                        "plain(int) <b>\"'",
                                        "\xc2\xa0\xdf\xbf",
                                        "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80",
                                        "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
                                        "\xd7\x90\xe6\xbc\xa2"};

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(texts); i++) {
        assert_string_equal(valid(texts[i]), texts[i]);
        assert_string_equal(plain(texts[i]), texts[i]);
    }
}

static void what_is_no_character_becomes_a_question_mark_a_byte(void **state)
{
    static const char *const texts[][2] = {
        {"a\xff"
         "b\x80",
         "a?b?"},                              /* no first byte */
        {"\xc3(", "?("},                       /* cut by another character */
        {"\xe6\xbc", "??"},                    /* cut by the end */
        {"\xc1\xbf\xe0\x9f\xbf", "?????"},     /* longer than it must be */
        {"\xf0\x8f\xbf\xbf", "????"},          /* likewise */
        {"\xed\xa0\x80", "???"},               /* half of a pair */
        {"\xf4\x90\x80\x80\xf8", "?????"},     /* past the last character */
        {"\xe6\xe6\xbc\xa2", "?\xe6\xbc\xa2"}, /* the next one is whole */
    };

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(texts); i++) {
        assert_string_equal(valid(texts[i][0]), texts[i][1]);
        assert_string_equal(plain(texts[i][0]), texts[i][1]);
    }
}

static void controls_are_valid_and_not_plain(void **state)
{
    static const char *const texts[][2] = {
        {"\x1b[31mred\x1b]0;title\x07", "?[31mred?]0;title?"},
        {"one\ntwo\tthree\r\x7f", "one?two?three??"},
        {"\xc2\x80"
         "c1\xc2\x9b"
         "31m\xc2\x9f",
         "?c1?31m?"},
        {"\xe2\x80\xaegpj.exe\xe2\x81\xa6\xe2\x80\x8f\xd8\x9c", "?gpj.exe???"},
        {"a\xe2\x80\xa8"
         "b\xe2\x80\xa9",
         "a?b?"},
    };

    MR_UNUSED(state);
    for (size_t i = 0; i < MR_ARRAY_COUNT(texts); i++) {
        assert_string_equal(valid(texts[i][0]), texts[i][0]);
        assert_string_equal(plain(texts[i][0]), texts[i][1]);
    }
}

static void a_copy_is_plain_and_as_long_as_there_is_room(void **state)
{
    char copy[5];

    MR_UNUSED(state);
    assert_string_equal(mr_text_plain_copy("a\nb", copy, sizeof(copy)), "a?b");
    assert_string_equal(mr_text_plain_copy("abc\xc3\xa9", copy, sizeof(copy)), "abc?");
    assert_string_equal(mr_text_plain_copy("", copy, sizeof(copy)), "");
}

static void a_zero_byte_is_a_control(void **state)
{
    char text[] = {'a', '\0', 'b'};

    MR_UNUSED(state);
    assert_int_equal(mr_text_make_plain(text, sizeof(text)), sizeof(text));
    assert_memory_equal(text, "a?b", sizeof(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_stay),
        cmocka_unit_test(what_is_no_character_becomes_a_question_mark_a_byte),
        cmocka_unit_test(controls_are_valid_and_not_plain),
        cmocka_unit_test(a_copy_is_plain_and_as_long_as_there_is_room),
        cmocka_unit_test(a_zero_byte_is_a_control),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
