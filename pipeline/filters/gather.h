/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather and scatter: what a lane tells between two marks goes to the trunk in one piece. The trunk takes from many lanes, and
 * what it emits may be kept only where no lane is in the middle of a delta (pipeline/spool.h).
 *
 *     lane:   ... -> reduce -> gather ->      the batches up to a MARK become one: the MARK, which owns them
 *     trunk:  -> scatter -> names -> ...      and they again, and the MARK behind them
 *
 * Without configuration. What gather holds is bounded by what reduce tells in a delta.
 */
#ifndef MR_PIPELINE_FILTERS_GATHER_H
#define MR_PIPELINE_FILTERS_GATHER_H

#include "pipeline/filter.h"

extern const struct mr_filter_kind mr_gather_filter;
extern const struct mr_filter_kind mr_scatter_filter;

#endif
