/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd for frames with MR_WIRE_FLAG_ZSTD (docs/FORMAT.md section 2): a u32 with the size when expanded, then one zstd frame.
 * Each object owns its zstd context and is used by one thread at a time.
 *
 *     size = mr_frame_compress(&compressor, payload, reserved, reserved_size);   // 0: send it as it is
 *     mr_sender_commit(&sender, MR_FRAME_DELTA, size ? MR_WIRE_FLAG_ZSTD : 0, size ? size : payload.size);
 */
#ifndef MR_NET_FRAME_EXPAND_H
#define MR_NET_FRAME_EXPAND_H

#include "base/error.h"
#include "net/frame.h"

struct mr_frame_expander {
    void *context; /* made at the first use */
    uint8_t *data; /* the last payload, owned */
    size_t capacity;
};
void mr_frame_expander_init(struct mr_frame_expander *expander);
void mr_frame_expander_fini(struct mr_frame_expander *expander);
/*
 * Replaces the payload of a compressed frame by the expanded one (borrowed until the next call) and takes the flag away.
 * The size that is told is held against max_frame before anything is allocated. MR_EFORMAT, MR_ELIMIT, MR_ENOMEM.
 */
enum mr_status mr_frame_expand(struct mr_frame_expander *expander, uint32_t max_frame,
                               struct mr_frame *frame, struct mr_error *error);

struct mr_frame_compressor {
    void *context;
    int level; /* of zstd; 1 is right for links of a Gbit/s and more */
};
enum mr_status mr_frame_compressor_init(struct mr_frame_compressor *compressor,
                                        int level);
void mr_frame_compressor_fini(struct mr_frame_compressor *compressor);
/* The size of the compressed payload in out, or 0 when it does not fit in `capacity` or is no smaller. */
size_t mr_frame_compress(struct mr_frame_compressor *compressor, struct mr_span payload,
                         uint8_t *out, size_t capacity);

#endif
