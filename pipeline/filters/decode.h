/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode: frames -> events, dictionaries and deltas.
 *
 *     FRAME(CHUNKS) of a probe   -> EVENTS per stream, times in Unix ns, never going back within a stream
 *     FRAME(DICT) of a probe     -> what the source knows; DICT source, scope and, as they are met, site items
 *     FRAME(DICT, DELTA) of a worker -> DICT, DELTA, checked
 *     END                        -> STREAM_END on each open stream, DICT source with its end, END
 *
 * Bytes that break the format break their source (mr_source_is_broken): what was decoded before the fault counts, the rest
 * of the chunk is lost (format), later frames of that source are dropped and counted; nothing else is harmed.
 * process() then still returns MR_OK.
 *
 * Records of kinds that nothing uses yet (send, receive, label, ...) are told as reduced (MR_EVENT_COUNTED).
 */
#ifndef MR_PIPELINE_FILTERS_DECODE_H
#define MR_PIPELINE_FILTERS_DECODE_H

#include "base/clock.h"
#include "base/id.h"
#include "pipeline/filter.h"
#include "pipeline/sites.h"
#include "pipeline/source.h"

struct mr_decode_config {
    struct mr_sites *sites; /* of the lane; borrowed */
    struct mr_id worker;    /* incarnation of this worker, for DICT source items */
    uint32_t level;         /* of this worker, for its deltas */
    uint32_t streams_max;   /* open streams per source; past it: lost (budget) */
    bool has_marks;         /* a MARK behind every frame and END, for reduce */
    uint64_t
        clock_limit_ns; /* times further from this host's clock are lost (clock); 0: any time (replay) */
};
#define MR_DECODE_CLOCK_LIMIT_DEFAULT (24 * MR_HOUR_NS)

extern const struct mr_filter_kind mr_decode_filter;

#endif
