/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the measured programs share: time, the processor they stay on, and what a probe tells of itself. Never traced.
 * PROGRAM_PROBE: a probe is linked.
 */
#ifndef MR_BENCH_PROGRAMS_PROGRAM_H
#define MR_BENCH_PROGRAMS_PROGRAM_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#if defined(PROGRAM_PROBE)
#include <millrace/probe.h>
#endif

static inline uint64_t program_now_ns(clockid_t clock)
{
    struct timespec time;

    (void)clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The calling thread, and those it starts; -1: any processor. */
static inline void program_stay_on(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    (void)sched_setaffinity(0, sizeof(set), &set); /* 0: the calling thread */
}

/* The line "probe WRITTEN ACKED LOST", where a probe is there to tell. */
static inline void program_print_probe(void)
{
#if defined(PROGRAM_PROBE)
    struct mr_probe_counts counts;

    if (mr_probe_stats(&counts) == 0)
        printf("probe %llu %llu %llu\n", (unsigned long long)counts.events_written,
               (unsigned long long)counts.events_acked,
               (unsigned long long)(counts.lost_ring_full + counts.lost_block_timeout +
                                    counts.lost_budget + counts.lost_nested +
                                    counts.lost_exit));
#endif
}

#endif
