/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose counters are known: counters_subject MODE [NUMBER...]
 *
 *     known            spans around page faults, sleeps and work, each between two readings of the same events by
 *                      the program itself; prints "span counter inner outer"
 *     threads N        N threads at a time, each with one span; then 100 short ones
 *     taken N          N threads at a time, then all descriptors are taken and one more; prints the most memory it had, KiB
 *     forks N          N children, each with one span of 50 page faults; prints the descriptors a child has
 *     signals N        N spans under a timer whose handler makes spans; checks errno
 *     closes           spans, then all descriptors are closed, then spans
 *     many N           N spans of no work
 *     statuses N       N spans, every third of which fails; of every sixth that is taken back
 */
#include "millrace/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

/* The witness: events of our own. */
#define EVENTS 3
static const char *const event_names[EVENTS] = {"page-faults", "context-switches",
                                                "task-clock"};
static const unsigned event_numbers[EVENTS] = {
    PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_TASK_CLOCK};
static int events[EVENTS];

static void open_events(void)
{
    for (int i = 0; i < EVENTS; i++) {
        struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                             .size = sizeof(attributes),
                                             .config = event_numbers[i]};

        events[i] = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0);
        if (events[i] < 0) {
            perror("perf_event_open");
            exit(77);
        }
    }
}

struct reading {
    unsigned long long values[EVENTS];
};

static void read_events(struct reading *reading)
{
    for (int i = 0; i < EVENTS; i++)
        if (read(events[i], &reading->values[i], sizeof(reading->values[i])) !=
            (ssize_t)sizeof(reading->values[i]))
            abort();
}

static void touch_pages(long count)
{
    size_t size = (size_t)count * PAGE;
    volatile char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    (void)madvise((void *)(uintptr_t)memory, size, MADV_NOHUGEPAGE);
    for (long i = 0; i < count; i++)
        memory[i * PAGE] = 1;
    (void)munmap((void *)(uintptr_t)memory, size);
}

static void sleep_often(long count)
{
    for (long i = 0; i < count; i++) {
        struct timespec time = {.tv_nsec = 100000};

        (void)nanosleep(&time, NULL);
    }
}

static void work(long count)
{
    volatile long sum = 0;

    for (long i = 0; i < count; i++)
        sum += i;
    (void)sum;
}

struct before_after {
    struct reading outer[2], inner[2];
};

static void print(const char *span, const struct before_after *seen)
{
    for (int i = 0; i < EVENTS; i++)
        printf("%s %s %llu %llu\n", span, event_names[i],
               seen->inner[1].values[i] - seen->inner[0].values[i],
               seen->outer[1].values[i] - seen->outer[0].values[i]);
}

#define WITNESSED(name, action)                                                          \
    do {                                                                                 \
        struct before_after seen;                                                        \
        read_events(&seen.outer[0]);                                                     \
        {                                                                                \
            MR_SPAN(name);                                                               \
            read_events(&seen.inner[0]);                                                 \
            action;                                                                      \
            read_events(&seen.inner[1]);                                                 \
        }                                                                                \
        read_events(&seen.outer[1]);                                                     \
        print(name, &seen);                                                              \
    } while (0)

static void nest(void)
{
    touch_pages(7);
    {
        MR_SPAN("nested");
        touch_pages(30);
    }
    {
        MR_SPAN("nested");
        touch_pages(12);
    }
    touch_pages(4);
}

static int known(void)
{
    open_events();
    {
        MR_SPAN("warm up");
        touch_pages(3);
        sleep_often(1);
    }
    WITNESSED("touches", touch_pages(500));
    WITNESSED("sleeps", sleep_often(20));
    WITNESSED("works", work(3000000));
    WITNESSED("nests", nest());
    WITNESSED("rests", (void)0);
    return 0;
}

static pthread_barrier_t all_there;

static void *one_span(void *pages)
{
    MR_SPAN("thread");
    touch_pages((long)pages);
    if (pages == (void *)10)
        (void)pthread_barrier_wait(&all_there);
    return NULL;
}

static int threads(long count)
{
    pthread_t *all = calloc((size_t)count, sizeof(*all));
    pthread_t one;

    if (!all || pthread_barrier_init(&all_there, NULL, (unsigned)count) != 0)
        return 1;
    for (long i = 0; i < count; i++)
        if (pthread_create(&all[i], NULL, one_span, (void *)10) != 0)
            return 1;
    for (long i = 0; i < count; i++)
        (void)pthread_join(all[i], NULL);
    for (int i = 0; i < 100; i++) {
        if (pthread_create(&one, NULL, one_span, (void *)5) != 0)
            return 1;
        (void)pthread_join(one, NULL);
    }
    free(all);
    return 0;
}

/* More threads than have counters; and one that finds no descriptor free. */
static int taken(long count)
{
    struct rusage usage;
    pthread_t one;

    if (threads(count) != 0)
        return 1;
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        ;
    if (errno != EMFILE || pthread_create(&one, NULL, one_span, (void *)5) != 0)
        return 1;
    (void)pthread_join(one, NULL);
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 1;
    (void)printf("%ld\n", usage.ru_maxrss);
    return 0;
}

/* Descriptors of perf events. */
static int count_events(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    char link[64];
    int count = 0;

    while (folder && (entry = readdir(folder))) {
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, link, sizeof(link) - 1);

        link[size > 0 ? size : 0] = '\0';
        count += strcmp(link, "anon_inode:[perf_event]") == 0;
    }
    if (folder)
        (void)closedir(folder);
    return count;
}

static int forks(long count)
{
    MR_SPAN("parent");

    touch_pages(20);
    for (long i = 0; i < count; i++) {
        pid_t child = fork();

        if (child == 0) {
            {
                MR_SPAN("child");
                touch_pages(50);
            }
            printf("%d\n", count_events());
            exit(0);
        }
        (void)waitpid(child, NULL, 0);
    }
    return 0;
}

static atomic_int handled, errno_changed;

static void handle(int number)
{
    (void)number;
    MR_SPAN("handler");
    handled++;
}

static int signals(long count)
{
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};

    (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; i < count || handled < 20; i++) {
        MR_SPAN("interrupted");
        errno = 1234;
        {
            MR_SPAN("inner");
        }
        errno_changed |= errno != 1234;
    }
    (void)setitimer(ITIMER_REAL, &never, NULL);
    printf("%d\n", (int)handled);
    return errno_changed;
}

static void many(const char *what, long count)
{
    (void)what;
    for (long i = 0; i < count; i++) {
        MR_SPAN("span");
    }
}

static void statuses(long count)
{
    for (long i = 0; i < count; i++) {
        MR_SPAN("outer");
        {
            MR_SPAN("tried");
            errno = 1234;
            if (i % 3 == 0)
                mr_status_failed();
            if (i % 6 == 0)
                mr_status_ok();
            if (errno != 1234)
                abort();
        }
    }
}

static int closes(void)
{
    int pipes[2];
    char byte;

    many("before", 100);
    if (syscall(SYS_close_range, 3, ~0U, 0) != 0)
        return 77;
    many("after", 100);
    if (pipe(pipes) != 0 || write(pipes[1], "x", 1) != 1)
        return 1;
    many("with a pipe", 100);
    return read(pipes[0], &byte, 1) == 1 && byte == 'x' ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    long number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

    if (strcmp(mode, "known") == 0)
        return known();
    if (strcmp(mode, "threads") == 0)
        return threads(number);
    if (strcmp(mode, "taken") == 0)
        return taken(number);
    if (strcmp(mode, "forks") == 0)
        return forks(number);
    if (strcmp(mode, "signals") == 0)
        return signals(number);
    if (strcmp(mode, "closes") == 0)
        return closes();
    if (strcmp(mode, "many") == 0) {
        many("", number);
        return 0;
    }
    if (strcmp(mode, "statuses") == 0) {
        statuses(number);
        return 0;
    }
    return 2;
}
