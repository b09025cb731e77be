/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose calls have known trees, to be switched while it runs:
 *
 *     server [MODE [N]]
 *
 * threads (the default): until SIGTERM, one thread serves for ever, and short ones come
 * and go, each of which serves ten requests. children N: forks N children that do
 * nothing. forks: forks without end, each child serves one request. locked: as threads,
 * after forbidding itself new executable memory, where the system can. jail: as threads,
 * after making every system call that makes or changes executable memory fail. self:
 * serves ten requests, ten while it has switched itself off, and ten on a new thread
 * after it is on again.
 */
#include <millrace/probe.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#define NOINLINE __attribute__((noinline))

static _Atomic int is_ending;

NOINLINE int token(int x);
NOINLINE int parse_head(int x);
NOINLINE int parse_body(int x);
NOINLINE int step(int x);
NOINLINE int work(int x);
NOINLINE int request(int x);
void *serve_ten(void *argument);
void *serve_for_ever(void *argument);

PLAIN static void rest(long us)
{
    struct timespec time = {0, us * 1000};

    (void)nanosleep(&time, NULL);
}

/* Most of a request's time is spent inside: that is where switches find it. */
NOINLINE int token(int x)
{
    rest(10);
    return x + 1;
}

NOINLINE int parse_head(int x)
{
    __asm__ volatile("" ::: "memory");
    return token(x) + 1;
}

NOINLINE int parse_body(int x)
{
    __asm__ volatile("" ::: "memory");
    return token(token(x)) + 1;
}

NOINLINE int step(int x)
{
    rest(5);
    return x + 2;
}

NOINLINE int work(int x)
{
    for (int i = 0; i < 3; i++)
        x = step(x);
    return x + 1;
}

NOINLINE int request(int x)
{
    x = parse_head(x);
    x = parse_body(x);
    return work(x) + 1;
}

void *serve_ten(void *argument)
{
    for (int i = 0; i < 10; i++) {
        (void)request(i);
    }
    return argument;
}

void *serve_for_ever(void *argument)
{
    while (!is_ending) {
        (void)request(1);
    }
    return argument;
}

PLAIN static void on_term(int number)
{
    (void)number;
    is_ending = 1;
}

PLAIN static void threads(void)
{
    pthread_t lasting, brief;

    if (pthread_create(&lasting, NULL, serve_for_ever, NULL) != 0)
        abort();
    while (!is_ending) {
        if (pthread_create(&brief, NULL, serve_ten, NULL) != 0)
            abort();
        (void)pthread_join(brief, NULL);
    }
    (void)pthread_join(lasting, NULL);
}

PLAIN static void children(int count)
{
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)signal(SIGTERM, SIG_DFL);
            for (;;)
                (void)pause();
        }
        (void)printf("child %d\n", (int)pid);
    }
    (void)printf("all\n");
    (void)fflush(stdout);
    while (!is_ending)
        rest(10000);
    (void)kill(0, SIGTERM);
    while (wait(NULL) > 0)
        continue;
}

PLAIN static void forks(void)
{
    while (!is_ending) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)request(1);
            exit(0);
        }
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
}

PLAIN static void check_switch(int is_on, const struct mr_probe_filter *filter,
                               int wanted)
{
    int saved = errno = 4711;

    if (mr_probe_switch(is_on, filter) != wanted || errno != saved) {
        (void)printf("mr_probe_switch(%d) is not %d\n", is_on, wanted);
        exit(1);
    }
}

PLAIN static void switch_itself(void)
{
    const char *const bad[] = {"", NULL};
    struct mr_probe_filter filter = {.only = bad};
    pthread_t thread;

    (void)serve_ten(NULL);
    check_switch(0, NULL, 0);
    (void)serve_ten(NULL);
    check_switch(0, NULL, 0);
    check_switch(1, &filter, -1);
    check_switch(1, NULL, 0);
    if (pthread_create(&thread, NULL, serve_ten, NULL) != 0)
        abort();
    (void)pthread_join(thread, NULL);
}

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

PLAIN static void lock_memory(void)
{
    if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) {
        (void)printf("unsupported\n");
        exit(77);
    }
}

#define LOAD(offset_) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset_))
#define IS(value_, yes_, no_) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value_), (yes_), (no_))
#define HAS(bits_, yes_, no_) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits_), (yes_), (no_))

/* mprotect and mmap with PROT_EXEC, and memfd_create, are not permitted. */
PLAIN static void go_to_jail(void)
{
    struct sock_filter filter[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        IS(SYS_memfd_create, 5, 0),
        IS(SYS_mprotect, 1, 0),
        IS(SYS_mmap, 0, 2),
        LOAD(offsetof(struct seccomp_data, args[2])),
        HAS(PROT_EXEC, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                &program) != 0) {
        (void)printf("unsupported\n");
        exit(77);
    }
}

PLAIN int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "threads";
    struct sigaction action = {.sa_handler = on_term};

    (void)sigaction(SIGTERM, &action, NULL);
    if (strcmp(mode, "locked") == 0)
        lock_memory();
    if (strcmp(mode, "jail") == 0)
        go_to_jail();
    if (strcmp(mode, "children") == 0) {
        (void)setpgid(0, 0);
        children(argc > 2 ? atoi(argv[2]) : 1);
        return 0;
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    if (strcmp(mode, "self") == 0)
        switch_itself();
    else if (strcmp(mode, "forks") == 0)
        forks();
    else
        threads();
    (void)printf("end\n");
    return 0;
}
