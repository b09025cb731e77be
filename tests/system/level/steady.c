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

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 10) : otherwise;
}

int main(void)
{
    long per_turn = number("STEADY_PER_TURN", 1); /* of work() */
    int turn_ms = (int)number("STEADY_TURN_MS", 10);
    unsigned long turns = 0;
    struct pollfd input = {.fd = 0, .events = POLLIN};

    while (poll(&input, 1, turn_ms) == 0) {
        for (long i = 0; i < per_turn; i++)
            work();
        turns++;
    }
    (void)printf("work %lu\nleaf %lu\n", turns * (unsigned long)per_turn,
                 turns * (unsigned long)per_turn * LEAVES);
    return 0;
}
