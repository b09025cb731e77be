/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/result.h"

#include "base/assert.h"
#include "bench/machine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mr_status mr_results_add(struct mr_results *results, const struct mr_result *result)
{
    MR_ASSERT(result->metric && result->unit);
    if (results->count == results->capacity) {
        size_t capacity = results->capacity ? 2 * results->capacity : 64;
        struct mr_result *items =
            realloc(results->items, capacity * sizeof(*results->items));

        if (!items)
            return MR_ENOMEM;
        results->items = items;
        results->capacity = capacity;
    }
    results->items[results->count++] = *result;
    return MR_OK;
}

enum mr_status mr_results_add_values(struct mr_results *results, const char *name,
                                     const char *metric, const char *unit,
                                     const double *values, size_t count,
                                     const char *ratio_to, const double *bottom)
{
    struct mr_result result = {
        .metric = metric, .unit = unit, .ratio_to = bottom ? ratio_to : NULL};
    enum mr_status status = mr_stats_of(values, count, &result.value);

    (void)snprintf(result.name, sizeof(result.name), "%s", name);
    if (status == MR_OK && result.ratio_to)
        status = mr_stats_of_ratio(values, bottom, count, &result.ratio);
    return status == MR_OK ? mr_results_add(results, &result) : status;
}

void mr_results_fini(struct mr_results *results)
{
    free(results->items);
    results->items = NULL;
    results->count = results->capacity = 0;
}

const struct mr_result *mr_results_find(const struct mr_results *results,
                                        const char *name, const char *metric,
                                        const char *ratio_to)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct mr_result *item = &results->items[i];

        if (strcmp(item->name, name) == 0 && strcmp(item->metric, metric) == 0 &&
            (!ratio_to || (item->ratio_to && strcmp(item->ratio_to, ratio_to) == 0)))
            return item;
    }
    return NULL;
}

static enum mr_status number(struct mr_buffer *out, const char *name, double value)
{
    if (!isfinite(value))
        return mr_buffer_append_format(out, ",\"%s\":null", name);
    return mr_buffer_append_format(out, ",\"%s\":%.9g", name, value);
}

static enum mr_status text(struct mr_buffer *out, const char *before, const char *name,
                           const char *value)
{
    enum mr_status status = mr_buffer_append_format(out, "%s\"%s\":", before, name);

    return status == MR_OK ? mr_bench_json_text(out, value) : status;
}

static enum mr_status names(const struct mr_results *results,
                            const struct mr_result *result, struct mr_buffer *out)
{
    enum mr_status status = text(out, "{", "bench", results->bench);

    if (status == MR_OK)
        status = text(out, ",", "case", result->name);
    if (status == MR_OK)
        status = text(out, ",", "metric", result->metric);
    if (status == MR_OK)
        status = number(out, "value", result->value.median);
    if (status == MR_OK)
        status = text(out, ",", "unit", result->unit);
    if (status == MR_OK)
        status = text(out, ",", "ratio_to", result->ratio_to);
    return status;
}

static enum mr_status lost(const struct mr_result *result, struct mr_buffer *out)
{
    if (!result->has_lost)
        return mr_buffer_append_text(out, ",\"lost\":null");
    return mr_buffer_append_format(out, ",\"lost\":%" PRIu64, result->lost);
}

enum mr_status mr_result_json(const struct mr_results *results,
                              const struct mr_result *result, struct mr_buffer *out)
{
    double no = (double)NAN;
    enum mr_status status = names(results, result, out);

    if (status == MR_OK)
        status = number(out, "ratio", result->ratio_to ? result->ratio.median : no);
    if (status == MR_OK)
        status = lost(result, out);
    if (status == MR_OK)
        status = number(out, "low", result->value.low);
    if (status == MR_OK)
        status = number(out, "high", result->value.high);
    if (status == MR_OK)
        status = number(out, "ratio_low", result->ratio_to ? result->ratio.low : no);
    if (status == MR_OK)
        status = number(out, "ratio_high", result->ratio_to ? result->ratio.high : no);
    if (status == MR_OK)
        status = mr_buffer_append_format(
            out, ",\"loops\":%zu,\"discarded\":%" PRIu32 ",\"partial\":%s}\n",
            result->value.count, results->discarded,
            results->is_partial ? "true" : "false");
    return status;
}

enum mr_status mr_results_json(const struct mr_results *results, struct mr_buffer *out)
{
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < results->count && status == MR_OK; i++)
        status = mr_result_json(results, &results->items[i], out);
    return status;
}
