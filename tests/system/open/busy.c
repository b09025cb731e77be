/* SPDX-License-Identifier: Apache-2.0 */
/* Answers one short request after the other, until its standard input ends. */
#include <poll.h>
#include <time.h>

static void look_up(void)
{
    const struct timespec pause = {.tv_nsec = 200000};

    (void)nanosleep(&pause, NULL);
}

static void handle_ping(void)
{
    look_up();
}

int main(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    while (poll(&input, 1, 0) == 0)
        handle_ping();
    return 0;
}
