/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of condensing; not for others.
 *
 *     condense.c       which calls stay, and what is told of them
 *     condense_feed.c  events -> calls that end
 *     condense_noted.c  the same, of calls that were noted
 *     condense_log.c   events that wait to be looked at
 */
#ifndef MR_PIPELINE_CONDENSE_PRIVATE_H
#define MR_PIPELINE_CONDENSE_PRIVATE_H

#include "base/compiler.h"
#include "pipeline/condense.h"

/* Bytes of an event in the log, and events of a log that a reset leaves; a larger one goes back. */
#define MR_CONDENSE_LOG_EVENT (sizeof(struct mr_event) + sizeof(uint16_t))
#define MR_CONDENSE_LOG_KEPT 4096u

static inline bool mr_condense_is_longer(uint64_t a_ns, uint64_t a_number, uint64_t b_ns,
                                         uint64_t b_number)
{
    return (a_ns > b_ns) | ((a_ns == b_ns) & (a_number < b_number));
}

/* condense.c */
/* Doubles `*items`, up to `most` of them, within the budget; else nothing more is condensed. */
bool mr_condense_grow(struct mr_condense *condense, void **items, uint32_t *capacity,
                      size_t size, uint32_t most);
/* A call ends, `depth` and `closed` being those of its end: it stays for now. */
void mr_condense_keep(struct mr_condense *condense, const struct mr_condense_open *call,
                      uint64_t total_ns, const struct mr_event *close);

/* No more stay than may, and shortest_ns is that of the shortest of them. Fewer stay as they are. */
void mr_condense_drop_shorter(struct mr_condense *condense);

/* condense_feed.c: looks at all events of the piece, now. */
void mr_condense_take(struct mr_condense *condense,
                      const struct mr_condense_piece *piece);

/* condense_log.c */
void mr_condense_release_log(struct mr_condense *condense);
/* A trace ended without a look at its log, or grew out of it. */
void mr_condense_learn_log(struct mr_condense_budget *budget, bool is_enough);

#endif
