/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/assert.h"

#include <time.h>

MR_NO_INSTRUMENT static uint64_t now_ns(clockid_t clock)
{
    struct timespec now = {0, 0};

    /*
     * Cannot fail for these two clocks on Linux; and the probe, which must not abort,
     * calls this.
     */
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * MR_SECOND_NS + (uint64_t)now.tv_nsec;
}

uint64_t mr_clock_monotonic_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

uint64_t mr_clock_realtime_ns(void)
{
    return now_ns(CLOCK_REALTIME);
}

enum mr_clock_ticks_kind mr_clock_ticks_kind(void)
{
#if defined(__x86_64__)
    return MR_CLOCK_TICKS_TSC;
#elif defined(__aarch64__)
    return MR_CLOCK_TICKS_CNTVCT;
#else
    return MR_CLOCK_TICKS_MONOTONIC;
#endif
}

uint64_t mr_clock_ticks_hz(void)
{
    return MR_COMPILER_TICKS_HZ();
}

const char *mr_clock_ticks_name(enum mr_clock_ticks_kind kind)
{
    static const char *const names[] = {"tsc", "cntvct", "monotonic"};

    MR_ASSERT((unsigned)kind < MR_ARRAY_COUNT(names));
    return names[kind];
}
