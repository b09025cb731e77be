/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/site_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define SHIFT_FIRST 22u /* 1024 slots */

void mr_site_map_init(struct mr_site_map *map, uint32_t limit)
{
    MR_ASSERT(limit >= 1 && limit <= 1u << 29);
    *map = (struct mr_site_map){.limit = limit};
}

void mr_site_map_fini(struct mr_site_map *map)
{
    free(map->slots);
    map->slots = NULL;
    map->count = 0;
}

void mr_site_map_clear(struct mr_site_map *map)
{
    if (map->slots)
        memset(map->slots, 0xff, ((size_t)map->mask + 1) * sizeof(*map->slots));
    map->count = 0;
}

/* The slot of the wire site, or the free one where it belongs. */
static uint64_t *slot_of(const struct mr_site_map *map, uint32_t wire)
{
    uint32_t at = (wire * UINT32_C(0x9e3779b1)) >> map->shift;

    while (map->slots[at] != MR_SITE_MAP_NONE && map->slots[at] >> 32 != wire)
        at = (at + 1) & map->mask;
    return &map->slots[at];
}

static enum mr_status grow(struct mr_site_map *map)
{
    struct mr_site_map grown = *map;

    grown.shift = map->slots ? map->shift - 1 : SHIFT_FIRST;
    grown.mask = UINT32_MAX >> grown.shift;
    grown.slots = malloc(((size_t)grown.mask + 1) * sizeof(*grown.slots));
    if (!grown.slots)
        return MR_ENOMEM;
    mr_site_map_clear(&grown);
    for (size_t i = 0; map->slots && i <= map->mask; i++)
        if (map->slots[i] != MR_SITE_MAP_NONE)
            *slot_of(&grown, (uint32_t)(map->slots[i] >> 32)) = map->slots[i];
    grown.count = map->count;
    free(map->slots);
    *map = grown;
    return MR_OK;
}

enum mr_status mr_site_map_put(struct mr_site_map *map, uint32_t wire, uint32_t lane)
{
    uint64_t *slot;

    MR_ASSERT(wire < UINT32_MAX);
    if (!map->slots || 2 * (uint64_t)map->count > map->mask) {
        enum mr_status status = grow(map);

        if (status != MR_OK)
            return status;
    }
    slot = slot_of(map, wire);
    if (*slot == MR_SITE_MAP_NONE) {
        if (map->count == map->limit)
            return MR_ELIMIT;
        map->count++;
    }
    *slot = (uint64_t)wire << 32 | lane;
    return MR_OK;
}
