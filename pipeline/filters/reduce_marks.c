/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks (pipeline/mark.h). Entries are gathered while frames come and while streams are told, and leave behind the delta, when
 * the lane is between two frames: then what they cover and what was told is the same.
 */
#include <string.h>

#include "base/assert.h"
#include "pipeline/filters/reduce_private.h"
#include "pipeline/mark.h"
#include "pipeline/resume.h"

#define ENTRIES_BYTES_MAX ((size_t)1 << 30)

void mr_reduce_marks_init(struct mr_reduce *reduce)
{
    mr_buffer_init(&reduce->marks.entries, ENTRIES_BYTES_MAX);
    mr_buffer_init(&reduce->marks.scratch, ENTRIES_BYTES_MAX);
}

void mr_reduce_marks_fini(struct mr_reduce *reduce)
{
    mr_buffer_fini(&reduce->marks.entries);
    mr_buffer_fini(&reduce->marks.scratch);
    free(reduce->marks.told);
}

static enum mr_status put(struct mr_reduce *reduce, const struct mr_mark *mark)
{
    reduce->marks.last_source = (struct mr_id){0, 0};
    return mr_mark_put(&reduce->marks.entries, mark);
}

enum mr_status mr_reduce_marks_take(struct mr_reduce *reduce, struct mr_batch *batch)
{
    struct mr_reduce_marks *marks = &reduce->marks;
    struct mr_id source = batch->source ? batch->source->id : (struct mr_id){0, 0};
    enum mr_status status;

    if (mr_id_equal(source, marks->last_source) && !mr_id_is_zero(source))
        mr_buffer_truncate(&marks->entries, marks->last_at); /* the new ones say more */
    marks->last_at = marks->entries.size;
    marks->last_source = source;
    marks->is_amid = false;
    status = mr_buffer_append(&marks->entries, batch->bytes.data, batch->bytes.size);
    mr_batch_free(batch);
    return status;
}

enum mr_status mr_reduce_marks_end(struct mr_reduce *reduce,
                                   const struct mr_source *source)
{
    const struct mr_mark mark = {
        .kind = MR_MARK_SOURCE_END, .id = source->id, .serial = source->serial};

    reduce->marks.is_amid = false;
    return reduce->config->has_marks ? put(reduce, &mark) : MR_OK;
}

/* Tells what a site is, once. */
static enum mr_status put_site(struct mr_reduce *reduce, uint32_t site)
{
    struct mr_reduce_marks *marks = &reduce->marks;
    struct mr_mark mark = {.kind = MR_MARK_SITE};
    enum mr_status status;

    if (site >= marks->told_capacity) {
        uint32_t capacity = 2 * site + 64;
        uint8_t *grown = realloc(marks->told, capacity);

        if (!grown)
            return MR_ENOMEM;
        memset(grown + marks->told_capacity, 0, capacity - marks->told_capacity);
        marks->told = grown;
        marks->told_capacity = capacity;
    }
    if (site == MR_SITE_UNKNOWN || marks->told[site])
        return MR_OK;
    marks->told[site] = 1;
    mark.id = mr_sites_at(reduce->config->sites, site)->id;
    mr_buffer_clear(&marks->scratch);
    status =
        mr_resume_put_site(&marks->scratch, mr_sites_at(reduce->config->sites, site));
    mark.bytes = mr_buffer_span(&marks->scratch);
    return status == MR_OK ? put(reduce, &mark) : status;
}

/* Their sites, each once. */
static enum mr_status put_sites(struct mr_reduce *reduce,
                                const struct mr_resume_stream *given)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; status == MR_OK && i < given->depth; i++)
        status = put_site(reduce, given->calls[i].site);
    return status;
}

static bool make_landings(struct mr_reduce_stream *stream)
{
    if (!stream->landings)
        stream->landings = calloc(MR_RESUME_LANDINGS_MAX, sizeof(*stream->landings));
    return stream->landings != NULL;
}

/* Whether the call that was landed in is still open. */
static bool is_open(const struct mr_reduce_stream *stream,
                    const struct mr_resume_landing *landing)
{
    return landing->at < stream->depth &&
           stream->frames[landing->at].flags & MR_OPEN_LANDED;
}

static void forget_ended(struct mr_reduce_stream *stream)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < stream->landing_count; i++)
        if (is_open(stream, &stream->landings[i]))
            stream->landings[kept++] = stream->landings[i];
    stream->landing_count = kept;
}

/* Those further in are over, as in reconstruct_landing.c. The oldest makes room. */
enum mr_status mr_reduce_marks_landing(struct mr_reduce_stream *stream,
                                       const struct mr_event *event)
{
    if (!make_landings(stream))
        return MR_ENOMEM;
    MR_ASSERT(event->site < stream->depth);
    forget_ended(stream);
    while (stream->landing_count > 0 &&
           stream->landings[stream->landing_count - 1].at >= event->site)
        stream->landing_count--;
    if (stream->landing_count == MR_RESUME_LANDINGS_MAX)
        memmove(stream->landings, stream->landings + 1,
                --stream->landing_count * sizeof(*stream->landings));
    stream->landings[stream->landing_count++] =
        (struct mr_resume_landing){.at = event->site, .tag = event->flags};
    stream->frames[event->site].flags |= MR_OPEN_LANDED;
    return MR_OK;
}

/* Of calls that are open. */
static void give_landings(const struct mr_reduce_stream *stream,
                          struct mr_resume_stream *given)
{
    given->landing_count = 0;
    for (uint32_t i = 0; i < stream->landing_count; i++)
        if (is_open(stream, &stream->landings[i]))
            given->landings[given->landing_count++] = stream->landings[i];
}

static enum mr_status take_landings(struct mr_reduce_stream *stream,
                                    const struct mr_resume_stream *from)
{
    if (from->landing_count == 0)
        return MR_OK;
    if (!make_landings(stream))
        return MR_ENOMEM;
    stream->landing_count = from->landing_count;
    for (uint32_t i = 0; i < from->landing_count; i++) {
        MR_ASSERT(from->landings[i].at < stream->depth);
        stream->landings[i] = from->landings[i];
        stream->frames[from->landings[i].at].flags |= MR_OPEN_LANDED;
    }
    return MR_OK;
}

static enum mr_status give_calls(const struct mr_reduce *reduce,
                                 const struct mr_reduce_stream *stream,
                                 struct mr_resume_stream *given)
{
    given->calls = malloc(((size_t)stream->depth + 1) * sizeof(*given->calls));
    if (!given->calls)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < stream->depth; i++) {
        const struct mr_open_call *frame = &stream->frames[i];
        uint32_t site = mr_open_call_site(frame);

        given->calls[i] = (struct mr_resume_call){
            .enter_ns = frame->enter_ns,
            .child_ns = frame->child_ns,
            .site_id = mr_sites_at(reduce->config->sites, site)->id,
            .site = site,
            .flags = (uint16_t)(frame->flags & MR_RESUME_CALL_FLAGS)};
    }
    return MR_OK;
}

enum mr_status mr_reduce_give_stream(const struct mr_reduce *reduce,
                                     const struct mr_reduce_stream *stream,
                                     struct mr_resume_links *links,
                                     struct mr_resume_stream *given)
{
    *given = (struct mr_resume_stream){.id = stream->id,
                                       .base_event = stream->base_event,
                                       .last = stream->last,
                                       .reduced = stream->reduced,
                                       .lost_sum = stream->lost_sum,
                                       .closed = stream->closed,
                                       .last_ns = stream->seen_ns,
                                       .trace_count = stream->trace_count,
                                       .depth = stream->depth};
    given->is_base_unsure =
        mr_load_relaxed(&stream->stream->is_base_unsure); /* source.h */
    give_landings(stream, given);
    if (mr_reduce_links_give(stream, links))
        given->links = links;
    if (given->last_ns < MR_SECOND_NS)
        given->last_ns = MR_SECOND_NS; /* no call event yet */
    for (uint32_t i = 0; i < stream->trace_count; i++)
        given->trace_calls[i] =
            stream->closed - stream->traces[i].closed - stream->traces[i].elsewhere;
    return give_calls(reduce, stream, given);
}

enum mr_status mr_reduce_marks_stream(struct mr_reduce *reduce,
                                      const struct mr_reduce_stream *stream)
{
    struct mr_resume_stream given;
    struct mr_resume_links links;
    struct mr_mark mark = {.kind = MR_MARK_STREAM,
                           .id = stream->source,
                           .serial = stream->serial,
                           .stream = stream->id};
    enum mr_status status;

    if (!reduce->config->has_marks)
        return MR_OK;
    if (!stream->stream) {
        mark.kind = MR_MARK_STREAM_END;
        return put(reduce, &mark);
    }
    status = mr_reduce_give_stream(reduce, stream, &links, &given);
    if (status == MR_OK)
        status = put_sites(reduce, &given);
    mr_buffer_clear(&reduce->marks.scratch);
    if (status == MR_OK)
        status = mr_resume_put_stream(&reduce->marks.scratch, &given);
    free(given.calls);
    mark.bytes = mr_buffer_span(&reduce->marks.scratch);
    return status == MR_OK ? put(reduce, &mark) : status;
}

enum mr_status mr_reduce_marks_emit(struct mr_reduce *reduce)
{
    struct mr_reduce_marks *marks = &reduce->marks;
    struct mr_batch *batch;

    if (!reduce->config->has_marks)
        return MR_OK;
    batch = mr_batch_new(MR_BATCH_MARK);
    if (!batch)
        return MR_ENOMEM;
    mr_buffer_fini(&batch->bytes);
    batch->bytes = marks->entries; /* given away */
    mr_buffer_init(&marks->entries, ENTRIES_BYTES_MAX);
    marks->last_source = (struct mr_id){0, 0};
    marks->emitted_ns = mr_clock_monotonic_ns();
    return mr_filter_emit(reduce->filter, batch);
}

static enum mr_status reopen(struct mr_reduce *reduce, struct mr_reduce_stream *stream,
                             const struct mr_resume_call *call,
                             const struct mr_event *open)
{
    enum mr_status status = mr_reduce_step(reduce, stream, open);

    if (status != MR_OK)
        return status;
    stream->last -= !(call->flags & MR_EVENT_UNKNOWN); /* it is in it already */
    stream->frames[stream->depth - 1].child_ns = call->child_ns;
    stream->frames[stream->depth - 1].opened = reduce->taken - MR_REDUCE_OLD;
    return MR_OK;
}

static enum mr_status reopen_all(struct mr_reduce *reduce,
                                 struct mr_reduce_stream *stream,
                                 const struct mr_resume_stream *from,
                                 struct mr_event *opens)
{
    enum mr_status status = MR_OK;

    reduce->events = opens;
    for (uint32_t i = 0; status == MR_OK && i < from->depth; i++) {
        const struct mr_resume_call *call = &from->calls[i];

        opens[i] = (struct mr_event){.ns = call->enter_ns,
                                     .site = call->site,
                                     .kind = MR_EVENT_OPEN,
                                     .flags = call->flags};
        status = reopen(reduce, stream, call, &opens[i]);
    }
    /* Carried: nobody who asks for traces would get it whole. */
    for (uint32_t i = 0; i < stream->trace_count && status == MR_OK; i++) {
        stream->traces[i].closed -= from->trace_calls[i];
        stream->traces[i].is_carried = true;
    }
    if (status == MR_OK && !mr_reduce_lists_take(reduce, stream, from))
        mr_reduce_break_traces(stream); /* which calls of it have ended is not known */
    if (status == MR_OK && stream->trace_count)
        mr_reduce_exemplars_carry(reduce, stream, from->depth);
    return status;
}

/* Its calls found no room in the spool (mr_resume_shorten()): of what was held nobody knows where it belongs. */
static void lose_held(struct mr_reduce_stream *stream,
                      const struct mr_resume_stream *from)
{
    uint64_t held = from->last - from->reduced - from->lost_sum;

    if (from->depth > 0 || !from->is_base_unsure)
        return;
    stream->lost[MR_LOSS_BUDGET] += held;
    stream->lost_sum += held;
}

enum mr_status mr_reduce_resume(struct mr_reduce *reduce, struct mr_reduce_stream *stream)
{
    const struct mr_resume_stream *from = stream->stream->resume;
    struct mr_event *events = reduce->events;
    struct mr_event *opens = malloc(((size_t)from->depth + 1) * sizeof(*opens));
    enum mr_status status;

    if (!opens)
        return MR_ENOMEM;
    stream->last = from->last;
    stream->reduced = stream->told_reduced = from->reduced;
    stream->lost_sum = from->lost_sum;
    stream->parts_before = from->last;
    stream->told_held = (int64_t)(from->last - from->reduced - from->lost_sum);
    stream->closed = from->closed;
    stream->seen_ns = from->last_ns;
    lose_held(stream, from);
    status = reopen_all(reduce, stream, from, opens);
    if (status == MR_OK)
        status = take_landings(stream, from);
    if (status == MR_OK && from->links)
        status = mr_reduce_links_take(stream, from->links);
    free(opens);
    reduce->events = events;
    return status;
}
