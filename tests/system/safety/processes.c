/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that make processes; all are sources of their own:
 *
 *     processes fork N       N children that make calls and exit, below a call of their parent that is open
 *     processes exec         a child by fork() and exec(), one by vfork() and exec(), one by posix_spawn(), one by system()
 *     processes vfork        a child that makes calls before it execs: it has its parent's memory
 *     processes daemon       fork, setsid, fork: the middle one leaves by _exit()
 *     processes threads      a child forked by a thread while others make calls
 *     processes prefork N    a server that has 8 children at a time until N have served and gone
 *     processes child        what the others exec: makes a call
 */
#include "safety.h"

#include <millrace/probe.h>

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALIVE 8

extern char **environ;
static char *program;

TRACED static void leaf(void)
{
    HERE;
}

TRACED static void serve(int count)
{
    HERE;
    TIMES(count)
    leaf();
}

PLAIN static void reap(pid_t pid)
{
    int status;

    MUST(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0);
}

TRACED static void fork_one(void)
{
    pid_t pid;

    HERE;
    leaf();
    pid = fork();
    if (pid == 0) {
        serve(100);
        exit(0);
    }
    reap(pid);
    leaf();
    KEEP;
}

PLAIN static void exec_child(void)
{
    (void)execl(program, program, "child", (char *)NULL);
    _exit(127);
}

TRACED static void exec_all(void)
{
    char *arguments[] = {program, (char *)"child", NULL}, command[4096];
    pid_t pid;

    HERE;
    pid = fork();
    if (pid == 0)
        exec_child();
    reap(pid);
    leaf();
    pid = vfork();
    if (pid == 0)
        exec_child();
    reap(pid);
    leaf();
    MUST(posix_spawn(&pid, program, NULL, NULL, arguments, environ) == 0);
    reap(pid);
    leaf();
    (void)snprintf(command, sizeof(command), "%s child", program);
    MUST(system(command) == 0);
    leaf();
    KEEP;
}

TRACED static void in_child(void)
{
    HERE;
    leaf();
    KEEP;
}

TRACED static void vfork_one(void)
{
    pid_t pid;

    HERE;
    pid = vfork();
    if (pid == 0) {
        in_child();
        exec_child();
    }
    reap(pid);
    leaf();
    KEEP;
}

TRACED static void daemon_one(void)
{
    int ends[2];
    char byte;
    pid_t pid;

    HERE;
    MUST(pipe(ends) == 0);
    pid = fork();
    if (pid == 0) {
        MUST(setsid() > 0);
        if (fork() > 0)
            _exit(0);
        serve(10);
        exit(0); /* closes the pipe at last */
    }
    reap(pid);
    (void)close(ends[1]);
    MUST(read(ends[0], &byte, 1) == 0);
    leaf();
    KEEP;
}

static _Atomic int is_done;

TRACED static void *other(void *argument)
{
    HERE;
    (void)argument;
    while (!is_done)
        KEEP;
    leaf();
    return NULL;
}

TRACED static void *forks(void *argument)
{
    HERE;
    (void)argument;
    fork_one();
    is_done = 1;
    return NULL;
}

PLAIN static void fork_in_thread(void)
{
    pthread_t threads[3];

    TIMES(3)
    MUST(pthread_create(&threads[index_], NULL, index_ == 2 ? forks : other, NULL) == 0);
    TIMES(3)
    MUST(pthread_join(threads[index_], NULL) == 0);
}

TRACED static void prefork(int count)
{
    int alive = 0;

    HERE;
    TIMES(count)
    {
        int status;
        pid_t pid;

        if (alive == ALIVE) {
            MUST(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
            alive--;
        }
        pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            serve(10);
            exit(0);
        }
        alive++;
    }
    while (alive-- > 0)
        MUST(wait(NULL) > 0);
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[2]) : 1;

    HERE;
    MUST(argc >= 2);
    program = argv[0];
    if (strcmp(argv[1], "fork") == 0)
        TIMES(count)
    fork_one();
    else if (strcmp(argv[1], "exec") == 0) exec_all();
    else if (strcmp(argv[1], "vfork") == 0) vfork_one();
    else if (strcmp(argv[1], "daemon") == 0) daemon_one();
    else if (strcmp(argv[1], "threads") == 0) fork_in_thread();
    else if (strcmp(argv[1], "prefork") == 0) prefork(count);
    else leaf();
    return 0;
}
