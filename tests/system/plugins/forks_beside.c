/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forks_beside CHILDREN: other threads open and close a.so all the while. A child of such a process finds the loader's lock taken
 * for ever, now and then; one that asks nothing of the loader is well. Each calls, and has its calls flushed.
 */
#include <dlfcn.h>
#include <millrace/probe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEVER __attribute__((no_instrument_function))
#define LOADERS 2
#define CALLS 20
#define FLUSH_MS 30000

static atomic_bool is_over;

static __attribute__((noinline)) void leaf(void)
{
    __asm__ volatile("" ::: "memory");
}

NEVER static void *load(void *argument)
{
    while (!atomic_load(&is_over)) {
        void *library = dlopen("./a.so", RTLD_NOW);

        if (!library || dlclose(library) != 0)
            abort();
    }
    return argument;
}

/* Ends without exit(), which takes the loader's lock. */
NEVER static void work(void)
{
    struct mr_probe_counts counts;

    for (int i = 0; i < CALLS; i++)
        leaf();
    if (mr_probe_flush(FLUSH_MS) != 0 || mr_probe_stats(&counts) != 0)
        _exit(2);
    _exit(counts.events_discarded == 2 * CALLS ? 0 : 3);
}

NEVER int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 1, status = 0;
    pthread_t threads[LOADERS];

    for (int i = 0; i < LOADERS; i++)
        if (pthread_create(&threads[i], NULL, load, NULL) != 0)
            return 1;
    for (int i = 0; i < children && status == 0; i++) {
        pid_t pid = fork();

        if (pid == 0)
            work();
        if (waitpid(pid, &status, 0) != pid)
            return 1;
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < LOADERS; i++)
        (void)pthread_join(threads[i], NULL);
    return status == 0 ? 0 : 2;
}
