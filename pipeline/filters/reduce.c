/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/reduce.h"

#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"
#include "pipeline/repeat.h"

#define GAINS_MAX (UINT32_C(1) << 31)
#define OPEN_PERIOD_NS                                                                   \
    MR_SECOND_NS /* how often open traces are told when nothing else is */

static const char *const counter_names[MR_REDUCE_COUNTERS] = {
    [MR_REDUCE_FORGETS] = "reduce_tables_forgotten",
    [MR_REDUCE_EARLY] = "reduce_deltas_early",
    [MR_REDUCE_NO_PATH] = "reduce_calls_without_path",
    [MR_REDUCE_TRACES_TOO_BIG] = "reduce_traces_past_limit",
    [MR_REDUCE_TRACES_NEW] = "reduce_traces_past_new_nodes",
    [MR_REDUCE_TRACES_PRUNED] = "reduce_traces_pruned",
    [MR_REDUCE_NOT_KEPT] = "reduce_exemplars_without_memory",
    [MR_REDUCE_ASKED] = "reduce_asked_kept",
    [MR_REDUCE_ASKED_ELIDED] = "reduce_asked_elided",
    [MR_REDUCE_ASKED_NOT_KEPT] = "reduce_asked_without_memory",
    [MR_REDUCE_ASKED_BEGUN] = "reduce_asked_begun_before",
    [MR_REDUCE_VALUES_ALONE] = "reduce_values_without_call",
    [MR_REDUCE_PARTS] = "reduce_parts",
    [MR_REDUCE_LINKS_LOST] = "reduce_links_past_limit",
    [MR_REDUCE_LINKS_MALFORMED] = "reduce_links_malformed",
    [MR_REDUCE_LINKS_UNMATCHED] = "reduce_links_unmatched",
    [MR_REDUCE_HANDED_OVER] = "reduce_streams_handed_over",
    [MR_REDUCE_HANDED_SHORT] = "reduce_streams_handed_over_short",
};

static bool is_sound(const struct mr_reduce_config *config)
{
    return config && config->sites && config->paths_max >= 16 &&
           config->path_depth_max >= 2 && config->path_depth_max <= MR_PATHS_DEPTH_MAX &&
           config->nodes_max >= 16 && config->node_children_max >= 16 &&
           config->shapes_max > 0 && config->scopes_max > 0 && config->window_s > 0 &&
           config->bins_max >= 2 * MR_BINS_COUNT && config->trace_children_max > 0 &&
           config->delta_bytes_max <= MR_BATCH_BYTES_MAX / 2 &&
           config->exemplar_calls <= MR_EXEMPLAR_CALLS_MAX &&
           config->asked_calls <= MR_EXEMPLAR_CALLS_MAX;
}

static enum mr_status reduce_open(struct mr_filter *filter, const void *config,
                                  struct mr_error *error)
{
    struct mr_reduce *reduce = mr_filter_state(filter);

    reduce->group = mr_batch_new_group();
    reduce->filter = filter;
    reduce->config = config;
    if (mr_id_random(&reduce->teller) != MR_OK)
        return mr_error_set(error, MR_EIO, "reduce: no random number from the system");
    if (!is_sound(config))
        return mr_error_set(error, MR_EUSAGE,
                            "reduce: a limit is missing or out of range");
    mr_counters_init(&reduce->counters, filter, counter_names, MR_REDUCE_COUNTERS);
    mr_filter_name_counter(filter, MR_REDUCE_SUM_REDUCED, "reduced");
    mr_filter_name_counter(filter, MR_REDUCE_SUM_LOST, "lost");
    mr_filter_name_counter(filter, MR_REDUCE_SUM_HELD, "held");
    mr_filter_name_counter(filter, MR_REDUCE_SUM_BULK, "in_bulk");
    mr_filter_name_counter(filter, MR_REDUCE_SUM_REPEATS, "in_repeats");
    if (mr_paths_init(&reduce->paths, reduce->config->paths_max,
                      reduce->config->path_depth_max) != MR_OK)
        return mr_error_set(error, MR_ENOMEM, "reduce: no memory for the path tree");
    if (mr_nodes_init(&reduce->nodes, reduce->config->sites, reduce->config->exactness,
                      reduce->config->nodes_max,
                      reduce->config->node_children_max) != MR_OK) {
        mr_paths_fini(&reduce->paths);
        return mr_error_set(error, MR_ENOMEM, "reduce: no memory for shapes");
    }
    if (mr_templates_init(&reduce->templates,
                          reduce->config->is_one_by_one ? 0 : reduce->config->paths_max,
                          mr_templates_vectors(reduce->config->vectors)) != MR_OK) {
        mr_paths_fini(&reduce->paths);
        mr_nodes_fini(&reduce->nodes);
        return mr_error_set(error, MR_ENOMEM, "reduce: no memory for templates");
    }
    if (mr_reduce_exemplars_open(reduce) != MR_OK) {
        mr_paths_fini(&reduce->paths);
        mr_nodes_fini(&reduce->nodes);
        mr_templates_fini(&reduce->templates);
        return mr_error_set(error, MR_ENOMEM, "reduce: no memory for exemplars");
    }
    mr_node_budget_init(&reduce->node_budget, reduce->config->new_nodes_s,
                        reduce->config->new_nodes_at_once);
    reduce->nodes.budget = &reduce->node_budget;
    mr_bin_pool_init(&reduce->bins, reduce->config->bins_max, reduce->config->bins_words);
    mr_table_init(&reduce->scope_ids, MR_TABLE_COUNT_MAX); /* see scope_of() */
    mr_buffer_init(&reduce->children, MR_DICT_ITEM_BYTES_MAX);
    reduce->histogram = MR_HISTOGRAM_EMPTY;
    reduce->window_ns = (uint64_t)reduce->config->window_s * MR_SECOND_NS;
    mr_bin_index_init(&reduce->bin_index);
    mr_reduce_marks_init(reduce);
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
    mr_templates_settle(reduce);
    MR_ASSERT(window > 0 && window < UINT32_MAX); /* decode lets no other times pass */
    reduce->window = (uint32_t)window;
    reduce->window_start_ns = window * reduce->window_ns - shift_ns;
}

/* A number for a new scope: one that was forgotten, or the next one. */
static bool take_scope(struct mr_reduce *reduce, uint32_t *scope)
{
    struct mr_scope *grown;

    if (reduce->free_scopes.count > 0) {
        *scope = reduce->free_scopes.items[--reduce->free_scopes.count];
        return true;
    }
    grown = realloc(reduce->scopes, (reduce->scope_count + 1) * sizeof(*grown));
    if (!grown)
        return false;
    reduce->scopes = grown;
    *scope = reduce->scope_count++;
    return true;
}

static enum mr_status scope_of(struct mr_reduce *reduce, struct mr_id id, uint32_t *scope)
{
    enum mr_status status = MR_OK;

    *scope = mr_table_find(&reduce->scope_ids, id);
    if (*scope != MR_TABLE_NONE)
        return MR_OK;
    if (reduce->free_scopes.count == 0 &&
        reduce->scope_count >= reduce->config->scopes_max)
        status = mr_reduce_forget(reduce);
    if (status != MR_OK)
        return status;
    if (!take_scope(reduce, scope))
        return MR_ENOMEM;
    reduce->scopes[*scope] = (struct mr_scope){.id = id};
    return mr_table_put(&reduce->scope_ids, id, *scope);
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
    made->serial = stream->source->serial;
    made->base_event = stream->base_event;
    made->next = reduce->streams;
    made->at = &reduce->streams;
    if (made->next)
        made->next->at = &made->next;
    reduce->streams = made;
    stream->reduce = made;
    return stream->resume ? mr_reduce_resume(reduce, made) : MR_OK;
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
    free(stream->landings);
    mr_reduce_counts_free(stream);
    mr_reduce_links_free(stream);
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
    free(stream->landings);
    mr_reduce_counts_free(stream);
    MR_ASSERT(!stream->links); /* told at the stream's end */
    stream->frames = NULL;
    stream->children = NULL;
    stream->landings = NULL;
    stream->capacity = 0;
    stream->child_capacity = 0;
    stream->child_count = 0;
    mr_store_release(&ended->is_closed, true); /* [C] pairs with [F] in source.c */
}

/* Of the last call event; others have no time. */
static void note_time(struct mr_reduce_stream *stream, const struct mr_event *events,
                      uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        const struct mr_event *event = &events[i];

        if (event->kind != MR_EVENT_OPEN && event->kind != MR_EVENT_CLOSE)
            continue;
        if (event->ns > stream->seen_ns)
            stream->seen_ns = event->ns;
        return;
    }
}

/* Before the events of a batch. Its stream is there then. */
static enum mr_status begin_batch(struct mr_reduce *reduce, const struct mr_batch *batch)
{
    enum mr_status status = MR_OK;

    mr_reduce_age_calls(reduce);
    if (batch->wall_shift_ns != reduce->wall_shift_ns) {
        reduce->wall_shift_ns = batch->wall_shift_ns;
        reduce->window_start_ns =
            reduce->window * reduce->window_ns - (uint64_t)reduce->wall_shift_ns;
    }
    if (!batch->stream->reduce)
        status = add_stream(reduce, batch->stream);
    if (status == MR_OK && reduce->gains > GAINS_MAX)
        status = mr_reduce_flush(reduce);
    reduce->gains +=
        mr_batch_events(batch) + (batch->nesting ? batch->nesting->count : 0);
    return status;
}

/* The events of the run up to the first one that only reconstruct can take; how many (`taken`). */
static enum mr_status run_events(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream, uint32_t *taken)
{
    const bool is_followed = reduce->nesting != NULL;
    enum mr_status status = MR_OK;
    uint32_t at = 0;

    while (status == MR_OK && at < reduce->event_count) {
        struct mr_event *event;

        status = mr_reduce_run(reduce, stream, &at);
        event = &reduce->events[at];
        if (status != MR_OK || at == reduce->event_count ||
            (is_followed && !mr_reduce_is_in_order(reduce, stream, event)))
            break;
        reduce->place = reduce->taken + at++;
        status = mr_reduce_step(reduce, stream, event);
        if (is_followed && !mr_reduce_stepped(reduce, stream, event))
            break;
    }
    *taken = at;
    return status;
}

/* A run of events of the batch at hand; `nesting` is NULL where they are well nested. */
static enum mr_status take_run(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               struct mr_event *events, uint32_t count,
                               struct mr_nesting *nesting)
{
    enum mr_status status;
    uint32_t taken;

    MR_ASSERT(count <= MR_BATCH_EVENTS_MAX);
    reduce->events = events;
    reduce->event_count = count;
    reduce->has_codes = false;
    reduce->nesting = nesting;
    reduce->nodes_known = reduce->nodes.count;
    mr_reduce_mark_dirty(reduce, stream);
    mr_reduce_noted_begin(reduce, stream);
    status = run_events(reduce, stream, &taken);
    reduce->taken += taken;
    if (reduce->config->has_marks)
        note_time(stream, events, taken);
    mr_reduce_mark_dirty(reduce, stream); /* a full table may have told it in between */
    if (status == MR_OK && taken && events[taken - 1].kind == MR_EVENT_STREAM_END)
        end_stream(stream);
    if (stream->trace_count)
        mr_reduce_exemplars_carry(reduce, stream, taken);
    if (nesting)
        mr_reduce_tell_nesting(reduce, stream, taken);
    memset(reduce->whole, 0, taken * sizeof(*reduce->whole));
    return status;
}

static enum mr_status take_events(struct mr_reduce *reduce, const struct mr_batch *batch)
{
    struct mr_nesting *nesting = batch->nesting;
    enum mr_status status = begin_batch(reduce, batch);

    if (status == MR_OK && batch->event_count > 0)
        status = take_run(reduce, batch->stream->reduce, batch->events,
                          batch->event_count, NULL);
    if (status == MR_OK && nesting)
        status = take_run(reduce, batch->stream->reduce, nesting->events, nesting->count,
                          nesting);
    return status;
}

static enum mr_status process_events(struct mr_reduce *reduce, struct mr_batch *batch)
{
    enum mr_status status = take_events(reduce, batch);

    if (batch->nesting)
        batch->nesting->left = batch;
    else
        mr_batch_free(batch);
    return status;
}

static enum mr_status take_as_events(struct mr_reduce *reduce,
                                     const struct mr_batch *repeats, uint32_t first,
                                     uint32_t count)
{
    struct mr_batch *events = mr_repeat_play(repeats, first, count, MR_EVENT_ROOT);
    enum mr_status status = events ? take_events(reduce, events) : MR_ENOMEM;

    mr_batch_free(events);
    return status;
}

/* Call trees of which only the times are told. */
static enum mr_status take_repeats(struct mr_reduce *reduce, const struct mr_batch *batch)
{
    enum mr_status status = begin_batch(reduce, batch);
    struct mr_reduce_stream *stream = batch->stream->reduce;
    uint64_t end_ns =
        batch->base_ns + mr_batch_times_const(batch)[mr_batch_events(batch) - 1];
    uint32_t at = 0, leave, done = 0;

    while (status == MR_OK && at < batch->trace_count) {
        uint32_t next = mr_reduce_run_repeats(reduce, stream, batch, at, &leave);

        mr_reduce_mark_dirty(reduce, stream); /* events may tell it in between */
        done += next - at;
        at = next;
        if (at == batch->trace_count)
            break;
        status = take_as_events(reduce, batch, at, leave);
        at += leave;
    }
    if (done)
        mr_repeat_helped(batch->stream->repeat);
    else
        mr_repeat_missed(batch->stream->repeat);
    if (end_ns > stream->seen_ns)
        stream->seen_ns = end_ns;
    return status;
}

static bool has_gained(const struct mr_reduce *reduce)
{
    return reduce->dirty || reduce->batch || reduce->paths.touched_count ||
           reduce->touched_entries.count || reduce->count_rows.count;
}

static bool is_due(const struct mr_reduce *reduce, uint64_t now_ns)
{
    uint64_t since = now_ns > reduce->told_ns ? now_ns - reduce->told_ns : 0;

    return mr_reduce_may_flush(reduce) && mr_filter_can_emit(reduce->filter) &&
           ((has_gained(reduce) &&
             since >= mr_reduce_period(reduce->config, reduce->paths.touched_count)) ||
            (reduce->had_open && since >= OPEN_PERIOD_NS));
}

static enum mr_status flush(struct mr_reduce *reduce)
{
    enum mr_status status = mr_reduce_flush(reduce);

    return status == MR_OK ? mr_reduce_marks_emit(reduce) : status;
}

static enum mr_status reduce_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    enum mr_status status;

    switch (batch->kind) {
    case MR_BATCH_EVENTS:
        reduce->marks.is_amid = true;
        return process_events(reduce, batch);
    case MR_BATCH_REPEATS:
        reduce->marks.is_amid = true;
        status = take_repeats(reduce, batch);
        mr_batch_free(batch);
        return status;
    case MR_BATCH_END:
        status = mr_reduce_marks_end(reduce, batch->source);
        mr_store_release(&batch->source->is_done,
                         true); /* [D] pairs with [W] in source.h */
        mr_batch_free(batch);
        return status;
    case MR_BATCH_MARK:
        status = mr_reduce_marks_take(reduce, batch);
        return status == MR_OK && is_due(reduce, mr_clock_monotonic_ns()) ? flush(reduce)
                                                                          : status;
    case MR_BATCH_FRAME:
    case MR_BATCH_DICT:
    case MR_BATCH_DELTA:
        if (batch->frame.sequence) /* of a worker: a frame of its own */
            reduce->marks.is_amid = true;
        break;
    }
    return mr_filter_emit(filter, batch);
}

/*
 * Between bursts, what only a burst needs goes back to the system: the pool of histograms, which is as large as the fullest
 * delta needed, and the templates, of which there are ever more.
 */
static void watch_quiet(struct mr_reduce *reduce, uint64_t now_ns)
{
    if (has_gained(reduce)) {
        reduce->gained_ns = now_ns;
    } else if (now_ns - reduce->gained_ns >= MR_FILTER_QUIET_NS) {
        mr_bin_pool_fini(&reduce->bins);
        mr_templates_release(&reduce->templates);
    }
}

/* What went through, and what others have told, is whole, too: of workers below, counters. */
static enum mr_status mark_what_passed(struct mr_reduce *reduce, uint64_t now_ns)
{
    if (!reduce->config->has_marks || reduce->marks.is_amid || has_gained(reduce) ||
        now_ns < reduce->marks.emitted_ns + reduce->config->delta_period_ns ||
        !mr_filter_can_emit(reduce->filter))
        return MR_OK;
    return mr_reduce_marks_emit(reduce);
}

static enum mr_status reduce_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    enum mr_status status = MR_OK;

    watch_quiet(reduce, now_ns);
    mr_reduce_exemplars_tick(reduce);
    mr_reduce_asked_tick(reduce);
    mr_node_budget_refill(&reduce->node_budget, mr_reduce_budget_ns(reduce));
    if (is_due(reduce, now_ns))
        status = flush(reduce);
    if (status == MR_OK)
        status = mr_counters_tick(&reduce->counters, reduce->config->level, now_ns);
    return status == MR_OK ? mark_what_passed(reduce, now_ns) : status;
}

static enum mr_status reduce_drain(struct mr_filter *filter)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    enum mr_status status = has_gained(reduce) ? mr_reduce_flush(reduce) : MR_OK;

    if (status == MR_OK)
        status = mr_counters_emit(&reduce->counters, reduce->config->level);
    return status == MR_OK ? mr_reduce_marks_emit(reduce) : status;
}

static void reduce_close(struct mr_filter *filter)
{
    struct mr_reduce *reduce = mr_filter_state(filter);
    struct mr_reduce_stream *stream, *next;

    for (stream = reduce->streams; stream; stream = next) {
        next = stream->next;
        for (uint32_t i = 0; i < stream->trace_count; i++)
            mr_reduce_exemplars_drop(reduce, &stream->traces[i]);
        mr_reduce_free_stream(stream);
    }
    mr_reduce_exemplars_close(reduce);
    mr_reduce_counters_fini(reduce);
    mr_paths_fini(&reduce->paths);
    mr_nodes_fini(&reduce->nodes);
    mr_node_budget_fini(&reduce->node_budget);
    mr_templates_fini(&reduce->templates);
    mr_bin_pool_fini(&reduce->bins);
    mr_table_fini(&reduce->scope_ids);
    mr_buffer_fini(&reduce->children);
    mr_reduce_marks_fini(reduce);
    mr_histogram_fini(&reduce->histogram);
    mr_dict_batch_fini(&reduce->dict);
    mr_batch_free(reduce->batch);
    free(reduce->shapes);
    free(reduce->shape_slots);
    free(reduce->entries);
    free(reduce->scopes);
    free(reduce->free_scopes.items);
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
