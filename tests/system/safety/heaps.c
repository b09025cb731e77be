/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trap of policy block: a thread that waits in a hook may hold the lock of malloc() (heap.c is traced) and of the loader
 * (dlopen() allocates), and the probe's writer must need neither. Two threads allocate, one loads and unloads.
 *
 *     heaps N M     N rounds of allocating, M of loading
 */
#include "safety.h"

#include <millrace/probe.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int loads;

TRACED static void allocate(void)
{
    char *volatile memory;

    HERE;
    memory = malloc(100);
    MUST(memory);
    free(memory);
}

TRACED static void *allocates(void *count)
{
    HERE;
    for (long i = 0; i < (long)count; i++)
        allocate();
    return NULL;
}

TRACED static void load(void)
{
    void *library;

    HERE;
    library = dlopen("./quiet.so", RTLD_NOW);
    MUST(library);
    MUST(dlclose(library) == 0);
}

TRACED static void *loader(void *argument)
{
    HERE;
    (void)argument;
    TIMES(loads)
    load();
    return NULL;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    pthread_t threads[3];

    HERE;
    loads = argc > 2 ? atoi(argv[2]) : 1;
    MUST(pthread_create(&threads[0], NULL, allocates, (void *)rounds) == 0);
    MUST(pthread_create(&threads[1], NULL, allocates, (void *)rounds) == 0);
    MUST(pthread_create(&threads[2], NULL, loader, NULL) == 0);
    TIMES(3)
    MUST(pthread_join(threads[index_], NULL) == 0);
    return 0;
}
