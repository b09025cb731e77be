/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sender that moves takes along to the next worker, so that its call trees survive: where the analysis of its streams
 * stood (pipeline/resume.h), as entries in the bytes of RESUME frames (docs/FORMAT.md section 10). Written by reduce at the end of the source,
 * cut into frames by the lane; read by the lane of the next worker. Nothing read is trusted.
 *
 *     mr_handover_init(&source->handover, hello->resume_max);
 *     if (mr_handover_promise(&source->handover, depth))                           // of each stream: reconstruct
 *     status = mr_handover_put(&source->handover, sites, &stream, &told);          // of each open stream
 *     while (mr_handover_next(&rest, &payload)) ...                                // for a frame each
 *
 *     status = mr_handover_take(resume, payload);                                  // at the other end
 *
 * Plain data; the thread that owns it.
 */
#ifndef MR_PIPELINE_HANDOVER_H
#define MR_PIPELINE_HANDOVER_H

#include "base/buffer.h"
#include "base/table.h"
#include "pipeline/resume.h"

/* Of one payload: a RESUME frame has it behind its sequence. */
#define MR_HANDOVER_PAYLOAD_MAX ((64u << 10) - 8u)
#define MR_HANDOVER_BYTES_MAX (1u << 20) /* of all, whatever a sender would keep */

enum mr_handover_told {
    MR_HANDOVER_WHOLE,
    MR_HANDOVER_SHORT, /* without its calls: who goes on with it counts their enters as lost (budget) */
    MR_HANDOVER_NONE
};

/* Open calls of a stream: with what else it may have they find room in one payload. */
#define MR_HANDOVER_CALLS_MAX 1700u

/* `promised` is reconstruct's, the rest reduce's. */
struct mr_handover {
    uint32_t
        promised; /* bytes for streams, of half of bytes_max: the other is for sites and links */
    struct mr_buffer bytes;
    struct mr_table sites; /* that are told: where in `bytes` */
    uint32_t bytes_max;    /* of `bytes`; 0: nothing is taken along */
};

/* `payload_bytes`: what the sender keeps of payloads with their sequences, in all; 0: it takes nothing along. */
void mr_handover_init(struct mr_handover *handover, uint32_t payload_bytes);
void mr_handover_fini(struct mr_handover *handover);
/* Whether a stream with so many open calls finds room, which is taken then; else its calls end here, as if it did not move. */
bool mr_handover_promise(struct mr_handover *handover, uint32_t depth);
/*
 * A stream with its open calls (`site` and `site_id` of each are set) and their sites, as far as there is room; `*told`: how far.
 * MR_ENOMEM.
 */
enum mr_status mr_handover_put(struct mr_handover *handover, const struct mr_sites *sites,
                               const struct mr_resume_stream *stream,
                               enum mr_handover_told *told);
/* What fits the next payload, off the front of what was put. False: nothing is left. */
bool mr_handover_next(struct mr_span *rest, struct mr_span *payload);
/*
 * Adds what a payload tells. MR_EFORMAT, MR_ENOMEM. Entries of unknown kinds, of later versions, are passed over.
 */
enum mr_status mr_handover_take(struct mr_resume *resume, struct mr_span payload);

#endif
