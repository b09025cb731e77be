/* SPDX-License-Identifier: Apache-2.0 */
#include "net/delta.h"
#include "net/ids.h"
#include "net/varint.h"
#include "net/wanted.h"

#include <stdlib.h>

#define TAG_LAST                                                                         \
    UINT64_C(0xffff) /* tags beyond may not fit their enum; all are unknown */

void mr_delta_reader_init(struct mr_delta_reader *r, struct mr_span payload)
{
    *r = (struct mr_delta_reader){.all = payload, .rest = payload};
    r->path_stats.histogram = MR_HISTOGRAM_EMPTY;
    r->shape_stats.histogram = MR_HISTOGRAM_EMPTY;
    r->joined_stats.histogram = MR_HISTOGRAM_EMPTY;
    r->edge_stats.histogram = MR_HISTOGRAM_EMPTY;
}

void mr_delta_reader_fini(struct mr_delta_reader *r)
{
    mr_histogram_fini(&r->path_stats.histogram);
    mr_histogram_fini(&r->shape_stats.histogram);
    mr_histogram_fini(&r->joined_stats.histogram);
    mr_histogram_fini(&r->edge_stats.histogram);
    free(r->calls);
    r->calls = NULL;
    r->call_capacity = 0;
}

/* The number of an item that came before: one of `count`. */
static bool get_index(struct mr_span *in, uint32_t count, uint32_t *index)
{
    return mr_varint_get_u32(in, index) && *index < count;
}

static bool get_times(struct mr_span *in, struct mr_times *times)
{
    return mr_varint_get(in, &times->sum) && mr_varint_get(in, &times->min) &&
           mr_varint_get(in, &times->max) && times->min <= times->max &&
           times->max <= times->sum;
}

static bool get_head(struct mr_span *in, struct mr_delta_item *item)
{
    return mr_varint_get_u32(in, &item->level) && mr_varint_get(in, &item->created_ns);
}

static bool get_named(struct mr_span *in, uint32_t *count, struct mr_delta_item *item)
{
    if (!mr_id_take(in, &item->id))
        return false;
    item->index = (*count)++;
    return true;
}

static bool get_path(struct mr_delta_reader *r, struct mr_span *in,
                     struct mr_delta_item *item)
{
    uint64_t parent;

    if (!mr_varint_get(in, &parent) || parent > r->paths ||
        !mr_varint_get_u32(in, &item->scope) || !get_index(in, r->sites, &item->site) ||
        !mr_varint_get_u32(in, &item->flags))
        return false;
    item->parent = parent ? (uint32_t)parent - 1 : MR_DELTA_NONE;
    if (parent == 0 && item->scope >= r->scopes)
        return false;
    item->index = r->paths++;
    return true;
}

static bool get_shape(struct mr_delta_reader *r, struct mr_span *in,
                      struct mr_delta_item *item)
{
    if (!get_index(in, r->scopes, &item->scope) ||
        !get_index(in, r->paths, &item->path) || !mr_id_take(in, &item->id))
        return false;
    item->index = r->shapes++;
    return true;
}

static bool get_path_stat(struct mr_delta_reader *r, struct mr_span *in,
                          struct mr_delta_item *item)
{
    struct mr_path_stats *stats = &r->path_stats;

    item->path_stats = stats;
    return get_index(in, r->paths, &item->path) && mr_varint_get(in, &item->window) &&
           mr_varint_get(in, &stats->ok) && mr_varint_get(in, &stats->failed) &&
           mr_varint_get(in, &stats->incomplete) && get_times(in, &stats->self) &&
           get_times(in, &stats->total) &&
           mr_histogram_get(&stats->histogram, in) == MR_OK;
}

static bool get_shape_stat(struct mr_delta_reader *r, struct mr_span *in,
                           struct mr_delta_item *item)
{
    struct mr_shape_stats *stats = &r->shape_stats;

    item->shape_stats = stats;
    return get_index(in, r->shapes, &item->shape) && mr_varint_get(in, &item->window) &&
           mr_varint_get(in, &stats->ok) && mr_varint_get(in, &stats->failed) &&
           mr_varint_get(in, &stats->calls) && mr_varint_get(in, &stats->folded) &&
           mr_varint_get(in, &stats->first_ns) && mr_varint_get(in, &stats->last_ns) &&
           get_times(in, &stats->time) &&
           mr_histogram_get(&stats->histogram, in) == MR_OK;
}

static bool get_entry_stat(struct mr_delta_reader *r, struct mr_span *in,
                           struct mr_delta_item *item)
{
    struct mr_entry_stats *stats = &r->entry_stats;
    bool is_good =
        get_index(in, r->paths, &item->path) && mr_varint_get(in, &item->window);

    item->entry_stats = stats;
    for (int i = 0; is_good && i < MR_COVERAGE_COUNT; i++)
        is_good = mr_varint_get(in, &stats->traces[i]) &&
                  mr_varint_get(in, &stats->calls[i]) &&
                  mr_varint_get(in, &stats->time_ns[i]);
    return is_good;
}

/* Each reason at most once, and one that we know. */
static bool get_losses(struct mr_span *in, uint64_t lost[MR_LOSS_REASON_COUNT])
{
    uint32_t count, reason, seen = 0;

    memset(lost, 0, MR_LOSS_REASON_COUNT * sizeof(*lost));
    if (!mr_varint_get_u32(in, &count) || count >= MR_LOSS_REASON_COUNT)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!get_index(in, MR_LOSS_REASON_COUNT, &reason) || reason == 0 ||
            seen & 1u << reason || !mr_varint_get(in, &lost[reason]))
            return false;
        seen |= 1u << reason;
    }
    return true;
}

static bool get_ledger(struct mr_delta_reader *r, struct mr_span *in,
                       struct mr_delta_item *item)
{
    struct mr_ledger_entry *entry = &r->ledger;

    item->ledger = entry;
    return get_index(in, r->sources, &item->source) &&
           mr_varint_get_u32(in, &item->stream) && mr_varint_get(in, &entry->last) &&
           mr_varint_get(in, &entry->reduced) && mr_zigzag_get(in, &entry->held) &&
           get_losses(in, entry->lost);
}

static bool get_open(struct mr_delta_reader *r, struct mr_span *in,
                     struct mr_delta_item *item)
{
    struct mr_open_stats *open = &r->open;
    uint64_t stack, ages, age;

    item->open = open;
    item->stack = MR_DELTA_NONE;
    *open = (struct mr_open_stats){0};
    if (!get_index(in, r->paths, &item->path) || !mr_varint_get(in, &open->oldest_ns) ||
        !mr_varint_get(in, &open->count))
        return false;
    if (in->size == 0) /* of a sender that does not tell more */
        return true;
    if (!mr_varint_get(in, &stack) || stack > r->paths ||
        !mr_varint_get(in, &open->since_ns) || !mr_varint_get(in, &ages))
        return false;
    if (stack > 0)
        item->stack = (uint32_t)stack - 1;
    for (uint64_t i = 0; i < ages; i++) {
        if (!mr_varint_get(in, &age))
            return false;
        if (i < MR_OPEN_AGES)
            open->ages[i] = age;
    }
    return true;
}

static bool get_counter(struct mr_span *in, struct mr_delta_item *item)
{
    struct mr_span name;
    uint64_t size;

    if (!mr_varint_get(in, &size) || size >= sizeof(item->name) ||
        !mr_span_take(in, size, &name) || (size && memchr(name.data, 0, size)))
        return false;
    if (size)
        memcpy(item->name, name.data, size);
    item->name[size] = '\0';
    return mr_varint_get(in, &item->value);
}

static bool get_path_counter(struct mr_delta_reader *r, struct mr_span *in,
                             struct mr_delta_item *item)
{
    struct mr_counter_stats *stats = &r->counter_stats;

    item->counter_stats = stats;
    return get_index(in, r->paths, &item->path) && mr_varint_get(in, &item->window) &&
           get_index(in, r->span_counters, &item->counter) &&
           mr_varint_get(in, &stats->calls) && mr_varint_get(in, &stats->backward) &&
           get_times(in, &stats->self) && get_times(in, &stats->total);
}

static bool get_part(struct mr_delta_reader *r, struct mr_span *in,
                     struct mr_delta_item *item)
{
    item->part = &r->part;
    return mr_part_get(in, &r->part, r->part_edges);
}

static bool get_joined(struct mr_delta_reader *r, struct mr_span *in,
                       struct mr_delta_item *item)
{
    if (!mr_joined_get(in, &item->id, r->nodes, &item->node_count))
        return false;
    item->nodes = r->nodes;
    item->index = r->joined++;
    return true;
}

static bool get_joined_stat(struct mr_delta_reader *r, struct mr_span *in,
                            struct mr_delta_item *item)
{
    struct mr_joined_stats *stats = &r->joined_stats;

    item->joined_stats = stats;
    return get_index(in, r->joined, &item->joined) && mr_varint_get(in, &item->window) &&
           mr_varint_get(in, &stats->ok) && mr_varint_get(in, &stats->failed) &&
           mr_varint_get(in, &stats->incomplete) && mr_varint_get(in, &stats->first_ns) &&
           mr_varint_get(in, &stats->last_ns) && get_times(in, &stats->time) &&
           mr_id_take(in, &stats->slowest) &&
           mr_histogram_get(&stats->histogram, in) == MR_OK;
}

static bool get_joined_edge(struct mr_delta_reader *r, struct mr_span *in,
                            struct mr_delta_item *item)
{
    struct mr_edge_stats *stats = &r->edge_stats;

    item->edge_stats = stats;
    return get_index(in, r->joined, &item->joined) && mr_varint_get(in, &item->window) &&
           get_index(in, MR_JOINED_NODES_MAX, &item->place) && item->place > 0 &&
           mr_varint_get(in, &stats->count) && mr_varint_get(in, &stats->clamped) &&
           stats->clamped <= stats->count && get_times(in, &stats->time) &&
           mr_histogram_get(&stats->histogram, in) == MR_OK;
}

static bool make_call_room(struct mr_delta_reader *r, uint32_t count)
{
    struct mr_exemplar_call *grown;

    if (count <= r->call_capacity)
        return true;
    grown = realloc(r->calls, count * sizeof(*grown));
    if (!grown)
        return false;
    r->calls = grown;
    r->call_capacity = count;
    return true;
}

#define CALL_BYTES_MIN 7u

static bool get_exemplar_of(struct mr_delta_reader *r, struct mr_span *in,
                            struct mr_delta_item *item)
{
    struct mr_exemplar *exemplar = &r->exemplar;
    uint64_t shape;

    item->exemplar = exemplar;
    if (!get_index(in, r->paths, &item->path) || !mr_varint_get(in, &shape) ||
        shape > r->shapes)
        return false;
    item->shape = shape ? (uint32_t)shape - 1 : MR_DELTA_NONE;
    return true;
}

/* What stands behind its reasons. */
static bool get_exemplar_body(struct mr_delta_reader *r, struct mr_span *in,
                              struct mr_delta_item *item)
{
    struct mr_exemplar *exemplar = &r->exemplar;
    uint32_t status;

    if (!get_index(in, MR_EXEMPLAR_STATUS_COUNT, &status) ||
        !get_index(in, r->sources, &item->source) ||
        !mr_varint_get_u32(in, &exemplar->stream) ||
        !mr_varint_get(in, &exemplar->before) ||
        !mr_varint_get(in, &exemplar->start_ns) || !mr_varint_get(in, &exemplar->calls) ||
        !mr_varint_get_u32(in, &exemplar->call_count))
        return false;
    exemplar->status = (enum mr_exemplar_status)status;
    if (exemplar->call_count == 0 || exemplar->call_count > MR_EXEMPLAR_CALLS_MAX ||
        exemplar->call_count > in->size / CALL_BYTES_MIN ||
        !make_call_room(r, exemplar->call_count))
        return false;
    exemplar->items = r->calls;
    return mr_exemplar_get_calls(in, r->sites, exemplar->calls, r->calls,
                                 exemplar->call_count);
}

static bool get_exemplar(struct mr_delta_reader *r, struct mr_span *in,
                         struct mr_delta_item *item)
{
    struct mr_exemplar *exemplar = &r->exemplar;

    return get_exemplar_of(r, in, item) && mr_varint_get_u32(in, &exemplar->why) &&
           exemplar->why > 0 && exemplar->why <= MR_EXEMPLAR_ALL &&
           get_exemplar_body(r, in, item);
}

static bool get_asked(struct mr_delta_reader *r, struct mr_span *in,
                      struct mr_delta_item *item)
{
    r->exemplar.why = MR_EXEMPLAR_ASKED;
    return mr_id_take(in, &item->id) && !mr_id_is_zero(item->id) &&
           mr_varint_get_u32(in, &item->wanted) && item->wanted > 0 &&
           item->wanted <= MR_WANTED_COUNT_MAX && get_exemplar_of(r, in, item) &&
           get_exemplar_body(r, in, item);
}

static bool get_shape_path(struct mr_delta_reader *r, struct mr_span *in,
                           struct mr_delta_item *item)
{
    struct mr_shape_path_stats *stats = &r->shape_path_stats;

    item->shape_path_stats = stats;
    return get_index(in, r->shapes, &item->shape) &&
           get_index(in, r->paths, &item->path) && mr_varint_get(in, &stats->ok) &&
           mr_varint_get(in, &stats->failed) && get_times(in, &stats->self) &&
           get_times(in, &stats->total);
}

enum outcome { BROKEN, GOOD, UNKNOWN };

static enum outcome get_fields(struct mr_delta_reader *r, struct mr_span in,
                               struct mr_delta_item *item)
{
    switch (item->tag) {
    case MR_DELTA_HEAD:
        return get_head(&in, item);
    case MR_DELTA_SITE:
        return get_named(&in, &r->sites, item);
    case MR_DELTA_SCOPE:
        return get_named(&in, &r->scopes, item);
    case MR_DELTA_PATH:
        return get_path(r, &in, item);
    case MR_DELTA_PATH_STAT:
        return get_path_stat(r, &in, item);
    case MR_DELTA_SOURCE:
        return get_named(&in, &r->sources, item);
    case MR_DELTA_SHAPE:
        return get_shape(r, &in, item);
    case MR_DELTA_SHAPE_STAT:
        return get_shape_stat(r, &in, item);
    case MR_DELTA_ENTRY_STAT:
        return get_entry_stat(r, &in, item);
    case MR_DELTA_LEDGER:
        return get_ledger(r, &in, item);
    case MR_DELTA_OPEN:
        return get_open(r, &in, item);
    case MR_DELTA_COUNTER:
        return get_counter(&in, item);
    case MR_DELTA_SPAN_COUNTER:
        return get_named(&in, &r->span_counters, item);
    case MR_DELTA_PATH_COUNTER:
        return get_path_counter(r, &in, item);
    case MR_DELTA_PART:
        return get_part(r, &in, item);
    case MR_DELTA_JOINED:
        return get_joined(r, &in, item);
    case MR_DELTA_JOINED_STAT:
        return get_joined_stat(r, &in, item);
    case MR_DELTA_JOINED_EDGE:
        return get_joined_edge(r, &in, item);
    case MR_DELTA_EXEMPLAR:
        return get_exemplar(r, &in, item);
    case MR_DELTA_ASKED:
        return get_asked(r, &in, item);
    case MR_DELTA_SHAPE_PATH:
        return get_shape_path(r, &in, item);
    }
    return UNKNOWN;
}

bool mr_delta_skip(struct mr_span *rest, uint64_t *tag, struct mr_span *whole,
                   struct mr_span *fields)
{
    struct mr_span at = *rest;
    uint64_t size;

    if (!mr_varint_get(&at, tag) || !mr_varint_get(&at, &size) ||
        !mr_span_take(&at, size, fields))
        return false;
    *whole = mr_span_of(rest->data, rest->size - at.size);
    *rest = at;
    return true;
}

static enum mr_status fail(struct mr_delta_reader *r, const char *what, unsigned tag)
{
    return mr_error_set(&r->error, MR_EFORMAT, "delta, byte %zu: %s (tag %u)",
                        r->all.size - r->rest.size, what, tag);
}

enum mr_status mr_delta_next(struct mr_delta_reader *r, struct mr_delta_item *item)
{
    while (r->rest.size) {
        struct mr_span rest = r->rest, fields;
        uint64_t tag, size;

        if (!mr_varint_get(&rest, &tag) || !mr_varint_get(&rest, &size) ||
            !mr_span_take(&rest, size, &fields))
            return fail(r, "no whole item", 0);
        if (tag > TAG_LAST) {
            r->unknown++;
            r->rest = rest;
            continue;
        }
        *item = (struct mr_delta_item){.tag = (enum mr_delta_tag)tag};
        switch (get_fields(r, fields, item)) {
        case BROKEN:
            return fail(r, "item breaks the format", (unsigned)tag);
        case GOOD:
            r->rest = rest;
            return MR_OK;
        case UNKNOWN:
            r->unknown++;
            r->rest = rest;
        }
    }
    return MR_END;
}
