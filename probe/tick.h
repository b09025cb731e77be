/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock hybrid: a ticker thread publishes a number that changes about every microsecond,
 * and an event reads the processor's counter only when the number has changed since the
 * thread's last read, and at least every MR_TICK_EVENTS events. Between two reads events
 * carry the time of the last one, which is early by less than a tick. Why this is sound,
 * and what it costs: docs/why/2026-11-20-hybrid-clock.md.
 *
 *     MILLRACE_CLOCK=hybrid millrace record ./program
 *
 * The number 0 means that nobody ticks: then every event reads the counter. It stands
 * until the ticker runs, while no events come (it sleeps), in a forked child before its
 * own, and from the end of the program on. A ticker that was taken off its processor is
 * noticed by an event that reads the counter and finds the number unchanged for more than
 * two ticks: its thread reads at every event until the number moves again.
 *
 * mr_tick is written by the ticker alone and read by all threads; on lines of its own.
 */
#ifndef MR_PROBE_TICK_H
#define MR_PROBE_TICK_H

#include "base/atomics.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/status.h"

#include <stdint.h>

/* Faster ticks cost the events more in cache misses than slower ones save in error. */
#define MR_TICK_NS 1000
/* Events per read at most; the prefix of a power of two, see mr_tick_read(). */
#define MR_TICK_EVENTS 32
#define MR_TICK_JITTER_MASK 7
#define MR_TICK_NONE 0

struct mr_tick {
    MR_ALIGNED(2 * MR_CACHE_LINE) _Atomic uint64_t number;
    _Atomic uint64_t stale_ticks; /* two ticks; set before the first number */
};

MR_HIDDEN extern struct mr_tick mr_tick;

/* A thread's last read. Zero: none. */
struct mr_tick_view {
    uint64_t number; /* as it was then */
    uint64_t until;  /* words of the ring: from this one on, read again */
    uint64_t ticks;
    uint64_t since; /* the first read with this number */
};

/*
 * Reads the counter for the event at `cursor`. How many events share the read varies, by
 * the counter's low bits, between 25 and 32: else a loop whose events are a multiple of
 * the number would have its time told at the same place in each round.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_tick_read(struct mr_tick_view *view,
                                                               uint64_t cursor,
                                                               uint64_t number)
{
    uint64_t now = mr_clock_ticks();
    uint64_t events = MR_TICK_EVENTS - ((now ^ now >> 3) & MR_TICK_JITTER_MASK);

    if (number != view->number) {
        view->number = number;
        view->since = now;
    } else if (now - view->since > mr_load_relaxed(&mr_tick.stale_ticks)) {
        events = 1;
    }
    view->until = number == MR_TICK_NONE ? 0 : cursor + events;
    if (now > view->ticks) /* a handler's may be newer */
        view->ticks = now;
    return now;
}

#define MR_TICK_BUCKETS 256

/* What the ticker tells of itself. Written by it, read by the writer thread. */
struct mr_ticker {
    _Atomic uint32_t wanted;   /* futex: events came since it was last looked at */
    _Atomic uint32_t sleeping; /* the ticker waits for `wanted` */
    _Atomic uint64_t cpu_ns;   /* of the thread, so far */
    _Atomic uint64_t gap_ticks_max;
    _Atomic uint64_t ticks; /* numbers published */
    /* Time (ticks) spent between two numbers, by the length of that gap: 4 per octave. */
    _Atomic uint64_t spent_ticks[MR_TICK_BUCKETS];
};

struct mr_probe;

/* Starts the ticker of clock hybrid. MR_ENOMEM. */
MR_HIDDEN enum mr_status mr_tick_start(struct mr_probe *probe);
/* In a forked child: nobody ticks. */
MR_HIDDEN void mr_tick_after_fork(struct mr_probe *probe);
/* The writer: events come. */
MR_HIDDEN void mr_tick_want(struct mr_ticker *ticker);

/*
 * One published number and the one before lie `gap_ticks` apart. The ticker's; for tests.
 */
MR_HIDDEN void mr_tick_note(struct mr_ticker *ticker, uint64_t gap_ticks);
/*
 * The gap that `share` (0 to 1,000,000 parts) of the time so far lay in, or in shorter
 * ones: the bound of the bucket, at most a quarter too long. 0: nothing published yet.
 */
MR_HIDDEN uint64_t mr_tick_gap(const struct mr_ticker *ticker, uint32_t share);

#endif
