/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressed payloads as they come from outside, and round trips: what is expanded is never more than max_frame, and what
 * was compressed comes back. Frames around them are fuzz_frame.c's.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "net/frame_compress.h"
#include "net/frame_expand.h"

enum { MAX_FRAME = MR_WIRE_MAX_FRAME_MIN };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum mr_status expand(struct mr_frame_expander *expander, struct mr_span *payload)
{
    struct mr_frame frame = {
        .type = MR_FRAME_CHUNKS, .flags = MR_WIRE_FLAG_ZSTD, .payload = *payload};
    enum mr_status status = mr_frame_expand(expander, MAX_FRAME, &frame, NULL);

    MR_ASSERT(expander->capacity <= MAX_FRAME);
    MR_ASSERT(status != MR_OK || frame.payload.size <= MAX_FRAME);
    *payload = frame.payload;
    return status;
}

static void come_back(struct mr_frame_expander *expander, struct mr_span payload)
{
    static struct mr_frame_compressor compressor;
    static uint8_t packed[MAX_FRAME];
    struct mr_span span;
    size_t size = mr_frame_compressor_size(MR_FRAME_COMPRESS_LEVEL);

    if (!compressor.context)
        MR_ASSERT(mr_frame_compressor_init(&compressor, MR_FRAME_COMPRESS_LEVEL,
                                           malloc(size), size) == MR_OK);
    if (payload.size > MAX_FRAME)
        return;
    size = mr_frame_compress(&compressor, payload, packed, sizeof(packed));
    if (size == 0)
        return;
    span = mr_span_of(packed, size);
    MR_ASSERT(expand(expander, &span) == MR_OK && mr_span_equal(span, payload));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_frame_expander expander;
    struct mr_span payload = mr_span_of(data, size);

    mr_frame_expander_init(&expander);
    (void)expand(&expander, &payload);
    come_back(&expander, mr_span_of(data, size));
    mr_frame_expander_fini(&expander);
    return 0;
}
