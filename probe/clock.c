/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/clock.h"

#include "base/clock.h"

#include <time.h>

#define TRY_COUNT 16

static uint64_t read_ns(clockid_t clock)
{
    struct timespec time;

    if (clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_nsec;
}

static void sample_once(struct mr_clock_sample *sample)
{
    uint64_t before = mr_clock_ticks(), between, after;

    sample->raw_ns = read_ns(CLOCK_MONOTONIC_RAW);
    between = mr_clock_ticks();
    sample->real_ns = read_ns(CLOCK_REALTIME);
    after = mr_clock_ticks();
    sample->raw_ticks = before + (between - before) / 2;
    sample->real_ticks = between + (after - between) / 2;
    sample->error_ticks =
        between - before > after - between ? between - before : after - between;
}

void mr_clock_sample(struct mr_clock_sample *sample)
{
    sample_once(sample);
    for (int i = 1; i < TRY_COUNT; i++) {
        struct mr_clock_sample again;

        sample_once(&again);
        if (again.error_ticks < sample->error_ticks)
            *sample = again;
    }
}

void mr_clock_calibrate(const struct mr_clock_sample *first,
                        const struct mr_clock_sample *second, struct mr_clock_info *info)
{
    static const enum mr_clock_kind kinds[] = {
        [MR_CLOCK_TICKS_TSC] = MR_CLOCK_TSC,
        [MR_CLOCK_TICKS_CNTVCT] = MR_CLOCK_CNTVCT,
        [MR_CLOCK_TICKS_MONOTONIC] = MR_CLOCK_MONOTONIC,
    };
    uint64_t ticks = second->raw_ticks - first->raw_ticks;
    uint64_t ns = second->raw_ns - first->raw_ns;
    mr_u128 mult = 0;
    uint8_t shift = 64;

    if (ticks == 0 || ns == 0 || ns > UINT64_MAX / 2) /* no clock moves: say 1 GHz */
        ticks = ns = 1;
    do
        mult = ((mr_u128)ns << --shift) / ticks;
    while (mult > UINT32_MAX && shift > 0);
    info->kind = kinds[mr_clock_ticks_kind()];
    info->mult = mult ? (uint32_t)mult : 1;
    info->shift = shift;
    info->ticks = second->real_ticks;
    info->realtime_ns = second->real_ns;
}
