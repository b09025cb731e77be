/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of several parts. The master is the last level: what workers could not join meets
 * here (pipeline/joiner.h), or is counted as incomplete after the time-out.
 *
 *     joiner's slot --part_of_slot--> index in PART: the part's bytes, until it is joined
 *
 * What waits is a table like others, so the store has it with the statistics of one moment:
 * after a restart it waits on, and nothing is counted twice.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/sum.h"
#include "master/model_private.h"

#include <stdlib.h>
#include <string.h>

static struct mr_model_joined *new_joined(struct mr_id id,
                                          const struct mr_joined_node *nodes,
                                          uint32_t count)
{
    size_t size = count * sizeof(*nodes);
    struct mr_model_joined *record =
        mr_model_record_new(MR_MODEL_JOINED, sizeof(*record) + size);

    if (!record)
        return NULL;
    record->id = id;
    record->node_count = count;
    memcpy(record->nodes, nodes, size);
    return record;
}

enum mr_status mr_model_add_joined(struct mr_model *model, struct mr_id id,
                                   const struct mr_joined_node *nodes, uint32_t count,
                                   uint32_t *index)
{
    *index = mr_cow_map_find(&model->working->ids[MR_MODEL_JOINED], id);
    if (*index != MR_MODEL_NONE)
        return MR_OK;
    enum mr_status status = mr_model_room(model, MR_MODEL_JOINED);
    if (status == MR_OK)
        status = mr_model_append(model, MR_MODEL_JOINED, &id,
                                 new_joined(id, nodes, count), index);
    if (status != MR_OK)
        return status;
    struct mr_model_joined_stat *stat =
        mr_model_record_new(MR_MODEL_JOINED_STAT, sizeof(*stat));
    if (stat)
        stat->stats.histogram = MR_HISTOGRAM_EMPTY;
    return mr_model_append(model, MR_MODEL_JOINED_STAT, NULL, stat, NULL);
}

enum mr_status mr_model_refuse_joined(struct mr_model *model,
                                      const struct mr_joined_stats *stats)
{
    enum mr_status status =
        mr_model_add_counter(model, MR_MODEL_TRACES_PAST_LIMIT,
                             mr_sum3(stats->ok, stats->failed, stats->incomplete));

    return status == MR_ELIMIT ? MR_OK : status; /* no room for counters, either */
}

enum mr_status mr_model_add_joined_stats(struct mr_model *model, uint32_t joined,
                                         const struct mr_joined_stats *stats)
{
    struct mr_model_joined_stat *record =
        mr_model_edit(model, MR_MODEL_JOINED_STAT, joined);

    return record ? mr_joined_stats_merge(&record->stats, stats) : MR_ENOMEM;
}

static struct mr_id edge_key(uint32_t joined, uint32_t place)
{
    return (struct mr_id){joined, place};
}

enum mr_status mr_model_add_edge_stats(struct mr_model *model, uint32_t joined,
                                       uint32_t place, const struct mr_edge_stats *stats)
{
    struct mr_id key = edge_key(joined, place);
    uint32_t index = mr_cow_map_find(&model->working->ids[MR_MODEL_JOINED_EDGE], key);

    if (place == 0 || place >= mr_model_joined(model->working, joined)->node_count) {
        model->working->refused[MR_MODEL_JOINED_EDGE]++;
        return MR_ELIMIT;
    }
    if (index == MR_MODEL_NONE) {
        enum mr_status status = mr_model_room(model, MR_MODEL_JOINED_EDGE);

        if (status != MR_OK)
            return status;
        struct mr_model_joined_edge *made =
            mr_model_record_new(MR_MODEL_JOINED_EDGE, sizeof(*made));
        if (made) {
            made->joined = joined;
            made->place = place;
            made->stats.histogram = MR_HISTOGRAM_EMPTY;
        }
        status = mr_model_append(model, MR_MODEL_JOINED_EDGE, &key, made, &index);
        if (status != MR_OK)
            return status;
    }
    struct mr_model_joined_edge *record =
        mr_model_edit(model, MR_MODEL_JOINED_EDGE, index);
    return record ? mr_edge_stats_merge(&record->stats, stats) : MR_ENOMEM;
}

const struct mr_edge_stats *mr_model_edge_of(const struct mr_model_root *root,
                                             uint32_t joined, uint32_t place)
{
    const struct mr_model_joined_edge *edge = mr_model_joined_edge(
        root, mr_cow_map_find(&root->ids[MR_MODEL_JOINED_EDGE], edge_key(joined, place)));

    return edge ? &edge->stats : NULL;
}

/* Places in PART. */

static bool push(struct mr_model_indices *indices, uint32_t at, uint32_t value)
{
    if (at >= indices->capacity) {
        uint32_t capacity = indices->capacity ? indices->capacity : 256;
        uint32_t *items;

        while (capacity <= at)
            capacity *= 2;
        items = realloc(indices->items, capacity * sizeof(*items));
        if (!items)
            return false;
        indices->items = items;
        indices->capacity = capacity;
    }
    indices->items[at] = value;
    return true;
}

static enum mr_status put_part(struct mr_model *model, uint32_t index,
                               const uint8_t *bytes, size_t size)
{
    struct mr_model_part *record =
        mr_model_record_new(MR_MODEL_PART, sizeof(*record) + size);

    if (!record)
        return MR_ENOMEM;
    record->size = (uint32_t)size;
    if (size)
        memcpy(record->bytes, bytes, size);
    enum mr_status status = mr_cow_put(
        &model->cow, &model->working->tables[MR_MODEL_PART], index, &record->head);
    if (status != MR_OK)
        free(record);
    return status;
}

static enum mr_status keep_part(struct mr_model *model, const struct mr_part *part,
                                uint32_t slot)
{
    uint8_t bytes[MR_PART_SIZE_MAX];
    size_t size = (size_t)(mr_part_put(part, bytes) - bytes);
    uint32_t index = model->parts_free.count > 0
                         ? model->parts_free.items[--model->parts_free.count]
                         : mr_model_count(model->working, MR_MODEL_PART);

    if (!push(&model->part_of_slot, slot, index))
        return MR_ENOMEM;
    return put_part(model, index, bytes, size);
}

static enum mr_status add_no_part(struct mr_model *model, uint32_t index)
{
    if (!push(&model->parts_free, model->parts_free.count, index))
        return MR_ENOMEM;
    model->parts_free.count++;
    return put_part(model, index, NULL, 0);
}

enum mr_status mr_model_load_part(struct mr_model *model, struct mr_span bytes)
{
    uint32_t index = mr_model_count(model->working, MR_MODEL_PART);
    struct mr_part_edge edges[MR_PART_EDGES_MAX];
    struct mr_span rest = bytes;
    struct mr_part part;

    if (bytes.size == 0)
        return add_no_part(model, index);
    return mr_part_get(&rest, &part, edges)
               ? put_part(model, index, bytes.data, bytes.size)
               : MR_EFORMAT;
}

/* Counts one trace; what the limits refuse is counted there. */
static enum mr_status count_joined(struct mr_model *model, const struct mr_joined *joined)
{
    struct mr_joined_sums *sums = &model->join_sums;
    uint32_t index;
    enum mr_status status = mr_joined_sums_set(sums, joined);

    if (status == MR_OK)
        status = mr_model_add_joined(model, joined->id, joined->nodes, joined->node_count,
                                     &index);
    if (status == MR_ELIMIT)
        return mr_model_refuse_joined(model, &sums->stats);
    if (status == MR_OK)
        status = mr_model_add_joined_stats(model, index, &sums->stats);
    for (uint32_t i = 1; i < joined->node_count && status == MR_OK; i++)
        if (sums->edges[i].count)
            status = mr_model_add_edge_stats(model, index, i, &sums->edges[i]);
    return status == MR_ELIMIT ? MR_OK : status;
}

/* `why`: JOINED, or what ended them. */
static enum mr_status take_joined(struct mr_model *model, enum mr_parts why)
{
    struct mr_joined joined;
    enum mr_status status = MR_OK;

    while (status == MR_OK && mr_joiner_take(model->joiner, &joined)) {
        bool is_circle = why == MR_PARTS_JOINED && joined.is_circle;

        model->parts[is_circle ? MR_PARTS_CIRCLE : why] += joined.part_count;
        status = count_joined(model, &joined);
        for (uint32_t i = 0; i < joined.part_count && status == MR_OK; i++)
            status = add_no_part(model, model->part_of_slot.items[joined.slots[i]]);
    }
    return status;
}

const char *const mr_model_parts_counters[MR_PARTS_COUNT] = {
#define X(name, text, counter) [MR_PARTS_##name] = (counter),
    MR_PARTS(X)
#undef X
};

/* The account of parts, and what went wrong, as counters like those of workers. */
static enum mr_status tell(struct mr_model *model)
{
    struct mr_joiner_stats *told = &model->join_told, now;
    enum mr_status status = MR_OK;

    mr_joiner_stats(model->joiner, &now);
    model->working->parts_waiting = now.waiting;
    if (now.again != told->again)
        status = mr_model_add_counter(model, "join_parts_again", now.again - told->again);
    if (now.doubles != told->doubles && status == MR_OK)
        status = mr_model_add_counter(model, "join_doubles", now.doubles - told->doubles);
    if (now.circles != told->circles && status == MR_OK)
        status = mr_model_add_counter(model, "join_circles", now.circles - told->circles);
    if (now.large != told->large && status == MR_OK)
        status =
            mr_model_add_counter(model, "join_traces_large", now.large - told->large);
    *told = now;
    for (int i = 0; i < MR_PARTS_COUNT && status == MR_OK; i++) {
        if (model->parts[i])
            status =
                mr_model_add_counter(model, mr_model_parts_counters[i], model->parts[i]);
        model->parts[i] = 0;
    }
    return status == MR_ELIMIT ? MR_OK : status;
}

/* Among those that wait; `*slot` is MR_JOINER_NONE if it is there already. */
static enum mr_status meet(struct mr_model *model, const struct mr_part *part,
                           uint32_t *slot)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    enum mr_status status = mr_joiner_add(model->joiner, part, now_ns, slot);

    if (status != MR_ELIMIT)
        return status;
    (void)mr_joiner_end_oldest(model->joiner); /* it waited longest, and makes room */
    status = take_joined(model, MR_PARTS_LIMIT);
    if (status == MR_OK)
        status = mr_model_add_counter(model, "join_parts_past_limit", 1);
    if (status == MR_OK || status == MR_ELIMIT)
        status = mr_joiner_add(model->joiner, part, now_ns, slot);
    return status;
}

enum mr_status mr_model_add_part(struct mr_model *model, const struct mr_part *part)
{
    uint32_t slot;
    enum mr_status status = meet(model, part, &slot);

    model->parts[MR_PARTS_CAME] += status == MR_OK && slot != MR_JOINER_NONE;
    if (status == MR_OK && slot != MR_JOINER_NONE)
        status = keep_part(model, part, slot);
    if (status == MR_OK)
        status = take_joined(model, MR_PARTS_JOINED);
    return status == MR_OK ? tell(model) : status;
}

/* One that was loaded. */
static enum mr_status join_again(struct mr_model *model, uint32_t index)
{
    const struct mr_model_part *record = mr_model_part(model->working, index);
    struct mr_span bytes = mr_span_of(record->bytes, record->size);
    struct mr_part_edge edges[MR_PART_EDGES_MAX];
    enum mr_status status;
    struct mr_part part;
    uint32_t slot;

    if (!mr_part_get(&bytes, &part, edges))
        return MR_EFORMAT;
    status = meet(model, &part, &slot);
    if (status != MR_OK)
        return status;
    if (slot == MR_JOINER_NONE)
        return add_no_part(model, index);
    return push(&model->part_of_slot, slot, index) ? take_joined(model, MR_PARTS_JOINED)
                                                   : MR_ENOMEM;
}

enum mr_status mr_model_join_loaded(struct mr_model *model)
{
    uint32_t count = mr_model_count(model->working, MR_MODEL_PART);
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < count && status == MR_OK; i++)
        if (mr_model_part(model->working, i)->size)
            status = join_again(model, i);
    mr_joiner_stats(model->joiner, &model->join_told); /* counted when they came */
    return status == MR_OK ? tell(model) : status;
}

enum mr_status mr_model_end_traces(struct mr_model *model, uint64_t before_ns,
                                   uint32_t *ended)
{
    enum mr_status status;

    *ended = mr_joiner_end(model->joiner, before_ns);
    if (*ended == 0)
        return MR_OK;
    status = take_joined(model, MR_PARTS_TIMEOUT);
    if (status == MR_OK)
        status = mr_model_add_counter(model, "join_timed_out", *ended);
    return status == MR_OK || status == MR_ELIMIT ? tell(model) : status;
}
