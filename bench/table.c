/* SPDX-License-Identifier: Apache-2.0 */
/* Results as a table: cases down, chosen metrics across. */
#include "bench/result.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COLUMNS_MAX 16
#define CELL_SIZE 40

struct table {
    const struct mr_results *results;
    const struct mr_table_column *columns;
    size_t column_count;
    enum mr_table_form form;
    size_t widths[COLUMNS_MAX + 1]; /* 0: empty, left out; the first is the case's */
    struct mr_buffer *out;
};

/* The account of a case is the same in all its results. */
static const char *lost_cell(const struct table *table, const char *name,
                             char out[CELL_SIZE])
{
    for (size_t i = 0; i < table->results->count; i++) {
        const struct mr_result *item = &table->results->items[i];

        if (strcmp(item->name, name) == 0 && item->has_lost) {
            (void)snprintf(out, CELL_SIZE, "%" PRIu64, item->lost);
            return out;
        }
    }
    return out;
}

static double chosen(const struct mr_result *result, enum mr_table_what what)
{
    if (what == MR_TABLE_ERROR)
        return (result->value.high - result->value.low) / 2;
    if (what == MR_TABLE_RATIO)
        return result->ratio_to ? result->ratio.median : (double)NAN;
    return result->value.median;
}

static const char *cell(const struct table *table, const char *name, size_t index,
                        char out[CELL_SIZE])
{
    const struct mr_table_column *column = &table->columns[index];
    const struct mr_result *result;
    double value;

    (void)snprintf(out, CELL_SIZE, "-");
    if (column->what == MR_TABLE_LOST)
        return lost_cell(table, name, out);
    result = mr_results_find(table->results, name, column->metric, column->ratio_to);
    if (!result)
        return out;
    value = chosen(result, column->what);
    if (!isfinite(value))
        return out;
    if (fabs(value) < 0.5 * pow(10, -column->decimals))
        value = 0; /* not "-0" */
    (void)snprintf(out, CELL_SIZE, "%.*f", column->decimals, value);
    return out;
}

static bool is_first_of_case(const struct mr_results *results, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(results->items[i].name, results->items[index].name) == 0)
            return false;
    return true;
}

static bool has_cells(const struct table *table, const char *name)
{
    char text[CELL_SIZE];

    for (size_t i = 0; i < table->column_count; i++)
        if (strcmp(cell(table, name, i, text), "-") != 0)
            return true;
    return false;
}

static bool is_row(const struct table *table, size_t index)
{
    return is_first_of_case(table->results, index) &&
           has_cells(table, table->results->items[index].name);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void measure(struct table *table)
{
    char text[CELL_SIZE];

    table->widths[0] = 4;
    for (size_t row = 0; row < table->results->count; row++) {
        const char *name = table->results->items[row].name;

        if (!is_row(table, row))
            continue;
        table->widths[0] = larger(table->widths[0], strlen(name));
        for (size_t i = 0; i < table->column_count; i++)
            if (strcmp(cell(table, name, i, text), "-") != 0)
                table->widths[i + 1] = larger(larger(table->widths[i + 1], strlen(text)),
                                              strlen(table->columns[i].title));
    }
}

static enum mr_status put_cell(const struct table *table, size_t index, const char *text)
{
    bool is_markdown = table->form == MR_TABLE_MARKDOWN;
    int width = (int)table->widths[index];

    if (width == 0)
        return MR_OK;
    return mr_buffer_append_format(table->out, index == 0 ? "%s%-*s" : "%s%*s",
                                   is_markdown  ? "| "
                                   : index == 0 ? ""
                                                : "  ",
                                   width + is_markdown, text);
}

static enum mr_status end_row(const struct table *table)
{
    return mr_buffer_append_text(table->out,
                                 table->form == MR_TABLE_MARKDOWN ? "|\n" : "\n");
}

static enum mr_status put_titles(const struct table *table)
{
    enum mr_status status = put_cell(table, 0, "case");

    for (size_t i = 0; i < table->column_count && status == MR_OK; i++)
        status = put_cell(table, i + 1, table->columns[i].title);
    if (status == MR_OK)
        status = end_row(table);
    for (size_t i = 0;
         i <= table->column_count && status == MR_OK && table->form == MR_TABLE_MARKDOWN;
         i++)
        status = put_cell(table, i, i == 0 ? "---" : "---:");
    return status == MR_OK && table->form == MR_TABLE_MARKDOWN ? end_row(table) : status;
}

static enum mr_status put_row(const struct table *table, const char *name)
{
    char text[CELL_SIZE];
    enum mr_status status = put_cell(table, 0, name);

    for (size_t i = 0; i < table->column_count && status == MR_OK; i++)
        status = put_cell(table, i + 1, cell(table, name, i, text));
    return status == MR_OK ? end_row(table) : status;
}

enum mr_status mr_results_table(const struct mr_results *results,
                                const struct mr_table_column *columns,
                                size_t column_count, enum mr_table_form form,
                                struct mr_buffer *out)
{
    struct table table = {.results = results,
                          .columns = columns,
                          .column_count = column_count,
                          .form = form,
                          .out = out};
    enum mr_status status;

    MR_ASSERT(column_count <= COLUMNS_MAX);
    measure(&table);
    status = put_titles(&table);
    for (size_t row = 0; row < results->count && status == MR_OK; row++)
        if (is_row(&table, row))
            status = put_row(&table, results->items[row].name);
    return status;
}

enum mr_status mr_results_table_of(const struct mr_results *results,
                                   bool (*is_of)(const char *name, size_t part),
                                   size_t part, const struct mr_table_column *columns,
                                   size_t column_count, enum mr_table_form form,
                                   struct mr_buffer *out)
{
    struct mr_results some = {.bench = results->bench};
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < results->count && status == MR_OK; i++)
        if (is_of(results->items[i].name, part))
            status = mr_results_add(&some, &results->items[i]);
    if (status == MR_OK && some.count > 0) {
        status = mr_results_table(&some, columns, column_count, form, out);
        if (status == MR_OK)
            status = mr_buffer_append_text(out, "\n");
    }
    mr_results_fini(&some);
    return status;
}
