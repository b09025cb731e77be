/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As many threads as its argument says wait in a request each, one of them for a reply of its own, until the input ends. Small
 * stacks: 10,000 threads are meant.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_wait;

static void wait_for_gate(void)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void wait_for_reply(void)
{
    wait_for_gate();
}

static void handle(int is_odd)
{
    if (is_odd)
        wait_for_reply();
    else
        wait_for_gate();
}

static void *serve(void *argument)
{
    pthread_barrier_wait(&all_wait);
    handle(argument != NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t *threads = calloc((size_t)count, sizeof(*threads));
    pthread_attr_t attributes;
    char byte;

    if (!threads || pthread_barrier_init(&all_wait, NULL, (unsigned)count + 1) != 0)
        return 1;
    pthread_mutex_lock(&gate);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, serve, i ? NULL : threads) != 0) {
            fprintf(stderr, "thread %d of %d\n", i, count);
            return 1;
        }
    pthread_barrier_wait(&all_wait);
    puts("waiting");
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return 0;
}
