/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field         written by     read by        access
 * words[]       owner          writer         release store [W], acquire load [S]
 * tail          writer         owner          release store [T], acquire load [R]
 * pending[],    owner          writer (once   relaxed; exact for the writer after
 *  nesting                      closed), stats state CLOSED, a snapshot before
 * state, end    owner; writer  both           release store [D], acquire load [C]
 * sleeping      writer; owner  both           relaxed; a wake-up that is missed costs one
 *                                             sleep of the writer
 * is_waiting    owner; writer  both           relaxed; the same, of the owner
 * draining, pid starter        owner          relaxed; a hint, waits are bounded
 * cpu           owner          writer         relaxed; a hint
 *
 * Pairs: [W]-[S] a word, and what its site was registered with; [T]-[R] the writer's
 * reads of a slot before its reuse; [D]-[C] all the owner did before its end.
 * Invariant: tail <= first unwritten word <= cursor; limit <= tail + capacity.
 * Signals: a handler on the owner runs whole between two instructions of it. Numbers
 * are given back only with signals blocked, by whom they were given to last, so what
 * remains of the order of numbers is the order of begin. See mr_ring_event_slow().
 * Progress: an event is wait-free, the slow path too under policy drop; under block it
 * waits at most block_timeout_ns. Checked by: tests/race/test_ring.c
 */
#include "probe/ring.h"

#include "probe/futex.h"
#include "probe/patience.h"
#include "probe/recorder_format.h"

#include <errno.h>
#include <sched.h>

#define BLOCK_SLEEP_NS (50 * MR_MICROSECOND_NS)
#define LINE_WORDS (MR_CACHE_LINE / sizeof(uint64_t))
#define SYNC_WORDS 2
#define LOSS_WORDS 3
/* Policy drop: room that must be there before a thread begins again, 1 / this. */
#define RESUME_SHARE 8
/* No ring's tail. */
#define NOT_STALLED UINT64_MAX
/* A grant ends after 1 / this of the ring, so that the slow path can wake the writer. */
#define GRANT_SHARE 4

/* The reasons a ring's owner counts; each becomes a record of its own. */
static const uint8_t owner_reasons[] = {MR_LOSS_RING_FULL, MR_LOSS_BLOCK_TIMEOUT,
                                        MR_LOSS_NESTED};

static void put(struct mr_thread *thread, uint64_t word)
{
    mr_ring_store(thread, thread->cursor, word);
    thread->cursor++;
}

/*
 * Payload first, so that a first word is never seen without it. `events`: how many it
 * tells of. A stranger who finds payload without a first word must not take it for
 * events: `writing` tells it, [B] pairs with [Q] in probe/recorder_read.c.
 */
static void put_record(struct mr_thread *thread, uint64_t first, const uint64_t *payload,
                       uint32_t words, uint64_t events)
{
    struct mr_recorder_ring *recorded = thread->ring->recorded;
    uint64_t index = thread->cursor;

    if (recorded) /* relaxed: the payload is released after it */
        mr_store_relaxed(&recorded->writing, index);
    for (uint32_t i = 0; i < words; i++) /* [B] */
        mr_ring_store(thread, index + 1 + i, payload[i] & MR_WORD_PAYLOAD_MASK);
    mr_ring_store(thread, index, first);
    thread->cursor = index + 1 + words;
    thread->ring->not_events += 1 + words - events;
    if (recorded)
        mr_store_release(&recorded->writing, MR_RECORDER_NONE); /* [B] */
}

/* Of a counted event: last its first word, so that it is never seen without the rest. */
static void put_counted(struct mr_thread *thread, const struct mr_event *event,
                        uint64_t ticks, uint64_t index)
{
    uint32_t count = event->words - 2;

    for (uint32_t i = 0; i < count; i++)
        mr_ring_store(thread, index + 2 + i, event->values[i] & MR_WORD_PAYLOAD_MASK);
    mr_ring_store(thread, index + 1, mr_word_record(MR_RECORD_COUNTER, count, 0, ticks));
    mr_ring_store(thread, index, event->bits | (uint32_t)ticks);
}

/* An event at numbers that were taken for it, `index` on; its first word comes last. */
static void put_reserved(struct mr_thread *thread, const struct mr_event *event,
                         uint64_t ticks, uint64_t index)
{
    if (event->values) {
        put_counted(thread, event, ticks, index);
        return;
    }
    for (uint32_t i = 1; i < event->words; i++)
        mr_ring_store(thread, index + i, event->rest[i - 1] & MR_WORD_PAYLOAD_MASK);
    mr_ring_store(thread, index, event->bits | (uint32_t)ticks);
}

static void put_sync(struct mr_thread *thread, uint64_t ticks)
{
    thread->sync_index = thread->cursor;
    thread->period_before = thread->period;
    put_record(thread, mr_word_record(MR_RECORD_SYNC, 1, 0, ticks), &ticks, 1, 0);
    thread->period = ticks >> 31;
    mr_tick_forget(&thread->tick);
}

static void put_losses(struct mr_thread *thread, uint64_t ticks)
{
    struct mr_ring *ring = thread->ring;
    uint64_t nesting = mr_load_relaxed(&ring->nesting);

    for (size_t i = 0; i < MR_ARRAY_COUNT(owner_reasons); i++) {
        uint64_t events = mr_load_relaxed(&ring->pending[owner_reasons[i]]);
        uint64_t payload[] = {events | (uint64_t)owner_reasons[i] << 48, nesting};

        if (events == 0)
            continue;
        put_record(thread, mr_word_record(MR_RECORD_LOSS, 2, 0, ticks), payload, 2,
                   events);
        mr_store_relaxed(&ring->pending[owner_reasons[i]], 0);
        nesting = 0; /* the first record tells it for all */
    }
    mr_store_relaxed(&ring->nesting, 0);
    thread->flags &= ~(uint32_t)MR_THREAD_DROPPING;
}

/* Grants `need` words from the cursor on, and more if there is room. */
static bool grant(struct mr_thread *thread, uint64_t need)
{
    uint64_t capacity = thread->mask + 1;
    /* [R] pairs with [T] in mr_drain_commit(). */
    uint64_t end = mr_load_acquire(&thread->ring->tail) + capacity;
    uint64_t want = capacity / GRANT_SHARE;

    if (thread->cursor + need > end)
        return false;
    want = thread->cursor + (need > want ? need : want);
    if (want > end)
        want = end;
    if (want > thread->limit)
        thread->limit = want;
    mr_store_relaxed(&thread->ring->cpu, sched_getcpu());
    return true;
}

static bool is_dropping(const struct mr_thread *thread)
{
    return thread->flags & MR_THREAD_DROPPING;
}

static uint64_t words_needed(const struct mr_thread *thread, const struct mr_event *event)
{
    uint64_t need = SYNC_WORDS + event->words;
    uint64_t resume = (thread->mask + 1) / RESUME_SHARE;

    if (!is_dropping(thread))
        return need;
    need += LOSS_WORDS * MR_ARRAY_COUNT(owner_reasons);
    if (thread->ring->shared->policy == MR_POLICY_DROP && need < resume)
        need = resume;
    return need;
}

void mr_ring_wake_writer(struct mr_ring_shared *shared)
{
    if (mr_load_relaxed(&shared->sleeping) == 0)
        return;
    mr_store_relaxed(&shared->sleeping, 0);
    mr_futex_wake(&shared->sleeping);
}

void mr_ring_wake_owner(struct mr_ring *ring)
{
    if (mr_load_relaxed(&ring->is_waiting) == 0)
        return;
    mr_store_relaxed(&ring->is_waiting, 0);
    mr_futex_wake(&ring->is_waiting);
}

/* A process made without fork()'s handlers has no writer thread to wait for. */
bool mr_ring_has_writer(const struct mr_ring_shared *shared)
{
    return mr_load_relaxed(&shared->draining) &&
           (uint32_t)syscall(SYS_getpid) == mr_load_relaxed(&shared->pid);
}

/* Since a wait timed out, the writer has taken nothing. */
static bool is_stalled(const struct mr_thread *thread)
{
    /* Relaxed: whether there is room is seen in grant(). */
    return mr_load_relaxed(&thread->ring->tail) == thread->stalled_tail;
}

static bool may_wait(const struct mr_thread *thread)
{
    return thread->ring->shared->policy == MR_POLICY_BLOCK && !is_stalled(thread) &&
           mr_ring_has_writer(thread->ring->shared);
}

/*
 * Waits for room with signals as the program has them (`*mask`). A handler that comes
 * meanwhile sees blocked_until_ns and drops instead of waiting; were it left by longjmp,
 * the time heals that.
 */
static bool wait_for_room(struct mr_thread *thread, const struct mr_event *event,
                          uint64_t *mask)
{
    struct mr_ring_shared *shared = thread->ring->shared;
    struct mr_patience patience = mr_patience_begin();
    uint64_t tail = mr_load_relaxed(&thread->ring->tail), left_ns;
    bool has_room = false;

    while (!has_room && mr_load_relaxed(&shared->draining) &&
           (left_ns = mr_patience_left(&patience, shared->block_timeout_ns)) > 0) {
        thread->blocked_until_ns = patience.seen_ns + left_ns;
        mr_store_relaxed(&thread->ring->is_waiting, 1);
        mr_ring_wake_writer(shared);
        mr_signals_restore(*mask);
        mr_futex_wait(&thread->ring->is_waiting, 1, BLOCK_SLEEP_NS);
        *mask = mr_signals_block();
        has_room = grant(thread, words_needed(thread, event));
    }
    mr_store_relaxed(&thread->ring->is_waiting, 0);
    thread->blocked_until_ns = 0;
    if (!has_room)
        thread->stalled_tail = tail;
    return has_room;
}

#define NESTING_PUSH (UINT64_C(1) << 31)
#define NESTING_POP UINT64_C(1)

static uint64_t nesting_after(uint64_t nesting, bool is_exit)
{
    if (!is_exit)
        return nesting + NESTING_PUSH;
    return nesting >= NESTING_PUSH ? nesting - NESTING_PUSH : nesting + NESTING_POP;
}

/* Compare and exchange, as a handler may write the loss and begin anew in between. */
static void follow_nesting(struct mr_ring *ring, const struct mr_event *event)
{
    uint32_t site = mr_word_site(event->bits);
    bool is_call = site >= MR_SITE_FIRST_NAMED || (site & 0xff) == MR_RECORD_WIDE;
    uint64_t seen = mr_load_relaxed(&ring->nesting), next;

    if (!is_call)
        return;
    do
        next = nesting_after(seen, event->bits & MR_WORD_EXIT);
    while (!mr_compare_exchange_relaxed(&ring->nesting, &seen, next));
}

void mr_ring_drop(struct mr_thread *thread, const struct mr_event *event,
                  enum mr_loss_reason reason)
{
    follow_nesting(thread->ring, event);
    (void)mr_add_relaxed(&thread->ring->pending[reason], 1);
    thread->flags |= MR_THREAD_DROPPING;
    thread->period = MR_PERIOD_NONE;
    mr_tick_forget(&thread->tick);
}

/* Inside a handler that came while the thread waits for room. */
static bool is_nested(const struct mr_thread *thread)
{
    return thread->blocked_until_ns != 0 &&
           mr_clock_monotonic_ns() < thread->blocked_until_ns;
}

static enum mr_loss_reason full_reason(const struct mr_thread *thread)
{
    if (thread->ring->shared->policy != MR_POLICY_BLOCK)
        return MR_LOSS_RING_FULL;
    return is_nested(thread) ? MR_LOSS_NESTED : MR_LOSS_BLOCK_TIMEOUT;
}

/* The one record of many words that is no event. */
static bool is_landing(const struct mr_event *event)
{
    uint32_t site = mr_word_site(event->bits);

    return site < MR_SITE_FIRST_NAMED && (site & 0xff) == MR_RECORD_LANDING;
}

/* Writes the event where it belongs; `need` words are granted. */
static void put_event(struct mr_thread *thread, const struct mr_event *event,
                      uint64_t ticks)
{
    if (thread->period == MR_PERIOD_NONE || ticks >> 31 > thread->period)
        put_sync(thread, ticks);
    else if (ticks >> 31 < thread->period) /* a handler's sync came between */
        ticks = thread->period << 31;
    if (is_dropping(thread))
        put_losses(thread, ticks);
    if (event->values) {
        put_counted(thread, event, ticks, thread->cursor);
        thread->cursor += event->words;
    } else if (event->words == 1)
        put(thread, event->bits | (uint32_t)ticks);
    else
        put_record(thread, event->bits | (uint32_t)ticks,
                   event->rest ? event->rest : &event->payload, event->words - 1,
                   is_landing(event) ? 0 : 1);
}

/* Signals are blocked, nothing of this thread is reserved but by interrupted frames. */
static void write_or_drop(struct mr_thread *thread, const struct mr_event *event,
                          uint64_t ticks, uint64_t *mask)
{
    bool has_room;

    if (thread->ring->recorded) {
        mr_ring_record_grant(thread, words_needed(thread, event), ticks);
        put_event(thread, event, ticks);
        return;
    }
    has_room = grant(thread, words_needed(thread, event));
    if (!has_room && may_wait(thread) && !is_nested(thread))
        has_room = wait_for_room(thread, event, mask);
    if (has_room)
        put_event(thread, event, ticks);
    else
        mr_ring_drop(thread, event, full_reason(thread));
}

/*
 * A copy of the process that was made past fork()'s handlers shares the words with its
 * parent under policy overwrite: it leaves them here, at the end of what was granted. A
 * child of vfork() is none: it runs in the memory of its parent, as the parent's thread.
 */
static bool leave_copied(struct mr_thread *thread)
{
    const struct mr_ring_shared *shared = thread->ring->shared;

    /* Relaxed: it was written before this process was. */
    if (!shared->is_original || mr_load_relaxed(shared->is_original))
        return false;
    mr_tick_forget(&thread->tick);
    thread->words = NULL;
    thread->ring = NULL;
    thread->flags |= MR_THREAD_OWN; /* nothing of it is counted: the counts are shared */
    return true;
}

/*
 * Whether a record of time `ticks` may stand at `index`: with the period that it was made
 * for, whatever a handler has put behind it since.
 */
static bool is_of_period(const struct mr_thread *thread, uint64_t ticks, uint64_t index)
{
    if (thread->period == ticks >> 31)
        return true;
    return thread->sync_index > index && thread->period_before == ticks >> 31;
}

/*
 * With signals blocked, whoever interrupted us since we took `index` has finished and
 * given back what it could not use. If our number is the last one given out, it goes
 * back, and the event begins anew. Else handlers have taken later numbers: ours has been
 * granted, and the slot must be filled. But if a handler that began before we had our
 * number has put a sync record before it, or more than one record at who knows which
 * side: then the slot stays empty, which the writer counts as one nested event that is
 * lost (probe/drain.c). It takes a handler that runs for 2^31 ticks (0.8 s at 2.6 GHz)
 * between two instructions and is interrupted in its turn.
 * Frames that we interrupted keep theirs: lower numbers.
 */
static void event_masked(struct mr_thread *thread, const struct mr_event *event,
                         uint64_t ticks, uint64_t index, uint64_t *mask)
{
    if (thread->ring->recorded && leave_copied(thread))
        return;
    if (index != MR_INDEX_NONE && thread->cursor != index + event->words &&
        index + event->words <= thread->limit) {
        if (!is_of_period(thread, ticks, index))
            return;
        put_reserved(thread, event, ticks, index);
        return;
    }
    if (index != MR_INDEX_NONE)
        thread->cursor = index;
    write_or_drop(thread, event, ticks, mask);
    mr_ring_wake_writer(thread->ring->shared);
}

/* Without blocking signals first: while dropping, most events find the ring full still. */
static bool drop_early(struct mr_thread *thread, const struct mr_event *event)
{
    uint64_t end = mr_load_relaxed(&thread->ring->tail) + thread->mask + 1;

    /* Relaxed: grant() looks again, with the order that it needs. */
    if (!is_dropping(thread) || thread->ring->recorded ||
        thread->cursor + words_needed(thread, event) <= end || may_wait(thread))
        return false;
    mr_ring_drop(thread, event, full_reason(thread));
    return true;
}

void mr_ring_event_slow(struct mr_thread *thread, const struct mr_event *event,
                        uint64_t ticks, uint64_t index)
{
    int saved_errno = errno;
    uint64_t mask;

    if (event->words > 1) /* what follows is not before it */
        mr_tick_forget(&thread->tick);
    if (index != MR_INDEX_NONE || !drop_early(thread, event)) {
        mask = mr_signals_block();
        event_masked(thread, event, ticks, index, &mask);
        mr_signals_restore(mask);
    }
    errno = saved_errno;
}

void mr_ring_event_one_slow(struct mr_thread *thread, uint64_t bits, uint64_t ticks,
                            uint64_t index)
{
    struct mr_event event = {.bits = bits, .words = 1};

    mr_ring_event_slow(thread, &event, ticks, index);
}

/*
 * Events ask for the lines of those after them (mr_ring_event_shared()), which ends with
 * the lap. Near to that, for the first lines of the next.
 */
static void fetch_first_lines(const struct mr_thread *thread, uint64_t cursor)
{
    if ((cursor & thread->mask) + MR_TICK_EVENTS <= thread->mask)
        return;
    for (uint64_t i = 0; i < MR_RING_AHEAD_HYBRID_BYTES / sizeof(uint64_t);
         i += LINE_WORDS)
        mr_arch_prefetch_write((uintptr_t)&thread->words[i]);
}

/*
 * What the next `events` may share of a read at `now`: their words are within what is
 * granted, and of one lap. A handler may come anywhere and do the same: then what is here
 * is mixed, and not published.
 */
static void share(struct mr_thread *thread, uint64_t number, uint64_t now,
                  uint64_t events)
{
    struct mr_tick_view *view = &thread->tick;
    uint64_t cursor = mr_arch_reload(&thread->cursor), until = cursor + events;
    uint64_t lap_end = (cursor | thread->mask) + 1, limit = thread->limit;
    uint64_t stamp = mr_ring_lap(cursor, thread->lap_shift) | (uint32_t)now;
    uint64_t base =
        (uintptr_t)thread->words - (cursor & ~thread->mask) * sizeof(uint64_t);

    if (until > lap_end)
        until = lap_end;
    mr_arch_set(&view->until, until < limit ? until : limit);
    mr_arch_set(&view->base, base);
    mr_arch_set(&view->stamp, stamp);
    if (mr_arch_reload(&view->until) == (until < limit ? until : limit) &&
        mr_arch_reload(&view->base) == base &&
        mr_arch_reload(&thread->period) == now >> 31)
        mr_arch_set(&view->number, number);
}

void mr_ring_event_read(struct mr_thread *thread, uint64_t bits, uint64_t number)
{
    struct mr_tick_view *view = &thread->tick;
    uint64_t now = mr_clock_ticks(), events;

    mr_ring_event_at(thread, bits, now);
    if (mr_tick_is_alone(view, number, now))
        return;
    mr_tick_forget(view);
    events = mr_tick_read(view, mr_arch_reload(&thread->cursor), number, now);
    if (events > 1 && thread->period == now >> 31)
        share(thread, number, now, events - 1);
    fetch_first_lines(thread, thread->cursor);
}

/*
 * A handler that took later numbers since has made ours one to be used; its time is that of
 * the last read.
 */
void mr_ring_event_again(struct mr_thread *thread, uint64_t bits, uint64_t index)
{
    if (mr_arch_give_back(&thread->cursor, index))
        mr_ring_event_read(thread, bits, mr_load_relaxed(&mr_tick.number));
    else
        mr_ring_event_one_slow(thread, bits, mr_arch_reload(&thread->tick.ticks), index);
}

/* Takes its numbers in one go; under policy overwrite, strangers must be told before. */
static void event_of_many(struct mr_thread *thread, const struct mr_event *event,
                          uint64_t ticks)
{
    uint64_t index;

    mr_tick_forget(&thread->tick); /* what follows is not before it */
    if (ticks >> 31 != thread->period || thread->ring->recorded) {
        mr_ring_event_slow(thread, event, ticks, MR_INDEX_NONE);
        return;
    }
    index = mr_arch_reserve_run(&thread->cursor, event->words);
    if (index + event->words > thread->limit ||
        ticks >> 31 != mr_arch_reload(&thread->period))
        mr_ring_event_slow(thread, event, ticks, index);
    else
        put_reserved(thread, event, ticks, index);
}

void mr_ring_event_counted(struct mr_thread *thread, uint64_t bits, uint64_t ticks,
                           const uint64_t *values, uint32_t count)
{
    struct mr_event event = {.bits = bits, .words = 2 + count, .values = values};

    event_of_many(thread, &event, ticks);
}

void mr_ring_event_record(struct mr_thread *thread, const struct mr_event *event,
                          uint64_t ticks)
{
    event_of_many(thread, event, ticks);
}

static uint32_t log2_of(uint64_t power)
{
    uint32_t log2 = 0;

    while (power >>= 1)
        log2++;
    return log2;
}

void mr_ring_attach(struct mr_thread *thread, struct mr_ring *ring)
{
    thread->ring = ring;
    thread->mask = ring->capacity - 1;
    thread->lap_shift = 63 - log2_of(ring->capacity);
    /* Relaxed: the state that gave us the ring was acquired. */
    thread->cursor = mr_load_relaxed(&ring->tail);
    thread->limit = thread->cursor;
    thread->stalled_tail = NOT_STALLED;
    thread->period = MR_PERIOD_NONE;
    thread->sync_index = 0;
    thread->period_before = MR_PERIOD_NONE;
    thread->tick = (struct mr_tick_view){0};
    thread->flags &= ~(uint32_t)MR_THREAD_DROPPING;
    if (ring->recorded)
        mr_ring_record_begin(thread);
    thread->words = ring->words;
}

void mr_ring_detach(struct mr_thread *thread)
{
    struct mr_ring *ring = thread->ring;

    if (ring->recorded)
        mr_ring_record_end(thread);
    mr_tick_forget(&thread->tick);
    thread->words = NULL;
    thread->ring = NULL;
    mr_store_relaxed(&ring->end, thread->cursor);
    /* [D] pairs with [C] in mr_drain_round(), and in probe/pool.c. */
    mr_store_release(&ring->state, MR_RING_CLOSED);
    mr_ring_wake_writer(ring->shared); /* the next thread wants it */
}

void mr_ring_reset(struct mr_ring *ring)
{
    mr_store_relaxed(&ring->tail, 0);
    mr_store_relaxed(&ring->end, 0);
    mr_store_relaxed(&ring->nesting, 0);
    mr_store_relaxed(&ring->cpu, -1);
    for (size_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        mr_store_relaxed(&ring->pending[i], 0);
    ring->done = (struct mr_ring_place){.is_first = true};
    ring->is_staged = false;
    ring->is_announced = false;
    ring->hold = (struct mr_ring_hold){.has_look = false};
    ring->hole_polls = 0;
}
