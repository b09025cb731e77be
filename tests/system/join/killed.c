/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is handed to a thread, whose work never ends: says so, and waits to be killed. */
#include <millrace/probe.h>

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct mr_token token;

static void work(void)
{
    printf("working\n");
    fflush(stdout);
    for (;;)
        pause();
}

static void *serve(void *context)
{
    (void)context;
    mr_attach(token);
    work();
    return NULL;
}

static void request(void)
{
    token = mr_capture();
}

int main(void)
{
    pthread_t thread;

    request();
    if (pthread_create(&thread, NULL, serve, NULL) != 0)
        return 1;
    return pthread_join(thread, NULL);
}
