/* SPDX-License-Identifier: Apache-2.0 */
/* ZSTD_initStaticCCtx() is of zstd's static interface, so libzstd.a is what we link. */
#define ZSTD_STATIC_LINKING_ONLY
#include "net/frame_compress.h"

#include <zstd.h>

#include "base/assert.h"
#include "net/bytes.h"

enum { SIZE_SIZE = 4 };

size_t mr_frame_compressor_size(int level)
{
    return ZSTD_estimateCCtxSize(level);
}

enum mr_status mr_frame_compressor_init(struct mr_frame_compressor *compressor, int level,
                                        void *memory, size_t size)
{
    *compressor = (struct mr_frame_compressor){.level = level};
    if (size < mr_frame_compressor_size(level))
        return MR_EUSAGE;
    compressor->context = ZSTD_initStaticCCtx(memory, size);
    return compressor->context ? MR_OK : MR_EUSAGE;
}

size_t mr_frame_compress(struct mr_frame_compressor *compressor, struct mr_span payload,
                         uint8_t *out, size_t capacity)
{
    size_t size;

    MR_DEBUG_ASSERT(payload.size <= UINT32_MAX);
    if (capacity < SIZE_SIZE)
        return 0;
    size = ZSTD_compressCCtx(compressor->context, out + SIZE_SIZE, capacity - SIZE_SIZE,
                             payload.data, payload.size, compressor->level);
    if (ZSTD_isError(size) || size + SIZE_SIZE >= payload.size)
        return 0;
    mr_put_u32(out, (uint32_t)payload.size);
    return SIZE_SIZE + size;
}
