/* SPDX-License-Identifier: Apache-2.0 */
/*
 * started THREADS: threads that begin while a signal is always on its way to any of them, so that the first call of many is
 * its handler, before their start function. Prints how often that was so.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NEVER __attribute__((no_instrument_function))
#define TRACED __attribute__((noipa))

static _Atomic bool is_done;
static _Atomic unsigned early;
static __thread bool has_started, has_been_early;

TRACED static void on_signal(int number)
{
    (void)number;
    if (!has_started && !has_been_early)
        early++;
    has_been_early = true;
}

TRACED static void leaf(void)
{
    __asm__ volatile("" ::: "memory");
}

TRACED static void *start(void *argument)
{
    has_started = true;
    leaf();
    return argument;
}

/* Untraced; the signals go to others. */
NEVER static void *send(void *argument)
{
    sigset_t all;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (!is_done)
        (void)kill(getpid(), SIGUSR1);
    return argument;
}

/* Without a thread that takes signals all are pending until one begins. */
NEVER static int run(unsigned count)
{
    pthread_t sender, thread;

    if (signal(SIGUSR1, on_signal) == SIG_ERR ||
        pthread_create(&sender, NULL, send, NULL) != 0)
        return 1;
    has_started = true;
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&thread, NULL, start, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
            return 1;
    is_done = true;
    return pthread_join(sender, NULL) != 0;
}

int main(int argc, char **argv)
{
    int status = run(argc > 1 ? (unsigned)atoi(argv[1]) : 1);

    printf("early %u\n", early);
    return status;
}
