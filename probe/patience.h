/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the probe waits for somebody before it gives up. It counts only while one looks: a process that was stopped (SIGSTOP, a
 * frozen container, a machine that is moved) or had no processor did not wait, and whom it waits for, often a thread of its own, had
 * no time either. Of the time between two looks at most MR_PATIENCE_LOOK_NS count, and at most a quarter of the limit: nobody is
 * given up before he was looked for four times.
 *
 *     struct mr_patience patience = mr_patience_begin();
 *     while (!is_there() && mr_patience_left(&patience, limit_ns) > 0)
 *         mr_sleep_ns(POLL_NS);
 *
 * Times in nanoseconds of CLOCK_MONOTONIC. One thread each; async-signal-safe.
 */
#ifndef MR_PROBE_PATIENCE_H
#define MR_PROBE_PATIENCE_H

#include "base/clock.h"
#include "base/compiler.h"

#include <stdint.h>

#define MR_PATIENCE_LOOK_NS (50 * MR_MILLISECOND_NS)
#define MR_PATIENCE_LOOKS 4

struct mr_patience {
    uint64_t began_ns, seen_ns; /* the first look, the last one */
    uint64_t waited_ns;         /* what counts of the time between them */
};

static inline MR_NO_INSTRUMENT struct mr_patience mr_patience_begin(void)
{
    uint64_t now_ns = mr_clock_monotonic_ns();

    return (struct mr_patience){.began_ns = now_ns, .seen_ns = now_ns};
}

/* A look: what is left of `limit_ns`, from seen_ns on; 0: give up. The limit may differ from look to look. */
static inline MR_NO_INSTRUMENT uint64_t mr_patience_left(struct mr_patience *patience,
                                                         uint64_t limit_ns)
{
    uint64_t now_ns = mr_clock_monotonic_ns(), since_ns = now_ns - patience->seen_ns;
    uint64_t most_ns = limit_ns / MR_PATIENCE_LOOKS;

    if (most_ns > MR_PATIENCE_LOOK_NS)
        most_ns = MR_PATIENCE_LOOK_NS;
    patience->seen_ns = now_ns;
    patience->waited_ns += since_ns < most_ns ? since_ns : most_ns;
    return patience->waited_ns < limit_ns ? limit_ns - patience->waited_ns : 0;
}

#endif
