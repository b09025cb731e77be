/* SPDX-License-Identifier: Apache-2.0 */
#include "net/joined.h"

#include "base/assert.h"
#include "net/ids.h"
#include "net/part.h"
#include "net/varint.h"

#define ID_SIZE ((size_t)16)

uint8_t *mr_joined_put(struct mr_id id, const struct mr_joined_node *nodes,
                       uint32_t count, uint8_t *at)
{
    MR_ASSERT(count > 0 && count <= MR_JOINED_NODES_MAX);
    mr_id_put(id, at);
    at = mr_varint_put(at + ID_SIZE, count);
    for (uint32_t i = 0; i < count; i++) {
        at = mr_varint_put(mr_varint_put(at, nodes[i].kind), nodes[i].flags);
        at = mr_varint_put(at, nodes[i].children);
        mr_id_put(nodes[i].path, at);
        mr_id_put(nodes[i].node, at + ID_SIZE);
        at += 2 * ID_SIZE;
    }
    return at;
}

/*
 * From the last node to the first: below a node, the ids of its children lie on the stack, the first on top. False when
 * the children are more than there are nodes, or nodes are left over.
 */
static bool find_id(const struct mr_joined_node *nodes, uint32_t count, struct mr_id *id)
{
    struct mr_joined_child stack[MR_JOINED_NODES_MAX], list[MR_JOINED_NODES_MAX];
    uint32_t depth = 0;

    for (uint32_t i = count; i-- > 0;) {
        uint32_t children = nodes[i].children;

        if (children > depth)
            return false;
        for (uint32_t j = 0; j < children; j++)
            list[j] = stack[depth - 1 - j];
        depth -= children;
        stack[depth++] = (struct mr_joined_child){
            .id = mr_id_joined(nodes[i].flags & (uint8_t)~MR_JOINED_RUN, nodes[i].path,
                               nodes[i].node, list, children),
            .kind = nodes[i].kind,
            .is_run = (nodes[i].flags & MR_JOINED_RUN) != 0};
    }
    *id = stack[0].id;
    return depth == 1;
}

struct mr_id mr_joined_id(const struct mr_joined_node *nodes, uint32_t count)
{
    struct mr_id id = {0, 0};
    bool is_tree = count > 0 && find_id(nodes, count, &id);

    MR_ASSERT(is_tree);
    return id;
}

static bool get_node(struct mr_span *in, struct mr_joined_node *node, bool is_first)
{
    uint32_t kind, flags;

    if (!mr_varint_get_u32(in, &kind) || kind >= MR_EDGE_KIND_COUNT ||
        is_first != (kind == MR_EDGE_NONE) || !mr_varint_get_u32(in, &flags) ||
        flags > MR_JOINED_FLAGS || !mr_varint_get_u32(in, &node->children))
        return false;
    node->kind = (uint8_t)kind;
    node->flags = (uint8_t)flags;
    return mr_id_take(in, &node->path) && mr_id_take(in, &node->node);
}

bool mr_joined_get(struct mr_span *in, struct mr_id *id,
                   struct mr_joined_node nodes[MR_JOINED_NODES_MAX], uint32_t *count)
{
    struct mr_id found;

    if (!mr_id_take(in, id) || !mr_varint_get_u32(in, count) || *count == 0 ||
        *count > MR_JOINED_NODES_MAX)
        return false;
    for (uint32_t i = 0; i < *count; i++)
        if (!get_node(in, &nodes[i], i == 0))
            return false;
    return find_id(nodes, *count, &found) && mr_id_equal(found, *id);
}
