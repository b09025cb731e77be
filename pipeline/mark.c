/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/mark.h"

#include "net/bytes.h"
#include "net/ids.h"

#define HEAD_SIZE 5u
#define FIXED_SIZE 32u

enum mr_status mr_mark_put(struct mr_buffer *buffer, const struct mr_mark *mark)
{
    size_t size = HEAD_SIZE + FIXED_SIZE + mark->bytes.size;
    uint8_t *at;
    enum mr_status status = mr_buffer_reserve(buffer, size, &at);

    if (status != MR_OK)
        return status;
    at = mr_put_u8(at, (uint8_t)mark->kind);
    at = mr_put_u32(at, (uint32_t)(FIXED_SIZE + mark->bytes.size));
    mr_id_put(mark->id, at);
    at = mr_put_u32(at + 16, mark->serial);
    at = mr_put_u32(at, mark->stream);
    at = mr_put_u64(at, mark->sequence);
    if (mark->bytes.size)
        memcpy(at, mark->bytes.data, mark->bytes.size);
    mr_buffer_commit(buffer, size);
    return MR_OK;
}

bool mr_mark_next(struct mr_span *rest, struct mr_mark *mark)
{
    struct mr_span left = *rest, body, id;
    uint32_t size;
    uint8_t kind;

    if (!mr_span_take_u8(&left, &kind) || kind == 0 || kind >= MR_MARK_KIND_COUNT ||
        !mr_span_take_u32(&left, &size) || size < FIXED_SIZE ||
        !mr_span_take(&left, size, &body) || !mr_span_take(&body, 16, &id) ||
        !mr_span_take_u32(&body, &mark->serial) ||
        !mr_span_take_u32(&body, &mark->stream) ||
        !mr_span_take_u64(&body, &mark->sequence))
        return false;
    mark->kind = (enum mr_mark_kind)kind;
    mark->id = mr_id_get(id.data);
    mark->bytes = body;
    *rest = left;
    return true;
}
