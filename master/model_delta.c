/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DELTA payloads. A payload is read twice: once to see that all of it is well formed,
 * then to be added, so that a bad one changes nothing. Its own numbers of sites, scopes
 * and so on are translated by the tables of indices; a refused thing takes what hangs on
 * it along, counted.
 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/sum.h"
#include "master/model_private.h"
#include "net/ids.h"
#include "pipeline/source.h"

#include <stdlib.h>
#include <string.h>

struct apply {
    struct mr_model *model;
    uint32_t sender; /* index; MR_MODEL_NONE: refused */
    uint64_t created_ns;
    uint64_t now_s; /* for windows: as it says, and no later than it is here */
};

static enum mr_status check(struct mr_span payload, struct mr_error *error)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    mr_delta_reader_init(&reader, payload);
    do {
        status = mr_delta_next(&reader, &item);
    } while (status == MR_OK);
    if (status != MR_END)
        mr_error_set(error, status, "delta: %s", reader.error.text);
    mr_delta_reader_fini(&reader);
    return status == MR_END ? MR_OK : status;
}

static enum mr_status remember(struct mr_model_indices *indices, uint32_t index)
{
    if (indices->count == indices->capacity) {
        uint32_t capacity = indices->capacity ? 2 * indices->capacity : 256;
        uint32_t *items = realloc(indices->items, capacity * sizeof(*items));

        if (!items)
            return MR_ENOMEM;
        indices->items = items;
        indices->capacity = capacity;
    }
    indices->items[indices->count++] = index;
    return MR_OK;
}

/* What the payload's number stands for, or MR_MODEL_NONE. */
static uint32_t index_of(const struct mr_model_indices *indices, uint32_t number)
{
    return number < indices->count ? indices->items[number] : MR_MODEL_NONE;
}

/* Remembers what adding gave; refused things are remembered as MR_MODEL_NONE. */
static enum mr_status remember_result(struct mr_model_indices *indices,
                                      enum mr_status status, uint32_t index)
{
    if (status == MR_ENOMEM)
        return status;
    return remember(indices, status == MR_OK ? index : MR_MODEL_NONE);
}

static enum mr_status refuse(struct apply *apply, enum mr_model_table table)
{
    apply->model->working->refused[table]++;
    return MR_OK;
}

/* What a row that was refused tells of. */
static enum mr_status count_past_limit(struct apply *apply, const char *counter,
                                       uint64_t count)
{
    enum mr_status status = mr_model_add_counter(apply->model, counter, count);

    return status == MR_ELIMIT ? MR_OK : status; /* no room for counters, either */
}

static enum mr_status take_path(struct apply *apply, const struct mr_delta_item *item)
{
    struct mr_model *model = apply->model;
    bool has_parent = item->parent != MR_DELTA_NONE;
    uint32_t site = index_of(&model->sites, item->site), index = MR_MODEL_NONE;
    uint32_t parent = has_parent ? index_of(&model->paths, item->parent) : MR_MODEL_NONE;
    uint32_t scope = has_parent ? MR_MODEL_NONE : index_of(&model->scopes, item->scope);
    enum mr_status status = MR_ELIMIT;

    if (site != MR_MODEL_NONE && (has_parent ? parent : scope) != MR_MODEL_NONE)
        status = mr_model_add_path(model, parent, scope, site, item->flags, &index);
    else
        (void)refuse(apply, MR_MODEL_PATH);
    return remember_result(&model->paths, status, index);
}

static enum mr_status take_shape(struct apply *apply, const struct mr_delta_item *item)
{
    struct mr_model *model = apply->model;
    uint32_t path = index_of(&model->paths, item->path), index = MR_MODEL_NONE;
    const struct mr_model_path *record =
        path == MR_MODEL_NONE ? NULL : mr_model_path(model->working, path);
    enum mr_status status = MR_ELIMIT;

    if (record && record->parent == MR_MODEL_NONE && record->entry != MR_MODEL_NONE)
        status =
            mr_model_add_shape(model, record->scope, record->entry, item->id, &index);
    else
        (void)refuse(apply, MR_MODEL_SHAPE);
    return remember_result(&model->shapes, status, index);
}

static enum mr_status take_path_stat(struct apply *apply,
                                     const struct mr_delta_item *item)
{
    uint32_t path = index_of(&apply->model->paths, item->path);
    const struct mr_path_stats *stats = item->path_stats;

    if (path == MR_MODEL_NONE) {
        (void)refuse(apply, MR_MODEL_PATH_STAT);
        return count_past_limit(apply, MR_MODEL_PATH_CALLS_PAST_LIMIT,
                                mr_sum3(stats->ok, stats->failed, stats->incomplete));
    }
    enum mr_status status = mr_model_add_path_stats(apply->model, path, stats);
    if (status != MR_OK)
        return status;
    return mr_model_add_point(apply->model, MR_SERIES_PATH, item->window, apply->now_s,
                              path, stats);
}

static enum mr_status take_shape_stat(struct apply *apply,
                                      const struct mr_delta_item *item)
{
    uint32_t shape = index_of(&apply->model->shapes, item->shape);

    if (shape == MR_MODEL_NONE)
        return refuse(apply, MR_MODEL_SHAPE_STAT);
    enum mr_status status =
        mr_model_add_shape_stats(apply->model, shape, item->shape_stats);
    if (status != MR_OK)
        return status;
    return mr_model_add_point(apply->model, MR_SERIES_SHAPE, item->window, apply->now_s,
                              shape, item->shape_stats);
}

static uint64_t traces_of(const struct mr_entry_stats *stats)
{
    uint64_t traces = 0;

    for (int i = 0; i < MR_COVERAGE_COUNT; i++)
        mr_sum_add(&traces, stats->traces[i]);
    return traces;
}

static enum mr_status take_entry_stat(struct apply *apply,
                                      const struct mr_delta_item *item)
{
    uint32_t path = index_of(&apply->model->paths, item->path);
    const struct mr_model_path *record =
        path == MR_MODEL_NONE ? NULL : mr_model_path(apply->model->working, path);

    if (!record || record->parent != MR_MODEL_NONE || record->entry == MR_MODEL_NONE) {
        (void)refuse(apply, MR_MODEL_ENTRY);
        return count_past_limit(apply, MR_MODEL_PATH_TRACES_PAST_LIMIT,
                                traces_of(item->entry_stats));
    }
    uint32_t entry = record->entry;
    enum mr_status status =
        mr_model_add_entry_stats(apply->model, entry, item->entry_stats);
    if (status != MR_OK)
        return status;
    return mr_model_add_point(apply->model, MR_SERIES_ENTRY, item->window, apply->now_s,
                              entry, item->entry_stats);
}

/* The record of a pair of numbers, or a fresh one of `size` bytes, which needs no room. */
static enum mr_status put_pair(struct mr_model *model, enum mr_model_table table,
                               struct mr_id key, size_t size, void **record)
{
    uint32_t index = mr_cow_map_find(&model->working->ids[table], key);

    if (index == MR_MODEL_NONE) {
        enum mr_status status =
            mr_model_append(model, table, &key, mr_model_record_new(table, size), &index);

        if (status != MR_OK)
            return status;
    }
    *record = mr_model_edit(model, table, index);
    return *record ? MR_OK : MR_ENOMEM;
}

/* As above, where there is room for a fresh one. */
static enum mr_status edit_pair(struct mr_model *model, enum mr_model_table table,
                                struct mr_id key, size_t size, void **record)
{
    if (mr_cow_map_find(&model->working->ids[table], key) == MR_MODEL_NONE) {
        enum mr_status status = mr_model_room(model, table);

        if (status != MR_OK)
            return status;
    }
    return put_pair(model, table, key, size, record);
}

static struct mr_id stream_key(uint32_t source, uint32_t stream)
{
    return (struct mr_id){source, stream};
}

static bool has_stream(const struct mr_model *model, uint32_t source, uint32_t stream)
{
    return mr_cow_map_find(&model->working->ids[MR_MODEL_STREAM],
                           stream_key(source, stream)) != MR_MODEL_NONE;
}

/* One each of a source. What had no stream is in no frame that a probe counts: it does not go into the rest. */
static bool is_beside(uint32_t stream)
{
    return stream == MR_MODEL_STREAMS_REST || stream == MR_STREAM_NONE;
}

/* MR_ELIMIT: not counted yet. */
static enum mr_status room_for_stream(const struct mr_model *model, uint32_t source,
                                      uint32_t stream)
{
    uint32_t rows = model->working->tables[MR_MODEL_STREAM].count - model->streams_beside;

    if (is_beside(stream) || has_stream(model, source, stream))
        return MR_OK;
    return rows < model->limits.streams &&
                   !has_stream(model, source, MR_MODEL_STREAMS_REST)
               ? MR_OK
               : MR_ELIMIT;
}

enum mr_status mr_model_add_stream(struct mr_model *model, uint32_t source,
                                   uint32_t stream, const struct mr_ledger_entry *entry)
{
    void *record;
    bool is_one_more = is_beside(stream) && !has_stream(model, source, stream);
    enum mr_status status = room_for_stream(model, source, stream);

    if (status == MR_OK)
        status = put_pair(model, MR_MODEL_STREAM, stream_key(source, stream),
                          sizeof(struct mr_model_stream), &record);
    if (status != MR_OK)
        return status;
    model->streams_beside += is_one_more;
    struct mr_model_stream *row = record;
    int64_t gap = mr_ledger_gap(&row->entry);
    row->source = source;
    row->stream = stream;
    row->taken_ns = mr_clock_realtime_ns();
    mr_ledger_entry_merge(&row->entry, entry);
    if (mr_ledger_gap(&row->entry) != gap)
        row->gap_ns = row->taken_ns;
    return MR_OK;
}

/* Past the limit: into the row of the rest. */
static enum mr_status take_rest(struct apply *apply, uint32_t source,
                                const struct mr_ledger_entry *entry)
{
    struct mr_ledger_entry sums = *entry;

    sums.last = 0;
    (void)refuse(apply, MR_MODEL_STREAM);
    enum mr_status status =
        mr_model_add_stream(apply->model, source, MR_MODEL_STREAMS_REST, &sums);
    if (status != MR_OK)
        return status;
    return count_past_limit(apply, MR_MODEL_STREAM_EVENTS_PAST_LIMIT,
                            entry->reduced + mr_ledger_lost(entry));
}

static enum mr_status take_ledger(struct apply *apply, const struct mr_delta_item *item)
{
    const struct mr_ledger_entry *entry = item->ledger;
    uint32_t source = index_of(&apply->model->sources, item->source);

    if (source == MR_MODEL_NONE) {
        (void)refuse(apply, MR_MODEL_STREAM);
        return count_past_limit(apply, MR_MODEL_SOURCE_EVENTS_PAST_LIMIT,
                                entry->reduced + mr_ledger_lost(entry));
    }
    if (item->stream == MR_MODEL_STREAMS_REST) /* no probe has so many, but it is bytes */
        return take_rest(apply, source, entry);
    enum mr_status status =
        mr_model_add_stream(apply->model, source, item->stream, entry);
    return status == MR_ELIMIT ? take_rest(apply, source, entry) : status;
}

enum mr_status mr_model_add_counter(struct mr_model *model, const char *name,
                                    uint64_t value)
{
    void *record;
    enum mr_status status =
        edit_pair(model, MR_MODEL_COUNTER, mr_hash128(mr_span_of_text(name)),
                  sizeof(struct mr_model_counter), &record);

    if (status != MR_OK)
        return status;
    struct mr_model_counter *counter = record;
    mr_sum_add(&counter->value, value);
    strncpy(counter->name, name, sizeof(counter->name) - 1);
    return MR_OK;
}

static enum mr_status take_path_counter(struct apply *apply,
                                        const struct mr_delta_item *item)
{
    uint32_t path = index_of(&apply->model->paths, item->path);
    uint32_t counter = index_of(&apply->model->span_counters, item->counter);

    if (path == MR_MODEL_NONE || counter == MR_MODEL_NONE)
        return refuse(apply, MR_MODEL_PATH_COUNTER);
    return mr_model_add_path_counter(apply->model, path, counter, item->counter_stats);
}

static enum mr_status take_joined_stat(struct apply *apply,
                                       const struct mr_delta_item *item)
{
    uint32_t joined = index_of(&apply->model->joined, item->joined);

    if (joined == MR_MODEL_NONE) {
        apply->model->working->refused[MR_MODEL_JOINED_STAT]++;
        return mr_model_refuse_joined(apply->model, item->joined_stats);
    }
    return mr_model_add_joined_stats(apply->model, joined, item->joined_stats);
}

static enum mr_status take_joined_edge(struct apply *apply,
                                       const struct mr_delta_item *item)
{
    uint32_t joined = index_of(&apply->model->joined, item->joined);

    if (joined == MR_MODEL_NONE)
        return refuse(apply, MR_MODEL_JOINED_EDGE);
    return mr_model_add_edge_stats(apply->model, joined, item->place, item->edge_stats);
}

static bool make_call_room(struct mr_model *model, uint32_t count)
{
    struct mr_exemplar_call *grown;

    if (count <= model->call_capacity)
        return true;
    grown = realloc(model->calls, count * sizeof(*grown));
    if (!grown)
        return false;
    model->calls = grown;
    model->call_capacity = count;
    return true;
}

/* An exemplar in the model's own indices. */
struct exemplar {
    uint32_t entry, shape, source;
    struct mr_exemplar trace;
};

/* Of an EXEMPLAR or ASKED. MR_ELIMIT: something that it names was refused. */
static enum mr_status resolve_exemplar(struct apply *apply,
                                       const struct mr_delta_item *item,
                                       struct exemplar *found)
{
    struct mr_model *model = apply->model;
    struct mr_exemplar *trace = &found->trace;
    uint32_t path = index_of(&model->paths, item->path);
    uint32_t source = index_of(&model->sources, item->source);
    uint32_t shape = item->shape == MR_DELTA_NONE ? MR_MODEL_NONE
                                                  : index_of(&model->shapes, item->shape);
    const struct mr_model_path *record =
        path == MR_MODEL_NONE ? NULL : mr_model_path(model->working, path);

    if (!record || record->parent != MR_MODEL_NONE || record->entry == MR_MODEL_NONE ||
        source == MR_MODEL_NONE ||
        (shape == MR_MODEL_NONE && item->shape != MR_DELTA_NONE))
        return MR_ELIMIT;
    *found = (struct exemplar){record->entry, shape, source, *item->exemplar};
    if (!make_call_room(model, trace->call_count))
        return MR_ENOMEM;
    for (uint32_t i = 0; i < trace->call_count; i++) {
        model->calls[i] = trace->items[i];
        model->calls[i].site = index_of(&model->sites, trace->items[i].site);
        if (model->calls[i].site == MR_MODEL_NONE)
            return MR_ELIMIT;
    }
    trace->items = model->calls;
    trace->source = mr_model_source(model->working, source)->id;
    return MR_OK;
}

static enum mr_status put_answer(struct mr_model *model, struct mr_id request,
                                 const struct exemplar *found)
{
    struct mr_exemplar gone = {.items = NULL};

    if (model->on_asked &&
        !model->on_asked(model->asked_context, request, &found->trace, &gone))
        return MR_OK;
    return mr_model_put_answer(model, found->entry, found->shape, found->source,
                               &found->trace, mr_model_exemplar_id(&gone));
}

static enum mr_status take_exemplar(struct apply *apply, const struct mr_delta_item *item)
{
    struct mr_model *model = apply->model;
    struct exemplar found;
    enum mr_status status = resolve_exemplar(apply, item, &found);

    if (status == MR_ELIMIT)
        return refuse(apply, MR_MODEL_EXEMPLAR);
    if (status != MR_OK)
        return status;
    if (item->tag == MR_DELTA_ASKED)
        return put_answer(model, item->id, &found);
    return mr_model_put_exemplar(model, found.entry, found.shape, found.source,
                                 &found.trace);
}

static enum mr_status take_shape_path(struct apply *apply,
                                      const struct mr_delta_item *item)
{
    uint32_t shape = index_of(&apply->model->shapes, item->shape);
    uint32_t path = index_of(&apply->model->paths, item->path);

    if (shape == MR_MODEL_NONE || path == MR_MODEL_NONE)
        return refuse(apply, MR_MODEL_SHAPE_PATH);
    return mr_model_add_shape_path(apply->model, shape, path, item->shape_path_stats);
}

static enum mr_status take_open(struct apply *apply, const struct mr_delta_item *item)
{
    uint32_t path = index_of(&apply->model->paths, item->path);
    void *record;

    if (path == MR_MODEL_NONE || apply->sender == MR_MODEL_NONE)
        return refuse(apply, MR_MODEL_OPEN);
    enum mr_status status =
        edit_pair(apply->model, MR_MODEL_OPEN, (struct mr_id){apply->sender, path},
                  sizeof(struct mr_model_open), &record);
    if (status != MR_OK)
        return status;
    struct mr_model_open *open = record;
    open->sender = apply->sender;
    open->path = path;
    open->created_ns = apply->created_ns;
    open->taken_ns = mr_clock_realtime_ns();
    open->stats = *item->open;
    open->stack = item->stack == MR_DELTA_NONE
                      ? MR_MODEL_NONE
                      : index_of(&apply->model->paths, item->stack);
    return MR_OK;
}

bool mr_model_open_is_current(const struct mr_model_root *root,
                              const struct mr_model_open *open, uint64_t now_ns)
{
    const struct mr_model_sender *sender = mr_model_sender(root, open->sender);

    return open->stats.count > 0 && open->created_ns == sender->created_ns &&
           now_ns < open->taken_ns + MR_OPEN_TOLD_FOR_NS;
}

static enum mr_status take_head(struct apply *apply, const struct mr_delta_item *item)
{
    uint64_t created_s = item->created_ns / MR_SECOND_NS;

    apply->created_ns = item->created_ns;
    if (created_s > 0 && created_s < apply->now_s)
        apply->now_s = created_s;
    if (apply->sender == MR_MODEL_NONE)
        return MR_OK;
    struct mr_model_sender *sender =
        mr_model_edit(apply->model, MR_MODEL_SENDER, apply->sender);
    if (!sender)
        return MR_ENOMEM;
    sender->level = item->level;
    sender->created_ns = item->created_ns;
    return MR_OK;
}

static enum mr_status take_id(struct apply *apply, const struct mr_delta_item *item)
{
    struct mr_model *model = apply->model;
    uint32_t index = MR_MODEL_NONE;
    enum mr_status status;

    switch (item->tag) {
    case MR_DELTA_SITE:
        status = mr_model_add_site(model, item->id, &index);
        return remember_result(&model->sites, status, index);
    case MR_DELTA_SCOPE:
        status = mr_model_add_scope(model, item->id, &index);
        return remember_result(&model->scopes, status, index);
    case MR_DELTA_SPAN_COUNTER:
        status = mr_model_add_span_counter(model, item->id, &index);
        return remember_result(&model->span_counters, status, index);
    case MR_DELTA_JOINED:
        status =
            mr_model_add_joined(model, item->id, item->nodes, item->node_count, &index);
        return remember_result(&model->joined, status, index);
    default:
        status = mr_model_add_source(model, item->id, &index);
        return remember_result(&model->sources, status, index);
    }
}

static enum mr_status take(struct apply *apply, const struct mr_delta_item *item)
{
    switch (item->tag) {
    case MR_DELTA_HEAD:
        return take_head(apply, item);
    case MR_DELTA_SITE:
    case MR_DELTA_SCOPE:
    case MR_DELTA_SOURCE:
    case MR_DELTA_SPAN_COUNTER:
    case MR_DELTA_JOINED:
        return take_id(apply, item);
    case MR_DELTA_PATH:
        return take_path(apply, item);
    case MR_DELTA_PATH_STAT:
        return take_path_stat(apply, item);
    case MR_DELTA_SHAPE:
        return take_shape(apply, item);
    case MR_DELTA_SHAPE_STAT:
        return take_shape_stat(apply, item);
    case MR_DELTA_ENTRY_STAT:
        return take_entry_stat(apply, item);
    case MR_DELTA_LEDGER:
        return take_ledger(apply, item);
    case MR_DELTA_OPEN:
        return take_open(apply, item);
    case MR_DELTA_COUNTER:
        return mr_model_add_counter(apply->model, item->name, item->value);
    case MR_DELTA_PATH_COUNTER:
        return take_path_counter(apply, item);
    case MR_DELTA_PART:
        return mr_model_add_part(apply->model, item->part);
    case MR_DELTA_JOINED_STAT:
        return take_joined_stat(apply, item);
    case MR_DELTA_JOINED_EDGE:
        return take_joined_edge(apply, item);
    case MR_DELTA_EXEMPLAR:
    case MR_DELTA_ASKED:
        return take_exemplar(apply, item);
    case MR_DELTA_SHAPE_PATH:
        return take_shape_path(apply, item);
    }
    return MR_OK;
}

static enum mr_status find_sender(struct mr_model *model, struct mr_id id,
                                  uint32_t *index)
{
    void *record;
    enum mr_status status =
        edit_pair(model, MR_MODEL_SENDER, id, sizeof(struct mr_model_sender), &record);

    *index = MR_MODEL_NONE;
    if (status != MR_OK)
        return status == MR_ELIMIT ? MR_OK : status;
    struct mr_model_sender *sender = record;
    sender->id = id;
    sender->deltas++;
    *index = mr_cow_map_find(&model->working->ids[MR_MODEL_SENDER], id);
    return MR_OK;
}

static void forget_indices(struct mr_model *model)
{
    model->sites.count = 0;
    model->scopes.count = 0;
    model->sources.count = 0;
    model->paths.count = 0;
    model->shapes.count = 0;
    model->span_counters.count = 0;
    model->joined.count = 0;
}

enum mr_status mr_model_apply_delta(struct mr_model *model, struct mr_id sender,
                                    struct mr_span payload, struct mr_error *error)
{
    struct apply apply = {.model = model, .now_s = mr_clock_realtime_ns() / MR_SECOND_NS};
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status = check(payload, error);

    if (status == MR_OK)
        status = find_sender(model, sender, &apply.sender);
    if (status != MR_OK)
        return status;
    forget_indices(model);
    mr_delta_reader_init(&reader, payload);
    while ((status = mr_delta_next(&reader, &item)) == MR_OK) {
        status = take(&apply, &item);
        if (status != MR_OK && status != MR_ELIMIT)
            break;
    }
    model->working->skipped_items += reader.unknown;
    model->working->deltas++;
    mr_delta_reader_fini(&reader);
    return status == MR_END ? MR_OK : status;
}

enum mr_status mr_model_apply(struct mr_model *model, struct mr_id sender, uint8_t type,
                              struct mr_span payload, struct mr_error *error)
{
    switch (type) {
    case MR_FRAME_DICT:
        return mr_model_apply_dict(model, payload, error);
    case MR_FRAME_DELTA:
        return mr_model_apply_delta(model, sender, payload, error);
    default:
        return mr_error_set(error, MR_EFORMAT, "a frame of type %u is not for a master",
                            (unsigned)type);
    }
}
