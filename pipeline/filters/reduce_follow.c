/* SPDX-License-Identifier: Apache-2.0 */
/* Events that come as decode made them: their nesting is checked on reduce's own stack (pipeline/nesting.h). */
#include "base/assert.h"
#include "pipeline/filters/reconstruct_watch.h"
#include "pipeline/filters/reduce_private.h"

/* A call opens with `depth` others open. */
static bool is_open_in_order(const struct mr_nesting *nesting, uint32_t depth,
                             struct mr_event *event)
{
    if (depth >= nesting->room)
        return false;
    if (depth > nesting->outer_depth)
        return true;
    if (nesting->has_base)
        event->flags = nesting->open_base(nesting, event->site, event->ns);
    return event->flags != 0;
}

/* The flags of the call at that depth, the last of so many, which may end in order. */
static uint32_t flags_at(const struct mr_nesting *nesting, uint32_t depth)
{
    if (depth > nesting->outer_depth + 1)
        return 0;
    return depth > nesting->outer_depth ? MR_EVENT_ROOT : MR_EVENT_OUTER;
}

static bool is_close_in_order(const struct mr_nesting *nesting,
                              const struct mr_reduce_stream *stream,
                              struct mr_event *event)
{
    const uint32_t depth = stream->depth, flags = flags_at(nesting, depth);
    const struct mr_open_call *frame;

    if (depth == 0 || (flags && !nesting->has_base))
        return false;
    frame = &stream->frames[depth - 1];
    if (mr_open_call_site(frame) != event->site || frame->flags != flags)
        return false;
    event->flags = (uint16_t)flags;
    return true;
}

bool mr_reduce_is_in_order(const struct mr_reduce *reduce,
                           const struct mr_reduce_stream *stream, struct mr_event *event)
{
    const struct mr_nesting *nesting = reduce->nesting;

    if (nesting->has_child_ended)
        return false;
    if (event->kind == MR_EVENT_OPEN)
        return event->flags || is_open_in_order(nesting, stream->depth, event);
    if (event->kind == MR_EVENT_CLOSE)
        return event->flags || is_close_in_order(nesting, stream, event);
    return !nesting->is_unsure && mr_event_is_passed_on(event);
}

bool mr_reduce_stepped(const struct mr_reduce *reduce,
                       const struct mr_reduce_stream *stream,
                       const struct mr_event *event)
{
    struct mr_nesting *nesting = reduce->nesting;

    if (event->flags == MR_EVENT_OUTER)
        nesting->outer_depth = stream->depth;
    else if (event->kind == MR_EVENT_CLOSE && stream->depth > nesting->outer_depth &&
             stream->depth <= mr_reconstruct_watch_low(nesting->watch))
        nesting->has_child_ended = !mr_reconstruct_count_child(
            nesting->watch, nesting->config, stream->depth, event->ns);
    return !nesting->has_child_ended;
}

/* The calls that opened in the run and are still open are new to reconstruct. */
static void tell_calls(struct mr_nesting *nesting, const struct mr_reduce_stream *stream,
                       uint32_t first, uint32_t taken)
{
    uint32_t at = stream->depth;

    MR_ASSERT(at <= nesting->room || at <= nesting->depth);
    while (at > 0 && stream->frames[at - 1].opened - first < taken) {
        const struct mr_open_call *frame = &stream->frames[--at];

        nesting->calls[at] = MR_CALL(mr_open_call_site(frame), frame->flags);
    }
    nesting->depth = stream->depth;
}

void mr_reduce_tell_nesting(struct mr_reduce *reduce,
                            const struct mr_reduce_stream *stream, uint32_t taken)
{
    tell_calls(reduce->nesting, stream, reduce->taken - taken, taken);
    reduce->nesting->taken = taken;
    mr_filter_took(reduce->filter, taken);
}
