/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock hybrid against the floor: ns per call (enter and exit) and the error of its times.
 *
 *     bench_hybrid [rounds]            needs two processors: one is the ticker's
 *
 * floor    two reads of the processor's counter, each with an 8-byte store
 * precise  two events into a ring by mr_ring_event(), behind a call as in a hook
 * hybrid   the same by mr_ring_event_hybrid(), with the probe's own ticker
 * error    of 1,000 events each: the counter, read just before an event, less its time; at
 *          once (dense), with a pause before each (sparse), before every fortieth (bursts)
 *
 * The three are measured in turn, in rounds of 50 us so that most see no interrupt; the
 * medians and the tenth percentile over rounds are told. No writer thread: the bench
 * empties the ring between rounds itself, so that it measures the event alone.
 */
#include "probe/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 4096
#define WORDS 32768
#define ROUNDS 2001
#define ERRORS_MAX (1u << 22)
#define SITE MR_SITE_FIRST_MODULE

static struct mr_probe probe; /* what the ticker needs of one */
static struct mr_thread thread;
static struct mr_ring *ring;
static uint64_t plain[WORDS], plain_count;

MR_NOINLINE static void floor_event(uint64_t bits)
{
    plain[plain_count++ & (WORDS - 1)] = bits | (uint32_t)mr_clock_ticks();
}

MR_NOINLINE static void precise_event(uint64_t bits)
{
    mr_ring_event(&thread, bits);
}

MR_NOINLINE static void hybrid_event(uint64_t bits)
{
    mr_ring_event_hybrid(&thread, bits);
}

/* As a writer that has taken all there is. */
static void empty(void)
{
    mr_store_release(&ring->tail, thread.cursor);
}

static double round_of(void (*event)(uint64_t))
{
    uint64_t start_ns;

    empty();
    for (int i = 0; i < 32; i++) /* past the slow path and any long pause */
        event(mr_event_enter(SITE));
    start_ns = mr_clock_monotonic_ns();
    for (int i = 0; i < CALLS; i++) {
        event(mr_event_enter(SITE));
        event(mr_event_exit(SITE));
    }
    return (double)(mr_clock_monotonic_ns() - start_ns) / CALLS;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double at(const double *sorted, size_t count, double share)
{
    return sorted[(size_t)((double)(count - 1) * share)];
}

static double tell(const char *name, double *values, size_t count, double floor_ns)
{
    double median;

    qsort(values, count, sizeof(*values), ascending);
    median = at(values, count, 0.5);
    printf("%-8s %7.2f ns/call, p10 %7.2f", name, median, at(values, count, 0.1));
    if (floor_ns > 0)
        printf(", %.3f x floor", median / floor_ns);
    printf("\n");
    return median;
}

/* Busy or not before every event whose number is a multiple of `run`. */
static size_t errors_of(int run, uint32_t pause, uint64_t limit, double *errors,
                        double ns_per_tick)
{
    size_t count = 0;

    while (count < limit) {
        empty();
        for (int i = 0; i < 1000; i++) {
            uint64_t before, stamp;

            for (uint32_t wait = 0; i % run == 0 && wait < pause; wait++)
                mr_cpu_relax();
            before = mr_clock_ticks();
            mr_ring_event_hybrid(&thread, mr_event_enter(SITE));
            stamp = mr_load_relaxed(&thread.words[(thread.cursor - 1) & thread.mask]);
            errors[count++] =
                (double)(int32_t)((uint32_t)before - (uint32_t)stamp) * ns_per_tick;
        }
    }
    qsort(errors, count, sizeof(*errors), ascending);
    return count;
}

static void tell_errors(const char *name, int run, uint32_t pause, double ns_per_tick)
{
    static double errors[ERRORS_MAX + 1000];
    size_t count = errors_of(run, pause, run == 1 ? ERRORS_MAX / 16 : ERRORS_MAX, errors,
                             ns_per_tick);

    printf("error, %-6s p50 %7.0f ns, p99 %7.0f, p99.9 %7.0f, p99.99 %7.0f, max %9.0f "
           "(%zu events)\n",
           name, at(errors, count, 0.5), at(errors, count, 0.99),
           at(errors, count, 0.999), at(errors, count, 0.9999), errors[count - 1], count);
}

static void set_up(void)
{
    probe.clock.mode = MR_CLOCK_MODE_HYBRID;
    mr_clock_sample(probe.clock.mode, &probe.source.first_sample);
    mr_pool_init(&probe.pool, WORDS * sizeof(uint64_t), 1 << 24);
    ring = mr_pool_take(&probe.pool);
    if (!ring || mr_tick_start(&probe) != MR_OK)
        abort();
    mr_ring_attach(&thread, ring);
    mr_pool_publish(ring);
    while (mr_load_relaxed(&mr_tick.number) == MR_TICK_NONE)
        mr_tick_want(&probe.ticker);
}

int main(int argc, char **argv)
{
    static double values[3][ROUNDS];
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
    double floor_ns, ns_per_tick;

    if (rounds < 1 || rounds > ROUNDS)
        rounds = ROUNDS;
    set_up();
    ns_per_tick = 2.0 * MR_TICK_NS / (double)mr_load_relaxed(&mr_tick.stale_ticks);
    for (size_t i = 0; i < rounds; i++) {
        mr_tick_want(&probe.ticker);
        values[0][i] = round_of(floor_event);
        values[1][i] = round_of(precise_event);
        values[2][i] = round_of(hybrid_event);
    }
    floor_ns = tell("floor", values[0], rounds, 0);
    (void)tell("precise", values[1], rounds, floor_ns);
    (void)tell("hybrid", values[2], rounds, floor_ns);
    mr_tick_want(&probe.ticker);
    tell_errors("dense", 1000, 0, ns_per_tick);
    mr_tick_want(&probe.ticker);
    tell_errors("sparse", 1, 30, ns_per_tick);
    mr_tick_want(&probe.ticker);
    tell_errors("bursts", 40, 60, ns_per_tick);
    printf("ticks: %llu, of the time 99 %% in gaps up to %.0f ns, longest %.0f ns, "
           "processor time %.3f s\n",
           (unsigned long long)mr_tick_count(&probe.ticker),
           (double)mr_tick_gap(&probe.ticker, 990000) * ns_per_tick,
           (double)mr_tick_gap_max(&probe.ticker) * ns_per_tick,
           (double)mr_load_relaxed(&probe.ticker.cpu_ns) / 1e9);
    mr_store_release(&probe.stop_wanted, 1);
    return 0;
}
