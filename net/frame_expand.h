/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expands frames with MR_WIRE_FLAG_ZSTD, as net/frame_compress.h makes them. Each object owns its zstd context and is used by
 * one thread at a time.
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

#endif
