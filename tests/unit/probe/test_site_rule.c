/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit_test.h"

#include "probe/site_rule.h"

#include <string.h>

/* As a symbol table has them: by address, two of one function. */
static struct mr_symbol items[] = {
    {.address = 0x100, .size = 8, .name = "alpha"},
    {.address = 0x200, .size = 8, .name = "beta"},
    {.address = 0x200, .size = 8, .name = "beta_alias"},
    {.address = 0x300, .size = 8, .name = "operator_like"},
};
static const struct mr_symbols symbols = {.items = items, .count = 4};
static struct mr_site_rule rule;
#if defined(__aarch64__)
static const uint32_t loop[] = {0xd503201f, 0x17ffffff}; /* nop; b back to it */
#else
static const uint8_t loop[] = {0x90, 0xeb, 0xfd}; /* the same on x86-64 */
#endif

static void make(const char *only, const char *except, uint64_t min_size)
{
    static struct mr_site_globs a, b;
    struct mr_site_filter filter = {.only = a.items, .except = b.items};

    assert_int_equal(mr_site_globs_parse(&a, only, NULL), MR_OK);
    assert_int_equal(mr_site_globs_parse(&b, except, NULL), MR_OK);
    filter.only_count = a.count;
    filter.except_count = b.count;
    filter.min_size = min_size;
    assert_int_equal(mr_site_rule_init(&rule, &filter, true, NULL), MR_OK);
}

static bool matches(uint64_t address, uint64_t size)
{
    return mr_site_rule_matches(&rule, &symbols, address, size);
}

static void nothing_chosen_is_everything(void **state)
{
    (void)state;
    make("", "", 0);
    assert_true(mr_site_rule_is_all(&rule));
    assert_true(matches(0x100, 1));
    assert_true(matches(0x999, 0));
}

static void only_and_except_look_at_every_name(void **state)
{
    (void)state;
    make("al*, *_alias", "", 0);
    assert_true(matches(0x100, 1));
    assert_true(matches(0x200, 1));
    assert_false(matches(0x300, 1));
    assert_false(matches(0x999, 1)); /* has no name */
    make("", "beta", 0);
    assert_true(matches(0x100, 1));
    assert_false(matches(0x200, 1));
    assert_true(matches(0x999, 1));
}

static void a_small_function_is_left_out(void **state)
{
    (void)state;
    make("", "", 64);
    assert_false(mr_site_rule_is_all(&rule));
    assert_false(matches((uintptr_t)loop, 0));
    assert_true(matches(0x100, 64));
}

static void what_loops_is_never_too_small(void **state)
{
    (void)state;
    make("", "", 64);
    assert_true(matches((uintptr_t)loop, sizeof(loop)));
    make("alpha", "", 64);
    assert_false(matches((uintptr_t)loop, sizeof(loop)));
}

static void globs_that_matched_nothing_are_told(void **state)
{
    uint32_t at = 0;

    (void)state;
    make("alpha,nobody", "none_*", 0);
    (void)matches(0x100, 1);
    assert_string_equal(mr_site_rule_unmatched(&rule, &at), "nobody");
    assert_string_equal(mr_site_rule_unmatched(&rule, &at), "none_*");
    assert_null(mr_site_rule_unmatched(&rule, &at));
}

static void blanks_inside_a_glob_belong_to_it(void **state)
{
    static struct mr_site_globs globs;

    (void)state;
    assert_int_equal(mr_site_globs_parse(&globs, " operator new ,\tx", NULL), MR_OK);
    assert_int_equal(globs.count, 2);
    assert_string_equal(globs.items[0], "operator new");
    assert_string_equal(globs.items[1], "x");
}

static void bad_lists_are_refused(void **state)
{
    static struct mr_site_globs globs;
    static char text[2 * MR_SITE_FILTER_TEXT];
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    assert_int_equal(mr_site_globs_parse(&globs, "a,,b", &error), MR_EUSAGE);
    assert_non_null(strstr(error.text, "a,,b"));
    memset(text, 'a', sizeof(text) - 1);
    assert_int_equal(mr_site_globs_parse(&globs, text, NULL), MR_ELIMIT);
    for (size_t i = 1; i < 2 * MR_SITE_GLOBS_MAX + 4; i += 2)
        text[i] = ',';
    text[2 * MR_SITE_GLOBS_MAX + 4] = '\0';
    assert_int_equal(mr_site_globs_parse(&globs, text, NULL), MR_ELIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_chosen_is_everything),
        cmocka_unit_test(only_and_except_look_at_every_name),
        cmocka_unit_test(a_small_function_is_left_out),
        cmocka_unit_test(what_loops_is_never_too_small),
        cmocka_unit_test(globs_that_matched_nothing_are_told),
        cmocka_unit_test(blanks_inside_a_glob_belong_to_it),
        cmocka_unit_test(bad_lists_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
