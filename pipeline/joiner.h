/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A joiner keeps parts (net/part.h) until all parts of their trace are there, and then
 * says what the trace was: its joined shape, status, end-to-end time, and for each edge the
 * time from send to receive, or from capture to attach.
 *
 *     add(part) --> [ parts by key of their edges, in groups ] --> take(joined)     whole
 *                                                             \--> give(part)       passed on
 *
 * Parts that know each other's edges are one group; a group is whole when every edge has
 * both ends and a root is there. The result depends on the set of parts alone: not on the
 * order in which they came, nor on where they met. Status is that of the root; incomplete
 * where a part is, or is missing.
 *
 *  - Times of one source are compared as they are, others by the wall clock. A receive
 *    before its send is 0 ns, and counted (clamped); so is an end before the start.
 *  - A second part with an edge that has its end already (a token attached twice, a forged
 *    id) stands alone, and its trace is incomplete; which one is second is a matter of
 *    arrival. An edge that one part tells twice leads nowhere the second time. Parts in a
 *    circle have no root: incomplete at once. All are counted.
 *  - A part that comes again is dropped.
 *
 * Bounded: parts_max parts. When add() says MR_ELIMIT, the caller gives the oldest group
 * away or ends and takes it, and adds again. One thread at a time.
 *
 * Use:
 *     status = mr_joiner_add(joiner, &part, now_ns, NULL);
 *     while (mr_joiner_take(joiner, &joined))            // until there is none: then add
 *         count(&joined);
 *     mr_joiner_end(joiner, now_ns - timeout_ns);        // the last level: what is not whole
 *     while (mr_joiner_take(joiner, &joined))
 *         count(&joined);
 */
#ifndef MR_PIPELINE_JOINER_H
#define MR_PIPELINE_JOINER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "net/joined.h"
#include "net/part.h"

#define MR_JOINER_PARTS_DEFAULT 65536u

struct mr_joined_edge {
    uint32_t place; /* of the node that it leads to */
    uint64_t ns;
    bool is_clamped;
};

/* One trace. Borrowed from the joiner until its next call. */
struct mr_joined {
    struct mr_id id, trace; /* of the shape; of the trace, zero: it has none */
    const struct mr_joined_node *nodes;
    uint32_t node_count;
    const struct mr_joined_edge *edges; /* of all parts, so one place may come often */
    uint32_t edge_count;
    uint32_t part_count;
    uint32_t status;          /* enum mr_part_status */
    bool is_circle;           /* it has no root, though no part is missing */
    uint64_t end_ns, took_ns; /* Unix; end to end */
    const uint32_t *slots;    /* which its parts had, part_count of them */
};

struct mr_joiner_stats {
    uint64_t parts, joined; /* came; traces taken that were whole */
    uint64_t again;         /* parts that came twice */
    uint64_t doubles;       /* ends of edges past the two, of traces that were taken */
    uint64_t circles;       /* traces without a root, though nothing was missing */
    uint64_t large;         /* traces past MR_JOINED_NODES_MAX */
    uint32_t waiting;       /* parts held now */
};

struct mr_joiner;

/* MR_ENOMEM. */
enum mr_status mr_joiner_new(uint32_t parts_max, struct mr_joiner **joiner);
void mr_joiner_free(struct mr_joiner *joiner); /* NULL allowed */

/*
 * Copies the part. `slot` (NULL allowed): a number below parts_max that is its until its
 * trace is taken or it is given; MR_JOINER_NONE of one that came again. MR_ELIMIT, nothing
 * changed: it is full. MR_ENOMEM.
 */
#define MR_JOINER_NONE UINT32_MAX
enum mr_status mr_joiner_add(struct mr_joiner *joiner, const struct mr_part *part,
                             uint64_t now_ns, uint32_t *slot);
/* The next trace that is whole or was ended. False: none. MR_ENOMEM counts as none. */
bool mr_joiner_take(struct mr_joiner *joiner, struct mr_joined *joined);
/* Ends the groups to which nothing came since `before_ns`; how many. */
uint32_t mr_joiner_end(struct mr_joiner *joiner, uint64_t before_ns);
/* Ends the group that has waited longest. False: there is none. */
bool mr_joiner_end_oldest(struct mr_joiner *joiner);
/* Gives up a part of a group to which nothing came since `before_ns`. False: none. */
bool mr_joiner_give(struct mr_joiner *joiner, uint64_t before_ns, struct mr_part *part);
void mr_joiner_stats(const struct mr_joiner *joiner, struct mr_joiner_stats *stats);

#endif
