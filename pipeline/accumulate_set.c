/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "pipeline/accumulate_private.h"

#include <stdlib.h>
#include <string.h>

#define MIN_CAPACITY 64u
#define SPARSE_MIN 4096 /* slots, of a table with few entries in them */
#define SPARSE_RATIO 32

enum mr_status mr_acc_grow(void **array, uint32_t *capacity, uint32_t needed, size_t size)
{
    uint32_t grown = *capacity < MIN_CAPACITY ? MIN_CAPACITY : *capacity;
    uint8_t *moved;

    if (needed <= *capacity)
        return MR_OK;
    while (grown < needed)
        grown = grown > UINT32_MAX / 2 ? needed : grown * 2;
    moved = realloc(*array, grown * size);
    if (!moved)
        return MR_ENOMEM;
    memset(moved + *capacity * size, 0, (grown - *capacity) * size);
    *array = moved;
    *capacity = grown;
    return MR_OK;
}

enum mr_status mr_acc_set_init(struct mr_acc_set *set, size_t item_size, uint32_t limit)
{
    MR_ASSERT(item_size > 0);
    MR_ASSERT(limit > 0);
    *set = (struct mr_acc_set){.item_size = item_size, .limit = limit};
    mr_table_init(&set->table, limit);
    return MR_OK;
}

void mr_acc_set_fini(struct mr_acc_set *set)
{
    mr_table_fini(&set->table);
    free(set->items);
    set->items = NULL;
    set->count = set->capacity = 0;
}

void mr_acc_set_clear(struct mr_acc_set *set)
{
    size_t capacity = set->table.capacity;

    if (set->count == 0)
        return;
    /* Clearing takes time by capacity: after a rare burst the table starts small again. */
    if (capacity > SPARSE_MIN && set->count < capacity / SPARSE_RATIO)
        mr_table_fini(&set->table);
    else
        mr_table_clear(&set->table);
    set->count = 0;
}

enum mr_status mr_acc_set_take(struct mr_acc_set *set, struct mr_id key, uint32_t *index,
                               bool *is_new)
{
    void *items = set->items;
    enum mr_status status = MR_OK;

    if (set->count == set->capacity && set->count < set->limit) {
        status = mr_acc_grow(&items, &set->capacity, set->count + 1, set->item_size);
        set->items = items;
    }
    if (status == MR_OK)
        status = mr_table_find_or_add(&set->table, key, set->count, index);
    if (status != MR_OK)
        return status;
    *is_new = *index == set->count;
    set->count += *is_new;
    MR_DEBUG_ASSERT(set->count <= set->capacity);
    return MR_OK;
}
