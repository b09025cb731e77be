/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reduce knows of a trace that is condensed (pipeline/condense.h) while it counts the trace's calls: which of them took so long
 * that they may stay. So no event has to be looked at a second time for it.
 */
#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"

/* Of a call, in the run of `count` events whose first was `first` of all. */
static uint32_t place_of(const struct mr_open_call *frame, uint32_t first, uint32_t count)
{
    uint32_t place = frame->opened - first;

    return place < count ? place : MR_CONDENSE_BEFORE;
}

void mr_reduce_noted_begin(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream)
{
    const struct mr_trace *trace = &stream->traces[0];
    struct mr_reduce_noted *noted = &reduce->noted;

    noted->ended_count = 0;
    noted->is_left = false;
    noted->least_ns = UINT64_MAX;
    if (stream->trace_count != 1 || !trace->condense || trace->is_broken)
        return;
    noted->least_ns = mr_condense_least_ns(trace->condense);
    noted->root = trace->frame;
}

/* Its depth is that on the stack. */
static void add(struct mr_reduce_noted *noted, const struct mr_condense_noted *ended)
{
    if (noted->ended_count == MR_REDUCE_NOTED_MAX) {
        noted->is_left = true;
        return;
    }
    noted->ended[noted->ended_count] = *ended;
    noted->ended[noted->ended_count++].depth -= noted->root;
}

void mr_reduce_note(struct mr_reduce *reduce, const struct mr_open_call *frame,
                    uint32_t depth, uint32_t at)
{
    add(&reduce->noted,
        &(struct mr_condense_noted){.child_ns = frame->child_ns,
                                    .opened = place_of(frame, reduce->taken, at),
                                    .closed = at,
                                    .depth = depth});
}

/* Calls of the template around it. */
static uint32_t depth_in(const struct mr_template_call *calls, uint32_t count,
                         uint32_t call)
{
    uint32_t depth = 0;

    while (calls[call].parent != count) {
        call = calls[call].parent;
        depth++;
    }
    return depth;
}

void mr_reduce_note_template(struct mr_reduce *reduce, const struct mr_template *template,
                             uint32_t depth, uint32_t at)
{
    const struct mr_template_call *calls = reduce->templates.calls + template->first_call;
    const struct mr_event *events = reduce->events + at;
    uint64_t below[MR_TEMPLATE_CALLS_MAX + 1] = {0};

    for (uint32_t i = 0; i < template->calls; i++) {
        uint32_t enter = mr_template_place(calls[i].enter),
                 exit = mr_template_place(calls[i].exit);
        uint64_t total = events[exit].ns - events[enter].ns;

        below[calls[i].parent] += total;
        if (total >= reduce->noted.least_ns)
            add(&reduce->noted,
                &(struct mr_condense_noted){
                    .child_ns = below[i],
                    .opened = at + enter,
                    .closed = at + exit,
                    .depth = depth + depth_in(calls, template->calls, i)});
    }
}

bool mr_reduce_noted_carry(struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream,
                           const struct mr_trace *trace, uint32_t event_count)
{
    struct mr_reduce_noted *noted = &reduce->noted;
    uint32_t first = reduce->taken - event_count, depth = stream->depth - trace->frame;
    struct mr_condense_notes notes = {.events = reduce->events,
                                      .count = event_count,
                                      .ended_count = noted->ended_count,
                                      .open_count = depth,
                                      .ended = noted->ended,
                                      .open = noted->open};

    if (noted->least_ns == UINT64_MAX || noted->is_left || event_count == 0 ||
        depth > MR_CONDENSE_NOTED_DEPTH)
        return false;
    MR_ASSERT(stream->trace_count == 1 && trace->first == 0);
    for (uint32_t i = 0; i < depth; i++) {
        const struct mr_open_call *frame = &stream->frames[trace->frame + i];

        noted->open[i] =
            (struct mr_condense_noted){.child_ns = frame->child_ns,
                                       .opened = place_of(frame, first, event_count),
                                       .depth = i};
    }
    mr_condense_feed_noted(trace->condense, &notes);
    return true;
}
