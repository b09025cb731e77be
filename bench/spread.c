/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/spread.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_BITS 12 /* 2^12 = MR_SPREAD_EXACT */

static uint32_t bin_of(uint32_t value)
{
    uint32_t power, step;

    if (value < MR_SPREAD_EXACT)
        return value;
    power = 63 - (uint32_t)MR_LEADING_ZEROS64((uint64_t)value); /* 12 .. 31 */
    step = value >> (power - EXACT_BITS + 1);                   /* 2,048 .. 4,095 */
    return MR_SPREAD_EXACT + (power - EXACT_BITS) * MR_SPREAD_STEPS + step -
           MR_SPREAD_STEPS;
}

/* The largest value of a bin. */
static uint32_t top_of(uint32_t bin)
{
    uint32_t power, step;

    if (bin < MR_SPREAD_EXACT)
        return bin;
    bin -= MR_SPREAD_EXACT;
    power = bin / MR_SPREAD_STEPS + 1;
    step = bin % MR_SPREAD_STEPS + MR_SPREAD_STEPS;
    return (uint32_t)((((uint64_t)step + 1) << power) - 1);
}

struct mr_spread *mr_spread_new(void)
{
    struct mr_spread *spread = malloc(sizeof(*spread));

    if (spread)
        mr_spread_clear(spread);
    return spread;
}

void mr_spread_free(struct mr_spread *spread)
{
    free(spread);
}

void mr_spread_clear(struct mr_spread *spread)
{
    memset(spread, 0, sizeof(*spread));
    spread->least = UINT32_MAX;
}

void mr_spread_add(struct mr_spread *spread, uint32_t value)
{
    spread->count++;
    spread->least = value < spread->least ? value : spread->least;
    spread->largest = value > spread->largest ? value : spread->largest;
    spread->sum += value;
    spread->squares += (double)value * value;
    spread->bins[bin_of(value)]++;
}

void mr_spread_merge(struct mr_spread *into, const struct mr_spread *from)
{
    into->count += from->count;
    into->least = from->least < into->least ? from->least : into->least;
    into->largest = from->largest > into->largest ? from->largest : into->largest;
    into->sum += from->sum;
    into->squares += from->squares;
    for (uint32_t i = 0; i < MR_SPREAD_BINS; i++)
        into->bins[i] += from->bins[i];
}

double mr_spread_mean(const struct mr_spread *spread)
{
    return spread->count > 0 ? spread->sum / (double)spread->count : (double)NAN;
}

double mr_spread_deviation(const struct mr_spread *spread)
{
    double count = (double)spread->count, variance;

    if (spread->count < 2)
        return spread->count == 1 ? 0 : (double)NAN;
    variance = (spread->squares - spread->sum * spread->sum / count) / (count - 1);
    return variance > 0 ? sqrt(variance) : 0;
}

double mr_spread_quantile(const struct mr_spread *spread, double share)
{
    uint64_t wanted = (uint64_t)ceil(share * (double)spread->count), seen = 0;
    uint32_t value;

    MR_ASSERT(share >= 0 && share <= 1);
    if (spread->count == 0)
        return (double)NAN;
    wanted = wanted > 0 ? wanted : 1;
    for (uint32_t i = 0; i < MR_SPREAD_BINS; i++) {
        seen += spread->bins[i];
        if (seen < wanted)
            continue;
        value = top_of(i);
        return value < spread->largest ? value : spread->largest;
    }
    return spread->largest;
}

double mr_spread_share(const struct mr_spread *spread, double value)
{
    uint64_t seen = 0;

    if (spread->count == 0)
        return (double)NAN;
    for (uint32_t i = 0; i < MR_SPREAD_BINS && (double)top_of(i) <= value; i++)
        seen += spread->bins[i];
    return value >= spread->largest ? 1 : (double)seen / (double)spread->count;
}
