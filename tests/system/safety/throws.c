/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program in C that loads ./plugin_throws.so, in which exceptions are thrown, and unloads it; N times. The
 * unwinder comes and goes with the plugin, and only the plugin sees it.
 */
#include "safety.h"

#include <millrace/probe.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TRACED static void leaf(void)
{
    HERE;
}

TRACED static void once(void)
{
    void *library, *symbol;
    void (*call)(void);

    HERE;
    library = dlopen("./plugin_throws.so", RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    symbol = dlsym(library, "plugin_throw");
    memcpy(&call, &symbol, sizeof(call));
    call();
    leaf();
    call();
    MUST(dlclose(library) == 0);
    leaf();
    KEEP;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;

    HERE;
    TIMES(count)
    once();
    return 0;
}
