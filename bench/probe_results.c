/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of all loops -> results. */
#include "bench/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
