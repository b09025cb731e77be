/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls: does what it is told, line by line, and counts every call that it makes:
 *
 *     run ROUNDS     so many requests in each of its threads; answers with all counts
 *     fork ROUNDS    the same in a forked child, which ends with it
 *     quit
 *
 * tiny, twice, kept and wrap do next to nothing, wrap in a call; slow takes SLOW_NS. The
 * threads stay, so that what they have open between two lines stays, too.
 */
#include <millrace/probe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3
#define TINY 40
#define SLOW_NS 20000

/* A call of its own, by every compiler. */
#ifdef __clang__
#define CALLED __attribute__((noinline))
#else
#define CALLED __attribute__((noipa))
#endif

static unsigned rounds_wanted;
static pthread_barrier_t begin, end;
static _Thread_local volatile unsigned long sink;

CALLED void tiny(void)
{
    sink = 1;
}

CALLED void twice(void)
{
    sink = 2;
    sink = 3;
}

CALLED void wrap(void)
{
    tiny();
    sink = 4;
}

MR_ALWAYS_TRACE CALLED void kept(void)
{
    sink = 5;
}

CALLED void slow(void)
{
    struct timespec from, now;

    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec <
           SLOW_NS);
}

CALLED void request(void)
{
    for (int i = 0; i < TINY; i++) {
        tiny();
        wrap();
        twice();
        kept();
    }
    slow();
}

CALLED void serve(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        request();
}

CALLED void *work(void *argument)
{
    (void)argument;
    for (;;) {
        pthread_barrier_wait(&begin);
        if (rounds_wanted == 0)
            break;
        serve(rounds_wanted);
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static unsigned long requests;

CALLED void tell(void)
{
    printf("tiny %lu wrap %lu twice %lu kept %lu slow %lu request %lu\n",
           2 * TINY * requests, TINY * requests, TINY * requests, TINY * requests,
           requests, requests);
    fflush(stdout);
}

CALLED void run(unsigned rounds)
{
    rounds_wanted = rounds;
    pthread_barrier_wait(&begin);
    if (rounds == 0)
        return;
    pthread_barrier_wait(&end);
    requests += (unsigned long)rounds * THREADS;
    tell();
}

CALLED void run_in_child(unsigned rounds)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        serve(rounds);
        exit(0);
    }
    waitpid(child, &status, 0);
    requests += rounds;
    tell();
}

int main(void)
{
    pthread_t threads[THREADS];
    char line[64];

    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    while (fgets(line, sizeof(line), stdin) && strncmp(line, "quit", 4) != 0) {
        if (strncmp(line, "run ", 4) == 0)
            run((unsigned)atoi(line + 4));
        else if (strncmp(line, "fork ", 5) == 0)
            run_in_child((unsigned)atoi(line + 5));
    }
    run(0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
