/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links:  is_attached u8, nested, trees_outside, tree_count u32; parts u8, that many part
 * part:   place, is_ended, status, flags u8, trace, path, node 16 bytes each, start_ns, end_ns u64, edge (in); out u8, that many edge
 * edge:   kind u8, key 16 bytes, ns u64
 */
#include <stdlib.h>

#include "net/bytes.h"
#include "net/ids.h"
#include "pipeline/resume.h"

#define HEAD_SIZE 14u
#define EDGE_SIZE 25u
#define PART_SIZE (4u + 3 * 16 + 2 * 8 + EDGE_SIZE + 1)

static uint8_t *put_id(uint8_t *at, struct mr_id id)
{
    mr_id_put(id, at);
    return at + 16;
}

static uint8_t *put_edge(uint8_t *at, const struct mr_part_edge *edge)
{
    at = put_id(mr_put_u8(at, (uint8_t)edge->kind), edge->key);
    return mr_put_u64(at, edge->ns);
}

static uint8_t *put_part(uint8_t *at, const struct mr_resume_part *from)
{
    const struct mr_part *part = &from->part;

    at = mr_put_u8(mr_put_u8(at, (uint8_t)from->place), from->is_ended);
    at = mr_put_u8(mr_put_u8(at, (uint8_t)part->status), (uint8_t)part->flags);
    at = put_id(put_id(put_id(at, part->trace), part->path), part->node);
    at = mr_put_u64(mr_put_u64(at, part->start_ns), part->end_ns);
    at = mr_put_u8(put_edge(at, &part->in), (uint8_t)part->out_count);
    for (uint32_t i = 0; i < part->out_count; i++)
        at = put_edge(at, &part->out[i]);
    return at;
}

enum mr_status mr_resume_put_links(struct mr_buffer *buffer,
                                   const struct mr_resume_links *links)
{
    size_t size = HEAD_SIZE;
    uint8_t *at;
    enum mr_status status;

    for (uint32_t i = 0; i < links->part_count; i++)
        size += PART_SIZE + (size_t)EDGE_SIZE * links->parts[i].part.out_count;
    status = mr_buffer_reserve(buffer, size, &at);
    if (status != MR_OK)
        return status;
    at = mr_put_u32(mr_put_u8(at, links->is_attached), links->nested);
    at = mr_put_u32(mr_put_u32(at, links->trees_outside), links->tree_count);
    at = mr_put_u8(at, (uint8_t)links->part_count);
    for (uint32_t i = 0; i < links->part_count; i++)
        at = put_part(at, &links->parts[i]);
    mr_buffer_commit(buffer, size);
    return MR_OK;
}

static bool take_id(struct mr_span *bytes, struct mr_id *id)
{
    struct mr_span taken;

    if (!mr_span_take(bytes, 16, &taken))
        return false;
    *id = mr_id_get(taken.data);
    return true;
}

static bool take_small(struct mr_span *bytes, uint32_t limit, uint32_t *value)
{
    uint8_t byte;

    if (!mr_span_take_u8(bytes, &byte) || byte >= limit)
        return false;
    *value = byte;
    return true;
}

static bool take_edge(struct mr_span *bytes, struct mr_part_edge *edge)
{
    return take_small(bytes, MR_EDGE_KIND_COUNT, &edge->kind) &&
           take_id(bytes, &edge->key) && mr_span_take_u64(bytes, &edge->ns);
}

/* The part's edges go to `edges`, which has room. */
static bool take_part(struct mr_span *bytes, struct mr_resume_part *to,
                      struct mr_part_edge *edges)
{
    struct mr_part *part = &to->part;
    uint32_t is_ended;

    if (!take_small(bytes, MR_RESUME_PARTS_MAX, &to->place) ||
        !take_small(bytes, 2, &is_ended) ||
        !take_small(bytes, MR_PART_STATUSES, &part->status) ||
        !take_small(bytes, MR_PART_CUT + 1, &part->flags) ||
        !take_id(bytes, &part->trace) || !take_id(bytes, &part->path) ||
        !take_id(bytes, &part->node) || !mr_span_take_u64(bytes, &part->start_ns) ||
        !mr_span_take_u64(bytes, &part->end_ns) || part->end_ns < part->start_ns ||
        !take_edge(bytes, &part->in) ||
        !take_small(bytes, MR_PART_EDGES_MAX + 1, &part->out_count) ||
        bytes->size < (size_t)EDGE_SIZE * part->out_count)
        return false;
    to->is_ended = is_ended;
    part->out = edges;
    for (uint32_t i = 0; i < part->out_count; i++)
        if (!take_edge(bytes, &edges[i]) || edges[i].kind == MR_EDGE_NONE)
            return false;
    return true;
}

static bool take_parts(struct mr_span bytes, struct mr_resume_links *links)
{
    struct mr_part_edge *edges = links->edges;

    for (uint32_t i = 0; i < links->part_count; i++) {
        if (!take_part(&bytes, &links->parts[i], edges) ||
            (i > 0 && links->parts[i].place <= links->parts[i - 1].place))
            return false;
        edges += links->parts[i].part.out_count;
    }
    return bytes.size == 0;
}

static bool take_head(struct mr_span *bytes, struct mr_resume_links *links)
{
    uint32_t is_attached;

    if (!take_small(bytes, 2, &is_attached) || !mr_span_take_u32(bytes, &links->nested) ||
        !mr_span_take_u32(bytes, &links->trees_outside) ||
        links->trees_outside >= MR_RESUME_TRACES_MAX ||
        !mr_span_take_u32(bytes, &links->tree_count) ||
        !take_small(bytes, MR_RESUME_PARTS_MAX + 1, &links->part_count))
        return false;
    links->is_attached = is_attached;
    return true;
}

enum mr_status mr_resume_take_links(struct mr_span bytes, struct mr_resume_links **out)
{
    struct mr_resume_links *links = calloc(1, sizeof(*links));
    bool is_good = links && take_head(&bytes, links);

    *out = links; /* the caller's, whatever comes of it */
    if (!links)
        return MR_ENOMEM;
    links->edges = calloc(bytes.size / EDGE_SIZE + 1, sizeof(*links->edges));
    if (!links->edges)
        return MR_ENOMEM;
    return is_good && take_parts(bytes, links) ? MR_OK : MR_EFORMAT;
}

void mr_resume_free_links(struct mr_resume_links *links)
{
    if (!links)
        return;
    free(links->edges);
    free(links);
}
