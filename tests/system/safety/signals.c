/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instrumented signal handlers, at any moment of a busy thread:
 *
 *     signals timers N     two timers at 20 kHz, whose handlers interrupt each other, while N calls are made; a handler
 *                          raises a signal of its own
 *     signals first        on an alternate stack; the first event of a thread comes in it
 *     signals threads N    four threads of N calls each, hit by pthread_kill() from a fifth
 *
 * Prints handled=N: handlers that ran to their end.
 */
#include "safety.h"

#include <millrace/probe.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define THREADS 4
#ifndef STACK_MORE
#define STACK_MORE 0
#endif

static _Atomic unsigned long handled, profiled;
static _Atomic int working;

TRACED static void leaf(void)
{
    HERE;
}

TRACED static void on_raise(int number)
{
    HERE;
    (void)number;
    leaf();
    KEEP;
}

TRACED static void on_tick(int number)
{
    int saved = errno;

    HERE;
    TIMES(3)
    leaf();
    if (number == SIGALRM)
        (void)raise(SIGUSR1);
    handled++;
    errno = saved;
}

TRACED static void on_profile(int number)
{
    HERE;
    (void)number;
    leaf();
    handled++;
    profiled++;
}

PLAIN static void on(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | flags};

    MUST(sigaction(number, &action, NULL) == 0);
}

PLAIN static void set_timers(long us)
{
    struct itimerval timer = {{0, us}, {0, us}};

    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    MUST(setitimer(ITIMER_PROF, &timer, NULL) == 0);
}

TRACED static void work(long count)
{
    HERE;
    for (long i = 0; i < count; i++) {
        errno = 4711;
        leaf();
        MUST(errno == 4711);
    }
}

PLAIN static void under_timers(long count)
{
    on(SIGALRM, on_tick, 0);
    on(SIGPROF, on_profile, 0);
    on(SIGUSR1, on_raise, 0);
    set_timers(50);
    work(count);
    while (handled < 50 || profiled < 10)
        KEEP;
    set_timers(0);
    on(SIGALRM, SIG_IGN, 0);
    on(SIGPROF, SIG_IGN, 0);
}

/*
 * What the kernel needs to deliver a signal, and STACK_MORE for the handler. On processors with few registers it needs less
 * than it takes for a stack.
 */
PLAIN static size_t stack_size(void)
{
    const size_t least =
        2048; /* MINSIGSTKSZ of the kernel's x86-64; libc's may be a call */
    size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + STACK_MORE;

    return size > least ? size : least;
}

/* Not instrumented: its thread's first event comes in the handler. */
PLAIN static void *meet_in_handler(void *stack)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = stack_size()};

    MUST(sigaltstack(&alternate, NULL) == 0);
    TIMES(3)
    MUST(raise(SIGPROF) == 0);
    leaf();
    alternate.ss_flags = SS_DISABLE;
    MUST(sigaltstack(&alternate, NULL) == 0);
    return NULL;
}

/* Memory whose first byte follows a page that nobody may touch. */
PLAIN static char *with_guard(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *all = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    MUST(all != MAP_FAILED && mprotect(all, page, PROT_NONE) == 0);
    return all + page;
}

PLAIN static void first_in_handler(void)
{
    char *stack = with_guard(stack_size());
    pthread_t thread;

    on(SIGPROF, on_profile, SA_ONSTACK);
    TIMES(3)
    {
        MUST(pthread_create(&thread, NULL, meet_in_handler, stack) == 0);
        MUST(pthread_join(thread, NULL) == 0);
    }
    handled = 0; /* they stand in their place */
}

TRACED static void *worker(void *count)
{
    HERE;
    work((long)count);
    working--;
    while (working > 0)
        KEEP;
    return NULL;
}

PLAIN static void hit(long count)
{
    pthread_t threads[THREADS];
    int left = THREADS;

    on(SIGPROF, on_profile, 0);
    working = THREADS + 1;
    TIMES(THREADS)
    MUST(pthread_create(&threads[index_], NULL, worker, (void *)count) == 0);
    while (working > 1)
        MUST(pthread_kill(threads[working % THREADS], SIGPROF) == 0);
    working--;
    while (left-- > 0)
        MUST(pthread_join(threads[left], NULL) == 0);
}

int main(int argc, char **argv)
{
    long count = argc > 2 ? atol(argv[2]) : 0;

    HERE;
    MUST(argc >= 2);
    if (strcmp(argv[1], "timers") == 0)
        under_timers(count);
    else if (strcmp(argv[1], "first") == 0)
        first_in_handler();
    else
        hit(count);
    if (strcmp(argv[1], "first") != 0)
        printf("handled=%lu\n", handled);
    return 0;
}
