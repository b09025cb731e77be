/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far recorded times are off: reads the processor's counter just before each traced
 * call, and leaves what it read for the harness to compare with what was recorded.
 *
 *     stamps CALLS PAUSE_STEPS CPU FILE
 *
 * The first half of the calls follow each other at once, the second with a pause of
 * PAUSE_STEPS (about 1.5 ns each) before. FILE: CALLS numbers of 8 bytes. Prints
 * "tick_ns X", and "probe WRITTEN ACKED LOST" and "clock NAME" as subject.c does.
 */
#include "bench/programs/program.h"
#include "bench/programs/workload.h"

#include <stdio.h>
#include <stdlib.h>

#define FLUSH_MS 20000

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

int main(int argc, char **argv)
{
    uint64_t count = argc == 5 ? strtoull(argv[1], NULL, 10) : 0, start_ns, start;
    uint64_t *stamps = calloc(count ? count : 1, sizeof(*stamps));
    volatile uint32_t x = 1;

    if (count == 0 || !stamps) {
        fprintf(stderr, "usage: stamps CALLS PAUSE_STEPS CPU FILE\n");
        return 2;
    }
    program_stay_on((int)strtol(argv[3], NULL, 10));
    start_ns = program_now_ns(CLOCK_MONOTONIC_RAW);
    start = workload_ticks();
    x = make(stamps, count, strtoull(argv[2], NULL, 10), x);
    printf("tick_ns %.9f\n", (double)(program_now_ns(CLOCK_MONOTONIC_RAW) - start_ns) /
                                 (double)(workload_ticks() - start));
    (void)mr_probe_flush(FLUSH_MS);
    program_print_probe();
    return leave(argv[4], stamps, count);
}
