/* SPDX-License-Identifier: Apache-2.0 */
/* Marks for the spool, and sources that go on from one (pipeline/resume.h). */
#include "net/wire.h"
#include "pipeline/filters/decode_private.h"
#include "pipeline/mark.h"
#include "pipeline/resume.h"

static void take_source(struct mr_source *source, const struct mr_resume_source *from)
{
    source->drift = (struct mr_drift){.is_synced = from->is_synced != 0,
                                      .first_ns = from->first_ns,
                                      .last_ns = from->last_sync_ns,
                                      .now_ns = from->now_ns,
                                      .max_ns = from->max_ns,
                                      .shift_ns = from->shift_ns,
                                      .told_at_ns = from->told_at_ns,
                                      .note_version = from->note_version,
                                      .clamped = from->clamped,
                                      .clamped_told = from->clamped_told};
    source->last_ns = from->last_ns;
    for (size_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        source->loss_told[i] = from->loss_told[i];
}

static struct mr_resume_source give_source(const struct mr_source *source)
{
    const struct mr_drift *drift = &source->drift;
    struct mr_resume_source given = {.is_synced = drift->is_synced,
                                     .first_ns = drift->first_ns,
                                     .last_sync_ns = drift->last_ns,
                                     .now_ns = drift->now_ns,
                                     .max_ns = drift->max_ns,
                                     .shift_ns = drift->shift_ns,
                                     .told_at_ns = drift->told_at_ns,
                                     .note_version = drift->note_version,
                                     .clamped = drift->clamped,
                                     .clamped_told = drift->clamped_told,
                                     .last_ns = source->last_ns};

    for (size_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        given.loss_told[i] = source->loss_told[i];
    return given;
}

/* The smallest time in ticks that is not before `ns`, so that nothing comes before it; MR_TICKS_LIMIT: there is none. */
static uint64_t ticks_at(const struct mr_source *source, uint64_t ns)
{
    const struct mr_clock_info *clock = &source->info.clock;
    uint64_t ticks = 0;

    for (uint64_t step = MR_TICKS_LIMIT >> 1; step; step >>= 1)
        if (mr_clock_info_ns(clock, ticks + step - 1) < ns)
            ticks += step;
    return mr_clock_info_ns(clock, ticks) >= ns && mr_ticks_fit(clock, ticks)
               ? ticks
               : MR_TICKS_LIMIT;
}

static uint32_t site_of(const struct mr_decode *decode, const struct mr_source *source,
                        struct mr_id id)
{
    return mr_resume_site(source->resume->sites, id, decode->sites);
}

/* What was told of it is passed over. */
static enum mr_status leave_stream(struct mr_decode *decode)
{
    mr_counters_add(&decode->counters, MR_DECODE_NOT_RESUMED, 1);
    return MR_OK;
}

static enum mr_status resume_stream(struct mr_decode *decode, struct mr_source *source,
                                    const struct mr_resume_stream *from)
{
    const uint64_t ticks = ticks_at(source, from->last_ns);
    struct mr_stream *stream;
    enum mr_status status;

    if (ticks == MR_TICKS_LIMIT) /* a time that this clock never tells */
        return leave_stream(decode);
    status = mr_source_stream(source, from->id, UINT32_C(1) << 28, &stream);
    if (status != MR_OK)
        return status;
    if (stream->is_started) /* told twice */
        return leave_stream(decode);
    for (uint32_t i = 0; i < from->depth; i++)
        from->calls[i].site = site_of(decode, source, from->calls[i].site_id);
    for (uint32_t i = 0; from->lists && i < from->lists->node_count; i++)
        from->lists->nodes[i].site =
            site_of(decode, source, from->lists->nodes[i].site_id);
    stream->is_started = true;
    stream->has_counters = source->counter_count > 0;
    stream->base_event = from->base_event;
    stream->next_event = from->base_event + from->last;
    stream->ticks = ticks;
    stream->resume = from;
    /* A count of nothing: who follows meets the stream now, and tells what is open of it, though its thread may hang and say no more. */
    return from->depth ? mr_decode_count(decode, stream, 0, 0) : MR_OK;
}

enum mr_status mr_decode_resume(struct mr_decode *decode, struct mr_source *source)
{
    enum mr_status status = MR_OK;

    if (!source->resume || source->is_resumed)
        return MR_OK;
    source->is_resumed = true;
    if (source->resume->has_source)
        take_source(source, &source->resume->source);
    for (uint32_t i = 0; status == MR_OK && i < source->resume->stream_count; i++)
        status = resume_stream(decode, source, &source->resume->streams[i]);
    return status == MR_OK ? mr_decode_flush(decode) : status;
}

enum mr_status mr_decode_mark(struct mr_decode *decode, struct mr_source *source,
                              uint64_t sequence)
{
    struct mr_batch *batch;
    struct mr_mark mark = {.kind = MR_MARK_COVER,
                           .id = source->id,
                           .serial = source->serial,
                           .sequence = sequence};
    enum mr_status status = MR_OK;

    if (!decode->config->has_marks || sequence == 0)
        return MR_OK;
    batch = mr_batch_new(MR_BATCH_MARK);
    if (!batch)
        return MR_ENOMEM;
    status = mr_mark_put(&batch->bytes, &mark);
    if (status == MR_OK && source->role == MR_ROLE_PROBE) {
        struct mr_resume_source given = give_source(source);

        mark.kind = MR_MARK_SOURCE;
        mark.bytes = mr_span_of(&given, sizeof(given));
        status = mr_mark_put(&batch->bytes, &mark);
    }
    if (status == MR_OK)
        return mr_filter_emit(decode->filter, batch);
    mr_batch_free(batch);
    return status;
}
