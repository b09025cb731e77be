/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists:  exactness, is_folded u8; nodes u32, that many {site 16 bytes, list}; a list for each call from the root on
 * list:   count u32, that many u64 (pipeline/shapes.h: repeat, number of a node above, from 1 on)
 */
#include <stdlib.h>

#include "net/bytes.h"
#include "net/ids.h"
#include "pipeline/resume.h"

#define LIST_HEAD 4u
#define NODE_HEAD (16u + LIST_HEAD)
#define HEAD_SIZE 6u

void mr_resume_free_lists(struct mr_resume_lists *lists)
{
    if (!lists)
        return;
    free(lists->nodes);
    free(lists->calls);
    free(lists->children);
    free(lists);
}

static uint8_t *put_list(uint8_t *at, const struct mr_resume_lists *lists,
                         struct mr_resume_list list)
{
    at = mr_put_u32(at, list.count);
    for (uint32_t i = 0; i < list.count; i++)
        at = mr_put_u64(at, lists->children[list.first + i]);
    return at;
}

enum mr_status mr_resume_put_lists(struct mr_buffer *buffer,
                                   const struct mr_resume_lists *lists)
{
    size_t size = HEAD_SIZE + (size_t)NODE_HEAD * lists->node_count +
                  (size_t)LIST_HEAD * lists->call_count +
                  sizeof(uint64_t) * lists->child_count;
    uint8_t *at;
    enum mr_status status = mr_buffer_reserve(buffer, size, &at);

    if (status != MR_OK)
        return status;
    at = mr_put_u8(mr_put_u8(at, (uint8_t)lists->exactness), lists->is_folded);
    at = mr_put_u32(at, lists->node_count);
    for (uint32_t i = 0; i < lists->node_count; i++) {
        mr_id_put(lists->nodes[i].site_id, at);
        at = put_list(at + 16, lists, lists->nodes[i].list);
    }
    for (uint32_t i = 0; i < lists->call_count; i++)
        at = put_list(at, lists, lists->calls[i]);
    mr_buffer_commit(buffer, size);
    return MR_OK;
}

static bool add_child(struct mr_resume_lists *lists, uint64_t child)
{
    if (lists->child_count == lists->child_capacity) {
        uint32_t capacity = lists->child_capacity ? 2 * lists->child_capacity : 64;
        uint64_t *grown = realloc(lists->children, capacity * sizeof(*grown));

        if (!grown)
            return false;
        lists->children = grown;
        lists->child_capacity = capacity;
    }
    lists->children[lists->child_count++] = child;
    return true;
}

enum mr_status mr_resume_lists_add(struct mr_resume_lists *lists,
                                   struct mr_resume_list *list, uint64_t child)
{
    if (list->count == 0)
        list->first = lists->child_count;
    if (!add_child(lists, child))
        return MR_ENOMEM;
    list->count++;
    return MR_OK;
}

/* Of nodes up to number `limit`; an exact one comes so and so often, others once or more. */
static bool is_child(const struct mr_resume_lists *lists, uint64_t child, uint32_t limit)
{
    bool has_repeat = child >> 32 != 0;

    return (uint32_t)child > 0 && (uint32_t)child <= limit &&
           has_repeat == (lists->exactness == MR_EXACTNESS_EXACT);
}

static enum mr_status take_list(struct mr_span *rest, struct mr_resume_lists *lists,
                                struct mr_resume_list *list, uint32_t limit)
{
    enum mr_status status = MR_OK;
    uint32_t count;

    if (!mr_span_take_u32(rest, &count) || count > rest->size / sizeof(uint64_t))
        return MR_EFORMAT;
    for (uint32_t i = 0; i < count && status == MR_OK; i++) {
        uint64_t child;

        if (!mr_span_take_u64(rest, &child) || !is_child(lists, child, limit))
            return MR_EFORMAT;
        status = mr_resume_lists_add(lists, list, child);
    }
    return status;
}

static enum mr_status take_nodes(struct mr_span *rest, struct mr_resume_lists *lists)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < lists->node_count && status == MR_OK; i++) {
        struct mr_span id;

        if (!mr_span_take(rest, 16, &id))
            return MR_EFORMAT;
        lists->nodes[i].site_id = mr_id_get(id.data);
        status = take_list(rest, lists, &lists->nodes[i].list, i);
    }
    return status;
}

static enum mr_status take_all(struct mr_span *rest, uint32_t calls,
                               struct mr_resume_lists *lists)
{
    enum mr_status status;
    uint8_t exactness, is_folded;

    if (!mr_span_take_u8(rest, &exactness) || !mr_span_take_u8(rest, &is_folded) ||
        exactness > MR_EXACTNESS_SET || is_folded > 1 ||
        !mr_span_take_u32(rest, &lists->node_count) ||
        lists->node_count > rest->size / NODE_HEAD)
        return MR_EFORMAT;
    lists->exactness = (enum mr_exactness)exactness;
    lists->is_folded = is_folded;
    lists->nodes = calloc((size_t)lists->node_count + 1, sizeof(*lists->nodes));
    lists->calls = calloc((size_t)calls + 1, sizeof(*lists->calls));
    if (!lists->nodes || !lists->calls)
        return MR_ENOMEM;
    lists->call_count = calls;
    status = take_nodes(rest, lists);
    for (uint32_t i = 0; i < calls && status == MR_OK; i++)
        status = take_list(rest, lists, &lists->calls[i], lists->node_count);
    return status;
}

enum mr_status mr_resume_take_lists(struct mr_span *rest, uint32_t calls,
                                    struct mr_resume_lists **lists)
{
    *lists = calloc(1, sizeof(**lists));
    return *lists ? take_all(rest, calls, *lists) : MR_ENOMEM;
}
