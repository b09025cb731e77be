/* SPDX-License-Identifier: Apache-2.0 */
/* Calls before main() and after it, and how a process ends: by return, exit(), or `order _exit`, `abort`, `exec`, `kill`. */
#include "safety.h"

#include <millrace/probe.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TRACED static void leaf(void)
{
    HERE;
}

TRACED __attribute__((constructor(101))) static void constructor_first(void)
{
    HERE;
    leaf();
    KEEP;
}

TRACED __attribute__((constructor)) static void constructor(void)
{
    HERE;
    leaf();
    KEEP;
}

TRACED __attribute__((destructor)) static void destructor(void)
{
    HERE;
    leaf();
    KEEP;
}

TRACED __attribute__((destructor(101))) static void destructor_last(void)
{
    HERE;
    leaf();
    KEEP;
}

TRACED static void at_exit_second(void)
{
    HERE;
    leaf();
    KEEP;
}

TRACED static void at_exit(void)
{
    HERE;
    MUST(atexit(at_exit_second) == 0);
    leaf();
    KEEP;
}

TRACED static void end(const char *how, char **argv)
{
    HERE;
    leaf();
    if (strcmp(how, "exit") == 0)
        exit(0);
    (void)mr_probe_flush(
        20000); /* what follows asks for no more than what was made so far */
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        (void)kill(getpid(), SIGKILL);
    argv[1] = NULL;
    (void)execv(argv[0], argv);
    KEEP; /* else an exit, before the jump to execv(), may get out or not */
}

int main(int argc, char **argv)
{
    HERE;
    MUST(atexit(at_exit) == 0);
    leaf();
    if (argc > 1)
        end(argv[1], argv);
    return 0;
}
