/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "pipeline/filters/reconstruct_private.h"
#include "pipeline/resume.h"

/* What is attached within a call tree: right below the innermost call, or below the one that a call tree of it is in. */
static void resume_attached(struct mr_reconstruct_stream *stream,
                            const struct mr_resume_links *links)
{
    stream->attached = links->nested + links->is_attached;
    if (links->is_attached && links->trees_outside > 0)
        stream->attach_depth =
            stream->forced_depth ? stream->forced_depth - 1 : stream->depth;
    else if (!links->is_attached && links->nested > 0)
        stream->attach_depth =
            stream->forced_depth; /* in that call tree, no deeper is known */
}

/*
 * Calls that were learned are outer frames as they were; of how many children the others had ended, and of learned ones that
 * are not open, nothing is told.
 */
enum mr_status mr_reconstruct_resume(struct mr_reconstruct_stream *stream)
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
        if (i > from->outer_depth && call->flags & MR_EVENT_ROOT)
            stream->forced_depth = i + 1;
    }
    if (from->links)
        resume_attached(stream, from->links);
    if (from->depth > from->outer_depth)
        mr_reconstruct_watch_root(stream, from->calls[from->outer_depth].enter_ns);
    stream->watch.first_ns = from->depth ? from->calls[0].enter_ns : from->last_ns;
    stream->watch.last_ns = from->last_ns;
    stream->unsynced_ns = from->last_ns;
    return MR_OK;
}
