/* SPDX-License-Identifier: Apache-2.0 */
#include "master/cow.h"

#include "base/assert.h"
#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

#define ARRAY_BITS 5

struct mr_cow_node {
    struct mr_cow_head head;
    struct mr_cow_head *slots[MR_COW_FANOUT]; /* nodes, or records at the last level */
};

_Static_assert(1 << ARRAY_BITS == MR_COW_FANOUT, "fan-out is a power of two");

void mr_cow_init(struct mr_cow *cow, const struct mr_cow_type *type)
{
    MR_ASSERT(type && type->clone && type->free);
    *cow = (struct mr_cow){.type = type, .generation = 1};
}

static void free_item(const struct mr_cow_type *type, struct mr_cow_head *item)
{
    if (item->kind >= MR_COW_KIND_NODE)
        free(item);
    else
        type->free(item);
}

void mr_cow_garbage_free(struct mr_cow_garbage *chain)
{
    while (chain) {
        struct mr_cow_garbage *next = chain->next;

        for (uint32_t i = 0; i < chain->count; i++)
            free_item(chain->type, chain->items[i]);
        free(chain);
        chain = next;
    }
}

void mr_cow_fini(struct mr_cow *cow)
{
    mr_cow_garbage_free(cow->garbage);
    cow->garbage = NULL;
}

struct mr_cow_garbage *mr_cow_publish(struct mr_cow *cow)
{
    struct mr_cow_garbage *chain = cow->garbage;

    cow->garbage = NULL;
    cow->generation++;
    return chain;
}

/* Room for one more retired thing, so that a change can be made in full or not at all. */
static enum mr_status reserve_garbage(struct mr_cow *cow)
{
    if (cow->garbage && cow->garbage->count < MR_COW_GARBAGE_ITEMS)
        return MR_OK;
    struct mr_cow_garbage *chunk = malloc(sizeof(*chunk));
    if (!chunk)
        return MR_ENOMEM;
    chunk->type = cow->type;
    chunk->next = cow->garbage;
    chunk->count = 0;
    cow->garbage = chunk;
    return MR_OK;
}

enum mr_status mr_cow_retire(struct mr_cow *cow, struct mr_cow_head *record)
{
    if (record->generation == cow->generation) { /* never published */
        free_item(cow->type, record);
        return MR_OK;
    }
    enum mr_status status = reserve_garbage(cow);
    if (status == MR_OK)
        cow->garbage->items[cow->garbage->count++] = record;
    return status;
}

static struct mr_cow_node *new_node(struct mr_cow *cow)
{
    struct mr_cow_node *node = calloc(1, sizeof(*node));

    if (node)
        node->head =
            (struct mr_cow_head){.generation = cow->generation, .kind = MR_COW_KIND_NODE};
    return node;
}

/* `node` itself if it is the writer's, else a copy of it. NULL: no memory. */
static struct mr_cow_node *own_node(struct mr_cow *cow, struct mr_cow_node *node)
{
    if (!node)
        return new_node(cow);
    if (node->head.generation == cow->generation)
        return node;
    if (reserve_garbage(cow) != MR_OK)
        return NULL;
    struct mr_cow_node *copy = malloc(sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *node;
    copy->head.generation = cow->generation;
    cow->garbage->items[cow->garbage->count++] = &node->head;
    return copy;
}

static uint32_t slot_of(uint32_t index, uint32_t level)
{
    return index >> (ARRAY_BITS * level) & (MR_COW_FANOUT - 1);
}

/* Whether `levels` levels of nodes reach `index`. */
static bool reaches(uint32_t levels, uint32_t index)
{
    return levels * ARRAY_BITS >= 32 || index >> (levels * ARRAY_BITS) == 0;
}

void *mr_cow_get(const struct mr_cow_array *array, uint32_t index)
{
    const struct mr_cow_node *node = array->root;

    if (!node || !reaches(array->levels, index))
        return NULL;
    for (uint32_t level = array->levels; node && --level > 0;)
        node =
            (const struct mr_cow_node *)(const void *)node->slots[slot_of(index, level)];
    return node ? node->slots[slot_of(index, 0)] : NULL;
}

static enum mr_status grow(struct mr_cow *cow, struct mr_cow_array *array, uint32_t index)
{
    while (!array->root || !reaches(array->levels, index)) {
        struct mr_cow_node *top = new_node(cow);

        if (!top)
            return MR_ENOMEM;
        if (array->root)
            top->slots[0] = &array->root->head;
        array->root = top;
        array->levels++;
    }
    return MR_OK;
}

/* The writer's own slot for `index`; NULL: no memory. */
static struct mr_cow_head **own_slot(struct mr_cow *cow, struct mr_cow_array *array,
                                     uint32_t index)
{
    if (grow(cow, array, index) != MR_OK)
        return NULL;
    struct mr_cow_node *node = own_node(cow, array->root);
    if (!node)
        return NULL;
    array->root = node;
    for (uint32_t level = array->levels; --level > 0;) {
        struct mr_cow_head **slot = &node->slots[slot_of(index, level)];
        struct mr_cow_node *child = (struct mr_cow_node *)(void *)*slot;

        child = own_node(cow, child);
        if (!child)
            return NULL;
        *slot = &child->head;
        node = child;
    }
    return &node->slots[slot_of(index, 0)];
}

void *mr_cow_edit(struct mr_cow *cow, struct mr_cow_array *array, uint32_t index)
{
    struct mr_cow_head *record = mr_cow_get(array, index);

    if (!record || record->generation == cow->generation)
        return record;
    struct mr_cow_head **slot = own_slot(cow, array, index);
    if (!slot || reserve_garbage(cow) != MR_OK)
        return NULL;
    struct mr_cow_head *copy = cow->type->clone(record);
    if (!copy)
        return NULL;
    copy->generation = cow->generation;
    cow->garbage->items[cow->garbage->count++] = record;
    *slot = copy;
    return copy;
}

enum mr_status mr_cow_put(struct mr_cow *cow, struct mr_cow_array *array, uint32_t index,
                          struct mr_cow_head *record)
{
    MR_ASSERT(record && index != MR_COW_NONE);
    struct mr_cow_head **slot = own_slot(cow, array, index);
    if (!slot)
        return MR_ENOMEM;
    if (*slot && mr_cow_retire(cow, *slot) != MR_OK)
        return MR_ENOMEM;
    record->generation = cow->generation;
    *slot = record;
    if (index >= array->count)
        array->count = index + 1;
    return MR_OK;
}

/* What a walk carries down; `each` sees records, `leave` nodes after what is below. */
struct walk {
    uint64_t since;
    mr_cow_each *each;
    void *context;
    enum mr_status (*leave)(void *context, struct mr_cow_head *node);
};

static enum mr_status walk_node(const struct walk *walk, struct mr_cow_node *node,
                                uint32_t level, uint32_t base)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < MR_COW_FANOUT && status == MR_OK; i++) {
        struct mr_cow_head *below = node->slots[i];
        uint32_t index = base | i << (ARRAY_BITS * level);

        if (!below || below->generation <= walk->since)
            continue;
        if (level == 0)
            status = walk->each(walk->context, index, below);
        else
            status =
                walk_node(walk, (struct mr_cow_node *)(void *)below, level - 1, index);
    }
    if (status == MR_OK && walk->leave)
        status = walk->leave(walk->context, &node->head);
    return status;
}

enum mr_status mr_cow_walk(const struct mr_cow_array *array, uint64_t since,
                           mr_cow_each *each, void *context)
{
    const struct walk walk = {.since = since, .each = each, .context = context};

    if (!array->root || array->root->head.generation <= since)
        return MR_OK;
    return walk_node(&walk, array->root, array->levels - 1, 0);
}

static enum mr_status retire_record(void *context, uint32_t index, const void *record)
{
    MR_UNUSED(index);
    return mr_cow_retire(context, (struct mr_cow_head *)(uintptr_t)record);
}

static enum mr_status retire_node(void *context, struct mr_cow_head *node)
{
    return mr_cow_retire(context, node);
}

enum mr_status mr_cow_drop(struct mr_cow *cow, struct mr_cow_array *array)
{
    const struct walk walk = {
        .each = retire_record, .leave = retire_node, .context = cow};
    enum mr_status status = MR_OK;

    if (array->root)
        status = walk_node(&walk, array->root, array->levels - 1, 0);
    *array = (struct mr_cow_array){NULL, 0, 0};
    return status;
}

static enum mr_status free_record(void *context, uint32_t index, const void *record)
{
    const struct mr_cow *cow = context;

    MR_UNUSED(index);
    cow->type->free((struct mr_cow_head *)(uintptr_t)record);
    return MR_OK;
}

static enum mr_status free_node(void *context, struct mr_cow_head *node)
{
    MR_UNUSED(context);
    free(node);
    return MR_OK;
}

void mr_cow_array_fini(struct mr_cow *cow, struct mr_cow_array *array)
{
    const struct walk walk = {.each = free_record, .leave = free_node, .context = cow};

    if (array->root)
        (void)walk_node(&walk, array->root, array->levels - 1, 0);
    *array = (struct mr_cow_array){NULL, 0, 0};
}
