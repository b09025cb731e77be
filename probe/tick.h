/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock hybrid: a number is published that changes every few microseconds (a tick), and an
 * event reads the processor's counter only when the number has changed since the thread's
 * last read, and at least every MR_TICK_EVENTS events, or sooner, at their pace. Between two
 * reads events carry the time of the last one, which is early by less than a tick. Why this
 * is sound, and what it costs: docs/why/2026-11-20-hybrid-clock.md.
 *
 *     MILLRACE_CLOCK=hybrid millrace record ./program
 *
 * The number is the counter as it was when it was published, by a ticker thread, or by the
 * writer while it takes words from rings: on a small machine they share a processor, and
 * one of them runs at a time. MR_TICK_NONE means that nobody ticks: then every event reads
 * the counter. It stands until the ticker runs, while no events come (it sleeps), when the
 * writer was the last to tick and rests, in a forked child before its own, and from the
 * end of the program on. A ticker that was taken off its processor is noticed by an event
 * that reads the counter and finds the number unchanged for more than two ticks: its
 * thread reads at every event until the number moves again.
 *
 * mr_tick is written by these two alone and read by all threads; on lines of its own.
 */
#ifndef MR_PROBE_TICK_H
#define MR_PROBE_TICK_H

#include "base/atomics.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/status.h"
#include "probe/place.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How early an event's time may be. Events that come evenly share a read for no more than
 * MR_TICK_EVENTS of them, and for no longer than MR_TICK_PACE_NS at their pace; so these two
 * are what an error mostly is. The tick bounds it where events cease all at once. Faster
 * ticks cost all events cache misses: docs/why/2026-11-20-hybrid-clock.md, "A Zen 5".
 */
#define MR_TICK_NS 4000
#define MR_TICK_PACE_NS 1000
#define MR_TICK_EVENTS 32
#define MR_TICK_JITTER_MASK 1
#define MR_TICK_NONE 1 /* 0 is the number of a thread that does not share a read */

struct mr_tick {
    MR_ALIGNED(2 * MR_CACHE_LINE) _Atomic uint64_t number;
    _Atomic uint64_t stale_ticks; /* two ticks; set before the first number */
    _Atomic uint64_t pace_ticks;  /* MR_TICK_PACE_NS; the same */
};

MR_HIDDEN extern struct mr_tick mr_tick;

/*
 * What the events of a thread share until its next read (probe/ring.h). Zero: nothing, the
 * next event reads. Whoever changes what `until` and `stamp` were made of (a sync record, a
 * loss) calls mr_tick_forget(); `number` is set last.
 */
struct mr_tick_view {
    uint64_t number; /* as it was at the last read; 0: nothing is shared */
    uint64_t until;  /* words of the ring: from this one on, read again */
    uint64_t stamp;  /* in the words of all of them: lap bit and time */
    uint64_t base;  /* address of word 0 of the ring, less that of the lap's first word */
    uint64_t seen;  /* `number` also where nothing is shared */
    uint64_t ticks; /* of the last read that was looked at for sharing */
    uint64_t since; /* the first such read with this number */
    uint64_t from;  /* words of the ring at the last one */
};

static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_tick_forget(struct mr_tick_view *view)
{
    view->number = 0;
    view->until = 0;
}

/*
 * At a read: nothing was to be shared, and it is too soon to look at that again; neither is
 * the number another, nor a pace over.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT bool mr_tick_is_alone(
    const struct mr_tick_view *view, uint64_t number, uint64_t now)
{
    return view->number == 0 && view->seen == number &&
           now - view->ticks < mr_load_relaxed(&mr_tick.pace_ticks);
}

/*
 * How many of `events`, which is MR_TICK_EVENTS or less, may share a read, at the pace of
 * those since the last one: no more than come in MR_TICK_PACE_NS, whoever ticks.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_tick_share(
    const struct mr_tick_view *view, uint64_t cursor, uint64_t now, uint64_t events)
{
    uint64_t elapsed = now - view->ticks;
    uint64_t came = (cursor - view->from) * mr_load_relaxed(&mr_tick.pace_ticks);

    if (came >= elapsed * MR_TICK_EVENTS)
        return events;
    return came < 2 * elapsed ? 1 : came / elapsed;
}

/*
 * Notes that the event at `cursor` read the counter, `now`, while `number` was published;
 * how many events, this one included, share it. That varies, by the counter's low bits,
 * by one: else a loop whose events are a multiple of the number would have its time told at
 * the same place in each round. 1: nothing is shared.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_tick_read(struct mr_tick_view *view,
                                                               uint64_t cursor,
                                                               uint64_t number,
                                                               uint64_t now)
{
    uint64_t events = MR_TICK_EVENTS - ((now ^ now >> 3) & MR_TICK_JITTER_MASK);

    events = mr_tick_share(view, cursor, now, events);
    if (number != view->seen) {
        view->seen = number;
        view->since = now;
    } else if (now - view->since > mr_load_relaxed(&mr_tick.stale_ticks)) {
        events = 1;
    }
    view->from = cursor;
    if (now > view->ticks) /* a handler's may be newer */
        view->ticks = now;
    return number == MR_TICK_NONE ? 1 : events;
}

#define MR_TICK_BUCKETS 256
/* Who ticked within such a time runs, or will in a moment. */
#define MR_TICK_ALIVE_NS UINT64_C(200000)

/* The numbers that one thread has published, in ticks of the clock. */
struct mr_tick_gaps {
    MR_ALIGNED(MR_CACHE_LINE) _Atomic uint64_t count; /* numbers that followed another */
    _Atomic uint64_t max;
    /* Time spent between two numbers, by the length of that gap: 4 per octave. */
    _Atomic uint64_t spent[MR_TICK_BUCKETS];
};

/* What ticker and writer tell of their numbers. */
struct mr_ticker {
    _Atomic uint32_t wanted;   /* futex: events came since it was last looked at */
    _Atomic uint32_t sleeping; /* the ticker waits for `wanted` */
    _Atomic uint64_t cpu_ns;   /* of the thread, so far */
    _Atomic uint64_t given;    /* the ticker's own last number */
    _Atomic int32_t tid;       /* of the ticker; 0: none runs */
    struct mr_place place;     /* of the ticker; the writer's */
    struct mr_tick_gaps own;   /* numbers of the ticker, */
    struct mr_tick_gaps beats; /* and of the writer */
};

struct mr_probe;

/* Starts the ticker of clock hybrid. MR_ENOMEM. */
MR_HIDDEN enum mr_status mr_tick_start(struct mr_probe *probe);
/* In a forked child: nobody ticks. */
MR_HIDDEN void mr_tick_after_fork(struct mr_probe *probe);
/* The writer: events come. */
MR_HIDDEN void mr_tick_want(struct mr_ticker *ticker);
/*
 * The writer: events come from threads on these processors, so the ticker is to run on
 * others. It cannot see to it alone: at idle priority, beside a busy thread, it does not run.
 */
MR_HIDDEN void mr_tick_keep_off(struct mr_ticker *ticker, const struct mr_cpu_mask *busy,
                                uint64_t now_ns);

/*
 * Publishes `now`. Between two numbers lies a gap, which is noted in `gaps`, the caller's own, unless nobody ticked before.
 */
MR_HIDDEN void mr_tick_publish(struct mr_tick_gaps *gaps, uint64_t now);
/*
 * The writer, often while it takes words: publishes where nobody else did for a tick. What
 * it published, or 0.
 */
MR_HIDDEN uint64_t mr_tick_beat(struct mr_ticker *ticker);
/* `ns`, up to a second, in ticks of the clock; 0: it is not known yet what a tick is. */
MR_HIDDEN uint64_t mr_tick_span(uint64_t ns);
/* The ticker itself gave a number within the last `within_ns`. */
MR_HIDDEN bool mr_tick_has_ticked(const struct mr_ticker *ticker, uint64_t within_ns);
/*
 * The writer will not look for a while: where `number`, its last, still stands, and the
 * ticker has not run lately, nobody ticks from here on.
 */
MR_HIDDEN void mr_tick_rest(const struct mr_ticker *ticker, uint64_t number);

/* One published number and the one before lie `gap_ticks` apart. For tests. */
MR_HIDDEN void mr_tick_note(struct mr_tick_gaps *gaps, uint64_t gap_ticks);
/* Numbers published, and the longest gap; of both. */
MR_HIDDEN uint64_t mr_tick_count(const struct mr_ticker *ticker);
MR_HIDDEN uint64_t mr_tick_gap_max(const struct mr_ticker *ticker);
/*
 * The gap that `share` (0 to 1,000,000 parts) of the time so far lay in, or in shorter
 * ones: the bound of the bucket, at most a quarter too long. 0: nothing published yet.
 */
MR_HIDDEN uint64_t mr_tick_gap(const struct mr_ticker *ticker, uint32_t share);

#endif
