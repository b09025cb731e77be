/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call tree that a stream repeats (pipeline/repeat.h), found in the words of its chunks: nothing is looked up, and no
 * event written, of a trace whose words are those of the last ones but for their times.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "net/bytes.h"
#include "pipeline/filters/decode_private.h"
#include "pipeline/filters/decode_run.h"
#include "pipeline/repeat.h"

#define NOWHERE UINT32_MAX
/* A batch of them pays from so many traces on, and so many events. */
#define TRACES_MIN 4u
#define EVENTS_MIN 256u
#define LOOK_AGAIN 512u /* words behind a place where there was none */

static MR_ALWAYS_INLINE uint32_t wire_of(const uint8_t *word)
{
    return (uint32_t)(mr_get_u64(word) >> 32) & ~MR_WIRE_LAP;
}

void mr_decode_drop_repeat(struct mr_stream *stream)
{
    if (!stream->repeat)
        return;
    --*stream->repeat->live;
    free(stream->repeat);
    stream->repeat = NULL;
}

/* Whether the events are the calls of the repeat. */
static bool is_like(const struct mr_repeat *repeat, const struct mr_event *events)
{
    for (uint32_t i = 0; i < repeat->events; i++)
        if (((uint64_t)events[i].flags << 48 | (uint64_t)events[i].kind << 32 |
             events[i].site) != repeat->calls[i])
            return false;
    return true;
}

void mr_decode_learn_wire(struct mr_decode *decode, const uint8_t *words,
                          const struct mr_event *events, uint32_t count)
{
    struct mr_repeat *repeat = decode->stream->repeat;

    if (!repeat || repeat->map_version == decode->source->map_version ||
        decode->reader.encoding != MR_CHUNK_WORDS)
        return;
    for (uint32_t at = 0; at + repeat->events <= count; at++) {
        if (!is_like(repeat, events + at))
            continue;
        repeat->wire_count = MR_REPEAT_EVENTS_MAX / repeat->events * repeat->events;
        for (uint32_t i = 0; i < repeat->wire_count; i++)
            repeat->wire[i] =
                wire_of(words + (size_t)MR_WORD_SIZE * (at + i % repeat->events));
        repeat->map_version = decode->source->map_version;
        return;
    }
    mr_repeat_missed(repeat);
}

static bool is_here(const struct mr_repeat *repeat, const uint8_t *words)
{
    for (uint32_t i = 0; i < repeat->events; i++)
        if (wire_of(words + (size_t)MR_WORD_SIZE * i) != repeat->wire[i])
            return false;
    return true;
}

static uint32_t traces_min(const struct mr_repeat *repeat)
{
    uint32_t count = EVENTS_MIN / repeat->events;

    return count > TRACES_MIN ? count : TRACES_MIN;
}

/* How many words on a run of traces begins that pays; NOWHERE within one trace. */
static uint32_t find(const struct mr_repeat *repeat, const uint8_t *words, uint32_t left)
{
    const uint32_t least = traces_min(repeat), size = repeat->events;

    for (uint32_t at = 0; at < size && (uint64_t)least * size + at <= left; at++) {
        const uint8_t *first = words + (size_t)MR_WORD_SIZE * at;
        uint32_t found = 0;

        while (found < least &&
               is_here(repeat, first + (size_t)MR_WORD_SIZE * size * found))
            found++;
        if (found == least)
            return at;
    }
    return NOWHERE;
}

/* Fills a batch with the traces that the reader stands before: some at a time, the last ones each for itself. */
static void fill(struct mr_decode *decode, struct mr_batch *out)
{
    struct mr_record_reader *reader = &decode->reader;
    const struct mr_repeat *repeat = decode->stream->repeat;
    const struct mr_words_base base =
        mr_words_base(&decode->source->ticks, reader->ticks);
    const uint32_t size = repeat->events, room = MR_BATCH_EVENTS_MAX < reader->left
                                                     ? MR_BATCH_EVENTS_MAX
                                                     : reader->left;
    uint32_t step = repeat->wire_count, past = 0, count = 0;

    MR_ASSERT(size > 0);
    while (step) {
        while (count + step <= room &&
               mr_words_times(&base, repeat->wire,
                              reader->at + (size_t)MR_WORD_SIZE * count, step, &past,
                              mr_batch_times(out) + count, MR_CPU_IS_WIDE()))
            count += step;
        step = step > size ? size : 0;
    }
    out->base_ns = base.ns;
    out->trace_count = count / size;
    reader->at += (size_t)MR_WORD_SIZE * count;
    reader->left -= count;
    reader->ticks += past;
    decode->counted += count;
}

/* As many as fit a batch. */
static enum mr_status take_batch(struct mr_decode *decode)
{
    struct mr_stream *stream = decode->stream;
    enum mr_status status = mr_decode_flush(decode);
    struct mr_batch *out;

    if (status != MR_OK)
        return status;
    out = mr_batch_new(MR_BATCH_REPEATS);
    if (!out)
        return MR_ENOMEM;
    out->source = stream->source;
    out->stream = stream;
    out->wall_shift_ns = stream->source->drift.shift_ns;
    out->repeat = stream->repeat;
    fill(decode, out);
    if (out->trace_count)
        return mr_filter_emit(decode->filter, out);
    mr_batch_free(out);
    return MR_OK;
}

/* As mr_decode_repeats(), of one that is known in the words of the source. */
static enum mr_status look(struct mr_decode *decode, uint32_t *look_at)
{
    struct mr_repeat *repeat = decode->stream->repeat;
    const uint8_t *words = decode->reader.at;
    uint32_t left = decode->reader.left, at = find(repeat, words, left);
    enum mr_status status;

    *look_at = at == NOWHERE ? LOOK_AGAIN : at;
    if (at == NOWHERE && left >= (traces_min(repeat) + 1) * repeat->events)
        mr_repeat_missed(repeat);
    if (at != 0)
        return MR_OK;
    status = take_batch(decode);
    if (decode->reader.at == words) /* a time that only plain events can have */
        *look_at = repeat->events;
    return status;
}

enum mr_status mr_decode_repeats(struct mr_decode *decode, uint32_t *look_at)
{
    const struct mr_repeat *repeat = decode->stream->repeat;

    *look_at = MR_BATCH_EVENTS_MAX;
    if (repeat->misses == MR_REPEAT_MISSES_MAX) {
        mr_decode_drop_repeat(decode->stream);
        return MR_OK;
    }
    if (decode->reader.encoding != MR_CHUNK_WORDS ||
        repeat->map_version != decode->source->map_version)
        return MR_OK;
    return look(decode, look_at);
}
