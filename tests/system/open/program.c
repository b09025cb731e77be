/* SPDX-License-Identifier: Apache-2.0 */
/* Answers quickly 1,000 times, then three threads wait for replies that never come: two for the same service. */
#include <pthread.h>
#include <unistd.h>

static void wait_for_reply(int forever)
{
    while (forever)
        pause();
}

static void call_backend(int forever)
{
    wait_for_reply(forever);
}

static void handle_order(int forever)
{
    call_backend(forever);
}

static void handle_search(int forever)
{
    call_backend(forever);
}

static void *serve(void *unused)
{
    handle_order(1);
    return unused;
}

int main(void)
{
    pthread_t threads[2];

    for (int i = 0; i < 1000; i++) {
        handle_order(0);
        handle_search(0);
    }
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, serve, NULL) != 0)
            return 1;
    handle_search(1);
    return 0;
}
