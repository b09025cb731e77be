/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent witness for call trees: writes one line per call and return, `thread + address` and `thread - address`, to
 * the file TREE_HOOKS.<program>, addresses as in the executable's file. Slow and simple; shares nothing with millrace.
 * trees.py folds the lines into trees.
 */
#define _GNU_SOURCE 1 /* program_invocation_short_name */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define HIDE __attribute__((no_instrument_function))

#ifdef __cplusplus
extern "C" {
#endif
void __cyg_profile_func_enter(void *function, void *site) HIDE;
void __cyg_profile_func_exit(void *function, void *site) HIDE;
extern const char
    __executable_start[]; /* by the linker: where the file's address 0 was loaded */
#ifdef __cplusplus
}
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static int threads;
static _Thread_local int thread;

HIDE static void write_line(char direction, void *function)
{
    pthread_mutex_lock(&lock);
    if (!file) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%s", getenv("TREE_HOOKS"),
                 program_invocation_short_name);
        file = fopen(name, "w");
        if (!file)
            abort();
    }
    if (thread == 0)
        thread = ++threads;
    fprintf(file, "%d %c %#lx\n", thread, direction,
            (unsigned long)((uintptr_t)function - (uintptr_t)__executable_start));
    pthread_mutex_unlock(&lock);
}

void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    write_line('+', function);
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)site;
    write_line('-', function);
}
