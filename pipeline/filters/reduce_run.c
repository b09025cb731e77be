/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

#define PART_MISSES                                                                      \
    4u /* of a path's templates in a row: then those of its children may help */

/*
 * What the hot loop keeps in registers: through memory, each event would wait for the
 * stores of the one before it. `path` is that of the innermost call.
 */
struct hot {
    struct mr_open_call *top,
        *last; /* the innermost call, and the last there is room for */
    uint64_t *children;
    uint32_t child_count, child_limit;
    const struct mr_event *events, *at, *end; /* of the batch; the one at hand */
    const struct mr_event *first;             /* taken by this run_calls() */
    bool is_collecting, is_folded;
    bool is_refused; /* the tree has a new node past the budget: it stopped collecting */
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

/* A node joins the list of `frame`, which is the last one on the child stack. */
static MR_ALWAYS_INLINE void add_child(struct mr_reduce *reduce, struct hot *hot,
                                       struct mr_open_call *frame, uint32_t node)
{
    uint32_t at = hot->child_count;

    if (at > frame->first_child && hot->children[at - 1] == node) {
        hot->is_folded = true;
        return;
    }
    hot->children[at] = node;
    hot->child_count++;
    if (MR_LIKELY(reduce->nodes.children[frame->like] == node))
        frame->like++;
    else
        set_unlike(frame);
}

/* How many events ago `frame` was opened, the one at hand included. */
static MR_ALWAYS_INLINE uint32_t age_of(const struct mr_reduce *reduce,
                                        const struct hot *hot,
                                        const struct mr_open_call *frame)
{
    return reduce->taken + (uint32_t)(hot->at - hot->events) - frame->opened + 1;
}

/* The innermost call ends. Where it opened in this run, all events since then are calls inside a call tree. */
static MR_ALWAYS_INLINE void note_whole(struct mr_reduce *reduce, const struct hot *hot)
{
    uint32_t size = age_of(reduce, hot, hot->top);

    if (MR_LIKELY(size <= (uint32_t)(hot->at - hot->first) + 1))
        reduce->whole[(uint32_t)(hot->at - hot->events) + 1 - size] =
            (uint16_t)(size / 2);
}

/*
 * Whether the innermost call, which ends as `node`, is worth a template: it came before, lies in the batch, and is not part
 * of one that will have a template itself.
 */
static MR_ALWAYS_INLINE bool may_be_template(const struct mr_reduce *reduce,
                                             const struct hot *hot, uint32_t node)
{
    const struct mr_open_call *caller = &hot->top[-1];
    uint32_t size = age_of(reduce, hot, hot->top);

    if (size < 2 * MR_TEMPLATE_CALLS_MIN || size > MR_TEMPLATE_EVENTS_MAX)
        return false;
    if (node >= reduce->nodes_known || size > (uint32_t)(hot->at - hot->events) + 1)
        return false;
    return caller->like == MR_LIST_OTHER ||
           age_of(reduce, hot, caller) > MR_TEMPLATE_EVENTS_MAX ||
           mr_templates_misses(&reduce->templates, caller->path) >= PART_MISSES;
}

/* Nothing more of this tree is collected. */
static void refuse(struct hot *hot)
{
    hot->is_collecting = false;
    hot->is_refused = true;
    hot->child_limit = 0;
}

/*
 * Folded only: the innermost call becomes a node in its parent's list. False, with
 * nothing changed, when there is no room.
 */
static MR_ALWAYS_INLINE bool collect_fast(struct mr_reduce *reduce, struct hot *hot,
                                          struct mr_path *path)
{
    struct mr_open_call *frame = hot->top;
    uint32_t first = frame->first_child, number;

    if (MR_UNLIKELY(first >= hot->child_limit))
        return false;
    number = mr_nodes_matched(&reduce->nodes, frame->like);
    if (MR_UNLIKELY(number == MR_NODE_NONE)) {
        number = intern(reduce, path, frame, hot);
        if (number == MR_NODE_NONE && reduce->nodes.is_refused)
            refuse(hot);
        if (number == MR_NODE_NONE)
            return reduce->nodes.is_refused;
    }
    if (MR_UNLIKELY(may_be_template(reduce, hot, number)))
        mr_templates_learn(reduce, frame->path, hot->at + 1 - age_of(reduce, hot, frame),
                           age_of(reduce, hot, frame), reduce->nodes_known);
    hot->child_count = first;
    add_child(reduce, hot, &frame[-1], number);
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

/* The call at hand as one that was met before, to its end. False, with nothing changed, when it is none. */
static bool take_template(struct mr_reduce *reduce, struct hot *hot, uint32_t path)
{
    struct mr_open_call *parent = hot->top;
    uint32_t room =
        hot->child_count < hot->child_limit ? hot->child_limit - hot->child_count : 0;
    struct mr_template *template =
        mr_templates_find(reduce, path, hot->at, (uint32_t)(hot->end - hot->at));
    const struct mr_event *last;

    if (!template || (hot->is_collecting && template->peak >= room) ||
        !mr_templates_keep(reduce, template, hot->at))
        return false;
    last = hot->at + (size_t)2 * template->calls - 1;
    reduce->whole[hot->at - hot->events] = (uint16_t) template->calls;
    parent->child_ns += last->ns - hot->at->ns;
    hot->at = last;
    hot->is_folded |= template->is_folded;
    if (hot->is_collecting)
        add_child(reduce, hot, parent, template->node);
    return true;
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
    if (mr_templates_try(&reduce->templates, path) && take_template(reduce, hot, path))
        return true;
    *++hot->top = (struct mr_open_call){.enter_ns = event->ns,
                                        .path = path,
                                        .first_child = hot->child_count,
                                        .like = node->expected,
                                        .site = event->site,
                                        .next = node->first,
                                        .opened = reduce->taken +
                                                  (uint32_t)(hot->at - hot->events)};
    return true;
}

/*
 * A call inside a call tree that ends ok. False, with nothing changed: for the slow path.
 */
static MR_ALWAYS_INLINE bool close_fast(struct mr_reduce *reduce, struct hot *hot,
                                        const struct mr_event *event)
{
    struct mr_open_call *frame = hot->top;
    struct mr_path *path = &reduce->paths.nodes[frame->path];
    uint64_t total = event->ns - frame->enter_ns, self = total - frame->child_ns;
    uint32_t bin = total ? mr_reduce_bin(reduce, total) : 0;

    if (MR_UNLIKELY(path->window != reduce->window ||
                    (total && !mr_bins_has(&path->bins, bin))))
        return false;
    if (hot->is_collecting && !collect_fast(reduce, hot, path))
        return false;
    frame[-1].child_ns += total;
    note_whole(reduce, hot);
    hot->top--;
    count_fast(reduce, path, total, self, bin);
    return true;
}

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

/* Shape `number` - 1, when it may count in this window and bin. */
static struct mr_shape *ready_shape(const struct mr_reduce *reduce, uint32_t number,
                                    uint32_t bin)
{
    struct mr_shape *shape;

    if (!number)
        return NULL;
    shape = &reduce->shapes[number - 1];
    return shape->window == reduce->window && mr_bins_has(&shape->bins, bin) ? shape
                                                                             : NULL;
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
        !stream->is_collecting || stream->has_links || trace->condense ||
        event->ns == frame->enter_ns || !mr_reduce_in_window(reduce, event->ns))
        return false;
    ended.ns = event->ns - frame->enter_ns;
    ended.bin = mr_reduce_bin(reduce, ended.ns);
    shape = ready_shape(reduce, entry->last_shape, ended.bin);
    if (!shape || mr_nodes_matched(&reduce->nodes, frame->like) != shape->node ||
        path->window != reduce->window || !mr_bins_has(&path->bins, ended.bin))
        return false;
    ended.calls = stream->closed + 1 - trace->closed - trace->elsewhere;
    if (mr_reduce_wants(reduce, shape, &ended, frame->enter_ns))
        return false;
    stream->last++;
    stream->reduced += 2;
    stream->closed++;
    count_fast(reduce, path, ended.ns, ended.ns - frame->child_ns, ended.bin);
    count_trace(reduce, entry, shape, &ended, event);
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
 * Calls inside a call tree that end ok. Takes events of the batch from `first` on until one is anything else; returns
 * how many.
 */
static uint32_t run_calls(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                          const struct mr_batch *batch, uint32_t first)
{
    struct hot hot = {.top = stream->frames + stream->depth - 1,
                      .last = stream->frames + stream->capacity - 1,
                      .children = stream->children,
                      .child_count = stream->child_count,
                      .child_limit = child_limit(reduce, stream),
                      .events = batch->events,
                      .at = batch->events + first,
                      .first = batch->events + first,
                      .end = batch->events + batch->event_count,
                      .is_collecting = stream->is_collecting};
    uint32_t done, depth;

    for (; hot.at < hot.end; hot.at++) {
        const struct mr_event *event = hot.at;

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
        if (!close_fast(reduce, &hot, event))
            break;
    }
    /* Opens and closes make `done`, and their difference is that of the depths. */
    done = (uint32_t)(hot.at - batch->events) - first;
    depth = (uint32_t)(hot.top - stream->frames) + 1;
    stream->closed += (done + stream->depth - depth) / 2;
    stream->reduced += done + stream->depth - depth;
    stream->last += done;
    stream->depth = depth;
    stream->child_count = hot.child_count;
    if (hot.is_folded)
        stream->traces[stream->trace_count - 1].is_folded = true;
    if (hot.is_refused)
        mr_reduce_stop_collecting(reduce, stream, MR_REDUCE_TRACES_NEW);
    return done;
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
    ended = (struct mr_ended){.ns = close->ns - events->ns,
                              .calls = template->calls,
                              .is_folded = template->is_folded};
    if (ended.ns == 0)
        return 0;
    ended.bin = mr_reduce_bin(reduce, ended.ns);
    shape = ready_shape(reduce, template->shape, ended.bin);
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
            at += run_calls(reduce, stream, batch, at);
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
