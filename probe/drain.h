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

struct mr_drain_frame {
    uint8_t *out;
    size_t capacity, size;
    struct mr_ring *staged; /* list */
    struct mr_drain_totals totals;
};

void mr_drain_begin(struct mr_drain_frame *frame, uint8_t *out, size_t capacity);
/* Stages what the ring has; true if there was something. A ring is staged once a frame. */
bool mr_drain_ring(struct mr_drain_frame *frame, struct mr_ring *ring, uint32_t epoch,
                   uint64_t now_ns);
/* Stages the last chunk of a ring whose thread still runs when the program ends. */
bool mr_drain_source_end(struct mr_drain_frame *frame, struct mr_ring *ring,
                         uint32_t epoch);
/* Moves the staged places; closed rings that are drained go back to the pool. */
void mr_drain_commit(struct mr_drain_frame *frame, struct mr_pool *pool);
void mr_drain_abort(struct mr_drain_frame *frame);

#endif
