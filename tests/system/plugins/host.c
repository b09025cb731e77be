/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host LOADS CALLS [GIB]: opens a.so and b.so in turns, works CALLS in it and closes it at once, while another thread keeps the
 * probe's writer busy. Prints how often one was opened where the other one had been, and what dlopen() took. So many GIB are mapped
 * before, and what is opened lies as far from the libraries that were there at the start.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define NEVER __attribute__((no_instrument_function))

typedef void work_function(int);

static _Atomic int is_done;
static _Atomic unsigned rounds; /* of busy_leaf() */

#define HOLE_BYTES 16384
#define ROUND 1000
#define ROUNDS 100 /* between two loads: the writer is amid them */

__attribute__((noipa)) void busy_leaf(void);
void *busy(void *argument);

__attribute__((noipa)) void busy_leaf(void)
{
    __asm__ volatile("" ::: "memory");
}

void *busy(void *argument)
{
    do {
        for (int i = 0; i < ROUND; i++)
            busy_leaf();
        rounds++;
    } while (!is_done);
    return argument;
}

NEVER static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

NEVER static work_function *load(int index, void **library, uint64_t *ns)
{
    char path[] = "./a.so", name[] = "a_work";
    uint64_t before = now_ns();
    work_function *work;
    void *symbol;

    path[2] = name[0] = (char)('a' + index % 2);
    *library = dlopen(path, RTLD_NOW);
    *ns = now_ns() - before;
    symbol = *library ? dlsym(*library, name) : NULL;
    if (!symbol) {
        (void)fprintf(stderr, "host: %s: %s\n", path, dlerror());
        exit(1);
    }
    memcpy(&work, &symbol, sizeof(work));
    return work;
}

NEVER static char *map(size_t bytes)
{
    void *mapped =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mapped == MAP_FAILED)
        exit(1);
    return mapped;
}

/* What is mapped next is below all that, as no hole above is left that is large enough for a library. */
NEVER static void go_far(size_t gib)
{
    const char *wall = gib ? map(gib << 30) : NULL;

    while (wall && map(HOLE_BYTES) > wall)
        ;
}

int main(int argc, char **argv)
{
    int loads = argc > 1 ? atoi(argv[1]) : 20, calls = argc > 2 ? atoi(argv[2]) : 100;
    work_function *before = NULL;
    pthread_t thread;
    int reused = 0;

    if (argc > 3)
        go_far((size_t)atoi(argv[3]));
    if (pthread_create(&thread, NULL, busy, NULL) != 0)
        return 1;
    for (int i = 0; i < loads; i++) {
        void *library;
        uint64_t ns;
        work_function *work;

        while (rounds < (unsigned)(i + 1) * ROUNDS)
            (void)sched_yield();
        work = load(i, &library, &ns);
        reused += work == before;
        before = work;
        work(calls);
        if (dlclose(library) != 0)
            return 1;
        printf("load %.3f ms\n", (double)ns / 1e6);
    }
    is_done = 1;
    if (pthread_join(thread, NULL) != 0)
        return 1;
    printf("reused %d\n", reused);
    return 0;
}
