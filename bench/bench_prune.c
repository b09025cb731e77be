/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pruning (probe/prune.h) costs and gives: ns per call of a tiny function before and
 * after, and what its statistics add to the writer per event.
 *
 *     bench_prune [rounds]
 *
 * floor     two reads of the processor's counter, each with an 8-byte store
 * recorded  two events into a ring by mr_ring_event(), behind a call as in a hook
 * hook      the call that counts in a pruned function's enter hook; its exit does nothing
 * alone     the same by a thread that has no counts of its own: an add with a lock
 * stub      a pruned patchable function: thunk and stub as they are; its exit is off
 * drain     from the ring into a frame: ns per event; then with every word looked at, and as
 *           it is: the first words, and one chunk in MR_SITE_STATS_SHARE
 *
 * All are measured in turn, in rounds of about 50 us; medians, tenth percentiles and means
 * without the outermost hundredths are told. The mean is what sampling costs.
 */
#include "probe/drain.h"
#include "probe/hook.h"
#include "probe/pruned.h"
#include "probe/registry.h"
#include "probe/site_stats.h"
#include "probe/stub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 4096
#define WORDS 32768
#define ROUNDS 2001
#define SITES 50
#define SITE (MR_SITE_FIRST_MODULE + 77)
#define FRAME (UINT64_C(2) * CALLS * sizeof(uint64_t) + 65536)

static struct mr_probe probe; /* of which stubs ask the clock */
static struct mr_pool pool;
static struct mr_ring *ring;
static struct mr_site_stats stats_all, stats_sampled;
static uint64_t plain[WORDS], plain_count;
static uint8_t frame_bytes[FRAME];

MR_NOINLINE static void floor_event(uint64_t bits)
{
    plain[plain_count++ & (WORDS - 1)] = bits | (uint32_t)mr_clock_ticks();
}

MR_NOINLINE static void recorded_event(uint64_t bits)
{
    mr_ring_event(&mr_thread_self, bits);
}

MR_NOINLINE static void hook_event(uint64_t bits)
{
    mr_pruned_enter(&mr_thread_self, bits);
}

/* A thunk as a site's call reaches it, gone over to counting; NULL where there are no stubs. */
static void (*thunk)(void);

static void stub_event(uint64_t bits)
{
    MR_UNUSED(bits);
    if (thunk)
        thunk();
}

static void open_thunk(void)
{
    static struct mr_stub_area area;
    struct mr_module module;

#if !defined(__x86_64__)
    return;
#endif
    if (!mr_modules_find((uintptr_t)floor_event, &module) ||
        mr_stub_open(&area, &module, 1, NULL) != MR_OK)
        abort();
    mr_stub_put(&area, 0, SITE);
    if (mr_stub_seal(&area, NULL) != MR_OK || !mr_stub_count(&area, 0, true))
        abort();
    thunk = (void (*)(void))(uintptr_t)mr_stub_enter(&area, 0);
}

/* As a writer that has taken all there is. */
static void empty(void)
{
    mr_store_release(&ring->tail, mr_thread_self.cursor);
}

static double calls(void (*event)(uint64_t), bool has_exit)
{
    uint64_t start_ns;

    empty();
    for (int i = 0; i < 32; i++) /* past the slow path and any long pause */
        event(mr_event_enter(SITE));
    start_ns = mr_clock_monotonic_ns();
    for (int i = 0; i < CALLS; i++) {
        event(mr_event_enter(SITE));
        if (has_exit)
            event(mr_event_exit(SITE));
    }
    return (double)(mr_clock_monotonic_ns() - start_ns) / CALLS;
}

/* Calls of some functions, some in others; what a writer finds. ns per event. */
static double drain(struct mr_site_stats *stats)
{
    struct mr_drain_frame frame;
    uint64_t start_ns;

    ring->done.tail = mr_thread_self.cursor;
    empty();
    for (uint32_t i = 0; i < CALLS / 2; i++) {
        uint32_t outer = SITE + 16 * (i % SITES), inner = SITE + 16 * (i * 7 % SITES);

        mr_ring_event(&mr_thread_self, mr_event_enter(outer));
        mr_ring_event(&mr_thread_self, mr_event_enter(inner));
        mr_ring_event(&mr_thread_self, mr_event_exit(inner));
        mr_ring_event(&mr_thread_self, mr_event_exit(outer));
    }
    start_ns = mr_clock_monotonic_ns();
    mr_drain_begin(&frame, frame_bytes, sizeof(frame_bytes));
    frame.stats = stats;
    (void)mr_drain_ring(&frame, ring, 1, 0);
    mr_drain_commit(&frame, &pool);
    return (double)(mr_clock_monotonic_ns() - start_ns) / (2 * CALLS);
}

static double drain_alone(void)
{
    return drain(NULL);
}

static double drain_all(void)
{
    stats_all.looked = 0; /* never enough */
    return drain(&stats_all);
}

static double drain_sampled(void)
{
    return drain(&stats_sampled);
}

static double of_floor(void)
{
    return calls(floor_event, true);
}

static double of_recorded(void)
{
    return calls(recorded_event, true);
}

static double of_hook(void)
{
    return calls(hook_event, false);
}

static double of_alone(void)
{
    uint64_t *counts = mr_load_relaxed(&ring->pruned);
    double ns;

    mr_store_relaxed(&ring->pruned, NULL);
    ns = calls(hook_event, false);
    mr_store_relaxed(&ring->pruned, counts);
    return ns;
}

static double of_stub(void)
{
    return calls(stub_event, false);
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static void tell(const char *name, double *values, size_t count, double floor_ns)
{
    size_t cut = count / 100;
    double median, sum = 0;

    qsort(values, count, sizeof(*values), ascending);
    median = values[(count - 1) / 2];
    for (size_t i = cut; i < count - cut; i++)
        sum += values[i];
    printf("%-18s %7.2f ns, p10 %7.2f, mean of 98 %% %7.2f", name, median,
           values[(count - 1) / 10], sum / (double)(count - 2 * cut));
    if (floor_ns > 0)
        printf(", %.3f x floor", median / floor_ns);
    printf("\n");
}

static void set_up(void)
{
    probe.clock.mode = MR_CLOCK_MODE_COUNTER;
    mr_probe = &probe;
    open_thunk();
    mr_pool_init(&pool, WORDS * sizeof(uint64_t), 1 << 24);
    pool.shared.policy = MR_POLICY_DROP;
    ring = mr_pool_take(&pool);
    if (!ring || mr_pruned_add(SITE) == MR_PRUNED_NONE ||
        !mr_pool_counts(&pool, ring, MR_PRUNED_SLOTS * sizeof(uint64_t)))
        abort();
    for (uint32_t i = 1; i < SITES; i++) /* a table that is not empty */
        (void)mr_pruned_add(SITE + 16 * i);
    mr_ring_attach(&mr_thread_self, ring);
    mr_pool_publish(ring);
    mr_store_relaxed(&mr_hook_state.clock, MR_CLOCK_MODE_COUNTER);
    mr_site_stats_limit(&stats_all, 130, 52);
    mr_site_stats_limit(&stats_sampled, 130, 52);
}

int main(int argc, char **argv)
{
    static double (*const cases[])(void) = {of_floor,  of_recorded,  of_hook,
                                            of_alone,  of_stub,      drain_alone,
                                            drain_all, drain_sampled};
    static const char *const names[] = {
        "floor",         "recorded",    "hook, counted",     "hook, alone",
        "stub, counted", "drain/event", "drain, all looked", "drain, sampled"};
    static double values[MR_ARRAY_COUNT(cases)][ROUNDS];
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
    double floor_ns;

    if (rounds < 1 || rounds > ROUNDS)
        rounds = ROUNDS;
    set_up();
    for (size_t i = 0; i < rounds; i++)
        for (size_t c = 0; c < MR_ARRAY_COUNT(cases); c++)
            values[c][i] = cases[c]();
    tell(names[0], values[0], rounds, 0);
    floor_ns = values[0][(rounds - 1) / 2];
    for (size_t c = 1; c < MR_ARRAY_COUNT(cases); c++)
        tell(names[c], values[c], rounds, c < 5 ? floor_ns : 0);
    return 0;
}
