/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/sum.h"
#include "master/model_private.h"
#include "net/ids.h"

#include <stdlib.h>

/* One shape under one entry point: the scopes of a shape are kept apart. */
static struct mr_id key_of(const struct mr_model_root *root, uint32_t entry,
                           struct mr_id node)
{
    uint8_t key[32];

    mr_id_put(mr_model_path(root, mr_model_entry(root, entry)->path)->id, key);
    mr_id_put(node, key + 16);
    return mr_hash128(mr_span_of(key, sizeof(key)));
}

static enum mr_status link_shape(struct mr_model *model, struct mr_model_shape *record,
                                 uint32_t *next_same)
{
    struct mr_model_root *root = model->working;

    /* The map keeps the first shape of a node; more of them hang behind it. */
    *next_same = mr_cow_map_find(&root->shape_nodes, record->id);
    if (*next_same != MR_MODEL_NONE)
        return MR_OK;
    return mr_cow_map_add(&model->cow, &root->shape_nodes, record->id,
                          mr_model_count(root, MR_MODEL_SHAPE));
}

static enum mr_status count_shape(struct mr_model *model, uint32_t entry)
{
    struct mr_model_entry *record = mr_model_edit(model, MR_MODEL_ENTRY, entry);

    if (!record)
        return MR_ENOMEM;
    record->shapes++;
    return MR_OK;
}

static enum mr_status append_shape(struct mr_model *model, struct mr_id key,
                                   struct mr_model_shape *record, uint32_t *index)
{
    uint32_t first, entry = record->entry;
    enum mr_status status = link_shape(model, record, &first);

    if (status != MR_OK) {
        free(record);
        return status;
    }
    record->next_same = MR_MODEL_NONE;
    struct mr_model_shape *head =
        first == MR_MODEL_NONE ? NULL : mr_model_edit(model, MR_MODEL_SHAPE, first);
    if (head)
        record->next_same = head->next_same;
    status = mr_model_append(model, MR_MODEL_SHAPE, &key, record, index);
    if (status == MR_OK && head)
        head->next_same = *index;
    if (status == MR_OK)
        status = mr_model_append(
            model, MR_MODEL_SHAPE_STAT, NULL,
            mr_model_record_new(MR_MODEL_SHAPE_STAT, sizeof(struct mr_model_shape_stat)),
            NULL);
    return status == MR_OK ? count_shape(model, entry) : status;
}

enum mr_status mr_model_add_shape(struct mr_model *model, uint32_t scope, uint32_t entry,
                                  struct mr_id node, uint32_t *index)
{
    struct mr_id key = key_of(model->working, entry, node);

    *index = mr_cow_map_find(&model->working->ids[MR_MODEL_SHAPE], key);
    if (*index != MR_MODEL_NONE)
        return MR_OK;
    enum mr_status status = mr_model_room(model, MR_MODEL_SHAPE);
    if (status != MR_OK)
        return status;
    struct mr_model_shape *record = mr_model_record_new(MR_MODEL_SHAPE, sizeof(*record));
    if (!record)
        return MR_ENOMEM;
    record->id = node;
    record->scope = scope;
    record->entry = entry;
    return append_shape(model, key, record, index);
}

enum mr_status mr_model_add_shape_stats(struct mr_model *model, uint32_t shape,
                                        const struct mr_shape_stats *stats)
{
    struct mr_model_shape_stat *record = mr_model_edit(model, MR_MODEL_SHAPE_STAT, shape);

    if (!record)
        return MR_ENOMEM;
    mr_sum_add(&model->working->totals.shape_traces, mr_sum(stats->ok, stats->failed));
    return mr_shape_stats_merge(&record->stats, stats);
}
