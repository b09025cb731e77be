/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/shapes_set.h"

#include <stdlib.h>

#include "base/assert.h"

#define CAPACITY_FIRST 64u

/* qsort has no context: what is sorted by lies beside its node. Lists that are being made lie behind each other. */
struct mr_set_item {
    struct mr_id id, site_id;
    uint32_t site, node;
};

struct set_maker {
    struct mr_nodes *nodes;
    uint32_t unions_left;
};

static int by_id(const void *a, const void *b)
{
    const struct mr_set_item *left = a, *right = b;

    return mr_id_compare(left->id, right->id);
}

/* By ids alone: what is united before the bound is reached must not hang on the numbers that this lane has given. */
static int by_site(const void *a, const void *b)
{
    const struct mr_set_item *left = a, *right = b;

    if (left->site != right->site)
        return mr_id_compare(left->site_id, right->site_id);
    return by_id(a, b);
}

static struct mr_set_item item_of(const struct mr_nodes *nodes, uint32_t node)
{
    const struct mr_node *of = &nodes->items[node];

    return (struct mr_set_item){.id = of->id,
                                .site_id = mr_sites_at(nodes->sites, of->site)->id,
                                .site = of->site,
                                .node = node};
}

static bool push(struct mr_nodes *nodes, uint32_t node)
{
    if (nodes->set_count == nodes->set_capacity) {
        size_t capacity =
            nodes->set_capacity ? 2 * nodes->set_capacity : (size_t)CAPACITY_FIRST;
        struct mr_set_item *grown = realloc(nodes->set_items, capacity * sizeof(*grown));

        if (!grown)
            return false;
        nodes->set_items = grown;
        nodes->set_capacity = capacity;
    }
    nodes->set_items[nodes->set_count++] = item_of(nodes, node);
    return true;
}

static bool push_children(struct mr_nodes *nodes, uint32_t node)
{
    for (uint32_t i = 0; i < nodes->items[node].count; i++)
        if (!push(nodes, mr_child_node(nodes->children[nodes->items[node].first + i])))
            return false;
    return true;
}

static uint32_t unite(struct set_maker *maker, uint32_t a, uint32_t b, uint32_t depth);

static bool is_united(const struct set_maker *maker, uint32_t a, uint32_t b,
                      uint32_t depth)
{
    const struct mr_node *items = maker->nodes->items;

    return a != MR_NODE_NONE && items[a].site == items[b].site && depth > 0 &&
           maker->unions_left > 0;
}

/* One of each site of the list from `first` on, in the order of ids. */
static bool unite_list(struct set_maker *maker, size_t first, uint32_t depth)
{
    struct mr_nodes *nodes = maker->nodes;
    size_t end = nodes->set_count, kept = first;
    uint32_t read = MR_NODE_NONE, last = MR_NODE_NONE;

    qsort(nodes->set_items + first, end - first, sizeof(*nodes->set_items), by_site);
    for (size_t i = first; i < end; i++) {
        uint32_t node = nodes->set_items[i].node;

        if (node == read)
            continue;
        read = node;
        if (is_united(maker, last, node, depth)) {
            node = unite(maker, last, node, depth - 1);
            if (node == MR_NODE_NONE)
                return false;
            kept--;
        }
        nodes->set_items[kept++] = item_of(nodes, node); /* never past what was read */
        last = node;
    }
    nodes->set_count = kept;
    qsort(nodes->set_items + first, kept - first, sizeof(*nodes->set_items), by_id);
    return true;
}

static uint32_t intern_list(struct mr_nodes *nodes, uint32_t site, size_t first)
{
    size_t count = nodes->set_count - first;
    uint64_t *children;
    uint32_t node;

    children = malloc((count + 1) * sizeof(*children));
    if (!children)
        return MR_NODE_NONE;
    for (size_t i = 0; i < count; i++)
        children[i] = nodes->set_items[first + i].node;
    node = mr_nodes_intern_hashed(nodes,
                                  mr_node_hash(nodes, site, children, (uint32_t)count),
                                  site, children, (uint32_t)count);
    free(children);
    return node;
}

/* The node of a site that has been wherever one of two has. MR_NODE_NONE without memory, room or budget. */
static uint32_t unite(struct set_maker *maker, uint32_t a, uint32_t b, uint32_t depth)
{
    struct mr_nodes *nodes = maker->nodes;
    size_t first = nodes->set_count;
    uint32_t node = MR_NODE_NONE;

    MR_DEBUG_ASSERT(nodes->items[a].site == nodes->items[b].site);
    maker->unions_left--;
    if (push_children(nodes, a) && push_children(nodes, b) &&
        unite_list(maker, first, depth))
        node = intern_list(nodes, nodes->items[a].site, first);
    nodes->set_count = first;
    return node;
}

bool mr_set_make(struct mr_nodes *nodes, uint64_t *children, uint32_t *count)
{
    struct set_maker maker = {.nodes = nodes, .unions_left = MR_SET_UNIONS_MAX};
    bool is_made = true;

    nodes->is_refused = false;
    nodes->set_count = 0;
    if (*count < 2)
        return true;
    for (uint32_t i = 0; i < *count && is_made; i++)
        is_made = push(nodes, mr_child_node(children[i]));
    if (!is_made || !unite_list(&maker, 0, MR_SET_DEPTH_MAX))
        return false;
    for (size_t i = 0; i < nodes->set_count; i++)
        children[i] = nodes->set_items[i].node;
    *count = (uint32_t)nodes->set_count;
    return true;
}
