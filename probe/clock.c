/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/clock.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define TRY_COUNT 16
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
/* CPUID: advanced power management, bit 8 of EDX: the counter's rate is constant. */
#define CPUID_POWER 0x80000007u
#define CPUID_INVARIANT (1u << 8)
/* How far the rate that the processor tells may be from the measured one: 1 / this. */
#define HZ_TOLERANCE 1000

/*
 * The kernel's sources that stand on the time-stamp counter. Where it has another one, it
 * has found the counter to be unstable, or knows that it is.
 */
static bool trusts_counter(const char *clocksource)
{
    static const char *const names[] = {
        "tsc", "kvm-clock", "xen", "hyperv_clocksource_tsc_page", "arch_sys_counter"};

    for (size_t i = 0; i < MR_ARRAY_COUNT(names); i++)
        if (strcmp(clocksource, names[i]) == 0)
            return true;
    return clocksource[0] == '\0';
}

static bool has_counter(void)
{
#if defined(__x86_64__)
    uint32_t a = 0, b = 0, c = 0, d = 0;

    return __get_cpuid(CPUID_POWER, &a, &b, &c, &d) && (d & CPUID_INVARIANT);
#else
    return MR_COMPILER_HAS_TICKS;
#endif
}

void mr_clock_facts(struct mr_clock_facts *facts)
{
    int fd = open(CLOCKSOURCE, O_RDONLY | O_CLOEXEC);
    ssize_t size;
    cpu_set_t set;

    memset(facts, 0, sizeof(*facts));
    facts->has_counter = has_counter();
    if (fd >= 0) {
        size = read(fd, facts->clocksource, sizeof(facts->clocksource) - 1);
        if (size > 0)
            facts->clocksource[strcspn(facts->clocksource, "\n")] = '\0';
        (void)close(fd);
    }
    /* With more than 1,024 processors, this fails: there are enough then. */
    facts->cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set)
                                                               : UINT32_MAX;
}

void mr_clock_choose(enum mr_clock_mode wanted, const struct mr_clock_facts *facts,
                     struct mr_probe_clock *clock)
{
    clock->mode = wanted;
    clock->warning[0] = '\0';
    if (wanted == MR_CLOCK_MODE_MONOTONIC)
        return;
    if (!facts->has_counter || !trusts_counter(facts->clocksource)) {
        clock->mode = MR_CLOCK_MODE_MONOTONIC;
        (void)snprintf(clock->warning, sizeof(clock->warning),
                       "no stable time-stamp counter (%s%s): times are read from "
                       "CLOCK_MONOTONIC, which costs more",
                       facts->has_counter
                           ? "the kernel's clock source is "
                           : "the processor does not tell an invariant one",
                       facts->has_counter ? facts->clocksource : "");
    } else if (wanted == MR_CLOCK_MODE_HYBRID && facts->cpus < 2) {
        clock->mode = MR_CLOCK_MODE_COUNTER;
        (void)snprintf(clock->warning, sizeof(clock->warning),
                       "clock hybrid needs a second processor for its ticker, and this "
                       "process may run on one: clock tsc is used");
    }
}

static uint64_t read_ns(clockid_t clock)
{
    struct timespec time;

    if (clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_nsec;
}

static void sample_once(enum mr_clock_mode mode, struct mr_clock_sample *sample)
{
    uint64_t before = mr_clock_read(mode), between, after;

    sample->raw_ns = read_ns(CLOCK_MONOTONIC_RAW);
    between = mr_clock_read(mode);
    sample->real_ns = read_ns(CLOCK_REALTIME);
    after = mr_clock_read(mode);
    sample->raw_ticks = before + (between - before) / 2;
    sample->real_ticks = between + (after - between) / 2;
    sample->error_ticks =
        between - before > after - between ? between - before : after - between;
}

void mr_clock_sample(enum mr_clock_mode mode, struct mr_clock_sample *sample)
{
    sample_once(mode, sample);
    for (int i = 1; i < TRY_COUNT; i++) {
        struct mr_clock_sample again;

        sample_once(mode, &again);
        if (again.error_ticks < sample->error_ticks)
            *sample = again;
    }
}

/* Ticks and ns of the same span of time. */
static void set_rate(struct mr_clock_info *info, uint64_t ticks, uint64_t ns)
{
    uint64_t hz = mr_clock_ticks_hz();
    mr_u128 mult = 0;
    uint8_t shift = 64;

    if (ticks == 0 || ns == 0 || ns > UINT64_MAX / 2) { /* no clock moves: say 1 GHz */
        ticks = ns = 1;
    } else if (hz > 0) {
        mr_u128 told = (mr_u128)hz * ns / MR_SECOND_NS, seen = ticks;
        mr_u128 off = told > seen ? told - seen : seen - told;

        if (off <= seen / HZ_TOLERANCE) {
            ticks = hz;
            ns = MR_SECOND_NS;
        }
    }
    do
        mult = ((mr_u128)ns << --shift) / ticks;
    while (mult > UINT32_MAX && shift > 0);
    info->mult = mult ? (uint32_t)mult : 1;
    info->shift = shift;
}

void mr_clock_calibrate(enum mr_clock_mode mode, const struct mr_clock_sample *first,
                        const struct mr_clock_sample *second, struct mr_clock_info *info)
{
    static const enum mr_clock_kind kinds[] = {
        [MR_CLOCK_TICKS_TSC] = MR_CLOCK_TSC,
        [MR_CLOCK_TICKS_CNTVCT] = MR_CLOCK_CNTVCT,
        [MR_CLOCK_TICKS_MONOTONIC] = MR_CLOCK_MONOTONIC,
    };

    if (mode == MR_CLOCK_MODE_MONOTONIC) { /* a tick is a nanosecond */
        info->kind = MR_CLOCK_MONOTONIC;
        info->mult = 1;
        info->shift = 0;
    } else {
        info->kind = kinds[mr_clock_ticks_kind()];
        set_rate(info, second->raw_ticks - first->raw_ticks,
                 second->raw_ns - first->raw_ns);
    }
    info->ticks = second->real_ticks;
    info->realtime_ns = second->real_ns;
}
