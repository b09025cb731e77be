/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that the probe makes inside other people's functions: raw, because
 * libc's wrappers may be cancellation points, or wrapped by the program. Any thread,
 * async-signal-safe; errno may change.
 *
 *     uint64_t old = mr_signals_block();
 *     ...
 *     mr_signals_restore(old);
 */
#ifndef MR_PROBE_FUTEX_H
#define MR_PROBE_FUTEX_H

#include "base/clock.h"
#include "base/compiler.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MR_KERNEL_SIGSET_SIZE 8 /* bytes; the kernel's, not libc's */

/* Blocks every signal that can be, libc's own too. The mask before it. */
static inline MR_NO_INSTRUMENT uint64_t mr_signals_block(void)
{
    uint64_t all = UINT64_MAX, old = 0;

    (void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &old, MR_KERNEL_SIGSET_SIZE);
    return old;
}

static inline MR_NO_INSTRUMENT void mr_signals_restore(uint64_t old)
{
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, MR_KERNEL_SIGSET_SIZE);
}

/* May return early. */
static inline MR_NO_INSTRUMENT void mr_sleep_ns(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / MR_SECOND_NS),
                            .tv_nsec = (long)(ns % MR_SECOND_NS)};

    (void)syscall(SYS_nanosleep, &time, NULL);
}

/* Waits while *word is `value`, at most `ns`; may return early. */
static inline MR_NO_INSTRUMENT void mr_futex_wait(_Atomic uint32_t *word, uint32_t value,
                                                  uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / MR_SECOND_NS),
                            .tv_nsec = (long)(ns % MR_SECOND_NS)};

    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &time, NULL, 0);
}

static inline MR_NO_INSTRUMENT void mr_futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#endif
