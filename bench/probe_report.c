/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of all loops -> results, tables, files. */
#include "bench/probe.h"

#include "bench/chart.h"
#include "bench/machine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)64 << 20)

/* The values of all cases that have the measure, for a loop: their median. */
static double median_of_loop(const struct mr_probe_bench *bench, enum mr_measure measure,
                             uint32_t loop)
{
    double values[MR_PROBE_CASES_MAX];
    size_t count = 0;

    for (size_t i = 0; i < bench->case_count; i++)
        if (bench->cases[i].threads == 1 && !isnan(bench->cases[i].values[measure][loop]))
            values[count++] = bench->cases[i].values[measure][loop];
    mr_stats_sort(values, count);
    return count > 0 ? mr_stats_quantile(values, count, 0.5) : (double)NAN;
}

static bool is_same_compiler(const struct mr_variant *one, const struct mr_variant *other)
{
    return one->compiler == other->compiler ||
           (one->compiler && other->compiler &&
            strcmp(one->compiler, other->compiler) == 0);
}

/* The case to compare with: same workload, threads and compiler, of another kind. */
static const struct mr_probe_case *reference(const struct mr_probe_bench *bench,
                                             const struct mr_probe_case *which,
                                             enum mr_variant_kind kind)
{
    for (size_t i = 0; i < bench->case_count; i++) {
        const struct mr_probe_case *other = &bench->cases[i];

        if (other->workload == which->workload && other->threads == which->threads &&
            other->variant->kind == kind && other->added_ns <= 0 && other != which &&
            is_same_compiler(other->variant, which->variant))
            return other;
    }
    return NULL;
}

/* The same case with tracing off. */
static const struct mr_probe_case *off_of(const struct mr_probe_bench *bench,
                                          const struct mr_probe_case *which)
{
    for (size_t i = 0; i < bench->case_count; i++) {
        const struct mr_probe_case *other = &bench->cases[i];

        if (other->workload == which->workload && other->threads == which->threads &&
            other->variant == which->variant && other->sink == MR_SINK_OFF &&
            other != which)
            return other;
    }
    return NULL;
}

static struct mr_result result_of(const struct mr_probe_case *which, const char *metric,
                                  const char *unit)
{
    struct mr_result result = {
        .metric = metric, .unit = unit, .has_lost = which->has_lost, .lost = which->lost};

    memcpy(result.name, which->name, sizeof(result.name));
    return result;
}

struct adder {
    struct mr_probe_bench *bench;
    uint32_t loops;
    enum mr_status status;
};

static void put(struct adder *adder, const struct mr_result *result)
{
    if (adder->status == MR_OK && result->value.count > 0)
        adder->status = mr_results_add(&adder->bench->results, result);
}

/* Value of one case, compared with `bottom` of another, or of itself; NULL: with nothing. */
static void add_value(struct adder *adder, const struct mr_probe_case *which,
                      enum mr_measure measure, const char *metric, const char *unit,
                      const char *ratio_to, const double *bottom)
{
    struct mr_result result = result_of(which, metric, unit);
    const double *top = which->values[measure];

    if (adder->status == MR_OK)
        adder->status = mr_stats_of(top, adder->loops, &result.value);
    if (adder->status == MR_OK && bottom) {
        result.ratio_to = ratio_to;
        adder->status = mr_stats_of_ratio(top, bottom, adder->loops, &result.ratio);
    }
    put(adder, &result);
}

/* What it costs more than another; the ratio is of the whole. */
static void add_difference(struct adder *adder, const struct mr_probe_case *which,
                           const struct mr_probe_case *other, const char *metric,
                           const char *ratio_to)
{
    struct mr_result result = result_of(which, metric, "ns");
    const double *top = which->values[MR_MEASURE_NS];

    if (!other || adder->status != MR_OK)
        return;
    adder->status = mr_stats_of_difference(top, other->values[MR_MEASURE_NS],
                                           adder->loops, &result.value);
    result.ratio_to = ratio_to;
    if (adder->status == MR_OK)
        adder->status = mr_stats_of_ratio(top, other->values[MR_MEASURE_NS], adder->loops,
                                          &result.ratio);
    put(adder, &result);
}

static void add_small(struct adder *adder, const struct mr_probe_case *which)
{
    static const struct {
        enum mr_measure measure;
        const char *metric;
    } tails[] = {{MR_MEASURE_P50, "p50"},      {MR_MEASURE_P90, "p90"},
                 {MR_MEASURE_P99, "p99"},      {MR_MEASURE_P999, "p99.9"},
                 {MR_MEASURE_P9999, "p99.99"}, {MR_MEASURE_MAX, "max"},
                 {MR_MEASURE_TIMER, "timer"}};
    const struct mr_probe_case *plain = reference(adder->bench, which, MR_VARIANT_PLAIN);

    add_value(adder, which, MR_MEASURE_NS, "ns_per_call", "ns", "floor",
              which->values[MR_MEASURE_FLOOR]);
    add_difference(adder, which, plain, "added_ns_per_call", "plain");
    if (MR_SINK_QUIET(which->sink) && which->variant->kind == MR_VARIANT_DOOR)
        add_difference(adder, which, reference(adder->bench, which, MR_VARIANT_NOPS),
                       "added_ns_over_nops", "nops");
    for (size_t i = 0; i < MR_ARRAY_COUNT(tails); i++)
        add_value(adder, which, tails[i].measure, tails[i].metric, "ns", NULL, NULL);
}

static void add_loaded_bytes(struct adder *adder, const struct mr_probe_case *which,
                             const struct mr_probe_case *plain)
{
    struct mr_result result = result_of(which, "loaded_bytes", "B");
    char path[PATH_MAX];
    double bytes, plain_bytes = 0;

    result.has_lost = false;
    bytes = (double)mr_probe_loaded_bytes(
        mr_probe_program(adder->bench, which->variant, which->workload, path));
    if (plain)
        plain_bytes = (double)mr_probe_loaded_bytes(
            mr_probe_program(adder->bench, plain->variant, plain->workload, path));
    if (bytes <= 0)
        return;
    result.value =
        (struct mr_stats){.median = bytes, .low = bytes, .high = bytes, .count = 1};
    if (plain_bytes > 0) {
        result.ratio_to = "plain";
        bytes /= plain_bytes;
        result.ratio =
            (struct mr_stats){.median = bytes, .low = bytes, .high = bytes, .count = 1};
    }
    put(adder, &result);
}

static void add_errors(struct adder *adder, const struct mr_probe_case *which)
{
    add_value(adder, which, MR_MEASURE_ERROR_P50, "error_p50", "ns", NULL, NULL);
    add_value(adder, which, MR_MEASURE_ERROR_P99, "error_p99", "ns", NULL, NULL);
    add_value(adder, which, MR_MEASURE_ERROR_P9999, "error_p99.99", "ns", NULL, NULL);
    add_value(adder, which, MR_MEASURE_ERROR_MAX, "error_max", "ns", NULL, NULL);
}

static void add_program(struct adder *adder, const struct mr_probe_case *which)
{
    const struct mr_probe_case *plain = reference(adder->bench, which, MR_VARIANT_PLAIN);
    const struct mr_probe_case *off = off_of(adder->bench, which);

    if (which->workload == MR_WORKLOAD_SQLITE) {
        add_value(adder, which, MR_MEASURE_SECONDS, "seconds", "s", "plain",
                  plain ? plain->values[MR_MEASURE_SECONDS] : NULL);
        if (off && off->variant->kind == MR_VARIANT_DOOR)
            add_value(adder, which, MR_MEASURE_SECONDS, "seconds_over_off", "s", "off",
                      off->values[MR_MEASURE_SECONDS]);
        add_value(adder, which, MR_MEASURE_CPU, "cpu_seconds", "s", "plain",
                  plain ? plain->values[MR_MEASURE_CPU] : NULL);
    } else if (which->workload == MR_WORKLOAD_STAMPS) {
        add_errors(adder, which);
    } else {
        add_value(adder, which, MR_MEASURE_START_MS, "start_ms", "ms", "plain",
                  plain ? plain->values[MR_MEASURE_START_MS] : NULL);
        add_value(adder, which, MR_MEASURE_PRIVATE_KIB, "private_kib", "KiB", "plain",
                  plain ? plain->values[MR_MEASURE_PRIVATE_KIB] : NULL);
    }
    if (which->sink == MR_SINK_OFF && which->workload != MR_WORKLOAD_STAMPS)
        add_loaded_bytes(adder, which, plain);
}

/* The floor as all single-threaded programs found it. */
static void add_floor(struct adder *adder)
{
    struct mr_result result = {
        .name = "floor/tsc/stores/memory", .metric = "ns_per_call", .unit = "ns"};
    double floors[MR_PROBE_LOOPS_MAX];

    for (uint32_t i = 0; i < adder->loops; i++)
        floors[i] = median_of_loop(adder->bench, MR_MEASURE_FLOOR, i);
    adder->status = mr_stats_of(floors, adder->loops, &result.value);
    put(adder, &result);
}

enum mr_status mr_probe_results(struct mr_probe_bench *bench)
{
    /* Ctrl-C in the first loop: what there is of it. */
    struct adder adder = {.bench = bench,
                          .loops = bench->rounds.kept > 0     ? bench->rounds.kept
                                   : bench->rounds.is_partial ? 1
                                                              : 0};

    bench->results.bench = "probe";
    bench->results.discarded = bench->rounds.discarded;
    bench->results.is_partial = bench->rounds.is_partial;
    add_floor(&adder);
    for (size_t i = 0; i < bench->case_count && adder.status == MR_OK; i++) {
        const struct mr_probe_case *which = &bench->cases[i];

        if (MR_WORKLOAD_SMALL(which->workload))
            add_small(&adder, which);
        else
            add_program(&adder, which);
        add_value(&adder, which, MR_MEASURE_BYTES, "bytes_per_event", "B", NULL, NULL);
    }
    return adder.status;
}

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

/* The results of small workloads, or the others; items are borrowed copies. */
static enum mr_status part_of(const struct mr_probe_bench *bench, bool small,
                              struct mr_results *part)
{
    enum mr_status status = MR_OK;

    *part = (struct mr_results){.bench = "probe"};
    for (size_t i = 0; i < bench->results.count && status == MR_OK; i++) {
        const struct mr_result *item = &bench->results.items[i];
        bool is_small = !strstr(item->name, "/sqlite") &&
                        !strstr(item->name, "/sta"); /* start, stamps */

        if (is_small == small)
            status = mr_results_add(part, item);
    }
    return status;
}

static enum mr_status put_table(const struct mr_probe_bench *bench, bool small,
                                enum mr_table_form form, struct mr_buffer *out)
{
    struct mr_results part;
    enum mr_status status = part_of(bench, small, &part);

    if (status == MR_OK && part.count > 0)
        status = mr_results_table(&part, small ? small_columns : program_columns,
                                  small ? MR_ARRAY_COUNT(small_columns)
                                        : MR_ARRAY_COUNT(program_columns),
                                  form, out);
    if (status == MR_OK && part.count > 0)
        status = mr_buffer_append_text(out, "\n");
    mr_results_fini(&part);
    return status;
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
        bench->rounds.is_partial ? "INTERRUPTED: this is what was measured until then.\n"
                                 : "",
        bench->rounds.kept, bench->rounds.discarded);

    return status == MR_OK ? mr_bench_report_put_skipped(&bench->report, out) : status;
}

static enum mr_status put_tables(const struct mr_probe_bench *bench,
                                 enum mr_table_form form, struct mr_buffer *out)
{
    enum mr_status status = put_table(bench, true, form, out);

    if (status == MR_OK)
        status = put_table(bench, false, form, out);
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

static enum mr_status put_environment(struct mr_probe_bench *bench, struct mr_buffer *out)
{
    enum mr_status status = mr_buffer_append_text(out, "{\"machine\": {");

    if (status == MR_OK)
        status = mr_machine_describe(out);
    if (status == MR_OK)
        status = mr_buffer_append_format(
            out,
            "}, \"millrace\": \"%s\", \"loops\": %" PRIu32 ", \"discarded\": %" PRIu32
            ", \"steal_max\": %.4f, \"partial\": %s, \"slices\": %" PRIu64
            ", \"slice_ns\": %" PRIu64 ", \"cpu\": %d, \"policy\": \"%s\", \"rivals\": {",
            MR_VERSION, bench->rounds.kept, bench->rounds.discarded,
            bench->rounds.steal_max, bench->rounds.is_partial ? "true" : "false",
            bench->options.slices, bench->options.slice_ns, bench->cpu,
            bench->options.policy == 0 ? "block" : "drop");
    if (status == MR_OK)
        status = mr_rivals_describe(&bench->rivals, used_rivals(bench), out);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, "}, \"skipped\": ");
    if (status == MR_OK)
        status = mr_bench_report_json_skipped(&bench->report, out);
    return status == MR_OK ? mr_buffer_append_text(out, "}\n") : status;
}

static enum mr_status put_chart(const struct mr_probe_bench *bench, struct mr_buffer *out)
{
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

static enum mr_status write_files(struct mr_probe_bench *bench, struct mr_buffer *text,
                                  struct mr_error *error)
{
    enum mr_status status = mr_results_json(&bench->results, text);

    if (status == MR_OK)
        status = mr_bench_report_file(&bench->report, "probe.jsonl", text, error);
    if (status == MR_OK)
        status = put_tables(bench, MR_TABLE_MARKDOWN, text);
    if (status == MR_OK)
        status = mr_bench_report_file(&bench->report, "probe.md", text, error);
    if (status == MR_OK)
        status = put_chart(bench, text);
    if (status == MR_OK)
        status = mr_bench_report_file(&bench->report, "probe.svg", text, error);
    if (status == MR_OK)
        status = put_environment(bench, text);
    return status == MR_OK
               ? mr_bench_report_file(&bench->report, "environment.json", text, error)
               : status;
}

enum mr_status mr_probe_write(struct mr_probe_bench *bench, struct mr_error *error)
{
    struct mr_buffer text;
    enum mr_status status;

    mr_buffer_init(&text, TEXT_MAX);
    status = write_files(bench, &text, error);
    if (status == MR_OK)
        status = bench->options.json ? mr_results_json(&bench->results, &text)
                                     : put_tables(bench, MR_TABLE_TEXT, &text);
    if (status == MR_OK)
        status = mr_bench_report_print(&text, error);
    mr_buffer_fini(&text);
    return status;
}
