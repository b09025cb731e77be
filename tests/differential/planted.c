/* SPDX-License-Identifier: Apache-2.0 */
#include "planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether the tests found something: they failed, or an assertion of the product did. */
static int fails(int (*tests)(void))
{
    int status = 0;
    pid_t child = fork();

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
