/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which modules of a run of them cover a place (a site, or an address), and which of those holds in an epoch. A source says what its
 * modules cover: all may cover one place, or each what the one before it does, and a bit more. So no look may go through all of them.
 *
 *     places:   |----- 0 -----|---- 2 ----|     cut where some module begins or ends: leafs of a tree
 *                     |-- 1 --|                 a module stands at the few nodes that make up its leafs
 *
 * Who covers a place stands at the nodes from its leaf to the root: as many as the tree is high. At each of them modules are in
 * order of their epochs, so which begin before an epoch is told by bisection; the last of them that is not gone by another tree,
 * over groups of all nodes' modules, of the greatest epoch in which one of a group is gone. That only ever falls; it is put right by
 * who looks, and not by who says that a module is gone.
 *
 * A run is of the modules [first, first + count) of an array in order of arrival, and does not change (pipeline/modules.c makes
 * larger ones of smaller ones). `best` of a look is what was found in other runs, or MR_MODULE_NONE; what is better is returned. Of
 * one epoch the later arrived is better. At most 20 MiB for 65,536 modules, usually a tenth of that. One thread.
 *
 *     status = mr_module_index_build(&index, items, 0, 64);
 *     best = mr_module_index_holding(&index, items, MR_MODULE_BY_SITE, site, epoch, MR_MODULE_NONE);
 *     mr_module_index_fini(&index);
 */
#ifndef MR_PIPELINE_MODULE_INDEX_H
#define MR_PIPELINE_MODULE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define MR_MODULE_NONE UINT32_MAX

struct mr_module;

enum mr_module_axis_kind { MR_MODULE_BY_SITE, MR_MODULE_BY_ADDRESS, MR_MODULE_AXES };

struct mr_module_axis {
    uint64_t *bounds; /* ascending; leaf i is [bounds[i], bounds[i + 1]) */
    uint32_t bound_count, leafs;
    uint32_t *lists;   /* of 2 leafs nodes: entries [lists[node], lists[node + 1]) */
    uint32_t *entries; /* modules */
    uint32_t
        *gone_max;   /* a tree over groups of entries: no module of one is gone later */
    uint32_t groups; /* its leafs, a power of two */
};

struct mr_module_reach {
    uint64_t end_max; /* of all that begin no later */
    uint32_t site_base;
};

struct mr_module_index {
    uint32_t first, count;
    struct mr_module_axis axes[MR_MODULE_AXES];
    struct mr_module_reach *reaches; /* by site_base */
};

/* MR_ENOMEM. */
enum mr_status mr_module_index_build(struct mr_module_index *index,
                                     const struct mr_module *items, uint32_t first,
                                     uint32_t count);
void mr_module_index_fini(struct mr_module_index *index);

/* Of those that cover the place and hold in the epoch, the one that began last. */
uint32_t mr_module_index_holding(const struct mr_module_index *index,
                                 const struct mr_module *items,
                                 enum mr_module_axis_kind kind, uint64_t place,
                                 uint32_t epoch, uint32_t best);
/* Of those that cover the place and begin later, the one that begins first. */
uint32_t mr_module_index_next(const struct mr_module_index *index,
                              const struct mr_module *items,
                              enum mr_module_axis_kind kind, uint64_t place,
                              uint32_t epoch, uint32_t best);

/* Some module's sites begin before `to` and end behind `from`. */
bool mr_module_index_overlaps(const struct mr_module_index *index, uint64_t from,
                              uint64_t to);

#endif
