/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

#define SLOTS_FIRST 1024u
/*
 * Traces past the budget, with none between them that came before: after REFUSED an entry point rests for REST, then TRIED are
 * tried, and so on; after REFUSED_LONG it rests for REST_LONG, or, with the next delta or window, for REST.
 */
#define REFUSED 16u
#define REFUSED_LONG 32u
#define TRIED 4u
#define REST 60u
#define REST_LONG 1020u

static void update_collecting(struct mr_reduce_stream *stream)
{
    const struct mr_trace *trace = &stream->traces[stream->trace_count - 1];

    stream->is_collecting =
        stream->trace_count > 0 && !trace->is_broken && !trace->is_over;
}

static struct mr_entry *known_entry(const struct mr_reduce *reduce, uint32_t path)
{
    uint32_t number = path == MR_PATH_NONE ? 0 : reduce->paths.nodes[path].entry;

    return number ? &reduce->entries[number - 1] : NULL;
}

/*
 * Looking for the nodes of a trace that will be refused costs more than counting it by path. So an entry point whose traces
 * all were rests: only a few of its next ones are looked at. A new shape for which there was budget ends that as little as it
 * begins it: with each refill some are.
 */
static void count_refused(const struct mr_reduce *reduce, uint32_t path)
{
    struct mr_entry *entry = known_entry(reduce, path);

    if (!entry || ++entry->refused < REFUSED || entry->refused % TRIED)
        return;
    entry->rest = REST;
    if (entry->refused < REFUSED_LONG)
        return;
    entry->rest = REST_LONG;
    entry->refused = REFUSED_LONG - TRIED;
}

static void reset_refused(const struct mr_reduce *reduce, uint32_t path)
{
    struct mr_entry *entry = known_entry(reduce, path);

    if (entry)
        entry->refused = 0;
}

/* Whether the trace that begins on `path` is not looked at. */
static bool is_at_rest(struct mr_reduce *reduce, uint32_t path)
{
    struct mr_entry *entry = known_entry(reduce, path);

    if (!entry || entry->rest == 0)
        return false;
    entry->rest--;
    mr_counters_add(&reduce->counters, MR_REDUCE_TRACES_NEW, 1);
    return true;
}

void mr_reduce_begin_trace(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                           const struct mr_event *open)
{
    bool is_over;

    MR_ASSERT(stream->trace_count < MR_REDUCE_TRACES_OPEN && stream->depth > 0);
    is_over = is_at_rest(reduce, stream->frames[stream->depth - 1].path);
    stream->traces[stream->trace_count++] =
        (struct mr_trace){.closed = stream->closed,
                          .first = (uint32_t)(open - reduce->events),
                          .frame = stream->depth - 1,
                          .is_over = is_over};
    stream->is_collecting = !is_over;
}

void mr_reduce_drop_trace(struct mr_reduce_stream *stream)
{
    MR_ASSERT(stream->trace_count > 0);
    MR_ASSERT(!stream->traces[stream->trace_count - 1].condense &&
              !stream->traces[stream->trace_count - 1].asked);
    stream->child_count =
        stream->frames[stream->traces[--stream->trace_count].frame].first_child;
    if (stream->trace_count == 0)
        stream->is_collecting = false;
    else
        update_collecting(stream);
}

void mr_reduce_break_traces(struct mr_reduce_stream *stream)
{
    if (stream->trace_count == 0)
        return;
    for (uint32_t i = 0; i < stream->trace_count; i++)
        stream->traces[i].is_broken = true;
    stream->child_count = stream->frames[stream->traces[0].frame].first_child;
    stream->is_collecting = false;
}

void mr_reduce_leave_shapes(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                            enum mr_reduce_counter why)
{
    if (stream->trace_count == 0)
        return;
    for (uint32_t i = 0; i < stream->trace_count; i++) {
        mr_counters_add(&reduce->counters, why,
                        !stream->traces[i].is_over && !stream->traces[i].is_broken);
        stream->traces[i].is_over = true;
    }
    stream->child_count = stream->frames[stream->traces[0].frame].first_child;
    stream->is_collecting = false;
}

void mr_reduce_stop_collecting(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               enum mr_reduce_counter why)
{
    struct mr_trace *trace = &stream->traces[stream->trace_count - 1];

    MR_ASSERT(stream->trace_count > 0 && !trace->is_over);
    mr_counters_add(&reduce->counters, why, 1);
    if (why == MR_REDUCE_TRACES_NEW)
        count_refused(reduce, stream->frames[trace->frame].path);
    trace->is_over = true;
    stream->child_count = stream->frames[trace->frame].first_child;
    stream->is_collecting = false;
}

/* The node of a call whose children are those of its path's last one. */
static uint32_t known_node(const struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    uint32_t node = reduce->paths.nodes[frame->path].expected;

    if (reduce->config->exactness != MR_EXACTNESS_FOLDED ||
        !mr_node_has(&reduce->nodes, node, frame->hash,
                     stream->child_count - frame->first_child))
        return MR_NODE_NONE;
    return node;
}

/* Interns the children of the innermost call. False when there is no room. */
static bool intern(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                   uint32_t *node)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];

    *node = mr_nodes_intern(&reduce->nodes, mr_open_call_site(frame),
                            stream->children + frame->first_child,
                            stream->child_count - frame->first_child);
    if (*node != MR_NODE_NONE)
        reduce->paths.nodes[frame->path].expected = *node;
    else if (reduce->nodes.is_refused)
        mr_reduce_stop_collecting(reduce, stream, MR_REDUCE_TRACES_NEW);
    return *node != MR_NODE_NONE || reduce->nodes.is_refused;
}

enum mr_status mr_reduce_node(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              uint32_t *node)
{
    enum mr_status status;

    *node = known_node(reduce, stream);
    if (*node != MR_NODE_NONE || intern(reduce, stream, node))
        return MR_OK;
    status = mr_reduce_forget(reduce);
    if (status == MR_OK && stream->is_collecting)
        (void)intern(reduce, stream, node);
    return status;
}

static bool add_entry(struct mr_reduce *reduce, uint32_t path)
{
    if (reduce->entry_count == reduce->entry_capacity) {
        uint32_t capacity = reduce->entry_capacity ? 2 * reduce->entry_capacity : 64;
        struct mr_entry *grown = realloc(reduce->entries, capacity * sizeof(*grown));

        if (!grown)
            return false;
        reduce->entries = grown;
        reduce->entry_capacity = capacity;
    }
    reduce->entries[reduce->entry_count++] = (struct mr_entry){
        .path = path,
        .extremes = {mr_reduce_no_extremes(reduce), mr_reduce_no_extremes(reduce)}};
    reduce->paths.nodes[path].entry = reduce->entry_count;
    return true;
}

struct mr_entry *mr_reduce_entry(struct mr_reduce *reduce, uint32_t path)
{
    MR_ASSERT(reduce->paths.nodes[path].flags & MR_PATH_ROOT);
    if (reduce->paths.nodes[path].entry == 0 && !add_entry(reduce, path))
        return NULL;
    return &reduce->entries[reduce->paths.nodes[path].entry - 1];
}

static uint32_t shape_hash(uint32_t root, uint32_t node)
{
    return (uint32_t)(((uint64_t)root << 32 | node) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static uint32_t *shape_slot(const struct mr_reduce *reduce, uint32_t root, uint32_t node)
{
    uint32_t at = shape_hash(root, node) & reduce->shape_mask;

    while (reduce->shape_slots[at]) {
        const struct mr_shape *shape = &reduce->shapes[reduce->shape_slots[at] - 1];

        if (shape->root == root && shape->node == node)
            break;
        at = (at + 1) & reduce->shape_mask;
    }
    return &reduce->shape_slots[at];
}

static bool grow_shapes(struct mr_reduce *reduce)
{
    uint32_t capacity =
        reduce->shape_capacity ? 2 * reduce->shape_capacity : SLOTS_FIRST / 2;
    struct mr_shape *shapes = realloc(reduce->shapes, capacity * sizeof(*shapes));
    uint32_t *slots;

    if (!shapes)
        return false;
    reduce->shapes = shapes;
    slots = calloc(2 * (size_t)capacity, sizeof(*slots));
    if (!slots)
        return false;
    free(reduce->shape_slots);
    reduce->shape_slots = slots;
    reduce->shape_mask = 2 * capacity - 1;
    reduce->shape_capacity = capacity;
    for (uint32_t i = 0; i < reduce->shape_count; i++)
        *shape_slot(reduce, shapes[i].root, shapes[i].node) = i + 1;
    return true;
}

/* The shape of the entry point's last trace, when it is this one. */
static struct mr_shape *known_shape(const struct mr_reduce *reduce, uint32_t root,
                                    uint32_t node)
{
    uint32_t entry = root == MR_PATH_NONE ? 0 : reduce->paths.nodes[root].entry;
    uint32_t last = entry ? reduce->entries[entry - 1].last_shape : 0;

    if (last == 0 || reduce->shapes[last - 1].node != node)
        return NULL;
    return &reduce->shapes[last - 1];
}

uint32_t mr_reduce_find_shape(const struct mr_reduce *reduce, uint32_t root,
                              uint32_t node)
{
    return reduce->shape_slots ? *shape_slot(reduce, root, node) : 0;
}

/* MR_ELIMIT when it is new and the table full. */
static enum mr_status find_shape(struct mr_reduce *reduce, uint32_t root, uint32_t node,
                                 struct mr_shape **shape)
{
    uint32_t *slot;

    if (reduce->shape_count == reduce->shape_capacity &&
        reduce->shape_capacity < reduce->config->shapes_max && !grow_shapes(reduce))
        return MR_ENOMEM;
    slot = shape_slot(reduce, root, node);
    if (*slot == 0) {
        if (reduce->shape_count == reduce->config->shapes_max)
            return MR_ELIMIT;
        reduce->shapes[reduce->shape_count++] = (struct mr_shape){
            .root = root, .node = node, .extremes = mr_reduce_no_extremes(reduce)};
        *slot = reduce->shape_count;
        mr_node_budget_pay(&reduce->node_budget, MR_NODE_BUDGET_SHAPE);
    }
    *shape = &reduce->shapes[*slot - 1];
    return MR_OK;
}

/* The shape of the root on top of the stack. NULL with MR_OK when there is no room for it at all. */
static enum mr_status get_shape(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                                struct mr_shape **shape)
{
    const struct mr_open_call *frame = &stream->frames[stream->depth - 1];
    enum mr_status status = MR_ELIMIT;
    uint32_t node;

    *shape = NULL;
    for (int round = 0; round < 2 && status == MR_ELIMIT; round++) {
        if (round > 0)
            status = mr_reduce_forget(reduce);
        else
            status = MR_OK;
        if (status == MR_OK && stream->is_collecting)
            status = mr_reduce_node(reduce, stream, &node);
        if (status != MR_OK || !stream->is_collecting || node == MR_NODE_NONE)
            return status;
        *shape = known_shape(reduce, frame->path, node);
        if (!*shape)
            status = find_shape(reduce, frame->path, node, shape);
    }
    return status;
}

/* Counted or not since the last delta, it has been told or is to be. */
static bool came_before(const struct mr_shape *shape)
{
    return shape->payload != 0 || shape->is_touched;
}

static enum mr_status begin_shape(struct mr_reduce *reduce, struct mr_shape *shape)
{
    enum mr_status status = MR_OK;

    if (shape->window != 0 && shape->window != reduce->window)
        status = mr_reduce_shape_row(reduce, shape);
    if (status != MR_OK || shape->window == reduce->window)
        return status;
    *shape = (struct mr_shape){.root = shape->root,
                               .node = shape->node,
                               .payload = shape->payload,
                               .index = shape->index,
                               .extremes = shape->extremes,
                               .asked_revision = shape->asked_revision,
                               .asked = shape->asked,
                               .window = reduce->window,
                               .is_touched = shape->is_touched};
    if (!shape->is_touched &&
        !mr_list_push(&reduce->touched_shapes, (uint32_t)(shape - reduce->shapes)))
        return MR_ENOMEM;
    shape->is_touched = true;
    return MR_OK;
}

/* Begins the window and makes room for the bin. */
static enum mr_status prepare_shape(struct mr_reduce *reduce, struct mr_shape *shape,
                                    uint64_t ns, uint32_t bin)
{
    enum mr_status status = begin_shape(reduce, shape);

    if (status != MR_OK || ns == 0 || mr_bins_has(&shape->bins, bin) ||
        mr_bins_grow(&shape->bins, &reduce->bins, bin))
        return status;
    mr_counters_add(&reduce->counters, MR_REDUCE_EARLY, 1);
    status = mr_reduce_flush(reduce);
    if (status == MR_OK)
        status = begin_shape(reduce, shape);
    if (status != MR_OK)
        return status;
    return mr_bins_grow(&shape->bins, &reduce->bins, bin) ? MR_OK : MR_ENOMEM;
}

static enum mr_status count_shape(struct mr_reduce *reduce, struct mr_shape *shape,
                                  uint64_t ns, uint64_t calls, bool is_folded,
                                  const struct mr_event *close)
{
    uint32_t bin = ns ? mr_reduce_bin(reduce, ns) : 0;
    enum mr_status status = prepare_shape(reduce, shape, ns, bin);

    if (status != MR_OK)
        return status;
    mr_reduce_add_shape(reduce, shape, &(struct mr_ended){ns, calls, bin, is_folded},
                        close);
    return MR_OK;
}

/* The entry point of `path`, to count in this window. */
static enum mr_status prepare_entry(struct mr_reduce *reduce, uint32_t path,
                                    struct mr_entry **prepared)
{
    struct mr_entry *entry = mr_reduce_entry(reduce, path);

    *prepared = entry;
    if (!entry)
        return MR_ENOMEM;
    if (entry->window != 0 && entry->window != reduce->window) {
        enum mr_status status = mr_reduce_entry_row(reduce, entry);

        if (status != MR_OK)
            return status;
    }
    if (entry->window == 0) {
        if (!entry->is_touched &&
            !mr_list_push(&reduce->touched_entries, (uint32_t)(entry - reduce->entries)))
            return MR_ENOMEM;
        entry->is_touched = true;
        entry->window = reduce->window;
        entry->rest = entry->rest < REST ? entry->rest : REST;
        entry->stats = (struct mr_entry_stats){{0}, {0}, {0}};
    }
    return MR_OK;
}

static enum mr_status count_entry(struct mr_reduce *reduce, uint32_t path,
                                  enum mr_coverage coverage, uint64_t calls, uint64_t ns,
                                  const struct mr_shape *shape)
{
    struct mr_entry *entry;
    enum mr_status status = prepare_entry(reduce, path, &entry);

    if (status == MR_OK)
        mr_reduce_add_entry(reduce, entry, shape, coverage, calls, ns);
    return status;
}

enum mr_status mr_reduce_count_part(struct mr_reduce *reduce,
                                    const struct mr_reduce_stream *stream)
{
    const struct mr_trace *trace = &stream->traces[0];
    uint32_t path = stream->frames[trace->frame].path;
    struct mr_entry *entry;
    enum mr_status status;
    uint64_t ns = 0;

    MR_ASSERT(stream->trace_count == 1);
    if (path == MR_PATH_NONE)
        return MR_OK;
    for (uint32_t i = trace->frame; i < stream->depth; i++)
        ns += stream->frames[i].child_ns;
    status = prepare_entry(reduce, path, &entry);
    if (status != MR_OK)
        return status;
    entry->stats.calls[MR_COVERAGE_PATHS] +=
        stream->closed - trace->closed - trace->elsewhere;
    entry->stats.time_ns[MR_COVERAGE_PATHS] += ns;
    return MR_OK;
}

static bool is_incomplete(const struct mr_trace *trace, const struct mr_event *close)
{
    return trace->is_broken || (close->flags & (MR_EVENT_INCOMPLETE | MR_EVENT_UNKNOWN));
}

static enum mr_status keep_trace(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream, uint32_t path,
                                 struct mr_shape *shape, bool is_incomplete,
                                 const struct mr_event *close)
{
    const struct mr_trace *trace = &stream->traces[stream->trace_count - 1];
    struct mr_entry *entry = mr_reduce_entry(reduce, path);
    uint64_t start_ns = stream->frames[trace->frame].enter_ns;
    const struct mr_kept kept = {
        .shape = shape,
        .extremes = shape ? &shape->extremes : &entry->extremes[is_incomplete],
        .ns = close->ns - start_ns,
        .start_ns = start_ns + (uint64_t)reduce->wall_shift_ns,
        .calls = stream->closed - trace->closed - trace->elsewhere,
        .path = path,
        .is_failed = (close->flags & (MR_EVENT_FAILED | MR_EVENT_UNWOUND)) != 0,
        .is_incomplete = is_incomplete};

    MR_ASSERT(entry); /* the trace has just been counted there */
    return mr_reduce_exemplars_end(reduce, stream, &kept, close);
}

enum mr_status mr_reduce_end_trace(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream, uint32_t path,
                                   const struct mr_event *close)
{
    struct mr_trace trace = stream->traces[stream->trace_count - 1];
    uint64_t ns = close->ns - stream->frames[trace.frame].enter_ns;
    uint64_t calls = stream->closed - trace.closed - trace.elsewhere;
    enum mr_coverage coverage = MR_COVERAGE_PATHS;
    enum mr_status status = MR_OK;
    struct mr_shape *shape = NULL;

    MR_ASSERT(stream->trace_count > 0 && trace.frame == stream->depth - 1);
    if (is_incomplete(&trace, close)) {
        coverage = MR_COVERAGE_INCOMPLETE;
    } else if (!trace.is_over) {
        status = get_shape(reduce, stream, &shape);
        if (status == MR_ELIMIT)
            status = MR_OK; /* shapes_max is 0 or filled by nothing: paths only */
        path = stream->frames[trace.frame].path; /* forgetting gives it a new number */
        if (status == MR_OK && shape) {
            if (came_before(shape))
                reset_refused(reduce, path);
            coverage = trace.is_folded ? MR_COVERAGE_FOLDED : MR_COVERAGE_WHOLE;
            status = count_shape(reduce, shape, ns, calls, trace.is_folded, close);
        }
    }
    if (status == MR_OK && stream->has_links)
        status = mr_reduce_links_close(reduce, stream, shape, close,
                                       coverage == MR_COVERAGE_INCOMPLETE);
    if (status == MR_OK && path != MR_PATH_NONE)
        status = count_entry(reduce, path, coverage, calls, ns, shape);
    if (status == MR_OK && path != MR_PATH_NONE)
        status = keep_trace(reduce, stream, path, shape,
                            coverage == MR_COVERAGE_INCOMPLETE, close);
    mr_reduce_exemplars_drop(reduce, &stream->traces[stream->trace_count - 1]);
    mr_reduce_drop_trace(stream);
    if (stream->trace_count)
        stream->traces[stream->trace_count - 1].elsewhere += calls + trace.elsewhere;
    return status;
}
