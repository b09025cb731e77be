/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sources told of functions that they record no more, or did not for a while
 * (MILLRACE_PRUNE): by site, over all sources. Their calls were counted, each one, but not by
 * path: a path's part of them is an estimate, by its part of the recorded calls.
 *
 *     status = mr_site_pruned_new(root, &pruned);
 *     const struct mr_site_pruned *site = mr_site_pruned_of(pruned, index);   // NULL: never
 *     free(pruned);
 *
 * Walks notes, and paths where anything was pruned. One thread; the root is borrowed.
 */
#ifndef MR_MASTER_PRUNED_H
#define MR_MASTER_PRUNED_H

#include "base/status.h"
#include "master/model.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_site_pruned {
    bool was_pruned;   /* in some source, at some time */
    bool is_above;     /* calls of a pruned function stand below it: their time is its */
    uint32_t sources;  /* in which it is pruned now, or was at their end */
    uint64_t since_ns; /* Unix; the first of these; 0: none */
    uint64_t below_ns; /* its median call took less: the largest that was told */
    bool is_counted;   /* `calls` means something */
    uint64_t calls;    /* not recorded, each one counted */
    uint64_t recorded; /* calls on all paths */
};

/* *pruned: by index of the model's sites; NULL where nothing was ever pruned. MR_ENOMEM. */
enum mr_status mr_site_pruned_new(const struct mr_model_root *root,
                                  struct mr_site_pruned **pruned);

/* NULL: calls of this site were always recorded. */
static inline const struct mr_site_pruned *mr_site_pruned_of(
    const struct mr_site_pruned *pruned, uint32_t site)
{
    return pruned && pruned[site].was_pruned ? &pruned[site] : NULL;
}

/* Of the site's calls that were not recorded, about so many were made on a path. */
uint64_t mr_site_pruned_estimate(const struct mr_site_pruned *site,
                                 uint64_t recorded_on_path);

#endif
