/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of several parts: joined shapes, their rows, and parts that wait to be joined. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/accumulate_private.h"

static enum mr_status add_nodes(struct mr_acc_nodes *into,
                                const struct mr_joined_node *nodes, uint32_t count)
{
    void *items = into->items;
    enum mr_status status;

    status = mr_acc_grow(&items, &into->capacity, into->count + count, sizeof(*nodes));
    into->items = items;
    if (status != MR_OK)
        return status;
    memcpy(into->items + into->count, nodes, count * sizeof(*nodes));
    into->count += count;
    return MR_OK;
}

/* As many as the payload has bytes for: what comes behind names them by number, so none may be left out. */
enum mr_status mr_acc_add_joined(struct mr_accumulator *acc,
                                 const struct mr_delta_item *item)
{
    struct mr_acc_local local = {
        .id = item->id, .first = acc->local_nodes.count, .count = item->node_count};
    enum mr_status status = add_nodes(&acc->local_nodes, item->nodes, item->node_count);

    return status == MR_OK ? mr_acc_add_local(acc, MR_ACC_JOINED, local) : status;
}

static enum mr_status intern(struct mr_accumulator *acc, uint32_t number, uint32_t *index)
{
    struct mr_acc_local *local = &acc->locals[MR_ACC_JOINED].items[number];
    struct mr_acc_set *set = &acc->sets[MR_ACC_JOINED];
    uint32_t first = acc->nodes.count;
    enum mr_status status = MR_OK;
    bool is_new;

    MR_ASSERT(number < acc->locals[MR_ACC_JOINED].count); /* the reader has checked it */
    if (local->epoch != acc->epoch) {
        /* Nodes first: a shape without its nodes would stay. */
        if (first + local->count > MR_ACCUMULATOR_NODES_MAX)
            return MR_ELIMIT;
        status =
            add_nodes(&acc->nodes, acc->local_nodes.items + local->first, local->count);
        if (status == MR_OK)
            status = mr_acc_set_take(set, local->id, &local->index, &is_new);
        if (status != MR_OK)
            return status;
        if (is_new)
            *(struct mr_acc_joined *)mr_acc_at(set, local->index) =
                (struct mr_acc_joined){
                    .id = local->id, .first = first, .count = local->count};
        else
            acc->nodes.count = first;
        local->epoch = acc->epoch;
    }
    *index = local->index;
    return MR_OK;
}

/* The row of the item's trace (at `place` of it) and window, which may be new. */
static enum mr_status take_row(struct mr_accumulator *acc, struct mr_acc_set *set,
                               const struct mr_delta_item *item, uint32_t place,
                               uint32_t *joined, uint32_t *index, bool *is_new)
{
    enum mr_status status = intern(acc, item->joined, joined);

    if (status == MR_OK)
        status = mr_acc_admit_window(acc, item->window);
    if (status != MR_OK)
        return status;
    return mr_acc_set_take(set,
                           (struct mr_id){(uint64_t)place << 32 | *joined, item->window},
                           index, is_new);
}

enum mr_status mr_acc_merge_joined_stat(struct mr_accumulator *acc,
                                        const struct mr_delta_item *item)
{
    struct mr_acc_set *set = &acc->sets[MR_ACC_JOINED_ROW];
    struct mr_acc_joined_row *row;
    uint32_t joined, index;
    bool is_new;
    enum mr_status status = take_row(acc, set, item, 0, &joined, &index, &is_new);

    if (status != MR_OK)
        return status;
    row = mr_acc_at(set, index);
    if (is_new)
        *row = (struct mr_acc_joined_row){.window = item->window,
                                          .joined = joined,
                                          .stats.histogram =
                                              mr_acc_cleared(&row->stats.histogram)};
    return mr_joined_stats_merge(&row->stats, item->joined_stats);
}

enum mr_status mr_acc_merge_joined_edge(struct mr_accumulator *acc,
                                        const struct mr_delta_item *item)
{
    struct mr_acc_set *set = &acc->sets[MR_ACC_JOINED_EDGE_ROW];
    struct mr_acc_joined_edge_row *row;
    uint32_t joined, index;
    bool is_new;
    enum mr_status status =
        take_row(acc, set, item, item->place, &joined, &index, &is_new);

    if (status != MR_OK)
        return status;
    row = mr_acc_at(set, index);
    if (is_new)
        *row = (struct mr_acc_joined_edge_row){.window = item->window,
                                               .joined = joined,
                                               .place = item->place,
                                               .stats.histogram =
                                                   mr_acc_cleared(&row->stats.histogram)};
    return mr_edge_stats_merge(&row->stats, item->edge_stats);
}

enum mr_status mr_acc_merge_part(struct mr_accumulator *acc,
                                 const struct mr_delta_item *item)
{
    struct mr_acc_set *set = &acc->sets[MR_ACC_PART];
    struct mr_acc_part *part;
    uint8_t *at;
    size_t size;
    uint32_t index;
    bool is_new;
    enum mr_status status = mr_buffer_reserve(&acc->part_bytes, MR_PART_SIZE_MAX, &at);

    if (status == MR_OK)
        status = mr_acc_set_take(set, item->part->id, &index, &is_new);
    if (status != MR_OK || !is_new)
        return status;
    size = (size_t)(mr_part_put(item->part, at) - at);
    part = mr_acc_at(set, index);
    *part = (struct mr_acc_part){
        .id = item->part->id, .at = acc->part_bytes.size, .size = size};
    mr_buffer_commit(&acc->part_bytes, size);
    return MR_OK;
}

static const struct mr_acc_joined *joined_at(const struct mr_accumulator *acc,
                                             uint32_t index)
{
    return mr_acc_at(&acc->sets[MR_ACC_JOINED], index);
}

struct mr_acc_order mr_acc_joined_order(const struct mr_accumulator *acc,
                                        enum mr_acc_set_kind kind, const void *item)
{
    const struct mr_acc_joined_row *row = item;
    const struct mr_acc_joined_edge_row *edge = item;
    struct mr_id id;
    uint64_t label = 0;

    if (kind == MR_ACC_PART) {
        id = ((const struct mr_acc_part *)item)->id;
    } else if (kind == MR_ACC_JOINED_ROW) {
        id = joined_at(acc, row->joined)->id;
        label = row->window;
    } else {
        MR_ASSERT(kind == MR_ACC_JOINED_EDGE_ROW);
        id = joined_at(acc, edge->joined)->id;
        id.lo ^=
            edge->place; /* only an order: ids are hashes, no two shapes come this near */
        label = edge->window;
    }
    return (struct mr_acc_order){.a = id.hi, .b = id.lo, .c = label};
}

static uint32_t write_definition(struct mr_accumulator *acc, struct mr_delta_writer *w,
                                 uint32_t index)
{
    struct mr_acc_joined *joined = mr_acc_at(&acc->sets[MR_ACC_JOINED], index);

    if (joined->place.part != acc->part) {
        joined->place = (struct mr_acc_place){acc->part, w->joined};
        (void)mr_delta_joined(w, joined->id, acc->nodes.items + joined->first,
                              joined->count);
    }
    return joined->place.index;
}

static void write_part(const struct mr_accumulator *acc, struct mr_delta_writer *w,
                       const struct mr_acc_part *row)
{
    struct mr_part_edge edges[MR_PART_EDGES_MAX];
    struct mr_span bytes = mr_span_of(acc->part_bytes.data + row->at, row->size);
    struct mr_part part;
    bool is_good = mr_part_get(&bytes, &part, edges);

    MR_ASSERT(is_good); /* we wrote it */
    mr_delta_part(w, &part);
}

void mr_acc_write_joined(struct mr_accumulator *acc, struct mr_delta_writer *w,
                         enum mr_acc_set_kind kind, const void *item)
{
    const struct mr_acc_joined_row *row = item;
    const struct mr_acc_joined_edge_row *edge = item;

    if (kind == MR_ACC_PART)
        write_part(acc, w, item);
    else if (kind == MR_ACC_JOINED_ROW)
        mr_delta_joined_stat(w, write_definition(acc, w, row->joined), row->window,
                             &row->stats);
    else
        mr_delta_joined_edge(w, write_definition(acc, w, edge->joined), edge->window,
                             edge->place, &edge->stats);
}

void mr_acc_free_joined_histograms(struct mr_accumulator *acc)
{
    struct mr_acc_set *rows = &acc->sets[MR_ACC_JOINED_ROW],
                      *edges = &acc->sets[MR_ACC_JOINED_EDGE_ROW];

    for (uint32_t i = 0; i < rows->capacity; i++)
        mr_histogram_fini(
            &((struct mr_acc_joined_row *)mr_acc_at(rows, i))->stats.histogram);
    for (uint32_t i = 0; i < edges->capacity; i++)
        mr_histogram_fini(
            &((struct mr_acc_joined_edge_row *)mr_acc_at(edges, i))->stats.histogram);
}

void mr_acc_free_joined(struct mr_accumulator *acc)
{
    free(acc->nodes.items);
    free(acc->local_nodes.items);
    acc->nodes = acc->local_nodes = (struct mr_acc_nodes){0};
    mr_buffer_fini(&acc->part_bytes);
    mr_buffer_init(&acc->part_bytes, MR_ACCUMULATOR_PART_BYTES_MAX);
}
