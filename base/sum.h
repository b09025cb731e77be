/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of what others tell: they stop at the greatest number there is (docs/FORMAT.md, section 8), so that whoever tells of too much
 * cannot make less of it, or nothing. Plain values; any thread.
 *
 *     mr_sum_add(&totals->ok, stats->ok);
 *     calls = mr_sum3(stats->ok, stats->failed, stats->incomplete);
 */
#ifndef MR_BASE_SUM_H
#define MR_BASE_SUM_H

#include <stdint.h>

static inline uint64_t mr_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t mr_sum3(uint64_t a, uint64_t b, uint64_t c)
{
    return mr_sum(mr_sum(a, b), c);
}

static inline void mr_sum_add(uint64_t *into, uint64_t value)
{
    *into = mr_sum(*into, value);
}

/* At both ends. */
static inline int64_t mr_sum_signed(int64_t a, int64_t b)
{
    if (b > 0 && a > INT64_MAX - b)
        return INT64_MAX;
    if (b < 0 && a < INT64_MIN - b)
        return INT64_MIN;
    return a + b;
}

#endif
