/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/stats.h"

#include "base/assert.h"
#include "bench/random.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

void mr_stats_sort(double *values, size_t count)
{
    MR_ASSERT(values || count == 0);
    if (count > 1)
        qsort(values, count, sizeof(*values), compare);
}

double mr_stats_quantile(const double *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < count ? low + 1 : low;

    MR_ASSERT(count > 0 && share >= 0 && share <= 1);
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

/* `draw` has room for `count`, `medians` for MR_STATS_DRAWS. */
static void bootstrap(const double *values, size_t count, double *draw, double *medians,
                      struct mr_stats *stats)
{
    uint64_t random = MR_STATS_SEED;

    for (size_t i = 0; i < MR_STATS_DRAWS; i++) {
        for (size_t j = 0; j < count; j++)
            draw[j] = values[mr_random_next(&random) % count];
        mr_stats_sort(draw, count);
        medians[i] = mr_stats_quantile(draw, count, 0.5);
    }
    mr_stats_sort(medians, MR_STATS_DRAWS);
    stats->low = mr_stats_quantile(medians, MR_STATS_DRAWS, (1 - MR_STATS_LEVEL) / 2);
    stats->high = mr_stats_quantile(medians, MR_STATS_DRAWS, (1 + MR_STATS_LEVEL) / 2);
}

/* `values` has room for the draws behind its `count` values, and is lost. */
static void summarise(double *values, size_t count, struct mr_stats *stats)
{
    *stats = (struct mr_stats){.median = NAN, .low = NAN, .high = NAN, .count = count};
    if (count == 0)
        return;
    mr_stats_sort(values, count);
    stats->median = mr_stats_quantile(values, count, 0.5);
    bootstrap(values, count, values + count, values + 2 * count, stats);
}

enum combine { PLAIN, RATIO, DIFFERENCE };

static double combined(const double *top, const double *bottom, size_t i,
                       enum combine how)
{
    if (how == PLAIN)
        return top[i];
    if (how == DIFFERENCE)
        return top[i] - bottom[i];
    return bottom[i] > 0 || bottom[i] < 0 ? top[i] / bottom[i] : NAN;
}

static enum mr_status stats_of(const double *top, const double *bottom, size_t count,
                               enum combine how, struct mr_stats *stats)
{
    double *values = malloc((2 * count + MR_STATS_DRAWS) * sizeof(*values));
    size_t kept = 0;

    if (!values)
        return MR_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        double value = combined(top, bottom, i, how);

        if (!isnan(value))
            values[kept++] = value;
    }
    summarise(values, kept, stats);
    free(values);
    return MR_OK;
}

enum mr_status mr_stats_of(const double *values, size_t count, struct mr_stats *stats)
{
    return stats_of(values, NULL, count, PLAIN, stats);
}

enum mr_status mr_stats_of_ratio(const double *top, const double *bottom, size_t count,
                                 struct mr_stats *stats)
{
    return stats_of(top, bottom, count, RATIO, stats);
}

enum mr_status mr_stats_of_difference(const double *top, const double *bottom,
                                      size_t count, struct mr_stats *stats)
{
    return stats_of(top, bottom, count, DIFFERENCE, stats);
}
