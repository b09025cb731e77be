/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"
#include "pipeline/repeat.h"

#define REPEATED_MIN                                                                     \
    16u /* traces in a row that were the same: then decode may look for them */

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

/*
 * The shape of the innermost call, a root that ends, as a place in the table + 1: mostly that of the entry point's trace before. 0 if it
 * has none yet.
 */
static uint32_t find_shape(const struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream, uint32_t last)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    const uint64_t *children = stream->children + frame->first_child;
    uint32_t count = stream->child_count - frame->first_child, node;

    if (last &&
        mr_node_has(&reduce->nodes, reduce->shapes[last - 1].node, frame->hash, count))
        return last;
    node = mr_nodes_find_hashed(&reduce->nodes, frame->hash, mr_open_call_site(frame),
                                children, count);
    return node == MR_NODE_NONE ? 0 : mr_reduce_find_shape(reduce, frame->path, node);
}

/* The innermost call is the root of the only open tree, which is counted: it ends. */
static enum mr_status end_root(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               const struct mr_shape *shape, uint64_t ns,
                               const struct mr_event *close)
{
    enum mr_status status = MR_OK;

    if (stream->has_links)
        status = mr_reduce_links_close(reduce, stream, shape, close, false);
    stream->depth--;
    if (stream->depth)
        stream->frames[stream->depth - 1].child_ns += ns;
    mr_reduce_exemplars_drop(reduce, &stream->traces[0]);
    mr_reduce_drop_trace(stream);
    return status;
}

/* The root of the only open tree ends, whose shape is known. False, with nothing changed: for the slow path. */
static bool close_root(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       const struct mr_event *event, enum mr_status *status)
{
    struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    struct mr_trace *trace = &stream->traces[0];
    struct mr_ended ended = {.is_folded = trace->is_folded};
    struct mr_path *path = &reduce->paths.nodes[frame->path];
    struct mr_entry *entry = ready_entry(reduce, frame->path);
    struct mr_shape *shape;

    if (!entry || event->flags != MR_EVENT_ROOT || stream->trace_count != 1 ||
        !stream->is_collecting || !mr_reduce_in_window(reduce, event->ns))
        return false;
    set_time(reduce, &ended, event->ns - frame->enter_ns);
    shape = ready_shape(reduce, find_shape(reduce, stream, entry->last_shape), &ended);
    if (!shape || path->window != reduce->window || !has_bin(&path->bins, &ended))
        return false;
    ended.calls = stream->closed + 1 - trace->closed - trace->elsewhere;
    if (mr_reduce_wants(reduce, shape, &ended, frame->enter_ns))
        return false;
    entry->refused = 0;
    stream->last++;
    stream->reduced += 2;
    stream->closed++;
    mr_reduce_count_call(reduce, path, ended.ns, ended.ns - frame->child_ns, ended.bin);
    count_trace(reduce, entry, shape, &ended, event);
    *status = end_root(reduce, stream, shape, ended.ns, event);
    return true;
}

/* Whether the child stack would take the entries of such a tree that begins; of a call alone there are none. */
static bool has_child_room(const struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream,
                           const struct mr_template *template)
{
    uint32_t room = stream->child_capacity - stream->child_count;
    uint32_t limit = reduce->config->trace_children_max;

    return template->calls == 1 || template->peak < (room < limit ? room : limit);
}

/* Tells decode what the stream repeats. Without memory it is not told. */
static void make_repeat(struct mr_reduce *reduce, struct mr_stream *stream,
                        const struct mr_template *template)
{
    const struct mr_templates *templates = &reduce->templates;
    uint32_t size = 2 * template->calls, depth = 0;
    struct mr_repeat *repeat;

    if (!reduce->config->has_repeats || stream->repeat ||
        reduce->repeat_count == MR_REPEATS_MAX || !(repeat = calloc(1, sizeof(*repeat))))
        return;
    repeat->events = size;
    repeat->template = (uint32_t)(template - templates->items);
    repeat->generation = templates->generation;
    repeat->live = &reduce->repeat_count;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t code = templates->codes[template->first_code + i];
        uint32_t site = code & ~MR_CODE_CLOSE;
        enum mr_event_kind kind = code & MR_CODE_CLOSE ? MR_EVENT_CLOSE : MR_EVENT_OPEN;

        repeat->calls[i] = (uint64_t)kind << 32 | site; /* as it came: no flags */
        depth += kind == MR_EVENT_CLOSE ? UINT32_MAX : 1u;
        repeat->depth = depth > repeat->depth ? depth : repeat->depth;
        if (site == MR_SITE_UNKNOWN) {
            free(repeat);
            return;
        }
    }
    MR_ASSERT(depth == 0);
    reduce->repeat_count++;
    stream->repeat = repeat;
}

static void note_again(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       const struct mr_template *template)
{
    uint32_t number = (uint32_t)(template - reduce->templates.items);

    if (stream->again != number) {
        stream->again = number;
        stream->again_count = 0;
    } else if (++stream->again_count == REPEATED_MIN) {
        stream->again_count = 0;
        make_repeat(reduce, stream->stream, template);
    }
}

/*
 * The root of `path` at `events`, where no tree is open, as a whole trace that was met before. How many events it took, 0 when
 * it is none.
 */
static uint32_t take_trace(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                           uint32_t path, const struct mr_event *events, uint32_t count)
{
    struct mr_ended ended;
    struct mr_template *template;
    const struct mr_event *close;
    struct mr_shape *shape;
    struct mr_entry *entry;
    uint32_t size;

    if (!mr_templates_try(&reduce->templates, path) || stream->has_links ||
        !(entry = ready_entry(reduce, path)))
        return 0;
    template =
        mr_templates_find_root(reduce, path, mr_reduce_codes(reduce, events), count);
    if (!template || !has_child_room(reduce, stream, template) ||
        !mr_reduce_has_depth(reduce, stream->depth, template->calls))
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
    note_again(reduce, stream, template);
    return size;
}

/* The template of what the stream repeats, where such traces may be counted as they are. */
static struct mr_template *template_of(struct mr_reduce *reduce,
                                       const struct mr_reduce_stream *stream,
                                       const struct mr_repeat *repeat)
{
    const struct mr_templates *templates = &reduce->templates;
    struct mr_template *template;
    uint32_t path;

    if (repeat->generation != templates->generation || stream->counts ||
        stream->has_links || stream->trace_count || stream->base == MR_PATH_NONE)
        return NULL;
    template = &templates->items[repeat->template];
    path = mr_paths_root(&reduce->paths, stream->base, mr_repeat_site(repeat));
    if (templates->calls[template->first_call + template->calls - 1].path != path ||
        !has_child_room(reduce, stream, template))
        return NULL;
    return template;
}

/* Some traces in a row of one template, by the totals that wait to be counted. */
struct group {
    uint32_t count;
    uint64_t enter_ns[MR_TEMPLATE_WAITING]; /* of each root, */
    const uint32_t *totals;                 /* what it took, */
    uint32_t bins[MR_TEMPLATE_WAITING];     /* and where that belongs, if it is not 0 */
};

/* False when a trace has no bin, or is to be kept. */
static bool weigh_group(struct mr_reduce *reduce, const struct mr_template *template,
                        struct mr_shape *shape, struct group *group)
{
    struct mr_ended ended = {.calls = template->calls};

    for (uint32_t i = 0; i < group->count; i++) {
        ended.ns = group->totals[i];
        group->bins[i] =
            ended.ns ? mr_templates_bin(&reduce->templates, group->totals[i]) : 0;
        if ((ended.ns && !mr_bins_has(&shape->bins, group->bins[i])) ||
            mr_reduce_wants(reduce, shape, &ended, group->enter_ns[i]))
            return false;
    }
    return true;
}

/* As count_trace() of each; returns what they took. */
static uint64_t count_group(struct mr_reduce *reduce, const struct mr_template *template,
                            struct mr_entry *entry, struct mr_shape *shape,
                            const struct group *group)
{
    const uint32_t last = group->count - 1;
    enum mr_coverage coverage =
        template->is_folded ? MR_COVERAGE_FOLDED : MR_COVERAGE_WHOLE;
    struct mr_times times = {0, UINT64_MAX, 0};
    uint32_t zeros = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        uint64_t ns = group->totals[i];

        times.sum += ns;
        times.min = ns < times.min ? ns : times.min;
        times.max = ns > times.max ? ns : times.max;
        zeros += ns == 0;
        if (ns)
            mr_bin_pool_add(
                &reduce->bins,
                mr_bin_pool_at(&reduce->bins,
                               shape->bins.offset + group->bins[i] - shape->bins.first));
    }
    mr_reduce_add_shapes(reduce, shape, &times, group->enter_ns[0] + group->totals[0],
                         group->enter_ns[last] + group->totals[last], group->count);
    shape->zeros += zeros;
    shape->calls += (uint64_t)group->count * template->calls;
    shape->folded += template->is_folded ? group->count : 0;
    entry->last_shape = template->shape;
    entry->stats.traces[coverage] += group->count;
    entry->stats.calls[coverage] += (uint64_t)group->count * template->calls;
    entry->stats.time_ns[coverage] += times.sum;
    return times.sum;
}

/* Whether traces from `times` on, at most MR_TEMPLATE_WAITING, can be counted as they are; nothing has changed then but what waits. */
static bool make_group(struct mr_reduce *reduce, struct mr_template *template,
                       struct mr_shape *shape, uint64_t base_ns, const uint32_t *times,
                       struct group *group)
{
    const struct mr_template_call *calls = reduce->templates.calls + template->first_call;
    const size_t size = 2 * (size_t) template->calls;

    if (!mr_reduce_in_window(reduce, base_ns + times[mr_template_place(calls[0].exit)]) ||
        !mr_reduce_in_window(reduce, base_ns + times[group->count * size - 1]) ||
        !mr_templates_fill(reduce, template, times, group->count))
        return false;
    group->totals = (const uint32_t *)calls[template->calls - 1].totals;
    for (uint32_t i = 0; i < group->count; i++)
        group->enter_ns[i] = base_ns + times[i * size];
    return weigh_group(reduce, template, shape, group);
}

/* Counts `count` traces, at most MR_TEMPLATE_WAITING. False, with nothing changed: one by one. */
static bool take_group(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       struct mr_template *template, uint64_t base_ns,
                       const uint32_t *times, uint32_t count)
{
    uint32_t root =
        reduce->templates.calls[template->first_call + template->calls - 1].path;
    struct mr_entry *entry = ready_entry(reduce, root);
    struct mr_shape *shape =
        template->shape ? &reduce->shapes[template->shape - 1] : NULL;
    const uint64_t calls = (uint64_t)count * template->calls;
    struct group group = {.count = count};
    uint64_t ns;

    if (!entry || !shape || shape->window != reduce->window ||
        !make_group(reduce, template, shape, base_ns, times, &group))
        return false;
    mr_templates_count(reduce, template, count);
    ns = count_group(reduce, template, entry, shape, &group);
    stream->closed += calls;
    stream->reduced += 2 * calls;
    stream->last += 2 * calls;
    if (stream->depth)
        stream->frames[stream->depth - 1].child_ns += ns;
    reduce->taken += (uint32_t)(2 * calls);
    mr_filter_count(reduce->filter, MR_REDUCE_SUM_REPEATS, calls);
    return true;
}

uint32_t mr_reduce_run_repeats(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               const struct mr_batch *batch, uint32_t first,
                               uint32_t *leave)
{
    const uint32_t *times = mr_batch_times_const(batch);
    struct mr_template *template = template_of(reduce, stream, batch->repeat);

    *leave = batch->trace_count - first;
    while (template && first < batch->trace_count) {
        uint32_t count = batch->trace_count - first;

        count = count < MR_TEMPLATE_WAITING ? count : MR_TEMPLATE_WAITING;
        *leave = count;
        if (!take_group(reduce, stream, template, batch->base_ns,
                        times + (size_t)first * batch->repeat->events, count))
            break;
        first += count;
    }
    return first;
}

/* A root has just ended: its trace may be worth a template. */
static void learn_trace(struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                        const struct mr_event *events, uint32_t at)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth];
    uint32_t size = reduce->taken + at - frame->opened + 1;

    if (size <= MR_TEMPLATE_EVENTS_MAX && size <= at + 1)
        mr_templates_learn(reduce, frame->path, events + at + 1 - size, size,
                           reduce->nodes_known);
}

/* The root of a call tree ends at `*at`. False: for the slow path. */
static bool take_close(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       uint32_t *at, enum mr_status *status)
{
    bool has_links = stream->has_links;

    if (!close_root(reduce, stream, &reduce->events[*at], status))
        return false;
    if (!has_links) /* among its events are others than calls, and no template has such */
        learn_trace(reduce, stream, reduce->events, *at);
    ++*at;
    return true;
}

/* A message or a capture, all of its events. */
static bool take_link(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                      uint32_t *at, enum mr_status *status)
{
    const struct mr_event *event = &reduce->events[*at];
    const struct mr_event *end = reduce->events + reduce->event_count;

    reduce->noted.is_left = true;
    for (; event != end && *status == MR_OK && mr_event_is_passed_on(event); event++)
        *status = mr_reduce_link(reduce, stream, event);
    *at = (uint32_t)(event - reduce->events);
    return true;
}

/* What mr_reduce_step() does where the path is there, and room for one more call. */
static enum mr_status push_root(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                                uint32_t path, const struct mr_event *event)
{
    stream->frames[stream->depth++] = (struct mr_open_call){
        .enter_ns = event->ns,
        .path = path,
        .first_child = stream->child_count,
        .closes = mr_open_call_closes(event->site, event->flags),
        .flags = event->flags,
        .hash = mr_node_hash_first(&reduce->nodes, event->site),
        .next = reduce->paths.nodes[path].likely[MR_PATH_FIRST],
        .opened = reduce->taken + (uint32_t)(event - reduce->events)};
    stream->last++;
    mr_reduce_begin_trace(reduce, stream, event);
    return stream->has_links ? mr_reduce_links_open(reduce, stream) : MR_OK;
}

/* The root of a call tree opens at `*at`, and none else is open. False: for the slow path. */
static bool take_open(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                      uint32_t *at, enum mr_status *status)
{
    const struct mr_event *event = &reduce->events[*at];
    uint32_t path, taken;

    if (stream->base == MR_PATH_NONE)
        return false;
    path = mr_paths_root(&reduce->paths, stream->base, event->site);
    taken = take_trace(reduce, stream, path, event, reduce->event_count - *at);
    if (!taken) {
        if (path == MR_PATH_NONE || stream->depth == stream->capacity)
            return false;
        *status = push_root(reduce, stream, path, event);
        taken = 1;
    }
    *at += taken;
    return true;
}

/* The event at `*at` is no call inside a call tree. False: for the slow path. */
static bool take_other(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                       uint32_t *at, enum mr_status *status)
{
    const struct mr_event *event = &reduce->events[*at];

    if (event->kind == MR_EVENT_CLOSE)
        return stream->depth && take_close(reduce, stream, at, status);
    if (event->kind != MR_EVENT_OPEN)
        return mr_event_is_passed_on(event) && take_link(reduce, stream, at, status);
    return event->flags == MR_EVENT_ROOT && !stream->trace_count &&
           take_open(reduce, stream, at, status);
}

enum mr_status mr_reduce_run(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                             uint32_t *at)
{
    bool is_folded = reduce->config->exactness == MR_EXACTNESS_FOLDED;
    const struct mr_nesting *nesting = reduce->nesting;
    const uint32_t count = reduce->event_count;
    enum mr_status status = MR_OK;

    if (stream->counts)
        return MR_OK;
    while (status == MR_OK && *at < count) {
        if (stream->depth > (nesting ? nesting->outer_depth : 0) &&
            (is_folded || !stream->is_collecting))
            *at += mr_reduce_inner(reduce, stream, *at);
        if (*at == count || !is_folded ||
            (nesting && !mr_reduce_is_in_order(reduce, stream, &reduce->events[*at])) ||
            !take_other(reduce, stream, at, &status))
            break;
    }
    return status;
}
