/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by joiner.c (groups of parts) and joiner_shape.c (what one comes to). Not for others. */
#ifndef MR_PIPELINE_JOINER_PRIVATE_H
#define MR_PIPELINE_JOINER_PRIVATE_H

#include <assert.h>

#include "base/table.h"
#include "pipeline/joiner.h"

#define MR_JOINER_PARTS_LIMIT (1u << 24)

static_assert(MR_PART_EDGES_MAX <= 64, "a bit of second_outs for each");

struct mr_joiner_group { /* valid in the first of its parts */
    uint32_t last, count;
    uint32_t missing; /* ends of edges that have no other end */
    uint32_t older, newer;
    uint64_t touched_ns; /* when its last part came */
};

struct mr_joiner_slot {
    struct mr_part part;
    struct mr_part_edge *out;
    uint32_t of;          /* its group: the first part */
    uint32_t next;        /* of the group; of the free list */
    bool is_second;       /* another part has the other end of its `in` */
    uint64_t second_outs; /* bit i: another has the end of out[i], or one before it */
    struct mr_joiner_group group;
};

struct mr_joiner_edge {
    uint32_t from, to; /* slots; NONE. Of a free one: from is the next */
};

/* One node before equal siblings are one. */
struct mr_joiner_node {
    uint32_t slot;      /* NONE: missing */
    uint32_t from, out; /* the edge that leads to it: a slot, NONE for none, and which */
    uint32_t first, count; /* children are first .. first + count - 1 */
    uint32_t size;         /* nodes of it and below, equal ones once */
    uint32_t place;        /* in the shape */
    uint8_t kind;
    bool is_run;       /* begins a run of more than one */
    bool is_like_last; /* of a run, and not its first */
    uint32_t folded;   /* children that are not like the one before */
    struct mr_id id;
};

/* Scratch of joiner_shape.c, which grows to the largest trace. */
struct mr_joiner_shape {
    struct mr_joiner_node *work;
    uint32_t work_count, work_capacity;
    struct mr_joined_edge *edges;
    uint32_t edge_capacity;
    uint32_t *slots;
    uint32_t slot_capacity;
    struct mr_joined_child *children;
    uint32_t child_capacity;
    struct mr_joined_node nodes[MR_JOINED_NODES_MAX];
};

struct mr_joiner {
    uint32_t parts_max;
    struct mr_joiner_slot *slots;
    uint32_t slot_count, slot_capacity, free_slot;
    struct mr_joiner_edge *edges;
    uint32_t edge_count, edge_capacity, free_edge;
    struct mr_table keys;    /* of edges */
    uint32_t oldest, newest; /* groups that wait, by when their last part came */
    uint32_t done;           /* groups to be taken */
    uint32_t giving;         /* rest of a group that is given */
    struct mr_part_edge *given;
    uint32_t lent_count; /* slots of the trace that was taken last */
    struct mr_joiner_shape shape;
    struct mr_joiner_stats stats;
};

/* False without memory. */
bool mr_joiner_shape(struct mr_joiner *joiner, uint32_t group, struct mr_joined *joined);
void mr_joiner_shape_fini(struct mr_joiner_shape *shape);

#endif
