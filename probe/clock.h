/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tick is worth: two samples of (ticks, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME) at
 * least MR_CALIBRATE_NS apart give a rate that is fixed for the life of the source
 * (docs/FORMAT.md section 3). Samples take system time by the vDSO; any thread, no
 * memory.
 *
 *     mr_clock_sample(&first);
 *     ... 10 ms ...
 *     mr_clock_sample(&second);
 *     mr_clock_calibrate(&first, &second, &info);
 */
#ifndef MR_PROBE_CLOCK_H
#define MR_PROBE_CLOCK_H

#include "net/control.h"

/*
 * Two samples are off by some 20 ns each; over 10 ms that is a rate good to 4 parts in a
 * million, 4 ns in a millisecond.
 */
#define MR_CALIBRATE_NS UINT64_C(10000000)

struct mr_clock_sample {
    uint64_t raw_ticks, raw_ns;   /* CLOCK_MONOTONIC_RAW */
    uint64_t real_ticks, real_ns; /* CLOCK_REALTIME */
    uint64_t error_ticks;         /* neither pair is further apart */
};

/* The tightest of several tries. */
void mr_clock_sample(struct mr_clock_sample *sample);
void mr_clock_calibrate(const struct mr_clock_sample *first,
                        const struct mr_clock_sample *second, struct mr_clock_info *info);

#endif
