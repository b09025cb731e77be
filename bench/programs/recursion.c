/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a recursion of depth 10, to be traced, for a time; its main thread stays on one processor.
 *
 *     recursion MILLISECONDS CPU      prints "calls N wall_ns N cpu_ns N lost N": of the loop; cpu_ns of this thread
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <millrace/probe.h>

#include "bench/programs/workload.h"

#define RUNS 1000
#define FLUSH_MS 20000

static uint64_t now(clockid_t clock)
{
    struct timespec time;

    (void)clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Once all that was recorded is in custody. */
static uint64_t lost(void)
{
    struct mr_probe_counts counts;

    if (mr_probe_flush(FLUSH_MS) != 0 || mr_probe_stats(&counts) != 0)
        return UINT64_MAX;
    return counts.lost_ring_full + counts.lost_block_timeout + counts.lost_budget +
           counts.lost_nested + counts.lost_exit;
}

int main(int argc, char **argv)
{
    uint64_t length_ns = (argc > 1 ? strtoull(argv[1], NULL, 10) : 100) * 1000000,
             calls = 0;
    uint64_t start_ns, cpu_ns, wall_ns;
    uint32_t x = (uint32_t)argc;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(argc > 2 ? atoi(argv[2]) : 0, &cpus);
    (void)sched_setaffinity(0, sizeof(cpus), &cpus);
    start_ns = now(CLOCK_MONOTONIC);
    cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);
    while (now(CLOCK_MONOTONIC) - start_ns < length_ns) {
        for (int i = 0; i < RUNS; i++)
            x = workload_rec10(x, WORKLOAD_DEPTH);
        calls += RUNS * WORKLOAD_DEPTH;
    }
    wall_ns = now(CLOCK_MONOTONIC) - start_ns;
    cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    (void)printf("calls %llu wall_ns %llu cpu_ns %llu lost %llu %s\n",
                 (unsigned long long)calls, (unsigned long long)wall_ns,
                 (unsigned long long)cpu_ns, (unsigned long long)lost(), x ? "" : "-");
    return 0;
}
