/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Persistent tables: one writer changes them, readers keep the version they took. Every
 * node and record begins with the generation that made it. Within a generation the
 * writer changes its own things in place; what an older generation made is copied on
 * the first change, and the old copy is retired, to be freed when no reader can have it.
 *
 *     generation 7 (published)          generation 8 (the writer's)
 *         root ---------+                   root'
 *        /    \         |                  /    \
 *     leaf    leaf <----|-----------------+      leaf'
 *    / | \    / | \     +--- shared         \   / | \
 *   records  records                         records, one of them copied
 *
 * An array maps 0 .. count-1 (or any sparse u32) to records, by 32-way radix nodes. A map
 * takes ids to indices, by a 16-way trie over mr_id_hash(), under a key of its own; its leaves never change. Since
 * nodes are stamped, what changed after generation g is found by walking only nodes with
 * a later stamp.
 *
 * Writing: one thread at a time. Reading: any thread, on an array or map (a plain value)
 * that was copied out of something published. Freeing is the caller's: mr_cow_publish()
 * gives the retired things as one chain.
 *
 * Use:
 *     struct record *r = mr_cow_edit(&cow, &array, index);     // NULL: no memory
 *     r->count++;
 *     publish(array);
 *     call_rcu(..., mr_cow_publish(&cow));
 */
#ifndef MR_MASTER_COW_H
#define MR_MASTER_COW_H

#include "base/id.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define RCU_MEMBARRIER /* the memb flavour */
#include <urcu.h>

#define MR_COW_FANOUT 32     /* of array nodes */
#define MR_COW_MAP_FANOUT 16 /* of map nodes */
#define MR_COW_NONE UINT32_MAX

/* First member of every record and node. */
struct mr_cow_head {
    uint64_t generation;
    uint32_t kind; /* below MR_COW_KIND_NODE: the user's */
};

enum mr_cow_kind {
    MR_COW_KIND_NODE = 1u << 16,
    MR_COW_KIND_MAP_NODE,
    MR_COW_KIND_MAP_LEAF,
};

struct mr_cow_node;

struct mr_cow_array {
    struct mr_cow_node *root; /* NULL when empty */
    uint32_t count;           /* one more than the largest index pushed */
    uint32_t levels;          /* of nodes */
};

struct mr_cow_map {
    void *root; /* NULL, node, or leaf with bit 0 set */
    uint32_t count;
    uint64_t key; /* of the hash: mr_hash_key(), since there is a root */
};

#define MR_COW_GARBAGE_ITEMS 500 /* a chunk is about a page */

struct mr_cow_garbage {
    struct rcu_head rcu; /* of the first chunk of a chain */
    const struct mr_cow_type *type;
    struct mr_cow_garbage *next;
    uint32_t count;
    struct mr_cow_head *items[MR_COW_GARBAGE_ITEMS];
};

/* What the tables must know of the user's records. */
struct mr_cow_type {
    struct mr_cow_head *(*clone)(const struct mr_cow_head *record); /* NULL: no memory */
    void (*free)(struct mr_cow_head *record);
};

/* The writer's side. */
struct mr_cow {
    const struct mr_cow_type *type;
    uint64_t generation; /* stamped on what is made now; from 1 */
    struct mr_cow_garbage *garbage;
};

void mr_cow_init(struct mr_cow *cow, const struct mr_cow_type *type);
/* Frees what was retired since the last publish: no reader may be left. */
void mr_cow_fini(struct mr_cow *cow);
/* Ends the generation. The retired things (or NULL), for mr_cow_garbage_free() later. */
struct mr_cow_garbage *mr_cow_publish(struct mr_cow *cow);
void mr_cow_garbage_free(struct mr_cow_garbage *chain);
/* Hands `record` over to be freed with this generation's garbage. MR_ENOMEM. */
enum mr_status mr_cow_retire(struct mr_cow *cow, struct mr_cow_head *record);

/* The record at `index`, or NULL. Borrowed: lives as long as the version. */
void *mr_cow_get(const struct mr_cow_array *array, uint32_t index);
/* The record, made the writer's own. NULL: no memory, or nothing there. */
void *mr_cow_edit(struct mr_cow *cow, struct mr_cow_array *array, uint32_t index);
/*
 * Puts `record` (taken; stamped here) at `index`, which may leave holes; what was there
 * is retired. MR_ENOMEM: nothing changed and the record is still the caller's.
 */
enum mr_status mr_cow_put(struct mr_cow *cow, struct mr_cow_array *array, uint32_t index,
                          struct mr_cow_head *record);
/* Calls `each` for all records that were made after generation `since`, by index. */
typedef enum mr_status mr_cow_each(void *context, uint32_t index, const void *record);
enum mr_status mr_cow_walk(const struct mr_cow_array *array, uint64_t since,
                           mr_cow_each *each, void *context);
/* Retires the array's nodes and records and leaves it empty. MR_ENOMEM. */
enum mr_status mr_cow_drop(struct mr_cow *cow, struct mr_cow_array *array);
/* Frees nodes and records at once: no reader may be left. */
void mr_cow_array_fini(struct mr_cow *cow, struct mr_cow_array *array);

/* The index of `id`, or MR_COW_NONE. */
uint32_t mr_cow_map_find(const struct mr_cow_map *map, struct mr_id id);
/* Adds an id that is not there. MR_ENOMEM: nothing is added. */
enum mr_status mr_cow_map_add(struct mr_cow *cow, struct mr_cow_map *map, struct mr_id id,
                              uint32_t index);
void mr_cow_map_fini(struct mr_cow_map *map);

#endif
