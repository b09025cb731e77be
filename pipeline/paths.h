/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path tree of a lane: nodes by number, children merged by site, and what each gained in one window since the last delta.
 *
 *     node 0: no path (the tree is full); it gains nothing and has no children
 *     base of a scope      -> entry points -> ... calls
 *     outer base of a scope -> outer frames -> ...
 *
 * A child is found through its parent's last child, else by hash. A node holds the numbers of one window; what belongs to
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

enum mr_path_flag {
    MR_PATH_OUTER = 1,   /* an outer frame, or the base of them */
    MR_PATH_BASE = 2,    /* of a scope: `site` is the number of the scope */
    MR_PATH_ROOT = 4,    /* an entry point: a child of a base */
    MR_PATH_KEEP = 8,    /* survives the next forget */
    MR_PATH_TOUCHED = 16 /* is in `touched` */
};

struct mr_path {
    /* The first cache line is what the hot path touches at an enter, and most of an exit. */
    uint32_t site, parent;
    uint32_t last_child;
    uint32_t window; /* s; 0: nothing gained */
    uint64_t ok, total_sum, total_min, total_max, self_sum, self_min;
    uint64_t self_max;
    struct mr_bins bins; /* of totals */
    uint32_t zeros;      /* totals of 0 ns */
    uint32_t failed, incomplete;
    uint32_t last_node;      /* what its last call was interned as */
    uint32_t entry;          /* MR_PATH_ROOT: its entry + 1 (filters/reduce), 0: none */
    uint32_t payload, index; /* its number in that delta payload */
    uint32_t flags;
    uint64_t spare[2];
};

struct mr_paths {
    struct mr_path *nodes;
    uint32_t count, capacity, limit;
    uint32_t *slots; /* open addressing: node number, 0: free */
    uint32_t slot_mask;
    uint32_t *touched; /* nodes that gained something */
    uint32_t touched_count;
};

/* `limit` is 16 .. 2^30. MR_ENOMEM. */
enum mr_status mr_paths_init(struct mr_paths *paths, uint32_t limit);
void mr_paths_fini(struct mr_paths *paths);

/* By hash; MR_PATH_NONE when full, without memory, or when the parent is none. `flags` are given to a new node. */
uint32_t mr_paths_find(struct mr_paths *paths, uint32_t parent, uint32_t site,
                       uint32_t flags);

static MR_ALWAYS_INLINE uint32_t mr_paths_child(struct mr_paths *paths, uint32_t parent,
                                                uint32_t site)
{
    uint32_t last = paths->nodes[parent].last_child;

    if (MR_LIKELY(paths->nodes[last].site == site))
        return last;
    return mr_paths_find(paths, parent, site, 0);
}

/* The node under which the entry points (or with MR_PATH_OUTER the outer frames) of a scope stand. */
uint32_t mr_paths_base(struct mr_paths *paths, uint32_t scope, uint32_t flags);
uint32_t mr_paths_root(struct mr_paths *paths, uint32_t base, uint32_t site);

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
