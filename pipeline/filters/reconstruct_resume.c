/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "pipeline/filters/reconstruct_private.h"
#include "pipeline/resume.h"

/*
 * What is attached within a call tree: right below the innermost call, or below the one that a call tree of it is in. Where no
 * call tree of it can begin, that of a forced root is open, and no deeper is known.
 */
static void resume_attached(struct mr_reconstruct_stream *stream,
                            const struct mr_resume_stream *from)
{
    const struct mr_resume_links *links = from->links;

    stream->attached = links->nested + links->is_attached;
    if (links->is_attached ? links->trees_outside == 0 : links->nested == 0)
        return;
    stream->attach_depth = stream->forced_depth ? stream->forced_depth : stream->depth;
    if (links->is_attached && stream->forced_depth &&
        from->trace_count > links->trees_outside)
        stream->attach_depth--;
}

/* That of the outermost call tree may be forced, too: its site says so, as it did when it was entered. */
static bool is_forced(struct mr_reconstruct *rebuild,
                      const struct mr_reconstruct_stream *stream, uint32_t at,
                      const struct mr_resume_call *call)
{
    if (!(call->flags & MR_EVENT_ROOT))
        return false;
    return at > stream->outer_depth ||
           (call->site != MR_SITE_UNKNOWN &&
            mr_outer_flags(&rebuild->outer, stream->scope, call->site) & MR_OUTER_ROOT);
}

/*
 * While a call is open no child of its callers ends but it. So each that is open is a candidate since it began, and what was on
 * its way to be learned is, although the candidates of before are not told.
 */
static void resume_watch(struct mr_reconstruct_stream *stream,
                         const struct mr_resume_stream *from)
{
    struct mr_reconstruct_watch *watch = &stream->watch;
    uint32_t at = from->outer_depth;

    if (at < from->depth)
        mr_reconstruct_watch_root(stream, from->calls[at].enter_ns);
    while (++at < from->depth && watch->count < MR_RECONSTRUCT_LEVELS)
        watch->candidates[watch->count++] = (struct mr_reconstruct_candidate){
            .since_ns = from->calls[at].enter_ns, .depth = at + 1};
    watch->first_ns = from->depth ? from->calls[0].enter_ns : from->last_ns;
    watch->last_ns = from->last_ns;
}

/* Frames that were landed in, of calls that are open. What lies between such a call's exit and the word that its frame was left is not told. */
static void resume_landings(struct mr_reconstruct_stream *stream,
                            const struct mr_resume_stream *from)
{
    static_assert(MR_RESUME_LANDINGS_MAX == MR_RECONSTRUCT_LANDINGS_MAX,
                  "all that are told are remembered");

    for (uint32_t i = 0; i < from->landing_count; i++) {
        const struct mr_resume_landing *landing = &from->landings[i];

        stream->landings[i] =
            (struct mr_reconstruct_landing){.site = from->calls[landing->at].site,
                                            .at = landing->at,
                                            .tag = landing->tag};
        stream->calls[landing->at] |= MR_CALL_LANDED;
    }
    stream->landing_count = from->landing_count;
}

/*
 * Calls that were learned are outer frames as they were; of how many children the others had ended, and of learned ones that
 * are not open, nothing is told. Whether the base was sure is told, not for how long it had not been; that of a stream that began
 * elsewhere is not, whatever is told.
 */
enum mr_status mr_reconstruct_resume(struct mr_reconstruct *rebuild,
                                     struct mr_reconstruct_stream *stream)
{
    const struct mr_resume_stream *from = stream->stream->resume;

    stream->calls = calloc((size_t)from->depth + 64, sizeof(*stream->calls));
    if (!stream->calls)
        return MR_ENOMEM;
    stream->capacity = from->depth + 64;
    stream->depth = from->depth;
    stream->outer_depth = from->outer_depth;
    for (uint32_t i = 0; i < from->depth; i++) {
        const struct mr_resume_call *call = &from->calls[i];

        stream->calls[i] = MR_CALL(call->site, call->flags);
        stream->is_unsynced |= (call->flags & MR_EVENT_UNKNOWN) != 0;
        if (is_forced(rebuild, stream, i, call))
            stream->forced_depth = i + 1;
    }
    if (from->links)
        resume_attached(stream, from);
    mr_reconstruct_set_unsynced(stream, stream->is_unsynced || from->base_event > 0 ||
                                            from->is_base_unsure);
    resume_landings(stream, from);
    resume_watch(stream, from);
    stream->unsynced_ns = from->last_ns;
    return MR_OK;
}
