/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters of some graphs as metrics: what they took, how busy they were, what waits in the pipe before them, and what they
 * count by name (base/metrics.h). One metric after the other, each with a line per filter.
 *
 *     struct mr_filter_stats stats[..];                      // from mr_graph_stats(), of all graphs
 *     mr_graph_metrics(&out, stats, count, busy_shares);
 */
#ifndef MR_PIPELINE_GRAPH_METRICS_H
#define MR_PIPELINE_GRAPH_METRICS_H

#include "base/buffer.h"
#include "pipeline/graph.h"

/* `busy_shares`: of each filter, 0 .. 1 over the last second or so; NULL: not known. */
void mr_graph_metrics(struct mr_buffer *out, const struct mr_filter_stats *stats,
                      uint32_t count, const double *busy_shares);

#endif
