/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring under policy overwrite, seen by its thread: what is always granted, and what a
 * reader outside is told (probe/recorder_format.h). Once per segment of the ring.
 *
 * field        written by  read by     access
 * granted      owner       a stranger  release store [G], acquire load [V]
 * anchors[]    owner       a stranger  index NONE, members, index, each released [N];
 *                                      acquired [M] with the index again behind them
 * streams[],   owner       a stranger  members, then generation, all released [I];
 *  generation                          acquired [J], generation before and behind
 * end          owner       a stranger  release store [E], acquire load [K]
 * writing      owner       a stranger  see put_record() in probe/ring.c
 * Pairs: [G]-[V] by way of a word: whoever reads a word of lap n has granted of lap n, so
 * what lies at granted - capacity or above was not overwritten; see
 * probe/recorder_read.c.
 * Invariant: a word is written below `granted` only; every word below `sealed` carries
 * its lap's bit.
 * Progress: wait-free. Checked by: tests/race/test_recorder.c
 */
#include "probe/recorder_format.h"
#include "probe/ring.h"

/* Whether all of 4 * n words have this lap's bit; relaxed: they are our own. */
static bool have_lap(_Atomic uint64_t *words, uint64_t count, uint64_t lap)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, flip = lap ? UINT64_MAX : 0;

    for (uint64_t i = 0; i < count; i += 4) { /* four chains: 0.19 ns a word, one: 0.26 */
        a |= mr_load_relaxed(&words[i]) ^ flip;
        b |= mr_load_relaxed(&words[i + 1]) ^ flip;
        c |= mr_load_relaxed(&words[i + 2]) ^ flip;
        d |= mr_load_relaxed(&words[i + 3]) ^ flip;
    }
    return ((a | b | c | d) & MR_WORD_LAP) == 0;
}

static void seal_run(_Atomic uint64_t *words, uint64_t count, uint64_t lap)
{
    uint64_t i = have_lap(words, count & ~UINT64_C(3), lap) ? count & ~UINT64_C(3) : 0;

    for (; i < count; i++)
        if ((mr_load_relaxed(&words[i]) ^ lap) & MR_WORD_LAP)
            mr_store_release(&words[i], lap);
}

/*
 * A slot that was taken and not written (a handler came between, and left by longjmp or is
 * running) still has the bit of the lap before, and would look written in the next one:
 * it gets a word of no kind, and the bit of this lap. Should its event come after all, it
 * comes over it.
 */
static void seal(struct mr_thread *thread)
{
    struct mr_ring *ring = thread->ring;
    uint64_t index = ring->sealed;

    while (index < thread->cursor) {
        uint64_t slot = index & thread->mask, count = thread->cursor - index;

        if (count > ring->capacity - slot)
            count = ring->capacity - slot;
        seal_run(ring->words + slot, count, mr_ring_lap(index, thread->lap_shift));
        index += count;
    }
    ring->sealed = thread->cursor;
}

/* Every word is an event but for those told by put_record(). */
static uint64_t event_at(const struct mr_thread *thread, uint64_t index)
{
    return index - thread->ring->first_index - thread->ring->not_events;
}

static void put_anchor(const struct mr_thread *thread, uint64_t ticks)
{
    struct mr_ring *ring = thread->ring;
    struct mr_recorder_anchor *anchor =
        &ring->recorded->anchors[ring->anchor_count++ % MR_RECORDER_ANCHORS];

    mr_store_release(&anchor->index, MR_RECORDER_NONE); /* [N] */
    mr_store_release(&anchor->event, event_at(thread, thread->cursor));
    mr_store_release(&anchor->ticks, ticks);
    mr_store_release(&anchor->epoch, mr_load_relaxed(ring->shared->epoch)); /* a hint */
    mr_store_release(&anchor->index, thread->cursor);
}

void mr_ring_record_grant(struct mr_thread *thread, uint64_t need, uint64_t ticks)
{
    uint64_t segment = (thread->mask + 1) / MR_RECORDER_SEGMENTS, end;

    end = thread->cursor + need;
    if (end <= thread->limit)
        return;
    seal(thread);
    put_anchor(thread, ticks);
    end = (end / segment + 1) * segment;
    mr_store_release(&thread->ring->recorded->granted, end); /* [G] */
    thread->limit = end;
}

static void copy_name(const struct mr_ring *ring, struct mr_recorder_stream *stream)
{
    for (size_t i = 0; i < MR_RING_NAME_SIZE; i++)
        mr_store_release(&stream->name[i], mr_load_relaxed(&ring->name[i]));
}

void mr_ring_record_name(const struct mr_ring *ring)
{
    struct mr_recorder_ring *recorded = ring->recorded;
    uint32_t generation = mr_load_relaxed(&recorded->generation); /* our own */

    copy_name(ring, &recorded->streams[generation & 1]);
}

void mr_ring_record_begin(struct mr_thread *thread)
{
    struct mr_ring *ring = thread->ring;
    struct mr_recorder_ring *recorded = ring->recorded;
    uint32_t generation = mr_load_relaxed(&recorded->generation);
    const struct mr_recorder_stream *before = &recorded->streams[generation & 1];
    struct mr_recorder_stream *stream = &recorded->streams[~generation & 1];

    mr_store_release(&stream->stream, ring->stream);
    mr_store_release(&stream->tid, mr_load_relaxed(&ring->tid));
    mr_store_release(&stream->start_site, ring->start_site);
    mr_store_release(&stream->start_ticks, ring->start_ticks);
    mr_store_release(&stream->first_index, thread->cursor);
    mr_store_release(&stream->streams_before,
                     mr_load_relaxed(&before->streams_before) + (generation > 0));
    mr_store_release(&stream->events_before, mr_load_relaxed(&before->events_before) +
                                                 mr_load_relaxed(&before->end_event));
    copy_name(ring, stream);
    mr_store_release(&stream->end_event, 0);
    mr_store_release(&stream->end, MR_RECORDER_NONE);
    ring->first_index = thread->cursor;
    ring->not_events = 0;
    ring->sealed = thread->cursor;
    mr_store_release(&recorded->generation, generation + 1); /* [I] */
}

void mr_ring_record_end(struct mr_thread *thread)
{
    struct mr_ring *ring = thread->ring;
    struct mr_recorder_ring *recorded = ring->recorded;
    uint32_t generation = mr_load_relaxed(&recorded->generation); /* our own */
    struct mr_recorder_stream *stream = &recorded->streams[generation & 1];

    uint64_t lost = 0; /* since the last loss record */

    for (size_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        lost += mr_load_relaxed(&ring->pending[i]);
    seal(thread);
    mr_store_relaxed(&stream->end_event, event_at(thread, thread->cursor) + lost);
    mr_store_release(&stream->end, thread->cursor); /* [E] */
    mr_store_relaxed(&ring->closed_order, mr_add_relaxed(&ring->shared->closed_count, 1));
}
