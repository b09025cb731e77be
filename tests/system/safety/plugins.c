/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads ./plugin.so, calls into it and unloads it, N times, while three threads make calls of their own.
 */
#include "safety.h"

#include <millrace/probe.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic int is_done;

TRACED static void leaf(void)
{
    HERE;
}

/* Calls that come in any number. */
TRACED static void busy(void)
{
    HERE;
    TIMES(10)
    leaf();
    KEEP;
}

TRACED static void *other(void *argument)
{
    HERE;
    (void)argument;
    do {
        busy();
        (void)usleep(100);
    } while (!is_done);
    return NULL;
}

TRACED static void once(void)
{
    void *library, *symbol;
    void (*call)(int);

    HERE;
    library = dlopen("./plugin.so", RTLD_NOW);
    MUST(library);
    symbol = dlsym(library, "plugin_call");
    memcpy(&call, &symbol, sizeof(call));
    call(3);
    leaf();
    MUST(dlclose(library) == 0);
    leaf();
    KEEP;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[3];

    HERE;
    TIMES(3)
    MUST(pthread_create(&threads[index_], NULL, other, NULL) == 0);
    TIMES(count)
    once();
    is_done = 1;
    TIMES(3)
    MUST(pthread_join(threads[index_], NULL) == 0);
    return 0;
}
