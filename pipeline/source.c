/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "net/ids.h"
#include "pipeline/resume.h"

#define SLOTS_FIRST 16u

/* Copies a string into *at and moves on. */
static const char *copy_text(char **at, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = memcpy(*at, text, size);

    *at += size;
    return copy;
}

static enum mr_status copy_info(struct mr_source *source,
                                const struct mr_source_info *info)
{
    /* Absent where a hello was not read from a wire. */
    const char *warning = info->clock_warning ? info->clock_warning : "";
    char *at;

    source->text = malloc(strlen(info->host) + strlen(info->app) + strlen(info->version) +
                          strlen(info->exe) + strlen(warning) + 5);
    if (!source->text)
        return MR_ENOMEM;
    at = source->text;
    source->info = *info;
    source->info.host = copy_text(&at, info->host);
    source->info.app = copy_text(&at, info->app);
    source->info.version = copy_text(&at, info->version);
    source->info.exe = copy_text(&at, info->exe);
    source->info.clock_warning = copy_text(&at, warning);
    source->info.attribute_count = 0; /* told to nobody yet */
    return MR_OK;
}

enum mr_status mr_source_new(const struct mr_hello *hello, bool group_by_host,
                             struct mr_source **source)
{
    struct mr_source *made = calloc(1, sizeof(*made));

    if (!made)
        return MR_ENOMEM;
    made->id = hello->sender;
    made->role = hello->role;
    made->level = hello->level;
    made->is_continuation = hello->oldest > 1;
    made->link_encoding = MR_ENCODING_WORDS;
    made->link_reason = MR_ENCODING_SAME_HOST;
    mr_modules_init(&made->modules, MR_SOURCE_MODULES_MAX);
    mr_site_map_init(&made->named, MR_SOURCE_SITES_MAX);
    mr_site_map_init(&made->map, MR_SOURCE_SITES_MAX);
    made->map_version = 1;
    made->slot_key = mr_hash_key();
    mr_handover_init(&made->handover, hello->resume_max);
    if (hello->role == MR_ROLE_PROBE) {
        if (copy_info(made, &hello->source) != MR_OK) {
            free(made);
            return MR_ENOMEM;
        }
        made->scope_host = group_by_host ? made->info.host : "";
        made->scope = mr_id_scope(made->info.app, made->info.version, made->scope_host);
        mr_ticks_init(&made->ticks, &made->info.clock);
    }
    *source = made;
    return MR_OK;
}

static void free_stream(struct mr_stream *stream)
{
    if (stream)
        free(stream->repeat);
    free(stream);
}

void mr_source_free(struct mr_source *source)
{
    if (!source)
        return;
    for (uint32_t i = 0; i < source->slot_count; i++)
        free_stream(source->slots[i]);
    free(source->slots);
    mr_resume_free(source->resume);
    mr_handover_fini(&source->handover);
    mr_modules_fini(&source->modules);
    mr_site_map_fini(&source->named);
    mr_site_map_fini(&source->map);
    free(source->text);
    free(source);
}

void mr_source_break(struct mr_source *source, const char *format, ...)
{
    char text[MR_ERROR_TEXT_SIZE];
    va_list args;

    if (mr_load_relaxed(&source->is_broken)) /* only this thread writes it */
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)mr_error_set(&source->error, MR_EFORMAT, "%s", text);
    mr_store_release(&source->is_broken,
                     true); /* [B] pairs with [W] in mr_source_is_broken() */
}

/* Multiply-shift under a key that no sender knows (Dietzfelbinger et al. 1997): the numbers are theirs to choose. */
static uint32_t slot_of(struct mr_stream *const *slots, uint32_t count, uint64_t key,
                        uint32_t id)
{
    uint32_t at = (uint32_t)(id * key >> 32) & (count - 1);

    while (slots[at] && slots[at]->id != id)
        at = (at + 1) & (count - 1);
    return at;
}

static uint32_t slot_of_stream(const struct mr_source *source, uint32_t id)
{
    return slot_of(source->slots, source->slot_count, source->slot_key, id);
}

/* Frees the streams that reduce is done with, and makes the table twice as large where that does not help. */
static enum mr_status make_room(struct mr_source *source, uint32_t limit)
{
    uint32_t live = 0, count = SLOTS_FIRST;
    struct mr_stream **slots;

    source->last_stream = NULL;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        const struct mr_stream *stream = source->slots[i];

        live += stream && stream->id != MR_STREAM_NONE &&
                !mr_load_acquire(&stream->is_closed); /* [F] */
    }
    if (live >= limit)
        return MR_ELIMIT;
    while (count < 4 * (live + 1))
        count *= 2;
    slots = calloc(count, sizeof(struct mr_stream *));
    if (!slots)
        return MR_ENOMEM;
    source->stream_count = 0;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct mr_stream *stream = source->slots[i];

        if (!stream)
            continue;
        if (mr_load_acquire(&stream->is_closed)) { /* [F] pairs with [C] in reduce */
            free_stream(stream);
            continue;
        }
        slots[slot_of(slots, count, source->slot_key, stream->id)] = stream;
        source->stream_count++;
    }
    free(source->slots);
    source->slots = slots;
    source->slot_count = count;
    return MR_OK;
}

static enum mr_status add_stream(struct mr_source *source, uint32_t id, uint32_t limit,
                                 struct mr_stream **stream)
{
    enum mr_status status = MR_OK;

    if (source->stream_count >= limit || 2 * source->stream_count >= source->slot_count)
        status = make_room(source, limit);
    if (status != MR_OK)
        return status;
    *stream = calloc(1, sizeof(**stream));
    if (!*stream)
        return MR_ENOMEM;
    (*stream)->id = id;
    (*stream)->source = source;
    (*stream)->has_counters = source->counter_count > 0;
    source->slots[slot_of_stream(source, id)] = *stream;
    source->stream_count++;
    return MR_OK;
}

enum mr_status mr_source_stream(struct mr_source *source, uint32_t id, uint32_t limit,
                                struct mr_stream **stream)
{
    MR_ASSERT(limit > 0 && limit <= 1u << 28);
    if (source->last_stream && source->last_stream->id == id) {
        *stream = source->last_stream;
        return MR_OK;
    }
    *stream = NULL;
    if (source->slot_count)
        *stream = source->slots[slot_of_stream(source, id)];
    if (!*stream) {
        enum mr_status status = add_stream(source, id, limit, stream);

        if (status != MR_OK)
            return status;
    }
    source->last_stream = *stream;
    return MR_OK;
}

/* Forgets every wire site but the named ones, which are found again in `named`. */
static void forget_map(struct mr_source *source)
{
    source->map_version++;
    mr_site_map_clear(&source->map);
    source->map_has_unknown = false;
}

void mr_source_enter_epoch(struct mr_source *source, uint32_t epoch)
{
    if (source->map_epoch != epoch && source->modules.depends_on_epoch)
        forget_map(source);
    source->map_epoch = epoch;
}

uint32_t mr_source_look_up(const struct mr_source *source, struct mr_sites *sites,
                           uint32_t epoch, uint32_t wire)
{
    const struct mr_module *module;
    uint64_t slot, offset;

    if (wire < MR_SITE_FIRST_MODULE) {
        slot = mr_site_map_find(&source->named, wire);
        return slot == MR_SITE_MAP_NONE ? MR_SITE_UNKNOWN : (uint32_t)slot;
    }
    module = mr_modules_by_site(&source->modules, epoch, wire, &offset);
    return module ? mr_sites_add_function(sites, module->origin, offset)
                  : MR_SITE_UNKNOWN;
}

uint32_t mr_source_resolve(struct mr_source *source, struct mr_sites *sites,
                           uint32_t epoch, uint32_t wire)
{
    uint32_t site = mr_source_look_up(source, sites, epoch, wire);

    source->map_has_unknown |= site == MR_SITE_UNKNOWN;
    /* A full map starts again: it is only a cache. */
    if (mr_site_map_put(&source->map, wire, site) == MR_ELIMIT) {
        forget_map(source);
        (void)mr_site_map_put(&source->map, wire, site);
    }
    return site;
}

uint32_t mr_source_resolve_address(struct mr_source *source, struct mr_sites *sites,
                                   uint32_t epoch, uint64_t address)
{
    uint64_t offset;
    const struct mr_module *module =
        mr_modules_by_address(&source->modules, epoch, address, &offset);

    return module ? mr_sites_add_function(sites, module->origin, offset)
                  : MR_SITE_UNKNOWN;
}

uint32_t mr_source_find_address(const struct mr_source *source,
                                const struct mr_sites *sites, uint32_t epoch,
                                uint64_t address)
{
    uint64_t offset;
    const struct mr_module *module =
        mr_modules_by_address(&source->modules, epoch, address, &offset);

    return module ? mr_sites_find_function(sites, module->origin, offset)
                  : MR_SITE_UNKNOWN;
}

static enum mr_status add_module(struct mr_source *source, struct mr_sites *sites,
                                 const struct mr_dict_module *item)
{
    const struct mr_site_module *origin =
        mr_sites_module(sites, item->path, item->build_id);

    return origin ? mr_modules_add(&source->modules, item, origin) : MR_ELIMIT;
}

static enum mr_status add_named_site(struct mr_source *source, struct mr_sites *sites,
                                     const struct mr_dict_named_site *item)
{
    uint32_t site;

    if (item->site < MR_SITE_FIRST_NAMED || item->site >= MR_SITE_FIRST_MODULE)
        return MR_EFORMAT;
    site = mr_sites_add_span(sites, source->info.app, item);
    return site == MR_SITE_UNKNOWN ? MR_ELIMIT
                                   : mr_site_map_put(&source->named, item->site, site);
}

enum mr_status mr_source_add_site_item(struct mr_source *source, struct mr_sites *sites,
                                       const struct mr_dict_item *item)
{
    enum mr_status status = MR_OK;

    switch (item->kind) {
    case MR_DICT_MODULE:
        status = add_module(source, sites, &item->module);
        break;
    case MR_DICT_MODULE_GONE:
        mr_modules_gone(&source->modules, &item->module_gone);
        break;
    case MR_DICT_NAMED_SITE:
        status = add_named_site(source, sites, &item->named_site);
        break;
    default:
        MR_ASSERT(false);
    }
    source->map_version++;
    if (source->map_has_unknown || source->modules.depends_on_epoch)
        forget_map(source);
    return status;
}
