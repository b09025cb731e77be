/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths and their statistics. Sums over paths that a reader wants often are kept beside
 * them as they change: per site, and over all.
 */
#include "base/assert.h"
#include "base/sum.h"
#include "master/model_private.h"
#include "net/ids.h"

/* Whether `site` is the site of `path` or of one above it. */
static bool occurs_above(const struct mr_model_root *root, uint32_t path, uint32_t site)
{
    while (path != MR_MODEL_NONE) {
        const struct mr_model_path *above = mr_model_path(root, path);

        if (above->site == site)
            return true;
        path = above->parent;
    }
    return false;
}

static struct mr_id id_of(const struct mr_model_root *root,
                          const struct mr_model_path *parent, uint32_t scope,
                          uint32_t site, uint32_t flags)
{
    struct mr_id above = parent ? parent->id : mr_model_scope(root, scope)->id;
    struct mr_id here = mr_model_site(root, site)->id;

    return flags & MR_DELTA_PATH_OUTER ? mr_id_outer_path(above, here)
                                       : mr_id_path(above, here);
}

static enum mr_status add_entry(struct mr_model *model, uint32_t path)
{
    struct mr_model_entry *entry = mr_model_record_new(MR_MODEL_ENTRY, sizeof(*entry));

    if (entry)
        entry->path = path;
    return mr_model_append(model, MR_MODEL_ENTRY, NULL, entry, NULL);
}

/* Hangs the new path `index` below its parent. */
static enum mr_status link_child(struct mr_model *model, uint32_t parent, uint32_t index)
{
    struct mr_model_path *above = mr_model_edit(model, MR_MODEL_PATH, parent);
    struct mr_model_path *child = mr_model_edit(model, MR_MODEL_PATH, index);

    if (!above || !child)
        return MR_ENOMEM;
    child->next_sibling = above->first_child;
    above->first_child = index;
    return MR_OK;
}

static enum mr_status count_path(struct mr_model *model, uint32_t entry)
{
    if (entry == MR_MODEL_NONE)
        return MR_OK;
    struct mr_model_entry *record = mr_model_edit(model, MR_MODEL_ENTRY, entry);
    if (!record)
        return MR_ENOMEM;
    record->paths++;
    return MR_OK;
}

static struct mr_model_path *new_path(const struct mr_model_root *root, struct mr_id id,
                                      uint32_t parent, uint32_t site, uint32_t flags)
{
    const struct mr_model_path *above =
        parent == MR_MODEL_NONE ? NULL : mr_model_path(root, parent);
    struct mr_model_path *record = mr_model_record_new(MR_MODEL_PATH, sizeof(*record));

    if (!record)
        return NULL;
    record->id = id;
    record->parent = parent;
    record->site = site;
    record->flags = flags & MR_DELTA_PATH_OUTER;
    if (occurs_above(root, parent, site))
        record->flags |= MR_MODEL_PATH_RECURSIVE;
    record->depth = above ? above->depth + 1 : 0;
    record->entry = MR_MODEL_NONE;
    if (above)
        record->entry = above->entry;
    else if (!(flags & MR_DELTA_PATH_OUTER))
        record->entry = mr_model_count(root, MR_MODEL_ENTRY);
    record->first_child = MR_MODEL_NONE;
    record->next_sibling = MR_MODEL_NONE;
    return record;
}

static enum mr_status append_path(struct mr_model *model, struct mr_model_path *record,
                                  uint32_t *index)
{
    struct mr_id id = record->id;
    uint32_t parent = record->parent, entry = record->entry;
    enum mr_status status = mr_model_append(model, MR_MODEL_PATH, &id, record, index);

    if (status == MR_OK)
        status = mr_model_append(
            model, MR_MODEL_PATH_STAT, NULL,
            mr_model_record_new(MR_MODEL_PATH_STAT, sizeof(struct mr_model_path_stat)),
            NULL);
    if (status == MR_OK && parent != MR_MODEL_NONE)
        status = link_child(model, parent, *index);
    else if (status == MR_OK && entry != MR_MODEL_NONE)
        status = add_entry(model, *index);
    return status == MR_OK ? count_path(model, entry) : status;
}

/* A call path cannot hang below an outer one, nor the other way round. */
static bool may_hang_below(const struct mr_model_path *parent, uint32_t flags)
{
    return !((parent->flags ^ flags) & MR_DELTA_PATH_OUTER) &&
           parent->depth + 1 < MR_MODEL_PATH_DEPTH_MAX;
}

enum mr_status mr_model_add_path(struct mr_model *model, uint32_t parent, uint32_t scope,
                                 uint32_t site, uint32_t flags, uint32_t *index)
{
    struct mr_model_root *root = model->working;
    const struct mr_model_path *above =
        parent == MR_MODEL_NONE ? NULL : mr_model_path(root, parent);
    struct mr_id id = id_of(root, above, scope, site, flags);

    MR_ASSERT(above || scope != MR_MODEL_NONE);
    *index = mr_cow_map_find(&root->ids[MR_MODEL_PATH], id);
    if (*index != MR_MODEL_NONE)
        return MR_OK;
    enum mr_status status = mr_model_room(model, MR_MODEL_PATH);
    if (status != MR_OK)
        return status;
    if (above && !may_hang_below(above, flags)) {
        root->refused[MR_MODEL_PATH]++;
        return MR_ELIMIT;
    }
    struct mr_model_path *record = new_path(root, id, parent, site, flags);
    if (!record)
        return MR_ENOMEM;
    record->scope = above ? above->scope : scope;
    return append_path(model, record, index);
}

static enum mr_status add_site_stats(struct mr_model *model,
                                     const struct mr_model_path *path,
                                     const struct mr_path_stats *stats)
{
    struct mr_model_site_stat *site =
        mr_model_edit(model, MR_MODEL_SITE_STAT, path->site);
    struct mr_times total = stats->total;
    bool from_empty = mr_sum(stats->ok, stats->failed) == 0;

    if (!site)
        return MR_ENOMEM;
    bool into_empty = mr_sum(site->ok, site->failed) == 0;
    if (path->flags & MR_MODEL_PATH_RECURSIVE)
        total.sum = 0; /* it is within the outermost call's total */
    mr_times_merge(&site->self, &stats->self, into_empty, from_empty);
    mr_times_merge(&site->total, &total, into_empty, from_empty);
    mr_sum_add(&site->ok, stats->ok);
    mr_sum_add(&site->failed, stats->failed);
    mr_sum_add(&site->incomplete, stats->incomplete);
    return MR_OK;
}

enum mr_status mr_model_add_path_stats(struct mr_model *model, uint32_t path,
                                       const struct mr_path_stats *stats)
{
    struct mr_model_totals *totals = &model->working->totals;
    struct mr_model_path_stat *record = mr_model_edit(model, MR_MODEL_PATH_STAT, path);

    if (!record)
        return MR_ENOMEM;
    enum mr_status status = mr_path_stats_merge(&record->stats, stats);
    if (status != MR_OK)
        return status;
    mr_sum_add(&totals->ok, stats->ok);
    mr_sum_add(&totals->failed, stats->failed);
    mr_sum_add(&totals->incomplete, stats->incomplete);
    mr_sum_add(&totals->self_ns, stats->self.sum);
    return add_site_stats(model, mr_model_path(model->working, path), stats);
}

enum mr_status mr_model_add_entry_stats(struct mr_model *model, uint32_t entry,
                                        const struct mr_entry_stats *stats)
{
    struct mr_model_entry *record = mr_model_edit(model, MR_MODEL_ENTRY, entry);

    if (!record)
        return MR_ENOMEM;
    mr_entry_stats_merge(&record->stats, stats);
    mr_entry_stats_merge(&model->working->totals.entries, stats);
    return MR_OK;
}
