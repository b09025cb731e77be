/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns which open calls are a loop that does not return, and its callers (docs/why/2026-11-23-wrappers.md). All that is
 * known is of one stream, and follows from its calls alone: however they are cut and spread, the same is learned.
 *
 * A *candidate* is a call that has been open since then while none of its callers below the outer frames had a child that
 * ended. The root is one from its beginning; the innermost of the lowest LEVELS calls becomes one when the candidate has been
 * quiet, no child of it having ended for an eighth of learn_ns; and the caller of a candidate that ends becomes one in its place.
 *
 *     main -> serve -> run -> loop -> handle -> parse          `serve` had no child that ended for long:
 *     outer   root                              candidate      now `parse`; when it returns, `handle`, then `loop`, and so
 *                                                              `loop` it stays, and each `handle` that ends is a child of it
 *
 * A candidate is a loop when it has been one for longer than learn_ns and learn_children of its children ended since. One below the root
 * must besides have been one for longer than the stream had gone on before: what never returns outlives, sooner or later, all that was before,
 * a slow request does not. Then it and its callers are outer frames: this one call of each, as of calls that
 * are many levels deep it is a guess; the root alone, as it is more than a guess, is learned for its place in the stream.
 */
#include "base/assert.h"
#include "pipeline/filters/reconstruct_private.h"

#define QUIET(learn_ns) ((learn_ns) / 8)

enum mr_status mr_reconstruct_announce(struct mr_reconstruct *rebuild,
                                       const struct mr_reconstruct_stream *stream,
                                       uint32_t site, uint32_t why)
{
    struct mr_dict_item item = {.kind = MR_DICT_OUTER, .outer = {.why = why}};
    enum mr_status status;

    if (!mr_outer_set(&rebuild->outer, stream->scope, site, MR_OUTER_ANNOUNCED))
        return MR_OK;
    item.outer.scope = stream->stream->source->scope;
    item.outer.site = mr_sites_at(rebuild->config->outer.sites, site)->id;
    status = mr_dict_batch_put(&rebuild->dict, rebuild->filter, &item);
    return status == MR_OK ? mr_dict_batch_emit(&rebuild->dict, rebuild->filter) : status;
}

/* What is not known by its site, or was forced to be a root, is no outer frame. */
static bool may_be_outer(const struct mr_reconstruct_stream *stream)
{
    if (stream->forced_depth)
        return false;
    for (uint32_t i = stream->outer_depth; i < stream->depth; i++)
        if (stream->calls[i] & MR_CALL(0, MR_EVENT_UNKNOWN))
            return false;
    return true;
}

static bool is_loop(const struct mr_reconstruct *rebuild,
                    const struct mr_reconstruct_stream *stream,
                    const struct mr_reconstruct_candidate *top, uint64_t ns)
{
    if (rebuild->config->learns_nothing ||
        !mr_reconstruct_is_long(rebuild->config, top->since_ns, ns, top->children))
        return false;
    if (stream->depth > stream->outer_depth + 1 &&
        ns - top->since_ns <= top->since_ns - stream->watch.first_ns)
        return false;
    return may_be_outer(stream);
}

static void keep_place(struct mr_reconstruct_stream *stream, uint32_t site)
{
    struct mr_reconstruct_watch *watch = &stream->watch;

    if (watch->place_count == MR_RECONSTRUCT_PLACES)
        return;
    watch->places[watch->place_count].depth = stream->outer_depth;
    watch->places[watch->place_count++].site = site;
}

/* The innermost call and its callers are outer frames from now on. */
static enum mr_status learn(struct mr_reconstruct *rebuild,
                            struct mr_reconstruct_stream *stream, uint64_t ns)
{
    const struct mr_event event = {.ns = ns, .kind = MR_EVENT_LEARNED};
    const uint64_t root = MR_CALL(0, MR_EVENT_ROOT);
    uint32_t first = stream->outer_depth;
    enum mr_status status;

    if (stream->depth == first + 1)
        keep_place(stream, (uint32_t)stream->calls[first]);
    for (uint32_t i = first; i < stream->depth; i++)
        stream->calls[i] = (stream->calls[i] & ~root) | MR_CALL(0, MR_EVENT_OUTER);
    stream->outer_depth = stream->depth;
    mr_counters_add(&rebuild->counters, MR_RECONSTRUCT_LEARNED, stream->depth - first);
    status = mr_reconstruct_put(rebuild, &event);
    for (uint32_t i = first; i < stream->depth && status == MR_OK; i++)
        status = mr_reconstruct_announce(rebuild, stream, (uint32_t)stream->calls[i],
                                         MR_RECONSTRUCT_WHY_LEARNED);
    return status;
}

enum mr_status mr_reconstruct_child_ended(struct mr_reconstruct *rebuild,
                                          struct mr_reconstruct_stream *stream,
                                          uint64_t ns)
{
    struct mr_reconstruct_watch *watch = &stream->watch;
    struct mr_reconstruct_candidate *top = &watch->candidates[watch->count - 1];
    uint32_t depth = stream->depth;

    MR_ASSERT(depth > stream->outer_depth && watch->count > 0);
    MR_DEBUG_ASSERT(top->depth <= depth + 1);
    if (top->depth == depth + 1) { /* the call that ended; its caller takes its place */
        if (watch->count > 1 && top[-1].depth == depth) {
            watch->count--;
            top--;
        } else {
            top->depth = depth;
            top->children = 0;
        }
    }
    if (top->depth != depth)
        return MR_OK;
    top->children++;
    watch->last_ns = ns;
    return is_loop(rebuild, stream, top, ns) ? learn(rebuild, stream, ns) : MR_OK;
}

static bool is_call(const struct mr_event *event)
{
    return event->kind == MR_EVENT_ENTER || event->kind == MR_EVENT_EXIT;
}

static bool is_quiet(const struct mr_reconstruct *rebuild, uint64_t since_ns, uint64_t ns)
{
    return ns > since_ns && ns - since_ns > QUIET(rebuild->config->learn_ns);
}

/* The first event of a call from `from` on that finds quiet what was last heard of at `since_ns`. */
static uint32_t next_look(const struct mr_reconstruct *rebuild, uint32_t from,
                          uint64_t since_ns)
{
    const struct mr_event *events = rebuild->in->events;
    uint32_t count = rebuild->in->event_count, last = count;

    while (last > from && !is_call(&events[last - 1]))
        last--;
    if (last == from || !is_quiet(rebuild, since_ns, events[last - 1].ns))
        return count; /* nearly always */
    while (!is_call(&events[from]) || !is_quiet(rebuild, since_ns, events[from].ns))
        from++;
    return from;
}

void mr_reconstruct_look_first(struct mr_reconstruct *rebuild)
{
    uint32_t at = 0, count = rebuild->in->event_count;

    while (at < count && !is_call(&rebuild->in->events[at]))
        at++;
    rebuild->look_at = rebuild->config->learns_nothing ? count : at;
}

/* Whether the innermost candidate may yet be replaced by a call above it. */
static bool has_room(const struct mr_reconstruct_stream *stream)
{
    uint32_t low = mr_reconstruct_low(stream);

    return low && low < stream->outer_depth + MR_RECONSTRUCT_LEVELS;
}

void mr_reconstruct_look(struct mr_reconstruct *rebuild,
                         struct mr_reconstruct_stream *stream)
{
    struct mr_reconstruct_watch *watch = &stream->watch;
    uint32_t highest = stream->outer_depth + MR_RECONSTRUCT_LEVELS;
    uint64_t ns = rebuild->in->events[rebuild->look_at].ns;

    if (has_room(stream) && stream->depth > mr_reconstruct_low(stream) &&
        is_quiet(rebuild, watch->last_ns, ns)) {
        MR_ASSERT(watch->count < MR_RECONSTRUCT_LEVELS);
        watch->candidates[watch->count++] = (struct mr_reconstruct_candidate){
            .since_ns = ns, .depth = stream->depth < highest ? stream->depth : highest};
        watch->last_ns = ns;
    }
    /* Of a root that opens later, and of a candidate that takes the place of the highest one, is heard later. */
    rebuild->look_at =
        next_look(rebuild, rebuild->look_at + 1, has_room(stream) ? watch->last_ns : ns);
}
