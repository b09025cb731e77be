/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paths.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/pages.h"

static_assert(sizeof(struct mr_path) == (size_t)2 * MR_CACHE_LINE,
              "two lines, see paths.h");

#define CAPACITY_FIRST 1024u
#define BLOCK 16u /* of bins */
/* Slots for a node, at least: a search that goes past the first one is a branch nobody foretells. */
#define SPARSE 4u

/* The flags by which children of one parent and site are told apart: bases have no parent. */
static uint32_t kind_of(uint32_t flags)
{
    return flags & (MR_PATH_BASE | MR_PATH_OUTER);
}

static uint32_t *slot_of(const struct mr_paths *paths, uint32_t parent, uint32_t site,
                         uint32_t flags)
{
    uint32_t at = mr_paths_slot(paths, parent, site);

    while (paths->slots[at]) {
        const struct mr_path *node = &paths->nodes[paths->slots[at]];

        /* Others than bases are of their parent's kind: no need to touch their second line. */
        if (node->site == site && node->parent == parent &&
            (parent != MR_PATH_NONE || kind_of(node->flags) == kind_of(flags)))
            break;
        at = (at + 1) & paths->slot_mask;
    }
    return &paths->slots[at];
}

static void fill_slots(struct mr_paths *paths)
{
    memset(paths->slots, 0, ((size_t)paths->slot_mask + 1) * sizeof(*paths->slots));
    for (uint32_t i = 1; i < paths->count; i++) {
        const struct mr_path *node = &paths->nodes[i];

        *slot_of(paths, node->parent, node->site, node->flags) = i;
    }
}

static void free_tables(struct mr_paths *paths)
{
    mr_pages_free(paths->nodes, paths->capacity * sizeof(*paths->nodes));
    free(paths->depths);
    free(paths->touched);
    mr_pages_free(paths->slots, ((size_t)paths->slot_mask + 1) * sizeof(*paths->slots));
}

static enum mr_status resize(struct mr_paths *paths, uint32_t capacity)
{
    uint32_t slot_count = SPARSE * CAPACITY_FIRST;
    struct mr_path *nodes;
    uint16_t *depths;
    uint32_t *touched, *slots;

    while (slot_count < SPARSE * capacity)
        slot_count *= 2;
    nodes = mr_pages_alloc(capacity * sizeof(*nodes));
    depths = malloc(capacity * sizeof(*depths));
    touched = malloc(capacity * sizeof(*touched));
    slots = mr_pages_alloc(slot_count * sizeof(*slots));
    if (!nodes || !depths || !touched || !slots) {
        mr_pages_free(nodes, capacity * sizeof(*nodes));
        free(depths);
        free(touched);
        mr_pages_free(slots, slot_count * sizeof(*slots));
        return MR_ENOMEM;
    }
    if (paths->count) {
        memcpy(nodes, paths->nodes, paths->count * sizeof(*nodes));
        memcpy(depths, paths->depths, paths->count * sizeof(*depths));
        memcpy(touched, paths->touched, paths->touched_count * sizeof(*touched));
    }
    free_tables(paths);
    paths->nodes = nodes;
    paths->depths = depths;
    paths->touched = touched;
    paths->slots = slots;
    paths->slot_mask = slot_count - 1;
    paths->capacity = capacity;
    fill_slots(paths);
    return MR_OK;
}

enum mr_status mr_paths_init(struct mr_paths *paths, uint32_t limit, uint32_t depth_max)
{
    enum mr_status status;

    MR_ASSERT(limit >= 16 && limit <= UINT32_C(1) << 30);
    MR_ASSERT(depth_max >= 2 && depth_max <= MR_PATHS_DEPTH_MAX);
    *paths =
        (struct mr_paths){.limit = limit, .depth_max = depth_max, .key = mr_hash_key()};
    status = resize(paths, limit < CAPACITY_FIRST ? limit : CAPACITY_FIRST);
    if (status != MR_OK)
        return status;
    /* The window of node 0 is never the current one, so that whoever counts meets it first in the slow path. */
    paths->nodes[0] = (struct mr_path){.site = MR_PATH_NO_SITE, .window = UINT32_MAX};
    paths->depths[0] = 0;
    paths->count = 1;
    return MR_OK;
}

void mr_paths_fini(struct mr_paths *paths)
{
    free_tables(paths);
    *paths = (struct mr_paths){.limit = paths->limit, .depth_max = paths->depth_max};
}

static bool make_room(struct mr_paths *paths)
{
    uint32_t capacity;

    if (paths->count < paths->capacity)
        return true;
    if (paths->count == paths->limit)
        return false;
    capacity = paths->capacity < paths->limit / 2 ? 2 * paths->capacity : paths->limit;
    return resize(paths, capacity) == MR_OK;
}

static uint32_t find(struct mr_paths *paths, uint32_t parent, uint32_t site,
                     uint32_t flags)
{
    uint32_t *slot = slot_of(paths, parent, site, flags);

    if (*slot == 0) {
        if (!make_room(paths))
            return MR_PATH_NONE;
        slot = slot_of(paths, parent, site, flags);
        *slot = paths->count++;
        paths->depths[*slot] =
            (uint16_t)(parent == MR_PATH_NONE ? 0 : paths->depths[parent] + 1);
        paths->nodes[*slot] =
            (struct mr_path){.site = site, .parent = parent, .flags = (uint8_t)flags};
    }
    return *slot;
}

uint32_t mr_paths_find(struct mr_paths *paths, uint32_t parent, uint32_t site,
                       uint32_t flags)
{
    if (parent == MR_PATH_NONE)
        return MR_PATH_NONE;
    if (paths->depths[parent] == paths->depth_max)
        parent = paths->nodes[parent].parent;
    return find(paths, parent, site,
                flags | (paths->nodes[parent].flags & MR_PATH_OUTER));
}

uint32_t mr_paths_base(struct mr_paths *paths, uint32_t scope, uint32_t flags)
{
    return find(paths, MR_PATH_NONE, scope, MR_PATH_BASE | (flags & MR_PATH_OUTER));
}

uint32_t mr_paths_root(struct mr_paths *paths, uint32_t base, uint32_t site)
{
    uint32_t first = paths->nodes[base].likely[MR_PATH_FIRST];

    if (paths->nodes[first].site == site)
        return first;
    first = mr_paths_find(paths, base, site, MR_PATH_ROOT);
    if (first != MR_PATH_NONE)
        paths->nodes[base].likely[MR_PATH_FIRST] = first;
    return first;
}

/* Totals of 2^32 - 1 ns and more are never known. */
static struct mr_known known_of(uint64_t min, uint64_t max)
{
    uint64_t limit = max < UINT32_MAX ? max : UINT32_MAX - 1;

    if (min > limit)
        return (struct mr_known){0, 0};
    return (struct mr_known){(uint32_t)min, (uint32_t)(limit - min + 1)};
}

void mr_path_widen(struct mr_path *path, uint64_t total, uint64_t self)
{
    path->total_min = total < path->total_min ? total : path->total_min;
    path->total_max = total > path->total_max ? total : path->total_max;
    path->self_min = self < path->self_min ? self : path->self_min;
    path->self_max = self > path->self_max ? self : path->self_max;
    path->total = known_of(path->total_min, path->total_max);
    path->self = known_of(path->self_min, path->self_max);
}

void mr_paths_begin(struct mr_paths *paths, uint32_t path, uint32_t window)
{
    struct mr_path *node = &paths->nodes[path];

    MR_ASSERT(path != MR_PATH_NONE && node->window == 0 && window != 0);
    if (!(node->flags & MR_PATH_TOUCHED))
        paths->touched[paths->touched_count++] = path;
    node->flags |= MR_PATH_TOUCHED;
    if (node->bins.count) {
        node->bins_first = node->bins.first;
        node->bins_blocks = (uint8_t)((node->bins.count + BLOCK - 1) / BLOCK);
    }
    node->window = window;
    node->ok = 0;
    node->failed = 0;
    node->incomplete = 0;
    node->total_sum = 0;
    node->total_min = UINT64_MAX;
    node->total_max = 0;
    node->self_sum = 0;
    node->self_min = UINT64_MAX;
    node->self_max = 0;
    node->total = (struct mr_known){0, 0};
    node->self = (struct mr_known){0, 0};
    node->zeros = 0;
    node->bins = (struct mr_bins){0, 0, 0};
}

void mr_paths_end(struct mr_paths *paths, uint32_t path)
{
    MR_ASSERT(path != MR_PATH_NONE);
    paths->nodes[path].window = 0;
}

void mr_paths_clear_touched(struct mr_paths *paths)
{
    for (uint32_t i = 0; i < paths->touched_count; i++) {
        struct mr_path *node = &paths->nodes[paths->touched[i]];

        MR_ASSERT(node->window == 0);
        node->flags &= (uint8_t)~MR_PATH_TOUCHED;
    }
    paths->touched_count = 0;
}

void mr_paths_keep(struct mr_paths *paths, uint32_t path)
{
    while (path != MR_PATH_NONE && !(paths->nodes[path].flags & MR_PATH_KEEP)) {
        paths->nodes[path].flags |= MR_PATH_KEEP;
        path = paths->nodes[path].parent;
    }
}

void mr_paths_forget(struct mr_paths *paths, uint32_t *map)
{
    uint32_t kept = 1;

    MR_ASSERT(paths->touched_count == 0);
    map[0] = MR_PATH_NONE;
    for (uint32_t i = 1; i < paths->count; i++) {
        struct mr_path node = paths->nodes[i];

        MR_ASSERT(node.window == 0);
        map[i] = MR_PATH_NONE;
        if (!(node.flags & MR_PATH_KEEP))
            continue;
        map[i] = kept;
        node.flags &= (uint8_t)~MR_PATH_KEEP;
        node.parent = map[node.parent]; /* made before its children, so it is mapped */
        node.likely[MR_PATH_FIRST] = MR_PATH_NONE;
        node.likely[MR_PATH_NEXT] = MR_PATH_NONE;
        paths->depths[kept] = paths->depths[i];
        paths->nodes[kept++] = node;
    }
    paths->count = kept;
    fill_slots(paths);
}
