/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path tree of a lane: nodes by number, children merged by site, and what each gained in one window since the last delta.
 *
 *     node 0: no path (the tree is full); it gains nothing and has no children
 *     base of a scope      -> entry points -> ... calls
 *     outer base of a scope -> outer frames -> ...
 *
 * A path is at most `depth_max` calls deep, as each part of a delta names all that stand above what it tells. Calls
 * below the deepest path are counted beside it, under the path above: a recursion's deep end by its site, once.
 *
 * A child is found by hash, but first it is foretold: whoever follows calls remembers which child a call had first, and
 * which sibling came after it (`likely`; filters/reduce). A node holds the numbers of one window; what belongs to
 * another is written out first (filters/reduce). Limits: `limit` nodes. Nothing is evicted: when the tree is full, its
 * owner sends what there is and forgets everything but the open calls (mr_paths_keep, mr_paths_forget). One thread.
 *
 *     base = mr_paths_base(&paths, scope, 0);
 *     path = mr_paths_child(&paths, base, site);            // MR_PATH_NONE: full
 */
#ifndef MR_PIPELINE_PATHS_H
#define MR_PIPELINE_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/status.h"
#include "pipeline/bins.h"

#define MR_PATH_NONE 0u
#define MR_PATH_NO_SITE UINT32_MAX
#define MR_PATHS_DEPTH_MAX 4096u

enum mr_path_flag {
    MR_PATH_OUTER = 1,   /* an outer frame, or the base of them */
    MR_PATH_BASE = 2,    /* of a scope: `site` is the number of the scope */
    MR_PATH_ROOT = 4,    /* an entry point: a child of a base */
    MR_PATH_KEEP = 8,    /* survives the next forget */
    MR_PATH_TOUCHED = 16 /* is in `touched` */
};

/* Values low .. low + width - 1 need no look at the true extremes. */
struct mr_known {
    uint32_t low, width;
};

/* What is likely to be opened next: as a call's first child, or after it, as its next sibling. */
enum mr_path_likely { MR_PATH_FIRST, MR_PATH_NEXT };

struct mr_path {
    /* The first cache line is all that a call touches which is like those before it. */
    uint32_t site;
    uint32_t window;    /* s; 0: nothing gained */
    uint32_t likely[2]; /* by enum mr_path_likely; MR_PATH_NONE */
    uint64_t total_sum, self_sum;
    struct mr_known total, self;
    struct mr_bins bins; /* of totals */
    uint32_t ok;         /* its owner keeps all counts below 2^32 */
    uint32_t expected;   /* its last node (shapes.h); MR_NODE_NONE */
    /* The second one. */
    uint64_t total_min, total_max, self_min, self_max;
    uint32_t parent;
    uint32_t zeros; /* totals of 0 ns */
    uint32_t failed, incomplete;
    uint32_t entry;          /* MR_PATH_ROOT: its entry + 1 (filters/reduce), 0: none */
    uint32_t payload, index; /* its number in that delta payload */
    uint8_t flags;
    uint8_t
        bins_blocks; /* of 16, from bins_first on: what `bins` covered in the window before */
    uint16_t bins_first;
};

struct mr_paths {
    struct mr_path *nodes;
    uint16_t *depths; /* of nodes; a base's is 0 */
    uint32_t count, capacity, limit, depth_max;
    uint32_t *slots; /* open addressing: node number, 0: free */
    uint32_t slot_mask;
    uint64_t key;      /* of slots: mr_hash_key() */
    uint32_t *touched; /* nodes that gained something */
    uint32_t touched_count;
};

/* `limit` is 16 .. 2^30, `depth_max` 2 .. MR_PATHS_DEPTH_MAX. MR_ENOMEM. */
enum mr_status mr_paths_init(struct mr_paths *paths, uint32_t limit, uint32_t depth_max);
void mr_paths_fini(struct mr_paths *paths);

/* Where the search for a child begins; the key is one that no sender knows. */
static MR_ALWAYS_INLINE uint32_t mr_paths_slot(const struct mr_paths *paths,
                                               uint32_t parent, uint32_t site)
{
    uint64_t mix = ((uint64_t)parent << 32 | site) * paths->key;

    return (uint32_t)(mix >> 32 ^ mix >> 15) & paths->slot_mask;
}

/* A child that is there, of a parent that is not MR_PATH_NONE, as bases have none; MR_PATH_NONE: mr_paths_find() has to see to it. */
static MR_ALWAYS_INLINE uint32_t mr_paths_known(const struct mr_paths *paths,
                                                uint32_t parent, uint32_t site)
{
    uint32_t at = mr_paths_slot(paths, parent, site), number;

    while ((number = paths->slots[at]) != MR_PATH_NONE &&
           (paths->nodes[number].site != site || paths->nodes[number].parent != parent))
        at = (at + 1) & paths->slot_mask;
    return number;
}

/* By hash; MR_PATH_NONE when full, without memory, or when the parent is none. `flags` are given to a new node. */
uint32_t mr_paths_find(struct mr_paths *paths, uint32_t parent, uint32_t site,
                       uint32_t flags);

static MR_ALWAYS_INLINE uint32_t mr_paths_child(struct mr_paths *paths, uint32_t parent,
                                                uint32_t site)
{
    uint32_t first = paths->nodes[parent].likely[MR_PATH_FIRST];

    if (paths->nodes[first].site == site)
        return first;
    return mr_paths_find(paths, parent, site, 0);
}

/* The node under which the entry points (or with MR_PATH_OUTER the outer frames) of a scope stand. */
uint32_t mr_paths_base(struct mr_paths *paths, uint32_t scope, uint32_t flags);
uint32_t mr_paths_root(struct mr_paths *paths, uint32_t base, uint32_t site);

static MR_ALWAYS_INLINE bool mr_known_has(struct mr_known known, uint64_t value)
{
    return value - known.low < known.width;
}
/* Takes a call's times into the extremes. */
void mr_path_widen(struct mr_path *path, uint64_t total, uint64_t self);

/* Begins a window of a node that has gained nothing: its numbers are zeroed, its minima set high. */
void mr_paths_begin(struct mr_paths *paths, uint32_t path, uint32_t window);
/* After its numbers were written out: the node has gained nothing. It stays in `touched`. */
void mr_paths_end(struct mr_paths *paths, uint32_t path);

/* Empties `touched`, whose nodes have all ended. */
void mr_paths_clear_touched(struct mr_paths *paths);

/* Marks a path and everything above it to survive. */
void mr_paths_keep(struct mr_paths *paths, uint32_t path);
/*
 * Forgets all nodes that are not kept. Nothing may have been gained (all ended, touched_count 0). `map` (of capacity `count`)
 * tells the new number of each old one, MR_PATH_NONE of those that are gone. The marks are taken off.
 */
void mr_paths_forget(struct mr_paths *paths, uint32_t *map);

#endif
