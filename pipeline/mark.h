/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker's spool must know with the deltas that a lane has told so far: entries, one behind the other, in the bytes of a
 * MARK batch. Marks travel behind the batches that they speak of, from reduce to forward, which keeps both at once
 * (pipeline/spool.h). Lists of entries may be put one behind the other: a later one holds.
 *
 *     COVER       of sender `id`, all frames up to `sequence` are in the deltas
 *     SOURCE      what decode knows of source `id` that no frame repeats
 *     SOURCE_END  the source is over: nothing of it is needed any more
 *     STREAM      the calls of stream `stream` that are open; its ledger
 *     STREAM_END
 *     SITE        what site `id` is, for the open calls
 *
 *     mr_mark_put(&buffer, &(struct mr_mark){.kind = MR_MARK_COVER, .id = id, .sequence = 7});
 *     while (mr_mark_next(&rest, &mark)) ...          // what is left in `rest` then is damaged
 *
 * An entry: kind u8, size u32 of what follows, id 16 bytes, serial u32, stream u32, sequence u64, bytes. Plain functions; any thread.
 */
#ifndef MR_PIPELINE_MARK_H
#define MR_PIPELINE_MARK_H

#include "base/buffer.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum mr_mark_kind {
    MR_MARK_COVER = 1,
    MR_MARK_SOURCE,
    MR_MARK_SOURCE_END,
    MR_MARK_STREAM,
    MR_MARK_STREAM_END,
    MR_MARK_SITE,
    MR_MARK_KIND_COUNT
};

struct mr_mark {
    enum mr_mark_kind kind;
    struct mr_id id;
    uint32_t serial; /* of the source among those of its sender */
    uint32_t stream;
    uint64_t sequence;
    struct mr_span bytes; /* borrowed */
};

/* MR_ENOMEM, MR_ELIMIT (the buffer's). */
enum mr_status mr_mark_put(struct mr_buffer *buffer, const struct mr_mark *mark);
/* Takes an entry off the front. False, with nothing changed, at the end or where no whole, known entry begins. */
bool mr_mark_next(struct mr_span *rest, struct mr_mark *mark);

#endif
