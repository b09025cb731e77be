/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions, with a short rest now and then, until its input ends. */
#include <poll.h>
#include <time.h>

static volatile unsigned sink;

static void leaf(unsigned i)
{
    sink += i;
}

static void batch(void)
{
    for (unsigned i = 0; i < 1000; i++)
        leaf(i);
}

static int is_over(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    return poll(&input, 1, 0) > 0;
}

int main(void)
{
    const struct timespec rest = {0, 1000000};

    while (!is_over()) {
        for (int i = 0; i < 20; i++)
            batch();
        nanosleep(&rest, 0);
    }
    return 0;
}
