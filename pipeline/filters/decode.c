/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/filters/decode.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "net/delta.h"
#include "pipeline/filters/decode_private.h"
#include "pipeline/resume.h"

static const char *const counter_names[MR_DECODE_COUNTERS] = {
    [MR_DECODE_BROKEN] = "decode_sources_broken",
    [MR_DECODE_DISCARDED] = "decode_frames_discarded",
    [MR_DECODE_INVERSIONS] = "decode_times_clamped",
    [MR_DECODE_UNKNOWN_SITES] = "decode_events_of_unknown_sites",
    [MR_DECODE_UNKNOWN_RECORDS] = "decode_records_unknown",
    [MR_DECODE_CUTS] = "decode_streams_cut",
    [MR_DECODE_UNKNOWN_ITEMS] = "decode_items_unknown",
    [MR_DECODE_WORDS_EVENTS] = "decode_words_events",
    [MR_DECODE_WORDS_BYTES] = "decode_words_bytes",
    [MR_DECODE_COMPACT_EVENTS] = "decode_compact_events",
    [MR_DECODE_COMPACT_BYTES] = "decode_compact_bytes",
    [MR_DECODE_GAPS] = "decode_gaps",
    [MR_DECODE_REFUSED_SITES] = "decode_sites_refused",
    [MR_DECODE_REFUSED_STREAMS] = "decode_streams_refused",
    [MR_DECODE_UNKNOWN_VALUES] = "decode_values_of_unknown_counters",
    [MR_DECODE_NOT_RESUMED] = "decode_streams_not_resumed",
};

static enum mr_status decode_open(struct mr_filter *filter, const void *config,
                                  struct mr_error *error)
{
    struct mr_decode *decode = mr_filter_state(filter);

    decode->filter = filter;
    decode->config = config;
    if (!decode->config || !decode->config->sites || decode->config->streams_max == 0)
        return mr_error_set(error, MR_EUSAGE, "decode: needs sites and streams_max");
    decode->sites = decode->config->sites;
    mr_counters_init(&decode->counters, filter, counter_names, MR_DECODE_COUNTERS);
    mr_filter_name_counter(filter, MR_DECODE_SUM_LOST, "lost");
    return MR_OK;
}

void mr_decode_break(struct mr_decode *decode, struct mr_source *source,
                     const char *format, ...)
{
    char text[MR_ERROR_TEXT_SIZE];
    va_list args;

    if (mr_source_is_broken(source))
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    mr_source_break(source, "%s", text);
    mr_counters_add(&decode->counters, MR_DECODE_BROKEN, 1);
}

/* Tells the sites that were met since the last time: before any delta can name them. */
static enum mr_status announce_sites(struct mr_decode *decode)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_MINUTE_NS);
    uint64_t refused = decode->sites->refused - decode->refused_told;

    if (refused)
        (void)mr_log_limited(
            &limit, MR_LOG_WARN,
            "a lane has no room for more functions and spans: what is new shows as "
            "unknown until the worker is started again (docs/OPERATIONS.md, Bounds of a "
            "worker)");
    mr_counters_add(&decode->counters, MR_DECODE_REFUSED_SITES, refused);
    decode->refused_told += refused;
    for (; decode->announced < decode->sites->count; decode->announced++) {
        struct mr_dict_item item;
        enum mr_status status;

        mr_sites_item(decode->sites, decode->announced, &item);
        status = mr_dict_batch_put(&decode->dict, decode->filter, &item);
        if (status != MR_OK)
            return status;
    }
    return mr_dict_batch_emit(&decode->dict, decode->filter);
}

enum mr_status mr_decode_flush(struct mr_decode *decode)
{
    struct mr_batch *out = decode->out;
    enum mr_status status = announce_sites(decode);

    if (status != MR_OK || !out)
        return status;
    decode->out = NULL;
    if (out->event_count)
        return mr_filter_emit(decode->filter, out);
    mr_batch_free(out);
    return MR_OK;
}

enum mr_status mr_decode_reserve(struct mr_decode *decode, struct mr_stream *stream)
{
    struct mr_batch *out = decode->out;

    if (out && out->stream == stream && out->event_count < MR_BATCH_EVENTS_MAX)
        return MR_OK;
    if (out) {
        enum mr_status status = mr_decode_flush(decode);

        if (status != MR_OK)
            return status;
    }
    out = mr_batch_new(MR_BATCH_EVENTS);
    if (!out)
        return MR_ENOMEM;
    MR_ASSERT(out->event_capacity >= MR_BATCH_EVENTS_MAX);
    out->source = stream->source;
    out->stream = stream;
    out->wall_shift_ns = stream->source->drift.shift_ns;
    decode->out = out;
    return MR_OK;
}

enum mr_status mr_decode_add(struct mr_decode *decode, struct mr_stream *stream,
                             const struct mr_event *event)
{
    enum mr_status status = mr_decode_reserve(decode, stream);

    if (status == MR_OK)
        decode->out->events[decode->out->event_count++] = *event;
    return status;
}

enum mr_status mr_decode_count(struct mr_decode *decode, struct mr_stream *stream,
                               uint64_t events, uint8_t reason)
{
    struct mr_event event = {.ns = events, .kind = MR_EVENT_COUNTED, .flags = reason};

    return mr_decode_add(decode, stream, &event);
}

static enum mr_status announce_source(struct mr_decode *decode,
                                      const struct mr_source *source,
                                      enum mr_source_state state)
{
    const struct mr_source_info *info = &source->info;
    struct mr_dict_item scope = {.kind = MR_DICT_SCOPE,
                                 .scope = {.id = source->scope,
                                           .app = info->app,
                                           .version = info->version,
                                           .host = source->scope_host}};
    struct mr_dict_item item = {
        .kind = MR_DICT_SOURCE,
        .source = {.id = source->id,
                   .scope = source->scope,
                   .worker = decode->config->worker,
                   .host = info->host,
                   .app = info->app,
                   .version = info->version,
                   .exe = info->exe,
                   .pid = info->pid,
                   .start_ns = info->start_ns,
                   .end_ns = state == MR_SOURCE_LIVE ? 0 : source->last_ns,
                   .clock = info->clock.kind,
                   .state = state,
                   .policy = info->policy}};
    enum mr_status status = mr_dict_batch_put(&decode->dict, decode->filter, &scope);

    if (status == MR_OK)
        status = mr_dict_batch_put(&decode->dict, decode->filter, &item);
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

/* What a worker sends must be sound, because behind this filter nobody knows any more whom to cut off. */
static bool is_sound_dict(struct mr_span payload, struct mr_error *error,
                          uint64_t *unknown)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    enum mr_status status = mr_dict_open(&reader, payload, error);
    bool is_upward = true;

    if (status != MR_OK)
        return false;
    while (is_upward && (status = mr_dict_next(&reader, &item, error)) == MR_OK)
        is_upward = item.kind >= MR_DICT_SITE;
    if (!is_upward)
        (void)mr_error_set(error, MR_EFORMAT, "item %u is not a worker's",
                           (unsigned)item.kind);
    *unknown = reader.unknown;
    mr_dict_close(&reader);
    return status == MR_END;
}

/* Notes what behind this filter must be known of it: its time, as which telling it is, and whether traces are open. */
static bool is_sound_delta(struct mr_batch *batch, struct mr_error *error,
                           uint64_t *unknown)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    mr_delta_reader_init(&reader, batch->frame.payload);
    while ((status = mr_delta_next(&reader, &item)) == MR_OK) {
        if (item.tag == MR_DELTA_HEAD)
            batch->telling = item.created_ns;
        batch->has_open |= item.tag == MR_DELTA_OPEN;
    }
    *error = reader.error;
    *unknown = reader.unknown;
    mr_delta_reader_fini(&reader);
    return status == MR_END;
}

/* DICT and DELTA of a worker go on as they came. */
static enum mr_status pass_upward(struct mr_decode *decode, struct mr_source *source,
                                  struct mr_batch *batch)
{
    bool is_dict = batch->frame.type == MR_FRAME_DICT;
    struct mr_error error = MR_ERROR_NONE;
    uint64_t unknown = 0;
    enum mr_status status;

    if (is_dict ? !is_sound_dict(batch->frame.payload, &error, &unknown)
                : !is_sound_delta(batch, &error, &unknown)) {
        mr_decode_break(decode, source, "%s frame: %s", is_dict ? "DICT" : "DELTA",
                        error.text);
        mr_batch_free(batch);
        return MR_OK;
    }
    mr_counters_add(&decode->counters, MR_DECODE_UNKNOWN_ITEMS, unknown);
    status = mr_batch_own(batch);
    if (status != MR_OK) {
        mr_batch_free(batch);
        return status;
    }
    batch->kind = is_dict ? MR_BATCH_DICT : MR_BATCH_DELTA;
    batch->teller = source->id;
    batch->source = NULL;
    return mr_filter_emit(decode->filter, batch);
}

static enum mr_status take_probe_frame(struct mr_decode *decode, struct mr_source *source,
                                       const struct mr_frame *frame)
{
    enum mr_status status = MR_OK;

    if (!source->is_announced) {
        source->is_announced = true;
        status = announce_source(decode, source, MR_SOURCE_LIVE);
        if (status == MR_OK)
            status = mr_decode_clock_facts(decode, source);
    }
    if (status == MR_OK && frame->sequence)
        status = mr_decode_resume(decode, source);
    if (status != MR_OK)
        return status;
    if (frame->type == MR_FRAME_DICT)
        return mr_decode_dict(decode, source, frame);
    if (frame->type == MR_FRAME_CHUNKS)
        return mr_decode_chunks(decode, source, frame->payload);
    mr_decode_break(decode, source, "a probe sent a %s frame",
                    mr_frame_type_name(frame->type));
    return MR_OK;
}

static enum mr_status take_frame(struct mr_decode *decode, struct mr_batch *batch)
{
    struct mr_source *source = batch->source;
    enum mr_status status;

    if (mr_source_is_broken(source) || source->is_ended) {
        mr_counters_add(&decode->counters, MR_DECODE_DISCARDED, 1);
    } else if (source->role == MR_ROLE_PROBE) {
        status = take_probe_frame(decode, source, &batch->frame);
        mr_batch_free(batch);
        return status;
    } else if (batch->frame.type == MR_FRAME_DICT ||
               batch->frame.type == MR_FRAME_DELTA) {
        return pass_upward(decode, source, batch);
    } else {
        mr_decode_break(decode, source, "a worker sent a %s frame",
                        mr_frame_type_name(batch->frame.type));
    }
    mr_batch_free(batch);
    return MR_OK;
}

/* The frame is reduced, or dropped and counted, when its mark comes. */
static enum mr_status take_and_mark(struct mr_decode *decode, struct mr_batch *batch)
{
    struct mr_source *source = batch->source;
    uint64_t sequence = batch->frame.sequence;
    enum mr_status status;

    decode->sequence = sequence;
    status = take_frame(decode, batch);

    return status == MR_OK ? mr_decode_mark(decode, source, sequence) : status;
}

static enum mr_status end_streams(struct mr_decode *decode, struct mr_source *source,
                                  bool are_handed_over)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct mr_stream *stream = source->slots[i];
        struct mr_event end = {.kind = MR_EVENT_STREAM_END};
        enum mr_status status;

        if (!stream || !stream->is_started || stream->is_ended)
            continue;
        stream->is_ended = true;
        mr_decode_drop_repeat(stream);
        if (are_handed_over && stream->id != MR_STREAM_NONE)
            end.flags = MR_EVENT_END_HANDED_OVER;
        end.ns = mr_ticks_ns(&source->ticks, stream->ticks);
        status = mr_decode_add(decode, stream, &end);
        if (status != MR_OK)
            return status;
    }
    return mr_decode_flush(decode);
}

/* A worker below is done, or speaks to another of this level now: nothing is open that this one would have to tell. */
static enum mr_status tell_none_open(struct mr_decode *decode,
                                     const struct mr_source *source)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    struct mr_delta_writer writer;

    if (!batch)
        return MR_ENOMEM;
    batch->teller = source->id;
    batch->telling = 0; /* no delta's time */
    mr_delta_begin(&writer, &batch->bytes);
    mr_delta_head(&writer, decode->config->level, mr_clock_realtime_ns());
    if (mr_delta_status(&writer) == MR_OK)
        return mr_filter_emit(decode->filter, batch);
    mr_batch_free(batch);
    return mr_delta_status(&writer);
}

static enum mr_status take_end(struct mr_decode *decode, struct mr_batch *batch)
{
    struct mr_source *source = batch->source;
    enum mr_status status = MR_OK;

    if (source->role == MR_ROLE_PROBE && !source->is_ended) {
        source->is_ended = true;
        status = mr_decode_resume(decode, source);
        if (status == MR_OK)
            status = end_streams(decode, source, batch->is_handed_over);
        if (status == MR_OK)
            status =
                announce_source(decode, source, (enum mr_source_state)batch->end_state);
        if (status == MR_OK)
            status = mr_decode_clock_end(decode, source);
    } else if (source->role != MR_ROLE_PROBE) {
        status = tell_none_open(decode, source);
    }
    if (status == MR_OK)
        return mr_filter_emit(decode->filter, batch);
    mr_batch_free(batch);
    return status;
}

static enum mr_status decode_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct mr_decode *decode = mr_filter_state(filter);

    switch (batch->kind) {
    case MR_BATCH_FRAME:
        MR_ASSERT(batch->source);
        return take_and_mark(decode, batch);
    case MR_BATCH_END:
        MR_ASSERT(batch->source);
        return take_end(decode, batch);
    case MR_BATCH_EVENTS:
    case MR_BATCH_DICT:
    case MR_BATCH_DELTA:
    case MR_BATCH_MARK:
    case MR_BATCH_REPEATS:
        break;
    }
    return mr_filter_emit(filter, batch);
}

static enum mr_status decode_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct mr_decode *decode = mr_filter_state(filter);

    return mr_counters_tick(&decode->counters, decode->config->level, now_ns);
}

static enum mr_status decode_drain(struct mr_filter *filter)
{
    struct mr_decode *decode = mr_filter_state(filter);
    enum mr_status status = mr_decode_flush(decode);

    return status == MR_OK ? mr_counters_emit(&decode->counters, decode->config->level)
                           : status;
}

static void decode_close(struct mr_filter *filter)
{
    struct mr_decode *decode = mr_filter_state(filter);

    mr_batch_free(decode->out);
    mr_dict_batch_fini(&decode->dict);
}

const struct mr_filter_kind mr_decode_filter = {.name = "decode",
                                                .state_size = sizeof(struct mr_decode),
                                                .open = decode_open,
                                                .process = decode_process,
                                                .tick = decode_tick,
                                                .drain = decode_drain,
                                                .close = decode_close};
