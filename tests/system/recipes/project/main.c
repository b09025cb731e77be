/* SPDX-License-Identifier: Apache-2.0 */
/* main PLUGIN: with -DWHOLE all is one executable, and PLUGIN is not looked at. */
#include "calls.h"

#include <stdio.h>
#ifndef WHOLE
#include <dlfcn.h>
#endif

typedef int work_function(int value);

static int local_leaf(int value);

KEEP static int local_leaf(int value)
{
    return value + 1;
}

KEEP static int local(int value)
{
    for (int i = 0; i < 3; i++)
        value = local_leaf(value);
    return value;
}

KEEP static int serve(int value, work_function *plugin)
{
    value = local(value);
    value = shared_work(value);
    value = archive_work(value);
    value = first_unit(value);
    value = second_unit(value);
    return plugin(value) + 1;
}

int main(int argc, char **argv)
{
    work_function *plugin = 0;
    int value = argc;
#ifdef WHOLE
    plugin = plugin_work;
    (void)argv;
#else
    void *handle = dlopen(argv[argc - 1], RTLD_NOW);

    if (!handle || !(plugin = (work_function *)dlsym(handle, "plugin_work"))) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
#endif
    for (int i = 0; i < 20; i++)
        value = serve(value, plugin) % 1000;
#ifndef WHOLE
    dlclose(handle);
#endif
    printf("%d\n", value);
    return 0;
}
