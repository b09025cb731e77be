/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as an SVG picture: a horizontal bar per case with its interval, in groups, and
 * a line to compare with. It names its fonts and colours and needs nothing else. Results
 * of a run that was cut off are labelled so.
 *
 *     struct mr_chart chart = {.title = "a call", .metric = "ns_per_call", .unit = "ns",
 *                              .line = 16.9, .line_name = "floor"};
 *     mr_chart_draw(&chart, &results, &out);
 */
#ifndef MR_BENCH_CHART_H
#define MR_BENCH_CHART_H

#include "bench/result.h"

struct mr_chart {
    const char *title, *metric, *unit;
    double line; /* NAN: none */
    const char *line_name;
    /* Part of the case, from 0 between slashes, that makes groups, at most 64 of them; -1: none. */
    int group_part;
};

/* Cases without the metric are left out. The buffer's failures. */
enum mr_status mr_chart_draw(const struct mr_chart *chart,
                             const struct mr_results *results, struct mr_buffer *out);

#endif
