/* SPDX-License-Identifier: Apache-2.0 */
/* What drain.c and drain_account.c share: the account of words that were copied. */
#ifndef MR_PROBE_DRAIN_PRIVATE_H
#define MR_PROBE_DRAIN_PRIVATE_H

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
/* `payload`: the first payload word of a loss record. */
void mr_drain_account_loss(struct mr_ring_place *place, struct mr_drain_totals *totals,
                           uint64_t payload);
/* Begins no record that an owner writes. */
bool mr_drain_is_malformed(uint64_t word);

#endif
