/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of one thread: a power of two of 8-byte words, written by its thread (and by
 * signal handlers on it), read by the probe's writer thread.
 *
 * A word carries a lap bit (docs/FORMAT.md section 6.1). Word number i lies in slot
 * i mod capacity; it is there when the slot's lap bit is 1 in even laps (the first is
 * lap 0) and 0 in odd ones. So an event is one 8-byte store, nothing is published, and
 * no slot is ever cleared: the reader walks from its tail while words are valid.
 *
 *        tail                  cursor        limit              tail + capacity
 *     ----|----- written -------|--- granted --|--- not granted ---|
 *
 * An event takes a number with one instruction (probe/arch.h). A number below `limit`
 * may be written at once; any other goes through the slow path, which alone moves
 * `limit`, writes sync and loss records, waits (policy block) and drops. The slow path
 * runs with all signals blocked, so that its multi-word records are never torn apart.
 *
 *     struct mr_thread *thread = &mr_thread_self;      // or one of a test's own
 *     mr_ring_event(thread, mr_event_enter(site));
 *
 * A full ring. Policy drop: events are lost until an eighth of the ring is free, so that
 * losses come in few, long pieces. Policy block: an event waits until there is room for
 * it, at most block_timeout_ns, and is lost then; after that wait the writer is taken to
 * stand still, and events are lost at once. The first word that it takes ends this: the
 * next event waits anew. So a writer that is merely slow costs waits and no event, and
 * one that stands still costs each thread one time-out, and what it does in the rest of
 * the standstill.
 *
 * Policy overwrite: there is always room, the oldest words make it, and nobody drains.
 * What a reader needs to know of the ring lies in memory that outlives the process
 * (probe/recorder_format.h); the slow path keeps it true, once per segment.
 *
 * Who may call: the thread that owns the ring, and signal handlers on it.
 */
#ifndef MR_PROBE_RING_H
#define MR_PROBE_RING_H

#include "base/atomics.h"
#include "base/compiler.h"
#include "net/control.h"
#include "net/wire.h"
#include "probe/arch.h"
#include "probe/cuts.h"
#include "probe/prune_marks.h"
#include "probe/tick.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_RING_BYTES_MIN UINT64_C(4096)
#define MR_RING_BYTES_MAX (UINT64_C(1) << 30)
#define MR_RING_WORDS_MIN (MR_RING_BYTES_MIN / sizeof(uint64_t))
#define MR_RING_NAME_SIZE 64

/*
 * Each event asks for the line that is so far ahead. It was last with the writer, and a
 * processor holds too few stores to wait for more than one or two lines.
 *
 * The precise clock: 64 to 1536 are the same (docs/why/2026-11-28-precise-clock-lines.md).
 * Clock hybrid, where a line takes as long as forty events: 1024 and 2048 are as good, 768
 * is not; lines that are asked for at reads, eight or more at a time, come later
 * (docs/why/2026-11-20-hybrid-clock.md).
 */
#define MR_RING_AHEAD_BYTES 256
#define MR_RING_AHEAD_HYBRID_BYTES 1536

struct mr_recorder_ring;

/*
 * Ring states: a thread takes a FREE ring to OWNED; at its end, to CLOSED; the writer
 * drains a closed ring and makes it FREE.
 */
enum mr_ring_state { MR_RING_FREE, MR_RING_OWNED, MR_RING_CLOSED };

/* What all rings of a process share. The pool (probe/pool.h) fills it. */
struct mr_ring_shared {
    enum mr_policy policy;
    uint64_t block_timeout_ns;
    _Atomic uint32_t pid;      /* whose writer drains; a copy made by _Fork() has none */
    _Atomic uint32_t draining; /* 1 while the writer thread runs */
    _Atomic uint32_t sleeping; /* futex: 1 while the writer sleeps until an event */
    _Atomic uint32_t taken;    /* frames that the writer has taken from rings */
    _Atomic uint32_t stalled;  /* taken + 1 when a wait for a ring timed out, or 0 */
    _Atomic uint64_t closed_count; /* threads that ended; policy overwrite */
    _Atomic uint32_t *epoch;       /* of the module table; policy overwrite */
    _Atomic uint32_t
        *is_original; /* 0 in a copy of the process; policy overwrite, or NULL */
    struct mr_cuts cuts;
    struct mr_prune_marks prunes;
};

#define MR_RING_PRUNED_OPEN_MAX 8

/* Sites that are pruned in the stream: probe/drain_prune.c. */
struct mr_ring_pruned {
    uint32_t seen;     /* of ring_shared.prunes, told in the stream */
    bool is_looked_at; /* calls of them may be among the words */
    bool was_dropped;  /* the call event before: values of counters behind it go, too */
    uint32_t open_count;
    uint32_t open[MR_RING_PRUNED_OPEN_MAX]; /* sites whose enters were taken out */
    uint32_t deeper;                        /* more of them, inside */
    uint64_t until_ns;                      /* 0: until the next mark */
};

#define MR_RING_HOLES_MAX 8

/* The writer's place in a ring: what it has sent, or is about to (probe/drain.c). */
struct mr_ring_place {
    uint64_t tail;       /* words taken */
    uint64_t next_event; /* number of the next event, lost ones counted */
    uint64_t lost;       /* of these, lost */
    uint64_t ticks;      /* full time of the last record */
    uint64_t sync_ticks; /* full time of the last sync record */
    bool is_first, is_last;
    uint32_t cuts_seen; /* of ring_shared.cuts, told in the stream */
    uint32_t epoch;     /* of the next word; 0: not known yet (probe/epochs.h) */
    struct mr_ring_pruned pruned;
    /* Words given up in what is staged; see mr_drain_commit(). */
    uint32_t hole_count;
    uint64_t holes[MR_RING_HOLES_MAX];
};

/* Whether words wait; the first may for a look at the modules: probe/drain_epoch.c. */
struct mr_ring_hold {
    bool is_held, has_look;
    uint32_t look;
    uint64_t until, since_ns; /* word number */
};

struct mr_ring {
    /* Set when the ring is made, then constant. */
    _Atomic uint64_t *words;
    uint64_t capacity; /* words */
    struct mr_ring_shared *shared;
    struct mr_ring *next;
    struct mr_recorder_ring *recorded; /* policy overwrite, else NULL */

    /* Written by the thread that takes it, before state OWNED is released. */
    uint32_t stream;
    _Atomic uint32_t tid;   /* relaxed: last_thread.c looks at any time */
    uint32_t start_site;    /* policy overwrite */
    uint64_t start_address; /* of the thread's start function; 0: unknown */
    uint64_t start_ticks;
    uint32_t cuts_before;     /* cuts before its thread began */
    uint32_t prunes_before;   /* prunes that had settled when it took the ring */
    uint64_t *_Atomic pruned; /* counts by slot of probe/pruned.h, or NULL; of the ring */
    uint64_t pruned_bytes;
    _Atomic uint32_t state;   /* enum mr_ring_state */
    _Atomic uint32_t is_cold; /* at state FREE: its pages went back to the system */
    _Atomic uint32_t name_version;
    _Atomic char name[MR_RING_NAME_SIZE];

    /* The owner's: losses since the last loss record. */
    MR_ALIGNED(MR_CACHE_LINE) _Atomic uint64_t pending[MR_LOSS_REASON_COUNT];
    _Atomic uint64_t nesting; /* bits 0-30 pops, 31-61 pushes, as in a loss record */
    _Atomic int32_t cpu; /* the processor that it was on at its last grant; -1: unknown */
    _Atomic uint32_t is_waiting; /* futex: 1 while it waits for room, policy block */
    _Atomic uint64_t end;        /* at state CLOSED: the number of words ever reserved */
    /* The owner's, policy overwrite. */
    uint64_t first_index;          /* of the thread */
    uint64_t not_events;           /* words since then that are none, less losses told */
    uint64_t sealed;               /* words below have their lap's bit, written or not */
    uint64_t anchor_count;         /* of the ring, ever */
    _Atomic uint64_t closed_order; /* at state CLOSED */

    /* The writer's. */
    MR_ALIGNED(MR_CACHE_LINE) _Atomic uint64_t tail;
    struct mr_ring_place done, staged;
    struct mr_ring_hold hold;
    struct mr_ring *staged_next;
    bool is_staged, is_announced;
    uint32_t announced_name;
    uint32_t hole_polls;
    uint64_t hole_since_ns;
};

/* No event has this ticks >> 31: a thread with it always takes the slow path. */
#define MR_PERIOD_NONE UINT64_MAX

/* The thread-local state. Zero: a thread that has not met the probe yet. */
struct mr_thread {
    _Atomic uint64_t *words; /* NULL: no ring */
    uint64_t period;         /* ticks >> 31 of the last sync, or MR_PERIOD_NONE */
    uint64_t cursor;         /* words reserved, ever */
    uint64_t limit;          /* numbers below are granted */
    uint64_t mask;           /* capacity - 1 */
    uint32_t lap_shift;      /* 63 - log2(capacity) */
    uint32_t flags;          /* enum mr_thread_flag */
    struct mr_ring *ring;
    uint64_t start_address;
    uint64_t blocked_until_ns; /* a wait of the thread is under way until then */
    uint64_t stalled_tail;     /* the ring's tail when a wait began that timed out */
    uint32_t refused;          /* events lost for want of a ring */
    uint32_t cuts_before;      /* cuts before it began, as far as that is known */
    uint64_t sync_index;       /* number of the last sync record */
    uint64_t period_before;    /* `period` before it */
    struct mr_tick_view tick;  /* of clock hybrid */
};

enum mr_thread_flag {
    MR_THREAD_OWN = 1,      /* the probe's own thread: never recorded */
    MR_THREAD_BUSY = 2,     /* is being given a ring */
    MR_THREAD_CLOSED = 4,   /* its end was recorded */
    MR_THREAD_DROPPING = 8, /* losing events since the last one written */
    MR_THREAD_NAMED = 16,
};

/* What the slow path needs to know of an event: first word without time and lap. */
struct mr_event {
    uint64_t bits;
    uint64_t payload; /* of a record of 2 words */
    uint32_t
        words; /* 1, or 2 with payload, or 1 + rest, or 2 and one for each of `values` */
    const uint64_t *rest;   /* payload of a record of any size, or NULL */
    const uint64_t *values; /* of counters, or NULL */
};

static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_event_enter(uint32_t site)
{
    return (uint64_t)site << MR_WORD_SITE_SHIFT;
}

static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_event_exit(uint32_t site)
{
    return MR_WORD_EXIT | (uint64_t)site << MR_WORD_SITE_SHIFT;
}

/* The lap bit of word number `index`, in place. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_ring_lap(uint64_t index,
                                                              uint32_t lap_shift)
{
    return ~(index << lap_shift) & MR_WORD_LAP;
}

/* [W] pairs with [S] in probe/drain.c. Release is a plain store on x86-64. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_ring_store(struct mr_thread *thread,
                                                            uint64_t index, uint64_t word)
{
    mr_store_release(&thread->words[index & thread->mask],
                     word | mr_ring_lap(index, thread->lap_shift));
}

/* The index of an event that reserved none. */
#define MR_INDEX_NONE UINT64_MAX

/*
 * The slow path: the event took number `index` and found it not granted, or took none
 * (MR_INDEX_NONE). Writes it, or counts it as lost. errno is preserved.
 */
MR_NOINLINE MR_COLD void mr_ring_event_slow(struct mr_thread *thread,
                                            const struct mr_event *event, uint64_t ticks,
                                            uint64_t index);

/* The same for one word. */
MR_NOINLINE MR_COLD void mr_ring_event_one_slow(struct mr_thread *thread, uint64_t bits,
                                                uint64_t ticks, uint64_t index);

/*
 * One event of time `ticks`, read just before; `thread` has a ring. The period is looked at
 * twice. Before a number is taken: what follows a handler that changed it takes a number
 * behind the handler's sync record. And after: a handler in between may have put such a
 * record before our number, and low bits of a time that lies more than 2^31 ticks before
 * it would be read as a later one.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_ring_event_at(struct mr_thread *thread,
                                                               uint64_t bits,
                                                               uint64_t ticks)
{
    uint64_t index;

    if (MR_UNLIKELY(ticks >> 31 != thread->period)) {
        mr_ring_event_one_slow(thread, bits, ticks, MR_INDEX_NONE);
        return;
    }
    index = mr_arch_reserve(&thread->cursor);
    if (MR_UNLIKELY(mr_arch_has_reached(index, &thread->limit) ||
                    mr_arch_differs(ticks >> 31, &thread->period))) {
        mr_ring_event_one_slow(thread, bits, ticks, index);
        return;
    }
    mr_ring_store(thread, index, bits | (uint32_t)ticks);
    /* Past the lap's end in vain: a hint. */
    mr_arch_prefetch_write((uintptr_t)&thread->words[index & thread->mask] +
                           MR_RING_AHEAD_BYTES);
}

/* The precise clock: one read of the processor's counter. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_ring_event(struct mr_thread *thread,
                                                            uint64_t bits)
{
    mr_ring_event_at(thread, bits, mr_clock_ticks());
}

/* Clock hybrid, where the counter is to be read: `number` is the published one. */
MR_NOINLINE void mr_ring_event_read(struct mr_thread *thread, uint64_t bits,
                                    uint64_t number);
/* The same for an event that took number `index`, which it must not use. */
MR_NOINLINE void mr_ring_event_again(struct mr_thread *thread, uint64_t bits,
                                     uint64_t index);

/* The events of `thread` share the time of its last read; then it has a ring. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT bool mr_ring_shares(
    const struct mr_thread *thread, uint64_t number)
{
    return number == thread->tick.number;
}

/*
 * An event with the time of the last read. All that a word depends on beside its bits is
 * in the view since that read; what does not hold any more shows in `until`, or, where a
 * handler has come between and read anew, in `stamp`. So nothing of the view is read behind
 * that look: with the base of the next lap the word would go before the ring's first.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_ring_event_shared(
    struct mr_thread *thread, uint64_t bits)
{
    uint64_t word = bits | mr_arch_reload(&thread->tick.stamp);
    uint64_t base = mr_arch_reload(&thread->tick.base);
    uint64_t index = mr_arch_reserve(&thread->cursor), slot;

    if (MR_UNLIKELY(mr_arch_has_reached(index, &thread->tick.until) ||
                    mr_arch_differs_low(word, &thread->tick.stamp))) {
        mr_ring_event_again(thread, bits, index);
        return;
    }
    slot = base + index * sizeof(uint64_t);
    mr_store_release((_Atomic uint64_t *)(uintptr_t)slot, word); /* [W] */
    mr_arch_prefetch_write(slot + MR_RING_AHEAD_HYBRID_BYTES);
}

/* Clock hybrid (probe/tick.h): mostly the time of the last read. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_ring_event_hybrid(
    struct mr_thread *thread, uint64_t bits)
{
    uint64_t number = mr_load_relaxed(&mr_tick.number);

    if (MR_LIKELY(mr_ring_shares(thread, number)))
        mr_ring_event_shared(thread, bits);
    else
        mr_ring_event_read(thread, bits, number);
}

/*
 * An event at `ticks` and the counters' values at it, `count` of them: one unit, both are
 * written or both are lost. A handler that leaves it by longjmp between its two ends costs
 * as many lost events as it has words.
 */
void mr_ring_event_counted(struct mr_thread *thread, uint64_t bits, uint64_t ticks,
                           const uint64_t *values, uint32_t count);

/* A record with its payload in `rest`, one event at `ticks`; as above, one unit. */
void mr_ring_event_record(struct mr_thread *thread, const struct mr_event *event,
                          uint64_t ticks);

/* A function outside every site window: two words, always by the slow path. */
static inline MR_NO_INSTRUMENT void mr_ring_wide(struct mr_thread *thread, uint64_t dir,
                                                 uint64_t address, uint64_t ticks)
{
    struct mr_event event = {.bits = mr_word_record(MR_RECORD_WIDE, 1, dir, 0),
                             .payload = address & MR_WORD_PAYLOAD_MASK,
                             .words = 2};

    mr_ring_event_slow(thread, &event, ticks, MR_INDEX_NONE);
}

/* An event of a thread that has a ring is lost for `reason`, and its nesting followed. */
void mr_ring_drop(struct mr_thread *thread, const struct mr_event *event,
                  enum mr_loss_reason reason);

/* Ends the writer's sleep, if it sleeps. */
void mr_ring_wake_writer(struct mr_ring_shared *shared);
/* The writer, once it has moved the tail: an owner who waits for room looks again. */
void mr_ring_wake_owner(struct mr_ring *ring);
/* The writer runs, and is of this process. */
bool mr_ring_has_writer(const struct mr_ring_shared *shared);

/* Makes `ring` (state OWNED, empty) the ring of `thread`. */
void mr_ring_attach(struct mr_thread *thread, struct mr_ring *ring);
/* The thread ends: the rest of the ring is the writer's. */
void mr_ring_detach(struct mr_thread *thread);
/* As new: the words must be zero. Nobody else may use it. */
void mr_ring_reset(struct mr_ring *ring);

/*
 * Policy overwrite, ring_record.c; signals are blocked. grant: room for `need` words from
 * the cursor on, at `ticks`. begin, end: of a thread with the ring.
 */
void mr_ring_record_grant(struct mr_thread *thread, uint64_t need, uint64_t ticks);
void mr_ring_record_begin(struct mr_thread *thread);
void mr_ring_record_end(struct mr_thread *thread);
/* Its thread has a new name. */
void mr_ring_record_name(const struct mr_ring *ring);

#endif
