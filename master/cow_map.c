/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trie of mr_cow_map: level n branches on bits 4n .. 4n+3 of the hash. Two ids that
 * share all 64 bits (which takes luck, or the map's key) end in a chain of leaves.
 */
#include "master/cow.h"

#include "base/assert.h"
#include "base/hash.h"

#include <stdlib.h>

#define MAP_BITS 4
#define MAP_LEVELS (64 / MAP_BITS)

struct map_node {
    struct mr_cow_head head;
    void *slots[MR_COW_MAP_FANOUT];
};

struct map_leaf {
    struct mr_cow_head head;
    struct mr_id id;
    uint32_t index;
    const struct map_leaf *next; /* same hash */
};

_Static_assert(1 << MAP_BITS == MR_COW_MAP_FANOUT, "fan-out is a power of two");

static bool is_leaf(const void *slot)
{
    return (uintptr_t)slot & 1;
}

static struct map_leaf *leaf_of(const void *slot)
{
    MR_DEBUG_ASSERT(is_leaf(slot));
    return (struct map_leaf *)((uintptr_t)slot & ~(uintptr_t)1);
}

static void *slot_of(struct map_leaf *leaf)
{
    return (void *)((uintptr_t)leaf | 1);
}

static uint32_t branch(uint64_t hash, uint32_t level)
{
    return (uint32_t)(hash >> (MAP_BITS * level)) & (MR_COW_MAP_FANOUT - 1);
}

uint32_t mr_cow_map_find(const struct mr_cow_map *map, struct mr_id id)
{
    uint64_t hash = mr_id_hash(id, map->key);
    const void *slot = map->root;

    for (uint32_t level = 0; slot && !is_leaf(slot); level++)
        slot = ((const struct map_node *)slot)->slots[branch(hash, level)];
    if (!slot)
        return MR_COW_NONE;
    for (const struct map_leaf *leaf = leaf_of(slot); leaf; leaf = leaf->next)
        if (mr_id_equal(leaf->id, id))
            return leaf->index;
    return MR_COW_NONE;
}

static struct map_node *new_node(const struct mr_cow *cow)
{
    struct map_node *node = calloc(1, sizeof(*node));

    if (node)
        node->head = (struct mr_cow_head){.generation = cow->generation,
                                          .kind = MR_COW_KIND_MAP_NODE};
    return node;
}

static struct map_node *own_node(struct mr_cow *cow, struct map_node *node)
{
    if (node->head.generation == cow->generation)
        return node;
    struct map_node *copy = malloc(sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *node;
    copy->head.generation = cow->generation;
    if (mr_cow_retire(cow, &node->head) != MR_OK) {
        free(copy);
        return NULL;
    }
    return copy;
}

/* Pushes the leaf in *slot one level down. False: no memory, nothing changed. */
static bool split(const struct mr_cow *cow, const struct mr_cow_map *map, void **slot,
                  uint32_t level)
{
    struct map_node *node = new_node(cow);

    if (!node)
        return false;
    node->slots[branch(mr_id_hash(leaf_of(*slot)->id, map->key), level)] = *slot;
    *slot = node;
    return true;
}

static enum mr_status insert(struct mr_cow *cow, struct mr_cow_map *map,
                             struct map_leaf *leaf)
{
    uint64_t hash = mr_id_hash(leaf->id, map->key);
    void **slot = &map->root;

    for (uint32_t level = 0; *slot; level++) {
        if (is_leaf(*slot) &&
            (level == MAP_LEVELS || mr_id_hash(leaf_of(*slot)->id, map->key) == hash)) {
            leaf->next = leaf_of(*slot);
            break;
        }
        if (is_leaf(*slot) && !split(cow, map, slot, level))
            return MR_ENOMEM;
        struct map_node *node = own_node(cow, *slot);
        if (!node)
            return MR_ENOMEM;
        *slot = node;
        slot = &node->slots[branch(hash, level)];
    }
    *slot = slot_of(leaf);
    map->count++;
    return MR_OK;
}

enum mr_status mr_cow_map_add(struct mr_cow *cow, struct mr_cow_map *map, struct mr_id id,
                              uint32_t index)
{
    MR_DEBUG_ASSERT(mr_cow_map_find(map, id) == MR_COW_NONE);
    struct map_leaf *leaf = malloc(sizeof(*leaf));
    if (!leaf)
        return MR_ENOMEM;
    if (!map->root)
        map->key = mr_hash_key();
    *leaf = (struct map_leaf){
        .head = {.generation = cow->generation, .kind = MR_COW_KIND_MAP_LEAF},
        .id = id,
        .index = index,
    };
    enum mr_status status = insert(cow, map, leaf);
    if (status != MR_OK)
        free(leaf);
    return status;
}

static void free_slot(void *slot)
{
    if (slot && is_leaf(slot)) {
        for (const struct map_leaf *leaf = leaf_of(slot), *next; leaf; leaf = next) {
            next = leaf->next;
            free((void *)(uintptr_t)leaf);
        }
        return;
    }
    struct map_node *node = slot;
    for (uint32_t i = 0; node && i < MR_COW_MAP_FANOUT; i++)
        free_slot(node->slots[i]);
    free(node);
}

void mr_cow_map_fini(struct mr_cow_map *map)
{
    free_slot(map->root);
    *map = (struct mr_cow_map){.root = NULL};
}
