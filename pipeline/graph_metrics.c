/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph_metrics.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/metrics.h"

#include <stddef.h>

static const struct {
    const char *name, *type, *help;
    size_t offset; /* of an uint64_t in struct mr_filter_stats */
    bool is_time;
} metrics[] = {
    {"filter_batches_total", "counter", "Batches that a filter took.",
     offsetof(struct mr_filter_stats, batches_in), false},
    {"filter_events_total", "counter", "Events in them.",
     offsetof(struct mr_filter_stats, events_in), false},
    {"filter_bytes_total", "counter", "Bytes of payloads in them.",
     offsetof(struct mr_filter_stats, bytes_in), false},
    {"filter_discarded_total", "counter",
     "Batches that it freed unprocessed, after an error.",
     offsetof(struct mr_filter_stats, discarded), false},
    {"filter_busy_seconds_total", "counter", "Time inside a filter.",
     offsetof(struct mr_filter_stats, busy_ns), true},
    {"filter_wait_seconds_total", "counter",
     "Time that it waited at a full pipe behind it.",
     offsetof(struct mr_filter_stats, emit_wait_ns), true},
};

static void put_labels(struct mr_buffer *out, const char *name,
                       const struct mr_filter_stats *stats)
{
    const char *const pairs[] = {"graph", stats->graph, "filter", stats->filter};

    mr_metrics_labels(out, name, 2, pairs);
}

static void put_metric(struct mr_buffer *out, size_t at,
                       const struct mr_filter_stats *stats, uint32_t count)
{
    mr_metrics_head(out, metrics[at].name, metrics[at].type, metrics[at].help);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = *(const uint64_t *)(const void *)((const char *)&stats[i] +
                                                           metrics[at].offset);

        put_labels(out, metrics[at].name, &stats[i]);
        if (metrics[at].is_time)
            mr_metrics_real(out, (double)value / (double)MR_SECOND_NS);
        else
            mr_metrics_value(out, value);
    }
}

static void put_shares(struct mr_buffer *out, const struct mr_filter_stats *stats,
                       uint32_t count, const double *busy_shares)
{
    mr_metrics_head(out, "filter_busy_share", "gauge",
                    "Part of the last second that was spent inside a filter.");
    for (uint32_t i = 0; i < count; i++) {
        put_labels(out, "filter_busy_share", &stats[i]);
        mr_metrics_real(out, busy_shares[i]);
    }
}

/* Only of filters that have a pipe: fused ones are called. */
static void put_pipes(struct mr_buffer *out, const struct mr_filter_stats *stats,
                      uint32_t count)
{
    mr_metrics_head(out, "pipe_batches", "gauge", "Batches in the pipe before a filter.");
    for (uint32_t i = 0; i < count; i++) {
        if (stats[i].pipe_capacity == 0)
            continue;
        put_labels(out, "pipe_batches", &stats[i]);
        mr_metrics_value(out, stats[i].pipe_fill);
    }
    mr_metrics_head(out, "pipe_capacity_batches", "gauge", "Room of that pipe.");
    for (uint32_t i = 0; i < count; i++) {
        if (stats[i].pipe_capacity == 0)
            continue;
        put_labels(out, "pipe_capacity_batches", &stats[i]);
        mr_metrics_value(out, stats[i].pipe_capacity);
    }
}

static void put_counters(struct mr_buffer *out, const struct mr_filter_stats *stats,
                         uint32_t count)
{
    mr_metrics_head(out, "filter_counter", "gauge",
                    "What a filter counts, by name; some go up and down.");
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < MR_FILTER_COUNTERS; j++) {
            const char *const pairs[] = {"graph",  stats[i].graph,
                                         "filter", stats[i].filter,
                                         "name",   stats[i].counter_names[j]};

            if (!stats[i].counter_names[j])
                continue;
            mr_metrics_labels(out, "filter_counter", 3, pairs);
            mr_metrics_value(out, stats[i].counters[j]);
        }
    }
}

void mr_graph_metrics(struct mr_buffer *out, const struct mr_filter_stats *stats,
                      uint32_t count, const double *busy_shares)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(metrics); i++)
        put_metric(out, i, stats, count);
    if (busy_shares)
        put_shares(out, stats, count, busy_shares);
    put_pipes(out, stats, count);
    put_counters(out, stats, count);
}
