/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field      written by  read by  access
 * words[]    owner       writer   acquire load [S], pairs with [W] in probe/ring.h
 * tail       writer      owner    release store [T], pairs with [R] in probe/ring.c
 * state      both        writer   acquire load [C], pairs with [D] in mr_ring_detach()
 * pending[]  owner       writer   relaxed, after [C]
 * taken      writer      owner    relaxed: only whether it moves
 * Progress: wait-free. Checked by: tests/unit/probe/test_drain.c, tests/race/test_ring.c
 */
#include "probe/drain.h"

#include "net/chunk.h"
#include "probe/arch.h"
#include "probe/drain_private.h"
#include "probe/site_stats.h"

#include <string.h>

#define LOSS_WORDS 3
/* How far behind an unwritten word a written one is looked for. */
#define HOLE_REACH 16
/* Words that are looked at together, and how far ahead of them: 1 and 4 KiB. */
#define BLOCK_WORDS 128
#define LINE_WORDS (MR_CACHE_LINE / WORD_BYTES)
#define AHEAD_WORDS 512
/* Of a word: zero exactly where the site is below MR_SITE_FIRST_NAMED. */
#define SITE_HIGH_MASK (UINT64_C(0x3fff0000) << MR_WORD_SITE_SHIFT)

void mr_drain_begin(struct mr_drain_frame *frame, uint8_t *out, size_t capacity)
{
    frame->out = out;
    frame->capacity = capacity;
    frame->size = 0;
    frame->staged = NULL;
    frame->stats = NULL;
    frame->epochs = NULL;
    frame->ticker = NULL;
    frame->is_flushing = false;
    frame->drop_count = 0;
    memset(&frame->totals, 0, sizeof(frame->totals));
}

static bool is_there(uint64_t word, uint64_t lap)
{
    return ((word ^ lap) & MR_WORD_LAP) == 0;
}

/*
 * Whether the words from `at` on are taken now. Those that are just being written are left
 * for the next time, if there were enough others: reading takes the cache line from who
 * writes, and once a reader has come so near, each line costs it as long as the next takes
 * to be filled, and so it stays for the whole frame.
 */
static bool is_far_from_writer(const _Atomic uint64_t *words, size_t at, size_t count,
                               uint64_t lap)
{
    size_t ahead = at + AHEAD_WORDS;

    /* Relaxed: only whether it is there; it is read again in its turn. */
    return at < AHEAD_WORDS ||
           is_there(mr_load_relaxed(&words[ahead < count ? ahead : count - 1]), lap);
}

void mr_drain_tick(struct mr_drain_frame *frame)
{
    uint64_t number = frame->ticker ? mr_tick_beat(frame->ticker) : 0;

    if (number != 0)
        frame->ticked = number;
}

/*
 * The hot loop: copies words while their lap bit is `lap`; how many. Bit 63 of *special
 * is set if one of them might begin a record that is no plain event.
 */
static MR_ALWAYS_INLINE size_t copy(struct mr_drain_frame *frame,
                                    const _Atomic uint64_t *words, size_t count,
                                    uint64_t lap, uint8_t *out, uint64_t *special,
                                    bool is_flushing)
{
    uint64_t seen = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        uint64_t word = mr_load_acquire(&words[i]); /* [S] */

        if (is_flushing && i % LINE_WORDS == 0 && i > 0)
            mr_arch_flush(&words[i - LINE_WORDS]);
        if (!is_there(word, lap))
            break;
        if (i % BLOCK_WORDS == 0) {
            mr_drain_tick(frame);
            if (!is_far_from_writer(words, i, count, lap))
                break;
        }
        memcpy(out + i * WORD_BYTES, &word, WORD_BYTES);
        seen |= (word & SITE_HIGH_MASK) - 1;
    }
    *special |= seen;
    return i;
}

static size_t copy_run(struct mr_drain_frame *frame, const _Atomic uint64_t *words,
                       size_t count, uint64_t lap, uint8_t *out, uint64_t *special)
{
    if (frame->is_flushing)
        return copy(frame, words, count, lap, out, special, true);
    return copy(frame, words, count, lap, out, special, false);
}

static uint64_t lap_of(const struct mr_ring *ring, uint64_t index)
{
    return (index & ring->capacity) ? 0 : MR_WORD_LAP;
}

static size_t copy_words(struct mr_drain_frame *frame, const struct mr_ring *ring,
                         uint64_t from, size_t max, uint64_t *special)
{
    uint8_t *out = mr_drain_chunk_body(frame);
    size_t slot = from & (ring->capacity - 1), first = ring->capacity - slot, count;

    if (first > max)
        first = max;
    count = copy_run(frame, ring->words + slot, first, lap_of(ring, from), out, special);
    if (count == first && max > first) {
        if (max > ring->capacity)
            max = ring->capacity;
        count += copy_run(frame, ring->words, max - first, lap_of(ring, from + first),
                          out + first * WORD_BYTES, special);
    }
    return count;
}

struct mr_chunk mr_drain_chunk_at(const struct mr_ring *ring)
{
    const struct mr_ring_place *place = &ring->staged;

    return (struct mr_chunk){.encoding = MR_CHUNK_WORDS,
                             .flags = place->is_first ? MR_CHUNK_FIRST : 0,
                             .stream = ring->stream,
                             .epoch = place->epoch,
                             .first_event = place->next_event,
                             .lost = place->lost,
                             .ticks = place->ticks};
}

uint8_t *mr_drain_chunk_body(const struct mr_drain_frame *frame)
{
    return frame->out + frame->size + MR_CHUNK_HEADER_SIZE;
}

static size_t room_words(const struct mr_drain_frame *frame)
{
    if (frame->capacity - frame->size < MR_DRAIN_ROOM_MIN)
        return 0;
    return (frame->capacity - frame->size - MR_CHUNK_HEADER_SIZE) / WORD_BYTES;
}

/* Closes the chunk of `count` words that stand at mr_drain_chunk_body(). */
void mr_drain_put_chunk(struct mr_drain_frame *frame, struct mr_ring *ring,
                        struct mr_chunk *chunk, size_t count)
{
    chunk->events = ring->staged.next_event - chunk->first_event;
    chunk->records = (uint32_t)count;
    chunk->body = mr_span_of(mr_drain_chunk_body(frame), count * WORD_BYTES);
    mr_chunk_put_header(chunk, frame->out + frame->size);
    frame->size += MR_CHUNK_HEADER_SIZE + chunk->body.size;
    ring->staged.is_first = false;
}

static bool is_something_due(const struct mr_drain_frame *frame,
                             const struct mr_ring *ring)
{
    return mr_drain_has_cut(ring) || mr_drain_has_prune(ring) ||
           mr_drain_epoch_due(frame, ring) != UINT64_MAX;
}

/*
 * A cut or a mark that comes before all of the words was put; else *count are before it,
 * and before the next epoch.
 */
static bool put_due(struct mr_drain_frame *frame, struct mr_ring *ring, uint64_t now_ns,
                    size_t *count)
{
    uint64_t cut = mr_drain_cut_due(ring), prune = mr_drain_prune_due(ring);
    uint64_t first = cut < prune ? cut : prune, ticks = 0;
    uint64_t epoch = mr_drain_epoch_due(frame, ring);
    size_t all = *count;

    *count = mr_drain_before(mr_drain_chunk_body(frame), all, ring,
                             epoch < first ? epoch : first, &ticks);
    while (*count == 0 && epoch <= first && mr_drain_has_epoch(frame, ring)) {
        ring->staged.epoch++;
        epoch = mr_drain_epoch_due(frame, ring);
        *count = mr_drain_before(mr_drain_chunk_body(frame), all, ring,
                                 epoch < first ? epoch : first, &ticks);
    }
    if (*count > 0 || epoch <= first) /* these wait until the change was taken */
        return false;
    if (cut < prune)
        mr_drain_put_cut(frame, ring, ticks);
    else
        mr_drain_put_prune(frame, ring, now_ns);
    return true;
}

/* Accounts for `count` words where they stand, and puts a chunk of them. False: none is whole. */
static bool put_accounted(struct mr_drain_frame *frame, struct mr_ring *ring,
                          struct mr_chunk *chunk, size_t count, bool is_special)
{
    uint8_t *body = mr_drain_chunk_body(frame);

    count = is_special
                ? mr_drain_account(body, count, &ring->staged, &frame->totals)
                : mr_drain_account_plain(body, count, &ring->staged, &frame->totals);
    if (count == 0)
        return false;
    if (MR_UNLIKELY(frame->stats != NULL))
        mr_site_stats_look(frame->stats, body, count);
    ring->staged.tail += count;
    mr_drain_put_chunk(frame, ring, chunk, count);
    return true;
}

/* The same where calls of pruned sites may be among them; what is left is all whole. */
static bool put_without_pruned(struct mr_drain_frame *frame, struct mr_ring *ring,
                               struct mr_chunk *chunk, size_t count, uint64_t now_ns)
{
    uint8_t *body = mr_drain_chunk_body(frame);
    size_t kept, taken = mr_drain_take_out(frame, ring, now_ns, body, count, &kept);

    if (taken == 0)
        return false;
    (void)mr_drain_account(body, kept, &ring->staged, &frame->totals);
    ring->staged.tail += taken;
    mr_drain_put_chunk(frame, ring, chunk, kept);
    return true;
}

static bool put_words(struct mr_drain_frame *frame, struct mr_ring *ring, uint64_t now_ns)
{
    struct mr_chunk chunk = mr_drain_chunk_at(ring);
    uint64_t special = 0;
    size_t count =
        copy_words(frame, ring, ring->staged.tail, room_words(frame), &special);

    ring->hold.is_held = false;
    if (count == 0)
        return false;
    if (MR_UNLIKELY(frame->epochs && mr_epochs_is_checked(frame->epochs)))
        count = mr_drain_known(frame, ring, mr_drain_chunk_body(frame), count,
                               special & MR_WORD_LAP, now_ns);
    if (MR_UNLIKELY(count > 0 && is_something_due(frame, ring))) {
        if (put_due(frame, ring, now_ns, &count))
            return true;
        chunk.epoch = ring->staged.epoch;
        special = MR_WORD_LAP;
    }
    ring->hold.is_held = count == 0;
    if (count == 0)
        return false;
    if (MR_UNLIKELY(ring->staged.pruned.is_looked_at))
        return put_without_pruned(frame, ring, &chunk, count, now_ns);
    return put_accounted(frame, ring, &chunk, count, special & MR_WORD_LAP);
}

static size_t put_loss(struct mr_drain_frame *frame, struct mr_ring *ring, size_t index,
                       uint64_t loss, uint64_t nesting)
{
    uint64_t words[LOSS_WORDS] = {
        mr_word_record(MR_RECORD_LOSS, LOSS_WORDS - 1, 0, ring->staged.ticks), loss,
        nesting};

    memcpy(mr_drain_chunk_body(frame) + index * WORD_BYTES, words, sizeof(words));
    mr_drain_account_loss(&ring->staged, &frame->totals, loss);
    return index + LOSS_WORDS;
}

/* A chunk with what the owner lost since its last loss record. */
static void put_last(struct mr_drain_frame *frame, struct mr_ring *ring, uint8_t flags)
{
    struct mr_chunk chunk = mr_drain_chunk_at(ring);
    uint64_t nesting = mr_load_relaxed(&ring->nesting);
    size_t count = 0;

    chunk.flags |= flags;
    for (uint32_t reason = 0; reason < MR_LOSS_REASON_COUNT; reason++) {
        uint64_t events = mr_load_relaxed(&ring->pending[reason]);

        if (events == 0)
            continue;
        count = put_loss(frame, ring, count, events | (uint64_t)reason << 48, nesting);
        nesting = 0;
    }
    mr_drain_put_chunk(frame, ring, &chunk, count);
    ring->staged.is_last = true;
}

static bool is_written(const struct mr_ring *ring, uint64_t index)
{
    /* Relaxed: only whether it is there; it is read again in its turn. */
    uint64_t word = mr_load_relaxed(&ring->words[index & (ring->capacity - 1)]);

    return ((word ^ lap_of(ring, index)) & MR_WORD_LAP) == 0;
}

/*
 * A word behind which others were written, and which is not written itself, belongs to
 * an event that a signal handler interrupted. It comes when the handler returns, and
 * never if the handler left by longjmp or ended the thread.
 */
static bool is_abandoned(struct mr_ring *ring, bool is_closed, uint64_t now_ns)
{
    uint64_t tail = ring->staged.tail;
    bool is_hole = is_closed && tail < mr_load_relaxed(&ring->end);

    if (is_hole ||
        (is_written(ring, tail) && mr_drain_is_malformed(mr_load_acquire(
                                       &ring->words[tail & (ring->capacity - 1)]))))
        return true;
    for (uint64_t i = 1; i <= HOLE_REACH && !is_hole; i++)
        is_hole = is_written(ring, tail + i);
    if (!is_hole)
        ring->hole_polls = 0;
    else if (ring->hole_polls++ == 0)
        ring->hole_since_ns = now_ns;
    return ring->hole_polls > MR_DRAIN_HOLE_POLLS &&
           now_ns - ring->hole_since_ns > MR_DRAIN_HOLE_NS;
}

static void put_hole(struct mr_drain_frame *frame, struct mr_ring *ring)
{
    struct mr_chunk chunk = mr_drain_chunk_at(ring);
    size_t count = put_loss(frame, ring, 0, 1 | (uint64_t)MR_LOSS_NESTED << 48, 0);

    ring->staged.holes[ring->staged.hole_count++] = ring->staged.tail++;
    ring->hole_polls = 0;
    mr_drain_put_chunk(frame, ring, &chunk, count);
}

static bool stage(struct mr_drain_frame *frame, struct mr_ring *ring, bool has_changed)
{
    if (has_changed && !ring->is_staged) {
        ring->staged_next = frame->staged;
        frame->staged = ring;
        ring->is_staged = true;
    }
    return has_changed;
}

static void open_place(const struct mr_drain_frame *frame, struct mr_ring *ring,
                       uint32_t epoch)
{
    uint32_t first = epoch;

    ring->staged = ring->done;
    ring->staged.hole_count = 0;
    if (ring->staged.is_first && ring->staged.ticks == 0) {
        ring->staged.ticks = ring->start_ticks;
        ring->staged.sync_ticks = ring->start_ticks;
        ring->staged.cuts_seen = ring->cuts_before;
        ring->staged.pruned.seen = ring->prunes_before;
        if (frame->epochs)
            first = mr_epochs_at(frame->epochs, ring->start_ticks);
        if (first > ring->staged.epoch)
            ring->staged.epoch = first;
    }
    if (!frame->epochs)
        ring->staged.epoch = epoch;
}

/*
 * Nothing is left that was written before the newest epoch began: a function's events are
 * there before it can go. Or before the one that words which are held have come to: the
 * change that they wait for may find no room among the epochs but by that.
 */
static void note_epoch(const struct mr_drain_frame *frame, struct mr_ring *ring)
{
    if (!frame->epochs || ring->hole_polls > 0)
        return;
    ring->done.epoch = ring->hold.is_held ? ring->staged.epoch : frame->epochs->newest;
}

bool mr_drain_ring(struct mr_drain_frame *frame, struct mr_ring *ring, uint32_t epoch,
                   uint64_t now_ns)
{
    bool is_closed = mr_load_acquire(&ring->state) == MR_RING_CLOSED; /* [C] */
    bool has_changed = false, is_at_rest;
    uint64_t ticks;

    if (ring->is_staged || room_words(frame) == 0)
        return false;
    open_place(frame, ring, epoch);
    while (room_words(frame) > 0 && ring->staged.hole_count < MR_RING_HOLES_MAX) {
        if (put_words(frame, ring, now_ns))
            has_changed = true;
        else if (!ring->hold.is_held && is_abandoned(ring, is_closed, now_ns)) {
            put_hole(frame, ring);
            has_changed = true;
        } else {
            break;
        }
        if (!is_closed)
            break;
    }
    is_at_rest = !is_closed && !ring->hold.is_held;
    if (is_at_rest && !has_changed && mr_drain_is_cut_at_rest(ring, now_ns, &ticks)) {
        mr_drain_put_cut(frame, ring, ticks);
        has_changed = true;
    }
    if (is_at_rest && !has_changed && mr_drain_is_prune_at_rest(ring, now_ns)) {
        mr_drain_put_prune(frame, ring, now_ns);
        has_changed = true;
    }
    if (is_closed && ring->staged.tail == mr_load_relaxed(&ring->end) &&
        room_words(frame) > 0) {
        put_last(frame, ring, MR_CHUNK_LAST);
        has_changed = true;
    }
    if (!has_changed)
        note_epoch(frame, ring);
    if (MR_UNLIKELY(ring->hold.is_held))
        frame->epochs->is_held = true;
    return stage(frame, ring, has_changed);
}

bool mr_drain_source_end(struct mr_drain_frame *frame, struct mr_ring *ring,
                         uint32_t epoch)
{
    if (ring->is_staged || room_words(frame) == 0)
        return false;
    open_place(frame, ring, epoch);
    put_last(frame, ring, MR_CHUNK_SOURCE_END);
    return stage(frame, ring, true);
}

/*
 * A slot that was skipped still holds its word of the lap before, which would look valid
 * again in the next lap: it gets this lap's bit.
 */
static void fill_holes(struct mr_ring *ring)
{
    for (uint32_t i = 0; i < ring->done.hole_count; i++) {
        uint64_t index = ring->done.holes[i];

        mr_store_release(&ring->words[index & (ring->capacity - 1)], lap_of(ring, index));
    }
}

void mr_drain_commit(struct mr_drain_frame *frame, struct mr_pool *pool)
{
    struct mr_ring *ring = frame->staged, *next;

    if (ring)
        mr_count_single_writer(&pool->shared.taken, 1);
    mr_drain_count_drops(frame);
    for (; ring; ring = next) {
        bool is_closed = mr_load_relaxed(&ring->state) == MR_RING_CLOSED;

        next = ring->staged_next;
        ring->is_staged = false;
        ring->done = ring->staged;
        fill_holes(ring);
        /* [T] pairs with [R] in grant(), probe/ring.c. */
        mr_store_release(&ring->tail, ring->done.tail);
        mr_ring_wake_owner(ring);
        if (ring->done.is_last && is_closed)
            mr_pool_give(pool, ring);
    }
    frame->staged = NULL;
}

void mr_drain_abort(struct mr_drain_frame *frame)
{
    struct mr_ring *ring = frame->staged;

    for (; ring; ring = ring->staged_next)
        ring->is_staged = false;
    frame->staged = NULL;
}
