/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the probe's own threads run. Beside a thread whose events it takes, the writer or
 * the ticker has that thread's time, and the scheduler may leave it there: it wakes where
 * it slept, and on a small machine that is busy Linux looks no further (SIS_UTIL). A
 * thread that is bound to its processor, and so cannot leave, then pays every copy and
 * every send() of the writer: 1.6 times the floor on two processors
 * (docs/why/2026-11-20-writer-place.md).
 *
 *     mr_place_shorten_slices();                       // the thread itself, once
 *
 *     mr_place_begin(&place);                          // now and then, as the writer's passes
 *     mr_place_meet(&place, cpu);                      // where each thread with events runs
 *     mr_place_settle(&place, now_ns);
 *
 * settle leaves a processor that was met there and is ours, and after a second, or when
 * threads are met on all of them, lets the scheduler choose again. It changes nothing but the calling thread, or that of
 * mr_place_begin_of(), keeps within the processors that it was given, and gives way to
 * whoever else binds it.
 *
 * System calls: one prctl() and two or three of sched_*() when the thread moves, at most
 * every 10 ms. Where the process has a system call filter (containers, units of systemd)
 * none of these but prctl(PR_GET_SECCOMP) is made: a filter may end the process for it.
 * One thread per place, and one that calls.
 */
#ifndef MR_PROBE_PLACE_H
#define MR_PROBE_PLACE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_PLACE_CPUS 1024 /* on larger machines threads stay where they are put */
#define MR_PLACE_WORDS (MR_PLACE_CPUS / 64)

struct mr_cpu_mask {
    uint64_t bits[MR_PLACE_WORDS];
};

/* Zero: nothing done yet. */
struct mr_place {
    int32_t tid;             /* whom it is about; 0: the caller */
    int cpu;                 /* ours, since begin; -1: unknown, or another's */
    struct mr_cpu_mask busy; /* met since begin */
    bool is_moved;           /* `given` was replaced by `chosen` */
    struct mr_cpu_mask given, chosen;
    uint64_t next_ns, return_ns;
};

/*
 * The calling thread runs in short turns, so that it has not to wait until another's turn
 * ends when it wakes: a ring fills in 0.3 ms, a turn is 3 ms. It gets no larger share.
 */
MR_HIDDEN void mr_place_shorten_slices(void);
/* The calling thread runs where and when nobody else wants to. */
MR_HIDDEN void mr_place_yield_to_all(void);

MR_HIDDEN void mr_place_begin(struct mr_place *place);
/*
 * The same for another thread of the process, `tid`. Where it runs is not asked: it is kept
 * off all that is met, for who starves beside a busy thread cannot leave by itself.
 */
MR_HIDDEN void mr_place_begin_of(struct mr_place *place, int32_t tid);
/* cpu: -1, unknown. */
MR_HIDDEN void mr_place_meet(struct mr_place *place, int cpu);
MR_HIDDEN void mr_place_settle(struct mr_place *place, uint64_t now_ns);

#endif
