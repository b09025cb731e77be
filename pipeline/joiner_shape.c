/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the parts of a trace to its joined shape, without recursion: a trace may be as deep
 * as it has parts.
 *
 *     lay_out()  all nodes, parents before children, siblings beside each other
 *     fold()     from the last to the first: ids; equal siblings one after the other are one
 *     place()    from the first on: where in preorder each node of the shape stands
 */
#include <stdlib.h>

#include "base/assert.h"
#include "net/ids.h"
#include "pipeline/joiner_private.h"

#define WORK_MAX (1u << 18) /* nodes; a trace of more is large */

void mr_joiner_shape_fini(struct mr_joiner_shape *shape)
{
    free(shape->work);
    free(shape->edges);
    free(shape->slots);
    free(shape->children);
}

static bool reserve(void **items, uint32_t *capacity, uint32_t needed, size_t size)
{
    uint32_t grown = *capacity ? *capacity : 64;
    void *moved;

    if (needed <= *capacity)
        return true;
    while (grown < needed)
        grown *= 2;
    moved = realloc(*items, grown * size);
    if (!moved)
        return false;
    *items = moved;
    *capacity = grown;
    return true;
}

static bool reserve_all(struct mr_joiner_shape *shape, uint32_t nodes, uint32_t parts)
{
    void *work = shape->work, *edges = shape->edges, *slots = shape->slots;
    void *children = shape->children;
    bool has_room = reserve(&work, &shape->work_capacity, nodes, sizeof(*shape->work));

    shape->work = work;
    has_room =
        has_room && reserve(&edges, &shape->edge_capacity, nodes, sizeof(*shape->edges));
    shape->edges = edges;
    has_room = has_room && reserve(&children, &shape->child_capacity, nodes,
                                   sizeof(*shape->children));
    shape->children = children;
    has_room =
        has_room && reserve(&slots, &shape->slot_capacity, parts, sizeof(*shape->slots));
    shape->slots = slots;
    return has_room;
}

/* The part whose edge leads to this one, or NONE. */
static uint32_t above(const struct mr_joiner *joiner, uint32_t slot)
{
    const struct mr_joiner_slot *at = &joiner->slots[slot];
    uint32_t edge;

    if (at->part.in.kind == MR_EDGE_NONE || at->is_second)
        return MR_JOINER_NONE;
    edge = mr_table_find(&joiner->keys, at->part.in.key);
    MR_ASSERT(edge != MR_TABLE_NONE);
    return joiner->edges[edge].from;
}

/* The part that an edge of this one leads to, or NONE, as where it came second. */
static uint32_t below(const struct mr_joiner *joiner, uint32_t slot, uint32_t out)
{
    const struct mr_joiner_slot *at = &joiner->slots[slot];
    uint32_t edge;

    if (at->second_outs >> out & 1)
        return MR_JOINER_NONE;
    edge = mr_table_find(&joiner->keys, at->part.out[out].key);
    MR_ASSERT(edge != MR_TABLE_NONE && joiner->edges[edge].from == slot);
    return joiner->edges[edge].to;
}

/* The part that nothing leads to; of a circle, the one with the smallest id. */
static uint32_t find_top(const struct mr_joiner *joiner, uint32_t group, bool *is_circle)
{
    uint32_t slot = group, up, top;

    for (uint32_t i = 0; i < joiner->slots[group].group.count; i++) {
        up = above(joiner, slot);
        if (up == MR_JOINER_NONE)
            return slot;
        slot = up;
    }
    *is_circle = true; /* and we are in it */
    top = slot;
    for (up = above(joiner, slot); up != slot; up = above(joiner, up))
        if (mr_id_compare(joiner->slots[up].part.id, joiner->slots[top].part.id) < 0)
            top = up;
    return top;
}

static void add_node(struct mr_joiner_shape *shape, uint32_t slot, uint32_t from,
                     uint32_t out, uint32_t kind)
{
    MR_ASSERT(shape->work_count < shape->work_capacity);
    shape->work[shape->work_count++] = (struct mr_joiner_node){
        .slot = slot, .from = from, .out = out, .kind = (uint8_t)kind};
}

/* Which edge of the part leads to the call tree that followed it under the same attach, or NONE. */
static uint32_t next_out(const struct mr_joiner *joiner, uint32_t slot)
{
    const struct mr_part *part = &joiner->slots[slot].part;

    for (uint32_t out = 0; out < part->out_count; out++)
        if (part->out[out].kind == MR_EDGE_NEXT)
            return out;
    return MR_JOINER_NONE;
}

/* The node that an edge leads to. Returns its slot, or NONE where it was not seen, or is the top again. */
static uint32_t add_below(struct mr_joiner *joiner, uint32_t top, uint32_t from,
                          uint32_t out)
{
    uint32_t to = below(joiner, from, out);

    to = to == top ? MR_JOINER_NONE : to;
    add_node(&joiner->shape, to, from, out, joiner->slots[from].part.out[out].kind);
    return to;
}

/* Those that followed it, one after the other: beside it, for a chain of them would be as deep as they are many. */
static void add_next(struct mr_joiner *joiner, uint32_t top, uint32_t slot)
{
    while (slot != MR_JOINER_NONE) {
        uint32_t out = next_out(joiner, slot);

        slot = out == MR_JOINER_NONE ? out : add_below(joiner, top, slot, out);
    }
}

/* What hangs on one part: all but what stands beside it. */
static void add_children(struct mr_joiner *joiner, uint32_t top, uint32_t slot,
                         bool is_root)
{
    uint32_t beside = is_root ? MR_JOINER_NONE : next_out(joiner, slot);

    for (uint32_t out = 0; out < joiner->slots[slot].part.out_count; out++)
        if (out != beside)
            add_next(joiner, top, add_below(joiner, top, slot, out));
}

static void lay_out(struct mr_joiner *joiner, uint32_t top, bool is_large)
{
    struct mr_joiner_shape *shape = &joiner->shape;
    uint32_t kind = joiner->slots[top].part.in.kind;
    bool has_root = kind == MR_EDGE_NONE;

    shape->work_count = 0;
    if (!has_root)
        add_node(shape, MR_JOINER_NONE, MR_JOINER_NONE, 0, MR_EDGE_NONE);
    add_node(shape, top, MR_JOINER_NONE, 0, kind);
    if (!has_root) {
        if (!is_large)
            add_next(joiner, top, top);
        shape->work[0].first = 1;
        shape->work[0].count = shape->work_count - 1;
    }
    for (uint32_t i = has_root ? 0 : 1; i < shape->work_count && !is_large; i++) {
        uint32_t slot = shape->work[i].slot;

        shape->work[i].first = shape->work_count;
        if (slot == MR_JOINER_NONE)
            continue;
        add_children(joiner, top, slot, has_root && i == 0);
        shape->work[i].count = shape->work_count - shape->work[i].first;
    }
}

static uint8_t flags_of(const struct mr_joiner *joiner, const struct mr_joiner_node *node,
                        bool is_large)
{
    if (node->slot == MR_JOINER_NONE)
        return MR_JOINED_MISSING;
    return (uint8_t)((is_large ? MR_JOINED_LARGE : 0) |
                     (joiner->slots[node->slot].part.flags & MR_PART_STUB ? MR_JOINED_STUB
                                                                          : 0));
}

/* The children of one node, whose ids are known. */
static uint32_t fold_children(struct mr_joiner_shape *shape, struct mr_joiner_node *node)
{
    struct mr_joiner_node *head = NULL;
    uint32_t count = 0;

    node->size = 1;
    for (uint32_t i = node->first; i < node->first + node->count; i++) {
        struct mr_joiner_node *child = &shape->work[i];

        if (head && head->kind == child->kind && mr_id_equal(head->id, child->id)) {
            head->is_run = child->is_like_last = true;
            shape->children[count - 1].is_run = true;
            continue;
        }
        head = child;
        node->size += child->size;
        shape->children[count++] =
            (struct mr_joined_child){.id = child->id, .kind = child->kind};
    }
    return count;
}

static void fold(struct mr_joiner *joiner, bool is_large)
{
    struct mr_joiner_shape *shape = &joiner->shape;

    for (uint32_t i = shape->work_count; i-- > 0;) {
        struct mr_joiner_node *node = &shape->work[i];
        const struct mr_part *part =
            node->slot == MR_JOINER_NONE ? NULL : &joiner->slots[node->slot].part;
        const struct mr_id zero = {0, 0};

        node->folded = fold_children(shape, node);
        node->id =
            mr_id_joined(flags_of(joiner, node, is_large), part ? part->path : zero,
                         part ? part->node : zero, shape->children, node->folded);
    }
}

static void put_node(struct mr_joiner *joiner, const struct mr_joiner_node *node,
                     bool is_run, bool is_large)
{
    struct mr_joined_node *to = &joiner->shape.nodes[node->place];

    *to = (struct mr_joined_node){.children = node->folded,
                                  .kind = node->kind,
                                  .flags = flags_of(joiner, node, is_large)};
    if (is_run)
        to->flags |= MR_JOINED_RUN;
    if (node->slot == MR_JOINER_NONE)
        return;
    to->path = joiner->slots[node->slot].part.path;
    to->node = joiner->slots[node->slot].part.node;
}

/* All of a run stand where its first one does, and so do those below them. */
static void place(struct mr_joiner *joiner, bool is_large)
{
    struct mr_joiner_shape *shape = &joiner->shape;

    shape->work[0].place = 0;
    put_node(joiner, &shape->work[0], false, is_large);
    for (uint32_t i = 0; i < shape->work_count; i++) {
        uint32_t free_place = shape->work[i].place + 1, head = 0;

        for (uint32_t j = 0; j < shape->work[i].count; j++) {
            struct mr_joiner_node *child = &shape->work[shape->work[i].first + j];

            if (!child->is_like_last) {
                head = shape->work[i].first + j;
                child->place = free_place;
                free_place += child->size;
                put_node(joiner, child, child->is_run, is_large);
            } else {
                child->place = shape->work[head].place;
            }
        }
    }
}

static uint64_t wall_of(const struct mr_part *part, uint64_t ns)
{
    return ns + (uint64_t)part->shift_ns;
}

/* Times of one source need no wall clock. */
static struct mr_joined_edge time_edge(const struct mr_part *from, uint64_t sent_ns,
                                       const struct mr_part *to, uint32_t at)
{
    uint64_t came_ns = to->in.ns;
    int64_t took;

    if (!mr_id_equal(from->source, to->source)) {
        sent_ns = wall_of(from, sent_ns);
        came_ns = wall_of(to, came_ns);
    }
    took = (int64_t)(came_ns - sent_ns);
    return (struct mr_joined_edge){
        .place = at, .ns = took < 0 ? 0 : (uint64_t)took, .is_clamped = took < 0};
}

static uint32_t time_edges(const struct mr_joiner *joiner)
{
    const struct mr_joiner_shape *shape = &joiner->shape;
    uint32_t count = 0;

    for (uint32_t i = 0; i < shape->work_count; i++) {
        const struct mr_joiner_node *node = &shape->work[i];
        const struct mr_part *from;

        if (node->slot == MR_JOINER_NONE || node->from == MR_JOINER_NONE)
            continue;
        from = &joiner->slots[node->from].part;
        shape->edges[count++] = time_edge(from, from->out[node->out].ns,
                                          &joiner->slots[node->slot].part, node->place);
    }
    return count;
}

/* What all parts say, however large the trace is. */
static void sum_up(const struct mr_joiner *joiner, uint32_t top, bool is_whole,
                   struct mr_joined *joined)
{
    const struct mr_part *root = &joiner->slots[top].part;
    uint64_t start_ns = wall_of(root, root->start_ns);
    bool is_incomplete = !is_whole || root->in.kind != MR_EDGE_NONE;

    joined->trace = root->trace;
    joined->end_ns = wall_of(root, root->end_ns);
    for (uint32_t i = 0; i < joined->part_count; i++) {
        const struct mr_part *part = &joiner->slots[joined->slots[i]].part;
        uint64_t end_ns = wall_of(part, part->end_ns);

        is_incomplete |= part->status == MR_PART_INCOMPLETE;
        if ((int64_t)(end_ns - joined->end_ns) > 0)
            joined->end_ns = end_ns;
        if (mr_id_is_zero(root->trace) &&
            mr_id_compare(part->trace, joined->trace) > 0) /* any, but always the same */
            joined->trace = part->trace;
    }
    joined->took_ns = joined->end_ns - start_ns;
    joined->status = is_incomplete ? MR_PART_INCOMPLETE : root->status;
}

bool mr_joiner_shape(struct mr_joiner *joiner, uint32_t group, struct mr_joined *joined)
{
    struct mr_joiner_shape *shape = &joiner->shape;
    bool is_circle = false, is_large;
    uint32_t top = find_top(joiner, group, &is_circle), outs = 0, parts = 0;

    for (uint32_t i = group; i != MR_JOINER_NONE; i = joiner->slots[i].next)
        outs += joiner->slots[i].part.out_count;
    is_large = outs > WORK_MAX;
    if (!reserve_all(shape, is_large ? 2 : outs + 2, joiner->slots[group].group.count))
        return false;
    for (uint32_t i = group; i != MR_JOINER_NONE; i = joiner->slots[i].next)
        shape->slots[parts++] = i;
    lay_out(joiner, top, is_large);
    fold(joiner, is_large);
    if (shape->work[0].size > MR_JOINED_NODES_MAX) {
        is_large = true;
        lay_out(joiner, top, is_large);
        fold(joiner, is_large);
    }
    place(joiner, is_large);
    *joined = (struct mr_joined){.id = shape->work[0].id,
                                 .nodes = shape->nodes,
                                 .node_count = shape->work[0].size,
                                 .edges = shape->edges,
                                 .edge_count = is_large ? 0 : time_edges(joiner),
                                 .part_count = parts,
                                 .is_circle = is_circle,
                                 .slots = shape->slots};
    sum_up(joiner, top, joiner->slots[group].group.missing == 0 && !is_circle, joined);
    joiner->stats.circles += is_circle;
    joiner->stats.large += is_large;
    return true;
}
