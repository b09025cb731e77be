/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of 1 to 30 items, handed to a thread each: under one attach it opens, works off the items, and closes. */
#include <millrace/probe.h>

#include <pthread.h>

#define ITEMS_MAX 30
#define ROUNDS 3

struct job {
    struct mr_token token;
    int items;
};

static volatile int sink;

static void open_job(void)
{
    sink++;
}

static void item(void)
{
    sink++;
}

static void close_job(void)
{
    sink--;
}

MR_NEVER_TRACE static void *work_off(void *context)
{
    const struct job *job = context;

    mr_attach(job->token);
    open_job();
    for (int i = 0; i < job->items; i++)
        item();
    close_job();
    mr_detach();
    return NULL;
}

static int hand_over(int items)
{
    struct job job = {mr_capture(), items};
    pthread_t thread;

    if (pthread_create(&thread, NULL, work_off, &job) != 0)
        return 1;
    return pthread_join(thread, NULL);
}

int main(void)
{
    int failed = 0;

    for (int round = 0; round < ROUNDS; round++)
        for (int items = 1; items <= ITEMS_MAX; items++)
            failed |= hand_over(items);
    return failed;
}
