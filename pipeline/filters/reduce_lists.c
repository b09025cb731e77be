/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls of an open call tree have ended, as one worker tells the next (pipeline/resume.h): the lists of its open calls, and the
 * nodes in them, each behind those below it, under numbers that mean the same in both.
 */
#include <stdlib.h>

#include "pipeline/filters/reduce_private.h"
#include "pipeline/resume.h"

/* More would not fit a payload (pipeline/handover.h). */
#define NODES_MAX 1500u
#define CHILDREN_MAX 6000u

/* A node whose children are being told. */
struct level {
    uint32_t node, child;
};

struct walk {
    const struct mr_nodes *nodes;
    const struct mr_sites *sites;
    struct mr_resume_lists *lists;
    uint32_t *numbers;    /* by node: that of the lists; 0: not told */
    struct level *levels; /* NODES_MAX: a node is below another one once */
    uint32_t depth;
};

/* MR_ELIMIT: more than is told. */
static enum mr_status add_list(const struct walk *walk, struct mr_resume_list *list,
                               const uint64_t *children, uint32_t count)
{
    enum mr_status status = MR_OK;

    if (count > CHILDREN_MAX - walk->lists->child_count)
        return MR_ELIMIT;
    for (uint32_t i = 0; i < count && status == MR_OK; i++)
        status = mr_resume_lists_add(walk->lists, list,
                                     mr_child_repeat(children[i]) << 32 |
                                         walk->numbers[mr_child_node(children[i])]);
    return status;
}

/* All below it are told. */
static enum mr_status add_node(struct walk *walk, uint32_t number)
{
    const struct mr_node *node = &walk->nodes->items[number];
    struct mr_resume_node *added = &walk->lists->nodes[walk->lists->node_count];

    *added = (struct mr_resume_node){.site = node->site,
                                     .site_id = mr_sites_at(walk->sites, node->site)->id};
    walk->numbers[number] = ++walk->lists->node_count;
    return add_list(walk, &added->list, walk->nodes->children + node->first, node->count);
}

/* The next child of the innermost level that is not told, or MR_NODE_NONE. */
static uint32_t next_child(struct walk *walk)
{
    struct level *level = &walk->levels[walk->depth - 1];
    const struct mr_node *node = &walk->nodes->items[level->node];

    while (level->child < node->count) {
        uint32_t child =
            mr_child_node(walk->nodes->children[node->first + level->child++]);

        if (!walk->numbers[child])
            return child;
    }
    return MR_NODE_NONE;
}

static enum mr_status tell(struct walk *walk, uint32_t number)
{
    enum mr_status status = MR_OK;

    if (walk->numbers[number])
        return MR_OK;
    walk->levels[walk->depth++] = (struct level){number, 0};
    while (walk->depth && status == MR_OK) {
        uint32_t child = next_child(walk);

        if (child == MR_NODE_NONE)
            status = add_node(walk, walk->levels[--walk->depth].node);
        else if (walk->depth + walk->lists->node_count == NODES_MAX)
            status = MR_ELIMIT;
        else
            walk->levels[walk->depth++] = (struct level){child, 0};
    }
    return status;
}

static uint32_t list_end(const struct mr_reduce_stream *stream, uint32_t at)
{
    return at + 1 < stream->depth ? stream->frames[at + 1].first_child
                                  : stream->child_count;
}

static enum mr_status tell_all(struct walk *walk, const struct mr_reduce_stream *stream)
{
    uint32_t root = stream->traces[0].frame;
    enum mr_status status = MR_OK;

    for (uint32_t i = stream->frames[root].first_child;
         i < stream->child_count && status == MR_OK; i++)
        status = walk->lists->node_count < NODES_MAX
                     ? tell(walk, mr_child_node(stream->children[i]))
                     : MR_ELIMIT;
    for (uint32_t i = root; i < stream->depth && status == MR_OK; i++) {
        uint32_t first = stream->frames[i].first_child;

        status = add_list(walk, &walk->lists->calls[walk->lists->call_count++],
                          stream->children + first, list_end(stream, i) - first);
    }
    return status;
}

static enum mr_status give(struct walk *walk, const struct mr_reduce_stream *stream)
{
    struct mr_resume_lists *lists = walk->lists;

    lists->nodes = calloc(NODES_MAX, sizeof(*lists->nodes));
    lists->calls = calloc(stream->depth, sizeof(*lists->calls));
    walk->numbers = calloc(walk->nodes->count, sizeof(*walk->numbers));
    walk->levels = calloc(NODES_MAX, sizeof(*walk->levels));
    if (!lists->nodes || !lists->calls || !walk->numbers || !walk->levels)
        return MR_ENOMEM;
    return tell_all(walk, stream);
}

enum mr_status mr_reduce_lists_give(const struct mr_reduce *reduce,
                                    const struct mr_reduce_stream *stream,
                                    struct mr_resume_lists **lists)
{
    struct walk walk = {.nodes = &reduce->nodes, .sites = reduce->config->sites};
    enum mr_status status;

    *lists = NULL;
    if (stream->trace_count != 1 || !stream->is_collecting)
        return MR_OK;
    walk.lists = *lists = calloc(1, sizeof(**lists));
    if (!walk.lists)
        return MR_ENOMEM;
    walk.lists->exactness = reduce->config->exactness;
    walk.lists->is_folded = stream->traces[0].is_folded;
    status = give(&walk, stream);
    free(walk.numbers);
    free(walk.levels);
    if (status == MR_OK)
        return MR_OK;
    mr_resume_free_lists(*lists);
    *lists = NULL;
    return status == MR_ELIMIT ? MR_OK : status;
}

/* The children of a list by the lane's numbers of nodes. */
static void translate(const struct mr_resume_lists *lists, struct mr_resume_list list,
                      const uint32_t *numbers, uint64_t *children)
{
    for (uint32_t i = 0; i < list.count; i++) {
        uint64_t child = lists->children[list.first + i];

        children[i] = mr_child_repeat(child) << 32 | numbers[mr_child_node(child)];
    }
}

static bool make_nodes(struct mr_reduce *reduce, const struct mr_resume_lists *lists,
                       uint32_t *numbers, uint64_t *children)
{
    for (uint32_t i = 0; i < lists->node_count; i++) {
        const struct mr_resume_node *node = &lists->nodes[i];

        translate(lists, node->list, numbers, children);
        numbers[i + 1] =
            node->site == MR_SITE_UNKNOWN
                ? MR_NODE_NONE
                : mr_nodes_intern(&reduce->nodes, node->site, children, node->list.count);
        if (numbers[i + 1] == MR_NODE_NONE)
            return false;
    }
    return true;
}

/* The lists of the open calls. `children` is as long as all of them. */
static void set_lists(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                      const struct mr_resume_lists *lists, const uint32_t *numbers)
{
    uint32_t root = stream->traces[0].frame;

    for (uint32_t i = 0; i < lists->call_count; i++) {
        struct mr_open_call *frame = &stream->frames[root + i];
        uint32_t count = lists->calls[i].count;

        frame->first_child = stream->child_count;
        translate(lists, lists->calls[i], numbers,
                  stream->children + stream->child_count);
        stream->child_count += count;
        frame->hash = mr_node_hash(&reduce->nodes, mr_open_call_site(frame),
                                   stream->children + frame->first_child, count);
    }
}

static bool make_room(struct mr_reduce_stream *stream, uint32_t count)
{
    uint32_t capacity = stream->child_count + count + 16;
    uint64_t *grown;

    if (capacity <= stream->child_capacity)
        return true;
    grown = realloc(stream->children, capacity * sizeof(*grown));
    if (!grown)
        return false;
    stream->children = grown;
    stream->child_capacity = capacity;
    return true;
}

bool mr_reduce_lists_take(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                          const struct mr_resume_stream *from)
{
    const struct mr_resume_lists *lists = from->lists;
    uint32_t *numbers;
    uint64_t *children;
    bool is_taken = false;

    if (!lists || lists->exactness != reduce->config->exactness ||
        stream->trace_count != 1 || !stream->is_collecting ||
        stream->depth - stream->traces[0].frame != lists->call_count)
        return false;
    numbers = calloc((size_t)lists->node_count + 1, sizeof(*numbers));
    children = calloc((size_t)lists->child_count + 1, sizeof(*children));
    if (numbers && children && make_room(stream, lists->child_count) &&
        make_nodes(reduce, lists, numbers, children)) {
        set_lists(reduce, stream, lists, numbers);
        stream->traces[0].is_folded = lists->is_folded;
        stream->traces[0].is_partial = true;
        is_taken = true;
    }
    free(numbers);
    free(children);
    return is_taken;
}
