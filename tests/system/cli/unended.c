/* SPDX-License-Identifier: Apache-2.0 */
/* A recursion whose inner calls end, and whose outermost one ends the process. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) static void dig(int depth)
{
    if (depth > 0)
        dig(depth - 1);
    (void)usleep(1000);
    if (depth == 3)
        exit(0);
}

int main(void)
{
    dig(3);
    return 0;
}
