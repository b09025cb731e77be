/* SPDX-License-Identifier: Apache-2.0 */
/* Answers requests all the time; a second thread is in one transaction until SIGUSR1 comes. Then both end. */
#include <pthread.h>
#include <signal.h>
#include <time.h>

static const struct timespec pause_time = {.tv_nsec = 1000000};

static void look_up(void)
{
    __asm__ volatile("");
}

static void answer(void)
{
    look_up();
    look_up();
}

static void wait_for_word(const sigset_t *word)
{
    int number;

    (void)sigwait(word, &number);
}

static void commit(void)
{
    __asm__ volatile("");
}

static void transaction(const sigset_t *word)
{
    look_up();
    wait_for_word(word);
    commit();
}

static void *work(void *word)
{
    transaction(word);
    return word;
}

int main(void)
{
    sigset_t word;
    pthread_t thread;

    sigemptyset(&word);
    sigaddset(&word, SIGUSR1);
    if (pthread_sigmask(SIG_BLOCK, &word, NULL) != 0 ||
        pthread_create(&thread, NULL, work, &word) != 0)
        return 1;
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        answer();
        nanosleep(&pause_time, NULL);
    }
    return 0;
}
