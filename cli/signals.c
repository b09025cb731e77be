/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"

#include "base/compiler.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

/* A signal handler can reach nothing else. */
static volatile sig_atomic_t last_taken, count, running_pid;
static struct sigaction before[MR_ARRAY_COUNT(numbers)];
static sigset_t mask_before;

static bool was_ignored(int number)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(numbers); i++)
        if (numbers[i] == number)
            return before[i].sa_handler == SIG_IGN;
    return false;
}

static void on_signal(int number)
{
    int saved_errno = errno;

    if (!was_ignored(number)) {
        last_taken = number;
        count++;
    }
    if (running_pid > 0 && (number == SIGTERM || number == SIGHUP))
        (void)kill((pid_t)running_pid, number);
    errno = saved_errno;
}

void mr_signals_take(void)
{
    struct sigaction take = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    for (size_t i = 0; i < MR_ARRAY_COUNT(numbers); i++)
        (void)sigaction(numbers[i], &take, &before[i]);
}

int mr_signals_taken(void)
{
    return last_taken;
}

void mr_signals_forget(void)
{
    last_taken = count = 0;
}

int mr_signals_count(void)
{
    return count;
}

void mr_signals_hold(void)
{
    sigset_t all;

    (void)sigemptyset(&all);
    for (size_t i = 0; i < MR_ARRAY_COUNT(numbers); i++)
        (void)sigaddset(&all, numbers[i]);
    (void)sigprocmask(SIG_BLOCK, &all, &mask_before);
}

void mr_signals_release(void)
{
    (void)sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

void mr_signals_give_back(void)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(numbers); i++)
        (void)sigaction(numbers[i], &before[i], NULL);
    mr_signals_release();
}

/* One of the terminal that is held may have come before there was the program. */
void mr_signals_pass_to(pid_t pid)
{
    sigset_t held;

    running_pid = pid;
    if (pid <= 0 || sigpending(&held) != 0)
        return;
    if (sigismember(&held, SIGINT) == 1)
        (void)kill(pid, SIGINT);
    if (sigismember(&held, SIGQUIT) == 1)
        (void)kill(pid, SIGQUIT);
}
