/* SPDX-License-Identifier: Apache-2.0 */
/* What drain.c, drain_account.c and drain_cut.c share. */
#ifndef MR_PROBE_DRAIN_PRIVATE_H
#define MR_PROBE_DRAIN_PRIVATE_H

#include "net/chunk.h"
#include "probe/drain.h"

#define WORD_BYTES sizeof(uint64_t)

/*
 * Account for `count` words at `body`, and move the place but for its tail; how many of
 * them are whole, well-formed records. _plain: all are enters and exits, at least one.
 */
size_t mr_drain_account(const uint8_t *body, size_t count, struct mr_ring_place *place,
                        struct mr_drain_totals *totals);
size_t mr_drain_account_plain(const uint8_t *body, size_t count,
                              struct mr_ring_place *place,
                              struct mr_drain_totals *totals);
/* Accounts for one record at `index`; its words, or 0 where it is not whole. */
size_t mr_drain_account_one(const uint8_t *body, size_t index, size_t count,
                            struct mr_ring_place *place, struct mr_drain_totals *totals);
/* `payload`: the first payload word of a loss record. */
void mr_drain_account_loss(struct mr_ring_place *place, struct mr_drain_totals *totals,
                           uint64_t payload);
/* Begins no record that an owner writes. */
bool mr_drain_is_malformed(uint64_t word);

/* drain.c. The chunk at the ring's place; where its body goes; closes it, `count` words. */
struct mr_chunk mr_drain_chunk_at(const struct mr_ring *ring);
uint8_t *mr_drain_chunk_body(const struct mr_drain_frame *frame);
void mr_drain_put_chunk(struct mr_drain_frame *frame, struct mr_ring *ring,
                        struct mr_chunk *chunk, size_t count);

/*
 * drain_cut.c: cuts (probe/cuts.h) into the ring's stream. How many of `count` words at
 * `body` come before the time `due`; 0: it is due now, and the first record after it has
 * the time *ticks.
 */
size_t mr_drain_before(const uint8_t *body, size_t count, const struct mr_ring *ring,
                       uint64_t due, uint64_t *ticks);
/* The time of the next cut that the stream was not told; UINT64_MAX: there is none. */
uint64_t mr_drain_cut_due(const struct mr_ring *ring);
/* Some cut is yet to be told. */
static inline bool mr_drain_has_cut(const struct mr_ring *ring)
{
    return ring->staged.cuts_seen != mr_cuts_count(&ring->shared->cuts);
}
/* A chunk that tells all cuts until `ticks`, of which there is one. */
void mr_drain_put_cut(struct mr_drain_frame *frame, struct mr_ring *ring, uint64_t ticks);
/* Nothing came for a while after a cut, which is due: sets *ticks to its time. */
bool mr_drain_is_cut_at_rest(const struct mr_ring *ring, uint64_t now_ns,
                             uint64_t *ticks);

/*
 * drain_epoch.c: when the epoch begins that comes after the ring's; UINT64_MAX: it has the
 * newest. known: how many of `count` words at `body` may go now, as to their modules.
 */
uint64_t mr_drain_epoch_due(const struct mr_drain_frame *frame,
                            const struct mr_ring *ring);
static inline bool mr_drain_has_epoch(const struct mr_drain_frame *frame,
                                      const struct mr_ring *ring)
{
    return frame->epochs && frame->epochs->newest != ring->staged.epoch;
}
size_t mr_drain_known(struct mr_drain_frame *frame, struct mr_ring *ring,
                      const uint8_t *body, size_t count, bool is_special,
                      uint64_t now_ns);

/*
 * drain_prune.c: the same for marks of pruned sites. take_out: of `count` words at `body`,
 * what is of such a site behind its mark; how many were looked at, of which *kept stand at
 * `body` now. count_drops: at the commit.
 */
uint64_t mr_drain_prune_due(const struct mr_ring *ring);
static inline bool mr_drain_has_prune(const struct mr_ring *ring)
{
    return ring->staged.pruned.seen != mr_prune_marks_count(&ring->shared->prunes);
}
/* A chunk that tells the next mark. */
void mr_drain_put_prune(struct mr_drain_frame *frame, struct mr_ring *ring,
                        uint64_t now_ns);
bool mr_drain_is_prune_at_rest(const struct mr_ring *ring, uint64_t now_ns);
size_t mr_drain_take_out(struct mr_drain_frame *frame, struct mr_ring *ring,
                         uint64_t now_ns, uint8_t *body, size_t count, size_t *kept);
void mr_drain_count_drops(const struct mr_drain_frame *frame);

#endif
