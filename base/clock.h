/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times in nanoseconds, and the processor's raw tick counter. Any thread,
 * async-signal-safe, no memory.
 *
 * Ticks cost a few nanoseconds (no fence: the read may move by some tens of instructions)
 * and have a frequency of their own; the rate is measured by who needs nanoseconds, from
 * two pairs (ticks, monotonic).
 *
 * Use:
 *     uint64_t start_ns = mr_clock_monotonic_ns();
 *     ...
 *     uint64_t spent_ns = mr_clock_monotonic_ns() - start_ns;
 */
#ifndef MR_BASE_CLOCK_H
#define MR_BASE_CLOCK_H

#include "base/compiler.h"

#include <stdint.h>

#define MR_MICROSECOND_NS UINT64_C(1000)
#define MR_MILLISECOND_NS UINT64_C(1000000)
#define MR_SECOND_NS UINT64_C(1000000000)
#define MR_MINUTE_NS (60 * MR_SECOND_NS)
#define MR_HOUR_NS (60 * MR_MINUTE_NS)

enum mr_clock_ticks_kind {
    MR_CLOCK_TICKS_TSC,      /* x86-64 time-stamp counter */
    MR_CLOCK_TICKS_CNTVCT,   /* aarch64 virtual counter */
    MR_CLOCK_TICKS_MONOTONIC /* no counter on this machine: nanoseconds */
};

/* CLOCK_MONOTONIC: never goes back, no relation to the calendar, one per host. */
MR_NO_INSTRUMENT uint64_t mr_clock_monotonic_ns(void);

/* CLOCK_REALTIME: nanoseconds since 1970-01-01 UTC; may jump. */
MR_NO_INSTRUMENT uint64_t mr_clock_realtime_ns(void);

/* What mr_clock_ticks() counts; fixed when the program is built. */
enum mr_clock_ticks_kind mr_clock_ticks_kind(void);
/* Its rate, where the processor tells it (aarch64: CNTFRQ_EL0), else 0. */
uint64_t mr_clock_ticks_hz(void);
/* "tsc", "cntvct" or "monotonic". */
const char *mr_clock_ticks_name(enum mr_clock_ticks_kind kind);

static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_clock_ticks(void)
{
#if MR_COMPILER_HAS_TICKS
    return MR_COMPILER_TICKS();
#else
    return mr_clock_monotonic_ns();
#endif
}

#endif
