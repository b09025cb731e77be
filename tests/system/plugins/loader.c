/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and closes a library, again and again, while the probe's own threads look at what is loaded, too. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int times = argc == 3 ? atoi(argv[2]) : 0;

    for (int i = 0; i < times; i++) {
        void *handle = dlopen(argv[1], RTLD_NOW);

        if (!handle) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        (void)usleep((useconds_t)(1000 * (i % 7)));
        dlclose(handle);
    }
    return times == 0;
}
