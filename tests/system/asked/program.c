/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves requests, every third of which writes, and after each hundred an export, until its standard input ends. Of 1,024 exports
 * each has a shape of its own.
 */
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

static void go_down(unsigned levels)
{
    if (levels > 0)
        go_down(levels - 1);
    else
        read_row(levels);
}

/* More calls than an exemplar has that nobody asked for. */
static void export_rows(unsigned number)
{
    for (unsigned i = 0; i < 1000; i++) {
        parse(i);
        read_row(i);
    }
    go_down(number % 1024);
}

static void start_up(void)
{
    parse(7);
}

int main(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    start_up();
    for (unsigned key = 0; poll(&input, 1, 2) == 0; key++) {
        request(key);
        if (key % 100 == 99)
            export_rows(key / 100);
    }
    return 0;
}
