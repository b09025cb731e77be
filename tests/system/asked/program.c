/* SPDX-License-Identifier: Apache-2.0 */
/* Serves requests, every third of which writes, until its standard input ends. */
#include <millrace/probe.h>
#include <poll.h>
#include <unistd.h>

static volatile unsigned sink;

static void parse(unsigned key)
{
    sink += key;
}

static void read_row(unsigned key)
{
    sink ^= key;
}

static void write_row(unsigned key)
{
    sink -= key;
}

static void change(unsigned key)
{
    read_row(key);
    write_row(key);
}

static void request(unsigned key)
{
    parse(key);
    if (key % 3 == 0)
        change(key);
    else
        read_row(key);
}

static void start_up(void)
{
    parse(7);
}

int main(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    start_up();
    for (unsigned key = 0; poll(&input, 1, 2) == 0; key++)
        request(key);
    return 0;
}
