/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls count N             three threads make the same calls, N rounds each
 * calls until ENCODING...   calls until the probe writes its events so, for two minutes at most
 * calls pace N MS           one thread makes N calls a millisecond
 *
 * All print at their end how events were sent: link encoding=... reason=... changes=... events=... bytes=...
 */
#include <millrace/probe.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 3
#define UNTIL_S 120

static __thread jmp_buf out;
static volatile unsigned sink;
static long rounds;

__attribute__((noipa)) void leaf(unsigned value)
{
    sink += value;
}

__attribute__((noipa)) void other_leaf(unsigned value)
{
    sink -= value;
}

__attribute__((noipa)) void descend(unsigned depth)
{
    leaf(depth);
    if (depth > 1)
        descend(depth - 1);
    other_leaf(depth);
}

/* Its frames have no exits. */
__attribute__((noipa)) void jump(unsigned depth)
{
    if (depth == 0)
        longjmp(out, 1);
    jump(depth - 1);
    sink++;
}

__attribute__((noipa)) void serve(unsigned number)
{
    descend(2 + number % 9);
    if (number % 100 == 0 && setjmp(out) == 0)
        jump(3);
    leaf(number);
}

static void *work(void *argument)
{
    (void)argument;
    for (long i = 0; i < rounds; i++)
        serve((unsigned)i);
    return NULL;
}

__attribute__((no_instrument_function)) static void count(const char *text)
{
    pthread_t threads[THREADS];

    rounds = atol(text);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
}

__attribute__((no_instrument_function)) static int is_wanted(char **wanted)
{
    struct mr_probe_link_info link;

    if (mr_probe_link(&link) != 0)
        return 1;
    for (; *wanted; wanted++)
        if (strcmp(link.encoding, *wanted) == 0)
            return 1;
    return 0;
}

__attribute__((no_instrument_function)) static void until(char **wanted)
{
    time_t end = time(NULL) + UNTIL_S;

    rounds = 1000;
    while (!is_wanted(wanted) && time(NULL) < end)
        (void)work(NULL);
}

__attribute__((no_instrument_function)) static void pace(unsigned calls, long ms)
{
    struct timespec next;

    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long i = 0; i < ms; i++) {
        for (unsigned call = 0; call < calls; call++)
            leaf(call);
        next.tv_nsec += 1000000;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}

__attribute__((no_instrument_function)) int main(int argc, char **argv)
{
    struct mr_probe_link_info link;

    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "count") == 0)
        count(argv[2]);
    else if (strcmp(argv[1], "pace") == 0 && argc == 4)
        pace((unsigned)atol(argv[2]), atol(argv[3]));
    else if (strcmp(argv[1], "until") == 0)
        until(argv + 2);
    else
        return 2;
    if (strcmp(argv[1], "until") != 0)
        (void)mr_probe_flush(60000);
    if (mr_probe_link(&link) != 0)
        return 0;
    printf("link encoding=%s changes=%llu events=%llu bytes=%llu reason=%s\n",
           link.encoding, (unsigned long long)link.changes,
           (unsigned long long)link.events, (unsigned long long)link.bytes, link.reason);
    return 0;
}
