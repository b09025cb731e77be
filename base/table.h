/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from ids to indices: open addressing, linear probing, a power of two of
 * 24-byte slots, at most 3/4 full. It grows by rehashing up to a limit of entries. Each
 * hashes by a key of its own, so that ids which a stranger chose do not meet. The indices
 * point into an array of the caller's, who owns the struct. One thread at a time.
 *
 * Use:
 *     struct mr_table sites;
 *     mr_table_init(&sites, 1 << 20);
 *     uint32_t index;
 *     status = mr_table_find_or_add(&sites, id, site_count, &index);
 *     if (status == MR_OK && index == site_count)
 *         sites_array[site_count++] = new_site;
 */
#ifndef MR_BASE_TABLE_H
#define MR_BASE_TABLE_H

#include "base/id.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_TABLE_NONE UINT32_MAX               /* no index */
#define MR_TABLE_COUNT_MAX (UINT32_C(1) << 31) /* largest limit */

struct mr_table_slot {
    struct mr_id id;
    uint32_t entry; /* index + 1; 0: free */
};

struct mr_table {
    struct mr_table_slot *slots;
    size_t capacity; /* slots; a power of two, or 0 before the first entry */
    uint64_t key;    /* of their hash: mr_hash_key(), since there are slots */
    uint32_t count;
    uint32_t limit;
};

/*
 * An empty table for at most `limit` (1 to MR_TABLE_COUNT_MAX) entries. Allocates nothing
 * yet.
 */
void mr_table_init(struct mr_table *table, uint32_t limit);

/* Frees the memory. Allowed again after itself. */
void mr_table_fini(struct mr_table *table);

/* Forgets all entries, keeps the memory. */
void mr_table_clear(struct mr_table *table);

/* The index of `id`, or MR_TABLE_NONE. */
uint32_t mr_table_find(const struct mr_table *table, struct mr_id id);

/*
 * Gives the index of `id`, which becomes `new_index` (not MR_TABLE_NONE) if the id is
 * new. MR_ELIMIT when the table is full, MR_ENOMEM; the table is unchanged then, and ids
 * it holds are still found. A limit of n entries takes at most 64 n bytes (while growing:
 * 1.5 times that).
 */
enum mr_status mr_table_find_or_add(struct mr_table *table, struct mr_id id,
                                    uint32_t new_index, uint32_t *index);

/* Sets the index of `id`, new or not. Failures as above. */
enum mr_status mr_table_put(struct mr_table *table, struct mr_id id, uint32_t index);

/* Forgets one id; false when it was not there. */
bool mr_table_remove(struct mr_table *table, struct mr_id id);

/* Bytes of memory held. */
static inline size_t mr_table_bytes(const struct mr_table *table)
{
    return table->capacity * sizeof(struct mr_table_slot);
}

#endif
