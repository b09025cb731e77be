/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A traced program that knows how many events it makes:
 *
 *     subject MODE [N] [M]
 *
 * Prints a line of key=value: what it made (events: hook calls), and what the probe says
 * of itself after a flush. Only leaf(), main() and what the modes say are instrumented.
 */
#include <millrace/probe.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#define NOINLINE __attribute__((noinline))

static _Atomic uint64_t made;

NOINLINE static int leaf(int x)
{
    __asm__ volatile("" ::: "memory");
    return x + 1;
}

PLAIN static void call(uint64_t count)
{
    int value = 0;

    for (uint64_t i = 0; i < count; i++)
        value = leaf(value);
    made += 2 * count;
}

PLAIN static void report(const char *who)
{
    struct mr_probe_counts stats;
    uint64_t events = made;
    const char *flush_ms = getenv("SUBJECT_FLUSH_MS");
    int is_flushed =
        mr_probe_flush(flush_ms ? (uint32_t)strtoul(flush_ms, NULL, 10) : 20000) == 0;

    (void)mr_probe_stats(&stats);
    printf("subject who=%s pid=%d made=%" PRIu64 " flushed=%d written=%" PRIu64
           " acked=%" PRIu64 " ring_full=%" PRIu64 " block_timeout=%" PRIu64
           " budget=%" PRIu64 " nested=%" PRIu64 " exit=%" PRIu64 " discarded=%" PRIu64
           "\n",
           who, (int)getpid(), events, is_flushed, stats.events_written,
           stats.events_acked, stats.lost_ring_full, stats.lost_block_timeout,
           stats.lost_budget, stats.lost_nested, stats.lost_exit, stats.events_discarded);
    (void)fflush(stdout);
}

/* --- threads ------------------------------------------------------------------- */

struct job {
    uint64_t count;
    pthread_barrier_t *barrier;
};

/* Instrumented: the start function of its threads. */
static void *work(void *argument)
{
    struct job *job = argument;

    made += 2;
    if (job->barrier)
        (void)pthread_barrier_wait(job->barrier);
    call(job->count);
    if (job->barrier)
        (void)pthread_barrier_wait(job->barrier);
    return NULL;
}

PLAIN static void threads_one_by_one(uint64_t threads, uint64_t count)
{
    struct job job = {.count = count};

    for (uint64_t i = 0; i < threads; i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, work, &job) != 0)
            abort();
        (void)pthread_join(thread, NULL);
    }
}

PLAIN static void threads_at_once(uint64_t threads, uint64_t count)
{
    pthread_barrier_t barrier;
    struct job job = {.count = count, .barrier = &barrier};
    pthread_t *all = calloc(threads, sizeof(*all));

    (void)pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, work, &job) != 0)
            abort();
    for (uint64_t i = 0; i < threads; i++)
        (void)pthread_join(all[i], NULL);
    free(all);
}

/* --- signals ------------------------------------------------------------------- */

static volatile uint64_t handled;
static sigjmp_buf back;
static volatile sig_atomic_t jumps;

/* Instrumented. */
static void on_tick(int number)
{
    (void)number;
    made += 2;
    handled++;
    call(3);
}

static void on_jump(int number)
{
    (void)number;
    made += 1; /* its exit does not come */
    call(1);
    jumps++;
    siglongjmp(back, 1);
}

PLAIN static void set_timer(long us, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, us}, {0, us}};

    (void)sigemptyset(&action.sa_mask);
    if (handler)
        (void)sigaction(SIGALRM, &action, NULL);
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

PLAIN static void under_signals(uint64_t count)
{
    uint64_t done = 0;

    set_timer(50, on_tick);
    for (; done < count; done += 1000) {
        errno = 4711;
        call(1000);
        if (errno != 4711)
            printf("fault: errno\n");
    }
    set_timer(0, NULL);
    printf("handled=%" PRIu64 "\n", handled);
}

/*
 * Calls that a handler leaves by longjmp are not counted: how many there were is open. A
 * signal that waits is taken in siglongjmp(), before the stack is left: `us` must be more
 * than a handler takes, or handlers pile up for ever.
 */
PLAIN static void under_jumps(uint64_t count, long us)
{
    if (sigsetjmp(back, 1) == 0)
        set_timer(us, on_jump); /* not before there is where to jump to */
    for (int i = 0; (uint64_t)jumps < count; i++)
        (void)leaf(i);
    set_timer(0, NULL);
    printf("jumps=%d\n", (int)jumps);
}

#if defined(__x86_64__)
#define CAN_STEP 1

static volatile uint64_t steps_left;

/* After each instruction of call_stepped(). While it runs itself the processor does not step. */
PLAIN static void on_step(int number)
{
    (void)number;
    if (--steps_left == 0)
        siglongjmp(back, 1);
}

/* The red zone is left alone. */
#define SET_TRAP_FLAG(change)                                                            \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" change                       \
                     "\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::                             \
                         : "memory", "cc")

PLAIN static void call_stepped(void)
{
    SET_TRAP_FLAG("orq $0x100, (%%rsp)");
    (void)leaf(1);
    SET_TRAP_FLAG("andq $~0x100, (%%rsp)");
}
#else
#define CAN_STEP 0

static volatile uint64_t steps_left;

PLAIN static void on_step(int number)
{
    (void)number;
}

PLAIN static void call_stepped(void)
{
}
#endif

/*
 * A handler leaves the hooks of a call by longjmp, after their first instruction, their second one, and so on: whatever they had
 * begun, what comes later is written, and is there when a flush says so.
 */
PLAIN static void under_steps(uint64_t calls_between)
{
    struct sigaction action = {.sa_handler = on_step};
    volatile uint64_t step = 0;

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTRAP, &action, NULL);
    do {
        struct mr_probe_counts stats;
        uint64_t told;

        steps_left = ++step;
        if (sigsetjmp(back, 1) == 0)
            call_stepped();
        call(calls_between);
        if (mr_probe_flush(20000) != 0)
            printf("fault: step %" PRIu64 ": not flushed\n", step);
        (void)mr_probe_stats(&stats);
        told = stats.events_acked + stats.lost_nested;
        /* Of what was stepped through there may be two events a step. */
        if (told < made || told > made + 2 * step)
            printf("fault: step %" PRIu64 ": %" PRIu64 " of %" PRIu64
                   " events are told\n",
                   step, told, made);
    } while (CAN_STEP && steps_left == 0);
    printf("steps=%" PRIu64 "\n", step);
}

/* --- processes ----------------------------------------------------------------- */

PLAIN static void fork_children(uint64_t children, uint64_t count)
{
    call(count);
    for (uint64_t i = 0; i < children; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            made = 0;
            call(count);
            report("child");
            exit(0);
        }
        (void)waitpid(pid, NULL, 0);
    }
    call(count);
}

/*
 * Closes all it does not know, as daemons do, and has the numbers given to a socket of
 * its own, in which nobody else may write.
 */
PLAIN static void take_all_descriptors(uint64_t count)
{
    int pair[2];
    char byte;

    call(count);
    (void)mr_probe_flush(20000); /* it is connected */
    for (int fd = 3; fd < 1024; fd++)
        (void)close(fd);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        abort();
    for (int fd = 3; fd < 900; fd++)
        if (fd != pair[0] && fd != pair[1] && dup2(pair[0], fd) < 0)
            abort();
    call(count);
    (void)mr_probe_flush(20000);
    if (recv(pair[1], &byte, 1, MSG_DONTWAIT) > 0)
        printf("fault: bytes of the probe in a socket of the program\n");
    for (int fd = 3; fd < 900; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            printf("fault: descriptor %d was closed\n", fd);
}

/* How many descriptors there is room for, before the probe has a connection. */
PLAIN static void tell_slots(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[128];

    while (status && fgets(line, sizeof(line), status))
        if (strncmp(line, "FDSize:", 7) == 0)
            printf("slots %d\n", atoi(line + 7));
    if (status)
        (void)fclose(status);
}

/* Like a daemon's second start: what stderr was is a file of the program's now. */
PLAIN static void take_stderr(uint64_t count)
{
    char name[] = "/tmp/mr-subject-XXXXXX";
    int fd = mkstemp(name);

    call(count);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        abort();
    printf("stderr=%s\n", name);
}

/* --- spans, names, ends -------------------------------------------------------- */

PLAIN static void spans(uint64_t count)
{
    mr_thread_name("spanner");
    for (uint64_t i = 0; i < count; i++) {
        MR_SPAN("outside");
        {
            MR_SPAN_FLAGS("inside", MR_SPAN_ROOT);
        }
    }
    made += 4 * count;
}

static pthread_key_t key;

PLAIN static void late_destructor(void *value)
{
    (void)value;
    call(5);
}

PLAIN static void *with_destructor(void *argument)
{
    (void)argument;
    (void)pthread_setspecific(key, &key);
    call(5);
    return NULL;
}

PLAIN static void thread_destructors(uint64_t threads)
{
    (void)pthread_key_create(&key, late_destructor);
    for (uint64_t i = 0; i < threads; i++) {
        pthread_t thread;

        (void)pthread_create(&thread, NULL, with_destructor, NULL);
        (void)pthread_join(thread, NULL);
    }
}

/* Bursts with rests, so that the ring fills, empties and fills again. */
PLAIN static void bursts(uint64_t count, uint64_t bytes)
{
    for (uint64_t i = 0; i < count; i++) {
        call(bytes);
        (void)usleep(20000);
    }
}

/* All of the process stops, `us` from now: whoever started it lets it go on. */
PLAIN static void stop_in(uint64_t us)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGSTOP};
    struct itimerspec at = {.it_value = {.tv_nsec = (long)us * 1000}};
    timer_t timer;

    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &at, NULL) != 0)
        abort();
}

PLAIN static void run(const char *mode, uint64_t n, uint64_t m)
{
    if (strcmp(mode, "calls") == 0)
        call(n);
    else if (strcmp(mode, "bursts") == 0)
        bursts(n, m);
    else if (strcmp(mode, "threads") == 0)
        threads_one_by_one(n, m);
    else if (strcmp(mode, "live") == 0)
        threads_at_once(n, m);
    else if (strcmp(mode, "signals") == 0)
        under_signals(n);
    else if (strcmp(mode, "jumps") == 0)
        under_jumps(n, (long)m);
    else if (strcmp(mode, "steps") == 0)
        under_steps(n);
    else if (strcmp(mode, "fork") == 0)
        fork_children(n, m);
    else if (strcmp(mode, "descriptors") == 0)
        take_all_descriptors(n);
    else if (strcmp(mode, "stderr") == 0)
        take_stderr(n);
    else if (strcmp(mode, "slots") == 0)
        tell_slots();
    else if (strcmp(mode, "spans") == 0)
        spans(n);
    else if (strcmp(mode, "destructors") == 0)
        thread_destructors(n);
    else if (strcmp(mode, "stopped") == 0)
        stop_in(m), call(n);
    else if (strcmp(mode, "sleep") == 0)
        (void)usleep((useconds_t)n);
    else
        exit(2);
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    uint64_t m = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000;

    made += 1; /* our own enter */
    run(argc > 1 ? argv[1] : "calls", n, m);
    report("main");
    return 0;
}
