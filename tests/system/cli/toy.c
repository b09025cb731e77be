/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toy COUNT STATUS: serves COUNT requests, each a recursion of depth 10 with a leaf per level; copies
 * stdin to stdout, says a word on stderr, and ends with STATUS. "toy COUNT kill" ends by a signal.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned sink;

__attribute__((noipa)) void leaf(unsigned value)
{
    sink += value;
}

__attribute__((noipa)) void descend(unsigned depth)
{
    leaf(depth);
    if (depth > 1)
        descend(depth - 1);
    sink++;
}

__attribute__((noipa)) void serve(void)
{
    descend(10);
    sink++;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1;
    int c;

    for (long i = 0; i < count; i++)
        serve();
    while ((c = getchar()) != EOF)
        putchar(c);
    fputs("toy says hello\n", stderr);
    if (argc > 2 && strcmp(argv[2], "kill") == 0)
        raise(SIGTERM);
    return argc > 2 ? atoi(argv[2]) : 0;
}
