/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of known shapes: 200 quick lookups, of which one waits for a lock; 20 orders, of which one fails; and one export of
 * 300,000 calls, the last of which waits.
 */
#include <millrace/probe.h>
#include <time.h>

#define EXPORT_ROWS 100000

static volatile unsigned sink;

static void wait_for_lock(int ms)
{
    const struct timespec time = {0, ms * 1000000L};

    if (ms > 0)
        nanosleep(&time, 0);
}

static void read_index(unsigned key)
{
    sink += key;
}

static void read_row(unsigned key)
{
    sink ^= key;
}

static void lookup(int ms)
{
    read_index(1);
    wait_for_lock(ms);
    read_row(2);
}

static void check_stock(void)
{
    read_index(3);
}

static void place_order(int fails)
{
    check_stock();
    if (fails)
        mr_status_failed();
    else
        read_row(4);
}

static void format_row(unsigned row)
{
    read_row(row);
}

static void export_rows(void)
{
    for (unsigned i = 0; i < EXPORT_ROWS; i++) {
        format_row(i);
        read_index(i);
    }
    wait_for_lock(20);
}

int main(void)
{
    for (int i = 0; i < 200; i++)
        lookup(i == 137 ? 40 : 0);
    for (int i = 0; i < 20; i++)
        place_order(i == 11);
    export_rows();
    return 0;
}
