/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sites of a lane: every place that was measured, by a dense number that events carry. Numbers are given in the order in
 * which sites are first met, never change and are never taken back; number 0 is the unknown site.
 *
 *     id (128 bits, FORMAT.md section 7)  ->  number  ->  struct mr_site
 *
 * The worker makes one table per lane and gives it to decode, reconstruct and reduce. Only decode adds; who received a
 * number in a batch may read its site from any thread, because entries do not move and the pipe has ordered their
 * writing before the number (mr_sites_at). Everything else: decode's thread.
 *
 * Limits: `limit` sites (past it: the unknown site, counted by the caller), MR_SITES_TEXT_MAX bytes of names.
 *
 *     mr_sites_new(1u << 20, &sites);
 *     module = mr_sites_module(sites, path, build_id);
 *     number = mr_sites_add_function(sites, module, offset);
 *     id = mr_sites_at(sites, number)->id;
 *     mr_sites_free(sites);
 */
#ifndef MR_PIPELINE_SITES_H
#define MR_PIPELINE_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomics.h"
#include "base/id.h"
#include "base/span.h"
#include "base/status.h"
#include "net/control.h"

#define MR_SITE_UNKNOWN 0u
#define MR_SITES_SEGMENT 1024u  /* sites per allocation */
#define MR_SITES_SEGMENTS 4096u /* so at most 4 Mi sites */
#define MR_SITES_LIMIT_MAX (MR_SITES_SEGMENT * MR_SITES_SEGMENTS)
#define MR_SITES_LIMIT_DEFAULT (1u << 20)
#define MR_SITES_TEXT_MAX ((size_t)256 << 20)

struct mr_site_module {
    const char *path;        /* as told by the probe */
    struct mr_span build_id; /* may be empty */
};

struct mr_site {
    struct mr_id id;
    const struct mr_site_module
        *module;                   /* functions; NULL for spans and the unknown site */
    uint64_t offset;               /* in the module */
    const char *app, *name, *file; /* spans; "" otherwise */
    uint32_t line;
    uint8_t type;  /* enum mr_site_type */
    uint8_t flags; /* MR_NAMED_SITE_ROOT, MR_NAMED_SITE_OUTER */
};

struct mr_sites {
    struct mr_site *segments[MR_SITES_SEGMENTS];
    uint32_t count, limit;
    uint64_t refused; /* sites that found no room */
    _Atomic bool
        has_roots; /* some span is a root by attribute; set before its number is handed on */
    struct mr_sites_index *index;
};

/* MR_ENOMEM. `limit` is 2 .. MR_SITES_LIMIT_MAX. The table then holds the unknown site. */
enum mr_status mr_sites_new(uint32_t limit, struct mr_sites **sites);
void mr_sites_free(struct mr_sites *sites); /* NULL allowed */

/* The module of these bytes, made when new; NULL when there is no room. */
const struct mr_site_module *mr_sites_module(struct mr_sites *sites, const char *path,
                                             struct mr_span build_id);

/* The number of the site, made when new; MR_SITE_UNKNOWN when there is no room (counted in `refused`). */
uint32_t mr_sites_add_function(struct mr_sites *sites,
                               const struct mr_site_module *module, uint64_t offset);
/* The number of the function's site, if it has one already; else MR_SITE_UNKNOWN. */
uint32_t mr_sites_find_function(const struct mr_sites *sites,
                                const struct mr_site_module *module, uint64_t offset);
uint32_t mr_sites_add_span(struct mr_sites *sites, const char *app,
                           const struct mr_dict_named_site *span);

static inline const struct mr_site *mr_sites_at(const struct mr_sites *sites,
                                                uint32_t number)
{
    MR_DEBUG_ASSERT(number < sites->limit && sites->segments[number / MR_SITES_SEGMENT]);
    return &sites->segments[number / MR_SITES_SEGMENT][number % MR_SITES_SEGMENT];
}

/*
 * The DICT item that tells a site upward: what is known without reading files. `module` of a function is its path, which
 * the names filter needs. Borrows from the table.
 */
void mr_sites_item(const struct mr_sites *sites, uint32_t number,
                   struct mr_dict_item *item);

#endif
