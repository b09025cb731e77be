/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An independent witness: counts the calls of each function of a single-threaded program, and writes
 * `count address-in-file` lines to the file that COUNT_HOOKS names when it ends. Shares nothing with millrace. Calls made
 * after its own exit handler (registered at the first call, so it runs last) are not counted.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define HIDE __attribute__((no_instrument_function))
#define SLOTS                                                                            \
    65536 /* a power of two, well above the functions of any program it is used for */

void __cyg_profile_func_enter(void *function, void *site) HIDE;
void __cyg_profile_func_exit(void *function, void *site) HIDE;

extern const char
    __executable_start[]; /* by the linker: where the file's address 0 was loaded */
static struct {
    uintptr_t function;
    uint64_t calls;
} table[SLOTS];
static uint64_t exits;

HIDE static void write_counts(void)
{
    const char *name = getenv("COUNT_HOOKS");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (!file)
        return;
    for (size_t i = 0; i < SLOTS; i++)
        if (table[i].calls)
            fprintf(
                file, "%llu %#llx\n", (unsigned long long)table[i].calls,
                (unsigned long long)(table[i].function - (uintptr_t)__executable_start));
    fprintf(file, "%llu exits\n", (unsigned long long)exits);
    fclose(file);
}

void __cyg_profile_func_enter(void *function, void *site)
{
    static int registered;
    size_t slot = ((uintptr_t)function >> 2) * 0x9e3779b97f4a7c15u >> 48;
    (void)site;
    if (!registered)
        registered = atexit(write_counts) == 0;
    while (table[slot].function && table[slot].function != (uintptr_t)function)
        slot = (slot + 1) % SLOTS;
    table[slot].function = (uintptr_t)function;
    table[slot].calls++;
}

void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function;
    (void)site;
    exits++;
}
