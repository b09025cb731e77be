/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clock a program is traced with, and what a tick is worth: two samples of (ticks, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME) at
 * least MR_CALIBRATE_NS apart give a rate that is fixed for the life of the source
 * (docs/FORMAT.md section 3). Samples take system time by the vDSO; any thread, no
 * memory.
 *
 *     mr_clock_sample(mode, &first);
 *     ... 10 ms ...
 *     mr_clock_sample(mode, &second);
 *     mr_clock_calibrate(mode, &first, &second, &info);
 */
#ifndef MR_PROBE_CLOCK_H
#define MR_PROBE_CLOCK_H

#include "base/clock.h"
#include "net/control.h"

/* Not 0, so that it tells in one word whether and how calls are recorded. */
enum mr_clock_mode {
    MR_CLOCK_MODE_COUNTER = 1,   /* the processor's, read at every event */
    MR_CLOCK_MODE_HYBRID = 2,    /* the same, read when a tick has passed: probe/tick.h */
    MR_CLOCK_MODE_MONOTONIC = 3, /* CLOCK_MONOTONIC, in nanoseconds */
};

#define MR_CLOCK_WARNING_SIZE 192

/* Constant once the probe has started. */
struct mr_probe_clock {
    enum mr_clock_mode mode;
    char warning[MR_CLOCK_WARNING_SIZE]; /* why it is not the one asked for, or "" */
};

/* What is known of the machine, and decides. */
struct mr_clock_facts {
    bool has_counter;     /* of a rate that does not change with the processor's */
    char clocksource[32]; /* the kernel's; "": unknown */
    uint32_t cpus;        /* that this process may run on */
};

void mr_clock_facts(struct mr_clock_facts *facts);
/*
 * The clock for who wants `wanted`: without a counter that can be trusted, monotonic; a
 * ticker needs a processor of its own, so without a second one, hybrid becomes counter.
 */
void mr_clock_choose(enum mr_clock_mode wanted, const struct mr_clock_facts *facts,
                     struct mr_probe_clock *clock);

/* Now, in ticks of this clock; precise also in mode hybrid. Async-signal-safe. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_clock_read(enum mr_clock_mode mode)
{
    return mode == MR_CLOCK_MODE_MONOTONIC ? mr_clock_monotonic_ns() : mr_clock_ticks();
}

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
void mr_clock_sample(enum mr_clock_mode mode, struct mr_clock_sample *sample);
/*
 * Sets rate, anchor and kind. Where the processor tells its counter's rate (CNTFRQ_EL0)
 * and what was measured agrees, that one is taken.
 */
void mr_clock_calibrate(enum mr_clock_mode mode, const struct mr_clock_sample *first,
                        const struct mr_clock_sample *second, struct mr_clock_info *info);

#endif
