/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/clock.h"
#include "pipeline/filters/reduce_private.h"

/* The definitions go out before the delta that uses them. */
static enum mr_status emit_payload(struct mr_reduce *reduce)
{
    struct mr_batch *batch = reduce->batch;
    enum mr_status status = mr_dict_batch_emit(&reduce->dict, reduce->filter);

    reduce->batch = NULL;
    if (status == MR_OK)
        status = mr_delta_status(&reduce->writer);
    if (status == MR_OK)
        return mr_filter_emit(reduce->filter, batch);
    mr_batch_free(batch);
    return status;
}

/* A payload with room for one more row. */
enum mr_status mr_reduce_room(struct mr_reduce *reduce)
{
    if (reduce->batch && reduce->batch->bytes.size >= reduce->config->delta_bytes_max) {
        enum mr_status status = emit_payload(reduce);

        if (status != MR_OK)
            return status;
    }
    if (reduce->batch)
        return MR_OK;
    reduce->batch = mr_batch_new(MR_BATCH_DELTA);
    if (!reduce->batch)
        return MR_ENOMEM;
    reduce->payload++;
    reduce->batch->group = reduce->group;
    reduce->batch->teller = reduce->teller;
    reduce->batch->telling = reduce->telling;
    mr_delta_begin(&reduce->writer, &reduce->batch->bytes);
    mr_delta_head(&reduce->writer, reduce->config->level, mr_clock_realtime_ns());
    return MR_OK;
}

static bool has_site_index(struct mr_reduce *reduce, uint32_t site)
{
    uint32_t capacity = reduce->site_capacity ? reduce->site_capacity : 1024;
    struct mr_site_index *grown;

    if (site < reduce->site_capacity)
        return true;
    while (capacity <= site)
        capacity *= 2;
    grown = realloc(reduce->site_index, capacity * sizeof(*grown));
    if (!grown)
        return false;
    for (uint32_t i = reduce->site_capacity; i < capacity; i++)
        grown[i] = (struct mr_site_index){0, 0};
    reduce->site_index = grown;
    reduce->site_capacity = capacity;
    return true;
}

/* Its number in the payload; the caller has seen to has_site_index(). */
static uint32_t site_number(struct mr_reduce *reduce, uint32_t site)
{
    struct mr_site_index *entry = &reduce->site_index[site];

    if (entry->payload != reduce->payload) {
        entry->payload = reduce->payload;
        entry->index =
            mr_delta_site(&reduce->writer, mr_sites_at(reduce->config->sites, site)->id);
    }
    return entry->index;
}

enum mr_status mr_reduce_site_number(struct mr_reduce *reduce, uint32_t site,
                                     uint32_t *number)
{
    if (!has_site_index(reduce, site))
        return MR_ENOMEM;
    *number = site_number(reduce, site);
    return MR_OK;
}

static uint32_t scope_number(struct mr_reduce *reduce, uint32_t scope)
{
    struct mr_scope *entry = &reduce->scopes[scope];

    if (entry->payload != reduce->payload) {
        entry->payload = reduce->payload;
        entry->index = mr_delta_scope(&reduce->writer, entry->id);
    }
    return entry->index;
}

/* Writes one path whose parent is written, or is a base. */
static void write_path(struct mr_reduce *reduce, struct mr_path *node)
{
    const struct mr_path *parent = &reduce->paths.nodes[node->parent];
    uint32_t flags = node->flags & MR_PATH_OUTER ? MR_DELTA_PATH_OUTER : 0;
    uint32_t site = site_number(reduce, node->site);

    if (parent->flags & MR_PATH_BASE)
        node->index = mr_delta_path(&reduce->writer, MR_DELTA_NONE,
                                    scope_number(reduce, parent->site), site, flags);
    else
        node->index = mr_delta_path(&reduce->writer, parent->index, 0, site, flags);
    node->payload = reduce->payload;
}

/* Makes the path, and those above it, known in the payload. */
enum mr_status mr_reduce_path_number(struct mr_reduce *reduce, uint32_t path,
                                     uint32_t *number)
{
    struct mr_path *nodes = reduce->paths.nodes;

    reduce->chain.count = 0;
    for (uint32_t at = path;
         nodes[at].payload != reduce->payload && !(nodes[at].flags & MR_PATH_BASE);
         at = nodes[at].parent) {
        MR_ASSERT(at != MR_PATH_NONE);
        if (!mr_list_push(&reduce->chain, at) || !has_site_index(reduce, nodes[at].site))
            return MR_ENOMEM;
    }
    while (reduce->chain.count > 0)
        write_path(reduce, &nodes[reduce->chain.items[--reduce->chain.count]]);
    *number = nodes[path].index;
    return MR_OK;
}

enum mr_status mr_reduce_path_row(struct mr_reduce *reduce, uint32_t path)
{
    const struct mr_path *node = &reduce->paths.nodes[path];
    bool is_timed = node->ok + node->failed > 0;
    struct mr_path_stats stats = {
        .ok = node->ok, .failed = node->failed, .incomplete = node->incomplete};
    enum mr_status status = mr_reduce_room(reduce);
    uint32_t number;

    if (status == MR_OK)
        status = mr_reduce_path_number(reduce, path, &number);
    if (status != MR_OK)
        return status;
    if (is_timed) {
        stats.total =
            (struct mr_times){node->total_sum, node->total_min, node->total_max};
        stats.self = (struct mr_times){node->self_sum, node->self_min, node->self_max};
    }
    mr_histogram_clear(&reduce->histogram);
    status = mr_bins_put(&node->bins, &reduce->bins, node->zeros, &reduce->histogram);
    if (status != MR_OK)
        return status;
    stats.histogram = reduce->histogram;
    mr_delta_path_stat(&reduce->writer, number,
                       (uint64_t)node->window * reduce->config->window_s, &stats);
    return mr_delta_status(&reduce->writer);
}

static uint32_t counter_number(struct mr_reduce *reduce, uint32_t counter)
{
    struct mr_span_counter_index *entry = &reduce->span_counters[counter];

    if (entry->payload != reduce->payload) {
        entry->payload = reduce->payload;
        entry->index = mr_delta_span_counter(&reduce->writer, entry->id);
    }
    return entry->index;
}

static enum mr_status flush_counters(struct mr_reduce *reduce)
{
    for (uint32_t i = 0; i < reduce->count_rows.count; i++) {
        const struct mr_count_row *row = &reduce->count_rows.items[i];
        enum mr_status status = mr_reduce_room(reduce);
        uint32_t path;

        if (status == MR_OK)
            status = mr_reduce_path_number(reduce, row->path, &path);
        if (status != MR_OK)
            return status;
        mr_delta_path_counter(&reduce->writer, path,
                              (uint64_t)row->window * reduce->config->window_s,
                              counter_number(reduce, row->counter), &row->stats);
    }
    mr_reduce_counters_clear(reduce);
    return MR_OK;
}

/* Tells a node, and those below it, that were not told yet. */
static enum mr_status tell_node(struct mr_reduce *reduce, uint32_t number)
{
    struct mr_nodes *nodes = &reduce->nodes;

    reduce->walk.count = 0;
    if (nodes->items[number].flags & MR_NODE_TOLD)
        return MR_OK;
    if (!mr_list_push(&reduce->walk, number))
        return MR_ENOMEM;
    nodes->items[number].flags |= MR_NODE_TOLD;
    for (uint32_t at = 0; at < reduce->walk.count; at++) {
        const struct mr_node *node = &nodes->items[reduce->walk.items[at]];
        struct mr_dict_item item;
        enum mr_status status =
            mr_nodes_item(nodes, reduce->walk.items[at], &reduce->children, &item);

        if (status == MR_OK)
            status = mr_dict_batch_put(&reduce->dict, reduce->filter, &item);
        if (status != MR_OK)
            return status;
        for (uint32_t i = 0; i < node->count; i++) {
            uint32_t child = mr_child_node(nodes->children[node->first + i]);

            if (nodes->items[child].flags & MR_NODE_TOLD)
                continue;
            nodes->items[child].flags |= MR_NODE_TOLD;
            if (!mr_list_push(&reduce->walk, child))
                return MR_ENOMEM;
        }
    }
    return MR_OK;
}

enum mr_status mr_reduce_shape_number(struct mr_reduce *reduce, struct mr_shape *shape)
{
    uint32_t path;
    enum mr_status status;

    if (shape->payload == reduce->payload)
        return MR_OK;
    status = mr_reduce_path_number(reduce, shape->root, &path);
    if (status == MR_OK)
        status = tell_node(reduce, shape->node);
    if (status != MR_OK)
        return status;
    shape->payload = reduce->payload;
    shape->index = mr_delta_shape(
        &reduce->writer,
        scope_number(reduce,
                     reduce->paths.nodes[reduce->paths.nodes[shape->root].parent].site),
        path, reduce->nodes.items[shape->node].id);
    return MR_OK;
}

enum mr_status mr_reduce_shape_row(struct mr_reduce *reduce, struct mr_shape *shape)
{
    struct mr_shape_stats stats = {.ok = shape->ok,
                                   .failed = shape->failed,
                                   .calls = shape->calls,
                                   .folded = shape->folded,
                                   .first_ns = shape->first_ns,
                                   .last_ns = shape->last_ns,
                                   .time = shape->time};
    enum mr_status status = mr_reduce_room(reduce);

    if (status == MR_OK)
        status = mr_reduce_shape_number(reduce, shape);
    if (status != MR_OK)
        return status;
    mr_histogram_clear(&reduce->histogram);
    status = mr_bins_put(&shape->bins, &reduce->bins, shape->zeros, &reduce->histogram);
    if (status != MR_OK)
        return status;
    stats.histogram = reduce->histogram;
    mr_delta_shape_stat(&reduce->writer, shape->index,
                        (uint64_t)shape->window * reduce->config->window_s, &stats);
    shape->window = 0;
    return mr_delta_status(&reduce->writer);
}

enum mr_status mr_reduce_entry_row(struct mr_reduce *reduce, struct mr_entry *entry)
{
    enum mr_status status = mr_reduce_room(reduce);
    uint32_t number;

    if (status == MR_OK)
        status = mr_reduce_path_number(reduce, entry->path, &number);
    if (status != MR_OK)
        return status;
    mr_delta_entry_stat(&reduce->writer, number,
                        (uint64_t)entry->window * reduce->config->window_s,
                        &entry->stats);
    entry->window = 0;
    return mr_delta_status(&reduce->writer);
}

enum mr_status mr_reduce_part_row(struct mr_reduce *reduce, const struct mr_part *part)
{
    enum mr_status status = mr_reduce_room(reduce);

    if (status != MR_OK)
        return status;
    mr_delta_part(&reduce->writer, part);
    return mr_delta_status(&reduce->writer);
}

static enum mr_status flush_paths(struct mr_reduce *reduce)
{
    for (uint32_t i = 0; i < reduce->paths.touched_count; i++) {
        uint32_t path = reduce->paths.touched[i];
        enum mr_status status;

        if (reduce->paths.nodes[path].window == 0)
            continue;
        status = mr_reduce_path_row(reduce, path);
        if (status != MR_OK)
            return status;
        mr_paths_end(&reduce->paths, path);
    }
    mr_paths_clear_touched(&reduce->paths);
    return MR_OK;
}

static enum mr_status flush_shapes(struct mr_reduce *reduce)
{
    for (uint32_t i = 0; i < reduce->touched_shapes.count; i++) {
        struct mr_shape *shape = &reduce->shapes[reduce->touched_shapes.items[i]];
        enum mr_status status =
            shape->window ? mr_reduce_shape_row(reduce, shape) : MR_OK;

        if (status != MR_OK)
            return status;
        shape->is_touched = false;
    }
    reduce->touched_shapes.count = 0;
    return MR_OK;
}

static enum mr_status flush_entries(struct mr_reduce *reduce)
{
    for (uint32_t i = 0; i < reduce->touched_entries.count; i++) {
        struct mr_entry *entry = &reduce->entries[reduce->touched_entries.items[i]];
        enum mr_status status =
            entry->window ? mr_reduce_entry_row(reduce, entry) : MR_OK;

        if (status != MR_OK)
            return status;
        entry->is_touched = false;
    }
    reduce->touched_entries.count = 0;
    return MR_OK;
}

uint32_t mr_reduce_source_number(struct mr_reduce *reduce, struct mr_id source)
{
    if (reduce->told_source_payload != reduce->payload ||
        !mr_id_equal(reduce->told_source, source)) {
        reduce->told_source = source;
        reduce->told_source_payload = reduce->payload;
        reduce->told_source_index = mr_delta_source(&reduce->writer, source);
    }
    return reduce->told_source_index;
}

static enum mr_status ledger_row(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream)
{
    int64_t held = (int64_t)(stream->last - stream->reduced - stream->lost_sum);
    struct mr_ledger_entry entry = {.last = stream->base_event + stream->last,
                                    .reduced = stream->reduced - stream->told_reduced,
                                    .held = held - stream->told_held};
    enum mr_status status = mr_reduce_room(reduce);

    if (status != MR_OK)
        return status;
    for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++) {
        entry.lost[i] = stream->lost[i];
        stream->lost[i] = 0;
        mr_filter_count(reduce->filter, MR_REDUCE_SUM_LOST, entry.lost[i]);
    }
    mr_filter_count(reduce->filter, MR_REDUCE_SUM_REDUCED, entry.reduced);
    mr_filter_count(reduce->filter, MR_REDUCE_SUM_HELD, (uint64_t)entry.held);
    stream->told_reduced = stream->reduced;
    stream->told_held = held;
    mr_delta_ledger(&reduce->writer, mr_reduce_source_number(reduce, stream->source),
                    stream->id, &entry);
    status = mr_delta_status(&reduce->writer);
    return status == MR_OK ? mr_reduce_marks_stream(reduce, stream) : status;
}

static enum mr_status flush_ledger(struct mr_reduce *reduce)
{
    while (reduce->dirty) {
        struct mr_reduce_stream *stream = reduce->dirty;
        enum mr_status status = ledger_row(reduce, stream);

        if (status != MR_OK)
            return status;
        reduce->dirty = stream->next_dirty;
        stream->is_dirty = false;
        if (!stream->stream)
            mr_reduce_free_stream(stream);
    }
    return MR_OK;
}

/* The path of the innermost call of the open tree that lies on frames first .. end - 1: of those that have one. */
static uint32_t innermost(const struct mr_reduce_stream *stream, uint32_t first,
                          uint32_t end, uint64_t *since_ns)
{
    uint32_t at = end - 1;

    while (at > first && stream->frames[at].path == MR_PATH_NONE)
        at--;
    *since_ns = stream->frames[at].enter_ns;
    return stream->frames[at].path;
}

/* Adds the open trees of a stream to their entry points. */
static enum mr_status gather_open(struct mr_reduce *reduce,
                                  const struct mr_reduce_stream *stream, uint64_t now_ns)
{
    for (uint32_t i = 0; i < stream->trace_count; i++) {
        uint32_t first = stream->traces[i].frame;
        uint32_t end =
            i + 1 < stream->trace_count ? stream->traces[i + 1].frame : stream->depth;
        const struct mr_open_call *frame = &stream->frames[first];
        struct mr_open_stats one = {.count = 1, .oldest_ns = frame->enter_ns};
        uint32_t stack = innermost(stream, first, end, &one.since_ns);
        struct mr_entry *entry;

        if (frame->path == MR_PATH_NONE)
            continue;
        entry = mr_reduce_entry(reduce, frame->path);
        if (!entry)
            return MR_ENOMEM;
        if (entry->open.count == 0 &&
            !mr_list_push(&reduce->walk, (uint32_t)(entry - reduce->entries)))
            return MR_ENOMEM;
        one.ages[mr_open_age(now_ns > one.oldest_ns ? now_ns - one.oldest_ns : 0)] = 1;
        if (mr_open_stats_merge(&entry->open, &one))
            entry->stack = stack;
    }
    return MR_OK;
}

static enum mr_status open_row(struct mr_reduce *reduce, struct mr_entry *entry)
{
    enum mr_status status = mr_reduce_room(reduce);
    uint32_t number, stack;

    if (status == MR_OK)
        status = mr_reduce_path_number(reduce, entry->path, &number);
    if (status == MR_OK)
        status = mr_reduce_path_number(reduce, entry->stack, &stack);
    if (status != MR_OK)
        return status;
    mr_delta_open(&reduce->writer, number, stack, &entry->open);
    reduce->batch->has_open = true;
    reduce->batch->telling = reduce->group;
    entry->open = (struct mr_open_stats){0};
    return mr_delta_status(&reduce->writer);
}

/* First of all: payloads that left before, of windows that have passed, say nothing of what is open. */
static enum mr_status flush_open(struct mr_reduce *reduce)
{
    uint64_t now_ns = mr_clock_realtime_ns();
    enum mr_status status = MR_OK;

    reduce->walk.count = 0;
    for (const struct mr_reduce_stream *stream = reduce->streams;
         stream && status == MR_OK; stream = stream->next)
        status = gather_open(reduce, stream, now_ns);
    reduce->had_open = reduce->walk.count > 0;
    for (uint32_t i = 0; i < reduce->walk.count && status == MR_OK; i++)
        status = open_row(reduce, &reduce->entries[reduce->walk.items[i]]);
    reduce->telling = reduce->group;
    if (reduce->batch)
        reduce->batch->telling = reduce->group;
    return status;
}

enum mr_status mr_reduce_flush(struct mr_reduce *reduce)
{
    enum mr_status status;

    mr_templates_settle(reduce);
    status = flush_open(reduce);
    if (status == MR_OK)
        status = flush_paths(reduce);
    if (status == MR_OK)
        status = flush_counters(reduce);
    if (status == MR_OK)
        status = flush_entries(reduce);
    if (status == MR_OK)
        status = flush_shapes(reduce);
    if (status == MR_OK)
        status = mr_reduce_exemplars_flush(reduce);
    if (status == MR_OK)
        status = flush_ledger(reduce);
    if (status == MR_OK && reduce->batch)
        status = emit_payload(reduce);
    if (status != MR_OK)
        return status;
    mr_bin_pool_reset(&reduce->bins);
    reduce->group = mr_batch_new_group();
    reduce->gains = 0;
    reduce->told_ns = mr_clock_monotonic_ns();
    return MR_OK;
}
