/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters on spans: their names, why one is absent somewhere, and what each path gained
 * of each. Few names (struct mr_model_limits), so that whoever shows a path asks for each
 * of them in turn.
 */
#include "base/hash.h"
#include "master/model_private.h"

#include <stdlib.h>

static struct mr_model_span_counter *new_counter(struct mr_id id, const char *name,
                                                 const char *unit, bool known)
{
    const char *texts[] = {name, unit};
    struct mr_model_span_counter *record =
        mr_model_record_new_texts(MR_MODEL_SPAN_COUNTER, sizeof(*record), texts, 2);

    if (!record)
        return NULL;
    record->id = id;
    record->known = known;
    record->name = texts[0];
    record->unit = texts[1];
    return record;
}

enum mr_status mr_model_add_span_counter(struct mr_model *model, struct mr_id id,
                                         uint32_t *index)
{
    *index = mr_cow_map_find(&model->working->ids[MR_MODEL_SPAN_COUNTER], id);
    if (*index != MR_MODEL_NONE)
        return MR_OK;
    enum mr_status status = mr_model_room(model, MR_MODEL_SPAN_COUNTER);
    if (status != MR_OK)
        return status;
    return mr_model_append(model, MR_MODEL_SPAN_COUNTER, &id,
                           new_counter(id, "", "", false), index);
}

enum mr_status mr_model_name_span_counter(struct mr_model *model, uint32_t index,
                                          const char *name, const char *unit)
{
    const struct mr_model_span_counter *old =
        mr_model_span_counter(model->working, index);

    if (old->known)
        return MR_OK;
    struct mr_model_span_counter *record = new_counter(old->id, name, unit, true);
    if (!record)
        return MR_ENOMEM;
    enum mr_status status =
        mr_cow_put(&model->cow, &model->working->tables[MR_MODEL_SPAN_COUNTER], index,
                   &record->head);
    if (status != MR_OK)
        free(record);
    return status;
}

/* Scope and counter, and the reason: one may count on one host and be absent on another. */
static struct mr_id note_key(const struct mr_dict_span_counter *counter)
{
    const struct mr_id ids[] = {counter->scope, counter->id,
                                mr_hash128(mr_span_of_text(counter->absent))};

    return mr_hash128(mr_span_of(ids, sizeof(ids)));
}

enum mr_status mr_model_put_span_counter(struct mr_model *model,
                                         const struct mr_dict_span_counter *counter)
{
    struct mr_id key = note_key(counter);
    const char *texts[] = {counter->absent};
    uint32_t index, scope;
    enum mr_status status = mr_model_add_span_counter(model, counter->id, &index);

    if (status == MR_OK)
        status = mr_model_name_span_counter(model, index, counter->name, counter->unit);
    if (status != MR_OK || mr_cow_map_find(&model->working->ids[MR_MODEL_COUNTER_NOTE],
                                           key) != MR_MODEL_NONE)
        return status;
    status = mr_model_room(model, MR_MODEL_COUNTER_NOTE);
    if (status == MR_OK)
        status = mr_model_add_scope(model, counter->scope, &scope);
    if (status != MR_OK)
        return status;
    struct mr_model_counter_note *note =
        mr_model_record_new_texts(MR_MODEL_COUNTER_NOTE, sizeof(*note), texts, 1);
    if (note) {
        note->scope = scope;
        note->counter = index;
        note->absent = texts[0];
    }
    return mr_model_append(model, MR_MODEL_COUNTER_NOTE, &key, note, NULL);
}

static struct mr_id path_key(uint32_t path, uint32_t counter)
{
    return (struct mr_id){path, counter};
}

enum mr_status mr_model_add_path_counter(struct mr_model *model, uint32_t path,
                                         uint32_t counter,
                                         const struct mr_counter_stats *stats)
{
    struct mr_id key = path_key(path, counter);
    uint32_t index = mr_cow_map_find(&model->working->ids[MR_MODEL_PATH_COUNTER], key);

    if (index == MR_MODEL_NONE) {
        enum mr_status status = mr_model_room(model, MR_MODEL_PATH_COUNTER);

        if (status == MR_OK)
            status =
                mr_model_append(model, MR_MODEL_PATH_COUNTER, &key,
                                mr_model_record_new(MR_MODEL_PATH_COUNTER,
                                                    sizeof(struct mr_model_path_counter)),
                                &index);
        if (status != MR_OK)
            return status;
    }
    struct mr_model_path_counter *record =
        mr_model_edit(model, MR_MODEL_PATH_COUNTER, index);
    if (!record)
        return MR_ENOMEM;
    record->path = path;
    record->counter = counter;
    mr_counter_stats_merge(&record->stats, stats);
    return MR_OK;
}

const struct mr_counter_stats *mr_model_counter_of_path(const struct mr_model_root *root,
                                                        uint32_t path, uint32_t counter)
{
    uint32_t index =
        mr_cow_map_find(&root->ids[MR_MODEL_PATH_COUNTER], path_key(path, counter));
    const struct mr_model_path_counter *record = mr_model_path_counter(root, index);

    return record ? &record->stats : NULL;
}
