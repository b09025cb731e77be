/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream that is sent again and again: each time as a source of its own that lived later, so that no program of the same
 * name goes back in time. What tells a time of day is changed: the clock in HELLO, and dict items sync; and the trace ids of messages,
 * as a part would else meet the other end of its edges in another time.
 */
#include "bench/pipeline.h"

#include "base/assert.h"
#include "net/bytes.h"

#include <stdlib.h>
#include <string.h>

/* No more: what is told of each second and path would be of a few events. */
#define APART_NS MR_MILLISECOND_NS
#define TRACE_SHIFT 8 /* within the 62 bits */
/* A worker takes no time that is more than a day off: then it is the recording's own time again. */
#define LATER_MAX_NS (12 * MR_HOUR_NS)

/* How long the stream is, of its own clock. */
static uint64_t length_ns(const struct mr_bench_stream *stream)
{
    const struct mr_clock_info *clock = &stream->hello.source.clock;

    MR_ASSERT(stream->last_ticks >= stream->first_ticks);
    return mr_clock_info_ns(clock, stream->last_ticks) -
           mr_clock_info_ns(clock, stream->first_ticks);
}

/* Ids that no time before had, in all of the stream's messages. */
static void rename_traces(const struct mr_bench_stream *stream)
{
    struct mr_bench_traces *traces = stream->traces;
    uint64_t before, change;

    if (!traces)
        return;
    before = traces->generation++;
    change = (before ^ traces->generation) << TRACE_SHIFT;
    for (uint32_t i = 0; i < traces->count; i++) {
        uint8_t *at = stream->bytes + traces->words[i];

        (void)mr_put_u64(at, mr_get_u64(at) ^ change);
    }
}

void mr_bench_replay_later(struct mr_bench_replay *replay,
                           const struct mr_bench_stream *stream)
{
    if (replay->plays > 0)
        replay->later_ns += replay->length_ns + APART_NS;
    if (replay->later_ns > LATER_MAX_NS)
        replay->later_ns = 0;
    rename_traces(stream);
    replay->stream = stream;
    replay->length_ns = length_ns(stream);
    replay->plays++;
}

void mr_bench_begin_anew(struct mr_bench_replay *replay, struct mr_bench_stream *stream)
{
    /* Else what is missing before it would be a loss, after which no tree is sure for 10 s. */
    mr_bench_from_first(stream);
    mr_bench_replay_later(replay, stream);
}

struct mr_hello mr_bench_replay_hello(const struct mr_bench_replay *replay)
{
    struct mr_hello hello = replay->stream->hello;

    MR_ASSERT(replay->plays > 0);
    hello.sender.lo += UINT64_C(1000000) + replay->plays;
    hello.source.clock.realtime_ns += replay->later_ns;
    hello.token = "";
    return hello;
}

static enum mr_status put_items(struct mr_dict_reader *reader, uint64_t later_ns,
                                struct mr_dict_writer *writer)
{
    struct mr_dict_item item;
    enum mr_status status;

    while ((status = mr_dict_next(reader, &item, NULL)) == MR_OK) {
        if (item.kind == MR_DICT_SYNC)
            item.sync.realtime_ns += later_ns;
        status = mr_dict_put(writer, &item);
        if (status != MR_OK)
            return status;
    }
    return status == MR_END ? MR_OK : status;
}

size_t mr_bench_replay_room(const struct mr_bench_frame *frame)
{
    return frame->payload.size + MR_BENCH_REPLAY_SPARE;
}

enum mr_status mr_bench_replay_frame(const struct mr_bench_replay *replay,
                                     const struct mr_bench_frame *frame, uint8_t *out,
                                     size_t *size)
{
    struct mr_dict_reader reader;
    struct mr_dict_writer writer;
    enum mr_status status;

    *size = frame->payload.size;
    if (frame->type != MR_FRAME_DICT || replay->later_ns == 0) {
        memcpy(out, frame->payload.data, frame->payload.size);
        return MR_OK;
    }
    status = mr_dict_open(&reader, frame->payload, NULL);
    if (status != MR_OK)
        return status;
    mr_dict_writer_init(&writer, out, mr_bench_replay_room(frame));
    status = put_items(&reader, replay->later_ns, &writer);
    mr_dict_close(&reader);
    *size = mr_dict_writer_finish(&writer);
    return status;
}
