/* SPDX-License-Identifier: Apache-2.0 */
/* Results -> tables, files. */
#include "bench/probe.h"

#include "bench/chart.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct mr_table_column small_columns[] = {
    {"ns/call", "ns_per_call", NULL, MR_TABLE_VALUE, 2},
    {"+-", "ns_per_call", NULL, MR_TABLE_ERROR, 2},
    {"x floor", "ns_per_call", "floor", MR_TABLE_RATIO, 3},
    {"added ns", "added_ns_per_call", NULL, MR_TABLE_VALUE, 2},
    {"over nops", "added_ns_over_nops", NULL, MR_TABLE_VALUE, 2},
    {"p50", "p50", NULL, MR_TABLE_VALUE, 1},
    {"p99", "p99", NULL, MR_TABLE_VALUE, 1},
    {"p99.9", "p99.9", NULL, MR_TABLE_VALUE, 1},
    {"p99.99", "p99.99", NULL, MR_TABLE_VALUE, 0},
    {"B/event", "bytes_per_event", NULL, MR_TABLE_VALUE, 2},
    {"lost", NULL, NULL, MR_TABLE_LOST, 0},
};

static const struct mr_table_column program_columns[] = {
    {"seconds", "seconds", NULL, MR_TABLE_VALUE, 3},
    {"+-", "seconds", NULL, MR_TABLE_ERROR, 3},
    {"x plain", "seconds", "plain", MR_TABLE_RATIO, 2},
    {"x off", "seconds_over_off", "off", MR_TABLE_RATIO, 2},
    {"CPU s", "cpu_seconds", NULL, MR_TABLE_VALUE, 2},
    {"x plain", "cpu_seconds", "plain", MR_TABLE_RATIO, 2},
    {"start ms", "start_ms", NULL, MR_TABLE_VALUE, 2},
    {"private KiB", "private_kib", NULL, MR_TABLE_VALUE, 0},
    {"loaded B", "loaded_bytes", NULL, MR_TABLE_VALUE, 0},
    {"x plain", "loaded_bytes", "plain", MR_TABLE_RATIO, 3},
    {"error p50", "error_p50", NULL, MR_TABLE_VALUE, 0},
    {"p99", "error_p99", NULL, MR_TABLE_VALUE, 0},
    {"p99.99", "error_p99.99", NULL, MR_TABLE_VALUE, 0},
    {"max ns", "error_max", NULL, MR_TABLE_VALUE, 0},
    {"B/event", "bytes_per_event", NULL, MR_TABLE_VALUE, 2},
    {"lost", NULL, NULL, MR_TABLE_LOST, 0},
};

enum part { SMALL, PROGRAMS };

static bool is_of(const char *name, size_t part)
{
    bool is_program = strstr(name, "/sqlite") || strstr(name, "/sta"); /* start, stamps */

    return is_program == (part == PROGRAMS);
}

static enum mr_status put_notes(const struct mr_probe_bench *bench, struct mr_buffer *out)
{
    enum mr_status status = mr_buffer_append_format(
        out,
        "%sMedians of %" PRIu32 " loops, %" PRIu32
        " discarded for stolen time; +- is half of a 95 %% bootstrap interval. ns are "
        "per\n"
        "call, enter and exit together, the call itself included. p50 ... are of short "
        "batches, each with one\nclock read in it; see docs/BENCHMARKS.md.\n",
        bench->rounds.is_partial ? MR_BENCH_INTERRUPTED : "", bench->rounds.kept,
        bench->rounds.discarded);

    return status == MR_OK ? mr_bench_report_put_skipped(&bench->report, out) : status;
}

static enum mr_status put_tables(void *context, enum mr_table_form form,
                                 struct mr_buffer *out)
{
    const struct mr_probe_bench *bench = context;
    enum mr_status status =
        mr_results_table_of(&bench->results, is_of, SMALL, small_columns,
                            MR_ARRAY_COUNT(small_columns), form, out);

    if (status == MR_OK)
        status = mr_results_table_of(&bench->results, is_of, PROGRAMS, program_columns,
                                     MR_ARRAY_COUNT(program_columns), form, out);
    return status == MR_OK ? put_notes(bench, out) : status;
}

/* A bit for each of mr_variants. */
static uint32_t used_rivals(const struct mr_probe_bench *bench)
{
    uint32_t used = 0;

    for (size_t i = 0; i < bench->case_count; i++)
        used |= UINT32_C(1) << (bench->cases[i].variant - mr_variants);
    return used;
}

static enum mr_status put_environment(void *context, struct mr_buffer *out)
{
    struct mr_probe_bench *bench = context;
    enum mr_status status = mr_bench_report_begin_environment(out);

    if (status == MR_OK)
        status = mr_buffer_append_format(
            out,
            ", \"loops\": %" PRIu32 ", \"discarded\": %" PRIu32
            ", \"steal_max\": %.4f, \"partial\": %s, \"slices\": %" PRIu64
            ", \"slice_ns\": %" PRIu64 ", \"cpu\": %d, \"policy\": \"%s\", \"rivals\": {",
            bench->rounds.kept, bench->rounds.discarded, bench->rounds.steal_max,
            bench->rounds.is_partial ? "true" : "false", bench->options.slices,
            bench->options.slice_ns, bench->cpu,
            bench->options.policy == 0 ? "block" : "drop");
    if (status == MR_OK)
        status = mr_rivals_describe(&bench->rivals, used_rivals(bench), out);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, "}");
    return status == MR_OK ? mr_bench_report_end_environment(&bench->report, out)
                           : status;
}

static enum mr_status put_chart(void *context, struct mr_buffer *out)
{
    const struct mr_probe_bench *bench = context;
    const struct mr_result *floor =
        mr_results_find(&bench->results, "floor/tsc/stores/memory", "ns_per_call", NULL);
    const struct mr_chart chart = {
        .title = bench->rounds.is_partial
                     ? "a traced call, ns (interrupted; median, 95 % interval)"
                     : "a traced call, ns (median, 95 % interval)",
        .metric = "ns_per_call",
        .unit = "ns",
        .line = floor ? floor->value.median : (double)NAN,
        .line_name = "floor",
        .group_part = 2};

    return mr_chart_draw(&chart, &bench->results, out);
}

enum mr_status mr_probe_write(struct mr_probe_bench *bench, struct mr_error *error)
{
    static const struct mr_bench_file files[] = {{"probe.svg", put_chart},
                                                 {"environment.json", put_environment}};
    const struct mr_bench_output output = {.results = &bench->results,
                                           .tables = put_tables,
                                           .files = files,
                                           .file_count = MR_ARRAY_COUNT(files),
                                           .bench = bench,
                                           .is_json = bench->options.json};

    return mr_bench_report_write(&bench->report, &output, error);
}
