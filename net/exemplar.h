/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exemplar: one trace with its calls (docs/FORMAT.md section 8, tag 12). Its calls stand in the order in which they were
 * opened, outermost first; a call that was left out took no longer than any that is there, and is counted, with all below it,
 * in the innermost call around it that is there.
 *
 *     depth 0  request   0 .. 900 us                     elided: 0
 *     depth 1    parse     10 .. 40 us                   elided: 6 calls, 12 us
 *     depth 1    answer    50 .. 890 us                  elided: 3.1 M calls, 0.4 ms
 *
 * Exemplars compete for one place per shape and reason. The order is total and depends on the traces alone, so that the same
 * one wins however deltas are merged: the slowest, then the earlier, then by source, stream and place in it.
 *
 * Limits: MR_EXEMPLAR_CALLS_MAX calls. A plain value: `items` is borrowed.
 */
#ifndef MR_NET_EXEMPLAR_H
#define MR_NET_EXEMPLAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/span.h"

#define MR_EXEMPLAR_CALLS_MAX 65536u

enum mr_exemplar_why { /* ored: what it is kept for */
                       MR_EXEMPLAR_FIRST = 1,
                       MR_EXEMPLAR_SLOWEST = 2,
                       MR_EXEMPLAR_WHYS = 2, /* how many there are */
                       MR_EXEMPLAR_ALL = 3,
                       /* None of these, and alone: somebody asked for it (net/wanted.h). */
                       MR_EXEMPLAR_ASKED = 4
};

enum mr_exemplar_status {
    MR_EXEMPLAR_OK = 0,
    MR_EXEMPLAR_FAILED = 1,
    MR_EXEMPLAR_INCOMPLETE =
        2, /* lost something: no shape; its times are what was seen */
    MR_EXEMPLAR_STATUS_COUNT = 3
};

enum mr_exemplar_call_flag { /* ored */
                             MR_EXEMPLAR_CALL_FAILED = 1,
                             MR_EXEMPLAR_CALL_INCOMPLETE = 2, /* no exit was seen */
                             MR_EXEMPLAR_CALL_UNWOUND =
                                 4, /* left without an exit of its own */
                             MR_EXEMPLAR_CALL_FLAGS = 7
};

struct mr_exemplar_call {
    uint64_t start_ns; /* after the root's */
    uint64_t total_ns;
    uint64_t elided_calls; /* left out right inside it, with all below them */
    uint64_t elided_ns;    /* the time of those right inside it */
    uint32_t site;         /* a number: whose, says who holds it */
    uint32_t
        depth; /* 0: the root, which is the first; else at most one more than the call before */
    uint32_t flags; /* enum mr_exemplar_call_flag */
};

struct mr_exemplar {
    uint32_t why; /* enum mr_exemplar_why, at least one */
    enum mr_exemplar_status status;
    struct mr_id source;
    uint32_t stream;
    uint64_t before;   /* calls of its stream, but outer frames, begun when it began */
    uint64_t start_ns; /* Unix */
    uint64_t calls;    /* of the whole trace: call_count and all that is elided */
    uint32_t call_count;
    const struct mr_exemplar_call *items;
};

static inline uint64_t mr_exemplar_ns(const struct mr_exemplar *exemplar)
{
    return exemplar->items[0].total_ns;
}

/* Whether they are the same trace. */
bool mr_exemplar_is_same(const struct mr_exemplar *a, const struct mr_exemplar *b);
/*
 * Whether `a` comes before `b` in the order of a reason (one bit). False for the same trace. Of those that were asked for, the
 * earlier comes first: they are the next ones.
 */
bool mr_exemplar_is_before(const struct mr_exemplar *a, const struct mr_exemplar *b,
                           enum mr_exemplar_why why);

/* The calls as bytes, from their count on; at most MR_EXEMPLAR_BYTES_MAX(call_count). The byte behind them. */
#define MR_EXEMPLAR_BYTES_MAX(count) (10u + 55u * (size_t)(count))
uint8_t *mr_exemplar_put_calls(const struct mr_exemplar *exemplar, uint8_t *at);
/*
 * Reads what stands behind the count into `items`, which has room for it. False, with `in` anywhere, without memory or when
 * a rule is broken: a site of `sites` or more, a call outside the one around it or before its sibling's end, more time in
 * a call than it took, counts that are not `calls` together.
 */
bool mr_exemplar_get_calls(struct mr_span *in, uint32_t sites, uint64_t calls,
                           struct mr_exemplar_call *items, uint32_t count);

#endif
