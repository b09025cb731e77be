/* SPDX-License-Identifier: Apache-2.0 */
#include "sink.h"
#include "sink_calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define STREAMS_MAX (UINT32_C(1) << 20)

static MR_PRINTF(2, 3) void fault(struct sink_source *source, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    printf("fault: %s[%u]: ", source->app, source->pid);
    (void)vprintf(format, values);
    printf("\n");
    va_end(values);
    source->faults++;
}

static struct sink_stream *stream_at(struct sink_source *source, uint32_t number)
{
    uint32_t count = source->stream_count ? source->stream_count : 64;

    if (number == 0 || number >= STREAMS_MAX) {
        fault(source, "stream %u", number);
        number = 1;
    }
    while (count <= number)
        count *= 2;
    if (count != source->stream_count) {
        source->streams = realloc(source->streams, count * sizeof(*source->streams));
        if (!source->streams)
            abort();
        memset(source->streams + source->stream_count, 0,
               (count - source->stream_count) * sizeof(*source->streams));
        source->stream_count = count;
    }
    return &source->streams[number];
}

static void take_stream(struct sink_source *source, const struct mr_dict_stream *item)
{
    struct sink_stream *stream = stream_at(source, item->stream);

    stream->is_announced = true;
    stream->tid = item->tid;
    stream->start_site = item->start_site;
    (void)snprintf(stream->name, sizeof(stream->name), "%s", item->name);
}

static void take_item(struct sink_source *source, const struct mr_dict_item *item)
{
    switch (item->kind) {
    case MR_DICT_MODULE:
        if (source->epoch < item->module.epoch) /* older ones are told again */
            source->epoch = item->module.epoch;
        source->modules++;
        printf("module epoch=%u number=%u site_base=%#x size=%#x address=%#" PRIx64
               " bias=%#" PRIx64 " build_id=%zu flags=%u path=%s\n",
               item->module.epoch, item->module.module, item->module.site_base,
               item->module.size, item->module.address, item->module.bias,
               item->module.build_id.size, item->module.flags, item->module.path);
        break;
    case MR_DICT_MODULE_GONE:
        printf("gone epoch=%u number=%u\n", item->module_gone.epoch,
               item->module_gone.module);
        source->epoch = item->module_gone.epoch;
        break;
    case MR_DICT_NAMED_SITE:
        source->named_sites++;
        if (item->named_site.site >= source->site_limit)
            source->site_limit = item->named_site.site + UINT64_C(1);
        printf("site site=%#x line=%u flags=%u name=%s\n", item->named_site.site,
               item->named_site.line, item->named_site.flags, item->named_site.name);
        break;
    case MR_DICT_STREAM:
        take_stream(source, &item->stream);
        break;
    case MR_DICT_SOURCE_LOSS:
        source->lost[item->source_loss.reason % MR_LOSS_REASON_COUNT] =
            item->source_loss.events;
        break;
    default:
        break;
    }
}

void sink_take_dict(struct sink_source *source, struct mr_span payload)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_dict_open(&reader, payload, &error);

    if (status == MR_OK) {
        while ((status = mr_dict_next(&reader, &item, &error)) == MR_OK)
            take_item(source, &item);
        mr_dict_close(&reader);
    }
    if (status != MR_END)
        fault(source, "dictionary: %s", error.text);
}

static void take_call(struct sink_source *source, struct sink_stream *stream,
                      const struct mr_record *record)
{
    stream->events++;
    if (record->kind == 0 && record->site < MR_SITE_FIRST_MODULE &&
        record->site >= source->site_limit)
        fault(source, "site %#x was not named before its use", record->site);
    if (sink_calls_are_wanted() && record->kind == 0)
        sink_calls_take((uint32_t)(stream - source->streams), record->site,
                        record->is_exit);
    if (!record->is_exit) {
        stream->enters++;
        stream->depth++;
        return;
    }
    stream->exits++;
    if (stream->depth > 0)
        stream->depth--;
    else
        stream->underflows++;
}

static void take_loss(struct sink_stream *stream, const struct mr_record *record)
{
    uint64_t events = record->payload[0] & ((UINT64_C(1) << 48) - 1);
    uint64_t pops = record->payload[1] & 0x7fffffff;
    uint64_t pushes = record->payload[1] >> 31 & 0x7fffffff;

    stream->lost += events;
    stream->records_lost[(record->payload[0] >> 48 & 0xff) % MR_LOSS_REASON_COUNT] +=
        events;
    stream->pops += pops;
    stream->pushes += pushes;
    stream->depth += (int64_t)pushes - (int64_t)pops;
    if (stream->depth < 0)
        stream->underflows++;
}

static void take_record(struct sink_source *source, struct sink_stream *stream,
                        const struct mr_record *record)
{
    stream->inversions += record->is_inversion;
    if (record->kind == 0 || record->site >= MR_SITE_FIRST_NAMED)
        take_call(source, stream, record);
    else if (record->kind == MR_RECORD_WIDE) {
        stream->wides++;
        take_call(source, stream, record);
    } else if (record->kind == MR_RECORD_LOSS)
        take_loss(stream, record);
    else if (record->kind == MR_RECORD_SYNC)
        stream->syncs++;
}

static void check_chunk(struct sink_source *source, const struct sink_stream *stream,
                        const struct mr_chunk *chunk)
{
    if (!stream->is_announced)
        fault(source, "stream %u was not announced before its chunk", chunk->stream);
    if (chunk->epoch > source->epoch)
        fault(source, "stream %u: epoch %u not announced", chunk->stream, chunk->epoch);
    if (chunk->first_event != stream->next_event)
        fault(source, "stream %u: event %" PRIu64 " instead of %" PRIu64, chunk->stream,
              chunk->first_event, stream->next_event);
    if (chunk->lost != stream->lost)
        fault(source, "stream %u: lost %" PRIu64 " instead of %" PRIu64, chunk->stream,
              chunk->lost, stream->lost);
    if (stream->is_last)
        fault(source, "stream %u goes on behind its last chunk", chunk->stream);
    if (((chunk->flags & MR_CHUNK_FIRST) != 0) == stream->has_chunk)
        fault(source, "stream %u: flag of the first chunk", chunk->stream);
    if (chunk->ticks < stream->ticks)
        fault(source, "stream %u: time runs back", chunk->stream);
}

static void take_chunk(struct sink_source *source, const struct mr_chunk *chunk)
{
    static struct mr_record_reader reader;
    static struct mr_record record;
    struct sink_stream *stream = stream_at(source, chunk->stream);
    uint64_t before = stream->events + stream->lost;
    enum mr_status status;

    check_chunk(source, stream, chunk);
    mr_record_reader_init(&reader, chunk);
    while ((status = mr_record_next(&reader, &record)) == MR_OK)
        take_record(source, stream, &record);
    if (status != MR_END)
        fault(source, "stream %u: bad record", chunk->stream);
    if (stream->events + stream->lost - before != chunk->events)
        fault(source, "stream %u: %" PRIu64 " events in a chunk of %" PRIu64,
              chunk->stream, stream->events + stream->lost - before, chunk->events);
    stream->next_event = chunk->first_event + chunk->events;
    stream->has_chunk = true;
    stream->ticks = chunk->ticks;
    stream->chunks++;
    stream->is_last = chunk->flags & MR_CHUNK_LAST;
    stream->is_source_end = chunk->flags & MR_CHUNK_SOURCE_END;
}

void sink_take_chunks(struct sink_source *source, struct mr_span payload)
{
    struct mr_chunk chunk;
    enum mr_status status;

    while ((status = mr_chunk_next(&payload, &chunk)) == MR_OK)
        take_chunk(source, &chunk);
    if (status != MR_END)
        fault(source, "bad chunk");
}

static void print_stream(uint32_t number, const struct sink_stream *stream)
{
    printf("stream number=%u tid=%u start=%#x events=%" PRIu64 " lost=%" PRIu64
           " enters=%" PRIu64 " exits=%" PRIu64 " wides=%" PRIu64 " depth=%" PRId64
           " underflows=%" PRIu64 " inversions=%" PRIu64 " chunks=%" PRIu64
           " last=%d end=%d name=%s\n",
           number, stream->tid, stream->start_site, stream->events, stream->lost,
           stream->enters, stream->exits, stream->wides, stream->depth,
           stream->underflows, stream->inversions, stream->chunks, stream->is_last,
           stream->is_source_end, stream->name);
}

void sink_print(const struct sink_source *source)
{
    uint64_t events = 0, lost[MR_LOSS_REASON_COUNT], depth = 0, underflows = 0;
    uint32_t streams = 0, last = 0;

    memcpy(lost, source->lost, sizeof(lost));
    for (uint32_t i = 0; i < source->stream_count; i++) {
        const struct sink_stream *stream = &source->streams[i];

        if (!stream->is_announced && !stream->has_chunk)
            continue;
        if (source->stream_count <= 256)
            print_stream(i, stream);
        streams++;
        last += stream->is_last;
        events += stream->events;
        underflows += stream->underflows;
        depth += stream->depth > 0 ? (uint64_t)stream->depth : 0;
        for (uint32_t reason = 0; reason < MR_LOSS_REASON_COUNT; reason++)
            lost[reason] += stream->records_lost[reason];
    }
    printf("source app=%s pid=%u finished=%d streams=%u last=%u events=%" PRIu64
           " open=%" PRIu64 " underflows=%" PRIu64 " modules=%u sites=%u faults=%" PRIu64,
           source->app, source->pid, source->is_finished, streams, last, events, depth,
           underflows, source->modules, source->named_sites, source->faults);
#define X(number, name, text, meaning) printf(" " text "=%" PRIu64, lost[number]);
    MR_LOSS_REASONS(X)
#undef X
    printf("\n");
}
