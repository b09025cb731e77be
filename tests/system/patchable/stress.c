/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patches and unpatches without end under 8 threads and a signal of 20 kHz:
 *
 *     patch_stress SECONDS
 *
 * Three of the threads block all signals. Every round's result is checked; a wrong one, or
 * any fault, ends with a dump of the registers and the code there. At the end it prints how
 * often each firm function was called and how often the loose ones were switched;
 * test_stress.py compares that with what arrived.
 *
 * Linked with the probe's objects, to switch without the margin of mr_probe_switch().
 *
 * field     written by           read by   access
 * is_over   main                 threads   relaxed: a little late is fine
 * counts    each thread its own  main      after pthread_join()
 * signals   the handler          main      relaxed add; read at the end
 */
#include "base/atomics.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "probe/include/millrace/probe.h"
#include "probe/sites.h"
#include "stress_calls.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define THREADS 8
#define BLOCKED_THREADS 3
#define SIGNAL_NS 50000
/*
 * Some 50,000 events: a ring of 1 MiB never fills, so no handler comes while its thread
 * waits for room; its events would be lost (nested), by design.
 */
#define ROUNDS_PER_FLUSH 2000
#define FLUSH_MS 60000
#define CODE_BEFORE 16
#define CODE_BYTES 48

static _Atomic uint32_t is_over;
static _Atomic uint64_t signals, rounds_done;

MR_NORETURN static void die(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
    _exit(3);
}

static void on_timer(int number)
{
    MR_UNUSED(number);
    if (loose_signal(5) != 5)
        die("patch_stress: a wrong result in the handler\n");
    (void)mr_add_relaxed(&signals, 1);
}

/* Registers and code where it happened, by write() alone. */
static void on_fault(int number, siginfo_t *info, void *context)
{
#if defined(__x86_64__)
    const ucontext_t *at = context;
    uint64_t rip = (uint64_t)at->uc_mcontext.gregs[REG_RIP];
    const uint8_t *code = (const uint8_t *)(uintptr_t)rip - CODE_BEFORE;
    char text[512];
    int size =
        snprintf(text, sizeof(text),
                 "patch_stress: signal %d, code %d, address %p, rip %#" PRIx64 "\n",
                 number, info->si_code, info->si_addr, rip);

    for (int i = 0; i < NGREG && size < (int)sizeof(text) - 32; i++)
        size += snprintf(text + size, sizeof(text) - (size_t)size, "%llx ",
                         (unsigned long long)at->uc_mcontext.gregs[i]);
    (void)!write(STDERR_FILENO, text, (size_t)size);
    size = snprintf(text, sizeof(text), "\ncode from rip - %d:", CODE_BEFORE);
    (void)!write(STDERR_FILENO, text, (size_t)size);
    /* Where rip itself is the fault, this one faults again, and ends it. */
    for (int i = 0; i < CODE_BYTES; i++) {
        size = snprintf(text, sizeof(text), " %02x", code[i]);
        (void)!write(STDERR_FILENO, text, (size_t)size);
    }
#else
    MR_UNUSED(context);
    MR_UNUSED(info);
#endif
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void catch_faults(void)
{
    static const int numbers[] = {SIGSEGV, SIGILL, SIGTRAP, SIGBUS, SIGFPE};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    for (size_t i = 0; i < MR_ARRAY_COUNT(numbers); i++)
        (void)sigaction(numbers[i], &action, NULL);
}

static void *run(void *argument)
{
    uint64_t rounds = 0, seed = (uintptr_t)argument * 1000;
    sigset_t all;

    (void)sigfillset(&all);
    if ((uintptr_t)argument < BLOCKED_THREADS)
        (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (; !mr_load_relaxed(&is_over); rounds++, seed++) {
        if (firm_round(seed) != round_expected(seed))
            die("patch_stress: a wrong result\n");
        if (rounds % ROUNDS_PER_FLUSH == ROUNDS_PER_FLUSH - 1)
            (void)mr_probe_flush(FLUSH_MS);
    }
    /* No handler once the thread's end is recorded. */
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    (void)mr_add_relaxed(&rounds_done, rounds);
    return NULL;
}

static timer_t start_timer(void)
{
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerspec interval = {.it_interval.tv_nsec = SIGNAL_NS,
                                  .it_value.tv_nsec = SIGNAL_NS};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;

    (void)sigaction(SIGRTMIN, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &interval, NULL) != 0)
        die("patch_stress: no timer\n");
    return timer;
}

/* Chosen by size, which is by name in stress_calls.c: no file is read for it. */
static uint64_t switch_until(uint64_t end_ns)
{
    struct mr_site_filter filter = {.min_size = LOOSE_BYTES};
    struct mr_sites_result result;
    struct mr_error error = MR_ERROR_NONE;
    uint64_t count = 0;

    while (mr_clock_monotonic_ns() < end_ns) {
        if (mr_sites_switch(&filter, count % 2, &result, &error) != MR_OK ||
            result.refused > 0 || result.switched == 0) {
            printf("switch %" PRIu64 ": matched %u, switched %u, refused %u: %s\n", count,
                   result.matched, result.switched, result.refused, error.text);
            die("patch_stress: a switch failed\n");
        }
        count++;
    }
    return count;
}

int main(int argc, char **argv)
{
    uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, switches;
    struct mr_sites_counts counts;
    pthread_t threads[THREADS];
    timer_t timer;

    catch_faults();
    for (uintptr_t i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, run, (void *)i); /* NOLINT: a number */
    timer = start_timer();
    switches = switch_until(mr_clock_monotonic_ns() + seconds * MR_SECOND_NS);
    mr_store_relaxed(&is_over, 1);
    for (size_t i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)timer_delete(timer);
    (void)signal(SIGRTMIN, SIG_IGN);
    mr_sites_count(&counts);
    printf("stress threads=%d rounds=%" PRIu64 " signals=%" PRIu64 " switches=%" PRIu64
           " sites=%u points=%u unclear=%u patched=%" PRIu64 " foreign=%" PRIu64 "\n",
           THREADS, mr_load_relaxed(&rounds_done), mr_load_relaxed(&signals), switches,
           counts.sites, counts.points, counts.points_unclear, counts.patched,
           counts.foreign);
    return mr_probe_flush(FLUSH_MS) == 0 ? 0 : 4;
}
