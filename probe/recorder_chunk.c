/* SPDX-License-Identifier: Apache-2.0 */
/* From a copied ring to chunks, as the probe's writer would have sent them. */
#include "base/assert.h"
#include "net/chunk.h"
#include "probe/recorder_read.h"

#include <stdbool.h>
#include <string.h>

#define WORD_BYTES sizeof(uint64_t)
#define LOSS_WORDS 5 /* and a cut behind it */
#define LOSS_EVENTS_MAX ((UINT64_C(1) << 48) - 1)

struct shape {
    uint32_t words; /* 0: none that we know */
    bool is_cut;    /* its payload was granted after we read how much was */
    uint64_t events, lost;
};

static struct shape shape_of(const uint64_t *words, uint64_t left)
{
    static const uint16_t words_of[] = {
#define X(number, name, words, event) [number] = (words) + 1,
        MR_RECORD_KINDS(X)
#undef X
    };
    static const uint8_t events_of[] = {
#define X(number, name, words, event) [number] = (event),
        MR_RECORD_KINDS(X)
#undef X
    };
    uint32_t site = mr_word_site(words[0]), kind = site & 0xff, count = site >> 8 & 0xff;
    struct shape shape = {.words = 1, .events = 1};

    if (site >= MR_SITE_FIRST_NAMED)
        return shape;
    if (kind == 0 || kind >= MR_ARRAY_COUNT(words_of) ||
        (words_of[kind] != 256 && words_of[kind] != count + 1))
        return (struct shape){0};
    shape.words = 1 + count;
    shape.is_cut = shape.words > left;
    if (shape.is_cut)
        return shape;
    shape.events = events_of[kind];
    if (kind == MR_RECORD_LOSS) {
        shape.events = words[1] & LOSS_EVENTS_MAX;
        shape.lost = shape.events;
    }
    return shape;
}

/* Full time of a record; never before the one before it. */
static uint64_t time_of(const struct mr_recorder_copy *copy, const uint64_t *words)
{
    uint32_t site = mr_word_site(words[0]);
    int32_t step = (int32_t)((uint32_t)words[0] - (uint32_t)copy->ticks);
    uint64_t sync = words[1] & MR_WORD_PAYLOAD_MASK; /* there is always one word more */

    if (site < MR_SITE_FIRST_NAMED && (site & 0xff) == MR_RECORD_SYNC)
        return sync > copy->ticks ? sync : copy->ticks;
    return copy->ticks + (step > 0 ? (uint32_t)step : 0);
}

static bool is_cut_due(const struct mr_recorder_copy *copy, uint64_t ticks)
{
    return copy->next_cut < copy->cut_count && copy->cuts[copy->next_cut] <= ticks;
}

static struct mr_chunk chunk_at(const struct mr_recorder_copy *copy)
{
    return (struct mr_chunk){.encoding = MR_CHUNK_WORDS,
                             .stream = copy->stream,
                             .epoch = (uint32_t)copy->epoch,
                             .first_event = copy->event,
                             .lost = copy->lost,
                             .ticks = copy->ticks};
}

static size_t put_chunk(const struct mr_recorder_copy *copy, struct mr_chunk *chunk,
                        uint8_t *out, size_t words)
{
    chunk->events = copy->event - chunk->first_event;
    chunk->records = (uint32_t)words;
    chunk->body = mr_span_of(out + MR_CHUNK_HEADER_SIZE, words * WORD_BYTES);
    mr_chunk_put_header(chunk, out);
    return MR_CHUNK_HEADER_SIZE + words * WORD_BYTES;
}

/*
 * A chunk that tells of a loss after which nobody knows what is open, or of none where
 * nothing was lost.
 */
static size_t put_loss(struct mr_recorder_copy *copy, uint8_t *out, uint64_t events,
                       enum mr_loss_reason reason, uint8_t flags)
{
    struct mr_chunk chunk = chunk_at(copy);
    uint64_t words[LOSS_WORDS] = {mr_word_record(MR_RECORD_LOSS, 2, 0, copy->ticks),
                                  (events < LOSS_EVENTS_MAX ? events : LOSS_EVENTS_MAX) |
                                      (uint64_t)reason << 48,
                                  0, mr_word_record(MR_RECORD_CUT, 1, 0, copy->ticks), 0};
    /* A single event that is torn: its call lacks one end, which tells enough. */
    size_t count = reason == MR_LOSS_NESTED && events == 1 ? LOSS_WORDS - 2 : LOSS_WORDS;

    chunk.flags = flags;
    if (events == 0)
        return put_chunk(copy, &chunk, out, 0);
    memcpy(out + MR_CHUNK_HEADER_SIZE, words, count * WORD_BYTES);
    copy->event += events;
    copy->lost += events;
    return put_chunk(copy, &chunk, out, count);
}

static size_t put_cut(struct mr_recorder_copy *copy, uint8_t *out)
{
    struct mr_chunk chunk = chunk_at(copy);
    uint64_t words[2] = {mr_word_record(MR_RECORD_CUT, 1, 0, copy->ticks),
                         copy->cut_number + ++copy->next_cut};

    memcpy(out + MR_CHUNK_HEADER_SIZE, words, sizeof(words));
    return put_chunk(copy, &chunk, out, 2);
}

static bool take_mark(struct mr_recorder_copy *copy)
{
    if (copy->next_mark == copy->mark_count ||
        copy->at < copy->marks[copy->next_mark].index)
        return false;
    copy->epoch = copy->marks[copy->next_mark].epoch;
    if (copy->marks[copy->next_mark].ticks > copy->ticks)
        copy->ticks = copy->marks[copy->next_mark].ticks;
    copy->next_mark++;
    return true;
}

/* Where the next mark says that more events came than we counted, words were no records. */
static uint64_t missing_at_mark(const struct mr_recorder_copy *copy)
{
    const struct mr_recorder_mark *mark = &copy->marks[copy->next_mark];

    if (copy->next_mark == copy->mark_count || copy->at < mark->index ||
        mark->event <= copy->event)
        return 0;
    return mark->event - copy->event;
}

static size_t put_records(struct mr_recorder_copy *copy, uint8_t *out, size_t capacity)
{
    struct mr_chunk chunk = chunk_at(copy);
    size_t room = (capacity - MR_CHUNK_HEADER_SIZE) / WORD_BYTES, count = 0;
    uint64_t limit = copy->end;

    if (copy->next_mark < copy->mark_count)
        limit = copy->marks[copy->next_mark].index;
    while (copy->at < limit) {
        const uint64_t *words = copy->words + (copy->at - copy->first);
        struct shape shape = shape_of(words, copy->end - copy->at);

        if (shape.is_cut)
            copy->end = copy->at;
        if (shape.is_cut || shape.words == 0 || count + shape.words > room ||
            is_cut_due(copy, time_of(copy, words)))
            break;
        memcpy(out + MR_CHUNK_HEADER_SIZE + count * WORD_BYTES, words,
               shape.words * WORD_BYTES);
        copy->ticks = time_of(copy, words);
        copy->event += shape.events;
        copy->lost += shape.lost;
        copy->at += shape.words;
        count += shape.words;
    }
    return count ? put_chunk(copy, &chunk, out, count) : 0;
}

static size_t begin(struct mr_recorder_copy *copy, uint8_t *out)
{
    uint64_t events = copy->event;

    copy->has_begun = true;
    copy->event = 0;
    (void)take_mark(copy);
    return put_loss(copy, out, events, MR_LOSS_OVERWRITTEN, MR_CHUNK_FIRST);
}

static size_t finish(struct mr_recorder_copy *copy, uint8_t *out)
{
    uint64_t lost = copy->end_event > copy->event ? copy->end_event - copy->event : 0;
    size_t size = put_loss(copy, out, lost, MR_LOSS_NESTED,
                           copy->is_ended ? MR_CHUNK_LAST : MR_CHUNK_SOURCE_END);

    copy->has_finished = true;
    copy->events = copy->event;
    return size;
}

size_t mr_recorder_chunk(struct mr_recorder_copy *copy, uint8_t *out, size_t capacity)
{
    uint64_t missing;
    size_t size;

    MR_ASSERT(capacity >= MR_RECORDER_CHUNK_MIN);
    if (!copy->has_begun)
        return begin(copy, out);
    missing = missing_at_mark(copy);
    if (missing)
        return put_loss(copy, out, missing, MR_LOSS_FORMAT, 0);
    (void)take_mark(copy);
    if (copy->at < copy->end) {
        size = put_records(copy, out, capacity);
        if (size > 0)
            return size;
    }
    if (copy->at < copy->end) {
        if (is_cut_due(copy, time_of(copy, copy->words + (copy->at - copy->first))))
            return put_cut(copy, out);
        copy->at++; /* taken and not written: one event */
        return put_loss(copy, out, 1, MR_LOSS_NESTED, 0);
    }
    return copy->has_finished ? 0 : finish(copy, out);
}
