/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     jumps plain      longjmp over one, and over 20 frames, and to where it was called
 *     jumps nested     through two places to return to, inner one first
 *     jumps handler    siglongjmp out of a signal handler
 *     jumps stack      the same out of one that runs on a stack of its own
 *     jumps recursion  out of the tenth frame of a function into its third
 *     jumps each       over 8 to 23 frames, so that what one record tells of ends at each of them
 */
#include "safety.h"

#include <millrace/probe.h>

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf outer, inner;
static sigjmp_buf from_handler;

TRACED static void before(void)
{
    HERE;
}

TRACED static void after(void)
{
    HERE;
}

TRACED static void jump(jmp_buf where)
{
    HERE;
    before();
    longjmp(where, 1);
}

TRACED static void descend(int depth, jmp_buf where)
{
    HERE;
    if (depth == 0)
        jump(where);
    descend(depth - 1, where);
    KEEP;
}

TRACED static void over_one(void)
{
    HERE;
    if (setjmp(outer) == 0)
        jump(outer);
    after();
    KEEP;
}

TRACED static void over_many(void)
{
    HERE;
    if (setjmp(outer) == 0)
        descend(20, outer);
    after();
    KEEP;
}

TRACED static void into_itself(void)
{
    volatile int round = 0;

    HERE;
    (void)setjmp(outer);
    before();
    if (round++ < 3)
        longjmp(outer, 1);
    after();
    KEEP;
}

PLAIN static void plain(void)
{
    over_one();
    over_many();
    into_itself();
    after();
    KEEP;
}

TRACED static void catch_inner(void)
{
    HERE;
    if (setjmp(inner) == 0)
        descend(3, inner);
    after();
    descend(2, outer);
    KEEP;
}

TRACED static void catch_outer(void)
{
    HERE;
    if (setjmp(outer) == 0)
        catch_inner();
    after();
    KEEP;
}

TRACED static void on_signal(int number)
{
    HERE;
    (void)number;
    before();
    siglongjmp(from_handler, 1);
}

TRACED static void interrupted(void)
{
    HERE;
    (void)raise(SIGUSR1);
    KEEP;
}

TRACED static void handle(void)
{
    HERE;
    if (sigsetjmp(from_handler, 1) == 0)
        interrupted();
    after();
    KEEP;
}

static jmp_buf third;

TRACED static void dive(int depth)
{
    HERE;
    if (depth == 3 && setjmp(third) != 0)
        after();
    else if (depth == 10)
        jump(third);
    else
        dive(depth + 1);
    before();
    KEEP;
}

TRACED static void over(int frames)
{
    HERE;
    if (setjmp(outer) == 0)
        descend(frames - 2, outer);
    after();
    KEEP;
}

TRACED static void each(void)
{
    HERE;
    for (int frames = 8; frames < 24; frames++)
        over(frames);
    KEEP;
}

PLAIN static void use_stack(void)
{
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

    MUST(sigaltstack(&stack, NULL) == 0);
}

int main(int argc, char **argv)
{
    HERE;
    MUST(argc == 2);
    if (strcmp(argv[1], "plain") == 0)
        plain();
    else if (strcmp(argv[1], "nested") == 0)
        catch_outer();
    else if (strcmp(argv[1], "recursion") == 0)
        dive(1);
    else if (strcmp(argv[1], "each") == 0)
        each();
    else {
        struct sigaction action = {.sa_handler = on_signal};

        if (strcmp(argv[1], "stack") == 0) {
            action.sa_flags = SA_ONSTACK;
            use_stack();
        }

        MUST(sigaction(SIGUSR1, &action, NULL) == 0);
        TIMES(3)
        handle();
    }
    after();
    return 0;
}
