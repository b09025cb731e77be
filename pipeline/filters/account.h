/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account: tells upward what this process counts beside its filters, such as what happened to its connections. Everything passes
 * through unchanged. Once a second, and at the end, what was gained since goes out as counters of a delta, which add up at
 * the master; by names that have the level in them, they are a level's sum there. What a kill -9 takes is not told again.
 *
 *     static const char *const names[] = {"level1_frames"};
 *     const _Atomic uint64_t *const values[] = {&counters.frames};
 *     static const struct mr_account_config config = {names, values, 1, 1};
 *     {&mr_account_filter, &config, MR_PLACE_FUSED}
 *
 * field   written by  read by  access
 * values  any         this     relaxed: numbers, each for itself
 */
#ifndef MR_PIPELINE_FILTERS_ACCOUNT_H
#define MR_PIPELINE_FILTERS_ACCOUNT_H

#include <stdint.h>

#include "pipeline/filter.h"

struct mr_account_config {
    const char *const *names; /* below MR_DELTA_COUNTER_NAME_MAX bytes; borrowed */
    const _Atomic uint64_t *const *values; /* that only grow; borrowed */
    uint32_t count;                        /* at most MR_FILTER_COUNTERS */
    uint32_t level;                        /* of this worker */
};

extern const struct mr_filter_kind mr_account_filter;

#endif
