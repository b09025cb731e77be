/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a number of loops: their median, and an interval for it by the
 * percentile bootstrap (Efron, 1979): as many values drawn anew with replacement, the
 * median of each draw, and of these medians the middle 95 %. Nothing is assumed of the
 * distribution; below ten values the interval is told but deserves little trust.
 *
 *     struct mr_stats stats;
 *     status = mr_stats_of(values, count, &stats);
 *     printf("%.2f [%.2f, %.2f]", stats.median, stats.low, stats.high);
 *
 * Any thread; the draws come from a fixed seed, so equal values make equal intervals.
 */
#ifndef MR_BENCH_STATS_H
#define MR_BENCH_STATS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define MR_STATS_DRAWS 2000
#define MR_STATS_LEVEL 0.95
#define MR_STATS_SEED UINT64_C(20261120)

struct mr_stats {
    double median, low, high; /* NAN when count is 0 */
    size_t count;
};

/* `values` keep their order; NANs among them are left out. MR_ENOMEM. */
enum mr_status mr_stats_of(const double *values, size_t count, struct mr_stats *stats);

/*
 * The stats of top[i] / bottom[i], pair by pair: what lies near in time is compared.
 * Pairs with a NAN or a bottom of 0 are left out. MR_ENOMEM.
 */
enum mr_status mr_stats_of_ratio(const double *top, const double *bottom, size_t count,
                                 struct mr_stats *stats);
/* The same of top[i] - bottom[i]. */
enum mr_status mr_stats_of_difference(const double *top, const double *bottom,
                                      size_t count, struct mr_stats *stats);

/* Sorts; no NAN may be among them. */
void mr_stats_sort(double *values, size_t count);
/*
 * The value at `share` (0 to 1) of `count` > 0 sorted values, between two of them by
 * linear interpolation (type 7 of Hyndman and Fan, 1996).
 */
double mr_stats_quantile(const double *sorted, size_t count, double share);

#endif
