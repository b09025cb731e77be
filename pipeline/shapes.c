/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/pages.h"
#include "pipeline/shapes_set.h"

#define CAPACITY_FIRST 1024u
#define SCRATCH_MAX ((size_t)256 << 20)
/* Slots for a node, at least: a search that goes past the first one is a branch nobody foretells, and waits for memory once more. */
#define SPARSE 4u

/* By the key once more: lists can be chosen so that their hashes differ by what one knows, wherever these begin. */
static uint32_t first_slot(const struct mr_nodes *nodes, uint64_t hash)
{
    return (uint32_t)((hash ^ hash >> 29) * nodes->key >> 32) & nodes->slot_mask;
}

static uint32_t *slot_for(const struct mr_nodes *nodes, uint64_t hash)
{
    uint32_t at = first_slot(nodes, hash);

    while (nodes->slots[at] != MR_NODE_NONE)
        at = (at + 1) & nodes->slot_mask;
    return &nodes->slots[at];
}

static void fill_slots(struct mr_nodes *nodes)
{
    memset(nodes->slots, 0, ((size_t)nodes->slot_mask + 1) * sizeof(*nodes->slots));
    for (uint32_t i = 1; i < nodes->count; i++)
        *slot_for(nodes, nodes->items[i].hash) = i;
}

static bool resize(struct mr_nodes *nodes, uint32_t capacity)
{
    uint32_t slot_count = SPARSE * CAPACITY_FIRST;
    struct mr_node *items = realloc(nodes->items, capacity * sizeof(*items));
    uint32_t *slots;

    if (!items)
        return false;
    nodes->items = items;
    while (slot_count < SPARSE * capacity)
        slot_count *= 2;
    slots = mr_pages_alloc(slot_count * sizeof(*slots));
    if (!slots)
        return false;
    mr_pages_free(nodes->slots, ((size_t)nodes->slot_mask + 1) * sizeof(*nodes->slots));
    nodes->slots = slots;
    nodes->slot_mask = slot_count - 1;
    nodes->capacity = capacity;
    fill_slots(nodes);
    return true;
}

static bool make_child_room(struct mr_nodes *nodes, uint32_t count)
{
    uint32_t capacity = nodes->pool_capacity ? nodes->pool_capacity : CAPACITY_FIRST;
    uint64_t *grown;

    if (count > nodes->child_limit - nodes->child_count)
        return false;
    if (nodes->child_count + count <= nodes->pool_capacity)
        return true;
    while (capacity < nodes->child_count + count)
        capacity *= 2;
    grown = realloc(nodes->children, capacity * sizeof(*grown));
    if (!grown)
        return false;
    nodes->children = grown;
    nodes->pool_capacity = capacity;
    return true;
}

enum mr_status mr_nodes_init(struct mr_nodes *nodes, const struct mr_sites *sites,
                             enum mr_exactness exactness, uint32_t limit,
                             uint32_t child_limit)
{
    MR_ASSERT(limit >= 16 && child_limit >= 16);
    *nodes = (struct mr_nodes){.sites = sites,
                               .exactness = exactness,
                               .limit = limit,
                               .key = mr_hash_key(),
                               .child_limit = child_limit};
    mr_buffer_init(&nodes->scratch, SCRATCH_MAX);
    if (!resize(nodes, limit < CAPACITY_FIRST ? limit : CAPACITY_FIRST) ||
        !make_child_room(nodes, 0)) {
        mr_nodes_fini(nodes);
        return MR_ENOMEM;
    }
    nodes->items[0] =
        (struct mr_node){.site = UINT32_MAX, .count = UINT32_MAX}; /* is never found */
    nodes->count = 1;
    return MR_OK;
}

void mr_nodes_fini(struct mr_nodes *nodes)
{
    free(nodes->items);
    free(nodes->children);
    mr_pages_free(nodes->slots, ((size_t)nodes->slot_mask + 1) * sizeof(*nodes->slots));
    free(nodes->id_children);
    free(nodes->set_items);
    mr_buffer_fini(&nodes->scratch);
    *nodes = (struct mr_nodes){.limit = nodes->limit};
}

static bool make_room(struct mr_nodes *nodes, uint32_t child_count)
{
    uint32_t capacity;

    if (!make_child_room(nodes, child_count))
        return false;
    if (nodes->count < nodes->capacity)
        return true;
    if (nodes->count >= nodes->limit)
        return false;
    capacity = nodes->capacity < nodes->limit / 2 ? 2 * nodes->capacity : nodes->limit;
    return resize(nodes, capacity);
}

static bool make_id_room(struct mr_nodes *nodes, uint32_t count)
{
    struct mr_node_child *grown;

    if (count <= nodes->id_capacity)
        return true;
    grown = realloc(nodes->id_children, 2 * (size_t)count * sizeof(*grown));
    if (!grown)
        return false;
    nodes->id_children = grown;
    nodes->id_capacity = 2 * count;
    return true;
}

static enum mr_status make_id(struct mr_nodes *nodes, uint32_t site,
                              const uint64_t *children, uint32_t count, struct mr_id *id)
{
    if (!make_id_room(nodes, count))
        return MR_ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        nodes->id_children[i] =
            (struct mr_node_child){.id = nodes->items[mr_child_node(children[i])].id,
                                   .repeat = mr_child_repeat(children[i])};
    return mr_id_node(nodes->exactness, mr_sites_at(nodes->sites, site)->id,
                      nodes->id_children, count, &nodes->scratch, id);
}

static uint32_t add(struct mr_nodes *nodes, uint64_t hash, uint32_t site,
                    const uint64_t *children, uint32_t count)
{
    struct mr_node node = {
        .hash = hash, .site = site, .first = nodes->child_count, .count = count};

    nodes->is_refused = nodes->budget && !mr_node_budget_takes(nodes->budget, hash);
    if (nodes->is_refused || !make_room(nodes, count) ||
        make_id(nodes, site, children, count, &node.id) != MR_OK)
        return MR_NODE_NONE;
    if (count)
        memcpy(nodes->children + node.first, children, count * sizeof(*children));
    nodes->child_count += count;
    *slot_for(nodes, hash) = nodes->count;
    nodes->items[nodes->count] = node;
    return nodes->count++;
}

uint32_t mr_nodes_find_hashed(const struct mr_nodes *nodes, uint64_t hash, uint32_t site,
                              const uint64_t *children, uint32_t count)
{
    uint32_t at = first_slot(nodes, hash), number;

    while ((number = nodes->slots[at]) != MR_NODE_NONE &&
           !mr_node_is(nodes, number, hash, site, children, count))
        at = (at + 1) & nodes->slot_mask;
    return number;
}

uint32_t mr_nodes_intern_hashed(struct mr_nodes *nodes, uint64_t hash, uint32_t site,
                                const uint64_t *children, uint32_t count)
{
    uint32_t number = mr_nodes_find_hashed(nodes, hash, site, children, count);

    return number == MR_NODE_NONE ? add(nodes, hash, site, children, count) : number;
}

uint32_t mr_nodes_intern(struct mr_nodes *nodes, uint32_t site, uint64_t *children,
                         uint32_t count)
{
    if (nodes->exactness == MR_EXACTNESS_SET && !mr_set_make(nodes, children, &count))
        return MR_NODE_NONE;
    return mr_nodes_intern_hashed(nodes, mr_node_hash(nodes, site, children, count), site,
                                  children, count);
}

enum mr_status mr_nodes_item(const struct mr_nodes *nodes, uint32_t number,
                             struct mr_buffer *children, struct mr_dict_item *item)
{
    const struct mr_node *node = &nodes->items[number];

    mr_buffer_clear(children);
    for (uint32_t i = 0; i < node->count; i++) {
        uint64_t child = nodes->children[node->first + i];
        struct mr_node_child wire = {.id = nodes->items[mr_child_node(child)].id,
                                     .repeat = mr_child_repeat(child)};
        enum mr_status status = mr_node_child_put(children, &wire);

        if (status != MR_OK)
            return status;
    }
    *item =
        (struct mr_dict_item){.kind = MR_DICT_NODE,
                              .node = {.id = node->id,
                                       .site = mr_sites_at(nodes->sites, node->site)->id,
                                       .exactness = nodes->exactness,
                                       .children = mr_buffer_span(children)}};
    return MR_OK;
}

/* Children are older than their parents, so one pass from the youngest reaches everything below what is kept. */
static void keep_below(struct mr_nodes *nodes)
{
    for (uint32_t i = nodes->count; i-- > 1;) {
        const struct mr_node *node = &nodes->items[i];

        for (uint32_t j = 0; (node->flags & MR_NODE_KEEP) && j < node->count; j++)
            mr_nodes_keep(nodes, mr_child_node(nodes->children[node->first + j]));
    }
}

void mr_nodes_forget(struct mr_nodes *nodes, uint32_t *map)
{
    uint32_t kept = 1, used = 0;

    keep_below(nodes);
    map[0] = MR_NODE_NONE;
    for (uint32_t i = 1; i < nodes->count; i++) {
        struct mr_node node = nodes->items[i];
        uint32_t first = used;

        map[i] = MR_NODE_NONE;
        if (!(node.flags & MR_NODE_KEEP))
            continue;
        for (uint32_t j = 0; j < node.count; j++) {
            uint64_t child = nodes->children[node.first + j];

            nodes->children[used++] =
                mr_child_repeat(child) << 32 | map[mr_child_node(child)];
        }
        node.first = first;
        node.flags &= ~(uint32_t)MR_NODE_KEEP;
        node.hash = mr_node_hash(nodes, node.site, nodes->children + first, node.count);
        map[i] = kept;
        nodes->items[kept++] = node;
    }
    nodes->count = kept;
    nodes->child_count = used;
    fill_slots(nodes);
}
