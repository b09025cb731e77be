/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/dictionary.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/table.h"
#include "pipeline/dict_copy.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define MIN_CAPACITY 64u
#define BLOCK_OVERHEAD 16 /* of malloc */

struct entry {
    void *block;   /* pipeline/dict_copy.h; NULL: a node that was forgotten */
    uint64_t rank; /* the better one is greater */
    uint32_t next; /* in the list of unsent ones */
    uint16_t kind;
    bool is_unsent;
};

struct mr_dictionary {
    struct mr_dictionary_limits limits;
    struct mr_table table;
    struct entry *entries;
    uint32_t count, capacity;
    uint32_t gone; /* entries without a block, of `count` */
    uint32_t first_unsent, last_unsent, unsent_count;
    size_t bytes;
    size_t node_bytes; /* of nodes that were sent; part of `bytes` */
    uint64_t beyond, forgotten, collisions;
};

enum mr_status mr_dictionary_new(const struct mr_dictionary_limits *limits,
                                 struct mr_dictionary **dictionary)
{
    struct mr_dictionary *made = calloc(1, sizeof(*made));

    if (!made)
        return MR_ENOMEM;
    made->limits.items_max =
        limits && limits->items_max ? limits->items_max : MR_DICTIONARY_ITEMS_MAX;
    made->limits.bytes_max =
        limits && limits->bytes_max ? limits->bytes_max : MR_DICTIONARY_BYTES_MAX;
    made->limits.node_bytes_max = limits && limits->node_bytes_max
                                      ? limits->node_bytes_max
                                      : MR_DICTIONARY_NODE_BYTES_MAX;
    made->first_unsent = made->last_unsent = NONE;
    mr_table_init(&made->table, made->limits.items_max);
    *dictionary = made;
    return MR_OK;
}

void mr_dictionary_free(struct mr_dictionary *dictionary)
{
    if (!dictionary)
        return;
    for (uint32_t i = 0; i < dictionary->count; i++)
        free(dictionary->entries[i].block);
    free(dictionary->entries);
    mr_table_fini(&dictionary->table);
    free(dictionary);
}

/* False for a kind that is not kept. */
static bool identify(const struct mr_dict_item *item, struct mr_id *key, uint64_t *rank)
{
    struct mr_id ids[3] = {{0, (uint64_t)item->kind}, {0, 0}, {0, 0}};

    *rank = 0;
    *key = ids[0];
    switch (item->kind) {
    case MR_DICT_SITE:
        ids[1] = item->site.id;
        *rank = item->site.quality;
        break;
    case MR_DICT_SCOPE:
        ids[1] = item->scope.id;
        break;
    case MR_DICT_SOURCE:
        ids[1] = item->source.id;
        *rank = mr_source_state_rank(item->source.state);
        break;
    case MR_DICT_OUTER:
        ids[1] = item->outer.scope;
        ids[2] = item->outer.site;
        break;
    case MR_DICT_NODE:
        ids[1] = item->node.id;
        break;
    case MR_DICT_SPAN_COUNTER: /* one for each reason: what is absent here may count there */
        ids[1] = item->span_counter.scope;
        ids[2] = mr_hash128(mr_span_of_text(item->span_counter.absent));
        ids[2].hi ^= item->span_counter.id.hi;
        ids[2].lo ^= item->span_counter.id.lo;
        break;
    case MR_DICT_NOTE:
        ids[1] = item->note.about;
        ids[2] = mr_hash128(mr_span_of_text(item->note.key));
        ids[2].hi ^= item->note.site.hi;
        ids[2].lo ^= item->note.site.lo;
        *rank = item->note.version;
        break;
    default:
        return false;
    }
    *key = mr_hash128(mr_span_of(ids, sizeof(ids)));
    return true;
}

static void add_unsent(struct mr_dictionary *dictionary, uint32_t index)
{
    struct entry *entry = &dictionary->entries[index];

    if (entry->is_unsent)
        return;
    entry->is_unsent = true;
    entry->next = NONE;
    if (dictionary->last_unsent == NONE)
        dictionary->first_unsent = index;
    else
        dictionary->entries[dictionary->last_unsent].next = index;
    dictionary->last_unsent = index;
    dictionary->unsent_count++;
}

/* Moves the entries together, in their order. MR_ENOMEM: nothing happened. */
static enum mr_status compact(struct mr_dictionary *dictionary)
{
    uint32_t *map = malloc(dictionary->count * sizeof(*map)), kept = 0, waiting;

    if (!map)
        return MR_ENOMEM;
    mr_table_clear(&dictionary->table);
    for (uint32_t i = 0; i < dictionary->count; i++) {
        struct entry entry = dictionary->entries[i];
        struct mr_dict_item item;
        struct mr_id key;
        uint64_t rank;

        map[i] = NONE;
        if (!entry.block)
            continue;
        mr_dict_copy_get((enum mr_dict_kind)entry.kind, entry.block, &item);
        (void)identify(&item, &key, &rank);
        map[i] = kept;
        dictionary->entries[kept] = entry;
        (void)mr_table_put(&dictionary->table, key, kept++); /* it had more of them */
    }
    for (uint32_t i = 0; i < kept; i++)
        if (dictionary->entries[i].is_unsent && dictionary->entries[i].next != NONE)
            dictionary->entries[i].next = map[dictionary->entries[i].next];
    waiting = dictionary->unsent_count;
    dictionary->first_unsent = waiting ? map[dictionary->first_unsent] : NONE;
    dictionary->last_unsent = waiting ? map[dictionary->last_unsent] : NONE;
    dictionary->count = kept;
    dictionary->gone = 0;
    free(map);
    return MR_OK;
}

static enum mr_status grow(struct mr_dictionary *dictionary)
{
    uint32_t capacity = dictionary->capacity ? dictionary->capacity * 2 : MIN_CAPACITY;
    struct entry *entries;

    if (dictionary->count < dictionary->capacity)
        return MR_OK;
    if (dictionary->gone > dictionary->count / 2)
        return compact(dictionary);
    entries = realloc(dictionary->entries, capacity * sizeof(*entries));
    if (!entries)
        return MR_ENOMEM;
    dictionary->entries = entries;
    dictionary->capacity = capacity;
    return MR_OK;
}

static size_t bytes_of(const struct mr_dict_item *item)
{
    return mr_dict_copy_size(item) + BLOCK_OVERHEAD;
}

static enum mr_status refuse(struct mr_dictionary *dictionary)
{
    dictionary->beyond++;
    return MR_ELIMIT;
}

static enum mr_status keep_new(struct mr_dictionary *dictionary,
                               const struct mr_dict_item *item, struct mr_id key,
                               uint64_t rank)
{
    size_t bytes = bytes_of(item);
    enum mr_status status;
    void *block;

    if (dictionary->count - dictionary->gone >= dictionary->limits.items_max ||
        bytes > dictionary->limits.bytes_max - dictionary->bytes)
        return refuse(dictionary);
    status = grow(dictionary);
    if (status != MR_OK)
        return status;
    block = mr_dict_copy_new(item);
    if (!block)
        return MR_ENOMEM;
    status = mr_table_put(&dictionary->table, key, dictionary->count);
    if (status != MR_OK) {
        free(block);
        return status;
    }
    dictionary->entries[dictionary->count] =
        (struct entry){.block = block, .kind = (uint16_t)item->kind, .rank = rank};
    dictionary->bytes += bytes;
    add_unsent(dictionary, dictionary->count++);
    return MR_OK;
}

static enum mr_status keep_better(struct mr_dictionary *dictionary,
                                  const struct mr_dict_item *item, uint32_t index,
                                  uint64_t rank)
{
    struct entry *entry = &dictionary->entries[index];
    struct mr_dict_item old;
    size_t bytes = bytes_of(item), others;
    void *block;

    if (rank <= entry->rank)
        return MR_OK;
    mr_dict_copy_get((enum mr_dict_kind)entry->kind, entry->block, &old);
    others = dictionary->bytes - bytes_of(&old);
    if (bytes > dictionary->limits.bytes_max - others)
        return refuse(dictionary);
    block = mr_dict_copy_new(item);
    if (!block)
        return MR_ENOMEM;
    free(entry->block);
    entry->block = block;
    entry->rank = rank;
    dictionary->bytes = others + bytes;
    add_unsent(dictionary, index);
    return MR_OK;
}

static bool are_equal(struct mr_span a, struct mr_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* A function is its file and its place in there; a file that has a build-id may lie anywhere. */
static bool is_same_site(const struct mr_dict_site *a, const struct mr_dict_site *b)
{
    if (a->type != b->type || a->offset != b->offset ||
        !are_equal(a->build_id, b->build_id))
        return false;
    if (a->type == MR_SITE_SPAN)
        return strcmp(a->module, b->module) == 0 && strcmp(a->name, b->name) == 0;
    return a->build_id.size > 0 || strcmp(a->module, b->module) == 0;
}

/* Whether two items of one id are of the same thing, as far as the id is made of what they say. */
static bool is_same(const struct mr_dict_item *a, const struct mr_dict_item *b)
{
    switch (a->kind) {
    case MR_DICT_NODE:
        return mr_id_equal(a->node.site, b->node.site) &&
               a->node.exactness == b->node.exactness &&
               are_equal(a->node.children, b->node.children);
    case MR_DICT_SITE:
        return is_same_site(&a->site, &b->site);
    case MR_DICT_SCOPE:
        return strcmp(a->scope.app, b->scope.app) == 0 &&
               strcmp(a->scope.version, b->scope.version) == 0 &&
               strcmp(a->scope.host, b->scope.host) == 0;
    default:
        return true;
    }
}

static void look_for_collision(struct mr_dictionary *dictionary,
                               const struct mr_dict_item *item, uint32_t index)
{
    const struct entry *entry = &dictionary->entries[index];
    struct mr_dict_item known;

    mr_dict_copy_get((enum mr_dict_kind)entry->kind, entry->block, &known);
    dictionary->collisions += !is_same(&known, item);
}

enum mr_status mr_dictionary_take(struct mr_dictionary *dictionary,
                                  const struct mr_dict_item *item)
{
    struct mr_id key;
    uint64_t rank;
    uint32_t index;

    if (!identify(item, &key, &rank))
        return MR_EUSAGE;
    index = mr_table_find(&dictionary->table, key);
    MR_DEBUG_ASSERT(index == MR_TABLE_NONE || index < dictionary->count);
    if (index == MR_TABLE_NONE)
        return keep_new(dictionary, item, key, rank);
    look_for_collision(dictionary, item, index);
    return keep_better(dictionary, item, index, rank);
}

bool mr_dictionary_peek(const struct mr_dictionary *dictionary, struct mr_dict_item *item)
{
    const struct entry *entry;

    if (dictionary->first_unsent == NONE)
        return false;
    entry = &dictionary->entries[dictionary->first_unsent];
    mr_dict_copy_get((enum mr_dict_kind)entry->kind, entry->block, item);
    return true;
}

/* Keeps a node that was sent while there is room for it. */
static void keep_or_forget(struct mr_dictionary *dictionary, struct entry *entry)
{
    struct mr_dict_item item;
    struct mr_id key;
    uint64_t rank;
    size_t bytes;

    if (entry->kind != MR_DICT_NODE)
        return;
    mr_dict_copy_get((enum mr_dict_kind)entry->kind, entry->block, &item);
    bytes = bytes_of(&item);
    if (bytes <= dictionary->limits.node_bytes_max - dictionary->node_bytes) {
        dictionary->node_bytes += bytes;
        return;
    }
    (void)identify(&item, &key, &rank);
    (void)mr_table_remove(&dictionary->table, key);
    free(entry->block);
    entry->block = NULL;
    dictionary->bytes -= bytes;
    dictionary->gone++;
    dictionary->forgotten++;
}

void mr_dictionary_mark_sent(struct mr_dictionary *dictionary)
{
    struct entry *entry;

    MR_ASSERT(dictionary->first_unsent != NONE);
    entry = &dictionary->entries[dictionary->first_unsent];
    MR_ASSERT(entry->is_unsent);
    entry->is_unsent = false;
    dictionary->first_unsent = entry->next;
    if (entry->next == NONE)
        dictionary->last_unsent = NONE;
    dictionary->unsent_count--;
    keep_or_forget(dictionary, entry);
}

void mr_dictionary_mark_all_unsent(struct mr_dictionary *dictionary)
{
    dictionary->first_unsent = dictionary->last_unsent = NONE;
    dictionary->unsent_count = 0;
    dictionary->node_bytes = 0; /* all of them are sent once more */
    for (uint32_t i = 0; i < dictionary->count; i++) {
        dictionary->entries[i].is_unsent = false;
        if (dictionary->entries[i].block)
            add_unsent(dictionary, i);
    }
}

void mr_dictionary_stats(const struct mr_dictionary *dictionary,
                         struct mr_dictionary_stats *stats)
{
    *stats = (struct mr_dictionary_stats){.items = dictionary->count - dictionary->gone,
                                          .unsent = dictionary->unsent_count,
                                          .bytes = dictionary->bytes,
                                          .beyond = dictionary->beyond,
                                          .collisions = dictionary->collisions,
                                          .forgotten = dictionary->forgotten};
}
