/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that `millrace bench overhead` measures, after MooBench: root calls of a recursion, each timed.
 *
 *     traces CALLS DEPTH METHOD_NS THREADS TIMING CPU ADDED_NS FILE
 *
 * Each of THREADS makes CALLS root calls, which recurse to DEPTH; the innermost waits METHOD_NS, reading the clock.
 * TIMING each: every root call is timed, into an array that was made and touched before; whole: none is, and FILE is
 * not written. CPU: the processor to stay on, and all other threads off, -1 any. ADDED_NS: what each root call waits besides (the harness checks
 * itself so). Only the second half of the calls is told; the first is warm-up. It prints lines "name number...":
 *
 *     wall NS          of the second half, the longest of the threads
 *     all NS DRAINED_NS   of all calls; until the last event was in custody, or 0 where no probe records
 *     cpu NS           of the calling threads, all calls
 *     fitted COUNT     root calls that were made before, to fit ADDED_NS
 *     memory KIB       peak, the array left out
 *     probe WRITTEN ACKED LOST, and clock NAME, where a probe records
 *
 * FILE: of each thread u64 count, then as many u32, the ns of all calls of that thread in order (4.29 s at most).
 */
#include "base/compiler.h"
#include "bench/programs/program.h"
#include "bench/programs/workload.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 64
#define STACK_PER_CALL 4096 /* more than a frame with any tracer's hooks in it */
#define STACK_REST ((size_t)1 << 20)
#define FLUSH_MS 60000
#define FIT_RUNS 200
#define FIT_STEPS 80 /* about 100 ns */
#define FIT_CALLS                                                                        \
    500 /* at depth 10, what they record fits a ring: in some runs nobody waits for a writer */

struct options {
    uint64_t calls, method_ns;
    uint32_t depth, threads;
    bool is_timed;
    int cpu;
    double added_ns;
    const char *file;
};

struct caller {
    const struct options *options;
    pthread_barrier_t *barrier;
    pthread_t thread;
    uint32_t *spent; /* ticks, then ns */
    uint64_t method_ticks, added_steps, fitted;
    uint64_t start_ns, half_ns, end_ns, cpu_ns;
    uint32_t x;
};

/*
 * Fenced on both sides, as clock_gettime() is: else the read overtakes the end of the call, and up to 30 ns of it count
 * for nobody.
 */
static MR_ALWAYS_INLINE uint64_t stamp(void)
{
    uint64_t now;

    workload_fence();
    now = workload_ticks();
    workload_fence();
    return now;
}

static MR_NOINLINE uint32_t added(uint32_t x, uint64_t steps)
{
    for (; steps > 0; steps--)
        x = WORKLOAD_STEP(x);
    return x;
}

static MR_ALWAYS_INLINE void call(struct caller *caller, uint32_t depth)
{
    caller->x = workload_trace(caller->x, depth, caller->method_ticks);
    if (caller->added_steps > 0) {
        workload_fence(); /* it begins when the call is over: no overlap */
        caller->x = added(caller->x, caller->added_steps);
    }
}

/* ns of one of FIT_CALLS root calls that wait so many steps; none is timed by itself. */
static double time_calls(struct caller *caller, uint64_t steps, double tick_ns)
{
    uint64_t start = stamp();

    caller->added_steps = steps;
    caller->fitted += FIT_CALLS;
    for (int i = 0; i < FIT_CALLS; i++) {
        call(caller, caller->options->depth);
        workload_fence();
    }
    return (double)(stamp() - start) * tick_ns / FIT_CALLS;
}

/* Steps that take ADDED_NS, by the shortest of some runs with and without: the least disturbed. */
static uint64_t fit_added(struct caller *caller, double tick_ns)
{
    double with_ns = 1e18, without_ns = 1e18, steps;

    if (caller->options->added_ns <= 0)
        return 0;
    for (int i = 0; i < FIT_RUNS; i++) {
        double with = time_calls(caller, FIT_STEPS, tick_ns);
        double without = time_calls(caller, 0, tick_ns);

        with_ns = with < with_ns ? with : with_ns;
        without_ns = without < without_ns ? without : without_ns;
    }
    steps = caller->options->added_ns / (with_ns - without_ns) * FIT_STEPS;
    return with_ns > without_ns ? (uint64_t)(steps + 0.5) : 1;
}

/* What does not fit 32 bits is told as the largest that does. */
static MR_NOINLINE void call_timed(struct caller *caller, uint64_t from, uint64_t to)
{
    uint32_t depth = caller->options->depth;

    for (uint64_t i = from; i < to; i++) {
        uint64_t start = stamp(), spent;

        call(caller, depth);
        spent = stamp() - start;
        caller->spent[i] = spent < UINT32_MAX ? (uint32_t)spent : UINT32_MAX;
    }
}

static MR_NOINLINE void call_untimed(struct caller *caller, uint64_t from, uint64_t to)
{
    uint32_t depth = caller->options->depth;

    for (uint64_t i = from; i < to; i++)
        call(caller, depth);
}

static void call_all(struct caller *caller, uint64_t from, uint64_t to)
{
    if (caller->options->is_timed)
        call_timed(caller, from, to);
    else
        call_untimed(caller, from, to);
}

static double measure_tick(void)
{
    uint64_t start_ns = program_now_ns(CLOCK_MONOTONIC_RAW), start = workload_ticks(),
             spent_ns;

    do
        spent_ns = program_now_ns(CLOCK_MONOTONIC_RAW) - start_ns;
    while (spent_ns < 20000000);
    return (double)spent_ns / (double)(workload_ticks() - start);
}

static void *run(void *argument)
{
    struct caller *caller = argument;
    const struct options *options = caller->options;
    double tick_ns;
    uint64_t cpu_ns;

    program_stay_on(options->cpu);
    tick_ns = measure_tick();
    caller->method_ticks = (uint64_t)((double)options->method_ns / tick_ns);
    caller->added_steps = fit_added(caller, tick_ns);
    (void)pthread_barrier_wait(caller->barrier);
    cpu_ns = program_now_ns(CLOCK_THREAD_CPUTIME_ID);
    caller->start_ns = program_now_ns(CLOCK_MONOTONIC_RAW);
    call_all(caller, 0, options->calls / 2);
    caller->half_ns = program_now_ns(CLOCK_MONOTONIC_RAW);
    call_all(caller, options->calls / 2, options->calls);
    caller->end_ns = program_now_ns(CLOCK_MONOTONIC_RAW);
    caller->cpu_ns = program_now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    for (uint64_t i = 0; options->is_timed && i < options->calls; i++) {
        double ns = (double)caller->spent[i] * tick_ns + 0.5;

        caller->spent[i] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    }
    return NULL;
}

/* Touched, so that no page is given while it is measured. */
static bool make_array(struct caller *caller)
{
    size_t size = caller->options->calls * sizeof(*caller->spent);

    if (!caller->options->is_timed)
        return true;
    caller->spent = malloc(size);
    if (caller->spent)
        memset(caller->spent, 0xff, size);
    return caller->spent != NULL;
}

/* All callers are threads of their own, whose stacks are made as deep as is asked for. */
static bool run_all(struct caller *callers, const struct options *options)
{
    pthread_barrier_t barrier;
    pthread_attr_t attributes;
    bool is_good =
        pthread_barrier_init(&barrier, NULL, options->threads) == 0 &&
        pthread_attr_init(&attributes) == 0 &&
        pthread_attr_setstacksize(&attributes, (size_t)options->depth * STACK_PER_CALL +
                                                   STACK_REST) == 0;

    for (uint32_t i = 0; i < options->threads; i++) {
        callers[i].options = options;
        callers[i].barrier = &barrier;
        is_good = is_good && make_array(&callers[i]);
    }
    for (uint32_t i = 0; i < options->threads && is_good; i++)
        if (pthread_create(&callers[i].thread, &attributes, run, &callers[i]) != 0) {
            fprintf(
                stderr,
                "traces: no thread with a stack for depth %u: use a smaller --depth\n",
                (unsigned)options->depth);
            exit(1);
        }
    for (uint32_t i = 0; i < options->threads && is_good; i++)
        (void)pthread_join(callers[i].thread, NULL);
    return is_good;
}

static uint64_t print_times(const struct caller *callers, const struct options *options)
{
    uint64_t start_ns = UINT64_MAX, end_ns = 0, half_ns = 0, cpu_ns = 0, fitted = 0;

    for (uint32_t i = 0; i < options->threads; i++) {
        uint64_t spent_ns = callers[i].end_ns - callers[i].half_ns;

        half_ns = spent_ns > half_ns ? spent_ns : half_ns;
        start_ns = callers[i].start_ns < start_ns ? callers[i].start_ns : start_ns;
        end_ns = callers[i].end_ns > end_ns ? callers[i].end_ns : end_ns;
        cpu_ns += callers[i].cpu_ns;
        fitted += callers[i].fitted;
    }
    printf("wall %llu\ncpu %llu\nfitted %llu\n", (unsigned long long)half_ns,
           (unsigned long long)cpu_ns, (unsigned long long)fitted);
    printf("all %llu ", (unsigned long long)(end_ns - start_ns));
    return start_ns;
}

/* Until what was recorded is in custody. */
static void print_probe(uint64_t start_ns)
{
#if defined(PROGRAM_PROBE)
    int flushed = mr_probe_enabled() ? mr_probe_flush(FLUSH_MS) : -1;

    printf("%llu\n",
           flushed == 0
               ? (unsigned long long)(program_now_ns(CLOCK_MONOTONIC_RAW) - start_ns)
               : 0ULL);
    program_print_probe();
    if (flushed != 0 && mr_probe_enabled())
        fprintf(stderr, "traces: what was recorded is not in custody after %d ms\n",
                FLUSH_MS);
#else
    (void)start_ns;
    printf("0\n");
#endif
}

/* Of this program alone: getrusage() also tells of the process that it was before exec(). */
static void print_memory(const struct options *options)
{
    uint64_t array_kib =
        options->is_timed ? options->threads * options->calls * 4 / 1024 : 0;
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            printf("memory %lld\n", strtoll(line + 6, NULL, 10) - (long long)array_kib);
    if (file)
        (void)fclose(file);
}

static int leave(const struct caller *callers, const struct options *options)
{
    FILE *file = options->is_timed ? fopen(options->file, "wb") : NULL;
    bool is_good = file != NULL;

    if (!options->is_timed)
        return 0;
    for (uint32_t i = 0; i < options->threads && is_good; i++)
        is_good = fwrite(&options->calls, sizeof(options->calls), 1, file) == 1 &&
                  fwrite(callers[i].spent, sizeof(*callers[i].spent), options->calls,
                         file) == options->calls;
    if (!file || fclose(file) != 0 || !is_good) {
        fprintf(stderr, "traces: cannot write %s: %s\n", options->file, strerror(errno));
        return 1;
    }
    return 0;
}

static bool parse(int argc, char **argv, struct options *options)
{
    if (argc != 9)
        return false;
    *options = (struct options){.calls = strtoull(argv[1], NULL, 10),
                                .depth = (uint32_t)strtoul(argv[2], NULL, 10),
                                .method_ns = strtoull(argv[3], NULL, 10),
                                .threads = (uint32_t)strtoul(argv[4], NULL, 10),
                                .is_timed = strcmp(argv[5], "each") == 0,
                                .cpu = (int)strtol(argv[6], NULL, 10),
                                .added_ns = strtod(argv[7], NULL),
                                .file = argv[8]};
    return options->calls >= 2 && options->depth > 0 && options->threads > 0 &&
           options->threads <= THREADS_MAX;
}

int main(int argc, char **argv)
{
    struct options options;
    struct caller *callers;
    int status;

    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: traces CALLS DEPTH METHOD_NS THREADS each|whole CPU "
                        "ADDED_NS FILE\n");
        return 2;
    }
    program_leave_cpu(options.cpu);
    callers = calloc(options.threads, sizeof(*callers));
    if (!callers || !run_all(callers, &options)) {
        fprintf(stderr, "traces: no memory for %llu times\n",
                (unsigned long long)options.calls * options.threads);
        free(callers);
        return 1;
    }
    print_probe(print_times(callers, &options));
    print_memory(&options);
    status = leave(callers, &options);
    free(callers);
    return status;
}
