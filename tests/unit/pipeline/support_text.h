/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted lines of text, to compare results by: what the model of a lane's deltas says and what the naive reference says.
 *
 *     struct test_text text = {0};
 *     test_text_add(&text, "path %s = %u", name, count);
 *     test_text_compare(&a, &b);             // sorts, fails with the first line that differs
 *     test_text_fini(&text);
 */
#ifndef MR_TESTS_UNIT_PIPELINE_SUPPORT_TEXT_H
#define MR_TESTS_UNIT_PIPELINE_SUPPORT_TEXT_H

#include <stdint.h>

#include "base/compiler.h"

struct test_text {
    char **lines;
    uint32_t count, capacity;
};

MR_PRINTF(2, 3) void test_text_add(struct test_text *text, const char *format, ...);
void test_text_sort(struct test_text *text);
/* Fails the test where the lines differ; `expected` first. */
void test_text_compare(struct test_text *expected, struct test_text *actual);
/* The first line that begins with `prefix`, behind it; fails the test if there is none. */
const char *test_text_find(const struct test_text *text, const char *prefix);
/* How many lines begin with `prefix`. */
uint32_t test_text_count(const struct test_text *text, const char *prefix);
/* Removes those that do. */
/* Moves the lines that begin with `prefix` to the end of `into`. */
void test_text_move(struct test_text *text, const char *prefix, struct test_text *into);
void test_text_drop(struct test_text *text, const char *prefix);
void test_text_print(const struct test_text *text);
void test_text_fini(struct test_text *text);

#endif
