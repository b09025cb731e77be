/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a trace sends, receives and hand-offs belong to (docs/FORMAT.md sections 6.2 and 8, docs/why, join): every
 * part is a struct that is kept until all streams are over; reference_joined.c puts the traces together.
 */
#include <stdlib.h>
#include <string.h>

#include "reference_private.h"

#define TREES_OPEN 2u /* call trees of one stream: one, and one of a forced root in it */
#define TREES_MAX 256u

static struct ref_part *new_part(void)
{
    struct ref_part *part = calloc(1, sizeof(*part));

    if (!part)
        abort();
    return part;
}

/* One that is outside of call trees, as far as is known. */
static struct ref_part *new_stub(const struct ref_stream *stream)
{
    struct ref_part *part = new_part();

    part->status = stream->is_unsure ? REF_INCOMPLETE : REF_OK;
    return part;
}

/* The open roots, outermost first; how many. */
static uint32_t open_roots(struct ref_stream *stream, struct ref_call **roots)
{
    uint32_t count = 0;

    for (struct ref_call *call = stream->open; call != &stream->forest;
         call = call->parent)
        if (call->is_root) {
            if (count == TREES_OPEN)
                abort();
            roots[count++] = call;
        }
    if (count == TREES_OPEN) {
        struct ref_call *inner = roots[0];

        roots[0] = roots[1];
        roots[1] = inner;
    }
    return count;
}

static struct ref_id site_id(const struct ref *ref, const struct ref_call *call)
{
    return ref->sites[call->is_unknown ? REF_SITE_UNKNOWN : call->site].id;
}

static struct ref_id outer_path(const struct ref *ref, const struct ref_stream *stream,
                                const struct ref_call *call)
{
    if (call == &stream->forest)
        return ref_id_scope(ref->options.app, ref->options.version);
    return ref_id_path(outer_path(ref, stream, call->parent), site_id(ref, call), true);
}

static struct ref_id entry_path(const struct ref *ref, const struct ref_call *root)
{
    return ref_id_path(ref_id_scope(ref->options.app, ref->options.version),
                       site_id(ref, root), false);
}

/* Where the stream stands. */
static struct ref_id place_of(const struct ref *ref, struct ref_stream *stream)
{
    struct ref_call *roots[TREES_OPEN];
    uint32_t count = open_roots(stream, roots);

    if (count)
        return entry_path(ref, roots[count - 1]);
    if (stream->open == &stream->forest)
        return (struct ref_id){{0}};
    return outer_path(ref, stream, stream->open);
}

/* The part has its number, and goes up. */
static void tell(struct ref *ref, struct ref_stream *stream, struct ref_part *part)
{
    part->stream = stream;
    part->id = ref_id_part(ref->options.source, stream->number, stream->part_count++);
    *ref->parts_end = part;
    ref->parts_end = &part->next;
}

static void note_time(struct ref_part *part, uint64_t ns)
{
    part->start = ns < part->start ? ns : part->start;
    part->end = ns > part->end ? ns : part->end;
}

/* From its first edge to its last; `is_over` says that it is only over now. */
static void tell_stub(struct ref *ref, struct ref_stream *stream, struct ref_part *part,
                      bool is_over)
{
    part->is_stub = true;
    part->path = place_of(ref, stream);
    part->start = UINT64_MAX;
    part->end = 0;
    if (part->in.kind)
        note_time(part, part->in.ns);
    for (uint32_t i = 0; i < part->out_count; i++)
        note_time(part, part->out[i].ns);
    if (is_over)
        note_time(part, ref_ns(ref, stream->ticks));
    tell(ref, stream, part);
}

static void tell_attachment(struct ref *ref, struct ref_stream *stream, bool is_over)
{
    struct ref_part *part = stream->attachment;

    if (part->root)
        tell(ref, stream, part);
    else
        tell_stub(ref, stream, part, is_over);
}

/* What an event of now belongs to; NULL: nothing. */
static struct ref_part *current(struct ref_stream *stream)
{
    struct ref_call *roots[TREES_OPEN];
    uint32_t count = open_roots(stream, roots);

    if (stream->attachment && count <= stream->trees_outside + 1)
        return stream->attachment;
    if (count == 0)
        return NULL;
    if (!roots[count - 1]->part)
        roots[count - 1]->part = new_part();
    return roots[count - 1]->part;
}

static void take_trace(struct ref_part *part, const struct ref_id *trace)
{
    if (trace && !part->has_trace) {
        part->trace = *trace;
        part->has_trace = true;
    }
}

static void go_out(struct ref *ref, struct ref_stream *stream, struct ref_edge edge,
                   const struct ref_id *trace)
{
    struct ref_part *part = current(stream);
    bool is_stub = !part;

    if (is_stub)
        part = new_stub(stream);
    take_trace(part, trace);
    if (part->out_count < REF_EDGES) {
        part->out[part->out_count++] = edge;
    } else {
        part->is_cut = true;
        stream->lost[REF_BUDGET]++;
    }
    if (is_stub)
        tell_stub(ref, stream, part, false);
}

static void end_edge(struct ref *ref, struct ref_stream *stream, struct ref_edge edge,
                     const struct ref_id *trace)
{
    struct ref_part *stub = new_stub(stream);

    stub->in = edge;
    take_trace(stub, trace);
    tell_stub(ref, stream, stub, false);
}

/* No call tree came that would have been the one of what was received. */
static void end_waiting(struct ref *ref, struct ref_stream *stream, bool is_over)
{
    if (stream->waiting)
        tell_stub(ref, stream, stream->waiting, is_over);
    stream->waiting = NULL;
}

static void come_in(struct ref *ref, struct ref_stream *stream, struct ref_edge edge,
                    const struct ref_id *trace)
{
    struct ref_part *part = current(stream);

    if (!part) { /* the next call tree's */
        end_waiting(ref, stream, false);
        part = stream->waiting = new_stub(stream);
    }
    if (part->in.kind || part->out_count > 0 || part->root)
        end_edge(ref, stream, edge, trace);
    else
        part->in = edge;
    take_trace(part, trace);
}

static void end_attachment(struct ref *ref, struct ref_stream *stream, bool is_over)
{
    struct ref_call *roots[TREES_OPEN];
    uint32_t count = open_roots(stream, roots);

    if (!stream->attachment)
        return;
    if (count > stream->trees_outside)
        roots[stream->trees_outside]->part = stream->attachment; /* goes on by itself */
    else
        tell_attachment(ref, stream, is_over);
    stream->attachment = NULL;
}

static void attach(struct ref *ref, struct ref_stream *stream, struct ref_edge edge)
{
    struct ref_call *roots[TREES_OPEN];
    uint32_t count = open_roots(stream, roots);

    if (stream->attachment && count == stream->trees_outside)
        end_attachment(ref, stream, false); /* its detach is missing */
    if (stream->attachment) {
        stream->nested++;
        end_edge(ref, stream, edge, NULL);
    } else if (count == TREES_OPEN) {
        stream->nested++;
        come_in(ref, stream, edge, NULL);
    } else {
        stream->attachment = new_stub(stream);
        stream->attachment->in = edge;
        stream->nested = stream->attached_trees = 0;
        stream->trees_outside = count;
    }
}

/* Below which call those to come are roots, unless it is inside of a forced one; and with which one it ends. */
static void note_attach(struct ref_stream *stream)
{
    bool is_base = stream->open == &stream->forest || stream->open->is_outer;

    if (stream->attach_call ? stream->open == stream->attach_call : is_base) {
        stream->attaches = 0; /* its detach is missing */
        stream->attach_call = NULL;
    }
    if (stream->attaches++ == 0 && !is_base)
        stream->attach_call = stream->open;
}

static void note_detach(struct ref_stream *stream)
{
    if (stream->attaches > 0 && --stream->attaches == 0)
        stream->attach_call = NULL;
}

void ref_lose_links(struct ref *ref, struct ref_stream *stream)
{
    if (stream->attaches == 0)
        return;
    stream->attaches = 0;
    stream->nested = 0;
    stream->attach_call = NULL;
    end_attachment(ref, stream, true);
}

void ref_lose_received(struct ref *ref, struct ref_stream *stream)
{
    end_waiting(ref, stream, false);
}

void ref_take_link(struct ref *ref, struct ref_stream *stream,
                   const struct ref_link *link)
{
    struct ref_edge edge = {.ns = ref_ns(ref, stream->ticks)};
    struct ref_call *roots[TREES_OPEN];

    stream->last++;
    if (link->kind == REF_SEND || link->kind == REF_RECEIVE) {
        if (link->span == 0 || ref_id_is_zero(&link->trace)) {
            if (link->kind == REF_RECEIVE && !stream->attachment &&
                open_roots(stream, roots) == 0)
                end_waiting(ref, stream, false);
            return;
        }
        edge.kind = REF_EDGE_MESSAGE;
        edge.key = ref_id_message(link->trace, link->span);
        if (link->kind == REF_SEND)
            go_out(ref, stream, edge, &link->trace);
        else
            come_in(ref, stream, edge, &link->trace);
        return;
    }
    edge.kind = REF_EDGE_HAND_OFF;
    edge.key = ref_id_hand_off(ref->options.source, link->span);
    if (link->kind == REF_CAPTURE) {
        go_out(ref, stream, edge, NULL);
    } else if (link->kind == REF_ATTACH) {
        note_attach(stream);
        attach(ref, stream, edge);
    } else if (link->kind == REF_DONE) {
        if (!stream->attachment && open_roots(stream, roots) == 0)
            end_waiting(ref, stream, true);
    } else {
        note_detach(stream);
        if (stream->nested > 0)
            stream->nested--;
        else if (stream->attachment)
            end_attachment(ref, stream, true);
        else
            end_waiting(ref, stream, true);
    }
}

/* Another call tree of the attachment: an edge leads to it from the one before. */
static void follow_on(struct ref *ref, struct ref_stream *stream, uint64_t ns)
{
    struct ref_part *before = stream->attachment, *next = new_part();
    struct ref_edge edge = {.kind = REF_EDGE_NEXT, .ns = before->end};

    edge.key =
        ref_id_next(ref_id_part(ref->options.source, stream->number, stream->part_count));
    if (before->out_count < REF_EDGES)
        before->out[before->out_count++] = edge;
    else
        before->is_cut = true;
    tell(ref, stream, before);
    next->in = edge;
    next->in.ns = ns;
    next->trace = before->trace;
    next->has_trace = before->has_trace;
    stream->attachment = next;
}

void ref_link_root(struct ref *ref, struct ref_stream *stream, struct ref_call *root)
{
    struct ref_call *roots[TREES_OPEN];
    uint32_t at = open_roots(stream, roots) - 1;

    if (stream->attachment && at == stream->trees_outside) {
        if (stream->attachment->root)
            follow_on(ref, stream, root->enter);
        if (++stream->attached_trees > TREES_MAX) {
            stream->attachment->is_cut = true;
            root->part = stream->attachment;
            stream->attachment = NULL;
        }
    } else if (at == 0 && stream->waiting) {
        root->part = stream->waiting;
        stream->waiting = NULL;
    }
}

void ref_link_root_over(struct ref *ref, struct ref_stream *stream, struct ref_call *root,
                        uint32_t outside)
{
    struct ref_part *part = root->part;
    bool is_attached = stream->attachment && outside == stream->trees_outside;

    if (is_attached)
        part = stream->attachment;
    if (!part)
        return;
    part->root = root;
    part->path = entry_path(ref, root);
    part->start = root->enter;
    part->end = root->leave;
    if (!is_attached)
        tell(ref, stream, part);
}

void ref_link_learned(struct ref *ref, struct ref_stream *stream, struct ref_call *root)
{
    if (root->part)
        tell_stub(ref, stream, root->part, false);
    root->part = NULL;
    stream->trees_outside = 0;
}

void ref_end_links(struct ref *ref, struct ref_stream *stream)
{
    end_attachment(ref, stream, false);
    end_waiting(ref, stream, false);
}

/* The calls are about to be freed, and are over. */
void ref_settle_parts(struct ref *ref, const struct ref_stream *stream)
{
    for (struct ref_part *part = ref->parts; part; part = part->next) {
        if (part->stream != stream || !part->root)
            continue;
        part->has_shape = ref_shape_of(ref, part->root, &part->node, &part->status);
        part->root = NULL;
    }
    for (struct ref_part *part = ref->parts; part; part = part->next)
        if (part->stream == stream) {
            part->status = part->is_cut ? REF_INCOMPLETE : part->status;
            part->stream = NULL;
        }
}
