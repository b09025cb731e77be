/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: DELTA and DICT batches of everything below -> one stream of both, about every
 * period.
 *
 * Deltas are merged exactly (pipeline/accumulate.h) and leave when the period is over and
 * the next filter has room; while it has none they are merged longer. What one lane told
 * at once (mr_batch.group) leaves as it came, where no other lane told anything in the
 * period: there is nothing to merge it with but what counts no calls. What is open, of all lanes
 * and workers below, goes out with every delta (pipeline/open_traces.h). A full accumulator,
 * or one with too many windows, leaves early and waits for room if it must. Dictionary
 * items leave with the period before the deltas, each once, and again when it gets better
 * or when `reannounce` changes (a new receiver). Other batches pass unchanged.
 *
 *     // link: of forward; without .reannounce for a receiver that never changes
 *     const struct mr_merge_config config = {.level = 1, .reannounce = &link.reannounce};
 *     {&mr_merge_filter, &config, MR_PLACE_THREAD}
 */
#ifndef MR_PIPELINE_FILTERS_MERGE_H
#define MR_PIPELINE_FILTERS_MERGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/accumulate.h"
#include "pipeline/dictionary.h"
#include "pipeline/filter.h"

#define MR_MERGE_PERIOD_NS                                                               \
    UINT64_C(100000000) /* DESIGN section 5: batches leave every 100 ms */

struct mr_merge_config {
    uint32_t level;     /* of this worker: goes into every delta's head */
    uint64_t period_ns; /* 0: MR_MERGE_PERIOD_NS */
    bool
        by_marks; /* written when a MARK comes, and not by the clock: a mark speaks of all that came */
    struct mr_accumulator_limits accumulator; /* 0 each: the defaults */
    struct mr_dictionary_limits dictionary;
    const _Atomic uint64_t
        *reannounce; /* borrowed; any change sends the whole dictionary again */
    const _Atomic uint32_t *
        max_frame; /* borrowed; of the receiver: no delta is larger. 0, or NULL: not known */
};

/* Name of the counter by which rows that were too large are told, with the level before it as in worker/graphs.c. */
#define MR_MERGE_UNWRITTEN_TOLD "level%u_rows_too_large"

/* Slots of its counters. */
enum mr_merge_counter {
    MR_MERGE_BAD_DELTA, /* payloads that broke the format, from the item that broke it on */
    MR_MERGE_BAD_DICT,
    MR_MERGE_OVER_LIMIT, /* delta items that alone pass a limit */
    MR_MERGE_UNKNOWN, /* delta items of unknown tags, dictionary items of unknown or foreign kinds */
    MR_MERGE_UNWRITTEN, /* rows too large for a payload: lost, and told upward (MR_MERGE_UNWRITTEN_TOLD) */
    MR_MERGE_DICTIONARY_BEYOND, /* dictionary items that found no room: sent every time they come */
    MR_MERGE_EARLY,             /* times it had to be written before its period */
    MR_MERGE_REANNOUNCED,
    MR_MERGE_COLLISIONS, /* dictionary items whose id is that of another thing */
    MR_MERGE_PASSED,     /* payloads that left as they came */
};

extern const struct mr_filter_kind mr_merge_filter;

#endif
