/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How response times are spread, as SVG pictures over a logarithmic axis: boxes (quartiles, the 1st and 99th of a hundred as
 * whiskers, the median as a line) and cumulative shares. See chart.h for bars.
 *
 *     const struct mr_plot plot = {.title = "a root call", .unit = "ns", .items = items, .count = 6};
 *     mr_plot_boxes(&plot, &out);
 *     mr_plot_shares(&plot, &out);
 */
#ifndef MR_BENCH_PLOT_H
#define MR_BENCH_PLOT_H

#include "base/buffer.h"
#include "bench/spread.h"

#include <stddef.h>

struct mr_plot_item {
    const char *name;
    const struct mr_spread *spread; /* borrowed; one that is empty is left out */
};

struct mr_plot {
    const char *title, *unit;
    const struct mr_plot_item *items;
    size_t count;
};

/* The buffer's failures. */
enum mr_status mr_plot_boxes(const struct mr_plot *plot, struct mr_buffer *out);
enum mr_status mr_plot_shares(const struct mr_plot *plot, struct mr_buffer *out);

#endif
