/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

#define CAPACITY_FIRST 16u /* of each stream: there may be 10,000 that wait */
#define SEARCH_MAX 64u
#define AGE_PERIOD (UINT32_C(1) << 30) /* events */

void mr_reduce_age_calls(struct mr_reduce *reduce)
{
    if (MR_LIKELY(reduce->taken - reduce->aged < AGE_PERIOD))
        return;
    reduce->aged = reduce->taken;
    for (struct mr_reduce_stream *stream = reduce->streams; stream; stream = stream->next)
        for (uint32_t i = 0; i < stream->depth; i++)
            if (reduce->taken - stream->frames[i].opened > MR_REDUCE_OLD)
                stream->frames[i].opened = reduce->taken - MR_REDUCE_OLD;
}

enum mr_status mr_reduce_prepare(struct mr_reduce *reduce, uint32_t path, uint32_t bin)
{
    enum mr_status status = MR_OK;
    struct mr_path *node = &reduce->paths.nodes[path];

    MR_ASSERT(path != MR_PATH_NONE);
    if (node->window != 0 && node->window != reduce->window) {
        status =
            mr_reduce_path_row(reduce, path); /* what it gained in the other window */
        if (status != MR_OK)
            return status;
        mr_paths_end(&reduce->paths, path);
    }
    if (node->window == 0)
        mr_paths_begin(&reduce->paths, path, reduce->window);
    if (bin != MR_BINS_COUNT && node->bins.count == 0)
        mr_bins_begin(&node->bins, &reduce->bins, node->bins_first,
                      16u * node->bins_blocks);
    if (bin == MR_BINS_COUNT || mr_bins_has(&node->bins, bin) ||
        mr_bins_grow(&node->bins, &reduce->bins, bin))
        return MR_OK;
    mr_counters_add(&reduce->counters, MR_REDUCE_EARLY, 1);
    status = mr_reduce_flush(reduce); /* which empties the pool */
    if (status != MR_OK)
        return status;
    mr_paths_begin(&reduce->paths, path, reduce->window);
    return mr_bins_grow(&node->bins, &reduce->bins, bin) ? MR_OK : MR_ENOMEM;
}

static uint32_t base_of(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                        uint32_t flags)
{
    uint32_t *base = flags & MR_PATH_OUTER ? &stream->outer_base : &stream->base;

    if (*base == MR_PATH_NONE)
        *base = mr_paths_base(&reduce->paths, stream->scope, flags);
    return *base;
}

/* The path of a call with `depth` calls below it on the stack. */
static uint32_t find_path(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                          uint32_t depth, uint32_t flags, uint32_t site)
{
    if (flags & MR_EVENT_ROOT)
        return mr_paths_root(&reduce->paths, base_of(reduce, stream, 0), site);
    if (depth == 0) /* only an outer frame or a root is at the bottom */
        return mr_paths_find(&reduce->paths, base_of(reduce, stream, MR_PATH_OUTER), site,
                             0);
    return mr_paths_child(&reduce->paths, stream->frames[depth - 1].path, site);
}

static enum mr_status get_path(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               uint32_t depth, uint32_t flags, uint32_t site,
                               uint32_t *path)
{
    uint32_t gained = reduce->paths.count - reduce->paths_kept;
    enum mr_status status;

    *path = find_path(reduce, stream, depth, flags, site);
    /* Forgetting must be worth its cost: when open calls fill the tree, it is not. */
    if (*path != MR_PATH_NONE || reduce->paths.count < reduce->paths.limit ||
        gained < reduce->paths.limit / 8)
        return MR_OK;
    status = mr_reduce_forget(reduce);
    if (status == MR_OK)
        *path = find_path(reduce, stream, depth, flags, site);
    return status;
}

static bool grow(struct mr_reduce_stream *stream)
{
    uint32_t capacity = stream->capacity ? 2 * stream->capacity : CAPACITY_FIRST;
    struct mr_open_call *grown = realloc(stream->frames, capacity * sizeof(*grown));

    if (!grown)
        return false;
    stream->frames = grown;
    stream->capacity = capacity;
    return true;
}

static enum mr_status open_call(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                                const struct mr_event *event)
{
    struct mr_open_call frame = {.enter_ns = event->ns,
                                 .first_child = stream->child_count,
                                 .flags = event->flags,
                                 .opened = reduce->place,
                                 .closes =
                                     mr_open_call_closes(event->site, event->flags)};
    enum mr_status status;

    MR_ASSERT(stream->depth > 0 || (event->flags & (MR_EVENT_ROOT | MR_EVENT_OUTER)));
    if (stream->depth == stream->capacity && !grow(stream))
        return MR_ENOMEM;
    status =
        get_path(reduce, stream, stream->depth, event->flags, event->site, &frame.path);
    if (status != MR_OK)
        return status;
    if (stream->depth > 0 &&
        !(event->flags & MR_EVENT_ROOT)) /* a root's path is no child's */
        mr_reduce_foretell(&reduce->paths, &stream->frames[stream->depth - 1],
                           frame.path);
    frame.hash = mr_node_hash_first(&reduce->nodes, event->site);
    frame.next = reduce->paths.nodes[frame.path].likely[MR_PATH_FIRST];
    stream->frames[stream->depth++] = frame;
    stream->last += !(event->flags & MR_EVENT_UNKNOWN);
    if (event->flags & MR_EVENT_ROOT)
        mr_reduce_begin_trace(reduce, stream, event);
    if (event->flags & MR_EVENT_UNKNOWN || frame.path == MR_PATH_NONE)
        mr_reduce_break_traces(stream);
    if (event->flags & MR_EVENT_ROOT && stream->has_links)
        status = mr_reduce_links_open(reduce, stream);
    return stream->counts && status == MR_OK ? mr_reduce_counts_open(stream) : status;
}

/* Counts a call that was timed. */
static enum mr_status count_timed(struct mr_reduce *reduce, uint32_t path, uint64_t total,
                                  uint64_t self, bool is_failed)
{
    uint32_t bin = total ? mr_reduce_bin(reduce, total) : MR_BINS_COUNT;
    enum mr_status status = mr_reduce_prepare(reduce, path, bin);
    struct mr_path *node = &reduce->paths.nodes[path];

    if (status != MR_OK)
        return status;
    node->ok += !is_failed;
    node->failed += is_failed;
    node->total_sum += total;
    node->self_sum += self;
    mr_path_widen(node, total, self);
    node->zeros += total == 0;
    if (total)
        mr_bins_add(&node->bins, &reduce->bins, bin);
    return MR_OK;
}

/* The events of a call that ends: its enter, unless a loss took it, and its exit, if there was one. */
static void account(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                    bool has_path, uint16_t flags)
{
    uint64_t exits = !(flags & (MR_EVENT_INCOMPLETE | MR_EVENT_UNWOUND));
    uint64_t events = exits + !(flags & MR_EVENT_UNKNOWN);

    stream->last += exits;
    if (has_path) {
        stream->reduced += events;
        return;
    }
    mr_counters_add(&reduce->counters, MR_REDUCE_NO_PATH, 1);
    stream->lost[MR_LOSS_BUDGET] += events;
    stream->lost_sum += events;
}

static enum mr_status count_call(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream, uint32_t path,
                                 const struct mr_event *event)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    uint64_t total = event->ns - frame->enter_ns;
    enum mr_status status;

    if (event->flags & (MR_EVENT_INCOMPLETE | MR_EVENT_UNKNOWN)) {
        status = mr_reduce_prepare(reduce, path, MR_BINS_COUNT);
        if (status == MR_OK)
            reduce->paths.nodes[path].incomplete++;
        return status;
    }
    MR_DEBUG_ASSERT(event->ns >= frame->enter_ns && total >= frame->child_ns);
    if (stream->depth > 1)
        stream->frames[stream->depth - 2].child_ns += total;
    return count_timed(reduce, path, total, total - frame->child_ns,
                       (event->flags & (MR_EVENT_FAILED | MR_EVENT_UNWOUND)) != 0);
}

static bool push_child(struct mr_reduce_stream *stream, uint64_t child)
{
    if (stream->child_count == stream->child_capacity) {
        uint32_t capacity =
            stream->child_capacity ? 2 * stream->child_capacity : CAPACITY_FIRST;
        uint64_t *grown = realloc(stream->children, capacity * sizeof(*grown));

        if (!grown)
            return false;
        stream->children = grown;
        stream->child_capacity = capacity;
    }
    MR_DEBUG_ASSERT(stream->children);
    stream->children[stream->child_count++] = child;
    return true;
}

/* Whether a set has the node among its last SEARCH_MAX; longer ones are made unique when they are interned. */
static bool has_child(const struct mr_reduce_stream *stream, uint32_t first,
                      uint32_t node)
{
    MR_DEBUG_ASSERT(stream->child_count == first || stream->children);
    for (uint32_t i = stream->child_count;
         i > first && stream->child_count - i < SEARCH_MAX; i--)
        if (mr_child_node(stream->children[i - 1]) == node)
            return true;
    return false;
}

/* Adds a child to the innermost call's list. False without memory. */
static bool add_child(const struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                      uint32_t node)
{
    struct mr_trace *trace = &stream->traces[stream->trace_count - 1];
    struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    uint32_t first = frame->first_child;
    uint64_t *last =
        stream->child_count > first ? &stream->children[stream->child_count - 1] : NULL;

    switch (reduce->config->exactness) {
    case MR_EXACTNESS_FOLDED:
        if (!last || mr_child_node(*last) != node) {
            frame->hash = mr_node_hash_next(frame->hash, node);
            return push_child(stream, node);
        }
        trace->is_folded = true;
        return true;
    case MR_EXACTNESS_EXACT:
        if (!last || mr_child_node(*last) != node || mr_child_repeat(*last) == UINT32_MAX)
            return push_child(stream, UINT64_C(1) << 32 | node);
        *last += UINT64_C(1) << 32;
        return true;
    case MR_EXACTNESS_SET:
        trace->is_folded |= last != NULL;
        return has_child(stream, first, node) || push_child(stream, node);
    }
    return false;
}

enum mr_status mr_reduce_collect(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream)
{
    const struct mr_trace *trace = &stream->traces[stream->trace_count - 1];
    uint32_t node, limit = reduce->config->trace_children_max;
    enum mr_status status = mr_reduce_node(reduce, stream, &node);

    if (status != MR_OK)
        return status;
    stream->depth--;
    if (!stream->is_collecting)
        return MR_OK;
    stream->child_count = stream->frames[stream->depth].first_child;
    if (node == MR_NODE_NONE ||
        stream->child_count - stream->frames[trace->frame].first_child >= limit) {
        mr_reduce_stop_collecting(reduce, stream, MR_REDUCE_TRACES_TOO_BIG);
        return MR_OK;
    }
    return add_child(reduce, stream, node) ? MR_OK : MR_ENOMEM;
}

/* The path of an UNKNOWN call whose exit told its site; otherwise that of its frame. */
static enum mr_status true_path(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                                const struct mr_event *event, uint32_t *path)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];

    *path = frame->path;
    if (!(event->flags & MR_EVENT_UNKNOWN) || event->site == mr_open_call_site(frame))
        return MR_OK;
    return get_path(reduce, stream, stream->depth - 1, event->flags, event->site, path);
}

static enum mr_status close_on(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               uint32_t path, const struct mr_event *event)
{
    enum mr_status status = MR_OK;

    if (path != MR_PATH_NONE)
        status = count_call(reduce, stream, path, event);
    if (status != MR_OK)
        return status;
    account(reduce, stream, path != MR_PATH_NONE, event->flags);
    if (!(event->flags & MR_EVENT_OUTER))
        stream->closed++;
    if (event->flags & MR_EVENT_ROOT)
        status = mr_reduce_end_trace(reduce, stream, path, event);
    else if (stream->is_collecting && !(event->flags & MR_EVENT_OUTER))
        return mr_reduce_collect(reduce, stream);
    stream->depth--;
    return status;
}

/* The innermost call ends with `event`, the one at hand. */
static void note(struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                 const struct mr_event *event)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];

    if (event->ns - frame->enter_ns >= reduce->noted.least_ns)
        mr_reduce_note(reduce, frame, stream->depth - 1, reduce->place - reduce->taken);
}

static enum mr_status close_call(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream,
                                 const struct mr_event *event)
{
    uint32_t path;
    enum mr_status status;

    MR_ASSERT(stream->depth > 0);
    note(reduce, stream, event);
    if (!mr_reduce_in_window(reduce, event->ns))
        mr_reduce_enter_window(reduce, event->ns);
    status = true_path(reduce, stream, event, &path);
    if (status == MR_OK && stream->counts)
        mr_reduce_counts_close(reduce, stream, path);
    if (status == MR_OK)
        status = close_on(reduce, stream, path, event);
    if (stream->counts && event->flags & (MR_EVENT_INCOMPLETE | MR_EVENT_UNWOUND))
        mr_reduce_counts_settle(stream); /* no exit: no values of it */
    return status;
}

static enum mr_status make_outer(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream, uint32_t at)
{
    struct mr_open_call *frame = &stream->frames[at];
    uint32_t path;
    enum mr_status status =
        get_path(reduce, stream, at, MR_EVENT_OUTER, mr_open_call_site(frame), &path);

    frame->path = path;
    frame->last = MR_PATH_NONE; /* of the tree that it was in */
    frame->next = MR_PATH_NONE;
    frame->first_child = stream->child_count;
    mr_open_call_set_flags(
        frame, MR_EVENT_OUTER | (frame->flags & (MR_EVENT_FAILED | MR_OPEN_LANDED)));
    return status;
}

/* The calls of the open tree are outer frames from now on, and it is none. */
static enum mr_status learn(struct mr_reduce *reduce, struct mr_reduce_stream *stream)
{
    uint32_t root = stream->traces[0].frame;
    enum mr_status status;

    MR_ASSERT(stream->trace_count == 1 && root < stream->depth);
    status = mr_reduce_count_part(reduce, stream);
    if (status == MR_OK && stream->has_links)
        status = mr_reduce_links_drop(reduce, stream);
    mr_reduce_exemplars_drop(reduce, &stream->traces[0]);
    mr_reduce_drop_trace(stream);
    for (uint32_t i = root; i < stream->depth && status == MR_OK; i++)
        status = make_outer(reduce, stream, i);
    return status;
}

static enum mr_status count_events(struct mr_reduce_stream *stream,
                                   const struct mr_event *event)
{
    uint64_t events = event->ns;

    stream->last += events;
    if (event->flags == 0) {
        stream->reduced += events;
        return MR_OK;
    }
    MR_ASSERT(event->flags < MR_LOSS_REASON_COUNT);
    stream->lost[event->flags] += events;
    stream->lost_sum += events;
    return MR_OK;
}

/* Its CLOSE will say it, too; but who resumes an open call has to know it before (pipeline/resume.h). */
static enum mr_status note_status(struct mr_reduce_stream *stream,
                                  const struct mr_event *event)
{
    struct mr_open_call *frame;

    MR_ASSERT(stream->depth > 0); /* reconstruct counts a status of no call */
    frame = &stream->frames[stream->depth - 1];
    mr_open_call_set_flags(frame, (frame->flags & (uint32_t)~MR_EVENT_FAILED) |
                                      (event->site ? MR_EVENT_FAILED : 0u));
    stream->last++;
    stream->reduced++;
    return MR_OK;
}

enum mr_status mr_reduce_step(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              const struct mr_event *event)
{
    if (event->kind > MR_EVENT_CLOSE || event->flags)
        reduce->noted.is_left = true;
    if (event->kind == MR_EVENT_VALUE)
        return mr_reduce_counts_value(reduce, stream, event);
    if (event->kind == MR_EVENT_WORD)
        return mr_reduce_link(reduce, stream, event);
    mr_reduce_mark_dirty(reduce, stream);
    if (stream->counts && event->kind != MR_EVENT_TRACE_BROKEN &&
        event->kind != MR_EVENT_LEARNED && event->kind != MR_EVENT_TRACE_PRUNED &&
        event->kind != MR_EVENT_LANDED_IN) /* these may come before the values */
        mr_reduce_counts_settle(stream);
    switch (event->kind) {
    case MR_EVENT_OPEN:
        return open_call(reduce, stream, event);
    case MR_EVENT_CLOSE:
        return close_call(reduce, stream, event);
    case MR_EVENT_STATUS:
        return note_status(stream, event);
    case MR_EVENT_COUNTED:
        return count_events(stream, event);
    case MR_EVENT_TRACE_BROKEN:
        mr_reduce_break_traces(stream);
        return MR_OK;
    case MR_EVENT_TRACE_PRUNED:
        mr_reduce_leave_shapes(reduce, stream, MR_REDUCE_TRACES_PRUNED);
        return MR_OK;
    case MR_EVENT_LANDED_IN:
        return mr_reduce_marks_landing(stream, event);
    case MR_EVENT_LEARNED:
        return learn(reduce, stream);
    case MR_EVENT_STREAM_END:
        if (event->flags & MR_EVENT_END_HANDED_OVER)
            return mr_reduce_hand_over(reduce, stream, event->ns);
        MR_ASSERT(stream->depth == 0);
        return stream->links ? mr_reduce_links_end(reduce, stream) : MR_OK;
    case MR_EVENT_LINK:
        return mr_reduce_link(reduce, stream, event);
    default:
        MR_ASSERT(false); /* reconstruct emits nothing else */
    }
    return MR_ESTATE;
}
