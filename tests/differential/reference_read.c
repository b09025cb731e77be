/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks, words and compact records, as docs/FORMAT.md section 6 has them. */
#include <stdlib.h>
#include <string.h>

#include "reference_private.h"

#define STACK_MAX 4096u
#define SITES_MAX 4096u
#define NAMED 65536u
#define WORDS_MAX 256u
#define MASK63 (UINT64_MAX >> 1)

enum kind {
    KIND_SYNC = 1,
    KIND_LOSS = 2,
    KIND_WIDE = 3,
    KIND_SEND = 4,
    KIND_RECEIVE = 5,
    KIND_CAPTURE = 6,
    KIND_ATTACH = 7,
    KIND_DETACH = 8,
    KIND_STATUS = 9,
    KIND_COUNTER = 14,
    KIND_UNWIND = 15,
    KIND_PRUNE = 16,
    KIND_CUT = 17,
    KIND_LANDING = 18
};

struct chunk {
    uint8_t encoding, flags;
    uint32_t stream, epoch, records;
    uint64_t first_event, events, time;
    const uint8_t *body, *end;
    uint64_t counted;
    /* Compact */
    uint32_t sites[SITES_MAX + 1], site_count;
    uint32_t stack[STACK_MAX], depth;
};

/* One record, wherever it came from. */
struct record {
    uint32_t site; /* NAMED or more: enter or exit */
    uint32_t kind, words;
    bool is_exit;
    uint64_t payload[WORDS_MAX];
};

static void must(bool condition)
{
    if (!condition)
        abort(); /* the bytes are the test's own */
}

static uint64_t little(const uint8_t *bytes, int size)
{
    uint64_t value = 0;

    while (size-- > 0)
        value = value << 8 | bytes[size];
    return value;
}

static uint64_t take_word(struct chunk *chunk)
{
    must(chunk->end - chunk->body >= 8);
    chunk->body += 8;
    return little(chunk->body - 8, 8);
}

static uint64_t take_varint(struct chunk *chunk)
{
    uint64_t value = 0;

    for (int shift = 0;; shift += 7) {
        uint8_t byte;

        must(chunk->body < chunk->end && shift < 64);
        byte = *chunk->body++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* The record's own time, and that of a sync. */
static void go_to(struct ref_stream *stream, uint64_t ticks)
{
    if (ticks > stream->ticks)
        stream->ticks = ticks;
}

static void read_words(struct chunk *chunk, struct ref_stream *stream,
                       struct record *record)
{
    uint64_t word = take_word(chunk);
    uint32_t field = (uint32_t)(word >> 32) & 0x3fffffff;
    int32_t step = (int32_t)((uint32_t)word - (uint32_t)stream->ticks);

    record->is_exit = word >> 62 & 1;
    record->site = field >= NAMED ? field : 0;
    record->kind = field >= NAMED ? 0 : field & 0xff;
    record->words = field >= NAMED ? 0 : field >> 8 & 0xff;
    if (record->kind != KIND_SYNC && step > 0)
        stream->ticks += (uint32_t)step;
    for (uint32_t i = 0; i < record->words; i++)
        record->payload[i] = take_word(chunk) & MASK63;
    must(chunk->records >= 1 + record->words);
    chunk->records -= 1 + record->words;
}

static uint32_t compact_site(struct chunk *chunk)
{
    uint64_t number = take_varint(chunk);

    if (number == 0) {
        must(chunk->site_count < SITES_MAX);
        chunk->sites[++chunk->site_count] = (uint32_t)take_varint(chunk);
        return chunk->site_count;
    }
    must(number <= chunk->site_count);
    return (uint32_t)number;
}

static void pop_to(struct chunk *chunk, uint32_t number)
{
    for (uint32_t at = chunk->depth; at > 0; at--)
        if (chunk->stack[at - 1] == number) {
            chunk->depth = at - 1;
            return;
        }
}

static void read_compact(struct chunk *chunk, struct ref_stream *stream,
                         struct record *record)
{
    uint64_t head = take_varint(chunk);
    uint32_t number = 0;

    stream->ticks += head >> 2;
    *record = (struct record){.is_exit = (head & 3) == 1 || (head & 3) == 2};
    switch (head & 3) {
    case 0:
        number = compact_site(chunk);
        if (chunk->depth < STACK_MAX)
            chunk->stack[chunk->depth++] = number;
        break;
    case 1:
        must(chunk->depth > 0);
        number = chunk->stack[--chunk->depth];
        break;
    case 2:
        number = compact_site(chunk);
        pop_to(chunk, number);
        break;
    default:
        head = take_varint(chunk);
        record->kind = (uint32_t)(head >> 9);
        record->words = (uint32_t)(head >> 1) & 0xff;
        record->is_exit = head & 1;
        for (uint32_t i = 0; i < record->words; i++)
            record->payload[i] = take_word(chunk) & MASK63;
    }
    record->site = number ? chunk->sites[number] : 0;
    must(chunk->records > 0);
    chunk->records--;
}

static void take_call(struct ref *ref, struct chunk *chunk, struct ref_stream *stream,
                      bool is_exit, uint32_t site)
{
    chunk->counted++;
    ref->sites[site].is_met = true;
    ref_take(ref, stream,
             &(struct ref_event){.kind = is_exit ? REF_EXIT : REF_ENTER, .site = site});
}

static void take_loss(struct ref *ref, struct chunk *chunk, struct ref_stream *stream,
                      const uint64_t *payload)
{
    struct ref_event event = {.kind = REF_LOSS,
                              .events = payload[0] & ((UINT64_C(1) << 48) - 1),
                              .reason = (uint32_t)(payload[0] >> 48) & 0xff,
                              .pops = payload[1] & 0x7fffffff,
                              .pushes = payload[1] >> 31 & 0x7fffffff};

    chunk->counted += event.events;
    ref_take(ref, stream, &event);
}

static void lose_blindly(struct ref *ref, struct ref_stream *stream, uint64_t events)
{
    ref_take(ref, stream,
             &(struct ref_event){.kind = REF_LOSS,
                                 .events = events,
                                 .reason = REF_FORMAT,
                                 .pops = REF_NESTING_UNKNOWN});
}

/* Kinds that are neither enter nor exit. */
static void take_landing(struct ref *ref, struct chunk *chunk, struct ref_stream *stream,
                         const struct record *record)
{
    uint64_t left = record->words > 0 ? record->payload[0] & 0xff : 0;
    bool is_found = false;

    for (uint32_t i = 1; i < record->words; i++) {
        uint64_t word = record->payload[i];
        struct ref_landing frame = {
            .site = ref_site_at(ref, chunk->epoch, word & 0xffffffffffff),
            .tag = word >> 48 & 0x3fff};

        if (frame.site == REF_SITE_UNKNOWN || !ref->sites[frame.site].is_met || is_found)
            continue;
        if (i <= left)
            ref_leave_frame(ref, stream, &frame);
        else
            is_found = ref_land(ref, stream, &frame, word >> 62 & 1, i == left + 1);
    }
}

/* `count` bits of the number that the words make, from bit `from` on, become the next bits of `id`, from its end. */
static void put_bits(struct ref_id *id, uint32_t *at, uint64_t word, uint32_t from,
                     uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, ++*at)
        if (word >> (from + i) & 1)
            id->bytes[15 - *at / 8] |= (uint8_t)(1u << *at % 8);
}

static void take_link(struct ref *ref, struct chunk *chunk, struct ref_stream *stream,
                      const struct record *record)
{
    const uint64_t *words = record->payload;
    struct ref_link link = {
        .kind = (enum ref_link_kind)(record->kind - KIND_SEND + REF_SEND)};
    uint32_t at = 0;

    chunk->counted++;
    if (record->kind <= KIND_RECEIVE) {
        put_bits(&link.trace, &at, words[0], 0, 62);
        put_bits(&link.trace, &at, words[1], 0, 62);
        put_bits(&link.trace, &at, words[2], 0, 4);
        link.span = (words[2] >> 4 & 0x3ffffffffffffff) + ((words[3] & 0x3f) << 58);
    } else {
        link.span = words[0];
        if (record->kind == KIND_DETACH && link.span == 0)
            link.kind = REF_DONE;
    }
    ref_take_link(ref, stream, &link);
}

static void take_other(struct ref *ref, struct chunk *chunk, struct ref_stream *stream,
                       const struct record *record)
{
    const uint64_t *payload = record->payload;

    switch (record->kind) {
    case KIND_SYNC:
        go_to(stream, payload[0] & (UINT64_MAX >> 2));
        break;
    case KIND_LOSS:
        take_loss(ref, chunk, stream, payload);
        break;
    case KIND_WIDE:
        take_call(ref, chunk, stream, record->is_exit,
                  ref_site_at(ref, chunk->epoch, payload[0]));
        break;
    case KIND_STATUS:
        chunk->counted++;
        ref_take(ref, stream,
                 &(struct ref_event){.kind = REF_STATUS, .value = payload[0] & 0xff});
        break;
    case KIND_UNWIND:
        chunk->counted++;
        ref_take(ref, stream,
                 &(struct ref_event){.kind = REF_UNWIND, .value = payload[0]});
        break;
    case KIND_CUT:
        lose_blindly(ref, stream, 0);
        break;
    case KIND_SEND:
    case KIND_RECEIVE:
    case KIND_CAPTURE:
    case KIND_ATTACH:
    case KIND_DETACH:
        take_link(ref, chunk, stream, record);
        break;
    case KIND_LANDING:
        take_landing(ref, chunk, stream, record);
        break;
    case KIND_COUNTER:
    case KIND_PRUNE:
        break;
    default:
        if (record->kind > KIND_CUT)
            break; /* of a later version: whether it counts, the header tells */
        chunk->counted++;
        ref_take(ref, stream, &(struct ref_event){.kind = REF_OTHER, .value = 1});
    }
}

static void read_record(struct ref *ref, struct chunk *chunk, struct ref_stream *stream)
{
    struct record record;

    if (chunk->encoding == 0)
        read_words(chunk, stream, &record);
    else
        read_compact(chunk, stream, &record);
    if (record.site)
        take_call(ref, chunk, stream, record.is_exit,
                  ref_site_of(ref, chunk->epoch, record.site));
    else
        take_other(ref, chunk, stream, &record);
}

static void read_chunk(struct ref *ref, struct chunk *chunk)
{
    struct ref_stream *stream = ref_stream_of(ref, chunk->stream);

    must(!stream->is_ended && chunk->first_event >= stream->next_event);
    stream->is_used = true;
    if (stream->start_wire && stream->start == REF_SITE_UNKNOWN)
        stream->start = ref_site_of(ref, chunk->epoch, stream->start_wire);
    ref->sites[stream->start].is_met = true;
    go_to(stream, chunk->time);
    if (chunk->first_event > stream->next_event)
        lose_blindly(ref, stream, chunk->first_event - stream->next_event);
    while (chunk->records > 0)
        read_record(ref, chunk, stream);
    must(chunk->body == chunk->end && chunk->counted <= chunk->events);
    if (chunk->events > chunk->counted)
        ref_take(ref, stream,
                 &(struct ref_event){.kind = REF_OTHER,
                                     .value = chunk->events - chunk->counted});
    stream->next_event = chunk->first_event + chunk->events;
    if (chunk->flags & 2)
        ref_end_stream(ref, stream);
}

void ref_chunks(struct ref *ref, const uint8_t *bytes, size_t size)
{
    struct chunk *chunk = malloc(sizeof(*chunk));

    must(chunk != NULL);
    while (size > 0) {
        uint64_t chunk_size, header;

        must(size >= 56);
        chunk_size = little(bytes, 4);
        header = little(bytes + 6, 2);
        must(chunk_size <= size && header >= 56 && header <= chunk_size);
        chunk->encoding = bytes[4];
        chunk->flags = bytes[5];
        chunk->stream = (uint32_t)little(bytes + 8, 4);
        chunk->epoch = (uint32_t)little(bytes + 12, 4);
        chunk->first_event = little(bytes + 16, 8);
        chunk->events = little(bytes + 24, 8);
        chunk->time = little(bytes + 40, 8);
        chunk->records = (uint32_t)little(bytes + 48, 4);
        chunk->body = bytes + header;
        chunk->end = bytes + chunk_size;
        chunk->counted = 0;
        chunk->site_count = 0;
        chunk->depth = 0;
        read_chunk(ref, chunk);
        bytes += chunk_size;
        size -= (size_t)chunk_size;
    }
    free(chunk);
}
