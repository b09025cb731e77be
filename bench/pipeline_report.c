/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/chart.h"
#include "bench/machine.h"
#include "bench/pipeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum mr_status mr_pipeline_add(struct mr_pipeline_bench *bench, const char *name,
                               const char *metric, const char *unit, const double *values,
                               size_t count, const char *ratio_to, const double *bottom)
{
    return mr_results_add_values(&bench->results, name, metric, unit, values, count,
                                 ratio_to, bottom);
}

static const struct mr_table_column part_columns[] = {
    {"ns/event", "ns_per_event", NULL, MR_TABLE_VALUE, 2},
    {"+-", "ns_per_event", NULL, MR_TABLE_ERROR, 2},
    {"x plain", "ns_per_event", "plain", MR_TABLE_RATIO, 2},
    {"x consed", "ns_per_event", "consed", MR_TABLE_RATIO, 2},
    {"lost", NULL, NULL, MR_TABLE_LOST, 0},
};
static const struct mr_table_column lane_columns[] = {
    {"wall ns/event", "wall_ns_per_event", NULL, MR_TABLE_VALUE, 2},
    {"+-", "wall_ns_per_event", NULL, MR_TABLE_ERROR, 2},
    {"x one lane", "wall_ns_per_event", "lanes-1", MR_TABLE_RATIO, 2},
};
static const struct mr_table_column runner_columns[] = {
    {"ns/batch", "ns_per_batch", NULL, MR_TABLE_VALUE, 1},
    {"ns/row", "ns_per_row", NULL, MR_TABLE_VALUE, 1},
    {"ns/function", "ns_per_function", NULL, MR_TABLE_VALUE, 0},
};
static const struct mr_table_column share_columns[] = {
    {"% of calls", "calls_percent", NULL, MR_TABLE_VALUE, 2},
    {"% of time", "time_percent", NULL, MR_TABLE_VALUE, 2},
    {"traces", "traces", NULL, MR_TABLE_VALUE, 0},
    {"shapes", "shapes", NULL, MR_TABLE_VALUE, 0},
};
static const struct mr_table_column end_columns[] = {
    {"ns/event", "ns_per_event", NULL, MR_TABLE_VALUE, 2},
    {"+-", "ns_per_event", NULL, MR_TABLE_ERROR, 2},
    {"x discard", "ns_per_event", "discard", MR_TABLE_RATIO, 3},
    {"program CPU s", "cpu_seconds_program", NULL, MR_TABLE_VALUE, 2},
    {"writer", "cpu_seconds_writer", NULL, MR_TABLE_VALUE, 2},
    {"taker", "cpu_seconds_taker", NULL, MR_TABLE_VALUE, 2},
    {"master", "cpu_seconds_master", NULL, MR_TABLE_VALUE, 2},
    {"lost", NULL, NULL, MR_TABLE_LOST, 0},
};

/* By how cases begin; what begins otherwise is of the first. */
static const struct {
    const char *prefix;
    const struct mr_table_column *columns;
    size_t count;
} tables[] = {
    {"", part_columns, MR_ARRAY_COUNT(part_columns)},
    {"lanes-", lane_columns, MR_ARRAY_COUNT(lane_columns)},
    {"runner/", runner_columns, MR_ARRAY_COUNT(runner_columns)},
    {"share/", share_columns, MR_ARRAY_COUNT(share_columns)},
    {"end/", end_columns, MR_ARRAY_COUNT(end_columns)},
};

static bool is_of(const char *name, size_t table)
{
    for (size_t i = 1; i < MR_ARRAY_COUNT(tables); i++)
        if (strncmp(name, tables[i].prefix, strlen(tables[i].prefix)) == 0)
            return i == table;
    return table == 0;
}

static enum mr_status put_tables(void *context, enum mr_table_form form,
                                 struct mr_buffer *out)
{
    const struct mr_pipeline_bench *bench = context;
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < MR_ARRAY_COUNT(tables) && status == MR_OK; i++)
        status = mr_results_table_of(&bench->results, is_of, i, tables[i].columns,
                                     tables[i].count, form, out);
    if (status == MR_OK)
        status = mr_buffer_append_format(
            out,
            "%sMedians of %" PRIu64 " loops, %" PRIu32
            " discarded for stolen time; +- is half of a 95 %% bootstrap interval. ns "
            "are "
            "of CPU time,\nper event (a call has two); plain: the same work as one loop "
            "that trusts its input; consed: with each subtree of a shape interned; see "
            "docs/BENCHMARKS.md.\n",
            bench->is_partial ? MR_BENCH_INTERRUPTED : "", bench->options.loops,
            bench->discarded);
    return status == MR_OK ? mr_bench_report_put_skipped(&bench->report, out) : status;
}

/* Bars of whole lanes and workers. */
static enum mr_status put_chart(void *context, struct mr_buffer *out)
{
    const struct mr_pipeline_bench *bench = context;
    const struct mr_chart chart = {.title =
                                       "an event, ns of CPU time (median, 95 % interval)",
                                   .metric = "ns_per_event",
                                   .unit = "ns",
                                   .line = (double)NAN,
                                   .group_part = 1};

    return mr_chart_draw(&chart, &bench->results, out);
}

enum mr_status mr_pipeline_write(struct mr_pipeline_bench *bench, struct mr_error *error)
{
    static const struct mr_bench_file files[] = {{"pipeline.svg", put_chart}};
    const struct mr_bench_output output = {.results = &bench->results,
                                           .tables = put_tables,
                                           .files = files,
                                           .file_count = MR_ARRAY_COUNT(files),
                                           .bench = bench,
                                           .is_json = bench->options.json};

    bench->results.bench = "pipeline";
    bench->results.discarded = bench->discarded;
    bench->results.is_partial = bench->is_partial;
    return mr_bench_report_write(&bench->report, &output, error);
}
