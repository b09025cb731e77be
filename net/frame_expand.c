/* SPDX-License-Identifier: Apache-2.0 */
#include "net/frame_expand.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/assert.h"

void mr_frame_expander_init(struct mr_frame_expander *expander)
{
    *expander = (struct mr_frame_expander){.context = NULL};
}

void mr_frame_expander_fini(struct mr_frame_expander *expander)
{
    (void)ZSTD_freeDCtx(expander->context);
    free(expander->data);
    mr_frame_expander_init(expander);
}

static enum mr_status make_room(struct mr_frame_expander *expander, size_t size)
{
    if (!expander->context)
        expander->context = ZSTD_createDCtx();
    if (size > expander->capacity) {
        free(expander->data);
        expander->data = malloc(size);
        expander->capacity = expander->data ? size : 0;
    }
    return expander->context && (expander->data || size == 0) ? MR_OK : MR_ENOMEM;
}

enum mr_status mr_frame_expand(struct mr_frame_expander *expander, uint32_t max_frame,
                               struct mr_frame *frame, struct mr_error *error)
{
    struct mr_span packed = frame->payload;
    uint32_t size;

    MR_ASSERT(frame->flags & MR_WIRE_FLAG_ZSTD);
    if (!mr_span_take_u32(&packed, &size))
        return mr_error_set(error, MR_EFORMAT, "compressed frame without its size");
    if (size > max_frame)
        return mr_error_set(error, MR_ELIMIT,
                            "frame of %u bytes when expanded; the limit is %u", size,
                            max_frame);
    if (make_room(expander, size) != MR_OK)
        return mr_error_set(error, MR_ENOMEM, "no memory to expand a frame of %u bytes",
                            size);
    /* In one piece, so that zstd needs no window; it never writes past the capacity. An error is no size. */
    if (ZSTD_decompressDCtx(expander->context, expander->data, size, packed.data,
                            packed.size) != size)
        return mr_error_set(error, MR_EFORMAT,
                            "compressed frame does not expand to its size");
    frame->payload = mr_span_of(expander->data, size);
    frame->flags &= (uint16_t)~MR_WIRE_FLAG_ZSTD;
    return MR_OK;
}
