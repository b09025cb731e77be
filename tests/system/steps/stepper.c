/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program that asks for single steps, and sends it a signal after so many of them:
 *
 *     stepper PROGRAM [ARGUMENT]...
 *
 * The program asks by int3, with what it wants in %rax and a number in %rdi:
 *
 *     ASK_STEP N     N instructions later the thread gets SIGUSR1 and goes on unstepped
 *     ASK_PAUSE N    N instructions later the thread stands still for PAUSE_MS, then goes on
 *     ASK_END        what was asked for is over; in %rax whether it came to it
 *     ASK_HOLD       all other threads stand still,
 *     ASK_LET_GO     and go on
 *
 * Steps by the processor's trap flag would end where the probe blocks all signals; here they are another process's, so a signal
 * comes wherever one can, and waits where it must. Ends as the program does.
 */
#include "steps.h"

#include "base/compiler.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELD_MAX 64

static pid_t program;
static struct {
    pid_t thread;
    int signal; /* that it was about to get */
} held[HELD_MAX];
static size_t held_count;
static uint64_t was_reached; /* the last step that was asked for */

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    if (program > 0)
        (void)kill(program, SIGKILL);
    exit(3);
}

static void go_on(pid_t thread, int signal)
{
    must(ptrace(PTRACE_CONT, thread, NULL, signal) == 0 || errno == ESRCH, "PTRACE_CONT");
}

/* The signal that a stopped thread is about to get; 0: none. */
static int signal_of(int status)
{
    int signal = WSTOPSIG(status);

    return status >> 16 != 0 || signal == SIGTRAP ? 0 : signal;
}

static bool is_asking(pid_t thread, int status)
{
    siginfo_t info;

    return status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP &&
           ptrace(PTRACE_GETSIGINFO, thread, NULL, &info) == 0 &&
           info.si_code == SI_KERNEL;
}

static void answer(pid_t thread, struct user_regs_struct *registers, uint64_t value)
{
    registers->rax = value;
    must(ptrace(PTRACE_SETREGS, thread, NULL, registers) == 0, "PTRACE_SETREGS");
}

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

static void hold(pid_t thread)
{
    int status;

    if (held_count == HELD_MAX || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0 ||
        waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status))
        return;
    held[held_count].thread = thread;
    held[held_count++].signal = signal_of(status);
}

static void hold_others(pid_t self)
{
    char path[64];
    struct dirent *entry;
    DIR *tasks;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)program);
    tasks = opendir(path);
    must(tasks != NULL, path);
    while ((entry = readdir(tasks)) != NULL) {
        pid_t thread = (pid_t)atoi(entry->d_name);

        if (thread > 0 && thread != self)
            hold(thread);
    }
    (void)closedir(tasks);
}

static void let_go(void)
{
    for (size_t i = 0; i < held_count; i++)
        go_on(held[i].thread, held[i].signal);
    held_count = 0;
}

/* Whether it came so far before it asked for something else. */
static bool step(pid_t thread, uint64_t count)
{
    int status, signal = 0;

    for (uint64_t i = 0; i < count; i++) {
        must(ptrace(PTRACE_SINGLESTEP, thread, NULL, signal) == 0, "PTRACE_SINGLESTEP");
        must(waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status), "a step");
        if (is_asking(thread, status))
            return false;
        signal = signal_of(status);
    }
    return true;
}

static void obey(pid_t thread)
{
    struct user_regs_struct registers;
    uint64_t what;
    int signal = 0;

    must(ptrace(PTRACE_GETREGS, thread, NULL, &registers) == 0, "PTRACE_GETREGS");
    what = registers.rax;
    if (what == ASK_STEP || what == ASK_PAUSE) {
        was_reached = step(thread, registers.rdi);
        if (!was_reached) {
            obey(thread); /* the end */
            return;
        }
        if (what == ASK_PAUSE)
            wait_ms(PAUSE_MS);
        else
            signal = SIGUSR1;
    } else if (what == ASK_END) {
        answer(thread, &registers, was_reached);
    } else if (what == ASK_HOLD) {
        hold_others(thread);
    } else {
        let_go();
    }
    go_on(thread, signal);
}

static int end_of(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "stepper: the program was ended by signal %d\n", WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

MR_NORETURN static void begin(char **command, const int *start)
{
    char byte;

    if (read(start[0], &byte, 1) == 1)
        (void)execv(command[0], command);
    perror(command[0]);
    _exit(127);
}

int main(int argc, char **argv)
{
    int start[2], status;
    pid_t thread;

    must(argc > 1 && pipe(start) == 0, "stepper PROGRAM");
    program = fork();
    must(program >= 0, "fork");
    if (program == 0)
        begin(argv + 1, start);
    must(ptrace(PTRACE_SEIZE, program, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) ==
             0,
         "PTRACE_SEIZE");
    must(write(start[1], "", 1) == 1, "write");
    while ((thread = waitpid(-1, &status, __WALL)) > 0) {
        if (!WIFSTOPPED(status)) {
            if (thread == program)
                return end_of(status);
        } else if (is_asking(thread, status)) {
            obey(thread);
        } else {
            go_on(thread, signal_of(status));
        }
    }
    return 3;
}
