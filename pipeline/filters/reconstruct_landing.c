/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes what an exception or a jump has left (FORMAT.md section 6.1, landing): the probe names the functions of the frames
 * that were left, innermost first, and that of the frame in which it goes on. Functions that are no sites are not open, and
 * pass. What a frame is told with besides, its tag, decides one case: a frame that was landed in and is left now may
 * have told its exit in between, as gcc's hooks do, while a call of the same function is open below. It decides no other: a tag
 * comes again with the next frame at that place on the stack, and with frames further in that lie as far from some boundary (a
 * deep recursion, coroutines' stacks); so what was remembered holds for that call alone, which is marked.
 */
#include <string.h>

#include "pipeline/filters/reconstruct_private.h"

/* Spans that may stand between a call and the first function call above it. */
#define SPANS_MAX 256u

static uint32_t site_of(uint64_t call)
{
    return (uint32_t)call;
}

static uint16_t tag_of(const struct mr_event *event)
{
    return event->flags & (MR_LANDED_ABOVE - 1);
}

/* Whether the call that was landed in is still open. */
static bool is_open(const struct mr_reconstruct_stream *stream,
                    const struct mr_reconstruct_landing *landing)
{
    uint32_t at = landing->at;

    return at < stream->depth && (stream->calls[at] & MR_CALL_LANDED) &&
           site_of(stream->calls[at]) == landing->site;
}

/* Where the call landed in has its place among the open ones; NOT_OPEN: nothing is known of that frame. */
static uint32_t take_landing(struct mr_reconstruct_stream *stream,
                             const struct mr_event *event)
{
    for (uint32_t i = stream->landing_count; i-- > 0;) {
        struct mr_reconstruct_landing *landing = &stream->landings[i];
        uint32_t at = landing->at;

        if (landing->site != event->site || landing->tag != tag_of(event))
            continue;
        stream->landing_count--;
        memmove(landing, landing + 1, (stream->landing_count - i) * sizeof(*landing));
        return at;
    }
    return MR_RECONSTRUCT_NOT_OPEN;
}

/* Of calls that have ended. */
static void forget_ended(struct mr_reconstruct_stream *stream)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < stream->landing_count; i++)
        if (is_open(stream, &stream->landings[i]))
            stream->landings[kept++] = stream->landings[i];
    stream->landing_count = kept;
}

/* Those further in, and the same frame's, are over. The oldest makes room. */
static void keep_landing(struct mr_reconstruct_stream *stream,
                         const struct mr_event *event, uint32_t at)
{
    (void)take_landing(stream, event);
    forget_ended(stream);
    while (stream->landing_count > 0 &&
           stream->landings[stream->landing_count - 1].at >= at)
        stream->landing_count--;
    if (stream->landing_count == MR_RECONSTRUCT_LANDINGS_MAX) {
        stream->landing_count--;
        memmove(stream->landings, stream->landings + 1,
                stream->landing_count * sizeof(stream->landings[0]));
    }
    stream->landings[stream->landing_count++] = (struct mr_reconstruct_landing){
        .site = event->site, .at = at, .tag = tag_of(event)};
    stream->calls[at] |= MR_CALL_LANDED;
}

enum mr_status mr_reconstruct_left(struct mr_reconstruct *rebuild,
                                   struct mr_reconstruct_stream *stream,
                                   const struct mr_event *event)
{
    uint32_t at = take_landing(stream, event);

    if (stream->overflow) { /* one of those that are only counted */
        stream->overflow--;
        return MR_OK;
    }
    if (at == stream->depth) /* landed in, and its own exit came */
        return MR_OK;
    at = mr_reconstruct_find(stream, event->site);
    if (at == MR_RECONSTRUCT_NOT_OPEN)
        return MR_OK;
    return mr_reconstruct_unwind(rebuild, stream, at, event->ns);
}

/* The first function call above `at`; spans directly above it are its own, and are still open. */
static uint32_t first_left(const struct mr_reconstruct *rebuild,
                           const struct mr_reconstruct_stream *stream, uint32_t at)
{
    const struct mr_sites *sites = rebuild->config->outer.sites;
    uint32_t end = stream->depth - at > SPANS_MAX ? at + SPANS_MAX : stream->depth;

    for (uint32_t i = at + 1; i < end; i++)
        if (mr_sites_at(sites, site_of(stream->calls[i]))->type != MR_SITE_SPAN)
            return i;
    return stream->depth;
}

enum mr_status mr_reconstruct_landed(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream,
                                     const struct mr_event *event)
{
    enum mr_status status = MR_OK;
    uint32_t at;

    if (event->flags & MR_LANDED_FIRST)
        stream->is_landed = false;
    if (stream->is_landed || event->site == MR_SITE_UNKNOWN)
        return MR_OK;
    at = mr_reconstruct_find(stream, event->site);
    if (at == MR_RECONSTRUCT_NOT_OPEN)
        return MR_OK;
    stream->is_landed = true;
    if (event->flags & MR_LANDED_ABOVE) {
        stream->overflow = 0;
        status = mr_reconstruct_unwind(rebuild, stream, first_left(rebuild, stream, at),
                                       event->ns);
    }
    if (status != MR_OK || !(event->flags & MR_LANDED_FIRST))
        return status;
    keep_landing(stream, event, at);
    return mr_reconstruct_put(rebuild,
                              &(const struct mr_event){.ns = event->ns,
                                                       .site = at,
                                                       .kind = MR_EVENT_LANDED_IN,
                                                       .flags = tag_of(event)});
}
