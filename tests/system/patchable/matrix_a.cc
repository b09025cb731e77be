/* SPDX-License-Identifier: Apache-2.0 */
/* For test_matrix.py: calls twice<int> of two units, a library's function and one by dlopen(). */
#include <millrace/probe.h>

#include <cstdio>
#include <cstring>
#ifdef MATRIX_DLOPEN
#include <dlfcn.h>
#endif

#include "matrix.h"

static int by_name(int value)
{
#ifdef MATRIX_DLOPEN
    /* Three times: stubs of a module that is gone are given back, and it is numbered anew. */
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(MATRIX_DLOPEN, RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "lib_work") : nullptr;
        int (*work)(int) = nullptr;

        if (!symbol) {
            std::printf("dlopen: %s\n", dlerror());
            return -1;
        }
        std::memcpy(&work, &symbol, sizeof(work));
        value = work(value);
        (void)mr_probe_flush(60000);
        (void)dlclose(library);
    }
    return value;
#else
    return lib_work(lib_work(lib_work(value)));
#endif
}

int main()
{
    int sum = 0;

    for (int i = 0; i < 10; i++)
        sum += twice(i) + other_unit(i);
    std::printf("%d %d\n", sum, by_name(1));
    return 0;
}
