/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs for one thread, which leaves the detach out after every third of them: in its loop, which is not traced, and in a function
 * that it calls for each. More often than attaches nest.
 */
#include <millrace/probe.h>

#include <pthread.h>

#define JOBS 60
#define MISSING 3

static volatile int sink;
static struct mr_token tokens[2 * JOBS];

static void request(int number)
{
    tokens[number] = mr_capture();
}

static void work(void)
{
    sink++;
}

static void serve_one(int number)
{
    mr_attach(tokens[number]);
    work();
    if (number % MISSING != 0)
        mr_detach();
}

MR_NEVER_TRACE static void *serve(void *context)
{
    for (int i = 0; i < JOBS; i++) {
        mr_attach(tokens[i]);
        work();
        if (i % MISSING != 0)
            mr_detach();
    }
    for (int i = JOBS; i < 2 * JOBS; i++)
        serve_one(i);
    return context;
}

int main(void)
{
    pthread_t thread;

    for (int i = 0; i < 2 * JOBS; i++)
        request(i);
    if (pthread_create(&thread, NULL, serve, NULL) != 0)
        return 1;
    return pthread_join(thread, NULL);
}
