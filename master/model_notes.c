/* SPDX-License-Identifier: Apache-2.0 */
/* Notes about sources, scopes and sites; of one key, the greatest version holds. */
#include "base/clock.h"
#include "base/hash.h"
#include "master/model_private.h"
#include "net/control.h"

#include <stdlib.h>
#include <string.h>

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

/*
 * Notes that the format knows, about the whole of a source that is here, have their room with it: there are few of them, and
 * without one the source has no account.
 */
static bool has_room_of_source(const struct mr_model *model,
                               const struct mr_dict_note *note)
{
    if (!mr_id_is_zero(note->site) ||
        mr_cow_map_find(&model->working->ids[MR_MODEL_SOURCE], note->about) ==
            MR_MODEL_NONE)
        return false;
    for (int i = 0; i < MR_NOTE_COUNT; i++)
        if (strcmp(note->key, mr_note_name((enum mr_note)i)) == 0)
            return true;
    return false;
}

static enum mr_status refuse_note(struct mr_model *model)
{
    enum mr_status status = mr_model_add_counter(model, MR_MODEL_NOTES_PAST_LIMIT, 1);

    return status == MR_OK ? MR_ELIMIT : status;
}

static enum mr_status add_note(struct mr_model *model, struct mr_id key,
                               const struct mr_dict_note *note)
{
    if (!has_room_of_source(model, note) && mr_model_room(model, MR_MODEL_NOTE) != MR_OK)
        return refuse_note(model);
    return mr_model_append(model, MR_MODEL_NOTE, &key, new_note(note), NULL);
}

enum mr_status mr_model_put_note(struct mr_model *model, const struct mr_dict_note *note)
{
    struct mr_id key = key_of(note->about, note->site, note->key);
    uint32_t index = mr_cow_map_find(&model->working->ids[MR_MODEL_NOTE], key);
    struct mr_model_note *record;

    if (index == MR_MODEL_NONE)
        return add_note(model, key, note);
    if (mr_model_note(model->working, index)->version >= note->version)
        return MR_OK;
    record = new_note(note);
    if (!record)
        return MR_ENOMEM;
    enum mr_status status = mr_cow_put(
        &model->cow, &model->working->tables[MR_MODEL_NOTE], index, &record->head);
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
