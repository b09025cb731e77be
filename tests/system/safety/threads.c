/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their ends:
 *
 *     threads exit        pthread_exit() below four frames
 *     threads deferred    cancelled at a cancellation point below four frames
 *     threads async       cancelled anywhere in a loop of calls, asynchronously
 *     threads detached    detached ones that outlive main(), and still run while the process ends
 *     threads last        main() leaves by pthread_exit(), another one ends the process
 *     threads none        main() leaves by pthread_exit(), the other one returns, and nobody calls exit()
 *     threads forked      a thread forks, and returns in the child, which has no other one
 *     threads keys        destructors of thread-specific data that make calls, and set data again
 *     threads small       stacks of PTHREAD_STACK_MIN and of 16 KiB
 *     threads deep N      a recursion of N
 *     threads storm N     N threads at a time start N more each, three times
 */
#include "safety.h"

#include <millrace/probe.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t barrier;
static pthread_key_t key;

TRACED static void leaf(void)
{
    HERE;
}

TRACED static void clean(void *argument)
{
    HERE;
    (void)argument;
    leaf();
    KEEP;
}

PLAIN static pthread_t start(void *(*function)(void *), void *argument)
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, function, argument) == 0);
    return thread;
}

PLAIN static void join(pthread_t thread)
{
    MUST(pthread_join(thread, NULL) == 0);
}

/* --- ends from below ------------------------------------------------------------- */

TRACED static void end_here(void)
{
    HERE;
    leaf();
    pthread_exit(NULL);
}

TRACED static void wait_here(void)
{
    HERE;
    leaf();
    (void)pthread_barrier_wait(&barrier);
    for (;;)
        (void)sleep(1000);
}

TRACED static void spin_here(void)
{
    HERE;
    leaf();
    MUST(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    (void)pthread_barrier_wait(&barrier);
    for (;;)
        KEEP;
}

TRACED static void down(int depth, void (*last)(void))
{
    HERE;
    if (depth == 0)
        last();
    else
        down(depth - 1, last);
    KEEP;
}

TRACED static void *ends(void *last)
{
    void (*function)(void);

    HERE;
    memcpy(&function, &last, sizeof(function));
    pthread_cleanup_push(clean, NULL);
    down(2, function);
    pthread_cleanup_pop(0);
    return NULL;
}

PLAIN static void cancel(void (*last)(void))
{
    pthread_t thread = start(ends, (void *)last);

    (void)pthread_barrier_wait(&barrier);
    MUST(pthread_cancel(thread) == 0);
    join(thread);
}

/* --- ends of the process --------------------------------------------------------- */

static _Atomic int going = 1, late_calls;

TRACED static void late(void)
{
    HERE;
    late_calls++;
}

TRACED static void *outlives(void *argument)
{
    HERE;
    (void)argument;
    leaf();
    (void)pthread_barrier_wait(&barrier);
    while (going)
        KEEP;
    for (;;)
        late();
    return NULL;
}

/* From now on they make calls while the process ends. */
TRACED static void at_end(void)
{
    HERE;
    going = 0;
    while (late_calls < 1000)
        KEEP;
}

PLAIN static void leave_detached(void)
{
    MUST(atexit(at_end) == 0);
    TIMES(3)
    MUST(pthread_detach(start(outlives, NULL)) == 0);
    (void)pthread_barrier_wait(&barrier);
}

TRACED static void *ends_process(void *main_thread)
{
    HERE;
    join(*(pthread_t *)main_thread);
    leaf();
    exit(0);
}

TRACED static void *returns(void *main_thread)
{
    HERE;
    join(*(pthread_t *)main_thread);
    leaf();
    return NULL;
}

TRACED static void *forks(void *unused)
{
    pid_t child = fork();
    int status = 0;

    HERE;
    leaf();
    MUST(child >= 0);
    if (child > 0)
        MUST(waitpid(child, &status, 0) == child && status == 0);
    return unused;
}

/* --- data of threads -------------------------------------------------------------- */

TRACED static void on_data(void *value)
{
    HERE;
    leaf();
    if ((char *)value > (char *)1)
        MUST(pthread_setspecific(key, (char *)value - 1) == 0);
}

TRACED static void *with_data(void *value)
{
    HERE;
    MUST(pthread_setspecific(key, value) == 0);
    return NULL;
}

/* --- stacks ------------------------------------------------------------------------ */

TRACED static void *small(void *argument)
{
    HERE;
    (void)argument;
    TIMES(1000)
    leaf();
    return NULL;
}

PLAIN static void with_stack(size_t size)
{
    pthread_attr_t attributes;
    pthread_t thread;

    MUST(pthread_attr_init(&attributes) == 0);
    MUST(pthread_attr_setstacksize(&attributes, size) == 0);
    MUST(pthread_create(&thread, &attributes, small, NULL) == 0);
    join(thread);
}

TRACED static void dive(long depth)
{
    HERE;
    if (depth == 1)
        leaf();
    else
        dive(depth - 1);
    KEEP;
}

/* --- storm ------------------------------------------------------------------------ */

TRACED static void *child(void *argument)
{
    HERE;
    (void)argument;
    leaf();
    KEEP;
    return NULL;
}

TRACED static void *parent(void *count)
{
    pthread_t threads[64];

    HERE;
    TIMES((int)(long)count)
    threads[index_] = start(child, NULL);
    TIMES((int)(long)count)
    join(threads[index_]);
    return NULL;
}

PLAIN static void storm(long count)
{
    pthread_t threads[64];

    for (int round = 0; round < 3; round++) {
        TIMES((int)count)
        threads[index_] = start(parent, (void *)count);
        TIMES((int)count)
        join(threads[index_]);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    long count = argc > 2 ? atol(argv[2]) : 0;
    static pthread_t self;

    HERE;
    MUST(pthread_barrier_init(&barrier, NULL, strcmp(mode, "detached") ? 2 : 4) == 0);
    MUST(pthread_key_create(&key, on_data) == 0);
    if (strcmp(mode, "exit") == 0)
        join(start(ends, (void *)end_here));
    else if (strcmp(mode, "deferred") == 0)
        cancel(wait_here);
    else if (strcmp(mode, "async") == 0)
        cancel(spin_here);
    else if (strcmp(mode, "detached") == 0)
        leave_detached();
    else if (strcmp(mode, "last") == 0) {
        self = pthread_self();
        (void)start(ends_process, &self);
        pthread_exit(NULL);
    } else if (strcmp(mode, "none") == 0) {
        MUST(atexit(leaf) == 0);
        self = pthread_self();
        (void)start(returns, &self);
        pthread_exit(NULL);
    } else if (strcmp(mode, "forked") == 0)
        join(start(forks, NULL));
    else if (strcmp(mode, "keys") == 0)
        join(start(with_data, (void *)3));
    else if (strcmp(mode, "small") == 0) {
        with_stack((size_t)PTHREAD_STACK_MIN);
        with_stack(16384);
    } else if (strcmp(mode, "deep") == 0)
        dive(count);
    else if (strcmp(mode, "storm") == 0)
        storm(count);
    else
        return 2;
    return 0;
}
