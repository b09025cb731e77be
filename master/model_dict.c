/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names: what DICT items say of sites, scopes, sources, outer frames and nodes. A thing
 * that was only referred to is there as a record that is not `known`; late names replace
 * the record, never the index.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "master/model_private.h"
#include "net/ids.h"

#include <stdlib.h>
#include <string.h>

static struct mr_model_site *new_site(const struct mr_dict_site *site, bool known)
{
    const char *texts[] = {site->module, site->name, site->file};
    struct mr_model_site *record =
        mr_model_record_new_texts(MR_MODEL_SITE, sizeof(*record), texts, 3);

    if (!record)
        return NULL;
    record->id = site->id;
    record->known = known;
    record->type = site->type;
    record->quality = site->quality;
    record->offset = site->offset;
    record->line = site->line;
    size_t size =
        site->build_id.size < MR_BUILD_ID_MAX ? site->build_id.size : MR_BUILD_ID_MAX;
    record->build_id_size = (uint32_t)size;
    if (size)
        memcpy(record->build_id, site->build_id.data, size);
    record->module = texts[0];
    record->name = texts[1];
    record->file = texts[2];
    return record;
}

static struct mr_model_scope *new_scope(const struct mr_dict_scope *scope, bool known)
{
    const char *texts[] = {scope->app, scope->version, scope->host};
    struct mr_model_scope *record =
        mr_model_record_new_texts(MR_MODEL_SCOPE, sizeof(*record), texts, 3);

    if (!record)
        return NULL;
    record->id = scope->id;
    record->known = known;
    record->app = texts[0];
    record->version = texts[1];
    record->host = texts[2];
    return record;
}

static struct mr_model_source *new_source(const struct mr_dict_source *source, bool known,
                                          uint32_t scope)
{
    const char *texts[] = {source->host, source->app, source->version, source->exe};
    struct mr_model_source *record =
        mr_model_record_new_texts(MR_MODEL_SOURCE, sizeof(*record), texts, 4);

    if (!record)
        return NULL;
    record->id = source->id;
    record->worker = source->worker;
    record->known = known;
    record->scope = scope;
    record->pid = source->pid;
    record->start_ns = source->start_ns;
    record->end_ns = source->end_ns;
    record->taken_ns = mr_clock_realtime_ns();
    record->clock = source->clock;
    record->state = source->state;
    record->policy = source->policy;
    record->host = texts[0];
    record->app = texts[1];
    record->version = texts[2];
    record->exe = texts[3];
    return record;
}

/* True with *index set when the table has the id; else *status says if there is room. */
static bool find(struct mr_model *model, enum mr_model_table table, struct mr_id id,
                 uint32_t *index, enum mr_status *status)
{
    *index = mr_cow_map_find(&model->working->ids[table], id);
    *status = MR_OK;
    if (*index != MR_MODEL_NONE)
        return true;
    *status = mr_model_room(model, table);
    return *status != MR_OK;
}

enum mr_status mr_model_add_site(struct mr_model *model, struct mr_id id, uint32_t *index)
{
    const struct mr_dict_site none = {.id = id, .module = "", .name = "", .file = ""};
    enum mr_status status;

    if (find(model, MR_MODEL_SITE, id, index, &status))
        return status;
    status = mr_model_append(model, MR_MODEL_SITE, &id, new_site(&none, false), index);
    if (status != MR_OK)
        return status;
    return mr_model_append(
        model, MR_MODEL_SITE_STAT, NULL,
        mr_model_record_new(MR_MODEL_SITE_STAT, sizeof(struct mr_model_site_stat)), NULL);
}

enum mr_status mr_model_add_scope(struct mr_model *model, struct mr_id id,
                                  uint32_t *index)
{
    const struct mr_dict_scope none = {.id = id, .app = "", .version = "", .host = ""};
    enum mr_status status;

    if (find(model, MR_MODEL_SCOPE, id, index, &status))
        return status;
    return mr_model_append(model, MR_MODEL_SCOPE, &id, new_scope(&none, false), index);
}

enum mr_status mr_model_add_source(struct mr_model *model, struct mr_id id,
                                   uint32_t *index)
{
    const struct mr_dict_source none = {
        .id = id, .host = "", .app = "", .version = "", .exe = ""};
    enum mr_status status;

    if (find(model, MR_MODEL_SOURCE, id, index, &status))
        return status;
    return mr_model_append(model, MR_MODEL_SOURCE, &id,
                           new_source(&none, false, MR_MODEL_NONE), index);
}

static enum mr_status replace(struct mr_model *model, enum mr_model_table table,
                              uint32_t index, void *record)
{
    if (!record)
        return MR_ENOMEM;
    enum mr_status status =
        mr_cow_put(&model->cow, &model->working->tables[table], index, record);
    if (status != MR_OK)
        free(record);
    return status;
}

enum mr_status mr_model_put_site(struct mr_model *model, const struct mr_dict_site *site)
{
    uint32_t index;
    enum mr_status status = mr_model_add_site(model, site->id, &index);

    if (status != MR_OK)
        return status;
    const struct mr_model_site *old = mr_model_site(model->working, index);
    if (old->known && old->quality >= site->quality)
        return MR_OK;
    return replace(model, MR_MODEL_SITE, index, new_site(site, true));
}

enum mr_status mr_model_put_scope(struct mr_model *model,
                                  const struct mr_dict_scope *scope)
{
    uint32_t index;
    enum mr_status status = mr_model_add_scope(model, scope->id, &index);

    if (status != MR_OK || mr_model_scope(model->working, index)->known)
        return status;
    return replace(model, MR_MODEL_SCOPE, index, new_scope(scope, true));
}

enum mr_status mr_model_put_source(struct mr_model *model,
                                   const struct mr_dict_source *source)
{
    uint32_t index, scope = MR_MODEL_NONE;
    enum mr_status status = mr_model_add_source(model, source->id, &index);

    if (status != MR_OK)
        return status;
    const struct mr_model_source *old = mr_model_source(model->working, index);
    if (old->known &&
        mr_source_state_rank(old->state) >= mr_source_state_rank(source->state))
        return MR_OK;
    if (!mr_id_is_zero(source->scope))
        status = mr_model_add_scope(model, source->scope, &scope);
    if (status == MR_ENOMEM)
        return status;
    return replace(model, MR_MODEL_SOURCE, index, new_source(source, true, scope));
}

enum mr_status mr_model_put_outer(struct mr_model *model,
                                  const struct mr_dict_outer *outer)
{
    uint8_t key[32];
    uint32_t index, scope, site;
    enum mr_status status;

    mr_id_put(outer->scope, key);
    mr_id_put(outer->site, key + 16);
    struct mr_id id = mr_hash128(mr_span_of(key, sizeof(key)));
    if (find(model, MR_MODEL_OUTER, id, &index, &status))
        return status;
    if ((status = mr_model_add_scope(model, outer->scope, &scope)) != MR_OK ||
        (status = mr_model_add_site(model, outer->site, &site)) != MR_OK)
        return status;
    struct mr_model_outer *record = mr_model_record_new(MR_MODEL_OUTER, sizeof(*record));
    if (record) {
        record->scope = scope;
        record->site = site;
        record->why = outer->why;
    }
    return mr_model_append(model, MR_MODEL_OUTER, &id, record, NULL);
}

/* MR_EFORMAT when the child list breaks the format. */
static enum mr_status count_children(struct mr_span children, uint32_t *count)
{
    struct mr_node_child child;
    enum mr_status status;

    *count = 0;
    while ((status = mr_node_child_next(&children, &child)) == MR_OK)
        (*count)++;
    return status == MR_END ? MR_OK : status;
}

static struct mr_model_node *new_node(const struct mr_dict_node *node, uint32_t site,
                                      uint32_t count)
{
    struct mr_span children = node->children;
    struct mr_node_child child;
    struct mr_model_node *record = mr_model_record_new(
        MR_MODEL_NODE, sizeof(*record) + count * sizeof(record->children[0]));

    if (!record)
        return NULL;
    record->id = node->id;
    record->site = site;
    record->exactness = node->exactness;
    while (record->child_count < count && mr_node_child_next(&children, &child) == MR_OK)
        record->children[record->child_count++] =
            (struct mr_model_child){child.id, child.repeat};
    return record;
}

/* Whether the record says what the item does. */
static bool is_same_node(const struct mr_model_root *root,
                         const struct mr_model_node *known,
                         const struct mr_dict_node *node, uint32_t count)
{
    struct mr_span children = node->children;
    struct mr_node_child child;

    if (known->exactness != node->exactness || known->child_count != count ||
        !mr_id_equal(mr_model_site(root, known->site)->id, node->site))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (mr_node_child_next(&children, &child) != MR_OK ||
            !mr_id_equal(child.id, known->children[i].id) ||
            child.repeat != known->children[i].repeat)
            return false;
    return true;
}

enum mr_status mr_model_put_node(struct mr_model *model, const struct mr_dict_node *node)
{
    struct mr_model_root *root = model->working;
    uint32_t index, site, count;
    enum mr_status status = count_children(node->children, &count);

    if (status != MR_OK)
        return status;
    if (find(model, MR_MODEL_NODE, node->id, &index, &status)) {
        if (index != MR_MODEL_NONE)
            root->collisions +=
                !is_same_node(root, mr_model_node(root, index), node, count);
        return status;
    }
    if (root->node_children + count >
        (uint64_t)model->limits.nodes * MR_MODEL_CHILDREN_PER_NODE) {
        root->refused[MR_MODEL_NODE]++;
        return MR_ELIMIT;
    }
    status = mr_model_add_site(model, node->site, &site);
    if (status != MR_OK)
        return status;
    root->node_children += count;
    return mr_model_append(model, MR_MODEL_NODE, &node->id, new_node(node, site, count),
                           NULL);
}

static enum mr_status put_item(struct mr_model *model, const struct mr_dict_item *item)
{
    switch (item->kind) {
    case MR_DICT_SITE:
        return mr_model_put_site(model, &item->site);
    case MR_DICT_SCOPE:
        return mr_model_put_scope(model, &item->scope);
    case MR_DICT_SOURCE:
        return mr_model_put_source(model, &item->source);
    case MR_DICT_OUTER:
        return mr_model_put_outer(model, &item->outer);
    case MR_DICT_NODE:
        return mr_model_put_node(model, &item->node);
    case MR_DICT_NOTE:
        return mr_model_put_note(model, &item->note);
    case MR_DICT_SPAN_COUNTER:
        return mr_model_put_span_counter(model, &item->span_counter);
    default: /* a probe's kinds say nothing here */
        model->working->skipped_items++;
        return MR_OK;
    }
}

enum mr_status mr_model_apply_dict(struct mr_model *model, struct mr_span payload,
                                   struct mr_error *error)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    enum mr_status status = mr_dict_open(&reader, payload, error);

    if (status != MR_OK)
        return status;
    while ((status = mr_dict_next(&reader, &item, error)) == MR_OK) {
        status = put_item(model, &item);
        if (status == MR_EFORMAT)
            mr_error_set(error, status, "item %u of the dictionary: bad list of children",
                         reader.next);
        if (status != MR_OK && status != MR_ELIMIT)
            break;
    }
    model->working->skipped_items += reader.unknown;
    model->working->dicts++;
    mr_dict_close(&reader);
    return status == MR_END ? MR_OK : status;
}
