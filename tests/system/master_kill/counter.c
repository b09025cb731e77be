/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows its own calls: batches of nested calls in two threads, and between the phases it waits for a line on
 * stdin. Prints `mark` after each phase, and at the end `function calls` for every function, by its own arithmetic.
 *
 *     counter PHASES BATCHES
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define HIDE __attribute__((no_instrument_function))
#define THREADS 2
#define LEAVES 7

static unsigned long batches;
static volatile unsigned sink;

static void leaf(unsigned value)
{
    sink = value;
}

static void branch(unsigned value)
{
    for (unsigned i = 0; i < LEAVES; i++)
        leaf(value + i);
}

static void odd_batch(unsigned value)
{
    branch(value);
    leaf(value);
}

static void batch(unsigned value)
{
    branch(value);
    if (value % 2)
        odd_batch(value);
}

static void *work(void *argument)
{
    (void)argument;
    for (unsigned long i = 0; i < batches; i++)
        batch((unsigned)i);
    return NULL;
}

static void phase(void)
{
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            exit(1);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

HIDE static void print_calls(unsigned long phases)
{
    unsigned long runs = phases * THREADS * batches,
                  odd = phases * THREADS * (batches / 2);

    printf(
        "main 1\nphase %lu\nwork %lu\nbatch %lu\nodd_batch %lu\nbranch %lu\nleaf %lu\n",
        phases, phases * THREADS, runs, odd, runs + odd, LEAVES * (runs + odd) + odd);
}

int main(int argc, char **argv)
{
    char line[16];
    unsigned long phases;

    if (argc != 3) {
        fprintf(stderr, "usage: counter PHASES BATCHES\n");
        return 2;
    }
    phases = strtoul(argv[1], NULL, 10);
    batches = strtoul(argv[2], NULL, 10);
    for (unsigned long i = 0; i < phases; i++) {
        phase();
        printf("mark %lu\n", i + 1);
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin))
            return 1;
    }
    print_calls(phases);
    return 0;
}
