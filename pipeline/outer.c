/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/outer.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define FLAGS_FIRST 1024u

void mr_outer_init(struct mr_outer *outer, const struct mr_outer_config *config)
{
    *outer = (struct mr_outer){.config = config};
    mr_table_init(&outer->scope_ids, MR_OUTER_SCOPES_MAX);
}

void mr_outer_fini(struct mr_outer *outer)
{
    for (uint32_t i = 0; i < outer->scope_count; i++)
        free(outer->scopes[i].flags);
    free(outer->scopes);
    mr_table_fini(&outer->scope_ids);
    outer->scopes = NULL;
    outer->scope_count = 0;
}

enum mr_status mr_outer_scope(struct mr_outer *outer, struct mr_id id, uint32_t *scope)
{
    struct mr_outer_scope *grown;

    *scope = mr_table_find(&outer->scope_ids, id);
    if (*scope != MR_TABLE_NONE)
        return MR_OK;
    if (outer->scope_count == MR_OUTER_SCOPES_MAX) {
        *scope = MR_OUTER_SCOPES_MAX - 1;
        return MR_OK;
    }
    grown = realloc(outer->scopes, (outer->scope_count + 1) * sizeof(*grown));
    if (!grown)
        return MR_ENOMEM;
    outer->scopes = grown;
    if (mr_table_put(&outer->scope_ids, id, outer->scope_count) != MR_OK)
        return MR_ENOMEM;
    *scope = outer->scope_count++;
    outer->scopes[*scope] = (struct mr_outer_scope){.id = id};
    return MR_OK;
}

bool mr_outer_has_roots(const struct mr_outer *outer)
{
    return outer->config->root_glob_count > 0 ||
           mr_load_relaxed(
               &outer->config->sites->has_roots); /* see mr_sites_add_span() */
}

static bool matches(const char *const *globs, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (fnmatch(globs[i], name, 0) == 0)
            return true;
    return false;
}

static const char *name_of(const struct mr_outer_config *config,
                           const struct mr_site *site)
{
    if (site->type == MR_SITE_SPAN)
        return site->name;
    if (!site->module)
        return ""; /* the unknown site */
    return config->resolve ? config->resolve(config->context, site) : "";
}

/* What options and attributes say of a site; without MR_OUTER_KNOWN while its name is missing. */
static uint8_t look_up(const struct mr_outer_config *config, uint32_t number)
{
    const struct mr_site *site = mr_sites_at(config->sites, number);
    bool has_globs = config->outer_glob_count || config->root_glob_count;
    const char *name = has_globs ? name_of(config, site) : "";
    uint8_t flags = name ? MR_OUTER_KNOWN : 0;

    if (site->flags & MR_NAMED_SITE_OUTER)
        flags |= MR_OUTER_FRAME;
    if (site->flags & MR_NAMED_SITE_ROOT)
        flags |= MR_OUTER_ROOT;
    if (!name || !has_globs)
        return flags;
    if (matches(config->outer_globs, config->outer_glob_count, name))
        flags |= MR_OUTER_FRAME;
    if (matches(config->root_globs, config->root_glob_count, name))
        flags |= MR_OUTER_ROOT;
    return flags;
}

static uint8_t *flags_of(struct mr_outer *outer, uint32_t scope, uint32_t site)
{
    struct mr_outer_scope *entry = &outer->scopes[scope];
    uint32_t capacity = entry->capacity ? entry->capacity : FLAGS_FIRST;
    uint8_t *grown;

    MR_DEBUG_ASSERT(scope < outer->scope_count);
    if (site < entry->capacity)
        return &entry->flags[site];
    while (capacity <= site)
        capacity *= 2;
    grown = realloc(entry->flags, capacity);
    if (!grown)
        return NULL;
    memset(grown + entry->capacity, 0, capacity - entry->capacity);
    entry->flags = grown;
    entry->capacity = capacity;
    return &grown[site];
}

uint8_t mr_outer_flags(struct mr_outer *outer, uint32_t scope, uint32_t site)
{
    uint8_t *flags = flags_of(outer, scope, site);

    if (!flags)
        return 0;
    if (!(*flags & MR_OUTER_KNOWN))
        *flags |= look_up(outer->config, site);
    return *flags;
}

bool mr_outer_set(struct mr_outer *outer, uint32_t scope, uint32_t site, uint8_t flags)
{
    uint8_t *at = flags_of(outer, scope, site);

    if (!at || (*at & flags) == flags)
        return false;
    *at |= flags;
    return true;
}
