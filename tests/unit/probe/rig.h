/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring with its thread's state and a drained frame, for the tests of ring, drain and
 * pool; all in one thread. Times are given, not read.
 */
#ifndef MR_TESTS_UNIT_PROBE_RIG_H
#define MR_TESTS_UNIT_PROBE_RIG_H

#include "net/chunk.h"
#include "probe/drain.h"
#include "tests/unit/unit_test.h"

#include <string.h>

#define RIG_FRAME_SIZE 65536
#define RIG_TICKS (UINT64_C(7) << 31)

struct rig {
    struct mr_pool pool;
    struct mr_ring *ring;
    struct mr_thread thread;
    struct mr_drain_frame frame;
    struct mr_chunk chunk; /* the one of the last rig_next() */
    struct mr_span payload;
    struct mr_record_reader reader;
    struct mr_record record;
    uint32_t drains; /* every other one flushes, where the processor can */
    uint8_t out[RIG_FRAME_SIZE];
};

static inline struct rig *rig_new(uint64_t words, enum mr_policy policy)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    mr_pool_init(&rig->pool, words * sizeof(uint64_t), 1 << 24);
    rig->pool.shared.policy = policy;
    rig->ring = mr_pool_take(&rig->pool);
    assert_non_null(rig->ring);
    rig->ring->start_ticks = RIG_TICKS;
    mr_ring_attach(&rig->thread, rig->ring);
    mr_pool_publish(rig->ring);
    return rig;
}

static inline void rig_free(struct rig *rig)
{
    mr_pool_fini(&rig->pool);
    free(rig);
}

/* An event as a hook makes it, but for the clock. */
static inline void rig_event(struct rig *rig, uint64_t bits, uint64_t ticks)
{
    mr_ring_event_at(&rig->thread, bits, ticks);
}

static inline void rig_enter(struct rig *rig, uint32_t site, uint64_t ticks)
{
    rig_event(rig, mr_event_enter(site), ticks);
}

static inline void rig_exit(struct rig *rig, uint32_t site, uint64_t ticks)
{
    rig_event(rig, mr_event_exit(site), ticks);
}

/* Takes all that is there into the frame; its size. */
static inline size_t rig_drain(struct rig *rig, size_t capacity)
{
    mr_drain_begin(&rig->frame, rig->out, capacity);
    rig->frame.is_flushing = ++rig->drains % 2 && mr_arch_can_flush();
    (void)mr_drain_ring(&rig->frame, rig->ring, 1, 0);
    mr_drain_commit(&rig->frame, &rig->pool);
    rig->payload = mr_span_of(rig->out, rig->frame.size);
    rig->reader.left = 0;
    return rig->frame.size;
}

/* The next record of the frame; false at its end. */
static inline bool rig_next(struct rig *rig)
{
    enum mr_status status = MR_END;

    while (rig->reader.left == 0 ||
           (status = mr_record_next(&rig->reader, &rig->record)) == MR_END) {
        if (mr_chunk_next(&rig->payload, &rig->chunk) != MR_OK)
            return false;
        mr_record_reader_init(&rig->reader, &rig->chunk);
    }
    assert_int_equal(status, MR_OK);
    return true;
}

static inline void rig_expect_event(struct rig *rig, uint32_t site, bool is_exit,
                                    uint64_t ticks)
{
    assert_true(rig_next(rig));
    assert_true(rig->record.site == site);
    assert_int_equal(rig->record.is_exit, is_exit);
    assert_true(rig->record.ticks == ticks);
}

static inline void rig_expect_kind(struct rig *rig, uint8_t kind)
{
    assert_true(rig_next(rig));
    assert_true(rig->record.site < MR_SITE_FIRST_NAMED);
    assert_int_equal(rig->record.kind, kind);
}

static inline void rig_expect_loss(struct rig *rig, uint64_t events, uint64_t reason,
                                   uint64_t pops, uint64_t pushes)
{
    rig_expect_kind(rig, MR_RECORD_LOSS);
    assert_true(rig->record.payload[0] == (events | reason << 48));
    assert_true(rig->record.payload[1] == (pops | pushes << 31));
}

#endif
