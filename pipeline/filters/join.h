/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: parts of traces -> joined traces, as far as all their parts pass here.
 *
 * Takes the parts out of DELTA batches (net/part.h; all else of them goes on), joins them
 * (pipeline/joiner.h), and emits what is whole as rows of joined shapes. Parts to whose
 * trace nothing came for a delta period travel on, as they came: the level above sees more
 * streams, and the last one, the master, ends what stays incomplete. So nothing is timed
 * out here, and nothing lost: past parts_max, those that waited longest travel on at once.
 */
#ifndef MR_PIPELINE_FILTERS_JOIN_H
#define MR_PIPELINE_FILTERS_JOIN_H

#include "pipeline/filter.h"
#include "pipeline/joiner.h"

struct mr_join_config {
    uint32_t level; /* of this worker */
    uint64_t period_ns;
    uint32_t parts_max;
    uint32_t delta_bytes_max; /* of one DELTA payload, and a little more */
    uint32_t window_s;
};

extern const struct mr_filter_kind mr_join_filter;

#endif
