/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the measured programs share: time, the processors they stay on, and what can be seen of a probe. Never traced.
 * PROGRAM_PROBE: a probe is linked.
 */
#ifndef MR_BENCH_PROGRAMS_PROGRAM_H
#define MR_BENCH_PROGRAMS_PROGRAM_H

#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(PROGRAM_PROBE)
#include <millrace/probe.h>
#endif

static inline uint64_t program_now_ns(clockid_t clock)
{
    struct timespec time;

    (void)clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The calling thread, and those it starts; -1: any processor. */
static inline void program_stay_on(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    (void)sched_setaffinity(0, sizeof(set), &set); /* 0: the calling thread */
}

/* `act` on each thread of this process, until it says true; whether one did. */
static inline bool program_any_thread(bool (*act)(pid_t thread, int number), int number)
{
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *entry;
    bool is_done = false;

    while (folder && !is_done && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            is_done = act((pid_t)strtol(entry->d_name, NULL, 10), number);
    if (folder)
        (void)closedir(folder);
    return is_done;
}

static inline bool program_move_off(pid_t thread, int cpu)
{
    cpu_set_t set;

    if (sched_getaffinity(thread, sizeof(set), &set) == 0 &&
        CPU_ISSET((unsigned)cpu, &set) && CPU_COUNT(&set) > 1) {
        CPU_CLR((unsigned)cpu, &set);
        (void)sched_setaffinity(thread, sizeof(set), &set);
    }
    return false;
}

/*
 * All threads so far, the probe's among them, and those that they start; -1: none. The program itself does it, once it
 * runs: a probe that may use one processor only, when it starts, does without clock hybrid. Twice, as one of them may be
 * starting another meanwhile.
 */
static inline void program_leave_cpu(int cpu)
{
    for (int i = 0; i < 2 && cpu >= 0; i++)
        (void)program_any_thread(program_move_off, cpu);
}

static inline bool program_is_ticker(pid_t thread, int number)
{
    char path[64], name[32] = "";
    FILE *file;

    (void)number;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%ld/comm", (long)thread);
    file = fopen(path, "r");
    if (file && !fgets(name, sizeof(name), file))
        name[0] = '\0';
    if (file)
        (void)fclose(file);
    return strcmp(name, "millrace-clock\n") == 0;
}

/*
 * Which clock the probe has, as far as it can be seen from outside: the thread that ticks is there with hybrid alone. It
 * may only just have been started, so where it should come it is waited for, 5 s.
 */
static inline const char *program_clock(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    const char *asked = getenv("MILLRACE_CLOCK");
    bool is_hybrid = asked && strcmp(asked, "hybrid") == 0;

    for (int i = 0; i < (is_hybrid ? 500 : 1); i++) {
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        if (program_any_thread(program_is_ticker, 0))
            return "hybrid";
    }
    return asked && !is_hybrid ? asked : "tsc";
}

/* The lines "probe WRITTEN ACKED LOST" and "clock NAME", where a probe is there to tell. */
static inline void program_print_probe(void)
{
#if defined(PROGRAM_PROBE)
    struct mr_probe_counts counts;

    if (mr_probe_stats(&counts) != 0)
        return;
    printf("probe %llu %llu %llu\n", (unsigned long long)counts.events_written,
           (unsigned long long)counts.events_acked,
           (unsigned long long)(counts.lost_ring_full + counts.lost_block_timeout +
                                counts.lost_budget + counts.lost_nested +
                                counts.lost_exit));
    printf("clock %s\n", program_clock());
#endif
}

#endif
