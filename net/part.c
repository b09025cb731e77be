/* SPDX-License-Identifier: Apache-2.0 */
#include "net/part.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "net/ids.h"
#include "net/varint.h"

#define ID_SIZE ((size_t)16)

const char *mr_edge_kind_name(uint32_t kind)
{
    static const char *const names[] = {[MR_EDGE_NONE] = "root",
#define X(number, name, text) [number] = (text),
                                        MR_EDGE_KINDS(X)
#undef X
    };

    return kind < MR_ARRAY_COUNT(names) ? names[kind] : "?";
}

static uint8_t *put_id(uint8_t *at, struct mr_id id)
{
    mr_id_put(id, at);
    return at + ID_SIZE;
}

/* Times are told from the start of the part, which they may lie before. */
static uint8_t *put_edge(uint8_t *at, const struct mr_part_edge *edge, uint64_t start_ns)
{
    at = put_id(mr_varint_put(at, edge->kind), edge->key);
    return mr_zigzag_put(at, (int64_t)(edge->ns - start_ns));
}

uint8_t *mr_part_put(const struct mr_part *part, uint8_t *at)
{
    MR_ASSERT(part->out_count <= MR_PART_EDGES_MAX);
    MR_ASSERT(part->status < MR_PART_STATUSES && part->start_ns <= part->end_ns);
    at = put_id(at, part->id);
    at = mr_varint_put(mr_varint_put(at, part->status), part->flags);
    at = put_id(put_id(at, part->trace), part->path);
    at = put_id(put_id(at, part->node), part->source);
    at = mr_varint_put(at, part->start_ns);
    at = mr_varint_put(at, part->end_ns - part->start_ns);
    at = mr_zigzag_put(at, part->shift_ns);
    if (part->in.kind == MR_EDGE_NONE)
        at = mr_varint_put(at, MR_EDGE_NONE);
    else
        at = put_edge(at, &part->in, part->start_ns);
    at = mr_varint_put(at, part->out_count);
    for (uint32_t i = 0; i < part->out_count; i++)
        at = put_edge(at, &part->out[i], part->start_ns);
    return at;
}

/* What follows the kind. */
static bool get_edge(struct mr_span *in, struct mr_part_edge *edge, uint64_t start_ns)
{
    int64_t after_ns;

    if (edge->kind >= MR_EDGE_KIND_COUNT || !mr_id_take(in, &edge->key) ||
        !mr_zigzag_get(in, &after_ns))
        return false;
    edge->ns = start_ns + (uint64_t)after_ns;
    return true;
}

static bool get_head(struct mr_span *in, struct mr_part *part)
{
    uint64_t took_ns;

    if (!mr_id_take(in, &part->id) || !mr_varint_get_u32(in, &part->status) ||
        part->status >= MR_PART_STATUSES || !mr_varint_get_u32(in, &part->flags) ||
        !mr_id_take(in, &part->trace) || !mr_id_take(in, &part->path) ||
        !mr_id_take(in, &part->node) || !mr_id_take(in, &part->source) ||
        !mr_varint_get(in, &part->start_ns) || !mr_varint_get(in, &took_ns) ||
        took_ns > UINT64_MAX - part->start_ns || !mr_zigzag_get(in, &part->shift_ns))
        return false;
    part->end_ns = part->start_ns + took_ns;
    return true;
}

bool mr_part_get(struct mr_span *in, struct mr_part *part,
                 struct mr_part_edge out[MR_PART_EDGES_MAX])
{
    *part = (struct mr_part){.out = out};
    if (!get_head(in, part) || !mr_varint_get_u32(in, &part->in.kind))
        return false;
    if (part->in.kind != MR_EDGE_NONE && !get_edge(in, &part->in, part->start_ns))
        return false;
    if (!mr_varint_get_u32(in, &part->out_count) || part->out_count > MR_PART_EDGES_MAX)
        return false;
    for (uint32_t i = 0; i < part->out_count; i++)
        if (!mr_varint_get_u32(in, &out[i].kind) || out[i].kind == MR_EDGE_NONE ||
            !get_edge(in, &out[i], part->start_ns))
            return false;
    return true;
}
