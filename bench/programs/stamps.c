/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far recorded times are off: reads the processor's counter just before each traced
 * call, and leaves what it read for the harness to compare with what was recorded.
 *
 *     stamps CALLS PAUSE_STEPS CPU FILE
 *
 * The first half of the calls follow each other at once, the second with a pause of
 * PAUSE_STEPS (about 1.5 ns each) before. FILE: CALLS numbers of 8 bytes. Prints
 * "tick_ns X", and "probe WRITTEN ACKED LOST" as subject.c does.
 */
#include "base/compiler.h"
#include "bench/programs/workload.h"

#include <millrace/probe.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FLUSH_MS 20000

static uint64_t now_ns(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint32_t make(uint64_t *stamps, uint64_t count, uint64_t pause, uint32_t x)
{
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t j = 0; i >= count / 2 && j < pause; j++)
            x = WORKLOAD_STEP(x);
        stamps[i] = workload_ticks();
        x = workload_tiny(x);
    }
    return x;
}

static void stay_on(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static int leave(const char *path, const uint64_t *stamps, uint64_t count)
{
    FILE *file = fopen(path, "wb");

    if (!file || fwrite(stamps, sizeof(*stamps), count, file) != count ||
        fclose(file) != 0) {
        perror(path);
        return 1;
    }
    return 0;
}

static void print_probe(void)
{
    struct mr_probe_counts counts;

    (void)mr_probe_flush(FLUSH_MS);
    if (mr_probe_stats(&counts) == 0)
        printf("probe %llu %llu %llu\n", (unsigned long long)counts.events_written,
               (unsigned long long)counts.events_acked,
               (unsigned long long)(counts.lost_ring_full + counts.lost_block_timeout +
                                    counts.lost_budget + counts.lost_nested +
                                    counts.lost_exit));
}

int main(int argc, char **argv)
{
    uint64_t count = argc == 5 ? strtoull(argv[1], NULL, 10) : 0, start_ns, start;
    uint64_t *stamps = calloc(count ? count : 1, sizeof(*stamps));
    volatile uint32_t x = 1;

    if (count == 0 || !stamps) {
        fprintf(stderr, "usage: stamps CALLS PAUSE_STEPS CPU FILE\n");
        return 2;
    }
    stay_on((int)strtol(argv[3], NULL, 10));
    start_ns = now_ns();
    start = workload_ticks();
    x = make(stamps, count, strtoull(argv[2], NULL, 10), x);
    printf("tick_ns %.9f\n",
           (double)(now_ns() - start_ns) / (double)(workload_ticks() - start));
    print_probe();
    return leave(argv[4], stamps, count);
}
