/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that counts its own calls in a file that outlives its kill, and tells there what its probe has handed over. A call
 * is counted before it is made: what the master has of a function can never be more. Functions carry the number of this life
 * (-DLIFE=n), so that each life is a row of its own in every table.
 *
 *     counting FILE BATCHES     // of calls per thread and millisecond; ends when FILE says so
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <millrace/probe.h>

#define HIDE __attribute__((no_instrument_function))
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define F(name) JOIN(name, LIFE)

enum { RUN, PHASE, WORK, BATCH, ODD, BRANCH, LEAF, FUNCTIONS };
enum {
    THREADS = 2,
    LEAVES = 7,
    SLOTS = THREADS + 1,
    BINS = 512,
    PHASE_NS = 700000000,
    SLICE_NS = 1000000,
    TELL_NS = 2000000
};

/* The file, read by account.py: each field is one 64-bit word. */
struct told {
    _Atomic uint64_t stop, written, acked, lost;
    _Atomic uint64_t calls[SLOTS][FUNCTIONS];
    _Atomic uint64_t latency[BINS]; /* of a batch; eight bins an octave of ns */
};

static struct told *told;
static unsigned long batches;
static volatile unsigned sink;
static _Thread_local unsigned slot;

HIDE static void count(unsigned function)
{
    _Atomic uint64_t *calls = &told->calls[slot][function];

    atomic_store_explicit(calls, atomic_load_explicit(calls, memory_order_relaxed) + 1,
                          memory_order_relaxed); /* no other thread writes it */
}

HIDE static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

HIDE static void sleep_ns(long ns)
{
    struct timespec time = {.tv_nsec = ns};

    nanosleep(&time, NULL);
}

HIDE static void note_latency(uint64_t ns)
{
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns | 8u);
    unsigned bin = octave * 8u + (unsigned)(ns >> (octave - 3u)) % 8u;

    atomic_fetch_add_explicit(&told->latency[bin], 1, memory_order_relaxed);
}

static void F(leaf)(unsigned value)
{
    sink = value;
}

static void F(branch)(unsigned value)
{
    for (unsigned i = 0; i < LEAVES; i++) {
        count(LEAF);
        F(leaf)(value + i);
    }
}

static void F(odd_batch)(unsigned value)
{
    count(BRANCH);
    F(branch)(value);
    count(LEAF);
    F(leaf)(value);
}

static void F(batch)(unsigned value)
{
    count(BRANCH);
    F(branch)(value);
    if (value % 2) {
        count(ODD);
        F(odd_batch)(value);
    }
}

/* One stretch of calls, timed each: what a thread of a real program would wait. */
HIDE static void slice(unsigned *value, void (*call)(unsigned))
{
    for (unsigned long i = 0; i < batches; i++) {
        uint64_t start = now_ns();

        count(BATCH);
        call((*value)++);
        note_latency(now_ns() - start);
    }
}

static void *F(work)(void *argument)
{
    uint64_t end = now_ns() + PHASE_NS;

    (void)argument;
    for (unsigned value = 0; now_ns() < end && !told->stop;) {
        slice(&value, F(batch));
        sleep_ns(SLICE_NS);
    }
    return NULL;
}

HIDE static void *start(void *number)
{
    slot = (unsigned)(uintptr_t)number;
    count(WORK);
    return F(work)(NULL);
}

static void F(phase)(void)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, start, (void *)(uintptr_t)(i + 1)))
            abort();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Told again and again, by a thread that is not traced. */
HIDE static void *tell(void *argument)
{
    (void)argument;
    for (;;) {
        struct mr_probe_counts counts;

        if (mr_probe_stats(&counts) == 0) {
            told->acked = counts.events_acked; /* first: never more than written */
            told->written = counts.events_written;
            told->lost = counts.lost_ring_full + counts.lost_block_timeout +
                         counts.lost_budget + counts.lost_nested + counts.lost_exit;
        }
        sleep_ns(TELL_NS);
    }
}

HIDE static int open_file(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT, 0600);

    if (fd < 0 || ftruncate(fd, sizeof *told) != 0)
        return -1;
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return told == MAP_FAILED ? -1 : 0;
}

static void F(run)(void)
{
    while (!told->stop) {
        count(PHASE);
        F(phase)();
    }
}

HIDE int main(int argc, char **argv)
{
    pthread_t teller;

    if (argc != 3 || open_file(argv[1]) != 0) {
        perror("counting FILE BATCHES");
        return 2;
    }
    batches = strtoul(argv[2], NULL, 10);
    if (pthread_create(&teller, NULL, tell, NULL))
        return 1;
    count(RUN);
    F(run)();
    return 0;
}
