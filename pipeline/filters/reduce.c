/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/reduce.h"

#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

#define SCOPES_MAX 65536u
#define GAINS_MAX (UINT32_C(1) << 31)
#define QUIET_NS (500 * MR_MILLISECOND_NS) /* without gain: the burst is over */
#define OPEN_PERIOD_NS                                                                   \
    MR_SECOND_NS /* how often open traces are told when nothing else is */

static const char *const counter_names[MR_REDUCE_COUNTERS] = {
    [MR_REDUCE_FORGETS] = "reduce_tables_forgotten",
    [MR_REDUCE_EARLY] = "reduce_deltas_early",
    [MR_REDUCE_NO_PATH] = "reduce_calls_without_path",
    [MR_REDUCE_TRACES_TOO_BIG] = "reduce_traces_past_limit",
    [MR_REDUCE_VALUES_ALONE] = "reduce_values_without_call",
};

static bool is_sound(const struct mr_reduce_config *config)
{
    return config && config->sites && config->paths_max >= 16 &&
           config->nodes_max >= 16 && config->node_children_max >= 16 &&
           config->shapes_max > 0 && config->window_s > 0 &&
           config->bins_max >= 2 * MR_BINS_COUNT && config->trace_children_max > 0 &&
           config->delta_bytes_max <= MR_BATCH_BYTES_MAX / 2;
}

static enum mr_status reduce_open(struct mr_filter *filter, const void *config,
                                  struct mr_error *error)
{
    struct mr_reduce *reduce = mr_filter_state(filter);

    reduce->filter = filter;
    reduce->config = config;
    if (!is_sound(config))
        return mr_error_set(error, MR_EUSAGE,
                            "reduce: a limit is missing or out of range");
    mr_counters_init(&reduce->counters, filter, counter_names, MR_REDUCE_COUNTERS);
    mr_filter_name_counter(filter, MR_REDUCE_SUM_REDUCED, "reduced");
    mr_filter_name_counter(filter, MR_REDUCE_SUM_LOST, "lost");
    mr_filter_name_counter(filter, MR_REDUCE_SUM_HELD, "held");
    if (mr_paths_init(&reduce->paths, reduce->config->paths_max) != MR_OK)
        return mr_error_set(error, MR_ENOMEM, "reduce: no memory for the path tree");
    if (mr_nodes_init(&reduce->nodes, reduce->config->sites, reduce->config->exactness,
                      reduce->config->nodes_max,
                      reduce->config->node_children_max) != MR_OK) {
        mr_paths_fini(&reduce->paths);
        return mr_error_set(error, MR_ENOMEM, "reduce: no memory for shapes");
    }
    mr_bin_pool_init(&reduce->bins, reduce->config->bins_max);
    mr_table_init(&reduce->scope_ids, SCOPES_MAX);
    mr_buffer_init(&reduce->children, MR_DICT_ITEM_BYTES_MAX);
    reduce->histogram = MR_HISTOGRAM_EMPTY;
    reduce->window_ns = (uint64_t)reduce->config->window_s * MR_SECOND_NS;
    mr_bin_index_init(&reduce->bin_index);
    return MR_OK;
}

void mr_reduce_enter_window(struct mr_reduce *reduce, uint64_t ns)
{
    uint64_t shift_ns = (uint64_t)reduce->wall_shift_ns;
    uint64_t window = (ns + shift_ns) / reduce->window_ns;

    if (window == 0 || window >= UINT32_MAX) { /* a wall clock beyond its era */
        shift_ns = 0;
        window = ns / reduce->window_ns;
    }
    MR_ASSERT(window > 0 && window < UINT32_MAX); /* decode lets no other times pass */
    reduce->window = (uint32_t)window;
    reduce->window_start_ns = window * reduce->window_ns - shift_ns;
}

/*
 * What the hot loop keeps in registers: through memory, each event would wait for the
 * stores of the one before it. `path` is that of the innermost call.
 */
struct hot {
    struct mr_open_call *top,
        *last; /* the innermost call, and the last there is room for */
    uint64_t *children;
    uint32_t child_count, child_limit;
};

/* The path of a child that was not foretold, which it will be the next time. */
static MR_NOINLINE uint32_t find_child(struct mr_paths *paths,
                                       const struct mr_open_call *parent, uint32_t site)
{
    uint32_t path;

    if (paths->nodes[parent->last].site == site)
        return parent->last; /* a loop that was left later than the time before */
    path = mr_paths_find(paths, parent->path, site, 0);
    if (path == MR_PATH_NONE)
        return path;
    if (parent->last == MR_PATH_NONE)
        paths->nodes[parent->path].first = path;
    else
        paths->nodes[parent->last].next = path;
    return path;
}

/* A call that opens inside a call tree. False, with nothing changed: for the slow path. */
static MR_ALWAYS_INLINE bool open_fast(struct mr_reduce *reduce, struct hot *hot,
                                       const struct mr_event *event)
{
    struct mr_open_call *parent = hot->top;
    uint32_t path = parent->next;
    const struct mr_path *node;

    if (MR_UNLIKELY(parent == hot->last))
        return false;
    if (MR_UNLIKELY(reduce->paths.nodes[path].site != event->site)) {
        path = find_child(&reduce->paths, parent, event->site);
        if (path == MR_PATH_NONE)
            return false;
    }
    node = &reduce->paths.nodes[path];
    mr_reduce_foretell(&reduce->paths, parent, path);
    *++hot->top = (struct mr_open_call){.enter_ns = event->ns,
                                        .path = path,
                                        .first_child = hot->child_count,
                                        .like = node->expected,
                                        .site = event->site,
                                        .next = node->first};
    return true;
}

/*
 * A call, so that the compiler makes a branch: with a conditional move each close would wait for the loads of the one
 * before it (7.7 instead of 4 ns).
 */
static MR_NOINLINE void set_unlike(struct mr_open_call *frame)
{
    frame->like = MR_LIST_OTHER;
}

/* The node of a call that is not like its path's last one. */
static MR_NOINLINE uint32_t intern(struct mr_reduce *reduce, struct mr_path *path,
                                   const struct mr_open_call *frame,
                                   const struct hot *hot)
{
    const uint64_t *list = hot->children + frame->first_child;
    uint32_t count = hot->child_count - frame->first_child;
    uint32_t number = mr_nodes_intern_hashed(
        &reduce->nodes, mr_node_hash(frame->site, list, count), frame->site, list, count);

    if (number != MR_NODE_NONE)
        path->expected = reduce->nodes.items[number].first;
    return number;
}

/*
 * Folded only: the innermost call becomes a node in its parent's list. False, with
 * nothing changed, when there is no room.
 */
static MR_ALWAYS_INLINE bool collect_fast(struct mr_reduce *reduce, struct hot *hot,
                                          struct mr_path *path, bool *is_folded)
{
    struct mr_open_call *frame = hot->top;
    uint32_t first = frame->first_child, number;

    if (MR_UNLIKELY(first >= hot->child_limit))
        return false;
    number = mr_nodes_matched(&reduce->nodes, frame->like);
    if (MR_UNLIKELY(number == MR_NODE_NONE)) {
        number = intern(reduce, path, frame, hot);
        if (number == MR_NODE_NONE)
            return false;
    }
    hot->child_count = first;
    if (first > frame[-1].first_child && hot->children[first - 1] == number) {
        *is_folded = true;
        return true;
    }
    hot->children[first] = number;
    hot->child_count++;
    if (MR_LIKELY(reduce->nodes.children[frame[-1].like] == number))
        frame[-1].like++;
    else
        set_unlike(&frame[-1]);
    return true;
}

static MR_ALWAYS_INLINE void count_fast(struct mr_reduce *reduce, struct mr_path *path,
                                        uint64_t total, uint64_t self, uint32_t bin)
{
    path->ok++;
    path->total_sum += total;
    path->self_sum += self;
    if (MR_UNLIKELY(!mr_known_has(path->total, total) || !mr_known_has(path->self, self)))
        mr_path_widen(path, total, self);
    if (MR_LIKELY(total))
        mr_bins_add(&path->bins, &reduce->bins, bin);
    else
        path->zeros++;
}

/*
 * A call inside a call tree that ends ok. False, with nothing changed: for the slow path.
 */
static MR_ALWAYS_INLINE bool close_fast(struct mr_reduce *reduce, struct hot *hot,
                                        const struct mr_event *event, bool is_collecting,
                                        bool *is_folded)
{
    struct mr_open_call *frame = hot->top;
    struct mr_path *path = &reduce->paths.nodes[frame->path];
    uint64_t total = event->ns - frame->enter_ns, self = total - frame->child_ns;
    uint32_t bin = total ? mr_reduce_bin(reduce, total) : 0;

    if (MR_UNLIKELY(path->window != reduce->window ||
                    (total && !mr_bins_has(&path->bins, bin))))
        return false;
    if (is_collecting && !collect_fast(reduce, hot, path, is_folded))
        return false;
    frame[-1].child_ns += total;
    hot->top--;
    count_fast(reduce, path, total, self, bin);
    return true;
}

/* The shape of the trace that ends, when it is its entry point's last one and ready to count. */
static struct mr_shape *ready_shape(const struct mr_reduce *reduce,
                                    const struct mr_reduce_stream *stream, uint32_t bin)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    const struct mr_path *path = &reduce->paths.nodes[frame->path];
    const struct mr_entry *entry;
    struct mr_shape *shape;

    if (!path->entry || path->window != reduce->window || !mr_bins_has(&path->bins, bin))
        return NULL;
    entry = &reduce->entries[path->entry - 1];
    if (!entry->last_shape || entry->window != reduce->window)
        return NULL;
    shape = &reduce->shapes[entry->last_shape - 1];
    if (shape->window != reduce->window || !mr_bins_has(&shape->bins, bin) ||
        mr_nodes_matched(&reduce->nodes, frame->like) != shape->node)
        return NULL;
    return shape;
}

/* The root of the only open tree ends, which is like the one before. False, with nothing changed: for the slow path. */
static bool close_root(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       const struct mr_event *event)
{
    struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    struct mr_trace *trace = &stream->traces[0];
    struct mr_ended ended = {.is_folded = trace->is_folded};
    struct mr_path *path = &reduce->paths.nodes[frame->path];
    struct mr_shape *shape;

    if (event->kind != MR_EVENT_CLOSE || event->flags != MR_EVENT_ROOT ||
        stream->trace_count != 1 || !stream->is_collecting ||
        event->ns == frame->enter_ns || !mr_reduce_in_window(reduce, event->ns))
        return false;
    ended.ns = event->ns - frame->enter_ns;
    ended.bin = mr_reduce_bin(reduce, ended.ns);
    shape = ready_shape(reduce, stream, ended.bin);
    if (!shape)
        return false;
    stream->last++;
    stream->reduced += 2;
    ended.calls = ++stream->closed - trace->closed - trace->elsewhere;
    count_fast(reduce, path, ended.ns, ended.ns - frame->child_ns, ended.bin);
    mr_reduce_add_shape(reduce, shape, &ended, event);
    mr_reduce_add_entry(reduce, &reduce->entries[path->entry - 1], shape,
                        ended.is_folded ? MR_COVERAGE_FOLDED : MR_COVERAGE_WHOLE,
                        ended.calls, ended.ns);
    if (stream->depth > 1)
        frame[-1].child_ns += ended.ns;
    stream->depth--;
    mr_reduce_drop_trace(stream);
    return true;
}

/* How far child lists may reach before the slow path grows them or gives the shape up. */
static uint32_t child_limit(const struct mr_reduce *reduce,
                            const struct mr_reduce_stream *stream)
{
    uint64_t limit;

    if (!stream->is_collecting)
        return 0;
    limit = (uint64_t)stream->frames[stream->traces[stream->trace_count - 1].frame]
                .first_child +
            reduce->config->trace_children_max;
    return limit < stream->child_capacity ? (uint32_t)limit : stream->child_capacity;
}

/*
 * Calls inside a call tree that end ok. Takes events until one is anything else; returns
 * how many.
 */
static uint32_t run(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                    const struct mr_event *events, uint32_t count)
{
    struct hot hot = {.top = stream->frames + stream->depth - 1,
                      .last = stream->frames + stream->capacity - 1,
                      .children = stream->children,
                      .child_count = stream->child_count,
                      .child_limit = child_limit(reduce, stream)};
    bool is_collecting = stream->is_collecting, is_folded = false;
    uint32_t done, depth;

    for (done = 0; done < count; done++) {
        const struct mr_event *event = &events[done];

        if (MR_UNLIKELY(event->flags != 0))
            break;
        if (event->kind == MR_EVENT_OPEN) {
            if (!open_fast(reduce, &hot, event))
                break;
            continue;
        }
        if (MR_UNLIKELY(event->kind != MR_EVENT_CLOSE ||
                        !mr_reduce_in_window(reduce, event->ns)))
            break;
        if (!close_fast(reduce, &hot, event, is_collecting, &is_folded))
            break;
    }
    /* Opens and closes make `done`, and their difference is that of the depths. */
    depth = (uint32_t)(hot.top - stream->frames) + 1;
    stream->closed += (done + stream->depth - depth) / 2;
    stream->reduced += done + stream->depth - depth;
    stream->last += done;
    stream->depth = depth;
    stream->child_count = hot.child_count;
    if (is_folded)
        stream->traces[stream->trace_count - 1].is_folded = true;
    return done;
}

static enum mr_status scope_of(struct mr_reduce *reduce, struct mr_id id, uint32_t *scope)
{
    enum mr_status status =
        mr_table_find_or_add(&reduce->scope_ids, id, reduce->scope_count, scope);
    struct mr_scope *grown;

    if (status != MR_OK || *scope < reduce->scope_count)
        return status;
    grown = realloc(reduce->scopes, (reduce->scope_count + 1) * sizeof(*grown));
    if (!grown)
        return MR_ENOMEM;
    reduce->scopes = grown;
    reduce->scopes[reduce->scope_count++] = (struct mr_scope){.id = id};
    return MR_OK;
}

static enum mr_status add_stream(struct mr_reduce *reduce, struct mr_stream *stream)
{
    struct mr_reduce_stream *made = calloc(1, sizeof(*made));
    enum mr_status status;

    if (!made)
        return MR_ENOMEM;
    status = scope_of(reduce, stream->source->scope, &made->scope);
    if (status == MR_OK && stream->has_counters)
        status = mr_reduce_counts_new(made);
    if (status != MR_OK) {
        free(made);
        return status;
    }
    made->stream = stream;
    made->source = stream->source->id;
    made->id = stream->id;
    made->base_event = stream->base_event;
    made->next = reduce->streams;
    made->at = &reduce->streams;
    if (made->next)
        made->next->at = &made->next;
    reduce->streams = made;
    stream->reduce = made;
    return MR_OK;
}

void mr_reduce_free_stream(struct mr_reduce_stream *stream)
{
    *stream->at = stream->next;
    if (stream->next)
        stream->next->at = stream->at;
    if (stream->stream)
        stream->stream->reduce = NULL;
    free(stream->frames);
    free(stream->children);
    mr_reduce_counts_free(stream);
    free(stream);
}

/* The stream is decode's again; what is left here is its ledger, until the next delta. */
static void end_stream(struct mr_reduce_stream *stream)
{
    struct mr_stream *ended = stream->stream;

    stream->stream = NULL;
    ended->reduce = NULL;
    free(stream->frames);
    free(stream->children);
    mr_reduce_counts_free(stream);
    stream->frames = NULL;
    stream->children = NULL;
    stream->capacity = 0;
    stream->child_capacity = 0;
    stream->child_count = 0;
    mr_store_release(&ended->is_closed, true); /* [C] pairs with [F] in source.c */
}

static enum mr_status take_events(struct mr_reduce *reduce, const struct mr_batch *batch)
{
    bool is_folded = reduce->config->exactness == MR_EXACTNESS_FOLDED;
    enum mr_status status = MR_OK;
    struct mr_reduce_stream *stream;
    uint32_t at = 0;
    bool is_counted;

    if (batch->wall_shift_ns != reduce->wall_shift_ns) {
        reduce->wall_shift_ns = batch->wall_shift_ns;
        reduce->window_start_ns =
            reduce->window * reduce->window_ns - (uint64_t)reduce->wall_shift_ns;
    }
    if (!batch->stream->reduce)
        status = add_stream(reduce, batch->stream);
    stream = batch->stream->reduce;
    is_counted = status == MR_OK && stream->counts;
    if (status == MR_OK && reduce->gains > GAINS_MAX)
        status = mr_reduce_flush(reduce);
    if (status != MR_OK)
        return status;
    reduce->gains += batch->event_count;
    mr_reduce_mark_dirty(reduce, stream);
    while (status == MR_OK && at < batch->event_count) {
        if (stream->depth && (is_folded || !stream->is_collecting) && !is_counted)
            at += run(reduce, stream, batch->events + at, batch->event_count - at);
        if (at == batch->event_count)
            break;
        if (is_folded && stream->depth && !is_counted &&
            close_root(reduce, stream, &batch->events[at]))
            at++;
        else
            status = mr_reduce_step(reduce, stream, &batch->events[at++]);
    }
    if (status == MR_OK && batch->event_count &&
        batch->events[batch->event_count - 1].kind == MR_EVENT_STREAM_END)
        end_stream(stream);
    return status;
}

static enum mr_status reduce_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    enum mr_status status;

    switch (batch->kind) {
    case MR_BATCH_EVENTS:
        status = take_events(reduce, batch);
        mr_batch_free(batch);
        return status;
    case MR_BATCH_END:
        mr_store_release(&batch->source->is_done,
                         true); /* [D] pairs with [W] in source.h */
        mr_batch_free(batch);
        return MR_OK;
    case MR_BATCH_FRAME:
    case MR_BATCH_DICT:
    case MR_BATCH_DELTA:
        break;
    }
    return mr_filter_emit(filter, batch);
}

static bool has_gained(const struct mr_reduce *reduce)
{
    return reduce->dirty || reduce->batch || reduce->paths.touched_count ||
           reduce->touched_entries.count || reduce->count_rows.count;
}

/* Between bursts, the pool of histograms goes back to the system: it is as large as the fullest delta needed. */
static void watch_quiet(struct mr_reduce *reduce, uint64_t now_ns)
{
    if (has_gained(reduce))
        reduce->gained_ns = now_ns;
    else if (now_ns - reduce->gained_ns >= QUIET_NS)
        mr_bin_pool_fini(&reduce->bins);
}

static enum mr_status reduce_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    uint64_t since = now_ns > reduce->told_ns ? now_ns - reduce->told_ns : 0;
    enum mr_status status = MR_OK;

    watch_quiet(reduce, now_ns);
    if (mr_filter_can_emit(filter) &&
        ((has_gained(reduce) && since >= reduce->config->delta_period_ns) ||
         (reduce->had_open && since >= OPEN_PERIOD_NS)))
        status = mr_reduce_flush(reduce);
    return status == MR_OK
               ? mr_counters_tick(&reduce->counters, reduce->config->level, now_ns)
               : status;
}

static enum mr_status reduce_drain(struct mr_filter *filter)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    enum mr_status status = has_gained(reduce) ? mr_reduce_flush(reduce) : MR_OK;

    return status == MR_OK ? mr_counters_emit(&reduce->counters, reduce->config->level)
                           : status;
}

static void reduce_close(struct mr_filter *filter)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    struct mr_reduce_stream *stream, *next;

    for (stream = reduce->streams; stream; stream = next) {
        next = stream->next;
        mr_reduce_free_stream(stream);
    }
    mr_reduce_counters_fini(reduce);
    mr_paths_fini(&reduce->paths);
    mr_nodes_fini(&reduce->nodes);
    mr_bin_pool_fini(&reduce->bins);
    mr_table_fini(&reduce->scope_ids);
    mr_buffer_fini(&reduce->children);
    mr_histogram_fini(&reduce->histogram);
    mr_dict_batch_fini(&reduce->dict);
    mr_batch_free(reduce->batch);
    free(reduce->shapes);
    free(reduce->shape_slots);
    free(reduce->entries);
    free(reduce->scopes);
    free(reduce->site_index);
    free(reduce->touched_shapes.items);
    free(reduce->touched_entries.items);
    free(reduce->walk.items);
    free(reduce->chain.items);
}

const struct mr_filter_kind mr_reduce_filter = {.name = "reduce",
                                                .state_size = sizeof(struct mr_reduce),
                                                .open = reduce_open,
                                                .process = reduce_process,
                                                .tick = reduce_tick,
                                                .drain = reduce_drain,
                                                .close = reduce_close};
