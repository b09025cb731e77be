/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/reconstruct.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "pipeline/filters/reconstruct_private.h"
#include "pipeline/repeat.h"

#define FOLLOWED_MIN 256u /* events for each turn of reduce, before the next one */

static const char *const counter_names[MR_RECONSTRUCT_COUNTERS] = {
    [MR_RECONSTRUCT_UNMATCHED] = "reconstruct_exits_without_enter",
    [MR_RECONSTRUCT_UNWOUND] = "reconstruct_calls_unwound",
    [MR_RECONSTRUCT_INCOMPLETE] = "reconstruct_calls_incomplete",
    [MR_RECONSTRUCT_TOO_DEEP] = "reconstruct_events_too_deep",
    [MR_RECONSTRUCT_BROKEN] = "reconstruct_trees_broken",
    [MR_RECONSTRUCT_LEARNED] = "reconstruct_outer_frames_learned",
    [MR_RECONSTRUCT_UNWINDS_UNKNOWN] = "reconstruct_unwinds_unknown",
    [MR_RECONSTRUCT_PRUNED] = "reconstruct_marks_pruned",
};

static enum mr_status reconstruct_open(struct mr_filter *filter, const void *config,
                                       struct mr_error *error)
{
    struct mr_reconstruct *rebuild = mr_filter_state(filter);

    rebuild->filter = filter;
    rebuild->config = config;
    if (!config || !rebuild->config->outer.sites || rebuild->config->depth_max == 0)
        return mr_error_set(error, MR_EUSAGE, "reconstruct: needs sites and depth_max");
    mr_counters_init(&rebuild->counters, filter, counter_names, MR_RECONSTRUCT_COUNTERS);
    mr_outer_init(&rebuild->outer, &rebuild->config->outer);
    return MR_OK;
}

static enum mr_status new_out(struct mr_reconstruct *rebuild)
{
    struct mr_batch *out = mr_batch_new(MR_BATCH_EVENTS);

    if (!out)
        return MR_ENOMEM;
    out->source = rebuild->in->source;
    out->stream = rebuild->in->stream;
    out->wall_shift_ns = rebuild->in->wall_shift_ns;
    if (rebuild->out == rebuild->in && rebuild->written)
        memcpy(out->events, rebuild->in->events, rebuild->written * sizeof(*out->events));
    else
        rebuild->written = 0;
    rebuild->out = out;
    return MR_OK;
}

static enum mr_status emit_out(struct mr_reconstruct *rebuild)
{
    struct mr_batch *out = rebuild->out;

    rebuild->out = NULL;
    out->event_count = rebuild->written;
    out->loss_count = 0;
    rebuild->written = 0;
    if (out->event_count)
        return mr_filter_emit(rebuild->filter, out);
    mr_batch_free(out);
    return MR_OK;
}

enum mr_status mr_reconstruct_put(struct mr_reconstruct *rebuild,
                                  const struct mr_event *event)
{
    enum mr_status status = MR_OK;

    if (rebuild->out == rebuild->in) {
        if (rebuild->written == rebuild->read)
            status = new_out(rebuild);
    }
    if (status == MR_OK && rebuild->out != rebuild->in &&
        rebuild->written == MR_BATCH_EVENTS_MAX) {
        status = emit_out(rebuild);
        if (status == MR_OK)
            status = new_out(rebuild);
    }
    if (status == MR_OK)
        rebuild->out->events[rebuild->written++] = *event;
    return status;
}

/* Whether roots can be opened and closed by run(): none is forced, and the base is sure. */
static bool is_sure(const struct mr_reconstruct *rebuild,
                    const struct mr_reconstruct_stream *stream)
{
    return !stream->is_unsynced && !stream->forced_depth &&
           !mr_outer_has_roots(&rebuild->outer);
}

/* Opens a root. False, with nothing changed, when it may be anything else. */
static MR_NOINLINE bool open_root(const struct mr_reconstruct *rebuild,
                                  struct mr_reconstruct_stream *stream, uint32_t site,
                                  uint64_t ns)
{
    if (!mr_outer_is_ordinary(&rebuild->outer, stream->scope, site) ||
        mr_reconstruct_is_place(stream, site))
        return false;
    /* A hint; see source.h. */
    if (stream->outer_depth == 0 && mr_load_relaxed(&stream->stream->start_site) == site)
        return false;
    stream->calls[stream->outer_depth] = MR_CALL(site, MR_EVENT_ROOT);
    mr_reconstruct_watch_root(stream, ns);
    return true;
}

/* What run() keeps in registers. */
struct hot {
    const struct mr_event *in, *end;
    struct mr_event *out;
    uint64_t *calls;
    uint32_t depth, inner, limit; /* `inner`: depth of a root; see inner_of() */
    uint32_t low;                 /* depth of the innermost candidate */
    const struct mr_event *root;  /* of the open trace, if it began in this run */
};

/* The root that has just been opened begins a trace like the last one: takes the whole of it. */
static bool take_trace(struct mr_reconstruct *rebuild, struct hot *hot)
{
    struct mr_event *trace = hot->out;
    struct mr_last_trace *last = &rebuild->last[trace->site % MR_LAST_TRACES];
    uint32_t size = last->count;

    MR_DEBUG_ASSERT(trace == hot->in);
    if (!mr_reconstruct_is_again(last, trace, (uint64_t)(hot->end - hot->in)) ||
        hot->depth + last->depth > hot->limit ||
        trace[size - 1].ns - trace->ns > rebuild->config->learn_ns)
        return false;
    trace->flags = MR_EVENT_ROOT;
    trace[size - 1].flags = MR_EVENT_ROOT;
    hot->in += size - 1;
    hot->out += size;
    return true;
}

/*
 * An ENTER that opens a call is an OPEN as it stands, and an EXIT a CLOSE: where events stay in their places nothing is
 * written but the mark of a root (1.0 -> 0.6 ns an event).
 */
static MR_ALWAYS_INLINE void put_hot(struct hot *hot, const struct mr_event *event,
                                     uint16_t flags, bool is_in_place)
{
    if (!is_in_place)
        *hot->out = *event;
    if (flags)
        hot->out->flags = flags;
    hot->out++;
}

/* The call that `event` enters calls nothing, and no candidate ends with it: it needs no place on the stack. */
static MR_ALWAYS_INLINE bool is_leaf(const struct hot *hot, const struct mr_event *event)
{
    return event + 1 != hot->end && event[1].kind == MR_EVENT_EXIT &&
           event[1].site == event->site && hot->depth > hot->low;
}

/* Takes events until one is not an enter or exit in order. True when mr_reconstruct_child_ended() has to look at the last one. */
static MR_ALWAYS_INLINE bool run_hot(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream,
                                     struct hot *hot, bool has_roots, bool is_in_place)
{
    for (; hot->in != hot->end; hot->in++) {
        const struct mr_event *event = hot->in;
        uint64_t ns = event->ns;

        if (event->kind == MR_EVENT_ENTER) {
            uint16_t flags = 0;

            if (MR_UNLIKELY(hot->depth >= hot->limit))
                return false;
            if (hot->depth >= hot->inner) {
                if (is_leaf(hot, event)) {
                    put_hot(hot, event, 0, is_in_place);
                    put_hot(hot, ++hot->in, 0, is_in_place);
                    continue;
                }
                hot->calls[hot->depth] = event->site;
            } else {
                if (!has_roots || !open_root(rebuild, stream, event->site, ns))
                    return false;
                if (is_in_place && take_trace(rebuild, hot))
                    continue;
                hot->root = event;
                flags = MR_EVENT_ROOT;
                hot->low = hot->inner;
            }
            hot->depth++;
            put_hot(hot, event, flags, is_in_place);
            continue;
        }
        if (MR_UNLIKELY(event->kind != MR_EVENT_EXIT || hot->depth < hot->inner))
            return false;
        if (MR_LIKELY(hot->calls[hot->depth - 1] == event->site)) {
            put_hot(hot, event, 0, is_in_place);
        } else {
            if (!has_roots || hot->depth != hot->inner ||
                hot->calls[hot->depth - 1] != MR_CALL(event->site, MR_EVENT_ROOT))
                return false;
            put_hot(hot, event, MR_EVENT_ROOT, is_in_place);
            if (is_in_place && hot->root)
                mr_reconstruct_remember(&rebuild->last[event->site % MR_LAST_TRACES],
                                        hot->root, (uint64_t)(event - hot->root) + 1);
            hot->depth--;
            continue;
        }
        if (--hot->depth <= hot->low &&
            !mr_reconstruct_count_child(&stream->watch, rebuild->config, hot->depth,
                                        ns)) {
            hot->in++;
            return true;
        }
    }
    return false;
}

/* Whether it must be seen how a call inside a forced root ends, for it has attached. */
static bool is_attached_inside(const struct mr_reconstruct_stream *stream)
{
    return stream->forced_depth && stream->attach_depth >= stream->forced_depth;
}

/* Depth of what run() does not take for a plain call: a root, or what a call calls that has attached. */
static uint32_t inner_of(const struct mr_reconstruct_stream *stream)
{
    return 1 + (is_attached_inside(stream) ? stream->attach_depth : stream->outer_depth);
}

/* Calls inside a call tree, and roots, up to look_at. Returns how many events it took; `ended`: see run_hot(). */
static uint32_t run(struct mr_reconstruct *rebuild, struct mr_reconstruct_stream *stream,
                    bool *ended)
{
    const struct mr_event *in = rebuild->in->events + rebuild->read;
    uint32_t count = rebuild->look_at - rebuild->read;
    uint32_t depth_max = rebuild->config->depth_max;
    uint32_t room =
        rebuild->out == rebuild->in ? count : MR_BATCH_EVENTS_MAX - rebuild->written;
    struct hot hot = {.in = in,
                      .end = in + (count < room ? count : room),
                      .out = rebuild->out->events + rebuild->written,
                      .calls = stream->calls,
                      .depth = stream->depth,
                      .inner = inner_of(stream),
                      .low = mr_reconstruct_low(stream),
                      .limit =
                          stream->capacity < depth_max ? stream->capacity : depth_max};

    if (hot.in == hot.out)
        *ended = run_hot(rebuild, stream, &hot, is_sure(rebuild, stream), true);
    else
        *ended = run_hot(rebuild, stream, &hot, is_sure(rebuild, stream), false);
    stream->depth = hot.depth;
    return (uint32_t)(hot.in - in);
}

/* Whether run() may be used: no frame of the stack needs a second look at an enter. */
static bool is_plain(const struct mr_reconstruct *rebuild,
                     const struct mr_reconstruct_stream *stream)
{
    if (stream->overflow || stream->capacity == 0)
        return false;
    if (stream->depth == stream->outer_depth)
        return is_sure(rebuild, stream);
    return stream->forced_depth ||
           (!stream->attach_depth && !mr_outer_has_roots(&rebuild->outer));
}

/* Outer frames only if all is said of them. */
static uint16_t open_base(const struct mr_nesting *nesting, uint32_t site, uint64_t ns)
{
    const struct mr_outer *outer = &nesting->rebuild->outer;
    struct mr_reconstruct_stream *stream = nesting->stream;

    stream->outer_depth = nesting->outer_depth;
    if (mr_outer_is_told(outer, stream->scope, site) && stream->watch.first_ns)
        return MR_EVENT_OUTER;
    if (!mr_outer_is_ordinary(outer, stream->scope, site))
        return 0;
    return open_root(nesting->rebuild, nesting->stream, site, ns) ? MR_EVENT_ROOT : 0;
}

static void begin_nesting(struct mr_reconstruct *rebuild,
                          struct mr_reconstruct_stream *stream)
{
    uint32_t depth_max = rebuild->config->depth_max;

    rebuild->nesting = (struct mr_nesting){
        .events = rebuild->in->events + rebuild->read,
        .count = rebuild->look_at - rebuild->read,
        .config = rebuild->config,
        .watch = &stream->watch,
        .calls = stream->calls,
        .depth = stream->depth,
        .room = stream->capacity < depth_max ? stream->capacity : depth_max,
        .outer_depth = stream->outer_depth,
        .has_base = is_sure(rebuild, stream) && !stream->attach_depth,
        .is_unsure = stream->is_unsynced,
        .open_base = open_base,
        .rebuild = rebuild,
        .stream = stream};
}

/*
 * Whether reduce may take the next events as they came. Calls that are marked have to be seen here when they end. A turn must
 * pay: it is a call of a filter, with its two looks at the clock.
 */
static bool may_follow(const struct mr_reconstruct *rebuild,
                       const struct mr_reconstruct_stream *stream)
{
    const struct mr_event *next = &rebuild->in->events[rebuild->read];

    return rebuild->config->is_followed && rebuild->out == rebuild->in &&
           rebuild->read >= rebuild->turns * FOLLOWED_MIN &&
           (next->kind <= MR_EVENT_EXIT ||
            (mr_event_is_passed_on(next) && !stream->is_unsynced)) &&
           !stream->stream->has_counters && stream->block_count == 0 &&
           !is_attached_inside(stream);
}

/*
 * Gives reduce what is written, and the events up to look_at as they came. It may leave some of these. The batch is gone when
 * reduce has failed: then the graph ends.
 */
static enum mr_status follow(struct mr_reconstruct *rebuild,
                             struct mr_reconstruct_stream *stream)
{
    struct mr_nesting *nesting = &rebuild->nesting;
    struct mr_batch *batch = rebuild->in;
    uint32_t count = batch->event_count;
    enum mr_status status;

    begin_nesting(rebuild, stream);
    rebuild->turns++;
    batch->nesting = nesting;
    batch->event_count = rebuild->written;
    status = mr_filter_emit(rebuild->filter, batch);
    if (status != MR_OK || !nesting->left) {
        rebuild->in = NULL;
        rebuild->out = NULL;
        return status;
    }
    batch->nesting = NULL;
    batch->event_count = count;
    stream->depth = nesting->depth;
    stream->outer_depth = nesting->outer_depth;
    rebuild->read += nesting->taken;
    rebuild->written = 0;
    if (nesting->has_child_ended)
        return mr_reconstruct_child_ended(rebuild, stream,
                                          batch->events[rebuild->read - 1].ns);
    return MR_OK;
}

/* The next events, as far as none needs mr_reconstruct_step(). `is_again`: when they ended with a child that had to be seen. */
static enum mr_status run_on(struct mr_reconstruct *rebuild,
                             struct mr_reconstruct_stream *stream, bool *is_again)
{
    uint32_t done;

    if (may_follow(rebuild, stream)) {
        enum mr_status status = follow(rebuild, stream);

        *is_again = rebuild->nesting.has_child_ended;
        return status;
    }
    done = run(rebuild, stream, is_again);
    rebuild->read += done;
    rebuild->written += done;
    return *is_again ? mr_reconstruct_child_ended(
                           rebuild, stream, rebuild->out->events[rebuild->written - 1].ns)
                     : MR_OK;
}

static enum mr_status rewrite(struct mr_reconstruct *rebuild,
                              struct mr_reconstruct_stream *stream)
{
    enum mr_status status = MR_OK;

    rebuild->turns = 0;
    mr_reconstruct_look_first(rebuild);
    while (status == MR_OK && rebuild->in && rebuild->read < rebuild->in->event_count) {
        struct mr_event event;
        bool is_again = false;

        if (rebuild->read == rebuild->look_at)
            mr_reconstruct_look(rebuild, stream);
        if (is_plain(rebuild, stream)) {
            status = run_on(rebuild, stream, &is_again);
            if (status != MR_OK || !rebuild->in || is_again ||
                rebuild->read == rebuild->look_at)
                continue;
        }
        event = rebuild->in->events[rebuild->read++];
        status = mr_reconstruct_step(rebuild, stream, &event);
    }
    return status;
}

static enum mr_status add_stream(struct mr_reconstruct *rebuild, struct mr_stream *stream)
{
    struct mr_reconstruct_stream *made = calloc(1, sizeof(*made));

    if (!made)
        return MR_ENOMEM;
    made->stream = stream;
    if (mr_outer_scope(&rebuild->outer, stream->source->scope, &made->scope) != MR_OK) {
        free(made);
        return MR_ENOMEM;
    }
    made->next = rebuild->streams;
    made->at = &rebuild->streams;
    if (made->next)
        made->next->at = &made->next;
    rebuild->streams = made;
    stream->reconstruct = made;
    return stream->resume ? mr_reconstruct_resume(rebuild, made) : MR_OK;
}

static void remove_stream(struct mr_reconstruct_stream *stream)
{
    *stream->at = stream->next;
    if (stream->next)
        stream->next->at = stream->at;
    stream->stream->reconstruct = NULL;
    free(stream->calls);
    free(stream->blocks);
    free(stream);
}

static enum mr_status take_events(struct mr_reconstruct *rebuild, struct mr_batch *batch)
{
    const struct mr_event *last = &batch->events[batch->event_count - 1];
    struct mr_stream *stream = batch->stream;
    bool is_end = batch->event_count && last->kind == MR_EVENT_STREAM_END;
    bool goes_on = !stream->reconstruct && stream->resume && batch->event_count > 0;
    enum mr_status status = stream->reconstruct ? MR_OK : add_stream(rebuild, stream);

    rebuild->in = batch;
    rebuild->out = batch;
    rebuild->read = 0;
    rebuild->written = 0;
    if (status == MR_OK && goes_on)
        status = mr_reconstruct_go_on(rebuild, stream->reconstruct, batch->events[0].ns);
    if (status == MR_OK)
        status = rewrite(rebuild, stream->reconstruct);
    if (!rebuild->in)
        return status;
    if (status == MR_OK && is_end)
        remove_stream(stream->reconstruct);
    if (rebuild->out != batch) {
        if (status == MR_OK)
            status = emit_out(rebuild);
        mr_batch_free(rebuild->out);
        mr_batch_free(batch);
        return status;
    }
    if (status == MR_OK)
        return emit_out(rebuild);
    mr_batch_free(batch);
    return status;
}

/* Whether run() would take all of these traces, and mark nothing but their roots. */
static bool are_in_order(const struct mr_reconstruct *rebuild,
                         struct mr_reconstruct_stream *stream,
                         const struct mr_batch *batch)
{
    const struct mr_repeat *repeat = batch->repeat;
    const uint32_t *times = mr_batch_times_const(batch);
    uint32_t size = repeat->events, last = batch->trace_count * size - 1;

    if (!stream || stream->depth != stream->outer_depth || !is_plain(rebuild, stream) ||
        stream->depth >= stream->capacity ||
        stream->depth + repeat->depth > rebuild->config->depth_max ||
        times[last] - times[0] > rebuild->config->learn_ns)
        return false;
    return open_root(rebuild, stream, mr_repeat_site(repeat),
                     batch->base_ns + times[last + 1 - size]);
}

/* Well nested as they are; else as events. */
static enum mr_status take_repeats(struct mr_reconstruct *rebuild, struct mr_batch *batch)
{
    struct mr_stream *stream = batch->stream;
    struct mr_batch *events;

    if (are_in_order(rebuild, stream->reconstruct, batch))
        return mr_filter_emit(rebuild->filter, batch);
    mr_repeat_missed(stream->repeat);
    events = mr_repeat_play(batch, 0, batch->trace_count, 0);
    mr_batch_free(batch);
    return events ? take_events(rebuild, events) : MR_ENOMEM;
}

static enum mr_status reconstruct_process(struct mr_filter *filter,
                                          struct mr_batch *batch)
{
    if (batch->kind == MR_BATCH_EVENTS)
        return take_events(mr_filter_state(filter), batch);
    if (batch->kind == MR_BATCH_REPEATS)
        return take_repeats(mr_filter_state(filter), batch);
    return mr_filter_emit(filter, batch);
}

static enum mr_status reconstruct_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct mr_reconstruct *rebuild = mr_filter_state(filter);

    return mr_counters_tick(&rebuild->counters, rebuild->config->level, now_ns);
}

static enum mr_status reconstruct_drain(struct mr_filter *filter)
{
    struct mr_reconstruct *rebuild = mr_filter_state(filter);

    return mr_counters_emit(&rebuild->counters, rebuild->config->level);
}

static void reconstruct_close(struct mr_filter *filter)
{
    struct mr_reconstruct *rebuild = mr_filter_state(filter);
    struct mr_reconstruct_stream *stream, *next;

    for (stream = rebuild->streams; stream; stream = next) {
        next = stream->next;
        remove_stream(stream);
    }
    mr_dict_batch_fini(&rebuild->dict);
    mr_outer_fini(&rebuild->outer);
}

const struct mr_filter_kind mr_reconstruct_filter = {.name = "reconstruct",
                                                     .state_size =
                                                         sizeof(struct mr_reconstruct),
                                                     .open = reconstruct_open,
                                                     .process = reconstruct_process,
                                                     .tick = reconstruct_tick,
                                                     .drain = reconstruct_drain,
                                                     .close = reconstruct_close};
