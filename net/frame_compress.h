/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd for the payloads of data frames, MR_WIRE_FLAG_ZSTD (docs/FORMAT.md section 2): a u32 with the size when expanded, then
 * one zstd frame. The other end is net/frame_expand.h.
 *
 * All memory is the caller's, so that the probe's writer can use it: neither malloc nor stdio, no lock, no thread. An object
 * is used by one thread at a time.
 *
 *     size = mr_frame_compressor_size(1);
 *     memory = mmap(NULL, size, ...);
 *     status = mr_frame_compressor_init(&compressor, 1, memory, size);
 *     ...
 *     size = mr_frame_compress(&compressor, payload, reserved, reserved_size);   // 0: send it as it is
 *     mr_sender_commit(&sender, MR_FRAME_DELTA, size ? MR_WIRE_FLAG_ZSTD : 0, size ? size : payload.size);
 */
#ifndef MR_NET_FRAME_COMPRESS_H
#define MR_NET_FRAME_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"

/* On SQLite's events: docs/why/2026-11-20-wire.md. */
#define MR_FRAME_COMPRESS_LEVEL 1

struct mr_frame_compressor {
    void *context; /* in the memory given */
    int level;     /* of zstd */
};

/* Bytes of memory for payloads of any size; those that smaller ones do not need are not touched. */
size_t mr_frame_compressor_size(int level);
/* `memory` is borrowed, aligned to 8. MR_EUSAGE: not enough, or not aligned. There is no fini. */
enum mr_status mr_frame_compressor_init(struct mr_frame_compressor *compressor, int level,
                                        void *memory, size_t size);
/* The size of the compressed payload in out, or 0 when it does not fit in `capacity` or is no smaller. */
size_t mr_frame_compress(struct mr_frame_compressor *compressor, struct mr_span payload,
                         uint8_t *out, size_t capacity);

#endif
