/* SPDX-License-Identifier: Apache-2.0 */
/* Calls functions at a steady pace until its input ends; then tells how many calls it made: "work N\nleaf N\n". */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAVES 100

static volatile unsigned sink;

static void leaf(unsigned i)
{
    sink += i;
}

static void work(void)
{
    for (unsigned i = 0; i < LEAVES; i++)
        leaf(i);
}

int main(void)
{
    const char *text = getenv("STEADY_PER_TURN"); /* of work(), every 10 ms */
    long per_turn = text ? strtol(text, NULL, 10) : 1;
    unsigned long turns = 0;
    struct pollfd input = {.fd = 0, .events = POLLIN};

    while (poll(&input, 1, 10) == 0) {
        for (long i = 0; i < per_turn; i++)
            work();
        turns++;
    }
    (void)printf("work %lu\nleaf %lu\n", turns * (unsigned long)per_turn,
                 turns * (unsigned long)per_turn * LEAVES);
    return 0;
}
