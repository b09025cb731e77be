/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part: the header of a call tree that belongs to a trace with others, as it travels in
 * DELTA payloads (docs/FORMAT.md section 8, item 13). The call tree itself was reduced
 * where it was seen. Edges join parts: one part has the edge among its `out`, another has
 * the same key as its `in`.
 *
 *     in (at most one) --> [ part ] --> out: sends and captures, in order of time
 *
 * Plain values; a part borrows its `out` from whoever filled it. Any thread.
 *
 * Use:
 *     struct mr_part part = {.id = ..., .out = edges, .out_count = 1};
 *     end = mr_part_put(&part, bytes);               // MR_PART_SIZE_MAX at most
 *     if (!mr_part_get(&span, &part, edges))         // edges[MR_PART_EDGES_MAX]
 *         it breaks the format
 */
#ifndef MR_NET_PART_H
#define MR_NET_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/span.h"

#define MR_PART_EDGES_MAX 64u /* out edges; a part that has more says so, MR_PART_CUT */
#define MR_PART_SIZE_MAX 2560u

/* Kinds of edges: number, name in code, name shown. */
#define MR_EDGE_KINDS(X)                                                                 \
    X(1, MESSAGE, "message")                                                             \
    X(2, HAND_OFF, "hand-off")                                                           \
    X(3, NEXT, "next")

enum mr_edge_kind {
    MR_EDGE_NONE = 0,
#define X(number, name, text) MR_EDGE_##name = (number),
    MR_EDGE_KINDS(X)
#undef X
        MR_EDGE_KIND_COUNT
};

const char *mr_edge_kind_name(uint32_t kind);

struct mr_part_edge {
    struct mr_id key;
    uint64_t ns; /* Unix time by the clock of the part's source */
    uint32_t kind;
};

enum mr_part_status { MR_PART_OK, MR_PART_FAILED, MR_PART_INCOMPLETE, MR_PART_STATUSES };

enum mr_part_flag {
    MR_PART_STUB =
        1, /* no call tree: what happened outside of one, or came late into one */
    MR_PART_CUT = 2, /* had more edges than it tells */
};

struct mr_part {
    struct mr_id id;
    struct mr_id trace; /* W3C trace id; zero: it neither sent nor received */
    struct mr_id path;  /* of the entry point, or outer path; zero: not known */
    struct mr_id node;  /* its shape; zero: none */
    struct mr_id source;
    uint64_t start_ns, end_ns; /* as of edges; start <= end */
    int64_t shift_ns;          /* to add where clocks of different sources meet */
    uint32_t status;           /* enum mr_part_status */
    uint32_t flags;            /* enum mr_part_flag, ored */
    struct mr_part_edge in;    /* kind NONE: a root */
    const struct mr_part_edge *out;
    uint32_t out_count;
};

/* The end of what was written: the fields of the item. */
uint8_t *mr_part_put(const struct mr_part *part, uint8_t *at);
/* False where the fields break the format. `part` borrows `out`. */
bool mr_part_get(struct mr_span *in, struct mr_part *part,
                 struct mr_part_edge out[MR_PART_EDGES_MAX]);

#endif
