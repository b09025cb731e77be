/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a graph tells about itself, to its filters' counters and to any thread that asks.
 */
#include "pipeline/graph_private.h"

#include "base/assert.h"
#include "base/atomics.h"

void *mr_filter_state(struct mr_filter *filter)
{
    return filter->state;
}

const void *mr_filter_state_const(const struct mr_filter *filter)
{
    return filter->state;
}

void mr_filter_name_counter(struct mr_filter *filter, uint32_t slot, const char *name)
{
    MR_ASSERT(slot < MR_FILTER_COUNTERS);
    MR_ASSERT(filter->phase == MR_PHASE_OPENING);
    filter->counter_names[slot] = name;
}

void mr_filter_count(struct mr_filter *filter, uint32_t slot, uint64_t value)
{
    MR_ASSERT(slot < MR_FILTER_COUNTERS);
    mr_count_single_writer(&filter->counters[slot],
                           value); /* relaxed: a single writer, numbers alone */
}

enum mr_status mr_graph_status(const struct mr_graph *graph, struct mr_error *error)
{
    /* [F] pairs with [E] in mr_graph_latch() */
    enum mr_status status = (enum mr_status)mr_load_acquire(&graph->status);

    if (error)
        mr_error_clear(error);
    /*
     * Written once, before the release store above, and never again: no mutex needed to
     * read it.
     */
    if (status != MR_OK && error)
        *error = graph->error;
    return status;
}

static uint64_t stat(const struct mr_filter *filter, enum mr_filter_stat which)
{
    return mr_load_relaxed(&filter->stats[which]); /* relaxed: numbers alone */
}

static void tell_pipes(const struct mr_section *section, struct mr_filter_stats *out)
{
    for (uint32_t i = 0; i < section->input_count; i++) {
        out->pipe_fill += mr_pipe_fill(section->inputs[i].pipe);
        out->pipe_capacity += mr_pipe_room_total(section->inputs[i].pipe);
    }
}

static void tell(const struct mr_filter *filter, struct mr_filter_stats *out)
{
    *out = (struct mr_filter_stats){
        .graph = filter->section->graph->name,
        .filter = filter->kind->name,
        .batches_in = stat(filter, MR_STAT_BATCHES_IN),
        .batches_out = stat(filter, MR_STAT_BATCHES_OUT),
        .events_in = stat(filter, MR_STAT_EVENTS_IN),
        .bytes_in = stat(filter, MR_STAT_BYTES_IN),
        .discarded = stat(filter, MR_STAT_DISCARDED),
        .busy_ns = stat(filter, MR_STAT_BUSY_NS),
        .emit_wait_ns = stat(filter, MR_STAT_EMIT_WAIT_NS),
        .progress_ns = stat(filter, MR_STAT_PROGRESS_NS),
    };
    for (uint32_t i = 0; i < MR_FILTER_COUNTERS; i++) {
        out->counter_names[i] = filter->counter_names[i];
        out->counters[i] = mr_load_relaxed(&filter->counters[i]); /* relaxed: as above */
    }
    if (filter == filter->section->first)
        tell_pipes(filter->section, out);
}

uint32_t mr_graph_stats(const struct mr_graph *graph, struct mr_filter_stats *out,
                        uint32_t capacity)
{
    MR_ASSERT(out || capacity == 0);
    for (uint32_t i = 0; i < graph->filter_count && i < capacity; i++)
        tell(&graph->filters[i], &out[i]);
    return graph->filter_count;
}
