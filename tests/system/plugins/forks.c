/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forks CHILDREN CALLS PARENT: each child works CALLS in a.so, which it opens and closes, does nothing else that is traced, and ends.
 * Then, if PARENT is not 0, its parent does the same, so that the next child has what the probe remembers of that.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEVER __attribute__((no_instrument_function))

NEVER static int work(int calls)
{
    void *library = dlopen("./a.so", RTLD_NOW), *symbol;
    void (*function)(int);

    symbol = library ? dlsym(library, "a_work") : NULL;
    if (!symbol)
        return 1;
    memcpy(&function, &symbol, sizeof(function));
    function(calls);
    return dlclose(library) != 0;
}

NEVER int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 1, calls = argc > 2 ? atoi(argv[2]) : 1;
    int parent = argc > 3 ? atoi(argv[3]) : 0;

    for (int i = 0; i < children; i++) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
            exit(work(calls));
        if (waitpid(pid, &status, 0) != pid || status != 0)
            return 1;
        if (parent && work(calls) != 0)
            return 1;
    }
    return 0;
}
