/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two coroutines (makecontext, swapcontext) on one thread:
 *
 *     coroutines nested    each is entered, runs to its end, and returns: like calls
 *     coroutines mixed     they take turns in the middle of calls
 */
#include "safety.h"

#include <millrace/probe.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES 65536

static ucontext_t back, contexts[2];

TRACED static void leaf(void)
{
    HERE;
}

PLAIN static void turn(int from, int to)
{
    MUST(swapcontext(&contexts[from], &contexts[to]) == 0);
}

TRACED static void inside(int self)
{
    HERE;
    leaf();
    turn(self, 1 - self);
    leaf();
    KEEP;
}

TRACED static void first(void)
{
    HERE;
    TIMES(2)
    inside(0);
    KEEP;
}

TRACED static void second(void)
{
    HERE;
    TIMES(2)
    inside(1);
    KEEP;
}

TRACED static void whole(void)
{
    HERE;
    leaf();
    KEEP;
}

PLAIN static void make(int index, void (*function)(void), ucontext_t *link)
{
    MUST(getcontext(&contexts[index]) == 0);
    contexts[index].uc_stack.ss_sp = malloc(STACK_BYTES);
    contexts[index].uc_stack.ss_size = STACK_BYTES;
    contexts[index].uc_link = link;
    makecontext(&contexts[index], function, 0);
}

PLAIN static void enter(int index)
{
    MUST(swapcontext(&back, &contexts[index]) == 0);
}

int main(int argc, char **argv)
{
    HERE;
    MUST(argc == 2);
    leaf();
    if (strcmp(argv[1], "nested") == 0) {
        make(0, whole, &back);
        make(1, whole, &back);
        enter(0);
        enter(1);
    } else {
        make(0, first, &contexts[1]);
        make(1, second, &back);
        enter(0);
    }
    leaf();
    return 0;
}
