/* SPDX-License-Identifier: Apache-2.0 */
#include "support_text.h"

#include "../unit_test.h"

#include <string.h>

void test_text_add(struct test_text *text, const char *format, ...)
{
    va_list args;
    char *line = NULL;

    if (text->count == text->capacity) {
        text->capacity = text->capacity ? 2 * text->capacity : 64;
        text->lines = realloc(text->lines, text->capacity * sizeof(char *));
        assert_non_null(text->lines);
    }
    va_start(args, format);
    assert_true(vasprintf(&line, format, args) >= 0);
    va_end(args);
    text->lines[text->count++] = line;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void test_text_sort(struct test_text *text)
{
    if (text->count)
        qsort(text->lines, text->count, sizeof(char *), compare);
}

void test_text_compare(struct test_text *expected, struct test_text *actual)
{
    uint32_t count = expected->count < actual->count ? expected->count : actual->count;

    test_text_sort(expected);
    test_text_sort(actual);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(expected->lines[i], actual->lines[i]) != 0)
            fail_msg("line %u\nexpected: %s\nactual:   %s", i, expected->lines[i],
                     actual->lines[i]);
    if (expected->count > count)
        fail_msg("missing: %s", expected->lines[count]);
    if (actual->count > count)
        fail_msg("not expected: %s", actual->lines[count]);
}

const char *test_text_find(const struct test_text *text, const char *prefix)
{
    for (uint32_t i = 0; i < text->count; i++)
        if (strncmp(text->lines[i], prefix, strlen(prefix)) == 0)
            return text->lines[i] + strlen(prefix);
    test_text_print(text);
    fail_msg("no line begins with %s", prefix);
    return NULL;
}

uint32_t test_text_count(const struct test_text *text, const char *prefix)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < text->count; i++)
        count += strncmp(text->lines[i], prefix, strlen(prefix)) == 0;
    return count;
}

void test_text_print(const struct test_text *text)
{
    for (uint32_t i = 0; i < text->count; i++)
        print_message("%s\n", text->lines[i]);
}

void test_text_fini(struct test_text *text)
{
    for (uint32_t i = 0; i < text->count; i++)
        free(text->lines[i]);
    free(text->lines);
    *text = (struct test_text){0};
}

void test_text_move(struct test_text *text, const char *prefix, struct test_text *into)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < text->count; i++) {
        if (strncmp(text->lines[i], prefix, strlen(prefix)) == 0) {
            test_text_add(into, "%s", text->lines[i]);
            free(text->lines[i]);
        } else {
            text->lines[kept++] = text->lines[i];
        }
    }
    text->count = kept;
}

void test_text_drop(struct test_text *text, const char *prefix)
{
    struct test_text dropped = {0};

    test_text_move(text, prefix, &dropped);
    test_text_fini(&dropped);
}
