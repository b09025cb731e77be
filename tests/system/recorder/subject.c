/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a flight recorder that knows what it recorded, also when it is killed:
 *
 *     subject MODE COUNTS [N] [M]
 *
 * COUNTS is a file of two 64-bit numbers a thread: calls begun, calls done. Every thread
 * records pattern.h from its beginning. Prints "ready" when all threads record.
 *
 *     busy N         N threads that never end
 *     crash N        the same, and a store to a forbidden page after a while
 *     short N M      N threads one after the other, M calls each; then waits for a line
 *     live N M       N threads at once, M calls each; then all wait for a line
 *     fork N         N calls, then a child that makes N more calls; both wait to be killed
 *     copy N         N calls; a copy by _Fork() and a vfork() child make N more each, then
 *                    the parent N more; waits to be killed
 *     exec N         N calls, then becomes `sleep 1000`
 *     end N          N calls, and the normal end
 *     faults         prints the page faults of a ring's worth of calls after the first
 */
#include "tests/system/recorder/pattern.h"

#include <millrace/probe.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16384
#define RING_WORDS 32768 /* of 256 KiB */

struct counts {
    volatile uint64_t begun, done;
};

struct job {
    struct counts *counts;
    uint64_t calls; /* 0: for ever */
    pthread_barrier_t *barrier;
};

static struct mr_span_site sites[PATTERN_SPANS];
static char names[PATTERN_SPANS][16];
static struct counts *all;
static uint64_t ready;

static void die(const char *what)
{
    perror(what);
    exit(3);
}

static void make_sites(void)
{
    for (int i = 0; i < PATTERN_SPANS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "s%d", i);
        sites[i] = (struct mr_span_site){.name = names[i], .file = __FILE__, .line = 1};
    }
}

static void open_counts(const char *path)
{
    size_t size = THREADS_MAX * sizeof(*all);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
        die(path);
    all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED)
        die(path);
    (void)close(fd);
}

static void call(struct counts *counts)
{
    struct mr_span_site *site = &sites[counts->done % PATTERN_SPANS];

    counts->begun++;
    mr_span_enter(site);
    mr_span_exit(site);
    counts->done++;
}

static void *record(void *argument)
{
    struct job *job = argument;

    (void)__atomic_add_fetch(&ready, 1, __ATOMIC_RELAXED);
    for (uint64_t i = 0; job->calls == 0 || i < job->calls; i++)
        call(job->counts);
    if (job->barrier)
        (void)pthread_barrier_wait(job->barrier);
    if (job->barrier) /* and stays until the last line */
        (void)pthread_barrier_wait(job->barrier);
    return NULL;
}

static pthread_t start(struct job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 256 * 1024);
    if (pthread_create(&thread, &attributes, record, job) != 0)
        die("pthread_create");
    (void)pthread_attr_destroy(&attributes);
    return thread;
}

static void say_ready(void)
{
    (void)puts("ready");
    (void)fflush(stdout);
}

static void wait_for_line(void)
{
    char line[16];

    say_ready();
    (void)!fgets(line, sizeof(line), stdin);
}

static void busy(uint64_t threads)
{
    for (uint64_t i = 0; i < threads; i++) {
        struct job *job = calloc(1, sizeof(*job));

        job->counts = &all[i];
        (void)start(job);
    }
    while (__atomic_load_n(&ready, __ATOMIC_RELAXED) < threads)
        (void)usleep(1000);
}

static void short_ones(uint64_t threads, uint64_t calls)
{
    for (uint64_t i = 0; i < threads; i++) {
        struct job job = {.counts = &all[i], .calls = calls};

        (void)pthread_join(start(&job), NULL);
    }
    wait_for_line();
}

static void live_ones(uint64_t threads, uint64_t calls)
{
    struct job *jobs = calloc(threads, sizeof(*jobs));
    pthread_barrier_t barrier;

    (void)pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (uint64_t i = 0; i < threads; i++) {
        jobs[i] = (struct job){&all[i], calls, &barrier};
        (void)start(&jobs[i]);
    }
    (void)pthread_barrier_wait(&barrier);
    wait_for_line();
}

static void calls(struct counts *counts, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        call(counts);
}

static void fork_one(uint64_t count)
{
    pid_t child;

    calls(&all[0], count);
    child = fork();
    if (child == 0) {
        calls(&all[1], count);
        for (;;)
            (void)pause();
    }
    (void)printf("child %d\n", (int)child);
    say_ready();
    for (;;)
        (void)pause();
}

/* Both past fork()'s handlers: one has memory of its own, the other its parent's. */
static void copy_one(uint64_t count)
{
    uint64_t kept;
    pid_t child;

    calls(&all[0], count);
    kept = all[0].done;
    child = _Fork();
    if (child == 0) {
        calls(&all[1], count);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    child = vfork();
    if (child == 0) {
        calls(&all[0], count); /* as this thread */
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    if (all[0].done != kept + count)
        die("vfork");
    calls(&all[0], count);
    say_ready();
    for (;;)
        (void)pause();
}

static long page_faults(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static void faults(void)
{
    long before;

    call(&all[0]);
    before = page_faults();
    for (uint64_t i = 0; i < RING_WORDS / 2 - 64; i++)
        call(&all[0]);
    (void)printf("faults %ld\n", page_faults() - before);
}

static void crash(void)
{
    volatile int *forbidden =
        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    say_ready();
    (void)usleep(50000);
    *forbidden = 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    uint64_t n = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t m = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;

    if (argc < 3 || n > THREADS_MAX * 1000)
        return 2;
    make_sites();
    open_counts(argv[2]);
    if (strcmp(mode, "busy") == 0 || strcmp(mode, "crash") == 0)
        busy(n);
    if (strcmp(mode, "crash") == 0)
        crash();
    else if (strcmp(mode, "short") == 0)
        short_ones(n, m);
    else if (strcmp(mode, "live") == 0)
        live_ones(n, m);
    else if (strcmp(mode, "fork") == 0)
        fork_one(n);
    else if (strcmp(mode, "copy") == 0)
        copy_one(n);
    else if (strcmp(mode, "faults") == 0)
        faults();
    else if (strcmp(mode, "exec") == 0 || strcmp(mode, "end") == 0)
        calls(&all[0], n);
    if (strcmp(mode, "exec") == 0) {
        say_ready();
        (void)execlp("sleep", "sleep", "1000", (char *)NULL);
    } else if (strcmp(mode, "busy") == 0) {
        say_ready();
        for (;;)
            (void)pause();
    }
    return 0;
}
