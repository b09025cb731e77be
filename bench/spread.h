/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How millions of durations are spread: counted by value, exact below 4,096 ns, above to 1 part in 2,048; least, largest,
 * mean and deviation are exact. For quantiles of whole benchmarks, which no array of all values has room for. One thread.
 *
 *     struct mr_spread *spread = mr_spread_new();          // NULL without memory
 *     mr_spread_add(spread, 153);
 *     mr_spread_merge(all, spread);
 *     ns = mr_spread_quantile(spread, 0.999);
 *     mr_spread_free(spread);
 */
#ifndef MR_BENCH_SPREAD_H
#define MR_BENCH_SPREAD_H

#include <stdint.h>

#define MR_SPREAD_EXACT 4096
#define MR_SPREAD_STEPS 2048 /* per power of two above */
#define MR_SPREAD_BINS (MR_SPREAD_EXACT + 20 * MR_SPREAD_STEPS)

struct mr_spread {
    uint64_t count;
    uint32_t least, largest; /* of no value: UINT32_MAX, 0 */
    double sum, squares;
    uint64_t bins[MR_SPREAD_BINS];
};

struct mr_spread *mr_spread_new(void);
void mr_spread_free(struct mr_spread *spread);
void mr_spread_clear(struct mr_spread *spread);

void mr_spread_add(struct mr_spread *spread, uint32_t value);
void mr_spread_merge(struct mr_spread *into, const struct mr_spread *from);

/* NAN where nothing was added. */
double mr_spread_mean(const struct mr_spread *spread);
double mr_spread_deviation(const struct mr_spread *spread); /* of a sample: n - 1 */
/* The least value that at least `share` (0 to 1) of all do not pass. */
double mr_spread_quantile(const struct mr_spread *spread, double share);
/* The share of values that do not pass `value`. */
double mr_spread_share(const struct mr_spread *spread, double value);

#endif
