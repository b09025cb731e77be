/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source's clock made ready for the hot path: docs/FORMAT.md section 3 for times in ticks below 2^63, exact, one
 * multiplication and no branch. A time t before the clock's anchor would need floor division of a negative number;
 * so the anchor is moved back by `back` whole steps of 2^shift ticks, which are mult ns each, until nothing is negative:
 *
 *     ns = realtime_ns - back * mult + ((t + (back << shift) - ticks) * mult >> shift)
 *
 * Plain values; any thread. Use:
 *     struct mr_ticks ticks;
 *     mr_ticks_init(&ticks, &hello.source.clock);
 *     if (mr_ticks_fit(&clock, first) && mr_ticks_fit(&clock, last))
 *         ns = mr_ticks_ns(&ticks, t);        // for every t in first .. last
 */
#ifndef MR_PIPELINE_TICKS_H
#define MR_PIPELINE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "net/control.h"

struct mr_ticks {
    uint64_t
        add; /* (back << shift) - ticks, below 2^shift, so t + add stays below 2^64 */
    uint64_t offset; /* realtime_ns - back * mult, modulo 2^64 */
    uint32_t mult;
    uint8_t shift;
};

/* `clock` keeps FORMAT.md's ranges: mult >= 1, shift <= 63, ticks < 2^63. */
static inline void mr_ticks_init(struct mr_ticks *ticks,
                                 const struct mr_clock_info *clock)
{
    uint64_t mask = ((uint64_t)1 << clock->shift) - 1;
    uint64_t back = (clock->ticks >> clock->shift) + ((clock->ticks & mask) != 0);

    ticks->add = (back << clock->shift) - clock->ticks;
    ticks->offset = clock->realtime_ns - back * clock->mult;
    ticks->mult = clock->mult;
    ticks->shift = clock->shift;
}

static inline uint64_t mr_ticks_ns(const struct mr_ticks *ticks, uint64_t t)
{
    return ticks->offset +
           (uint64_t)((mr_u128)(t + ticks->add) * ticks->mult >>
                      (ticks->shift & 63)); /* & 63: told to the compiler */
}

/* Whether time t lies in a window that 32 bits can tell: 1970-01-01 00:00:01 to 2106. False from MR_TICKS_LIMIT on. */
bool mr_ticks_fit(const struct mr_clock_info *clock, uint64_t t);

#endif
