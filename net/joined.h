/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A joined shape: the canonical structure of a trace of several parts (net/part.h), a tree
 * of the shapes of its parts, as it travels in DELTA payloads (docs/FORMAT.md section 8,
 * item 20). And what one such trace, or many, took.
 *
 *     accept                 place 0                  nodes in preorder; equal siblings one
 *       message --> render   place 1                  after the other are one node, a run
 *         hand-off --> log   place 2
 *       message --> (missing)  place 3
 *
 * Use:
 *     end = mr_joined_put(id, nodes, count, bytes);   // MR_JOINED_SIZE_MAX at most
 *     if (!mr_joined_get(&span, &id, nodes, &count))  // nodes[MR_JOINED_NODES_MAX]
 *         it breaks the format
 */
#ifndef MR_NET_JOINED_H
#define MR_NET_JOINED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/span.h"

#define MR_JOINED_NODES_MAX 256u
#define MR_JOINED_SIZE_MAX (32u + MR_JOINED_NODES_MAX * 40u)

enum mr_joined_flag {
    MR_JOINED_MISSING = 1, /* its part was not seen; all else is zero */
    MR_JOINED_STUB = 2,    /* of a part without a call tree */
    MR_JOINED_RUN = 4,     /* one or more of it, one after the other */
    MR_JOINED_LARGE = 8,   /* what is below it is more than a shape can have */
    MR_JOINED_FLAGS = 15,
};

struct mr_joined_node {
    struct mr_id path, node; /* of the part: entry point, shape */
    uint32_t children;       /* that follow, each with what is below it */
    uint8_t kind;  /* enum mr_edge_kind of the edge above; NONE: the first node */
    uint8_t flags; /* enum mr_joined_flag, ored */
};

/* `id` is of the first node (mr_id_joined()). nodes: 1 .. MR_JOINED_NODES_MAX. */
uint8_t *mr_joined_put(struct mr_id id, const struct mr_joined_node *nodes,
                       uint32_t count, uint8_t *at);
/* False where the fields break the format, are no tree, or have another id. */
bool mr_joined_get(struct mr_span *in, struct mr_id *id,
                   struct mr_joined_node nodes[MR_JOINED_NODES_MAX], uint32_t *count);
/* The id of the tree that the nodes are. */
struct mr_id mr_joined_id(const struct mr_joined_node *nodes, uint32_t count);

#endif
