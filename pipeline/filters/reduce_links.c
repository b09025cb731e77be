/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts: what call trees say of sends, receives and hand-offs, told upward as headers
 * (net/part.h) for whoever joins them (pipeline/joiner.h).
 *
 * Which part an event belongs to:
 *
 *     under mr_attach()             that of the attachment, which the call trees below it are
 *     in a call tree                that of the call tree
 *     outside of both: receive      that of the next call tree; none came before a detach: a stub
 *                      send, capture  a stub of its own: a trace begins there
 *
 * A part has at most one edge in: the first receive, if nothing went out before it. What
 * comes later into it (an answer) is a stub, which ends the edge. The second and further
 * call trees of one attachment hang on the one before by an edge of kind next, so a
 * finished one is held until the next begins or the attachment ends.
 *
 * A stream without such events has no memory for them, and its call trees cost a look at
 * one flag. Bounded: MR_PART_EDGES_MAX edges of a part (the rest are lost, budget, and the
 * part incomplete), TREES_MAX call trees of an attachment.
 */
#include <assert.h>
#include <string.h>

#include "base/assert.h"
#include "net/ids.h"
#include "pipeline/filters/reduce_private.h"
#include "pipeline/resume.h"

static_assert(MR_RESUME_TRACES_MAX == MR_REDUCE_TRACES_OPEN, "a draft of each");

#define EDGES_FIRST 4u
#define TREES_MAX 256u /* of one attachment */
#define END_UNKNOWN 0u /* instead of a time */

/* A part that is not told yet. */
struct draft {
    bool is_used,
        is_ended; /* is_ended: its call tree has ended, the fields below are set */
    bool is_cut;
    struct mr_part_edge in;
    struct mr_id trace;
    struct mr_part_edge *out;
    uint32_t out_count, out_capacity;
    struct mr_id path, node;
    uint64_t start_ns, end_ns;
    uint32_t status; /* enum mr_part_status */
};

struct mr_reduce_links {
    uint64_t words[MR_LINK_WORDS]; /* of the link that comes */
    uint64_t part_count;
    struct draft trees[MR_REDUCE_TRACES_OPEN]; /* of the open call trees */
    struct draft next;                         /* of the next one: a receive came */
    struct draft attached;
    bool is_attached;
    uint32_t nested;        /* attaches within it, or within two call trees */
    uint32_t trees_outside; /* call trees that were open when it began */
    uint32_t tree_count;    /* of it, so far */
};

static void update(struct mr_reduce_stream *stream)
{
    const struct mr_reduce_links *links = stream->links;

    stream->has_links = links->is_attached || links->next.is_used ||
                        links->trees[0].is_used || links->trees[1].is_used;
}

static void free_draft(struct draft *draft)
{
    free(draft->out);
    *draft = (struct draft){0};
}

/* As new, but its memory. */
static void clear_draft(struct draft *draft)
{
    *draft = (struct draft){.out = draft->out, .out_capacity = draft->out_capacity};
}

static void move_draft(struct draft *to, struct draft *from)
{
    struct draft kept = *to;

    *to = *from;
    *from = (struct draft){.out = kept.out, .out_capacity = kept.out_capacity};
}

/*
 * Of the next part of the stream. Numbered from the first event that this lane accounts
 * for: a stream that moves to another worker has other numbers there. One that was resumed
 * goes on behind all numbers that may have been given, for a part has an event of its own.
 */
static struct mr_id next_id(const struct mr_reduce_stream *stream)
{
    return mr_id_part(stream->source, stream->id,
                      stream->base_event + stream->parts_before +
                          stream->links->part_count);
}

static enum mr_status tell(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                           const struct draft *draft, uint32_t flags)
{
    struct mr_part part = {
        .id = next_id(stream),
        .trace = draft->trace,
        .path = draft->path,
        .node = draft->node,
        .source = stream->source,
        .start_ns = draft->start_ns,
        .end_ns = draft->end_ns,
        .shift_ns = reduce->wall_shift_ns,
        .status = draft->is_cut ? MR_PART_INCOMPLETE : draft->status,
        .flags = flags | (draft->is_cut ? MR_PART_CUT : 0u),
        .in = draft->in,
        .out = draft->out,
        .out_count = draft->out_count,
    };

    stream->links->part_count++;
    mr_counters_add(&reduce->counters, MR_REDUCE_PARTS, 1);
    return mr_reduce_part_row(reduce, &part);
}

/* The path of the innermost outer frame, or of the entry point of the innermost call tree. */
static struct mr_id place_of(const struct mr_reduce *reduce,
                             const struct mr_reduce_stream *stream)
{
    struct mr_id above = reduce->scopes[stream->scope].id;
    uint32_t at = stream->trace_count ? stream->traces[stream->trace_count - 1].frame : 0;

    if (stream->trace_count)
        return mr_id_path(above, mr_sites_at(reduce->config->sites,
                                             mr_open_call_site(&stream->frames[at]))
                                     ->id);
    if (stream->depth == 0)
        return (struct mr_id){0, 0};
    for (; at < stream->depth; at++)
        above =
            mr_id_outer_path(above, mr_sites_at(reduce->config->sites,
                                                mr_open_call_site(&stream->frames[at]))
                                        ->id);
    return above;
}

/* A part without a call tree, which was over at `ns`; END_UNKNOWN: nothing is known of it past its last edge. */
static enum mr_status tell_stub(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                                struct draft *draft, uint64_t ns)
{
    draft->path = place_of(reduce, stream);
    draft->node = (struct mr_id){0, 0};
    MR_ASSERT(draft->in.kind != MR_EDGE_NONE || draft->out_count > 0);
    draft->start_ns = draft->in.kind ? draft->in.ns : draft->out[0].ns;
    draft->end_ns = ns > draft->start_ns ? ns : draft->start_ns;
    for (uint32_t i = 0; i < draft->out_count; i++) {
        if (draft->out[i].ns < draft->start_ns)
            draft->start_ns = draft->out[i].ns;
        if (draft->out[i].ns > draft->end_ns)
            draft->end_ns = draft->out[i].ns;
    }
    return tell(reduce, stream, draft, MR_PART_STUB);
}

/* A part whose call tree has ended, or that never had one. */
static enum mr_status tell_attached(struct mr_reduce *reduce,
                                    struct mr_reduce_stream *stream, uint64_t ns)
{
    struct draft *draft = &stream->links->attached;

    return draft->is_ended ? tell(reduce, stream, draft, 0)
                           : tell_stub(reduce, stream, draft, ns);
}

/* False: it has as many as it may. MR_ENOMEM is told by *status. */
static bool add_out(struct draft *draft, const struct mr_part_edge *edge,
                    enum mr_status *status)
{
    if (draft->out_count == MR_PART_EDGES_MAX) {
        draft->is_cut = true;
        return false;
    }
    if (draft->out_count == draft->out_capacity) {
        uint32_t capacity = draft->out_capacity ? 2 * draft->out_capacity : EDGES_FIRST;
        struct mr_part_edge *grown = realloc(draft->out, capacity * sizeof(*grown));

        if (!grown) {
            *status = MR_ENOMEM;
            return true;
        }
        draft->out = grown;
        draft->out_capacity = capacity;
    }
    draft->out[draft->out_count++] = *edge;
    return true;
}

/* The draft that an event now belongs to, or NULL outside of all. */
static struct draft *current(const struct mr_reduce_stream *stream)
{
    struct mr_reduce_links *links = stream->links;

    if (links->is_attached && stream->trace_count <= links->trees_outside + 1)
        return &links->attached;
    return stream->trace_count ? &links->trees[stream->trace_count - 1] : NULL;
}

static enum mr_status account(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              bool is_taken)
{
    stream->last++;
    if (is_taken) {
        stream->reduced++;
        return MR_OK;
    }
    mr_counters_add(&reduce->counters, MR_REDUCE_LINKS_LOST, 1);
    stream->lost[MR_LOSS_BUDGET]++;
    stream->lost_sum++;
    return MR_OK;
}

/* Of a part that is outside of call trees as far as was seen. */
static uint32_t status_of_stub(const struct mr_event *link)
{
    return link->flags & MR_EVENT_INCOMPLETE ? MR_PART_INCOMPLETE : MR_PART_OK;
}

/* `stub_status`: of the part, if it is one without a call tree; so below. */
static enum mr_status go_out(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                             const struct mr_part_edge *edge, struct mr_id trace,
                             uint32_t stub_status)
{
    struct draft *draft = current(stream), stub = {0};
    enum mr_status status = MR_OK;
    struct mr_part_edge alone = *edge;
    bool is_taken = true;

    if (draft) {
        draft->is_used = true;
        if (mr_id_is_zero(draft->trace))
            draft->trace = trace;
        is_taken = add_out(draft, edge, &status);
    } else {
        stub.status = stub_status;
        stub.out = &alone;
        stub.out_count = 1;
        stub.trace = trace;
        status = tell_stub(reduce, stream, &stub, edge->ns);
    }
    return status == MR_OK ? account(reduce, stream, is_taken) : status;
}

/* The edge ends in a stub: what came in here is not what the current part began with. */
static enum mr_status end_edge(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                               const struct mr_part_edge *edge, struct mr_id trace,
                               uint32_t stub_status)
{
    struct draft stub = {.in = *edge, .trace = trace, .status = stub_status};

    return tell_stub(reduce, stream, &stub, edge->ns);
}

/* No call tree has followed on what came, and none will: a stub. */
static enum mr_status end_received(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream, uint64_t ns)
{
    struct draft *next = &stream->links->next;
    enum mr_status status = next->is_used ? tell_stub(reduce, stream, next, ns) : MR_OK;

    clear_draft(next);
    return status;
}

static enum mr_status come_in(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              const struct mr_part_edge *edge, struct mr_id trace,
                              uint32_t stub_status)
{
    struct mr_reduce_links *links = stream->links;
    struct draft *draft = current(stream);
    enum mr_status status = MR_OK;

    if (!draft) {
        status = end_received(reduce, stream, END_UNKNOWN);
        draft = &links->next;
        draft->status = stub_status;
    }
    if (status != MR_OK)
        return status;
    if (draft->in.kind != MR_EDGE_NONE || draft->out_count > 0 || draft->is_ended)
        status = end_edge(reduce, stream, edge, trace, stub_status);
    else
        draft->in = *edge;
    draft->is_used = true;
    if (mr_id_is_zero(draft->trace))
        draft->trace = trace;
    return status == MR_OK ? account(reduce, stream, true) : status;
}

static enum mr_status take_message(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream,
                                   const struct mr_event *event)
{
    const uint64_t *words = stream->links->words;
    struct mr_id trace = {words[0], words[1]};
    struct mr_part_edge edge = {
        .key = mr_id_message(trace, words[2]), .ns = event->ns, .kind = MR_EDGE_MESSAGE};

    if (mr_id_is_zero(trace) || words[2] == 0) {
        enum mr_status status = MR_OK;

        mr_counters_add(&reduce->counters, MR_REDUCE_LINKS_MALFORMED, 1);
        if (event->site == MR_LINK_RECEIVE && !current(stream))
            status = end_received(reduce, stream, END_UNKNOWN);
        return status == MR_OK ? account(reduce, stream, true) : status;
    }
    return event->site == MR_LINK_SEND
               ? go_out(reduce, stream, &edge, trace, status_of_stub(event))
               : come_in(reduce, stream, &edge, trace, status_of_stub(event));
}

/* The attachment ends; a call tree of it that is open goes on by itself. */
static enum mr_status end_attached(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream, uint64_t ns)
{
    struct mr_reduce_links *links = stream->links;
    enum mr_status status = MR_OK;

    if (!links->is_attached)
        return MR_OK;
    if (stream->trace_count > links->trees_outside)
        move_draft(&links->trees[links->trees_outside], &links->attached);
    else
        status = tell_attached(reduce, stream, ns);
    clear_draft(&links->attached);
    links->is_attached = false;
    return status;
}

static enum mr_status attach(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                             const struct mr_part_edge *edge, uint32_t stub_status)
{
    struct mr_reduce_links *links = stream->links;
    enum mr_status status = MR_OK;

    /* No call tree of the one before is open: that was left without its detach, and is over. */
    if (links->is_attached && stream->trace_count == links->trees_outside)
        status = end_attached(reduce, stream, END_UNKNOWN);
    if (status != MR_OK)
        return status;
    if (links->is_attached) {
        links->nested++;
        status = end_edge(reduce, stream, edge, (struct mr_id){0, 0}, stub_status);
    } else if (stream->trace_count == MR_REDUCE_TRACES_OPEN) {
        links->nested++; /* no call tree can begin below: it is that of the open one */
        return come_in(reduce, stream, edge, (struct mr_id){0, 0}, stub_status);
    } else {
        clear_draft(&links->attached);
        links->attached.in = *edge;
        links->attached.status = stub_status;
        links->attached.is_used = true;
        links->is_attached = true;
        links->nested = 0;
        links->tree_count = 0;
        links->trees_outside = stream->trace_count;
    }
    return status == MR_OK ? account(reduce, stream, true) : status;
}

static enum mr_status detach(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                             uint64_t ns)
{
    struct mr_reduce_links *links = stream->links;
    enum mr_status status = MR_OK;

    if (links->nested > 0) {
        links->nested--;
    } else if (links->is_attached) {
        status = end_attached(reduce, stream, ns);
    } else {
        mr_counters_add(&reduce->counters, MR_REDUCE_LINKS_UNMATCHED, 1);
        status = end_received(reduce, stream, ns);
    }
    return status == MR_OK ? account(reduce, stream, true) : status;
}

static enum mr_status take_link(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                                const struct mr_event *event)
{
    struct mr_part_edge edge = {.ns = event->ns, .kind = MR_EDGE_HAND_OFF};
    enum mr_status status;

    switch ((enum mr_link_kind)event->site) {
    case MR_LINK_SEND:
    case MR_LINK_RECEIVE:
        return take_message(reduce, stream, event);
    case MR_LINK_CAPTURE:
    case MR_LINK_ATTACH:
        edge.key = mr_id_hand_off(stream->source, stream->links->words[0]);
        return event->site == MR_LINK_CAPTURE
                   ? go_out(reduce, stream, &edge, (struct mr_id){0, 0},
                            status_of_stub(event))
                   : attach(reduce, stream, &edge, status_of_stub(event));
    case MR_LINK_DETACH:
        return detach(reduce, stream, event->ns);
    case MR_LINK_DONE:
        status = current(stream) ? MR_OK : end_received(reduce, stream, event->ns);
        return status == MR_OK ? account(reduce, stream, true) : status;
    case MR_LINK_LOST:
        stream->links->nested = 0;
        return end_attached(reduce, stream, event->ns);
    case MR_LINK_LOST_RECEIVED:
        return end_received(reduce, stream, END_UNKNOWN);
    }
    return MR_OK;
}

enum mr_status mr_reduce_link(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                              const struct mr_event *event)
{
    enum mr_status status = MR_OK;

    if (!stream->links && event->kind == MR_EVENT_LINK &&
        event->site == MR_LINK_LOST_RECEIVED)
        return MR_OK; /* told of every stream */
    if (!stream->links)
        stream->links = calloc(1, sizeof(*stream->links));
    if (!stream->links)
        return MR_ENOMEM;
    if (event->kind == MR_EVENT_WORD) {
        MR_ASSERT(event->site < MR_LINK_WORDS);
        stream->links->words[event->site] = event->ns;
        return MR_OK;
    }
    status = take_link(reduce, stream, event);
    update(stream);
    return status;
}

/* Another call tree of the attachment: it hangs on the one before. */
static enum mr_status follow_on(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                                uint64_t ns)
{
    struct draft *draft = &stream->links->attached;
    struct mr_part_edge edge = {.ns = draft->end_ns, .kind = MR_EDGE_NEXT};
    struct mr_id trace = draft->trace;
    enum mr_status status = MR_OK;

    edge.key = mr_id_next(next_id(stream));
    (void)add_out(draft, &edge, &status);
    if (status == MR_OK)
        status = tell(reduce, stream, draft, 0);
    clear_draft(draft);
    draft->in = edge;
    draft->in.ns = ns;
    draft->trace = trace;
    draft->is_used = true;
    return status;
}

enum mr_status mr_reduce_links_open(struct mr_reduce *reduce,
                                    struct mr_reduce_stream *stream)
{
    struct mr_reduce_links *links = stream->links;
    uint32_t at = stream->trace_count - 1;
    uint64_t ns = stream->frames[stream->depth - 1].enter_ns;
    enum mr_status status = MR_OK;

    MR_ASSERT(stream->trace_count > 0);
    if (links->is_attached && at == links->trees_outside) {
        if (links->attached.is_ended)
            status = follow_on(reduce, stream, ns);
        links->tree_count++;
    } else if (at == 0 && links->next.is_used) {
        move_draft(&links->trees[0], &links->next);
        clear_draft(&links->next);
    }
    if (links->is_attached && links->tree_count > TREES_MAX) {
        links->tree_count = 0;
        links->is_attached = false; /* what follows is told, but not joined */
        links->attached.is_cut = true;
        move_draft(&links->trees[at], &links->attached);
        mr_counters_add(&reduce->counters, MR_REDUCE_LINKS_LOST, 1);
    }
    update(stream);
    return status;
}

/* What the call tree that is the innermost has come to. */
static void finish(const struct mr_reduce *reduce, const struct mr_reduce_stream *stream,
                   struct draft *draft, const struct mr_shape *shape,
                   const struct mr_event *close, bool is_incomplete)
{
    const struct mr_trace *trace = &stream->traces[stream->trace_count - 1];

    draft->path = place_of(reduce, stream);
    if (shape)
        draft->node = reduce->nodes.items[shape->node].id;
    draft->start_ns = stream->frames[trace->frame].enter_ns;
    draft->end_ns = close->ns;
    if (is_incomplete)
        draft->status = MR_PART_INCOMPLETE;
    else
        draft->status = close->flags & (MR_EVENT_FAILED | MR_EVENT_UNWOUND)
                            ? MR_PART_FAILED
                            : MR_PART_OK;
    draft->is_ended = true;
}

enum mr_status mr_reduce_links_close(struct mr_reduce *reduce,
                                     struct mr_reduce_stream *stream,
                                     const struct mr_shape *shape,
                                     const struct mr_event *close, bool is_incomplete)
{
    struct mr_reduce_links *links = stream->links;
    uint32_t at = stream->trace_count - 1;
    struct draft *draft = &links->trees[at];
    enum mr_status status = MR_OK;

    if (links->is_attached && at == links->trees_outside) {
        finish(reduce, stream, &links->attached, shape, close, is_incomplete);
    } else if (draft->is_used) {
        finish(reduce, stream, draft, shape, close, is_incomplete);
        status = tell(reduce, stream, draft, 0);
        clear_draft(draft);
    }
    update(stream);
    return status;
}

enum mr_status mr_reduce_links_drop(struct mr_reduce *reduce,
                                    struct mr_reduce_stream *stream)
{
    struct mr_reduce_links *links = stream->links;
    struct draft *draft = &links->trees[0];
    enum mr_status status = MR_OK;

    if (draft->is_used)
        status = tell_stub(reduce, stream, draft, END_UNKNOWN);
    clear_draft(draft);
    links->trees_outside = 0;
    update(stream);
    return status;
}

enum mr_status mr_reduce_links_end(struct mr_reduce *reduce,
                                   struct mr_reduce_stream *stream)
{
    enum mr_status status = end_attached(reduce, stream, END_UNKNOWN);

    if (status == MR_OK)
        status = end_received(reduce, stream, END_UNKNOWN);
    mr_reduce_links_free(stream);
    return status;
}

/* What a spool keeps, so that who goes on from it tells the parts that were not told yet (pipeline/resume.h). */

static struct draft *draft_at(struct mr_reduce_links *links, uint32_t place)
{
    if (place == MR_RESUME_NEXT)
        return &links->next;
    return place == MR_RESUME_ATTACHED ? &links->attached : &links->trees[place];
}

static void give_draft(const struct draft *draft, uint32_t place,
                       struct mr_resume_part *given)
{
    *given = (struct mr_resume_part){.place = place,
                                     .is_ended = draft->is_ended,
                                     .part = {.trace = draft->trace,
                                              .path = draft->path,
                                              .node = draft->node,
                                              .start_ns = draft->start_ns,
                                              .end_ns = draft->end_ns,
                                              .status = draft->status,
                                              .flags = draft->is_cut ? MR_PART_CUT : 0,
                                              .in = draft->in,
                                              .out = draft->out,
                                              .out_count = draft->out_count}};
}

bool mr_reduce_links_give(const struct mr_reduce_stream *stream,
                          struct mr_resume_links *given)
{
    struct mr_reduce_links *links = stream->links;

    if (!links || (!stream->has_links && links->nested == 0))
        return false;
    *given = (struct mr_resume_links){.nested = links->nested,
                                      .trees_outside = links->trees_outside,
                                      .tree_count = links->tree_count,
                                      .is_attached = links->is_attached};
    for (uint32_t place = 0; place < MR_RESUME_PARTS_MAX; place++)
        if (draft_at(links, place)->is_used)
            give_draft(draft_at(links, place), place, &given->parts[given->part_count++]);
    return true;
}

static enum mr_status take_draft(struct draft *draft, const struct mr_resume_part *from)
{
    const struct mr_part *part = &from->part;
    enum mr_status status = MR_OK;

    *draft = (struct draft){.is_used = true,
                            .is_ended = from->is_ended,
                            .is_cut = part->flags & MR_PART_CUT,
                            .in = part->in,
                            .trace = part->trace,
                            .path = part->path,
                            .node = part->node,
                            .start_ns = part->start_ns,
                            .end_ns = part->end_ns,
                            .status = part->status};
    for (uint32_t i = 0; i < part->out_count && status == MR_OK; i++)
        (void)add_out(draft, &part->out[i], &status);
    return status;
}

enum mr_status mr_reduce_links_take(struct mr_reduce_stream *stream,
                                    const struct mr_resume_links *from)
{
    struct mr_reduce_links *links = calloc(1, sizeof(*links));
    enum mr_status status = MR_OK;

    if (!links)
        return MR_ENOMEM;
    stream->links = links;
    links->nested = from->nested;
    links->trees_outside = from->trees_outside;
    links->tree_count = from->tree_count;
    links->is_attached = from->is_attached;
    for (uint32_t i = 0; i < from->part_count && status == MR_OK; i++) {
        uint32_t place = from->parts[i].place;

        if (place >= MR_RESUME_TRACES_MAX || place < stream->trace_count)
            status = take_draft(draft_at(links, place), &from->parts[i]);
    }
    update(stream);
    return status;
}

void mr_reduce_links_free(struct mr_reduce_stream *stream)
{
    struct mr_reduce_links *links = stream->links;

    if (!links)
        return;
    for (uint32_t i = 0; i < MR_REDUCE_TRACES_OPEN; i++)
        free_draft(&links->trees[i]);
    free_draft(&links->next);
    free_draft(&links->attached);
    free(links);
    stream->links = NULL;
    stream->has_links = false;
}
