/* SPDX-License-Identifier: Apache-2.0 */
/* Makes many calls, says so on stdout, and ends with status 7. */
#include <stdio.h>

static volatile unsigned sink;

static void leaf(unsigned value)
{
    sink = value;
}

static void root(unsigned value)
{
    leaf(value);
    leaf(value + 1);
}

int main(void)
{
    for (unsigned i = 0; i < 100000; i++)
        root(i);
    puts("100000 roots");
    return 7;
}
