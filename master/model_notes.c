/* SPDX-License-Identifier: Apache-2.0 */
/* Notes about sources, scopes and sites; of one key, the greatest version holds. */
#include "base/clock.h"
#include "base/hash.h"
#include "master/model_private.h"

#include <stdlib.h>

static struct mr_id key_of(struct mr_id about, struct mr_id site, const char *key)
{
    const struct mr_id ids[] = {about, site, mr_hash128(mr_span_of_text(key))};

    return mr_hash128(mr_span_of(ids, sizeof(ids)));
}

static struct mr_model_note *new_note(const struct mr_dict_note *note)
{
    const char *texts[] = {note->key, note->value};
    struct mr_model_note *record =
        mr_model_record_new_texts(MR_MODEL_NOTE, sizeof(*record), texts, 2);

    if (!record)
        return NULL;
    record->about = note->about;
    record->site = note->site;
    record->version = note->version;
    record->taken_ns = mr_clock_realtime_ns();
    record->key = texts[0];
    record->value = texts[1];
    return record;
}

enum mr_status mr_model_put_note(struct mr_model *model, const struct mr_dict_note *note)
{
    struct mr_id key = key_of(note->about, note->site, note->key);
    uint32_t index = mr_cow_map_find(&model->working->ids[MR_MODEL_NOTE], key);
    struct mr_model_note *record;
    enum mr_status status;

    if (index == MR_MODEL_NONE) {
        status = mr_model_room(model, MR_MODEL_NOTE);
        return status == MR_OK
                   ? mr_model_append(model, MR_MODEL_NOTE, &key, new_note(note), NULL)
                   : status;
    }
    if (mr_model_note(model->working, index)->version >= note->version)
        return MR_OK;
    record = new_note(note);
    if (!record)
        return MR_ENOMEM;
    status = mr_cow_put(&model->cow, &model->working->tables[MR_MODEL_NOTE], index,
                        &record->head);
    if (status != MR_OK)
        free(record);
    return status;
}

const struct mr_model_note *mr_model_find_note(const struct mr_model_root *root,
                                               struct mr_id about, struct mr_id site,
                                               const char *key)
{
    return mr_model_note(
        root, mr_cow_map_find(&root->ids[MR_MODEL_NOTE], key_of(about, site, key)));
}

const char *mr_model_note_of(const struct mr_model_root *root, struct mr_id about,
                             struct mr_id site, const char *key)
{
    const struct mr_model_note *note = mr_model_find_note(root, about, site, key);

    return note ? note->value : NULL;
}
