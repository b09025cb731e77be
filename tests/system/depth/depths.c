/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depths: calls of known depth, and calls that are left without an exit, on the thread of
 * main, in a thread, and in a signal handler on a stack of its own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define LEAVES 1000
#define HANDLED 10

static volatile unsigned sink;
static jmp_buf back;

__attribute__((noipa)) void deepest(void)
{
    sink++;
}

__attribute__((noipa)) void recurse(unsigned depth)
{
    deepest();
    if (depth > 1)
        recurse(depth - 1);
    sink++;
}

__attribute__((noipa)) void leave(void)
{
    longjmp(back, 1);
}

__attribute__((noipa)) void last(void)
{
    sink++;
}

__attribute__((noipa)) void work(void)
{
    recurse(10);
    last();
    sink++;
}

__attribute__((noipa)) void leaves(void)
{
    static volatile unsigned left;

    left = 0;
    if (setjmp(back))
        left++;
    if (left < LEAVES)
        leave();
    sink++;
}

__attribute__((noipa)) void *threads_work(void *argument)
{
    work();
    sink++;
    return argument;
}

__attribute__((noipa)) void handle(int number)
{
    (void)number;
    last();
    sink++;
}

__attribute__((noipa)) void raises(void)
{
    static char memory[1 << 16];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < HANDLED; i++)
        raise(SIGUSR1);
}

int main(void)
{
    pthread_t thread;

    work();
    leaves();
    raises();
    work();
    pthread_create(&thread, NULL, threads_work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
