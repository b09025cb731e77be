/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server SECONDS REQUESTS: a server that forks two processes, whose loops over requests lie below three functions. Each answers
 * requests for so many seconds, and then REQUESTS more. One leaves its loop and returns through its callers, of the other
 * none ever returns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 2
#define INTERVAL_US 20000 /* between requests while time goes by */

struct job {
    double seconds;
    unsigned long requests;
    int returns;
};

static volatile unsigned sink;

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noipa)) void parse(void)
{
    sink++;
}

__attribute__((noipa)) void answer(void)
{
    sink++;
}

__attribute__((noipa)) void handle(void)
{
    parse();
    answer();
    sink++;
}

__attribute__((noipa)) void read_options(void)
{
    sink++;
}

__attribute__((noipa)) void worker_loop(const struct job *job)
{
    double end = now() + job->seconds;

    while (now() < end) {
        handle();
        (void)usleep(INTERVAL_US);
    }
    for (unsigned long i = 0; i < job->requests; i++)
        handle();
    if (!job->returns)
        exit(0);
    sink++;
}

__attribute__((noipa)) void run(const struct job *job)
{
    read_options();
    worker_loop(job);
    sink++;
}

__attribute__((noipa)) void serve(const struct job *job)
{
    read_options();
    run(job);
    sink++;
}

__attribute__((noipa)) void child_main(const struct job *job)
{
    serve(job);
    sink++;
}

int main(int argc, char **argv)
{
    struct job job = {.seconds = argc == 3 ? atof(argv[1]) : 0};
    int failed = argc != 3, status;

    job.requests = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    for (int i = 0; i < CHILDREN && !failed; i++) {
        job.returns = i;
        switch (fork()) {
        case -1:
            perror("fork");
            return 1;
        case 0:
            child_main(&job);
            exit(0);
        default:
            break;
        }
    }
    for (int i = 0; i < CHILDREN && !failed; i++)
        failed = wait(&status) < 0 || status != 0;
    return failed;
}
