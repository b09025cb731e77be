/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of single traces: exemplars, and what paths gained in traces of one shape.
 *
 * An exemplar stands in a place: of a shape (or of the traces of an entry point that have none, the incomplete ones apart) and
 * a reason. There are `exemplars` places per reason. When all are taken, the exemplar that comes last in the order of the
 * reason gives its record up, so that what is kept does not depend on the order in which deltas came.
 *
 * One that was asked for stands in a place of its own, and the latest have their places: nobody waits for the others any
 * more. It always finds room: of the oldest of them only the root call stays, with the rest counted in it. Who asked
 * says which are none of the answers (more came than were asked for, from several lanes): they are not kept, and those that
 * were for a moment, until earlier ones came, give their calls up first.
 */
#include "base/assert.h"
#include "base/hash.h"
#include "master/model_private.h"

#include <stdlib.h>
#include <string.h>

static unsigned reason_index(enum mr_exemplar_why why)
{
    if (why == MR_EXEMPLAR_ASKED)
        return MR_EXEMPLAR_WHYS;
    return why == MR_EXEMPLAR_SLOWEST;
}

/* Whether `a` keeps its place before `b` does. */
static bool is_better(const struct mr_exemplar *a, const struct mr_exemplar *b,
                      enum mr_exemplar_why why)
{
    return why == MR_EXEMPLAR_ASKED ? mr_exemplar_is_before(b, a, why)
                                    : mr_exemplar_is_before(a, b, why);
}

static struct mr_id place_of(uint32_t entry, uint32_t shape,
                             const struct mr_exemplar *exemplar)
{
    bool is_apart = shape == MR_MODEL_NONE && exemplar->status == MR_EXEMPLAR_INCOMPLETE;

    if (exemplar->why == MR_EXEMPLAR_ASKED)
        return mr_model_exemplar_id(exemplar);
    return (struct mr_id){(uint64_t)entry << 32 | shape,
                          (uint64_t)exemplar->why << 1 | is_apart};
}

static size_t bytes_of(const struct mr_exemplar *exemplar)
{
    return exemplar->call_count * sizeof(*exemplar->items);
}

static struct mr_model_exemplar *new_record(uint32_t entry, uint32_t shape,
                                            uint32_t source,
                                            const struct mr_exemplar *exemplar)
{
    size_t bytes = bytes_of(exemplar);
    struct mr_model_exemplar *record =
        mr_model_record_new(MR_MODEL_EXEMPLAR, sizeof(*record) + bytes);

    if (!record)
        return NULL;
    record->entry = entry;
    record->shape = shape;
    record->source = source;
    record->exemplar = *exemplar;
    memcpy(record->calls, exemplar->items, bytes);
    record->exemplar.items = record->calls;
    return record;
}

/* The record that comes last for the reason. */
static uint32_t find_last(const struct mr_model_root *root, enum mr_exemplar_why why)
{
    uint32_t last = MR_MODEL_NONE;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_EXEMPLAR); i++) {
        const struct mr_exemplar *exemplar = &mr_model_exemplar(root, i)->exemplar;

        if (exemplar->why == (uint32_t)why &&
            (last == MR_MODEL_NONE ||
             is_better(&mr_model_exemplar(root, last)->exemplar, exemplar, why)))
            last = i;
    }
    return last;
}

/*
 * The record that the exemplar replaces; MR_MODEL_NONE: a new one. MR_ELIMIT: there is no place for it, or a better one
 * has it.
 */
static enum mr_status choose(struct mr_model *model, struct mr_id place,
                             const struct mr_exemplar *exemplar, uint32_t *index)
{
    const struct mr_model_root *root = model->working;
    enum mr_exemplar_why why = (enum mr_exemplar_why)exemplar->why;
    uint32_t *last = &model->last_exemplar[reason_index(why)];

    *index = mr_table_find(&model->exemplar_places, place);
    if (*index == MR_TABLE_NONE) {
        *index = MR_MODEL_NONE;
        if (model->exemplar_counts[reason_index(why)] < model->limits.exemplars)
            return MR_OK;
        if (*last == MR_MODEL_NONE)
            *last = find_last(root, why);
        *index = *last;
    }
    return is_better(exemplar, &mr_model_exemplar(root, *index)->exemplar, why)
               ? MR_OK
               : MR_ELIMIT;
}

static size_t *bytes_for(struct mr_model *model, uint32_t why)
{
    return why == MR_EXEMPLAR_ASKED ? &model->asked_bytes : &model->exemplar_bytes;
}

static enum mr_status append(struct mr_model *model, struct mr_id place,
                             struct mr_model_exemplar *record)
{
    uint32_t index = mr_model_count(model->working, MR_MODEL_EXEMPLAR);
    enum mr_exemplar_why why = (enum mr_exemplar_why)record->exemplar.why;
    enum mr_status status = mr_table_put(&model->exemplar_places, place, index);

    if (status == MR_OK)
        status = mr_model_append(model, MR_MODEL_EXEMPLAR, NULL, record, NULL);
    else
        free(record);
    model->exemplar_counts[reason_index(why)] += status == MR_OK;
    return status;
}

static enum mr_status replace(struct mr_model *model, struct mr_id place, uint32_t index,
                              struct mr_model_exemplar *record)
{
    const struct mr_model_exemplar *old = mr_model_exemplar(model->working, index);
    size_t old_bytes = bytes_of(&old->exemplar);
    enum mr_status status;

    (void)mr_table_remove(&model->exemplar_places,
                          place_of(old->entry, old->shape, &old->exemplar));
    if (old->exemplar.why == MR_EXEMPLAR_ASKED)
        (void)mr_table_remove(&model->displaced, mr_model_exemplar_id(&old->exemplar));
    status = mr_table_put(&model->exemplar_places, place, index);
    if (status == MR_OK)
        status = mr_cow_put(&model->cow, &model->working->tables[MR_MODEL_EXEMPLAR],
                            index, &record->head);
    if (status == MR_OK)
        *bytes_for(model, record->exemplar.why) -= old_bytes;
    else
        free(record);
    return status;
}

/* The same trace with its root call alone. */
static struct mr_model_exemplar *root_alone(const struct mr_model_exemplar *old)
{
    const struct mr_exemplar_call *calls = old->calls;
    struct mr_exemplar_call root = calls[0];
    struct mr_exemplar exemplar = old->exemplar;

    for (uint32_t i = 1; i < exemplar.call_count; i++)
        root.elided_ns += calls[i].depth == 1 ? calls[i].total_ns : 0;
    root.elided_calls = exemplar.calls - 1;
    exemplar.call_count = 1;
    exemplar.items = &root;
    return new_record(old->entry, old->shape, old->source, &exemplar);
}

static bool is_displaced(const struct mr_model *model, const struct mr_exemplar *exemplar)
{
    return model->displaced.count > 0 &&
           mr_table_find(&model->displaced, mr_model_exemplar_id(exemplar)) !=
               MR_TABLE_NONE;
}

/* Whether `a` gives its calls up before `b` does. */
static bool is_spared_less(const struct mr_model *model, const struct mr_exemplar *a,
                           const struct mr_exemplar *b)
{
    bool displaced = is_displaced(model, a);

    return displaced != is_displaced(model, b) ? displaced
                                               : is_better(b, a, MR_EXEMPLAR_ASKED);
}

/* Of those that were asked for and have more than their root, the one that can be spared first. */
static uint32_t first_to_spare(const struct mr_model *model)
{
    const struct mr_model_root *root = model->working;
    uint32_t first = MR_MODEL_NONE;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_EXEMPLAR); i++) {
        const struct mr_exemplar *exemplar = &mr_model_exemplar(root, i)->exemplar;

        if (exemplar->why == MR_EXEMPLAR_ASKED && exemplar->call_count > 1 &&
            (first == MR_MODEL_NONE ||
             is_spared_less(model, exemplar, &mr_model_exemplar(root, first)->exemplar)))
            first = i;
    }
    return first;
}

/* With what the record `index` has, if there is one: it is replaced. */
static bool has_room(struct mr_model *model, const struct mr_exemplar *given,
                     uint32_t index)
{
    size_t used = *bytes_for(model, given->why);

    if (index != MR_MODEL_NONE)
        used -= bytes_of(&mr_model_exemplar(model->working, index)->exemplar);
    return bytes_of(given) <= model->limits.exemplar_bytes - used;
}

/* MR_ELIMIT: there is no room even so. */
static enum mr_status make_asked_room(struct mr_model *model,
                                      const struct mr_exemplar *given, uint32_t replaced)
{
    while (!has_room(model, given, replaced)) {
        uint32_t index = first_to_spare(model);
        const struct mr_model_exemplar *old;
        struct mr_model_exemplar *record;
        enum mr_status status;

        if (index == MR_MODEL_NONE)
            return MR_ELIMIT;
        old = mr_model_exemplar(model->working, index);
        record = root_alone(old);
        if (!record)
            return MR_ENOMEM;
        status = replace(model, place_of(old->entry, old->shape, &old->exemplar), index,
                         record);
        if (status != MR_OK)
            return status;
        model->asked_bytes += bytes_of(&record->exemplar);
    }
    return MR_OK;
}

/* MR_ELIMIT: it does not fit. */
static enum mr_status make_room(struct mr_model *model, const struct mr_exemplar *given,
                                uint32_t replaced)
{
    if (given->why == MR_EXEMPLAR_ASKED)
        return make_asked_room(model, given, replaced);
    return has_room(model, given, replaced) ? MR_OK : MR_ELIMIT;
}

/* For one reason. */
static enum mr_status put_exemplar(struct mr_model *model, uint32_t entry, uint32_t shape,
                                   uint32_t source, const struct mr_exemplar *exemplar)
{
    struct mr_id place = place_of(entry, shape, exemplar);
    struct mr_model_exemplar *record;
    uint32_t index;
    enum mr_status status = choose(model, place, exemplar, &index);

    if (status != MR_OK)
        return MR_OK; /* it lost */
    status = make_room(model, exemplar, index);
    if (status == MR_ELIMIT) {
        model->working->refused[MR_MODEL_EXEMPLAR]++;
        return MR_OK;
    }
    if (status != MR_OK)
        return status;
    record = new_record(entry, shape, source, exemplar);
    if (!record)
        return MR_ENOMEM;
    status = index == MR_MODEL_NONE ? append(model, place, record)
                                    : replace(model, place, index, record);
    if (status == MR_OK)
        *bytes_for(model, exemplar->why) += bytes_of(exemplar);
    model->last_exemplar[reason_index((enum mr_exemplar_why)exemplar->why)] =
        MR_MODEL_NONE;
    return status;
}

enum mr_status mr_model_put_answer(struct mr_model *model, uint32_t entry, uint32_t shape,
                                   uint32_t source, const struct mr_exemplar *exemplar,
                                   struct mr_id gone)
{
    MR_ASSERT(exemplar->why == MR_EXEMPLAR_ASKED && exemplar->call_count > 0);
    (void)mr_table_remove(&model->displaced, mr_model_exemplar_id(exemplar));
    if (mr_table_find(&model->exemplar_places, gone) != MR_TABLE_NONE &&
        mr_table_put(&model->displaced, gone, 0) == MR_ENOMEM)
        return MR_ENOMEM; /* past the limit of the table it is one of many */
    return put_exemplar(model, entry, shape, source, exemplar);
}

enum mr_status mr_model_put_exemplar(struct mr_model *model, uint32_t entry,
                                     uint32_t shape, uint32_t source,
                                     const struct mr_exemplar *exemplar)
{
    enum mr_status status = MR_OK;

    MR_ASSERT(exemplar->call_count > 0);
    if (exemplar->why == MR_EXEMPLAR_ASKED)
        return put_exemplar(model, entry, shape, source, exemplar);
    for (uint32_t why = 1; why < MR_EXEMPLAR_ALL && status == MR_OK; why <<= 1) {
        struct mr_exemplar one = *exemplar;

        if (!(exemplar->why & why))
            continue;
        one.why = why;
        status = put_exemplar(model, entry, shape, source, &one);
    }
    return status;
}

struct mr_id mr_model_exemplar_id(const struct mr_exemplar *exemplar)
{
    const struct mr_id ids[] = {
        exemplar->source, {exemplar->stream, exemplar->before}, {exemplar->start_ns, 0}};

    return mr_hash128(mr_span_of(ids, sizeof(ids)));
}

const struct mr_model_exemplar *mr_model_find_exemplar(const struct mr_model_root *root,
                                                       struct mr_id id)
{
    const struct mr_model_exemplar *found = NULL;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_EXEMPLAR); i++) {
        const struct mr_model_exemplar *record = mr_model_exemplar(root, i);

        if (mr_id_equal(mr_model_exemplar_id(&record->exemplar), id) &&
            (!found || record->exemplar.call_count > found->exemplar.call_count))
            found = record;
    }
    return found;
}

enum mr_status mr_model_add_shape_path(struct mr_model *model, uint32_t shape,
                                       uint32_t path,
                                       const struct mr_shape_path_stats *stats)
{
    struct mr_id key = {shape, path};
    uint32_t index = mr_cow_map_find(&model->working->ids[MR_MODEL_SHAPE_PATH], key);

    if (index == MR_MODEL_NONE) {
        enum mr_status status = mr_model_room(model, MR_MODEL_SHAPE_PATH);

        if (status == MR_OK)
            status =
                mr_model_append(model, MR_MODEL_SHAPE_PATH, &key,
                                mr_model_record_new(MR_MODEL_SHAPE_PATH,
                                                    sizeof(struct mr_model_shape_path)),
                                &index);
        if (status != MR_OK)
            return status;
    }
    struct mr_model_shape_path *record = mr_model_edit(model, MR_MODEL_SHAPE_PATH, index);
    if (!record)
        return MR_ENOMEM;
    record->shape = shape;
    record->path = path;
    mr_shape_path_stats_merge(&record->stats, stats);
    return MR_OK;
}
