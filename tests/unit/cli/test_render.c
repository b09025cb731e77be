/* SPDX-License-Identifier: Apache-2.0 */
/* cli/render.h: numbers with units, and grids. */
#include "cli/render.h"

#include "tests/unit/unit_test.h"

#include <stdlib.h>
#include <string.h>

static char text[MR_RENDER_SIZE];

static void times_have_three_digits_and_a_unit(void **state)
{
    MR_UNUSED(state);
    assert_string_equal(mr_render_ns(0, text), "0 ns");
    assert_string_equal(mr_render_ns(999, text), "999 ns");
    assert_string_equal(mr_render_ns(1000, text), "1.00 µs");
    assert_string_equal(mr_render_ns(12345, text), "12.3 µs");
    assert_string_equal(mr_render_ns(999499, text), "999 µs");
    assert_string_equal(mr_render_ns(999500, text), "1.00 ms");
    assert_string_equal(mr_render_ns(9995000, text), "10.0 ms");
    assert_string_equal(mr_render_ns(UINT64_C(123456789012), text), "123 s");
    assert_string_equal(mr_render_ns(UINT64_C(123456789012345), text), "123457 s");
}

static void counts_show_all_their_digits(void **state)
{
    MR_UNUSED(state);
    assert_string_equal(mr_render_count(0, text), "0");
    assert_string_equal(mr_render_count(999, text), "999");
    assert_string_equal(mr_render_count(1000, text), "1,000");
    assert_string_equal(mr_render_count(1234567, text), "1,234,567");
    assert_string_equal(mr_render_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
}

static void bytes_count_in_powers_of_1024(void **state)
{
    MR_UNUSED(state);
    assert_string_equal(mr_render_bytes(999, text), "999 B");
    assert_string_equal(mr_render_bytes(1024, text), "1.00 KiB");
    assert_string_equal(mr_render_bytes(64 << 20, text), "64.0 MiB");
}

static void shares_never_round_something_to_nothing_or_to_all(void **state)
{
    MR_UNUSED(state);
    assert_string_equal(mr_render_share(0, 10, text), "0.0 %");
    assert_string_equal(mr_render_share(1, 1000000, text), "< 0.1 %");
    assert_string_equal(mr_render_share(123, 1000, text), "12.3 %");
    assert_string_equal(mr_render_share(999999, 1000000, text), "> 99.9 %");
    assert_string_equal(mr_render_share(10, 10, text), "100.0 %");
    assert_string_equal(mr_render_share(0, 0, text), "-");
}

static void a_range_shows_the_larger_error(void **state)
{
    MR_UNUSED(state);
    assert_string_equal(mr_render_range_ns(1000, 990, 1020, text), "1.00 µs ±2.0 %");
    assert_string_equal(mr_render_range_ns(1000, 600, 1020, text), "1.00 µs ±40 %");
    assert_string_equal(mr_render_range_ns(1000, 1000, 1000, text), "1.00 µs");
    assert_string_equal(mr_render_range_ns(0, 0, 0, text), "0 ns");
}

static void widths_count_characters_not_bytes(void **state)
{
    MR_UNUSED(state);
    assert_int_equal(mr_text_width(""), 0);
    assert_int_equal(mr_text_width("1.00 µs"), 7);
    assert_int_equal(mr_text_width("±"), 1);
}

static const struct mr_column columns[] = {
    {"self", MR_RIGHT}, {"module", MR_LEFT}, {"function", MR_LEFT_CUT}};

static void fill(struct mr_grid *grid)
{
    mr_grid_init(grid, columns, MR_ARRAY_COUNT(columns));
    mr_grid_cell(grid, "1.00 µs");
    mr_grid_cell(grid, "%s", "app");
    mr_grid_cell(grid, "%s", "short");
    mr_grid_cell(grid, "%d ns", 1);
    mr_grid_cell(grid, "%s", "libthing.so");
    mr_grid_cell(grid, "%s", "a_function_with_a_very_long_name");
}

static void expect(const struct mr_grid *grid, size_t width, const char *expected)
{
    struct mr_buffer out;

    mr_buffer_init(&out, 4096);
    assert_int_equal(mr_grid_render(grid, width, &out), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&out, 0), MR_OK);
    assert_string_equal((const char *)out.data, expected);
    mr_buffer_fini(&out);
}

static void columns_are_aligned(void **state)
{
    struct mr_grid grid;

    MR_UNUSED(state);
    fill(&grid);
    expect(&grid, 0,
           "   self  module       function\n"
           "1.00 µs  app          short\n"
           "   1 ns  libthing.so  a_function_with_a_very_long_name\n");
    mr_grid_fini(&grid);
}

static void long_names_lose_their_middle_on_a_narrow_terminal(void **state)
{
    struct mr_grid grid;

    MR_UNUSED(state);
    fill(&grid);
    expect(&grid, 42,
           "   self  module       function\n"
           "1.00 µs  app          short\n"
           "   1 ns  libthing.so  a_functio…_long_name\n");
    expect(&grid, 10, /* no column gives more than it must keep */
           "   self  module       function\n"
           "1.00 µs  app          short\n"
           "   1 ns  libthing.so  a_funct…ong_name\n");
    mr_grid_fini(&grid);
}

static void empty_columns_are_left_out(void **state)
{
    struct mr_grid grid;

    MR_UNUSED(state);
    mr_grid_init(&grid, columns, MR_ARRAY_COUNT(columns));
    for (int i = 0; i < 2; i++) {
        mr_grid_cell(&grid, "%d", i);
        mr_grid_cell(&grid, "%s", "");
        mr_grid_cell(&grid, "%s", i ? "f" : "");
    }
    expect(&grid, 0, "self  function\n   0  \n   1  f\n");
    mr_grid_fini(&grid);
    mr_grid_init(&grid, columns, MR_ARRAY_COUNT(columns));
    mr_grid_cell(&grid, "%s", "1 ns");
    mr_grid_cell(&grid, "%s", "x");
    mr_grid_cell(&grid, "%s", "");
    expect(&grid, 0, "self  module\n1 ns  x\n");
    mr_grid_fini(&grid);
}

static void cells_and_titles_are_plain_text(void **state)
{
    static const struct mr_column named[] = {{"a\x1b[0m", MR_LEFT}, {"b\n", MR_LEFT_CUT}};
    struct mr_grid grid;

    MR_UNUSED(state);
    mr_grid_init(&grid, named, MR_ARRAY_COUNT(named));
    mr_grid_cell(&grid, "%s", "x\x1b[31m\ny");
    mr_grid_cell(&grid, "%s",
                 "\xe2\x80\xae"
                 "fdp.exe\xff");
    expect(&grid, 0, "a?[0m     b?\nx?[31m?y  ?fdp.exe?\n");
    mr_grid_fini(&grid);
}

static void a_very_long_name_keeps_both_ends_and_whole_characters(void **state)
{
    static const struct mr_column one[] = {{"f", MR_LEFT_CUT}};
    struct mr_grid grid;
    struct mr_buffer out;
    char name[4096], *at = name;

    MR_UNUSED(state);
    for (int i = 0; i < 2000; i++)
        at = strcpy(at, "\xd7\x90") + 2;
    (void)strcpy(at, "tail");
    mr_grid_init(&grid, one, 1);
    mr_grid_cell(&grid, "head%s", name);
    mr_buffer_init(&out, 4096);
    assert_int_equal(mr_grid_render(&grid, 0, &out), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&out, 0), MR_OK);
    assert_non_null(strstr((const char *)out.data, "\nhead\xd7\x90"));
    assert_non_null(strstr((const char *)out.data, "\xd7\x90tail\n"));
    assert_int_equal(mr_text_width(strchr((const char *)out.data, '\n') + 1),
                     MR_CELL_WIDTH_MAX + 1);
    mr_buffer_fini(&out);
    mr_grid_fini(&grid);
}

static void lines_hold_names_and_end_themselves(void **state)
{
    struct mr_buffer out;

    MR_UNUSED(state);
    mr_buffer_init(&out, 4096);
    assert_int_equal(mr_render_line(&out, "%s", ""), MR_OK);
    assert_int_equal(mr_render_line(&out, "one %s, ", "\n"), MR_OK);
    assert_int_equal(mr_render_line(&out, "two %s", "\x1b\n"), MR_OK);
    assert_int_equal(mr_render_line(&out, "%s\n", "\xff\n"), MR_OK);
    assert_int_equal(mr_buffer_append_byte(&out, 0), MR_OK);
    assert_string_equal((const char *)out.data, "one ?, two ????\n");
    mr_buffer_fini(&out);
}

static void a_full_buffer_is_told(void **state)
{
    struct mr_grid grid;
    struct mr_buffer out;

    MR_UNUSED(state);
    fill(&grid);
    mr_buffer_init(&out, 40);
    assert_int_equal(mr_grid_render(&grid, 0, &out), MR_ELIMIT);
    mr_buffer_fini(&out);
    mr_grid_fini(&grid);
}

static void many_rows_all_appear(void **state)
{
    static const struct mr_column one[] = {{"n", MR_RIGHT}};
    struct mr_grid grid;
    struct mr_buffer out;
    size_t lines = 0;

    MR_UNUSED(state);
    mr_grid_init(&grid, one, 1);
    for (int i = 0; i < 1000; i++)
        mr_grid_cell(&grid, "%d", i);
    mr_buffer_init(&out, 1 << 20);
    assert_int_equal(mr_grid_render(&grid, 0, &out), MR_OK);
    for (size_t i = 0; i < out.size; i++)
        lines += out.data[i] == '\n';
    assert_int_equal(lines, 1001);
    mr_buffer_fini(&out);
    mr_grid_fini(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_have_three_digits_and_a_unit),
        cmocka_unit_test(counts_show_all_their_digits),
        cmocka_unit_test(bytes_count_in_powers_of_1024),
        cmocka_unit_test(shares_never_round_something_to_nothing_or_to_all),
        cmocka_unit_test(a_range_shows_the_larger_error),
        cmocka_unit_test(widths_count_characters_not_bytes),
        cmocka_unit_test(columns_are_aligned),
        cmocka_unit_test(long_names_lose_their_middle_on_a_narrow_terminal),
        cmocka_unit_test(empty_columns_are_left_out),
        cmocka_unit_test(cells_and_titles_are_plain_text),
        cmocka_unit_test(a_very_long_name_keeps_both_ends_and_whole_characters),
        cmocka_unit_test(lines_hold_names_and_end_themselves),
        cmocka_unit_test(a_full_buffer_is_told),
        cmocka_unit_test(many_rows_all_appear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
