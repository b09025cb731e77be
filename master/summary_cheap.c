/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many calls of each function have bodies so short that tracing them costs more than
 * they do, from the histograms of its paths. What an event takes of the time between an
 * enter and its exit is in each of these times; the shortest calls of all tell about how
 * much that is.
 */
#include "master/summary_private.h"

#include "base/sum.h"
#include <math.h>
#include <stdlib.h>

/* Of all calls, so many are shorter than the shortest that is typical: clamped times. */
#define LEAST_SHARE 0.01

static enum mr_status least_of(const struct mr_model_root *root, uint64_t most_ns,
                               uint64_t *least_ns)
{
    struct mr_histogram all = MR_HISTOGRAM_EMPTY;
    enum mr_status status = MR_OK;
    double value = 0, low, high;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH) && status == MR_OK; i++)
        status = mr_histogram_merge(&all, &mr_model_path_stat(root, i)->stats.histogram);
    if (status == MR_OK)
        (void)mr_histogram_quantile(&all, LEAST_SHARE, &value, &low, &high);
    mr_histogram_fini(&all);
    *least_ns = value < (double)most_ns ? (uint64_t)value : most_ns;
    return status;
}

/* Values up to `limit_ns`, those of a bucket that lies across it left out. */
static uint64_t below(const struct mr_histogram *histogram, uint64_t limit_ns)
{
    double buckets_per_octave = exp2(histogram->scale);
    uint64_t sum = histogram->zero;

    for (uint32_t i = 0; i < histogram->count; i++) {
        double end = exp2((histogram->first + (int32_t)i + 1) / buckets_per_octave);

        if (end > (double)limit_ns)
            break;
        mr_sum_add(&sum, histogram->counts[i]);
    }
    return sum;
}

static void count_paths(const struct mr_model_root *root, uint64_t limit_ns,
                        uint64_t *by_site)
{
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH); i++) {
        const struct mr_model_path_stat *stat = mr_model_path_stat(root, i);

        mr_sum_add(&by_site[mr_model_path(root, i)->site],
                   below(&stat->stats.histogram, limit_ns));
    }
}

enum mr_status mr_summary_make_cheap(const struct mr_model_root *root, uint64_t cheap_ns,
                                     struct mr_summary *summary)
{
    enum mr_status status;
    uint64_t *by_site;

    if (cheap_ns == 0)
        return MR_OK;
    by_site = calloc(mr_model_count(root, MR_MODEL_SITE) + 1, sizeof(*by_site));
    if (!by_site)
        return MR_ENOMEM;
    summary->cheap_ns = cheap_ns;
    status = least_of(root, cheap_ns, &summary->least_ns);
    if (status == MR_OK)
        count_paths(root, summary->least_ns + cheap_ns, by_site);
    for (size_t i = 0; i < summary->function_count; i++) {
        summary->functions[i].cheap_calls = by_site[summary->functions[i].line];
        mr_sum_add(&summary->cheap_calls, summary->functions[i].cheap_calls);
    }
    free(by_site);
    return status;
}
