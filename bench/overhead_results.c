/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of all loops -> results. */
#include "bench/overhead.h"

#include <string.h>

/* The step from the phase before to this one has a name of its own. */
static const char *const step_metrics[MR_PHASE_COUNT] = {
    NULL,
    "overhead_ns_instrumentation",
    "overhead_ns_collecting",
    "overhead_ns_writing",
    "overhead_ns_reconstruction",
    "overhead_ns_reduction",
};

struct adder {
    struct mr_overhead_bench *bench;
    uint32_t loops;
    enum mr_status status;
};

static bool is_same_point(const struct mr_overhead_case *one,
                          const struct mr_overhead_case *other)
{
    const struct mr_overhead_point *a = &one->point, *b = &other->point;
    bool ring_matters =
        one->phase >= MR_PHASE_COLLECTING && other->phase >= MR_PHASE_COLLECTING;

    return a->depth == b->depth && a->threads == b->threads &&
           a->method_ns == b->method_ns &&
           (a->ring_bytes == b->ring_bytes || !ring_matters);
}

/* `none` is of the same compiler or machine; what is off has no clock. */
static bool is_same_system(const struct mr_overhead_case *one,
                           const struct mr_overhead_case *other)
{
    if (one->java || other->java)
        return one->java && other->java;
    if (other->phase == MR_PHASE_NONE)
        return (one->variant->compiler != NULL) == (other->variant->compiler != NULL);
    return one->variant == other->variant &&
           (other->phase == MR_PHASE_INACTIVE || one->clock == other->clock);
}

const struct mr_overhead_case *mr_overhead_other(const struct mr_overhead_bench *bench,
                                                 const struct mr_overhead_case *which,
                                                 enum mr_phase phase)
{
    for (size_t i = 0; i < bench->case_count; i++) {
        const struct mr_overhead_case *other = &bench->cases[i];

        if (other->phase == phase && other != which && other->added_ns <= 0 &&
            is_same_system(which, other) && is_same_point(which, other))
            return other;
    }
    return NULL;
}

static struct mr_result result_of(const struct mr_overhead_case *which,
                                  const char *metric, const char *unit)
{
    struct mr_result result = {
        .metric = metric, .unit = unit, .has_lost = which->has_lost, .lost = which->lost};

    memcpy(result.name, which->name, sizeof(result.name));
    return result;
}

static void put(struct adder *adder, const struct mr_result *result)
{
    if (adder->status == MR_OK && result->value.count > 0)
        adder->status = mr_results_add(&adder->bench->results, result);
}

static void add_value(struct adder *adder, const struct mr_overhead_case *which,
                      enum mr_overhead_measure measure, const char *ratio_to,
                      const struct mr_overhead_case *other)
{
    const struct mr_overhead_metric *metric = &mr_overhead_metrics[measure];
    struct mr_result result = result_of(which, metric->name, metric->unit);

    if (adder->status == MR_OK)
        adder->status = mr_stats_of(which->values[measure], adder->loops, &result.value);
    if (adder->status == MR_OK && other) {
        result.ratio_to = ratio_to;
        adder->status = mr_stats_of_ratio(which->values[measure], other->values[measure],
                                          adder->loops, &result.ratio);
    }
    put(adder, &result);
}

/* What a root call takes longer than in the phase before, loop by loop. */
static void add_difference(struct adder *adder, const struct mr_overhead_case *which,
                           const struct mr_overhead_case *other, const char *metric,
                           enum mr_overhead_measure measure)
{
    struct mr_result result = result_of(which, metric, "ns");

    if (!other || adder->status != MR_OK)
        return;
    adder->status = mr_stats_of_difference(which->values[measure], other->values[measure],
                                           adder->loops, &result.value);
    put(adder, &result);
}

static void add_case(struct adder *adder, const struct mr_overhead_case *which)
{
    const struct mr_overhead_bench *bench = adder->bench;
    const struct mr_overhead_case *none = mr_overhead_other(bench, which, MR_PHASE_NONE);

    for (int i = 0; i < MR_OVERHEAD_MEASURES; i++)
        add_value(adder, which, (enum mr_overhead_measure)i, "none",
                  i <= MR_OVERHEAD_BLOCKS ? none : NULL);
    if (which->phase > MR_PHASE_COLLECTING && which->variant &&
        which->variant->kind == MR_VARIANT_DOOR) {
        const struct mr_overhead_case *collecting =
            mr_overhead_other(bench, which, MR_PHASE_COLLECTING);

        if (collecting)
            add_value(adder, which, MR_OVERHEAD_TRACES, "collecting", collecting);
    }
    if (which->added_ns > 0)
        add_difference(adder, which, mr_overhead_other(bench, which, which->phase),
                       "added_ns", MR_OVERHEAD_BLOCKS);
    else if (which->phase > MR_PHASE_NONE && which->variant &&
             which->variant->kind == MR_VARIANT_DOOR)
        add_difference(adder, which,
                       mr_overhead_other(bench, which, (enum mr_phase)(which->phase - 1)),
                       step_metrics[which->phase], MR_OVERHEAD_RESPONSE);
}

enum mr_status mr_overhead_results(struct mr_overhead_bench *bench)
{
    /* Ctrl-C in the first loop: what there is of it. */
    struct adder adder = {.bench = bench,
                          .loops = bench->rounds.kept > 0     ? bench->rounds.kept
                                   : bench->rounds.is_partial ? 1
                                                              : 0};

    bench->results.bench = "overhead";
    bench->results.discarded = bench->rounds.discarded;
    bench->results.is_partial = bench->rounds.is_partial;
    for (size_t i = 0; i < bench->case_count && adder.status == MR_OK; i++)
        add_case(&adder, &bench->cases[i]);
    return adder.status;
}
