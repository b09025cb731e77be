/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the sites of a wire (30 bits) to the sites of a lane, one 8-byte slot each, at most half full. A site lies in one of two
 * places (cuckoo hashing: Pagh, Rodler 2004), in the first one where both were free: the common case is one load, no case more
 * than two, and a loop that always looks at both needs no branch (filters/decode_run_wide.c). Both places are by keys that no
 * sender knows, so that none can make sites that meet; a map whose sites do not find a place draws others, and grows only if
 * that does not help. Owned by one source; one thread.
 *
 *     slot:  wire site (32 bits) | lane site (32 bits)       free: all ones
 *
 *     struct mr_site_map map;
 *     mr_site_map_init(&map, 1u << 20);
 *     slot = mr_site_map_find(&map, wire);
 *     if (slot == MR_SITE_MAP_NONE)
 *         mr_site_map_put(&map, wire, lane);
 */
#ifndef MR_PIPELINE_SITE_MAP_H
#define MR_PIPELINE_SITE_MAP_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/status.h"

#define MR_SITE_MAP_NONE UINT64_MAX

struct mr_site_map {
    uint64_t *slots; /* NULL before the first put */
    uint32_t mask, shift;
    uint32_t key,
        other_key; /* of the two places: random odd numbers, since there are slots */
    uint32_t count, limit;
};

/* At most `limit` entries (up to 2^29). Allocates nothing yet. */
void mr_site_map_init(struct mr_site_map *map, uint32_t limit);
void mr_site_map_fini(struct mr_site_map *map);
void mr_site_map_clear(
    struct mr_site_map *map); /* keeps the memory of one that is in use */

/* Adds or replaces. MR_ELIMIT (full, or no keys give all wire sites a place), MR_ENOMEM: unchanged. */
enum mr_status mr_site_map_put(struct mr_site_map *map, uint32_t wire, uint32_t lane);

/* Multiply-shift (Dietzfelbinger et al. 1997) of the site by one of the map's keys. */
static MR_ALWAYS_INLINE uint32_t mr_site_map_place(uint32_t wire, uint32_t key,
                                                   uint32_t shift)
{
    return (wire * key) >> shift;
}

/* The slot of `wire`, whose low half is the lane's site, or MR_SITE_MAP_NONE. */
static MR_ALWAYS_INLINE uint64_t mr_site_map_find(const struct mr_site_map *map,
                                                  uint32_t wire)
{
    uint64_t slot;

    if (MR_UNLIKELY(!map->slots))
        return MR_SITE_MAP_NONE;
    slot = map->slots[mr_site_map_place(wire, map->key, map->shift)];
    if (MR_LIKELY((uint32_t)(slot >> 32) == wire))
        return slot;
    slot = map->slots[mr_site_map_place(wire, map->other_key, map->shift)];
    return (uint32_t)(slot >> 32) == wire ? slot : MR_SITE_MAP_NONE;
}

#endif
