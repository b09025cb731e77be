/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/assert.h"
#include "pipeline/filters/reconstruct_private.h"

#define CAPACITY_FIRST 16u /* calls of each stream: there may be 10,000 that wait */

static uint32_t site_of(uint64_t call)
{
    return (uint32_t)call;
}

static uint16_t flags_of(uint64_t call)
{
    return (uint16_t)(call >> 32);
}

static enum mr_status put(struct mr_reconstruct *rebuild, uint64_t ns, uint16_t kind,
                          uint32_t site, uint16_t flags)
{
    struct mr_event event = {.ns = ns, .site = site, .kind = kind, .flags = flags};

    return mr_reconstruct_put(rebuild, &event);
}

/* `reason` 0: reduced. */
static enum mr_status put_count(struct mr_reconstruct *rebuild, uint64_t events,
                                uint16_t reason)
{
    return events ? put(rebuild, events, MR_EVENT_COUNTED, 0, reason) : MR_OK;
}

static enum mr_status break_trace(struct mr_reconstruct *rebuild,
                                  const struct mr_reconstruct_stream *stream, uint64_t ns)
{
    if (stream->depth == stream->outer_depth)
        return MR_OK;
    mr_counters_add(&rebuild->counters, MR_RECONSTRUCT_BROKEN, 1);
    return put(rebuild, ns, MR_EVENT_TRACE_BROKEN, 0, 0);
}

/* What is attached has no end of its own in the stream. */
static enum mr_status end_attached(struct mr_reconstruct *rebuild,
                                   struct mr_reconstruct_stream *stream, uint64_t ns)
{
    if (stream->attached == 0)
        return MR_OK;
    stream->attached = 0;
    stream->attach_depth = 0;
    return put(rebuild, ns, MR_EVENT_LINK, MR_LINK_LOST, 0);
}

/* Among the lost may be detaches, and the call tree of what was received. */
static enum mr_status lose_links(struct mr_reconstruct *rebuild,
                                 struct mr_reconstruct_stream *stream, uint64_t ns)
{
    enum mr_status status = end_attached(rebuild, stream, ns);

    return status == MR_OK ? put(rebuild, ns, MR_EVENT_LINK, MR_LINK_LOST_RECEIVED, 0)
                           : status;
}

void mr_reconstruct_set_unsynced(struct mr_reconstruct_stream *stream, bool is_unsynced)
{
    stream->is_unsynced = is_unsynced;
    mr_store_relaxed(&stream->stream->is_base_unsure, is_unsynced); /* see source.h */
}

/* A call tree has ended and the base is not sure: is it now? */
static void resync(const struct mr_reconstruct *rebuild,
                   struct mr_reconstruct_stream *stream, uint64_t ns)
{
    stream->unsynced_roots++;
    if (mr_reconstruct_is_long(rebuild->config, stream->unsynced_ns, ns,
                               stream->unsynced_roots))
        mr_reconstruct_set_unsynced(stream, false);
}

/* Closes the innermost call. `flags` are added to its own; `site` is its own but for an UNKNOWN one whose exit came. */
static enum mr_status close_top(struct mr_reconstruct *rebuild,
                                struct mr_reconstruct_stream *stream, uint64_t ns,
                                uint32_t site, uint16_t flags)
{
    uint64_t call = stream->calls[--stream->depth];
    uint16_t own = flags_of(call);
    enum mr_status status = put(rebuild, ns, MR_EVENT_CLOSE, site, own | flags);

    if (call & MR_CALL_MARK)
        mr_reconstruct_unmark(stream, stream->depth);
    if (stream->depth < stream->forced_depth)
        stream->forced_depth = 0;
    if (stream->depth < stream->attach_depth && status == MR_OK)
        status = end_attached(rebuild, stream, ns);
    if (own & MR_EVENT_OUTER) {
        stream->outer_depth = stream->depth;
        /* Its own exit came, so the depth is known. */
        if (stream->is_unsynced && !(flags & (MR_EVENT_INCOMPLETE | MR_EVENT_UNWOUND)))
            mr_reconstruct_set_unsynced(stream, false);
    } else if (stream->depth == stream->outer_depth && stream->is_unsynced) {
        resync(rebuild, stream, ns);
    } else if (stream->depth > stream->outer_depth && status == MR_OK) {
        return mr_reconstruct_child_ended(rebuild, stream, ns);
    }
    return status;
}

/* Closes what is open above `depth`, without exits of their own. */
static enum mr_status close_above(struct mr_reconstruct *rebuild,
                                  struct mr_reconstruct_stream *stream, uint32_t depth,
                                  uint64_t ns, uint16_t how)
{
    enum mr_status status = MR_OK;

    while (status == MR_OK && stream->depth > depth) {
        uint64_t call = stream->calls[stream->depth - 1];
        /* Of an UNKNOWN call there is nothing to time. */
        uint16_t flags = flags_of(call) & MR_EVENT_UNKNOWN ? MR_EVENT_INCOMPLETE : how;

        mr_counters_add(&rebuild->counters,
                        flags & MR_EVENT_UNWOUND ? MR_RECONSTRUCT_UNWOUND
                                                 : MR_RECONSTRUCT_INCOMPLETE,
                        1);
        status = close_top(rebuild, stream, ns, site_of(call), flags);
    }
    return status;
}

enum mr_status mr_reconstruct_unwind(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream, uint32_t depth,
                                     uint64_t ns)
{
    return close_above(rebuild, stream, depth, ns, MR_EVENT_UNWOUND);
}

static bool grow(struct mr_reconstruct_stream *stream)
{
    uint32_t capacity = stream->capacity ? 2 * stream->capacity : CAPACITY_FIRST;
    uint64_t *grown = realloc(stream->calls, capacity * sizeof(*grown));

    if (!grown)
        return false;
    stream->calls = grown;
    stream->capacity = capacity;
    return true;
}

/* Which flags a new innermost call has: outer frame, root or neither. */
static enum mr_status classify(struct mr_reconstruct *rebuild,
                               struct mr_reconstruct_stream *stream, uint32_t site,
                               uint16_t *flags)
{
    bool is_bottom = stream->depth == stream->outer_depth;
    bool is_attached = !is_bottom && stream->depth == stream->attach_depth;
    uint32_t start;
    uint8_t known;

    *flags = 0;
    if (!is_bottom &&
        (stream->forced_depth || (!is_attached && !mr_outer_has_roots(&rebuild->outer))))
        return MR_OK;
    known = site == MR_SITE_UNKNOWN
                ? 0
                : mr_outer_flags(&rebuild->outer, stream->scope, site);
    if (known & MR_OUTER_ROOT || is_attached) {
        *flags = MR_EVENT_ROOT;
        stream->forced_depth = stream->depth + 1;
        return MR_OK;
    }
    if (!is_bottom)
        return MR_OK;
    start = mr_load_relaxed(&stream->stream->start_site); /* a hint; see source.h */
    if (known & MR_OUTER_FRAME) {
        *flags = MR_EVENT_OUTER;
        return mr_reconstruct_announce(rebuild, stream, site, MR_RECONSTRUCT_WHY_OPTION);
    }
    if (site != MR_SITE_UNKNOWN && mr_reconstruct_is_place(stream, site)) {
        *flags = MR_EVENT_OUTER;
        return mr_reconstruct_announce(rebuild, stream, site, MR_RECONSTRUCT_WHY_LEARNED);
    }
    if (stream->depth == 0 && start != MR_SITE_UNKNOWN && start == site) {
        *flags = MR_EVENT_OUTER;
        return mr_reconstruct_announce(rebuild, stream, site, MR_RECONSTRUCT_WHY_START);
    }
    *flags = MR_EVENT_ROOT;
    return MR_OK;
}

/* Past depth_max: the call is not followed, only counted. */
static enum mr_status open_too_deep(struct mr_reconstruct *rebuild,
                                    struct mr_reconstruct_stream *stream, uint64_t ns)
{
    if (stream->overflow++ == 0)
        return break_trace(rebuild, stream, ns);
    return MR_OK;
}

static enum mr_status open_call(struct mr_reconstruct *rebuild,
                                struct mr_reconstruct_stream *stream, uint64_t ns,
                                uint32_t site, uint16_t extra)
{
    uint32_t before = stream->depth;
    uint16_t flags;
    enum mr_status status = classify(rebuild, stream, site, &flags);

    if (status != MR_OK)
        return status;
    if (stream->depth == stream->capacity && !grow(stream))
        return MR_ENOMEM;
    if (stream->watch.first_ns == 0)
        stream->watch.first_ns = ns;
    flags |= extra;
    stream->calls[stream->depth++] = MR_CALL(site, flags);
    status = put(rebuild, ns, MR_EVENT_OPEN, site, flags);
    if (flags & MR_EVENT_OUTER) {
        stream->outer_depth = stream->depth;
    } else if (before == stream->outer_depth) {
        mr_reconstruct_watch_root(stream, ns);
        if (stream->is_unsynced && status == MR_OK)
            status = break_trace(rebuild, stream, ns);
    }
    return status;
}

static enum mr_status take_enter(struct mr_reconstruct *rebuild,
                                 struct mr_reconstruct_stream *stream,
                                 const struct mr_event *event)
{
    enum mr_status status;

    if (stream->depth < rebuild->config->depth_max && stream->overflow == 0)
        return open_call(rebuild, stream, event->ns, event->site, 0);
    mr_counters_add(&rebuild->counters, MR_RECONSTRUCT_TOO_DEEP, 1);
    status = open_too_deep(rebuild, stream, event->ns);
    return status == MR_OK ? put_count(rebuild, 1, MR_LOSS_BUDGET) : status;
}

static enum mr_status take_unmatched(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream,
                                     const struct mr_event *event)
{
    mr_counters_add(&rebuild->counters, MR_RECONSTRUCT_UNMATCHED, 1);
    stream->unsynced_ns = event->ns; /* the base was deeper than it is now */
    stream->unsynced_roots = 0;
    return put_count(rebuild, 1, 0);
}

static enum mr_status take_exit(struct mr_reconstruct *rebuild,
                                struct mr_reconstruct_stream *stream,
                                const struct mr_event *event)
{
    enum mr_status status;
    uint32_t at;

    if (stream->overflow) {
        stream->overflow--;
        mr_counters_add(&rebuild->counters, MR_RECONSTRUCT_TOO_DEEP, 1);
        return put_count(rebuild, 1, MR_LOSS_BUDGET);
    }
    at = mr_reconstruct_find(stream, event->site);
    if (at == MR_RECONSTRUCT_NOT_OPEN)
        return take_unmatched(rebuild, stream, event);
    status = close_above(rebuild, stream, at + 1, event->ns, MR_EVENT_UNWOUND);
    return status == MR_OK ? close_top(rebuild, stream, event->ns, event->site, 0)
                           : status;
}

/* Nobody followed the nesting: nothing above the outer frames is sure. */
static enum mr_status lose_nesting(struct mr_reconstruct *rebuild,
                                   struct mr_reconstruct_stream *stream, uint64_t ns)
{
    stream->overflow = 0;
    mr_reconstruct_set_unsynced(stream, true);
    stream->unsynced_ns = ns;
    stream->unsynced_roots = 0;
    return close_above(rebuild, stream, stream->outer_depth, ns, MR_EVENT_INCOMPLETE);
}

enum mr_status mr_reconstruct_go_on(struct mr_reconstruct *rebuild,
                                    struct mr_reconstruct_stream *stream, uint64_t ns)
{
    enum mr_status status;

    if (stream->depth < rebuild->config->depth_max)
        return MR_OK;
    status = break_trace(rebuild, stream, ns);
    return status == MR_OK ? lose_nesting(rebuild, stream, ns) : status;
}

static enum mr_status pop_lost(struct mr_reconstruct *rebuild,
                               struct mr_reconstruct_stream *stream, uint64_t ns,
                               uint32_t pops)
{
    uint32_t deep = stream->overflow < pops ? (uint32_t)stream->overflow : pops;
    uint32_t depth;

    stream->overflow -= deep;
    pops -= deep;
    depth = pops < stream->depth ? stream->depth - pops : 0;
    return close_above(rebuild, stream, depth, ns, MR_EVENT_INCOMPLETE);
}

static enum mr_status push_lost(struct mr_reconstruct *rebuild,
                                struct mr_reconstruct_stream *stream, uint64_t ns,
                                uint32_t pushes)
{
    uint32_t count =
        pushes < MR_RECONSTRUCT_PUSHES_MAX ? pushes : MR_RECONSTRUCT_PUSHES_MAX;
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < count && status == MR_OK; i++) {
        if (stream->depth < rebuild->config->depth_max && stream->overflow == 0)
            status = open_call(rebuild, stream, ns, MR_SITE_UNKNOWN, MR_EVENT_UNKNOWN);
        else
            status = open_too_deep(rebuild, stream, ns);
    }
    if (status == MR_OK && pushes > count) {
        status = open_too_deep(rebuild, stream, ns);
        stream->overflow += pushes - count - 1;
    }
    return status;
}

static enum mr_status take_loss(struct mr_reconstruct *rebuild,
                                struct mr_reconstruct_stream *stream,
                                const struct mr_event *event)
{
    const struct mr_loss *loss = &rebuild->in->losses[event->site];
    uint64_t ns = event->ns;
    bool is_nesting_known = loss->pops != MR_LOSS_NESTING_UNKNOWN;
    /* Of unknown nesting none, too, though not as lost: reduce tells in its next mark that the base is not sure. */
    enum mr_status status = is_nesting_known || loss->events
                                ? put_count(rebuild, loss->events, loss->reason)
                                : put(rebuild, 0, MR_EVENT_COUNTED, 0, 0);

    MR_ASSERT(event->site < rebuild->in->loss_count);
    if (status == MR_OK)
        status = lose_links(rebuild, stream, ns);
    if (status == MR_OK)
        status = break_trace(rebuild, stream, ns);
    if (status != MR_OK)
        return status;
    if (!is_nesting_known)
        return lose_nesting(rebuild, stream, ns);
    status = pop_lost(rebuild, stream, ns, loss->pops);
    return status == MR_OK ? push_lost(rebuild, stream, ns, loss->pushes) : status;
}

static enum mr_status take_status(struct mr_reconstruct *rebuild,
                                  struct mr_reconstruct_stream *stream,
                                  const struct mr_event *event)
{
    const uint64_t failed = MR_CALL(0, MR_EVENT_FAILED);
    uint64_t *call;

    if (stream->depth == 0 || stream->overflow)
        return put_count(rebuild, 1, 0);
    call = &stream->calls[stream->depth - 1];
    *call = event->site ? *call | failed : *call & ~failed;
    return mr_reconstruct_put(rebuild, event);
}

static enum mr_status take_unwind(struct mr_reconstruct *rebuild,
                                  struct mr_reconstruct_stream *stream,
                                  const struct mr_event *event)
{
    uint64_t depth = event->site, open = stream->depth + stream->overflow;
    enum mr_status status = put_count(rebuild, 1, 0);

    if (status != MR_OK || depth >= open || stream->is_unsynced) {
        if (depth > open || stream->is_unsynced)
            mr_counters_add(&rebuild->counters, MR_RECONSTRUCT_UNWINDS_UNKNOWN, 1);
        return status;
    }
    stream->overflow = depth > stream->depth ? depth - stream->depth : 0;
    return close_above(rebuild, stream, (uint32_t)depth, event->ns, MR_EVENT_UNWOUND);
}

/* No call tree of what is attached is open: it was left without its detach, and the new one takes its place. */
static void attach(struct mr_reconstruct_stream *stream)
{
    bool is_within = stream->depth > stream->outer_depth;

    if (stream->attach_depth ? stream->depth == stream->attach_depth : !is_within)
        stream->attached = 0;
    if (stream->attached++ == 0)
        stream->attach_depth = is_within ? stream->depth : 0;
}

static enum mr_status take_link(struct mr_reconstruct *rebuild,
                                struct mr_reconstruct_stream *stream,
                                const struct mr_event *event)
{
    struct mr_event link = *event;

    if (event->site == MR_LINK_ATTACH)
        attach(stream);
    if (event->site == MR_LINK_DETACH && stream->attached > 0 && --stream->attached == 0)
        stream->attach_depth = 0;
    link.flags = stream->is_unsynced ? MR_EVENT_INCOMPLETE : 0;
    return mr_reconstruct_put(rebuild, &link);
}

/*
 * The innermost open call of `site` above the outer frames, or NOT_OPEN; above it may be
 * calls whose sites a loss took, of which nobody knows what they are.
 */
static uint32_t find_open(struct mr_reconstruct_stream *stream, uint32_t site)
{
    uint32_t at = mr_reconstruct_find(stream, site);

    if (at == MR_RECONSTRUCT_NOT_OPEN || at < stream->outer_depth ||
        site_of(stream->calls[at]) != site)
        return MR_RECONSTRUCT_NOT_OPEN;
    return at;
}

/*
 * No exit of `site` comes from here on. A call of it that is innermost ends here, without
 * a time; below others nobody knows when it ends.
 */
static enum mr_status close_pruned(struct mr_reconstruct *rebuild,
                                   struct mr_reconstruct_stream *stream, uint64_t ns,
                                   uint32_t site)
{
    enum mr_status status = MR_OK;
    uint32_t at = find_open(stream, site);

    while (status == MR_OK && at != MR_RECONSTRUCT_NOT_OPEN && at + 1 == stream->depth &&
           stream->overflow == 0) {
        status = close_above(rebuild, stream, at, ns, MR_EVENT_INCOMPLETE);
        at = find_open(stream, site);
    }
    if (status != MR_OK || at == MR_RECONSTRUCT_NOT_OPEN)
        return status;
    status = break_trace(rebuild, stream, ns);
    return status == MR_OK ? lose_nesting(rebuild, stream, ns) : status;
}

/* A call tree that has calls of a site up to here, or from here on, has no shape. */
static enum mr_status take_prune(struct mr_reconstruct *rebuild,
                                 struct mr_reconstruct_stream *stream,
                                 const struct mr_event *event)
{
    bool is_end = (event->flags & MR_EVENT_PRUNE_SETTLED) != 0 &&
                  (event->flags & MR_EVENT_PRUNE_ON_AGAIN) == 0;

    if (is_end)
        return close_pruned(rebuild, stream, event->ns, event->site);
    mr_counters_add(&rebuild->counters, MR_RECONSTRUCT_PRUNED, 1);
    if (stream->depth == stream->outer_depth)
        return MR_OK;
    return put(rebuild, event->ns, MR_EVENT_TRACE_PRUNED, 0, 0);
}

static enum mr_status take_end(struct mr_reconstruct *rebuild,
                               struct mr_reconstruct_stream *stream,
                               const struct mr_event *event)
{
    enum mr_status status;

    if (event->flags & MR_EVENT_END_HANDED_OVER &&
        mr_handover_promise(&stream->stream->source->handover, stream->depth))
        return mr_reconstruct_put(rebuild, event);
    status = break_trace(rebuild, stream, event->ns);
    stream->overflow = 0;
    if (status == MR_OK)
        status = close_above(rebuild, stream, 0, event->ns, MR_EVENT_INCOMPLETE);
    return status == MR_OK ? put(rebuild, event->ns, MR_EVENT_STREAM_END, 0, 0) : status;
}

enum mr_status mr_reconstruct_step(struct mr_reconstruct *rebuild,
                                   struct mr_reconstruct_stream *stream,
                                   const struct mr_event *event)
{
    switch (event->kind) {
    case MR_EVENT_ENTER:
        return take_enter(rebuild, stream, event);
    case MR_EVENT_EXIT:
        return take_exit(rebuild, stream, event);
    case MR_EVENT_LOSS:
        return take_loss(rebuild, stream, event);
    case MR_EVENT_STATUS:
        return take_status(rebuild, stream, event);
    case MR_EVENT_UNWIND:
        return take_unwind(rebuild, stream, event);
    case MR_EVENT_LINK:
        return take_link(rebuild, stream, event);
    case MR_EVENT_PRUNE:
        return take_prune(rebuild, stream, event);
    case MR_EVENT_LEFT:
        return mr_reconstruct_left(rebuild, stream, event);
    case MR_EVENT_LANDED:
        return mr_reconstruct_landed(rebuild, stream, event);
    case MR_EVENT_STREAM_END:
        return take_end(rebuild, stream, event);
    default:
        return mr_reconstruct_put(rebuild, event);
    }
}
