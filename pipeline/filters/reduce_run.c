/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

/* The entry point of `path`, when it may count in this window. */
static struct mr_entry *ready_entry(const struct mr_reduce *reduce, uint32_t path)
{
    uint32_t number = reduce->paths.nodes[path].entry;
    struct mr_entry *entry;

    if (!number)
        return NULL;
    entry = &reduce->entries[number - 1];
    return entry->window == reduce->window ? entry : NULL;
}

/* Where `ended` is to be counted; nowhere when it took no time. */
static bool has_bin(const struct mr_bins *bins, const struct mr_ended *ended)
{
    return ended->ns == 0 || mr_bins_has(bins, ended->bin);
}

static void set_time(const struct mr_reduce *reduce, struct mr_ended *ended, uint64_t ns)
{
    ended->ns = ns;
    ended->bin = ns ? mr_reduce_bin(reduce, ns) : 0;
}

/* Shape `number` - 1, when it may count such a trace in this window. */
static struct mr_shape *ready_shape(const struct mr_reduce *reduce, uint32_t number,
                                    const struct mr_ended *ended)
{
    struct mr_shape *shape;

    if (!number)
        return NULL;
    shape = &reduce->shapes[number - 1];
    return shape->window == reduce->window && has_bin(&shape->bins, ended) ? shape : NULL;
}

/* Counts a whole trace whose calls are counted, or wait. */
static void count_trace(struct mr_reduce *reduce, struct mr_entry *entry,
                        struct mr_shape *shape, const struct mr_ended *ended,
                        const struct mr_event *close)
{
    mr_reduce_add_shape(reduce, shape, ended, close);
    mr_reduce_add_entry(reduce, entry, shape,
                        ended->is_folded ? MR_COVERAGE_FOLDED : MR_COVERAGE_WHOLE,
                        ended->calls, ended->ns);
}

/* The root of the only open tree ends, which is like the one before. False, with nothing changed: for the slow path. */
static bool close_root(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       const struct mr_event *event)
{
    struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    struct mr_trace *trace = &stream->traces[0];
    struct mr_ended ended = {.is_folded = trace->is_folded};
    struct mr_path *path = &reduce->paths.nodes[frame->path];
    struct mr_entry *entry = ready_entry(reduce, frame->path);
    struct mr_shape *shape;

    if (!entry || event->flags != MR_EVENT_ROOT || stream->trace_count != 1 ||
        !stream->is_collecting || stream->has_links || trace->is_carried ||
        !mr_reduce_in_window(reduce, event->ns))
        return false;
    set_time(reduce, &ended, event->ns - frame->enter_ns);
    shape = ready_shape(reduce, entry->last_shape, &ended);
    if (!shape || mr_nodes_matched(&reduce->nodes, frame->like) != shape->node ||
        path->window != reduce->window || !has_bin(&path->bins, &ended))
        return false;
    ended.calls = stream->closed + 1 - trace->closed - trace->elsewhere;
    if (mr_reduce_wants(reduce, shape, &ended, frame->enter_ns))
        return false;
    stream->last++;
    stream->reduced += 2;
    stream->closed++;
    mr_reduce_count_call(reduce, path, ended.ns, ended.ns - frame->child_ns, ended.bin);
    count_trace(reduce, entry, shape, &ended, event);
    if (stream->depth > 1)
        frame[-1].child_ns += ended.ns;
    stream->depth--;
    mr_reduce_drop_trace(stream);
    return true;
}

/* How many entries the child stack may take of a tree that begins. */
static uint32_t child_room(const struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream)
{
    uint32_t room = stream->child_capacity - stream->child_count;
    uint32_t limit = reduce->config->trace_children_max;

    return room < limit ? room : limit;
}

/*
 * The root at `events`, where no tree is open, as a whole trace that was met before. How many events it took, 0 when it is
 * none.
 */
static uint32_t take_trace(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                           const struct mr_event *events, uint32_t count)
{
    uint32_t path = stream->base == MR_PATH_NONE
                        ? MR_PATH_NONE
                        : mr_paths_root(&reduce->paths, stream->base, events->site);
    struct mr_ended ended;
    struct mr_template *template;
    const struct mr_event *close;
    struct mr_shape *shape;
    struct mr_entry *entry;
    uint32_t size;

    if (!mr_templates_try(&reduce->templates, path) || stream->has_links ||
        !(entry = ready_entry(reduce, path)))
        return 0;
    template = mr_templates_find(reduce, path, events, count);
    if (!template || template->peak >= child_room(reduce, stream))
        return 0;
    size = 2 * template->calls;
    close = &events[size - 1];
    ended = (struct mr_ended){.calls = template->calls, .is_folded = template->is_folded};
    set_time(reduce, &ended, close->ns - events->ns);
    shape = ready_shape(reduce, template->shape, &ended);
    if (!shape || mr_reduce_wants(reduce, shape, &ended, events->ns) ||
        !mr_templates_keep(reduce, template, events))
        return 0;
    count_trace(reduce, entry, shape, &ended, close);
    stream->closed += template->calls;
    stream->reduced += size;
    stream->last += size;
    if (stream->depth)
        stream->frames[stream->depth - 1].child_ns += ended.ns;
    return size;
}

/* A root has just ended: its trace may be worth a template. */
static void learn_trace(struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                        const struct mr_event *events, uint32_t at)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth];
    uint32_t size = reduce->taken + at - frame->opened + 1;

    if (size >= 2 * MR_TEMPLATE_CALLS_MIN && size <= MR_TEMPLATE_EVENTS_MAX &&
        size <= at + 1)
        mr_templates_learn(reduce, frame->path, events + at + 1 - size, size,
                           reduce->nodes_known);
}

uint32_t mr_reduce_run(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       const struct mr_batch *batch, uint32_t at)
{
    bool is_folded = reduce->config->exactness == MR_EXACTNESS_FOLDED;
    const struct mr_event *events = batch->events;
    uint32_t taken;

    if (stream->counts)
        return at;
    while (at < batch->event_count) {
        const struct mr_event *event;

        if (stream->depth && (is_folded || !stream->is_collecting))
            at += mr_reduce_inner(reduce, stream, batch, at);
        if (at == batch->event_count || !is_folded)
            break;
        event = &events[at];
        if (event->kind == MR_EVENT_CLOSE && stream->depth &&
            close_root(reduce, stream, event)) {
            learn_trace(reduce, stream, events, at++);
            continue;
        }
        if (event->kind != MR_EVENT_OPEN || event->flags != MR_EVENT_ROOT ||
            stream->trace_count)
            break;
        taken = take_trace(reduce, stream, events + at, batch->event_count - at);
        if (!taken)
            break;
        at += taken;
    }
    return at;
}
