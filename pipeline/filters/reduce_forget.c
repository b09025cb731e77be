/* SPDX-License-Identifier: Apache-2.0 */
/* Full tables: what was gained goes out, then everything that no open call needs is forgotten. */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

/* When open calls alone need more than this part of a table, their traces give up their shapes. */
static bool is_crowded(uint32_t count, uint32_t limit)
{
    return count > limit - limit / 4;
}

static void renumber_paths(struct mr_reduce_stream *stream, const uint32_t *map)
{
    stream->base = map[stream->base];
    stream->outer_base = map[stream->outer_base];
    if (stream->counts)
        stream->counts->path = map[stream->counts->path];
    for (uint32_t i = 0; i < stream->depth; i++) {
        stream->frames[i].path = map[stream->frames[i].path];
        stream->frames[i].last = MR_PATH_NONE;
        stream->frames[i].next = MR_PATH_NONE;
    }
}

static bool forget_paths(struct mr_reduce *reduce)
{
    uint32_t *map = malloc(reduce->paths.count * sizeof(*map));

    if (!map)
        return false;
    for (const struct mr_reduce_stream *stream = reduce->streams; stream;
         stream = stream->next) {
        mr_paths_keep(&reduce->paths, stream->base);
        mr_paths_keep(&reduce->paths, stream->outer_base);
        if (stream->counts && stream->counts->last == MR_COUNTS_CLOSED)
            mr_paths_keep(&reduce->paths, stream->counts->path);
        else if (stream->counts)
            stream->counts->path = MR_PATH_NONE;
        for (uint32_t i = stream->depth; i-- > 0;)
            mr_paths_keep(&reduce->paths, stream->frames[i].path);
    }
    mr_paths_forget(&reduce->paths, map);
    for (struct mr_reduce_stream *stream = reduce->streams; stream; stream = stream->next)
        renumber_paths(stream, map);
    free(map);
    for (uint32_t i = 1; i < reduce->paths.count; i++) {
        reduce->paths.nodes[i].entry = 0;
        reduce->paths.nodes[i].expected = MR_NODE_NONE;
    }
    reduce->entry_count = 0;
    reduce->paths_kept = reduce->paths.count;
    return true;
}

/* Those of applications that have no stream here any more. The others keep their numbers, which the paths at their base have. */
static bool forget_scopes(struct mr_reduce *reduce)
{
    for (const struct mr_reduce_stream *stream = reduce->streams; stream;
         stream = stream->next)
        reduce->scopes[stream->scope].is_kept = true;
    for (uint32_t i = 0; i < reduce->scope_count; i++) {
        struct mr_scope *scope = &reduce->scopes[i];

        if (!scope->is_kept && !scope->is_free) {
            if (!mr_list_push(&reduce->free_scopes, i))
                return false;
            (void)mr_table_remove(&reduce->scope_ids, scope->id);
            scope->is_free = true;
        }
        scope->is_kept = false;
    }
    return true;
}

/* Nodes have other numbers. */
static void hash_again(const struct mr_reduce *reduce, struct mr_reduce_stream *stream)
{
    uint32_t end = stream->child_count;

    for (uint32_t i = stream->depth; i-- > 0;) {
        struct mr_open_call *frame = &stream->frames[i];
        uint32_t first = frame->first_child < end ? frame->first_child : end;

        frame->hash = mr_node_hash(&reduce->nodes, mr_open_call_site(frame),
                                   stream->children + first, end - first);
        end = first;
    }
}

static bool forget_nodes(struct mr_reduce *reduce)
{
    uint32_t *map = malloc(reduce->nodes.count * sizeof(*map));

    if (!map)
        return false;
    for (const struct mr_reduce_stream *stream = reduce->streams; stream;
         stream = stream->next)
        for (uint32_t i = 0; i < stream->child_count; i++)
            mr_nodes_keep(&reduce->nodes, mr_child_node(stream->children[i]));
    mr_nodes_forget(&reduce->nodes, map);
    for (struct mr_reduce_stream *stream = reduce->streams; stream;
         stream = stream->next) {
        for (uint32_t i = 0; i < stream->child_count; i++) {
            uint64_t child = stream->children[i];

            stream->children[i] =
                mr_child_repeat(child) << 32 | map[mr_child_node(child)];
        }
        hash_again(reduce, stream);
    }
    free(map);
    return true;
}

/* All open trees go on in the paths alone. */
static void give_shapes_up(struct mr_reduce *reduce)
{
    for (struct mr_reduce_stream *stream = reduce->streams; stream; stream = stream->next)
        mr_reduce_leave_shapes(reduce, stream, MR_REDUCE_TRACES_TOO_BIG);
}

enum mr_status mr_reduce_forget(struct mr_reduce *reduce)
{
    const struct mr_nodes *nodes = &reduce->nodes;
    enum mr_status status = mr_reduce_flush(reduce);

    if (status != MR_OK)
        return status;
    mr_counters_add(&reduce->counters, MR_REDUCE_FORGETS, 1);
    mr_counters_add(&reduce->counters, MR_REDUCE_EARLY, 1);
    mr_templates_clear(&reduce->templates);
    reduce->shape_count = 0;
    if (reduce->shape_slots)
        memset(reduce->shape_slots, 0,
               ((size_t)reduce->shape_mask + 1) * sizeof(*reduce->shape_slots));
    if (!forget_paths(reduce) || !forget_scopes(reduce) || !forget_nodes(reduce))
        return MR_ENOMEM;
    if (is_crowded(nodes->count, nodes->limit) ||
        is_crowded(nodes->child_count, nodes->child_limit)) {
        give_shapes_up(reduce);
        if (!forget_nodes(reduce))
            return MR_ENOMEM;
    }
    return MR_OK;
}
