/* SPDX-License-Identifier: Apache-2.0 */
/* The hot loop: calls inside a call tree that end ok, in order, whether reconstruct has seen to that or not. */
#include "base/assert.h"
#include "pipeline/filters/reconstruct_watch.h"
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
    const struct mr_event *events, *at, *end; /* of the run; the one at hand */
    const struct mr_event *first;             /* taken by this mr_reduce_inner() */
    const struct mr_open_call *bottom;        /* the first frame */
    struct mr_nesting *nesting;               /* of the batch, if it is checked here */
    const struct mr_open_call
        *heard;        /* calls below this frame end in reconstruct's sight */
    uint64_t least_ns; /* calls that took as long are noted */
    bool is_collecting, is_folded;
    bool is_refused; /* the tree has a new node past the budget: it stopped collecting */
};

/* The child of `parent` on `path` will be foretold the next time. No branch: whether a call is its parent's first is hardly foretold itself. */
static MR_ALWAYS_INLINE void learn_child(struct mr_paths *paths,
                                         const struct mr_open_call *parent, uint32_t path)
{
    bool is_next = parent->last != MR_PATH_NONE;
    uint32_t before = is_next ? parent->last : parent->path;

    paths->nodes[before].likely[is_next] = path;
}

/* The path of a child that is not in the table yet. */
static MR_NOINLINE uint32_t make_child(struct mr_paths *paths,
                                       const struct mr_open_call *parent, uint32_t site)
{
    uint32_t path = mr_paths_find(paths, parent->path, site, 0);

    if (path != MR_PATH_NONE)
        learn_child(paths, parent, path);
    return path;
}

/* The path of a child that was not foretold. */
static MR_NOINLINE uint32_t find_child(struct mr_paths *paths,
                                       const struct mr_open_call *parent, uint32_t site)
{
    uint32_t path;

    if (paths->nodes[parent->last].site == site)
        return parent->last; /* a loop that was left later than the time before */
    if (MR_UNLIKELY(parent->path == MR_PATH_NONE)) /* the tree is full */
        return MR_PATH_NONE;
    path = mr_paths_known(paths, parent->path, site);
    if (MR_UNLIKELY(path == MR_PATH_NONE))
        return make_child(paths, parent, site);
    learn_child(paths, parent, path);
    return path;
}

/* The node of a call that is not like its path's last one. */
static MR_NOINLINE uint32_t intern(struct mr_reduce *reduce, struct mr_path *path,
                                   const struct mr_open_call *frame,
                                   const struct hot *hot)
{
    const uint64_t *list = hot->children + frame->first_child;
    uint32_t count = hot->child_count - frame->first_child;
    uint32_t number;

    MR_DEBUG_ASSERT(frame->hash ==
                    mr_node_hash(&reduce->nodes, mr_open_call_site(frame), list, count));
    number = mr_nodes_intern_hashed(&reduce->nodes, frame->hash, mr_open_call_site(frame),
                                    list, count);
    if (number != MR_NODE_NONE)
        path->expected = number;
    return number;
}

/* A node joins the list of `frame`, which is the last one on the child stack. */
static MR_ALWAYS_INLINE void add_child(struct hot *hot, struct mr_open_call *frame,
                                       uint32_t node)
{
    uint32_t at = hot->child_count;

    if (at > frame->first_child && hot->children[at - 1] == node) {
        hot->is_folded = true;
        return;
    }
    hot->children[at] = node;
    hot->child_count++;
    frame->hash = mr_node_hash_next(frame->hash, node);
}

/*
 * A call ended at the event at hand; its caller is the innermost one now. Where reconstruct itself has to see that, the loop ends.
 */
static MR_ALWAYS_INLINE void tell_child(struct hot *hot, uint64_t ns)
{
    struct mr_nesting *nesting = hot->nesting;
    uint32_t depth = (uint32_t)(hot->top - hot->bottom) + 1;

    if (hot->top >= hot->heard)
        return;
    MR_ASSERT(nesting);
    if (mr_reconstruct_count_child(nesting->watch, nesting->config, depth, ns))
        return;
    nesting->has_child_ended = true;
    hot->end = hot->at + 1;
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

    if (size < 2 * MR_TEMPLATE_PART_CALLS_MIN || size > MR_TEMPLATE_EVENTS_MAX)
        return false;
    if (node >= reduce->nodes_known || size > (uint32_t)(hot->at - hot->events) + 1)
        return false;
    return age_of(reduce, hot, caller) > MR_TEMPLATE_EVENTS_MAX ||
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
    number = path->expected;
    if (MR_UNLIKELY(!mr_node_has(&reduce->nodes, number, frame->hash,
                                 hot->child_count - first))) {
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
    add_child(hot, &frame[-1], number);
    return true;
}

/* The call at hand as one that was met before, to its end. False, with nothing changed, when it is none. */
static bool take_template(struct mr_reduce *reduce, struct hot *hot, uint32_t path)
{
    struct mr_open_call *parent = hot->top;
    uint32_t room =
        hot->child_count < hot->child_limit ? hot->child_limit - hot->child_count : 0;
    struct mr_template *template = mr_templates_find_part(
        reduce, path, mr_reduce_codes(reduce, hot->at), (uint32_t)(hot->end - hot->at));
    const struct mr_event *last;

    if (!template || (hot->is_collecting && template->peak >= room) ||
        !mr_reduce_has_depth(reduce, (uint32_t)(hot->top - hot->bottom) + 1,
                             template->calls) ||
        !mr_templates_keep(reduce, template, hot->at))
        return false;
    last = hot->at + (size_t)2 * template->calls - 1;
    if (MR_UNLIKELY(last->ns - hot->at->ns >= hot->least_ns))
        mr_reduce_note_template(reduce, template, (uint32_t)(hot->top - hot->bottom) + 1,
                                (uint32_t)(hot->at - hot->events));
    reduce->whole[hot->at - hot->events] = (uint16_t) template->calls;
    parent->child_ns += last->ns - hot->at->ns;
    hot->at = last;
    hot->is_folded |= template->is_folded;
    if (hot->is_collecting)
        add_child(hot, parent, template->node);
    tell_child(hot, last->ns);
    return true;
}

/* `event` opens a call of `site` that ends with the next one, in order and without a mark. */
static MR_ALWAYS_INLINE bool is_leaf(const struct hot *hot, const struct mr_event *event,
                                     uint32_t site)
{
    return event + 1 < hot->end &&
           mr_event_word(&event[1]) == mr_open_call_closes(site, 0);
}

/*
 * The call at hand calls nothing: it is counted without a place on the stack, whose stores its close would wait for. False,
 * with nothing changed, when the slow path has to see it, or its node is not the one expected.
 */
static MR_ALWAYS_INLINE bool take_leaf(struct mr_reduce *reduce, struct hot *hot,
                                       uint32_t number)
{
    struct mr_path *path = &reduce->paths.nodes[number];
    uint64_t end_ns = hot->at[1].ns, total = end_ns - hot->at->ns;
    uint32_t bin = total ? mr_reduce_bin(reduce, total) : 0;
    uint32_t node = MR_NODE_NONE;

    if (MR_UNLIKELY(!mr_reduce_in_window(reduce, end_ns) || total >= hot->least_ns ||
                    path->window != reduce->window ||
                    (total && !mr_bins_has(&path->bins, bin))))
        return false;
    if (hot->is_collecting) {
        node = path->expected;
        if (MR_UNLIKELY(reduce->nodes.items[node].count != 0 ||
                        hot->child_count >= hot->child_limit))
            return false;
        add_child(hot, hot->top, node);
    }
    hot->top->child_ns += total;
    reduce->whole[hot->at - hot->events] = 1;
    mr_reduce_count_call(reduce, path, total, total, bin);
    hot->at++;
    tell_child(hot, end_ns);
    return true;
}

/* A call that opens inside a call tree. False, with nothing changed: for the slow path. */
static MR_ALWAYS_INLINE bool open_fast(struct mr_reduce *reduce, struct hot *hot,
                                       const struct mr_event *event, uint32_t site)
{
    struct mr_open_call *parent = hot->top;
    uint32_t path = parent->next;
    const struct mr_path *node;

    if (MR_UNLIKELY(parent == hot->last))
        return false;
    if (MR_UNLIKELY(reduce->paths.nodes[path].site != site)) {
        path = find_child(&reduce->paths, parent, site);
        if (path == MR_PATH_NONE)
            return false;
    }
    node = &reduce->paths.nodes[path];
    mr_reduce_foretell(&reduce->paths, parent, path);
    if (is_leaf(hot, event, site) && take_leaf(reduce, hot, path))
        return true;
    if (mr_templates_try(&reduce->templates, path) && take_template(reduce, hot, path))
        return true;
    *++hot->top = (struct mr_open_call){.enter_ns = event->ns,
                                        .path = path,
                                        .first_child = hot->child_count,
                                        .closes = mr_open_call_closes(site, 0),
                                        .hash = mr_node_hash_first(&reduce->nodes, site),
                                        .next = node->likely[MR_PATH_FIRST],
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
    if (MR_UNLIKELY(total >= hot->least_ns))
        mr_reduce_note(reduce, frame, (uint32_t)(frame - hot->bottom),
                       (uint32_t)(hot->at - hot->events));
    frame[-1].child_ns += total;
    note_whole(reduce, hot);
    hot->top--;
    mr_reduce_count_call(reduce, path, total, self, bin);
    tell_child(hot, event->ns);
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

/* How many calls may be open before the slow path, or reconstruct, grows its stack. */
static uint32_t depth_limit(const struct mr_reduce *reduce,
                            const struct mr_reduce_stream *stream)
{
    const struct mr_nesting *nesting = reduce->nesting;

    return nesting && nesting->room < stream->capacity ? nesting->room : stream->capacity;
}

static const struct mr_open_call *heard_from(const struct mr_reduce *reduce,
                                             const struct mr_reduce_stream *stream)
{
    return reduce->nesting
               ? stream->frames + mr_reconstruct_watch_low(reduce->nesting->watch)
               : stream->frames;
}

uint32_t mr_reduce_inner(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                         uint32_t first)
{
    struct hot hot = {.bottom = stream->frames,
                      .top = stream->frames + stream->depth - 1,
                      .last = stream->frames + depth_limit(reduce, stream) - 1,
                      .nesting = reduce->nesting,
                      .heard = heard_from(reduce, stream),
                      .children = stream->children,
                      .child_count = stream->child_count,
                      .child_limit = child_limit(reduce, stream),
                      .events = reduce->events,
                      .at = reduce->events + first,
                      .first = reduce->events + first,
                      .end = reduce->events + reduce->event_count,
                      .least_ns = reduce->noted.least_ns,
                      .is_collecting = stream->is_collecting};
    uint32_t done, depth;

    for (; hot.at < hot.end; hot.at++) {
        const struct mr_event *event = hot.at;
        uint64_t word = mr_event_word(event);

        if (word <= UINT32_MAX) { /* it opens, without a flag */
            if (!open_fast(reduce, &hot, event, (uint32_t)word))
                break;
            continue;
        }
        if (MR_UNLIKELY(word != hot.top->closes ||
                        !mr_reduce_in_window(reduce, event->ns)))
            break;
        if (!close_fast(reduce, &hot, event))
            break;
    }
    /* Opens and closes make `done`, and their difference is that of the depths. */
    done = (uint32_t)(hot.at - hot.first);
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
