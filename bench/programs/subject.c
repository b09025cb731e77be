/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that `millrace bench probe` measures:
 *
 *     subject WORKLOAD THREADS SLICES SLICE_US CPU ADDED_NS
 *
 * WORKLOAD tiny, rec10 or body. SLICES times, in turn: the floor (loops of 2 x clock read
 * and 8-byte store), the workload; each for about SLICE_US. CPU: the processor to stay on,
 * -1 any. ADDED_NS: what each call waits besides (the harness checks itself so). Then, of
 * one thread, a stretch of short batches timed one by one. It prints lines "name number...":
 *
 *     slice FLOOR_NS WORK_NS               per 2 stores; per call; means over the threads
 *     batch CALLS TIMER_NS P50 P90 P99 P999 P9999 MAX
 *                                          ns per call; TIMER_NS: an empty batch, per call
 *     calls N                              all that were made
 *     probe WRITTEN ACKED LOST             events, where a probe is recording
 *     clock NAME                           of that probe
 */
#include "base/compiler.h"
#include "bench/programs/program.h"
#include "bench/programs/workload.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64
#define SLICES_MAX 1000
#define STORES (UINT64_C(1) << 15) /* 256 KiB, as a ring has */
#define BATCHES_MAX 200000
#define BATCH_US 30000 /* of all batches together, about */
#define FLUSH_MS 20000
#define FIT_RUNS 20
#define FIT_STEPS 300000 /* about 0.5 ms */

enum workload { TINY, REC10, BODY, WORKLOADS };

static const struct {
    const char *name;
    uint32_t calls;      /* of one run */
    uint32_t batch_runs; /* so that a clock of 10 ns steps shows in tenths */
} workloads[WORKLOADS] = {{"tiny", 1, 32}, {"rec10", WORKLOAD_DEPTH, 4}, {"body", 1, 8}};

struct options {
    enum workload workload;
    uint32_t threads, slices;
    uint64_t slice_ns;
    int cpu;
    double added_ns;
};

/* Of one thread. */
struct worker {
    const struct options *options;
    pthread_barrier_t *barrier;
    pthread_t thread;
    uint64_t *stores;
    uint64_t floor_count, runs; /* of a slice */
    uint64_t added_steps;
    uint64_t all_runs;
    uint32_t x;
    double floor_ns[SLICES_MAX], work_ns[SLICES_MAX];
};

static uint64_t now_ns(void)
{
    return program_now_ns(CLOCK_MONOTONIC_RAW);
}

static MR_NOINLINE void loop_floor(struct worker *worker, uint64_t count)
{
    uint64_t *stores = worker->stores;

    for (uint64_t i = 0; i < 2 * count; i += 2) {
        stores[i % STORES] = workload_ticks();
        stores[(i + 1) % STORES] = workload_ticks();
    }
}

/* About a nanosecond a step; no step can begin before the one before. */
static MR_NOINLINE uint32_t added(uint32_t x, uint64_t steps)
{
    for (; steps > 0; steps--)
        x = WORKLOAD_STEP(x);
    return x;
}

static MR_NOINLINE uint32_t loop_tiny(uint32_t x, uint64_t runs)
{
    for (; runs > 0; runs--)
        x = workload_tiny(x);
    return x;
}

static MR_NOINLINE uint32_t loop_rec10(uint32_t x, uint64_t runs)
{
    for (; runs > 0; runs--)
        x = workload_rec10(x, WORKLOAD_DEPTH);
    return x;
}

static MR_NOINLINE uint32_t loop_body(uint32_t x, uint64_t runs)
{
    for (; runs > 0; runs--)
        x = workload_body(x);
    return x;
}

static MR_NOINLINE uint32_t loop_added(uint32_t x, uint64_t runs, uint64_t steps)
{
    for (; runs > 0; runs--)
        x = added(workload_tiny(x), steps);
    return x;
}

static MR_ALWAYS_INLINE void run(struct worker *worker, uint64_t runs)
{
    worker->all_runs += runs;
    if (worker->added_steps > 0)
        worker->x = loop_added(worker->x, runs, worker->added_steps);
    else if (worker->options->workload == TINY)
        worker->x = loop_tiny(worker->x, runs);
    else if (worker->options->workload == REC10)
        worker->x = loop_rec10(worker->x, runs);
    else
        worker->x = loop_body(worker->x, runs);
}

static double time_floor(struct worker *worker, uint64_t count)
{
    uint64_t start_ns = now_ns();

    loop_floor(worker, count);
    return (double)(now_ns() - start_ns);
}

static double time_work(struct worker *worker, uint64_t runs)
{
    uint64_t start_ns = now_ns();

    run(worker, runs);
    return (double)(now_ns() - start_ns);
}

/* How many of what `measure` does fit a slice; also the warm-up. */
static uint64_t fit(struct worker *worker, double (*measure)(struct worker *, uint64_t))
{
    double slice_ns = (double)worker->options->slice_ns, ns = 0;
    uint64_t count = 64;

    while (ns < slice_ns / 2 && count < UINT64_C(1) << 40) {
        count *= 2;
        ns = measure(worker, count);
    }
    ns = measure(worker, count);
    count = ns > 0 ? (uint64_t)((double)count * slice_ns / ns) : count;
    return count > 0 ? count : 1;
}

static double time_added(struct worker *worker, uint64_t steps)
{
    uint64_t start_ns = now_ns();

    worker->x = added(worker->x, steps);
    return (double)(now_ns() - start_ns);
}

/* Steps that take ADDED_NS, by the shortest of some long runs: the least disturbed. */
static uint64_t fit_added(struct worker *worker)
{
    double steps, least_ns = 0;

    if (worker->options->added_ns <= 0)
        return 0;
    (void)fit(worker, time_added);
    for (int i = 0; i < FIT_RUNS; i++) {
        double ns = time_added(worker, FIT_STEPS);

        least_ns = i == 0 || ns < least_ns ? ns : least_ns;
    }
    steps = worker->options->added_ns / least_ns * FIT_STEPS;
    return steps > 0 ? (uint64_t)(steps + 0.5) : 1;
}

static void meet(struct worker *worker)
{
    (void)pthread_barrier_wait(worker->barrier);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct options *options = worker->options;
    double calls = workloads[options->workload].calls;

    program_stay_on(options->cpu);
    worker->added_steps = fit_added(worker);
    worker->floor_count = fit(worker, time_floor);
    worker->runs = fit(worker, time_work);
    for (uint32_t i = 0; i < options->slices; i++) {
        meet(worker);
        worker->floor_ns[i] =
            time_floor(worker, worker->floor_count) / (double)worker->floor_count;
        meet(worker);
        worker->work_ns[i] =
            time_work(worker, worker->runs) / ((double)worker->runs * calls);
    }
    return NULL;
}

static void print_slices(const struct worker *workers, const struct options *options)
{
    for (uint32_t i = 0; i < options->slices; i++) {
        double floor_ns = 0, work_ns = 0;

        for (uint32_t j = 0; j < options->threads; j++) {
            floor_ns += workers[j].floor_ns[i] / options->threads;
            work_ns += workers[j].work_ns[i] / options->threads;
        }
        printf("slice %.6f %.6f\n", floor_ns, work_ns);
    }
}

static int compare(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/*
 * Each batch begins with the clock read that ended the one before, so no time is left out,
 * and each holds one read. What it costs is told as TIMER_NS, and not taken off.
 */
static double time_batches(struct worker *worker, uint64_t *spent, uint32_t count,
                           uint32_t runs)
{
    uint64_t start_ns = now_ns(), first = workload_ticks(), last = first;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t next;

        if (runs > 0)
            run(worker, runs);
        next = workload_ticks();
        spent[i] = next - last;
        last = next;
    }
    return (double)(now_ns() - start_ns) / (double)(last - first); /* ns a tick */
}

static void print_batches(struct worker *worker)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};
    const struct options *options = worker->options;
    uint32_t runs = workloads[options->workload].batch_runs, count;
    double calls = (double)runs * workloads[options->workload].calls, scale;
    double each_ns = worker->work_ns[0] * calls;
    uint64_t *spent = calloc(BATCHES_MAX, sizeof(*spent));

    if (!spent)
        return;
    count = (uint32_t)(BATCH_US * 1000.0 / (each_ns + 10));
    count = count < 10000 ? 10000 : count < BATCHES_MAX ? count : BATCHES_MAX;
    scale = time_batches(worker, spent, count, 0);
    qsort(spent, count, sizeof(*spent), compare);
    printf("batch %.0f %.4f", calls, (double)spent[count / 2] * scale / calls);
    scale = time_batches(worker, spent, count, runs);
    qsort(spent, count, sizeof(*spent), compare);
    for (size_t i = 0; i < MR_ARRAY_COUNT(shares); i++)
        printf(" %.4f", (double)spent[(size_t)((count - 1) * shares[i])] * scale / calls);
    printf("\n");
    free(spent);
}

static void print_probe(void)
{
#if defined(PROGRAM_PROBE)
    int flushed = mr_probe_flush(FLUSH_MS);

    program_print_probe();
    if (flushed != 0 && mr_probe_enabled())
        fprintf(stderr, "subject: what was recorded is not in custody after %d ms\n",
                FLUSH_MS);
#endif
}

static bool parse(int argc, char **argv, struct options *options)
{
    int i = 0;

    if (argc != 7)
        return false;
    while (i < WORKLOADS && strcmp(argv[1], workloads[i].name) != 0)
        i++;
    *options = (struct options){.workload = (enum workload)i,
                                .threads = (uint32_t)strtoul(argv[2], NULL, 10),
                                .slices = (uint32_t)strtoul(argv[3], NULL, 10),
                                .slice_ns = 1000 * strtoull(argv[4], NULL, 10),
                                .cpu = (int)strtol(argv[5], NULL, 10),
                                .added_ns = strtod(argv[6], NULL)};
    return i < WORKLOADS && options->threads > 0 && options->threads <= THREADS_MAX &&
           options->slices > 0 && options->slices <= SLICES_MAX && options->slice_ns > 0;
}

/* The first worker is the main thread. */
static bool run_all(struct worker *workers, const struct options *options)
{
    pthread_barrier_t barrier;
    bool is_good = pthread_barrier_init(&barrier, NULL, options->threads) == 0;

    for (uint32_t i = 0; i < options->threads; i++) {
        workers[i].options = options;
        workers[i].barrier = &barrier;
        workers[i].stores = calloc(STORES, sizeof(*workers[i].stores));
        is_good = is_good && workers[i].stores;
    }
    for (uint32_t i = 1; i < options->threads && is_good; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return false;
    if (!is_good)
        return false;
    (void)work(&workers[0]);
    for (uint32_t i = 1; i < options->threads; i++)
        (void)pthread_join(workers[i].thread, NULL);
    return true;
}

int main(int argc, char **argv)
{
    struct options options;
    struct worker *workers;
    uint64_t calls = 0;

    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: subject WORKLOAD THREADS SLICES SLICE_US CPU ADDED_NS\n");
        return 2;
    }
    workers = calloc(options.threads, sizeof(*workers));
    if (!workers || !run_all(workers, &options)) {
        fprintf(stderr, "subject: no memory or no threads\n");
        return 1;
    }
    print_slices(workers, &options);
    if (options.threads == 1)
        print_batches(workers);
    for (uint32_t i = 0; i < options.threads; i++)
        calls += workers[i].all_runs * workloads[options.workload].calls;
    printf("calls %llu\n", (unsigned long long)calls);
    print_probe();
    return workers[0].x == UINT32_MAX && calls == 1; /* x is used */
}
