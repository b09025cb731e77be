/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes by structure: distinct subtrees of call trees are stored once (hash-consed). A node is a site and the list of its
 * children, which are nodes themselves; a cheap hash of these small numbers finds it, a comparison makes sure, and its
 * 128-bit id (net/ids.h), equal everywhere, is computed only when it is new.
 *
 *     child:  repeat (high 32 bits, 0 = one or more) | node (low 32)
 *
 * The hash of a folded list is made as the list grows, under a key that no sender knows: whether a list is that of a node which it
 * likely is, 64 bits and a count tell; any other is found by one search.
 *
 * Exactness (FORMAT.md section 7) decides how a list grows: folded and exact append, a run of equal children being one
 * entry; set keeps one child of a site, which has been wherever any of them was, in the order of their ids
 * (pipeline/shapes_set.h). Lists of open calls lie on a stack per stream (struct
 * mr_child_stack), innermost on top.
 *
 * Limits: `limit` nodes and `child_limit` entries of stored lists. Nothing is evicted: when full, the owner forgets all but
 * what open lists need. How many new ones are taken at all, `budget` says, which its owner sets and refills; there is none
 * at first. One thread.
 */
#ifndef MR_PIPELINE_SHAPES_H
#define MR_PIPELINE_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/id.h"
#include "base/status.h"
#include "net/control.h"
#include "net/ids.h"
#include "pipeline/node_budget.h"
#include "pipeline/sites.h"

#define MR_NODE_NONE 0u /* node 0 is none */

enum mr_node_flag {
    MR_NODE_TOLD = 1, /* its definition went upward, or waits to */
    MR_NODE_KEEP = 2
};

struct mr_node {
    uint64_t hash;
    uint32_t site;
    uint32_t first, count; /* its children in the pool */
    uint32_t flags;
    struct mr_id id;
};

struct mr_nodes {
    const struct mr_sites *sites;
    enum mr_exactness exactness;
    struct mr_node *items;
    uint32_t count, capacity, limit;
    uint64_t *children; /* the pool */
    uint32_t child_count, child_limit;
    uint32_t pool_capacity;
    uint32_t *slots;
    uint32_t slot_mask;
    uint64_t key;                      /* of hashes and slots: mr_hash_key() */
    struct mr_node_child *id_children; /* scratch */
    uint32_t id_capacity;
    struct mr_set_item *set_items; /* scratch of shapes_set.c */
    size_t set_count, set_capacity;
    struct mr_buffer scratch;
    struct mr_node_budget *budget; /* borrowed; NULL: every node is taken */
    bool is_refused; /* the last new node was one that the budget does not take */
};

static inline uint32_t mr_child_node(uint64_t child)
{
    return (uint32_t)child;
}
static inline uint64_t mr_child_repeat(uint64_t child)
{
    return child >> 32;
}

/* The limits are at least 16. MR_ENOMEM. */
enum mr_status mr_nodes_init(struct mr_nodes *nodes, const struct mr_sites *sites,
                             enum mr_exactness exactness, uint32_t limit,
                             uint32_t child_limit);
void mr_nodes_fini(struct mr_nodes *nodes);

/* Of a site and an empty list; then of the same with one more child. */
static MR_ALWAYS_INLINE uint64_t mr_node_hash_first(const struct mr_nodes *nodes,
                                                    uint32_t site)
{
    return (site + nodes->key) * UINT64_C(0x9e3779b97f4a7c15);
}
static MR_ALWAYS_INLINE uint64_t mr_node_hash_next(uint64_t hash, uint64_t child)
{
    return (hash ^ hash >> 32 ^ child) * UINT64_C(0xff51afd7ed558ccd);
}
/* What these come to for a whole list. */
static MR_ALWAYS_INLINE uint64_t mr_node_hash(const struct mr_nodes *nodes, uint32_t site,
                                              const uint64_t *children, uint32_t count)
{
    uint64_t hash = mr_node_hash_first(nodes, site);

    for (uint32_t i = 0; i < count; i++)
        hash = mr_node_hash_next(hash, children[i]);
    return hash;
}

/* Whether a list of this hash and length, of the site of node `number`, is that node's. */
static MR_ALWAYS_INLINE bool mr_node_has(const struct mr_nodes *nodes, uint32_t number,
                                         uint64_t hash, uint32_t count)
{
    const struct mr_node *node = &nodes->items[number];

    return node->hash == hash && node->count == count;
}

/* Whether node `number` is this one. */
static MR_ALWAYS_INLINE bool mr_node_is(const struct mr_nodes *nodes, uint32_t number,
                                        uint64_t hash, uint32_t site,
                                        const uint64_t *children, uint32_t count)
{
    const struct mr_node *node = &nodes->items[number];

    if (node->hash != hash || node->site != site || node->count != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (nodes->children[node->first + i] != children[i])
            return false;
    return true;
}

/*
 * The node of a site with these children (each of them of this table; for `set`: any order, doubles allowed; the list is
 * sorted in place). MR_NODE_NONE when it is new and there is no room, or, if `is_refused` is set then, no budget.
 */
uint32_t mr_nodes_intern(struct mr_nodes *nodes, uint32_t site, uint64_t *children,
                         uint32_t count);
/* The same, for a list that needs no sorting and whose hash is known. */
uint32_t mr_nodes_intern_hashed(struct mr_nodes *nodes, uint64_t hash, uint32_t site,
                                const uint64_t *children, uint32_t count);
/* The same, but none is made: MR_NODE_NONE when it is new. */
uint32_t mr_nodes_find_hashed(const struct mr_nodes *nodes, uint64_t hash, uint32_t site,
                              const uint64_t *children, uint32_t count);

/* The definition of a node for the wire; `children` (cleared) holds its bytes. MR_ELIMIT, MR_ENOMEM. */
enum mr_status mr_nodes_item(const struct mr_nodes *nodes, uint32_t number,
                             struct mr_buffer *children, struct mr_dict_item *item);

/* Marks a node to survive the next forget. */
static inline void mr_nodes_keep(struct mr_nodes *nodes, uint32_t number)
{
    nodes->items[number].flags |= MR_NODE_KEEP;
}
/*
 * Forgets all nodes that are not kept, directly or below a kept one. `map` (of capacity `count`) tells the new number of
 * each old one. The marks are taken off.
 */
void mr_nodes_forget(struct mr_nodes *nodes, uint32_t *map);

#endif
