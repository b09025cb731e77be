/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/table.h"
#include "net/ids.h"

#define MODULES_MAX (1u << 16)
#define TEXT_CHUNK (64u << 10)

struct mr_sites_index {
    struct mr_table by_id;      /* -> site number */
    struct mr_table module_ids; /* hash of (build id, path) -> module number */
    struct mr_site_module **modules;
    uint32_t module_count, module_capacity;
    struct mr_arena text;
};

static uint32_t add(struct mr_sites *sites, const struct mr_site *site)
{
    struct mr_site **segment = &sites->segments[sites->count / MR_SITES_SEGMENT];
    uint32_t number;

    if (sites->count == sites->limit)
        goto refused;
    if (!*segment)
        *segment = calloc(MR_SITES_SEGMENT, sizeof(**segment));
    if (!*segment)
        goto refused;
    if (mr_table_find_or_add(&sites->index->by_id, site->id, sites->count, &number) !=
        MR_OK)
        goto refused;
    MR_ASSERT(number == sites->count);
    (*segment)[number % MR_SITES_SEGMENT] = *site;
    sites->count++;
    return number;
refused:
    sites->refused++;
    return MR_SITE_UNKNOWN;
}

enum mr_status mr_sites_new(uint32_t limit, struct mr_sites **sites)
{
    struct mr_site unknown = {
        .id = mr_id_unknown_site(), .app = "", .name = "", .file = ""};
    struct mr_sites *made = calloc(1, sizeof(*made));

    MR_ASSERT(limit >= 2 && limit <= MR_SITES_LIMIT_MAX);
    if (!made)
        return MR_ENOMEM;
    made->limit = limit;
    made->index = calloc(1, sizeof(*made->index));
    if (!made->index) {
        free(made);
        return MR_ENOMEM;
    }
    mr_table_init(&made->index->by_id, limit);
    mr_table_init(&made->index->module_ids, MODULES_MAX);
    mr_arena_init(&made->index->text, TEXT_CHUNK, MR_SITES_TEXT_MAX);
    (void)add(made, &unknown);
    if (made->count == 0) {
        mr_sites_free(made);
        return MR_ENOMEM;
    }
    *sites = made;
    return MR_OK;
}

void mr_sites_free(struct mr_sites *sites)
{
    if (!sites)
        return;
    for (uint32_t i = 0; i < MR_SITES_SEGMENTS && sites->segments[i]; i++)
        free(sites->segments[i]);
    mr_table_fini(&sites->index->by_id);
    mr_table_fini(&sites->index->module_ids);
    mr_arena_fini(&sites->index->text);
    free(sites->index->modules);
    free(sites->index);
    free(sites);
}

static struct mr_site_module *make_module(struct mr_sites_index *index, const char *path,
                                          struct mr_span build_id)
{
    struct mr_site_module *module = mr_arena_take(&index->text, sizeof(*module));

    if (!module)
        return NULL;
    module->path = mr_arena_copy(&index->text, mr_span_of_text(path));
    module->build_id.data = (uint8_t *)mr_arena_copy(&index->text, build_id);
    module->build_id.size = build_id.size;
    if (!module->path || !module->build_id.data)
        return NULL;
    return module;
}

static bool grow_modules(struct mr_sites_index *index)
{
    uint32_t capacity = index->module_capacity ? 2 * index->module_capacity : 16;
    struct mr_site_module **grown;

    if (index->module_count < index->module_capacity)
        return true;
    grown = realloc(index->modules, capacity * sizeof(struct mr_site_module *));
    if (!grown)
        return false;
    index->modules = grown;
    index->module_capacity = capacity;
    return true;
}

const struct mr_site_module *mr_sites_module(struct mr_sites *sites, const char *path,
                                             struct mr_span build_id)
{
    struct mr_sites_index *index = sites->index;
    struct mr_id key = mr_hash128_seed(build_id, mr_hash64(mr_span_of_text(path)));
    uint32_t number = mr_table_find(&index->module_ids, key);
    struct mr_site_module *module;

    if (number != MR_TABLE_NONE)
        return index->modules[number];
    if (!grow_modules(index))
        return NULL;
    module = make_module(index, path, build_id);
    if (!module || mr_table_put(&index->module_ids, key, index->module_count) != MR_OK)
        return NULL;
    index->modules[index->module_count++] = module;
    return module;
}

uint32_t mr_sites_add_function(struct mr_sites *sites,
                               const struct mr_site_module *module, uint64_t offset)
{
    struct mr_site site = {.id = mr_id_function(module->build_id, module->path, offset),
                           .module = module,
                           .offset = offset,
                           .app = "",
                           .name = "",
                           .file = "",
                           .type = MR_SITE_FUNCTION};
    uint32_t number = mr_table_find(&sites->index->by_id, site.id);

    return number != MR_TABLE_NONE ? number : add(sites, &site);
}

uint32_t mr_sites_find_function(const struct mr_sites *sites,
                                const struct mr_site_module *module, uint64_t offset)
{
    uint32_t number = mr_table_find(
        &sites->index->by_id, mr_id_function(module->build_id, module->path, offset));

    return number != MR_TABLE_NONE ? number : MR_SITE_UNKNOWN;
}

uint32_t mr_sites_add_span(struct mr_sites *sites, const char *app,
                           const struct mr_dict_named_site *span)
{
    struct mr_arena *text = &sites->index->text;
    struct mr_site site = {.id = mr_id_span(app, span->name), .type = MR_SITE_SPAN};
    uint32_t number = mr_table_find(&sites->index->by_id, site.id);

    if (number != MR_TABLE_NONE)
        return number;
    site.app = mr_arena_copy(text, mr_span_of_text(app));
    site.name = mr_arena_copy(text, mr_span_of_text(span->name));
    site.file = mr_arena_copy(text, mr_span_of_text(span->file));
    site.line = span->line;
    site.flags = (uint8_t)(span->flags & (MR_NAMED_SITE_ROOT | MR_NAMED_SITE_OUTER));
    if (!site.app || !site.name || !site.file) {
        sites->refused++;
        return MR_SITE_UNKNOWN;
    }
    if (site.flags & MR_NAMED_SITE_ROOT)
        mr_store_relaxed(&sites->has_roots,
                         true); /* the pipe orders it before the number */
    return add(sites, &site);
}

void mr_sites_item(const struct mr_sites *sites, uint32_t number,
                   struct mr_dict_item *item)
{
    const struct mr_site *site = mr_sites_at(sites, number);

    memset(item, 0, sizeof(*item));
    item->kind = MR_DICT_SITE;
    item->site.id = site->id;
    item->site.type = (enum mr_site_type)site->type;
    item->site.module = site->module ? site->module->path : site->app;
    item->site.build_id = site->module ? site->module->build_id : mr_span_of(NULL, 0);
    item->site.offset = site->offset;
    item->site.name = number == MR_SITE_UNKNOWN ? "(unknown)" : site->name;
    item->site.file = site->file;
    item->site.line = site->line;
    /* A span's name is all there is to know; a function's waits for the names filter. */
    item->site.quality = site->module ? MR_QUALITY_OFFSET : MR_QUALITY_DEBUG;
}
