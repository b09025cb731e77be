/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/site_map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define SHIFT_FIRST 22u /* 1024 slots */
#define MOVES_MAX 32u   /* half full, and with places by chance, hardly any takes ten */
/*
 * Maps with more slots than this, and more a site, do not grow for want of a place. In 2^16 slots no three sites have both places
 * in common; it takes sites made for it to come here.
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
    return mr_site_map_place((uint32_t)(slot >> 32), map->shift);
}

static uint32_t other_place_of(const struct mr_site_map *map, uint64_t slot)
{
    return mr_site_map_other_place((uint32_t)(slot >> 32), map->shift);
}

/* The slot of the wire site, or NULL. */
static uint64_t *slot_of(const struct mr_site_map *map, uint32_t wire)
{
    uint64_t *slot;

    if (!map->slots)
        return NULL;
    slot = &map->slots[mr_site_map_place(wire, map->shift)];
    if (*slot >> 32 == wire)
        return slot;
    slot = &map->slots[mr_site_map_other_place(wire, map->shift)];
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

/* To a size in which all of them have a place. */
static enum mr_status grow(struct mr_site_map *map)
{
    struct mr_site_map grown = *map;

    if (!map->slots)
        grown.shift = SHIFT_FIRST + 1;
    do {
        grown.mask = UINT32_MAX >> --grown.shift;
        if (grown.shift == 0 ||
            (grown.mask >= SLOTS_ENOUGH && grown.mask / SPACE_ENOUGH > map->count))
            return MR_ELIMIT;
        grown.slots = malloc(((size_t)grown.mask + 1) * sizeof(*grown.slots));
        if (!grown.slots)
            return MR_ENOMEM;
        empty_slots(&grown);
        if (insert_all(&grown, map)) {
            grown.count = map->count;
            free(map->slots);
            *map = grown;
            return MR_OK;
        }
        free(grown.slots);
    } while (true);
}

enum mr_status mr_site_map_put(struct mr_site_map *map, uint32_t wire, uint32_t lane)
{
    const uint64_t slot = (uint64_t)wire << 32 | lane;
    enum mr_status status = MR_OK;
    uint64_t *known;

    MR_ASSERT(wire < UINT32_MAX);
    known = slot_of(map, wire);
    if (known) {
        *known = slot;
        return MR_OK;
    }
    if (map->count == map->limit)
        return MR_ELIMIT;
    if (!map->slots || 2 * (uint64_t)map->count > map->mask)
        status = grow(map);
    while (status == MR_OK && !insert(map, slot))
        status = grow(map);
    map->count += status == MR_OK;
    return status;
}
