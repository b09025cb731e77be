/* SPDX-License-Identifier: Apache-2.0 */
#include "planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU_S 200 /* hundreds of times what finding a fault takes */

/* Whether the tests found something: they failed, or an assertion of the product did, or it goes on without an end. */
static int fails(int (*tests)(void))
{
    const struct rlimit limit = {CPU_S, CPU_S};
    int status = 0;
    pid_t child = fork();

    if (child == 0 && setrlimit(RLIMIT_CPU, &limit) != 0)
        abort();
    if (child == 0)
        _exit(tests() == 0 ? 0 : 1);
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int planted_run(const char *name, int (*tests)(void))
{
    int is_sound = strcmp(name, "none") == 0, has_failed;

    (void)fflush(stdout);
    has_failed = fails(tests);
    if (is_sound != has_failed)
        return 0;
    (void)fprintf(stderr, "fault %s: %s\n", name,
                  is_sound ? "a difference without a fault" : "was not found");
    return 1;
}
