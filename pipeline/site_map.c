/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/site_map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

#define SHIFT_FIRST 22u /* 1024 slots */
#define MOVES_MAX 32u   /* half full, and with places by chance, hardly any takes ten */
#define DRAWS_MAX 8u    /* of keys, before a map grows for want of a place */
/*
 * Maps with more slots than this, and more a site, do not grow for want of a place. None of 3,000 maps of sites in steps, 30 to
 * 200,000 of them, had to grow for it.
 */
#define SLOTS_ENOUGH (1u << 16)
#define SPACE_ENOUGH 32u
/* With more slots a site, a map that is cleared starts small again: clearing takes time by slots, and a sender says how often. */
#define SPARSE 32u

void mr_site_map_init(struct mr_site_map *map, uint32_t limit)
{
    MR_ASSERT(limit >= 1 && limit <= 1u << 29);
    *map = (struct mr_site_map){.limit = limit};
}

static void free_slots(struct mr_site_map *map)
{
    free(map->slots);
    map->slots = NULL;
}

void mr_site_map_fini(struct mr_site_map *map)
{
    free_slots(map);
    map->count = 0;
}

static void empty_slots(struct mr_site_map *map)
{
    memset(map->slots, 0xff, ((size_t)map->mask + 1) * sizeof(*map->slots));
}

void mr_site_map_clear(struct mr_site_map *map)
{
    if (map->count == 0)
        return;
    if (map->mask / SPARSE > map->count)
        free_slots(map);
    else
        empty_slots(map);
    map->count = 0;
}

static uint32_t place_of(const struct mr_site_map *map, uint64_t slot)
{
    return mr_site_map_place((uint32_t)(slot >> 32), map->key, map->shift);
}

static uint32_t other_place_of(const struct mr_site_map *map, uint64_t slot)
{
    return mr_site_map_place((uint32_t)(slot >> 32), map->other_key, map->shift);
}

/* The slot of the wire site, or NULL. */
static uint64_t *slot_of(const struct mr_site_map *map, uint32_t wire)
{
    uint64_t *slot;

    if (!map->slots)
        return NULL;
    slot = &map->slots[mr_site_map_place(wire, map->key, map->shift)];
    if (*slot >> 32 == wire)
        return slot;
    slot = &map->slots[mr_site_map_place(wire, map->other_key, map->shift)];
    return *slot >> 32 == wire ? slot : NULL;
}

static void swap(uint64_t *a, uint64_t *b)
{
    uint64_t old = *a;

    *a = *b;
    *b = old;
}

/* Of a site that is not in the map. Whom it pushes out goes to its own other place, and so on. False: nothing is changed. */
static bool insert(struct mr_site_map *map, uint64_t slot)
{
    uint32_t path[MOVES_MAX], at = place_of(map, slot), moves = 0;

    if (map->slots[at] != MR_SITE_MAP_NONE &&
        map->slots[other_place_of(map, slot)] == MR_SITE_MAP_NONE)
        at = other_place_of(map, slot);
    while (map->slots[at] != MR_SITE_MAP_NONE && moves < MOVES_MAX) {
        swap(&map->slots[at], &slot);
        path[moves++] = at;
        at = at == place_of(map, slot) ? other_place_of(map, slot) : place_of(map, slot);
    }
    if (map->slots[at] == MR_SITE_MAP_NONE) {
        map->slots[at] = slot;
        return true;
    }
    while (moves > 0)
        swap(&map->slots[path[--moves]], &slot);
    return false;
}

static bool insert_all(struct mr_site_map *map, const struct mr_site_map *from)
{
    for (size_t i = 0; from->slots && i <= from->mask; i++)
        if (from->slots[i] != MR_SITE_MAP_NONE && !insert(map, from->slots[i]))
            return false;
    return true;
}

static void draw_keys(struct mr_site_map *map)
{
    uint64_t key = mr_hash_key();

    map->key = (uint32_t)key | 1;
    map->other_key = (uint32_t)(key >> 32) | 1;
}

/* All of `from`, and one more, in a map that is empty; under its keys if they may do, or others. */
static bool find_places(struct mr_site_map *map, const struct mr_site_map *from,
                        uint64_t slot)
{
    for (uint32_t draws = 0; draws < DRAWS_MAX; draws++) {
        if (draws > 0 || map->shift == from->shift)
            draw_keys(map);
        empty_slots(map);
        if (insert_all(map, from) && insert(map, slot))
            return true;
    }
    return false;
}

/* With one more, at a size and under keys that give all a place; sizes from `shift` on. */
static enum mr_status rebuild(struct mr_site_map *map, uint32_t shift, uint64_t slot)
{
    struct mr_site_map made = *map;

    for (;; shift--) {
        made.shift = shift;
        made.mask = UINT32_MAX >> shift;
        if (shift == 0 ||
            (made.mask >= SLOTS_ENOUGH && made.mask / SPACE_ENOUGH > map->count))
            return MR_ELIMIT;
        made.slots = malloc(((size_t)made.mask + 1) * sizeof(*made.slots));
        if (!made.slots)
            return MR_ENOMEM;
        if (find_places(&made, map, slot)) {
            free(map->slots);
            *map = made;
            return MR_OK;
        }
        free(made.slots);
    }
}

static enum mr_status add(struct mr_site_map *map, uint64_t slot)
{
    if (!map->slots) {
        if (!map->key)
            draw_keys(map);
        return rebuild(map, SHIFT_FIRST, slot);
    }
    if (2 * (uint64_t)map->count > map->mask)
        return rebuild(map, map->shift - 1, slot);
    return insert(map, slot) ? MR_OK : rebuild(map, map->shift, slot);
}

enum mr_status mr_site_map_put(struct mr_site_map *map, uint32_t wire, uint32_t lane)
{
    const uint64_t slot = (uint64_t)wire << 32 | lane;
    enum mr_status status;
    uint64_t *known;

    MR_ASSERT(wire < UINT32_MAX);
    known = slot_of(map, wire);
    if (known) {
        *known = slot;
        return MR_OK;
    }
    if (map->count == map->limit)
        return MR_ELIMIT;
    status = add(map, slot);
    map->count += status == MR_OK;
    return status;
}
