/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing: rows in an order that depends on ids and labels alone, each behind the names
 * that it needs and that its payload does not have yet.
 */
#include "base/assert.h"
#include "base/hash.h"
#include "pipeline/accumulate_private.h"

#include <stdlib.h>

static const struct mr_acc_path *path_at(const struct mr_accumulator *acc, uint32_t index)
{
    return mr_acc_at(&acc->sets[MR_ACC_PATH], index);
}

static struct mr_acc_order by(struct mr_id id, uint64_t label)
{
    return (struct mr_acc_order){.a = id.hi, .b = id.lo, .c = label};
}

static struct mr_acc_order order_of(const struct mr_accumulator *acc,
                                    enum mr_acc_set_kind kind, const void *item)
{
    const struct mr_acc_path_row *path_row = item;
    const struct mr_acc_shape_row *shape_row = item;
    const struct mr_acc_entry_row *entry_row = item;
    const struct mr_acc_ledger_row *ledger_row = item;
    const struct mr_acc_path_counter_row *counter_row = item;
    const struct mr_acc_shape_path_row *shape_path = item;
    const struct mr_acc_exemplar *exemplar = item;
    const struct mr_acc_shape *shape;
    const struct mr_acc_name *source;
    struct mr_id ids[2];

    switch (kind) {
    case MR_ACC_PATH_ROW:
        return by(path_at(acc, path_row->path)->id, path_row->window);
    case MR_ACC_SHAPE_ROW:
        shape = mr_acc_at(&acc->sets[MR_ACC_SHAPE], shape_row->shape);
        return by(shape->key, shape_row->window);
    case MR_ACC_ENTRY_ROW:
        return by(path_at(acc, entry_row->path)->id, entry_row->window);
    case MR_ACC_LEDGER_ROW:
        source = mr_acc_at(&acc->sets[MR_ACC_SOURCE], ledger_row->source);
        return by(source->id, ledger_row->stream);
    case MR_ACC_OPEN:
        return by(path_at(acc, ((const struct mr_acc_open *)item)->path)->id, 0);
    case MR_ACC_PATH_COUNTER_ROW:
        ids[0] = path_at(acc, counter_row->path)->id;
        ids[1] = ((const struct mr_acc_name *)mr_acc_at(&acc->sets[MR_ACC_SPAN_COUNTER],
                                                        counter_row->counter))
                     ->id;
        return by(mr_hash128(mr_span_of(ids, sizeof(ids))), counter_row->window);
    case MR_ACC_JOINED_ROW:
    case MR_ACC_JOINED_EDGE_ROW:
    case MR_ACC_PART:
        return mr_acc_joined_order(acc, kind, item);
    case MR_ACC_SHAPE_PATH_ROW:
        shape = mr_acc_at(&acc->sets[MR_ACC_SHAPE], shape_path->shape);
        ids[0] = shape->key;
        ids[1] = path_at(acc, shape_path->path)->id;
        return by(mr_hash128(mr_span_of(ids, sizeof(ids))), 0);
    case MR_ACC_EXEMPLAR:
        return by(mr_acc_exemplar_id(acc, exemplar), exemplar->exemplar.why);
    case MR_ACC_ASKED:
        return by(mr_acc_asked_id(item), 0);
    default:
        MR_ASSERT(kind == MR_ACC_COUNTER);
        return by(((const struct mr_acc_counter *)item)->key, 0);
    }
}

static int compare(const void *left, const void *right)
{
    const struct mr_acc_order *l = left, *r = right;

    if (l->a != r->a)
        return l->a < r->a ? -1 : 1;
    if (l->b != r->b)
        return l->b < r->b ? -1 : 1;
    return (l->c > r->c) - (l->c < r->c);
}

enum mr_status mr_accumulator_write_begin(struct mr_accumulator *acc)
{
    acc->order_count = acc->order_next = 0;
    for (int kind = MR_ACC_ROWS; kind < MR_ACC_SET_COUNT; kind++) {
        const struct mr_acc_set *set = &acc->sets[kind];
        void *order = acc->order;
        enum mr_status status =
            mr_acc_grow(&order, &acc->order_capacity, acc->order_count + set->count,
                        sizeof(*acc->order));
        struct mr_acc_order *first;

        acc->order = order;
        if (status != MR_OK)
            return status;
        if (set->count == 0)
            continue;
        first = acc->order + acc->order_count;
        for (uint32_t i = 0; i < set->count; i++) {
            first[i] = order_of(acc, (enum mr_acc_set_kind)kind, mr_acc_at(set, i));
            first[i].index = i;
            first[i].kind = (uint32_t)kind;
        }
        qsort(first, set->count, sizeof(*first), compare);
        acc->order_count += set->count;
    }
    return MR_OK;
}

/* True if the item has to be written into this part, and is then known to be. */
static bool enter_part(const struct mr_accumulator *acc, struct mr_acc_place *place,
                       uint32_t number)
{
    if (place->part == acc->part)
        return false;
    *place = (struct mr_acc_place){acc->part, number};
    return true;
}

static uint32_t write_name(struct mr_accumulator *acc, struct mr_delta_writer *w,
                           enum mr_acc_set_kind kind, uint32_t index)
{
    struct mr_acc_name *name = mr_acc_at(&acc->sets[kind], index);

    if (kind == MR_ACC_SITE) {
        if (enter_part(acc, &name->place, w->sites))
            (void)mr_delta_site(w, name->id);
    } else if (kind == MR_ACC_SCOPE) {
        if (enter_part(acc, &name->place, w->scopes))
            (void)mr_delta_scope(w, name->id);
    } else if (kind == MR_ACC_SPAN_COUNTER) {
        if (enter_part(acc, &name->place, w->span_counters))
            (void)mr_delta_span_counter(w, name->id);
    } else {
        MR_ASSERT(kind == MR_ACC_SOURCE);
        if (enter_part(acc, &name->place, w->sources))
            (void)mr_delta_source(w, name->id);
    }
    return name->place.index;
}

static void write_link(struct mr_accumulator *acc, struct mr_delta_writer *w,
                       struct mr_acc_path *path)
{
    uint32_t site = write_name(acc, w, MR_ACC_SITE, path->site), scope = 0;
    uint32_t parent = MR_DELTA_NONE;

    if (path->parent == MR_ACC_NONE)
        scope = write_name(acc, w, MR_ACC_SCOPE, path->scope);
    else
        parent = path_at(acc, path->parent)->place.index;
    if (enter_part(acc, &path->place, w->paths))
        (void)mr_delta_path(w, parent, scope, site, path->flags);
}

/* The chain from the last ancestor that the part has down to `index`. */
static uint32_t write_path(struct mr_accumulator *acc, struct mr_delta_writer *w,
                           uint32_t index)
{
    uint32_t depth = 0;

    for (uint32_t at = index;
         at != MR_ACC_NONE && path_at(acc, at)->place.part != acc->part;
         at = path_at(acc, at)->parent) {
        MR_ASSERT(depth < acc->chain_capacity); /* merging has gone up every chain */
        acc->chain[depth++] = at;
    }
    while (depth > 0)
        write_link(acc, w, mr_acc_at(&acc->sets[MR_ACC_PATH], acc->chain[--depth]));
    return path_at(acc, index)->place.index;
}

static uint32_t write_shape(struct mr_accumulator *acc, struct mr_delta_writer *w,
                            uint32_t index)
{
    struct mr_acc_shape *shape = mr_acc_at(&acc->sets[MR_ACC_SHAPE], index);
    uint32_t scope, path;

    if (shape->place.part == acc->part)
        return shape->place.index;
    scope = write_name(acc, w, MR_ACC_SCOPE, shape->scope);
    path = write_path(acc, w, shape->path);
    if (enter_part(acc, &shape->place, w->shapes))
        (void)mr_delta_shape(w, scope, path, shape->node);
    return shape->place.index;
}

/* Where an exemplar stands in the payload: `exemplar` is it, with sites of the payload. False: the writer has failed. */
static bool write_exemplar_names(struct mr_accumulator *acc, struct mr_delta_writer *w,
                                 const struct mr_acc_exemplar *row,
                                 struct mr_exemplar *exemplar, uint32_t *path,
                                 uint32_t *shape)
{
    void *calls = acc->calls;

    *exemplar = row->exemplar;
    w->status = mr_acc_grow(&calls, &acc->call_capacity, exemplar->call_count,
                            sizeof(*acc->calls));
    acc->calls = calls;
    if (w->status != MR_OK)
        return false;
    for (uint32_t i = 0; i < exemplar->call_count; i++) {
        acc->calls[i] = row->calls[i];
        acc->calls[i].site = write_name(acc, w, MR_ACC_SITE, row->calls[i].site);
    }
    exemplar->items = acc->calls;
    *path = write_path(acc, w, row->path);
    *shape = row->shape == MR_ACC_NONE ? MR_DELTA_NONE : write_shape(acc, w, row->shape);
    return true;
}

static void write_exemplar(struct mr_accumulator *acc, struct mr_delta_writer *w,
                           const struct mr_acc_exemplar *row)
{
    uint32_t why = mr_acc_exemplar_reasons(acc, row), path, shape;
    struct mr_exemplar exemplar;

    if (why == 0 || !write_exemplar_names(acc, w, row, &exemplar, &path, &shape))
        return;
    exemplar.why = why;
    mr_delta_exemplar(w, path, shape, write_name(acc, w, MR_ACC_SOURCE, row->source),
                      &exemplar);
}

static void write_asked(struct mr_accumulator *acc, struct mr_delta_writer *w,
                        const struct mr_acc_asked *row)
{
    struct mr_exemplar exemplar;
    uint32_t path, shape;

    if (write_exemplar_names(acc, w, &row->trace, &exemplar, &path, &shape))
        mr_delta_asked(w, row->request, row->wanted, path, shape,
                       write_name(acc, w, MR_ACC_SOURCE, row->trace.source), &exemplar);
}

static void write_row(struct mr_accumulator *acc, struct mr_delta_writer *w,
                      const struct mr_acc_order *at)
{
    const void *item = mr_acc_at(&acc->sets[at->kind], at->index);
    const struct mr_acc_path_row *path_row = item;
    const struct mr_acc_shape_row *shape_row = item;
    const struct mr_acc_entry_row *entry_row = item;
    const struct mr_acc_ledger_row *ledger_row = item;
    const struct mr_acc_open *open = item;
    const struct mr_acc_counter *counter = item;
    const struct mr_acc_path_counter_row *counter_row = item;
    const struct mr_acc_shape_path_row *shape_path = item;
    uint32_t path;

    switch (at->kind) {
    case MR_ACC_PATH_ROW:
        mr_delta_path_stat(w, write_path(acc, w, path_row->path), path_row->window,
                           &path_row->stats);
        break;
    case MR_ACC_SHAPE_ROW:
        mr_delta_shape_stat(w, write_shape(acc, w, shape_row->shape), shape_row->window,
                            &shape_row->stats);
        break;
    case MR_ACC_ENTRY_ROW:
        mr_delta_entry_stat(w, write_path(acc, w, entry_row->path), entry_row->window,
                            &entry_row->stats);
        break;
    case MR_ACC_LEDGER_ROW:
        mr_delta_ledger(w, write_name(acc, w, MR_ACC_SOURCE, ledger_row->source),
                        ledger_row->stream, &ledger_row->entry);
        break;
    case MR_ACC_OPEN:
        path = write_path(acc, w, open->path);
        mr_delta_open(w, path,
                      open->stack == MR_ACC_NONE ? MR_DELTA_NONE
                                                 : write_path(acc, w, open->stack),
                      &open->stats);
        break;
    case MR_ACC_PATH_COUNTER_ROW:
        path = write_path(acc, w, counter_row->path);
        mr_delta_path_counter(
            w, path, counter_row->window,
            write_name(acc, w, MR_ACC_SPAN_COUNTER, counter_row->counter),
            &counter_row->stats);
        break;
    case MR_ACC_JOINED_ROW:
    case MR_ACC_JOINED_EDGE_ROW:
    case MR_ACC_PART:
        mr_acc_write_joined(acc, w, (enum mr_acc_set_kind)at->kind, item);
        break;
    case MR_ACC_SHAPE_PATH_ROW:
        path = write_path(acc, w, shape_path->path);
        mr_delta_shape_path(w, write_shape(acc, w, shape_path->shape), path,
                            &shape_path->stats);
        break;
    case MR_ACC_EXEMPLAR:
        write_exemplar(acc, w, item);
        break;
    case MR_ACC_ASKED:
        write_asked(acc, w, item);
        break;
    default:
        mr_delta_counter(w, counter->name, counter->value);
    }
}

static void begin_part(struct mr_accumulator *acc, struct mr_delta_writer *w,
                       uint32_t level, uint64_t created_ns, struct mr_buffer *out)
{
    acc->part++;
    mr_buffer_clear(out);
    mr_delta_begin(w, out);
    mr_delta_head(w, level, created_ns);
}

enum mr_status mr_accumulator_write(struct mr_accumulator *acc, uint32_t level,
                                    uint64_t created_ns, struct mr_buffer *out)
{
    struct mr_delta_writer w;
    size_t whole = 0; /* bytes up to the last row that fits */

    MR_ASSERT(out->size == 0);
    if (acc->order_next == acc->order_count)
        return MR_END;
    begin_part(acc, &w, level, created_ns, out);
    while (acc->order_next < acc->order_count && out->size < acc->limits.part_bytes) {
        write_row(acc, &w, &acc->order[acc->order_next]);
        if (mr_delta_status(&w) == MR_OK) {
            whole = out->size;
        } else if (mr_delta_status(&w) == MR_ENOMEM) {
            return MR_ENOMEM;
        } else if (whole > 0) {
            mr_buffer_truncate(out, whole); /* the next part takes the row */
            return MR_OK;
        } else {
            acc->stats.unwritten++; /* it does not fit alone */
            begin_part(acc, &w, level, created_ns, out);
        }
        acc->order_next++;
    }
    return MR_OK;
}
