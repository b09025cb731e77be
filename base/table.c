/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define MIN_CAPACITY 16

void mr_table_init(struct mr_table *table, uint32_t limit)
{
    MR_ASSERT(table);
    MR_ASSERT(limit >= 1 && limit <= MR_TABLE_COUNT_MAX);
    *table = (struct mr_table){.limit = limit};
}

void mr_table_fini(struct mr_table *table)
{
    MR_ASSERT(table);
    free(table->slots);
    *table = (struct mr_table){.limit = table->limit};
}

void mr_table_clear(struct mr_table *table)
{
    if (table->slots)
        memset(table->slots, 0, mr_table_bytes(table));
    table->count = 0;
}

/*
 * The slot that holds `id`, or the free one where it belongs. There is always a free
 * slot.
 */
static struct mr_table_slot *slot_of(struct mr_table_slot *slots, size_t capacity,
                                     uint64_t key, struct mr_id id)
{
    size_t mask = capacity - 1;
    size_t at = (size_t)mr_id_hash(id, key) & mask;

    MR_DEBUG_ASSERT(capacity && (capacity & mask) == 0);
    while (slots[at].entry && !mr_id_equal(slots[at].id, id))
        at = (at + 1) & mask;
    return &slots[at];
}

uint32_t mr_table_find(const struct mr_table *table, struct mr_id id)
{
    if (table->count == 0)
        return MR_TABLE_NONE;
    /* A free slot's entry is 0, and 0 - 1 is MR_TABLE_NONE. */
    return slot_of(table->slots, table->capacity, table->key, id)->entry - 1;
}

static enum mr_status rehash(struct mr_table *table, size_t capacity)
{
    struct mr_table_slot *slots = calloc(capacity, sizeof(*slots));

    if (!slots)
        return MR_ENOMEM;
    if (table->capacity == 0)
        table->key = mr_hash_key();
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].entry)
            *slot_of(slots, capacity, table->key, table->slots[i].id) = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return MR_OK;
}

/*
 * Room for one more entry: at most 3/4 of the slots in use, beyond which linear probing's
 * chains grow long.
 */
static enum mr_status make_room(struct mr_table *table)
{
    if (table->count >= table->limit)
        return MR_ELIMIT;
    if ((size_t)table->count + 1 <= table->capacity / 4 * 3)
        return MR_OK;
    return rehash(table, table->capacity ? table->capacity * 2 : MIN_CAPACITY);
}

static enum mr_status add(struct mr_table *table, struct mr_id id, uint32_t index)
{
    enum mr_status status = make_room(table);

    if (status != MR_OK)
        return status;
    *slot_of(table->slots, table->capacity, table->key, id) =
        (struct mr_table_slot){id, index + 1};
    table->count++;
    return MR_OK;
}

enum mr_status mr_table_find_or_add(struct mr_table *table, struct mr_id id,
                                    uint32_t new_index, uint32_t *index)
{
    enum mr_status status;
    uint32_t found = mr_table_find(table, id);

    MR_ASSERT(new_index != MR_TABLE_NONE);
    MR_ASSERT(index);
    if (found != MR_TABLE_NONE) {
        *index = found;
        return MR_OK;
    }
    status = add(table, id, new_index);
    if (status == MR_OK)
        *index = new_index;
    return status;
}

enum mr_status mr_table_put(struct mr_table *table, struct mr_id id, uint32_t index)
{
    MR_ASSERT(index != MR_TABLE_NONE);
    if (mr_table_find(table, id) == MR_TABLE_NONE)
        return add(table, id, index);
    slot_of(table->slots, table->capacity, table->key, id)->entry = index + 1;
    return MR_OK;
}

/*
 * Linear probing without tombstones (Knuth, volume 3, 6.4, algorithm R): whatever stands
 * behind the hole moves into it, unless it would then stand before its own place.
 */
bool mr_table_remove(struct mr_table *table, struct mr_id id)
{
    size_t mask = table->capacity - 1, hole, at;

    if (mr_table_find(table, id) == MR_TABLE_NONE)
        return false;
    hole =
        (size_t)(slot_of(table->slots, table->capacity, table->key, id) - table->slots);
    for (at = (hole + 1) & mask; table->slots[at].entry; at = (at + 1) & mask) {
        size_t home = (size_t)mr_id_hash(table->slots[at].id, table->key) & mask;

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        table->slots[hole] = table->slots[at];
        hole = at;
    }
    table->slots[hole] = (struct mr_table_slot){{0, 0}, 0};
    table->count--;
    return true;
}
