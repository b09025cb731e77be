/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread pool behind a queue. Each request is accepted on the main thread, which hands
 * `fan-out` jobs to the pool; each third job hands a further one on. A job knows when it
 * may begin, so that the time in the queue is at least what it is told to be.
 *
 *     pool REQUESTS FAN_OUT DELAY_US
 */
#include <millrace/probe.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define JOBS_MAX 65536u
#define THREADS 3

enum kind { RENDER, NOTIFY, STOP };

struct job {
    struct mr_token token;
    enum kind kind;
    unsigned number;
    struct timespec not_before;
};

static struct job jobs[JOBS_MAX];
static unsigned head, tail, running;
static long delay_ns;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void push(struct job job)
{
    clock_gettime(CLOCK_MONOTONIC, &job.not_before);
    job.not_before.tv_nsec += job.kind == STOP ? 0 : delay_ns;
    job.not_before.tv_sec += job.not_before.tv_nsec / 1000000000;
    job.not_before.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    jobs[tail++ % JOBS_MAX] = job;
    running += job.kind != STOP;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

MR_NEVER_TRACE static struct job pop(void)
{
    struct job job;

    pthread_mutex_lock(&mutex);
    while (head == tail)
        pthread_cond_wait(&changed, &mutex);
    job = jobs[head++ % JOBS_MAX];
    pthread_mutex_unlock(&mutex);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &job.not_before, NULL);
    return job;
}

MR_NEVER_TRACE static void finish(void)
{
    pthread_mutex_lock(&mutex);
    running--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static unsigned layout(unsigned number)
{
    return number * 7;
}

static unsigned render(const struct job *job)
{
    unsigned width = layout(job->number);

    if (job->number % 3 == 0) {
        struct job next = {.kind = NOTIFY, .number = job->number, .token = mr_capture()};

        push(next);
    }
    return width;
}

static unsigned notify(const struct job *job)
{
    return job->number;
}

static void *serve(void *context)
{
    (void)context;
    for (;;) {
        struct job job = pop();

        if (job.kind == STOP)
            return NULL;
        mr_attach(job.token);
        if (job.kind == RENDER)
            render(&job);
        else
            notify(&job);
        mr_detach();
        finish();
    }
}

static void accept_request(unsigned number, unsigned fan_out)
{
    for (unsigned i = 0; i < fan_out; i++) {
        struct job job = {.kind = RENDER, .number = number, .token = mr_capture()};

        push(job);
    }
}

MR_NEVER_TRACE static void wait_until_done(void)
{
    pthread_mutex_lock(&mutex);
    while (running > 0)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
    unsigned fan_out = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    pthread_t threads[THREADS];

    delay_ns = argc > 3 ? atol(argv[3]) * 1000 : 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, serve, NULL);
    for (unsigned i = 0; i < requests; i++) {
        accept_request(i, fan_out);
        if (i % 16 == 15)
            wait_until_done();
    }
    wait_until_done();
    for (int i = 0; i < THREADS; i++)
        push((struct job){.kind = STOP});
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
