/* SPDX-License-Identifier: Apache-2.0 */
/* Results -> tables as the seed has them, and lists of all cases. */
#include "bench/overhead.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the seed's Tables 1 and 2, over the loops; then ours. */
static enum mr_status put_row(struct mr_buffer *out, enum mr_table_form form,
                              const char *title, const double *cells, size_t count,
                              int decimals)
{
    const char *bar = form == MR_TABLE_MARKDOWN ? "| " : "";
    enum mr_status status = mr_buffer_append_format(out, "%s%-24s", bar, title);

    for (size_t i = 0; i < count && status == MR_OK; i++) {
        status = mr_buffer_append_format(out, " %s", bar);
        if (status == MR_OK && isnan(cells[i]))
            status = mr_buffer_append_format(out, "%14s", "-");
        else if (status == MR_OK)
            status = mr_buffer_append_format(out, "%14.*f", decimals, cells[i]);
    }
    return status == MR_OK ? mr_buffer_append_text(out, *bar ? " |\n" : "\n") : status;
}

static enum mr_status put_head(struct mr_buffer *out, enum mr_table_form form,
                               const char *title, const char *const *names, size_t count)
{
    const char *bar = form == MR_TABLE_MARKDOWN ? "| " : "";
    enum mr_status status = mr_buffer_append_format(out, "%s%-24s", bar, title);

    for (size_t i = 0; i < count && status == MR_OK; i++)
        status = mr_buffer_append_format(out, " %s%14s", bar, names[i]);
    if (status == MR_OK)
        status = mr_buffer_append_text(out, *bar ? " |\n| ---" : "\n");
    for (size_t i = 0; i < count && *bar && status == MR_OK; i++)
        status = mr_buffer_append_text(out, " | ---:");
    return status == MR_OK && *bar ? mr_buffer_append_text(out, " |\n") : status;
}

/* What the loops of a case say of one measure. */
struct summary {
    double mean, half_interval, q1, median, q3;
};

static struct summary summarise(const struct mr_overhead_bench *bench,
                                const struct mr_overhead_case *which,
                                enum mr_overhead_measure measure)
{
    struct summary summary = {NAN, NAN, NAN, NAN, NAN};
    uint32_t loops = bench->rounds.kept > 0 ? bench->rounds.kept : 1;
    double *sorted = malloc(loops * sizeof(*sorted)), sum = 0, squares = 0;
    size_t count = 0;

    for (uint32_t i = 0; sorted && i < loops; i++)
        if (!isnan(which->values[measure][i]))
            sorted[count++] = which->values[measure][i];
    if (count > 0) {
        mr_stats_sort(sorted, count);
        for (size_t i = 0; i < count; i++)
            sum += sorted[i];
        summary.mean = sum / (double)count;
        for (size_t i = 0; i < count; i++)
            squares += (sorted[i] - summary.mean) * (sorted[i] - summary.mean);
        /* As the seed has it: normal, of the mean. */
        summary.half_interval =
            count > 1 ? 1.96 * sqrt(squares / (double)(count - 1) / (double)count)
                      : (double)NAN;
        summary.q1 = mr_stats_quantile(sorted, count, 0.25);
        summary.median = mr_stats_quantile(sorted, count, 0.5);
        summary.q3 = mr_stats_quantile(sorted, count, 0.75);
    }
    free(sorted);
    return summary;
}

/* The phases of one door, clock and point, side by side. */
struct columns {
    const struct mr_overhead_case *cases[MR_PHASE_COUNT];
    const char *names[MR_PHASE_COUNT];
    size_t count;
};

static enum mr_status put_throughput(const struct mr_overhead_bench *bench,
                                     const struct columns *columns,
                                     enum mr_table_form form, struct mr_buffer *out)
{
    static const char *const titles[] = {"Mean", "95% CI +-", "Q1", "Median", "Q3"};
    double cells[MR_ARRAY_COUNT(titles)][MR_PHASE_COUNT];
    enum mr_status status =
        put_head(out, form, "traces per second", columns->names, columns->count);

    for (size_t i = 0; i < columns->count; i++) {
        struct summary summary = summarise(bench, columns->cases[i], MR_OVERHEAD_TRACES);

        cells[0][i] = summary.mean;
        cells[1][i] = summary.half_interval;
        cells[2][i] = summary.q1;
        cells[3][i] = summary.median;
        cells[4][i] = summary.q3;
    }
    for (size_t row = 0; row < MR_ARRAY_COUNT(titles) && status == MR_OK; row++)
        status = put_row(out, form, titles[row], cells[row], columns->count, 0);
    return status == MR_OK ? mr_buffer_append_text(out, "\n") : status;
}

static double value_of(const struct mr_overhead_bench *bench,
                       const struct mr_overhead_case *which, const char *metric)
{
    const struct mr_result *result =
        mr_results_find(&bench->results, which->name, metric, NULL);

    return result ? result->value.median : (double)NAN;
}

/* Of all root calls of all loops: quantiles; the mean's interval is over the loops. */
static enum mr_status put_response(const struct mr_overhead_bench *bench,
                                   const struct columns *columns, enum mr_table_form form,
                                   struct mr_buffer *out)
{
    static const struct {
        const char *title;
        double share;
    } rows[] = {{"Q1", 0.25},  {"Median", 0.5},  {"Q3", 0.75},
                {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};
    double cells[MR_PHASE_COUNT], halves[MR_PHASE_COUNT];
    enum mr_status status =
        put_head(out, form, "ns, per: root call", columns->names, columns->count);

    for (size_t i = 0; i < columns->count; i++) {
        struct summary summary =
            summarise(bench, columns->cases[i], MR_OVERHEAD_RESPONSE);

        cells[i] = summary.mean;
        halves[i] = summary.half_interval;
    }
    if (status == MR_OK)
        status = put_row(out, form, "Mean", cells, columns->count, 1);
    if (status == MR_OK)
        status = put_row(out, form, "95% CI +-", halves, columns->count, 1);
    for (size_t row = 0; row < MR_ARRAY_COUNT(rows) && status == MR_OK; row++) {
        for (size_t i = 0; i < columns->count; i++)
            cells[i] = mr_spread_quantile(columns->cases[i]->spread, rows[row].share);
        status = put_row(out, form, rows[row].title, cells, columns->count, 0);
    }
    for (size_t i = 0; i < columns->count; i++)
        cells[i] = value_of(bench, columns->cases[i], "response_ns_per_call");
    if (status == MR_OK)
        status = put_row(out, form, "Mean, per: call", cells, columns->count, 2);
    return status == MR_OK ? mr_buffer_append_text(out, "\n") : status;
}

static struct columns columns_of(const struct mr_overhead_bench *bench,
                                 const struct mr_overhead_case *which)
{
    struct columns columns = {.count = 0};

    for (int phase = 0; phase < MR_PHASE_COUNT; phase++) {
        const struct mr_overhead_case *found =
            phase == (int)which->phase
                ? which
                : mr_overhead_other(bench, which, (enum mr_phase)phase);

        if (!found || found->has_failed)
            continue;
        columns.cases[columns.count] = found;
        columns.names[columns.count++] = mr_phase_names[phase];
    }
    return columns;
}

/* The last phase of a door and clock stands for all of its own; sweeps and peers have rows in the list. */
static bool leads(const struct mr_overhead_bench *bench,
                  const struct mr_overhead_case *which)
{
    if (which->java || which->is_swept || which->added_ns > 0 ||
        which->variant->kind == MR_VARIANT_RIVAL)
        return false;
    for (int phase = (int)which->phase + 1; phase < MR_PHASE_COUNT; phase++)
        for (size_t i = 0; i < bench->case_count; i++) {
            const struct mr_overhead_case *other = &bench->cases[i];

            if ((int)other->phase == phase && other->variant &&
                other->variant->kind == MR_VARIANT_DOOR &&
                (which->phase == MR_PHASE_NONE || other->variant == which->variant) &&
                (which->phase < MR_PHASE_COLLECTING || other->clock == which->clock))
                return false;
        }
    return true;
}

static enum mr_status put_like_seed(const struct mr_overhead_bench *bench,
                                    enum mr_table_form form, struct mr_buffer *out)
{
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < bench->case_count && status == MR_OK; i++) {
        const struct mr_overhead_case *which = &bench->cases[i];
        struct columns columns;

        if (!leads(bench, which))
            continue;
        columns = columns_of(bench, which);
        status = mr_buffer_append_format(
            out, "%s%s, a root call of depth %" PRIu64 ", %" PRIu64 " threads\n%s",
            form == MR_TABLE_MARKDOWN ? "### " : "", strchr(which->name, '/') + 1,
            which->point.depth, which->point.threads,
            form == MR_TABLE_MARKDOWN ? "\n" : "");
        if (status == MR_OK)
            status = put_throughput(bench, &columns, form, out);
        if (status == MR_OK && bench->options.timing == 0)
            status = put_response(bench, &columns, form, out);
    }
    return status;
}

static const struct mr_table_column case_columns[] = {
    {"traces/s", "traces_per_second", NULL, MR_TABLE_VALUE, 0},
    {"+-", "traces_per_second", NULL, MR_TABLE_ERROR, 0},
    {"x none", "traces_per_second", "none", MR_TABLE_RATIO, 3},
    {"x collecting", "traces_per_second", "collecting", MR_TABLE_RATIO, 3},
    {"drained/s", "drained_traces_per_second", NULL, MR_TABLE_VALUE, 0},
    {"ns", "response_ns", NULL, MR_TABLE_VALUE, 1},
    {"block ns", "response_ns_block", NULL, MR_TABLE_VALUE, 1},
    {"added ns", "added_ns", NULL, MR_TABLE_VALUE, 2},
    {"p99", "response_p99", NULL, MR_TABLE_VALUE, 0},
    {"p99.9", "response_p99.9", NULL, MR_TABLE_VALUE, 0},
    {"B/event", "bytes_per_event", NULL, MR_TABLE_VALUE, 2},
    {"lost", NULL, NULL, MR_TABLE_LOST, 0},
};
static const struct mr_table_column step_columns[] = {
    {"instrumentation", "overhead_ns_instrumentation", NULL, MR_TABLE_VALUE, 1},
    {"collecting", "overhead_ns_collecting", NULL, MR_TABLE_VALUE, 1},
    {"writing", "overhead_ns_writing", NULL, MR_TABLE_VALUE, 1},
    {"reconstruction", "overhead_ns_reconstruction", NULL, MR_TABLE_VALUE, 1},
    {"reduction", "overhead_ns_reduction", NULL, MR_TABLE_VALUE, 1},
};
static const struct mr_table_column cost_columns[] = {
    {"CPU s program", "cpu_seconds_program", NULL, MR_TABLE_VALUE, 3},
    {"writer", "cpu_seconds_writer", NULL, MR_TABLE_VALUE, 3},
    {"receiver", "cpu_seconds_receiver", NULL, MR_TABLE_VALUE, 3},
    {"worker", "cpu_seconds_worker", NULL, MR_TABLE_VALUE, 3},
    {"master", "cpu_seconds_master", NULL, MR_TABLE_VALUE, 3},
    {"busy s decode", "busy_seconds_decode", NULL, MR_TABLE_VALUE, 3},
    {"reconstruct", "busy_seconds_reconstruct", NULL, MR_TABLE_VALUE, 3},
    {"reduce", "busy_seconds_reduce", NULL, MR_TABLE_VALUE, 3},
    {"peak KiB program", "peak_kib_program", NULL, MR_TABLE_VALUE, 0},
    {"worker", "peak_kib_worker", NULL, MR_TABLE_VALUE, 0},
    {"master", "peak_kib_master", NULL, MR_TABLE_VALUE, 0},
};

static bool has_any(const struct mr_overhead_bench *bench,
                    const struct mr_table_column *columns, size_t count)
{
    for (size_t i = 0; i < bench->results.count; i++)
        for (size_t j = 0; j < count; j++)
            if (columns[j].metric &&
                strcmp(bench->results.items[i].metric, columns[j].metric) == 0)
                return true;
    return false;
}

/* What nothing was measured of has no list. */
static enum mr_status put_list(const struct mr_overhead_bench *bench, const char *title,
                               const struct mr_table_column *columns, size_t count,
                               enum mr_table_form form, struct mr_buffer *out)
{
    enum mr_status status;

    if (!has_any(bench, columns, count))
        return MR_OK;
    status = mr_buffer_append_format(
        out, form == MR_TABLE_MARKDOWN ? "### %s\n\n" : "%s\n", title);
    if (status == MR_OK)
        status = mr_results_table(&bench->results, columns, count, form, out);
    return status == MR_OK ? mr_buffer_append_text(out, "\n") : status;
}

enum mr_status mr_overhead_tables(void *context, enum mr_table_form form,
                                  struct mr_buffer *out)
{
    const struct mr_overhead_bench *bench = context;
    enum mr_status status = put_like_seed(bench, form, out);

    if (status == MR_OK)
        status = put_list(bench, "all cases", case_columns, MR_ARRAY_COUNT(case_columns),
                          form, out);
    if (status == MR_OK)
        status =
            put_list(bench, "ns that a root call takes longer than in the phase before",
                     step_columns, MR_ARRAY_COUNT(step_columns), form, out);
    if (status == MR_OK)
        status = put_list(bench, "what each stage took in a loop", cost_columns,
                          MR_ARRAY_COUNT(cost_columns), form, out);
    if (status == MR_OK)
        status = mr_buffer_append_format(
            out,
            "%s%" PRIu32 " loops, %" PRIu32 " discarded for stolen time. In the lists "
            "medians of the loops; +- is half of "
            "a 95 %% bootstrap interval.\nA trace is a root call with all it calls. "
            "Other "
            "programs took %.0f %% of the processors meanwhile%s. See "
            "docs/BENCHMARKS.md.\n",
            bench->rounds.is_partial ? MR_BENCH_INTERRUPTED : "", bench->rounds.kept,
            bench->rounds.discarded, 100 * bench->others,
            bench->others > MR_OVERHEAD_OTHERS_MAX ? ": TOO NOISY for small differences"
                                                   : "");
    return status == MR_OK ? mr_bench_report_put_skipped(&bench->report, out) : status;
}
