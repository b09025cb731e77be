/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For test_filter.py: calls each function a known number of times, in batches, one for
 * each line that comes on standard input; says when it is done with a batch.
 */
#include <millrace/probe.h>

#include <stdio.h>

#define KEEP __attribute__((noinline, noipa))

KEEP static int tiny_add(int value)
{
    return value + 1;
}

/* Some hundred bytes of code. */
KEEP static unsigned large_mix(volatile unsigned *values, int count)
{
    unsigned sum = 0;

    for (int i = 0; i < count; i++) {
        values[0] = values[1] * 3 + values[2] * 5 + values[3] * 7;
        values[1] = values[2] * 11 + values[3] * 13 + values[0] * 17;
        values[2] = values[3] * 19 + values[0] * 23 + values[1] * 29;
        values[3] = values[0] * 31 + values[1] * 37 + values[2] * 41;
        sum += values[0] ^ values[1] ^ values[2] ^ values[3];
    }
    return sum;
}

KEEP static int tiny_sub(int value)
{
    return value - 1;
}

/* As small as tiny_add(), but nobody knows how long it runs. */
KEEP static unsigned tiny_loop(unsigned value)
{
    while (value > 7)
        value = value / 2 ^ (value & 1);
    return value;
}

MR_ALWAYS_TRACE KEEP static int tiny_kept(int value)
{
    return value ^ 3;
}

KEEP static int batch(void)
{
    volatile unsigned values[4] = {1, 2, 3, 4};
    unsigned sum = 0;

    for (int i = 0; i < 100; i++)
        sum += (unsigned)(tiny_add(i) + tiny_sub(i) + tiny_kept(i)) +
               tiny_loop((unsigned)i) + large_mix(values, 2);
    return (int)(sum % 1000);
}

int main(void)
{
    char line[16];
    int sum = 0;

    while (fgets(line, sizeof(line), stdin)) {
        sum += batch();
        (void)mr_probe_flush(60000);
        printf("done %d\n", sum);
        fflush(stdout);
    }
    return 0;
}
