/* SPDX-License-Identifier: Apache-2.0 */
/* Forks children one after the other that call one function each, as itself does, and is over at once: `short CHILDREN`. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned sink;

static void work(void)
{
    sink++;
}

int main(int argc, char **argv)
{
    long children = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

    work();
    for (long i = 0; i < children; i++) {
        pid_t child = fork();
        int status = -1;

        if (child == 0) {
            work();
            exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
