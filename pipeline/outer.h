/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sites are outer frames and which are forced roots, per scope (DESIGN section 6): named by option (globs over names)
 * or by attribute of a named site. A property of (scope, site), so that it is one for all streams of a lane. What is learned
 * is of one stream (reconstruct_outer.c).
 * One thread. A byte per site and scope; limits: those of the site table, MR_OUTER_SCOPES_MAX scopes (past it: the last
 * one is shared).
 *
 *     mr_outer_init(&outer, &config);
 *     scope = mr_outer_scope(&outer, source->scope);
 *     if (mr_outer_flags(&outer, scope, site) & MR_OUTER_FRAME) ...
 */
#ifndef MR_PIPELINE_OUTER_H
#define MR_PIPELINE_OUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/table.h"
#include "pipeline/sites.h"

#define MR_OUTER_SCOPES_MAX 4096u

enum mr_outer_flag {
    MR_OUTER_FRAME = 1,     /* bottom calls of this site are outer frames */
    MR_OUTER_ROOT = 2,      /* its calls are roots wherever they are entered */
    MR_OUTER_KNOWN = 4,     /* options and attributes were looked at */
    MR_OUTER_ANNOUNCED = 8, /* told upward */
};

struct mr_outer_config {
    const struct mr_sites *sites;
    const char *const *outer_globs, *const
                                        *root_globs; /* fnmatch(3) patterns over names */
    uint32_t outer_glob_count, root_glob_count;
    /* The name of a function's site, NULL while it is not known (it is asked again). May be NULL: only spans have names then. */
    const char *(*resolve)(void *context, const struct mr_site *site);
    void *context;
};

struct mr_outer_scope {
    struct mr_id id;
    uint8_t *flags; /* by site */
    uint32_t capacity;
};

struct mr_outer {
    const struct mr_outer_config *config;
    struct mr_table scope_ids;
    struct mr_outer_scope *scopes;
    uint32_t scope_count;
};

void mr_outer_init(struct mr_outer *outer, const struct mr_outer_config *config);
void mr_outer_fini(struct mr_outer *outer);

/* The number of a scope, made when new. MR_ENOMEM. */
enum mr_status mr_outer_scope(struct mr_outer *outer, struct mr_id id, uint32_t *scope);
/* Whether any site may be a forced root. */
bool mr_outer_has_roots(const struct mr_outer *outer);
/* MR_OUTER_FRAME and MR_OUTER_ROOT as far as known; 0 also without memory. */
uint8_t mr_outer_flags(struct mr_outer *outer, uint32_t scope, uint32_t site);
/* Whether options and attributes are known to say nothing of the site. */
static inline bool mr_outer_is_ordinary(const struct mr_outer *outer, uint32_t scope,
                                        uint32_t site)
{
    const struct mr_outer_scope *entry = &outer->scopes[scope];

    return site < entry->capacity &&
           (entry->flags[site] & ~MR_OUTER_ANNOUNCED) == MR_OUTER_KNOWN;
}
/* Whether the site is an outer frame, and was announced as one. */
static inline bool mr_outer_is_told(const struct mr_outer *outer, uint32_t scope,
                                    uint32_t site)
{
    const struct mr_outer_scope *entry = &outer->scopes[scope];

    return site < entry->capacity &&
           entry->flags[site] == (MR_OUTER_KNOWN | MR_OUTER_FRAME | MR_OUTER_ANNOUNCED);
}
/* Sets flags; false without memory, or when they were all set before. */
bool mr_outer_set(struct mr_outer *outer, uint32_t scope, uint32_t site, uint8_t flags);

#endif
