/* SPDX-License-Identifier: Apache-2.0 */
/* bench/result.h, bench/chart.h: the same results as JSON lines, tables, a chart. */
#include "bench/result.h"

#include "base/compiler.h"
#include "bench/chart.h"
#include "tests/unit/unit_test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct mr_table_column columns[] = {
    {"ns", "ns_per_call", NULL, MR_TABLE_VALUE, 1},
    {"+-", "ns_per_call", NULL, MR_TABLE_ERROR, 2},
    {"x floor", "ns_per_call", "floor", MR_TABLE_RATIO, 3},
    {"never", "other", NULL, MR_TABLE_VALUE, 1},
    {"lost", NULL, NULL, MR_TABLE_LOST, 0},
};

static struct mr_stats stats(double median, double low, double high)
{
    return (struct mr_stats){.median = median, .low = low, .high = high, .count = 10};
}

static void fill(struct mr_results *results)
{
    const struct mr_result on = {.name = "hooks/tsc/tiny/tcp",
                                 .metric = "ns_per_call",
                                 .unit = "ns",
                                 .value = stats(17.25, 17, 18),
                                 .ratio_to = "floor",
                                 .ratio = stats(1.02, 1.01, 1.03),
                                 .has_lost = true,
                                 .lost = 3};
    const struct mr_result off = {.name = "a<b>&/none/tiny/off",
                                  .metric = "ns_per_call",
                                  .unit = "ns",
                                  .value = stats(1, (double)NAN, (double)NAN)};

    *results = (struct mr_results){.bench = "probe", .discarded = 2};
    assert_int_equal(mr_results_add(results, &on), MR_OK);
    assert_int_equal(mr_results_add(results, &off), MR_OK);
}

/* The text of a buffer, until the next call. */
static const char *text_of(struct mr_buffer *out)
{
    assert_int_equal(mr_buffer_append_byte(out, 0), MR_OK);
    return (const char *)out->data;
}

static void a_line_of_json_has_all_its_members(void **state)
{
    struct mr_results results;
    struct mr_buffer out;
    json_t *line;

    MR_UNUSED(state);
    fill(&results);
    mr_buffer_init(&out, 10000);
    assert_int_equal(mr_result_json(&results, &results.items[0], &out), MR_OK);
    line = json_loads(text_of(&out), 0, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "bench")), "probe");
    assert_string_equal(json_string_value(json_object_get(line, "case")),
                        "hooks/tsc/tiny/tcp");
    assert_string_equal(json_string_value(json_object_get(line, "metric")),
                        "ns_per_call");
    assert_float_equal(json_number_value(json_object_get(line, "value")), 17.25, 0);
    assert_string_equal(json_string_value(json_object_get(line, "unit")), "ns");
    assert_string_equal(json_string_value(json_object_get(line, "ratio_to")), "floor");
    assert_float_equal(json_number_value(json_object_get(line, "ratio")), 1.02, 1e-9);
    assert_int_equal(json_integer_value(json_object_get(line, "lost")), 3);
    assert_int_equal(json_integer_value(json_object_get(line, "loops")), 10);
    assert_int_equal(json_integer_value(json_object_get(line, "discarded")), 2);
    assert_true(json_is_false(json_object_get(line, "partial")));
    json_decref(line);
    mr_buffer_fini(&out);
    mr_results_fini(&results);
}

static void what_is_absent_is_null(void **state)
{
    static const char *const absent[] = {"lost", "ratio_to", "ratio", "low", "high"};
    struct mr_results results;
    struct mr_buffer out;
    json_t *line;

    MR_UNUSED(state);
    fill(&results);
    mr_buffer_init(&out, 10000);
    assert_int_equal(mr_result_json(&results, &results.items[1], &out), MR_OK);
    line = json_loads(text_of(&out), 0, NULL);
    assert_non_null(line);
    for (size_t i = 0; i < MR_ARRAY_COUNT(absent); i++)
        assert_true(json_is_null(json_object_get(line, absent[i])));
    json_decref(line);
    mr_buffer_fini(&out);
    mr_results_fini(&results);
}

static void a_table_leaves_empty_columns_out(void **state)
{
    struct mr_results results;
    struct mr_buffer out;

    MR_UNUSED(state);
    fill(&results);
    mr_buffer_init(&out, 10000);
    assert_int_equal(
        mr_results_table(&results, columns, MR_ARRAY_COUNT(columns), MR_TABLE_TEXT, &out),
        MR_OK);
    assert_string_equal(text_of(&out),
                        "case                   ns    +-  x floor  lost\n"
                        "hooks/tsc/tiny/tcp   17.2  0.50    1.020     3\n"
                        "a<b>&/none/tiny/off   1.0     -        -     -\n");
    mr_buffer_clear(&out);
    assert_int_equal(mr_results_table(&results, columns, MR_ARRAY_COUNT(columns),
                                      MR_TABLE_MARKDOWN, &out),
                     MR_OK);
    assert_non_null(strstr(text_of(&out), "\n| ---"));
    mr_buffer_fini(&out);
    mr_results_fini(&results);
}

static bool begins_with(const char *name, size_t part)
{
    return name[0] == (part == 0 ? 'h' : part == 1 ? 'a' : 'z');
}

static void a_table_of_some_cases_ends_with_an_empty_line(void **state)
{
    struct mr_results results;
    struct mr_buffer out;

    MR_UNUSED(state);
    fill(&results);
    mr_buffer_init(&out, 10000);
    assert_int_equal(mr_results_table_of(&results, begins_with, 1, columns,
                                         MR_ARRAY_COUNT(columns), MR_TABLE_TEXT, &out),
                     MR_OK);
    assert_string_equal(text_of(&out), "case                  ns\n"
                                       "a<b>&/none/tiny/off  1.0\n\n");
    mr_buffer_clear(&out);
    assert_int_equal(mr_results_table_of(&results, begins_with, 2, columns,
                                         MR_ARRAY_COUNT(columns), MR_TABLE_TEXT, &out),
                     MR_OK);
    assert_int_equal(out.size, 0);
    mr_buffer_fini(&out);
    mr_results_fini(&results);
}

static void a_chart_is_escaped_and_whole(void **state)
{
    const struct mr_chart chart = {.title = "a <call>",
                                   .metric = "ns_per_call",
                                   .unit = "ns",
                                   .line = 16.9,
                                   .line_name = "floor",
                                   .group_part = 2};
    struct mr_results results;
    struct mr_buffer out;
    const char *text;

    MR_UNUSED(state);
    fill(&results);
    mr_buffer_init(&out, 100000);
    assert_int_equal(mr_chart_draw(&chart, &results, &out), MR_OK);
    text = text_of(&out);
    assert_non_null(strstr(text, "a &lt;call&gt;"));
    assert_non_null(strstr(text, "a&lt;b&gt;&amp;/none/tiny/off"));
    assert_non_null(strstr(text, "17.25 ns"));
    assert_non_null(strstr(text, ">floor<"));
    assert_non_null(strstr(text, "</svg>\n"));
    assert_null(strstr(text, "nan"));
    mr_buffer_fini(&out);
    mr_results_fini(&results);
}

/* As `bench overhead --sweep all` has them: each point is a group. */
static void a_chart_draws_every_group(void **state)
{
    const struct mr_chart chart = {
        .title = "", .metric = "ns", .unit = "ns", .line = (double)NAN, .group_part = 1};
    struct mr_results results = {.bench = "overhead"};
    struct mr_buffer out;
    size_t bars = 0;

    MR_UNUSED(state);
    for (int i = 0; i < 40; i++) {
        struct mr_result result = {
            .metric = "ns", .unit = "ns", .value = stats(25000, 20000, 123456)};

        (void)snprintf(result.name, sizeof(result.name), "none/d%d", i);
        assert_int_equal(mr_results_add(&results, &result), MR_OK);
    }
    mr_buffer_init(&out, 100000);
    assert_int_equal(mr_chart_draw(&chart, &results, &out), MR_OK);
    for (const char *at = text_of(&out); (at = strstr(at, "class=\"bar\"")) != NULL; at++)
        bars++;
    assert_int_equal(bars, 40);
    assert_non_null(strstr(text_of(&out), ">25000 ns<"));
    assert_null(strstr(text_of(&out), "e+"));
    assert_null(strstr(text_of(&out), "INTERRUPTED"));
    mr_buffer_fini(&out);
    mr_results_fini(&results);
}

/* A label ends left of its bar; what does not fit is cut off at the picture's edge. */
static void a_chart_has_room_for_its_longest_case(void **state)
{
    static const char name[] = "reconstruction/patchable-clang/monotonic/block/d10-t1-m0";
    const struct mr_chart chart = {
        .title = "", .metric = "ns", .unit = "ns", .line = (double)NAN, .group_part = -1};
    struct mr_results results = {.bench = "overhead", .is_partial = true};
    struct mr_result result = {.metric = "ns", .unit = "ns", .value = stats(1, 1, 1)};
    struct mr_buffer out;
    const char *bar;

    MR_UNUSED(state);
    (void)snprintf(result.name, sizeof(result.name), "%s", name);
    assert_int_equal(mr_results_add(&results, &result), MR_OK);
    mr_buffer_init(&out, 100000);
    assert_int_equal(mr_chart_draw(&chart, &results, &out), MR_OK);
    bar = strstr(text_of(&out), "<rect x=\"");
    assert_non_null(bar);
    assert_true(strtod(bar + strlen("<rect x=\""), NULL) > 6.0 * (double)strlen(name));
    assert_non_null(strstr(text_of(&out), "INTERRUPTED"));
    mr_buffer_fini(&out);
    mr_results_fini(&results);
}

static void no_results_make_an_empty_chart_and_table(void **state)
{
    const struct mr_chart chart = {
        .title = "", .metric = "x", .unit = "ns", .line = (double)NAN, .group_part = -1};
    struct mr_results results = {.bench = "probe"};
    struct mr_buffer out;

    MR_UNUSED(state);
    mr_buffer_init(&out, 100000);
    assert_int_equal(mr_chart_draw(&chart, &results, &out), MR_OK);
    assert_int_equal(mr_results_table(&results, columns, 1, MR_TABLE_TEXT, &out), MR_OK);
    mr_buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_json_has_all_its_members),
        cmocka_unit_test(what_is_absent_is_null),
        cmocka_unit_test(a_table_leaves_empty_columns_out),
        cmocka_unit_test(a_table_of_some_cases_ends_with_an_empty_line),
        cmocka_unit_test(a_chart_is_escaped_and_whole),
        cmocka_unit_test(a_chart_draws_every_group),
        cmocka_unit_test(a_chart_has_room_for_its_longest_case),
        cmocka_unit_test(no_results_make_an_empty_chart_and_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
