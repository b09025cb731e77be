/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The named counters of a filter of a lane, counted for the metrics of this process (mr_filter_count) and, as increments,
 * told upward in a delta of their own. One thread.
 *
 *     mr_counters_init(&state->counters, filter, names, COUNTER_COUNT);    // in open()
 *     mr_counters_add(&state->counters, COUNTER_CLAMPED, 1);
 *     status = mr_counters_emit(&state->counters, level);                  // in tick() and drain()
 */
#ifndef MR_PIPELINE_COUNTERS_H
#define MR_PIPELINE_COUNTERS_H

#include <stdint.h>

#include "base/status.h"
#include "pipeline/filter.h"

#define MR_COUNTERS_PERIOD_NS UINT64_C(1000000000) /* how often increments are told */

struct mr_counters {
    struct mr_filter *filter;
    const char *const *names;
    uint32_t count;
    bool is_changed;
    uint64_t told_ns;
    uint64_t pending[MR_FILTER_COUNTERS];
};

void mr_counters_init(struct mr_counters *counters, struct mr_filter *filter,
                      const char *const *names, uint32_t count);
void mr_counters_add(struct mr_counters *counters, uint32_t slot, uint64_t add);
/* Emits what was gained, if anything. MR_ENOMEM, or what emitting returns. */
enum mr_status mr_counters_emit(struct mr_counters *counters, uint32_t level);
/* For tick(): emits once a period, if the next filter has room. */
enum mr_status mr_counters_tick(struct mr_counters *counters, uint32_t level,
                                uint64_t now_ns);

#endif
