/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From rings to the payload of a CHUNKS frame (docs/FORMAT.md section 6, encoding 0).
 * Chunks are staged first: the ring's place moves, and its slots are free again, only
 * with the commit, so that a frame can be given up when its dictionary must go first.
 *
 *     struct mr_drain_frame frame;
 *     mr_drain_begin(&frame, payload, capacity);
 *     for (each ring)
 *         mr_drain_ring(&frame, ring, epoch, now_ns);
 *     mr_drain_commit(&frame, &pool);                  // or mr_drain_abort(&frame)
 *
 * One thread (the writer); the rings' owners go on meanwhile. No memory is allocated.
 */
#ifndef MR_PROBE_DRAIN_H
#define MR_PROBE_DRAIN_H

#include "probe/epochs.h"
#include "probe/pool.h"

/* Least room in a frame for which mr_drain_ring() does anything. */
#define MR_DRAIN_ROOM_MIN 512

/*
 * Words that stay unwritten behind later ones are given up as lost after both of these.
 * Should one come after all, it costs at most one event more, counted in its turn.
 */
#define MR_DRAIN_HOLE_POLLS 10
#define MR_DRAIN_HOLE_NS (100 * MR_MILLISECOND_NS)

struct mr_drain_totals {
    uint64_t events; /* recorded, lost ones not counted */
    uint64_t lost[MR_LOSS_REASON_COUNT];
};

/* Calls of a pruned site that were taken out of streams. */
#define MR_DRAIN_DROPS_MAX 32

struct mr_drain_drop {
    uint32_t slot, calls;
};

struct mr_site_stats;

struct mr_drain_frame {
    struct mr_site_stats *stats; /* what is drained is looked at for them; NULL: not */
    struct mr_epochs *epochs;    /* NULL: all is of the epoch that is given */
    struct mr_ticker *ticker;    /* clock hybrid: who drains ticks; NULL: not */
    uint64_t ticked;             /* the last number published so, or 0 */
    bool is_flushing; /* lines of a ring that were read leave the caches (probe/arch.h) */
    uint8_t *out;
    size_t capacity, size;
    struct mr_ring *staged; /* list */
    struct mr_drain_totals totals;
    uint32_t drop_count;
    struct mr_drain_drop drops[MR_DRAIN_DROPS_MAX];
};

void mr_drain_begin(struct mr_drain_frame *frame, uint8_t *out, size_t capacity);
/* Ticks, where who drains does: between frames. */
void mr_drain_tick(struct mr_drain_frame *frame);
/* Stages what the ring has, `epoch` being the newest; true if there was something. A ring is staged once a frame. */
bool mr_drain_ring(struct mr_drain_frame *frame, struct mr_ring *ring, uint32_t epoch,
                   uint64_t now_ns);
/* Stages the last chunk of a ring whose thread still runs when the program ends. */
bool mr_drain_source_end(struct mr_drain_frame *frame, struct mr_ring *ring,
                         uint32_t epoch);
/* Moves the staged places; closed rings that are drained go back to the pool. */
void mr_drain_commit(struct mr_drain_frame *frame, struct mr_pool *pool);
void mr_drain_abort(struct mr_drain_frame *frame);

#endif
