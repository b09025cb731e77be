/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is open all the time, and calls step() five times for each line of its input, until that ends. */
#include <stdio.h>

#define STEPS 5

static volatile unsigned sink;

static void leaf(void)
{
    sink++;
}

static void step(void)
{
    leaf();
    sink++;
}

static void job(void)
{
    char line[16];

    while (fgets(line, sizeof(line), stdin))
        for (int i = 0; i < STEPS; i++)
            step();
    sink++;
}

int main(void)
{
    job();
    return 0;
}
