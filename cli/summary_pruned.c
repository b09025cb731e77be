/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that were called too often and did too little to be recorded, by their number of such calls. */
#include "cli/summary_private.h"

#include <stdlib.h>

#define ROWS_MAX 20

struct row {
    const struct mr_summary_function *function;
};

static int by_calls(const void *a, const void *b)
{
    const struct mr_summary_function *left = ((const struct row *)a)->function;
    const struct mr_summary_function *right = ((const struct row *)b)->function;

    if (left->pruned.calls != right->pruned.calls)
        return left->pruned.calls < right->pruned.calls ? 1 : -1;
    return left < right ? -1 : left > right;
}

static void put_row(const struct mr_summary_function *row, struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];

    mr_grid_cell(grid, "%s",
                 row->pruned.is_counted ? mr_render_count(row->pruned.calls, text)
                                        : "unknown");
    mr_grid_cell(grid, "%s", mr_render_count(row->calls, text));
    mr_grid_cell(grid, "%s", mr_render_ns(row->pruned.below_ns, text));
    mr_grid_cell(grid, "%s%s", row->name, row->pruned.sources ? "" : " (recorded again)");
}

static enum mr_status put_table(struct row *rows, size_t count, struct mr_buffer *out)
{
    static const struct mr_column columns[] = {{"counted only", MR_RIGHT},
                                               {"recorded", MR_RIGHT},
                                               {"median below", MR_RIGHT},
                                               {"function", MR_LEFT}};
    struct mr_grid grid;
    enum mr_status status;

    qsort(rows, count, sizeof(*rows), by_calls);
    mr_grid_init(&grid, columns, MR_ARRAY_COUNT(columns));
    for (size_t i = 0; i < count && i < ROWS_MAX; i++)
        put_row(rows[i].function, &grid);
    status = mr_grid_render(&grid, 0, out);
    mr_grid_fini(&grid);
    if (status == MR_OK && count > ROWS_MAX)
        status = mr_buffer_append_format(out, "and %zu more: --json tells of each\n",
                                         count - ROWS_MAX);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

enum mr_status mr_summary_put_pruned(const struct mr_summary *summary,
                                     struct mr_buffer *out)
{
    struct row *rows;
    enum mr_status status;
    char text[MR_RENDER_SIZE];
    size_t count = 0;

    if (summary->pruned_functions == 0)
        return MR_OK;
    rows = malloc(summary->function_count * sizeof(*rows));
    if (!rows)
        return MR_ENOMEM;
    for (size_t i = 0; i < summary->function_count; i++)
        if (summary->functions[i].pruned.was_pruned)
            rows[count++].function = &summary->functions[i];
    status = mr_buffer_append_format(
        out,
        "Pruned: %s calls were counted, each one, and not recorded (MILLRACE_PRUNE); "
        "their time is in that of\ntheir callers, and what they call is their callers', "
        "too.\n",
        mr_render_count(summary->pruned_calls, text));
    if (status == MR_OK)
        status = put_table(rows, count, out);
    free(rows);
    return status;
}
