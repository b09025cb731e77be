/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request, which says early that it fails and goes on until the input ends. Another, before it, which takes back what it
 * said. Prints "failing" in between, for who waits for it.
 */
#include <millrace/probe.h>

#include <poll.h>
#include <stdio.h>

static int has_input_ended(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    return poll(&input, 1, 1) != 0;
}

static void recover(void)
{
    mr_status_failed();
    mr_probe_status(0);
}

static void step(void)
{
}

static void handle(void)
{
    mr_status_failed();
    puts("failing");
    fflush(stdout);
    while (!has_input_ended())
        step();
}

int main(void)
{
    recover();
    handle();
    return 0;
}
