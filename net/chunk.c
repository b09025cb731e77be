/* SPDX-License-Identifier: Apache-2.0 */
#include "net/chunk.h"

#include "base/assert.h"
#include "net/bytes.h"
#include "net/compact.h"
#include "net/varint.h"

enum {
    AT_ENCODING = 4,
    AT_FLAGS = 5,
    AT_HEADER_SIZE = 6,
    AT_STREAM = 8,
    AT_EPOCH = 12,
    AT_FIRST_EVENT = 16,
    AT_EVENTS = 24,
    AT_LOST = 32,
    AT_TICKS = 40,
    AT_RECORDS = 48,
};
enum {
    FLAGS_KNOWN = MR_CHUNK_FIRST | MR_CHUNK_LAST | MR_CHUNK_SOURCE_END,
    WORD_SIZE = 8
};

void mr_chunk_put_header(const struct mr_chunk *chunk, uint8_t out[MR_CHUNK_HEADER_SIZE])
{
    uint8_t *at = mr_put_u32(out, (uint32_t)(MR_CHUNK_HEADER_SIZE + chunk->body.size));

    MR_DEBUG_ASSERT(chunk->body.size <= UINT32_MAX - MR_CHUNK_HEADER_SIZE);
    at = mr_put_u8(at, chunk->encoding);
    at = mr_put_u8(at, chunk->flags);
    at = mr_put_u16(at, MR_CHUNK_HEADER_SIZE);
    at = mr_put_u32(at, chunk->stream);
    at = mr_put_u32(at, chunk->epoch);
    at = mr_put_u64(at, chunk->first_event);
    at = mr_put_u64(at, chunk->events);
    at = mr_put_u64(at, chunk->lost);
    at = mr_put_u64(at, chunk->ticks);
    at = mr_put_u32(at, chunk->records);
    mr_put_u32(at, 0);
}

static void read_header(const uint8_t *header, struct mr_chunk *chunk)
{
    chunk->encoding = header[AT_ENCODING];
    chunk->flags = header[AT_FLAGS];
    chunk->stream = mr_get_u32(header + AT_STREAM);
    chunk->epoch = mr_get_u32(header + AT_EPOCH);
    chunk->first_event = mr_get_u64(header + AT_FIRST_EVENT);
    chunk->events = mr_get_u64(header + AT_EVENTS);
    chunk->lost = mr_get_u64(header + AT_LOST);
    chunk->ticks = mr_get_u64(header + AT_TICKS);
    chunk->records = mr_get_u32(header + AT_RECORDS);
}

/* The body holds the records that the header tells: exactly for words, at least a byte each for compact ones. */
static bool has_its_records(const struct mr_chunk *chunk)
{
    if (chunk->encoding == MR_CHUNK_WORDS)
        return chunk->body.size == (uint64_t)chunk->records * WORD_SIZE;
    return chunk->encoding == MR_CHUNK_COMPACT && chunk->records <= chunk->body.size &&
           (chunk->records > 0 || chunk->body.size == 0);
}

/* What is wrong with the header, for who wrote the sender; NULL: nothing. */
static const char *fault_of(const struct mr_chunk *chunk)
{
    if (chunk->encoding > MR_CHUNK_COMPACT)
        return "its encoding is not known";
    if (!has_its_records(chunk))
        return "its records do not fill its body";
    if (chunk->flags & ~FLAGS_KNOWN)
        return "it has flags that are not known";
    if (chunk->stream == 0 || chunk->stream > MR_STREAM_LAST)
        return "its stream has no number from 1 to 2^32 - 2";
    if (chunk->first_event > MR_EVENTS_LIMIT ||
        chunk->events > MR_EVENTS_LIMIT - chunk->first_event)
        return "its events have numbers past 2^56";
    if (chunk->lost > chunk->first_event)
        return "more events are lost than there were";
    return chunk->ticks < MR_TICKS_LIMIT ? NULL : "its time is past 2^62";
}

/* The chunk at the front, and how long it is; NULL: it is sound. */
static const char *look(struct mr_span payload, struct mr_chunk *chunk, size_t *size)
{
    size_t header_size;

    if (payload.size < MR_CHUNK_HEADER_SIZE)
        return "its header is cut off";
    *size = mr_get_u32(payload.data);
    header_size = mr_get_u16(payload.data + AT_HEADER_SIZE);
    if (*size > payload.size)
        return "its size is more than what is left of the frame";
    if (header_size < MR_CHUNK_HEADER_SIZE || header_size > *size)
        return "its header_size is less than 56, or more than its size";
    read_header(payload.data, chunk);
    chunk->body = mr_span_of(payload.data + header_size, *size - header_size);
    return fault_of(chunk);
}

const char *mr_chunk_fault(struct mr_span payload)
{
    struct mr_chunk chunk;
    size_t size;
    const char *fault = payload.size ? look(payload, &chunk, &size) : NULL;

    return fault ? fault : "it is sound";
}

enum mr_status mr_chunk_next(struct mr_span *payload, struct mr_chunk *chunk)
{
    size_t size;

    if (payload->size == 0)
        return MR_END;
    if (look(*payload, chunk, &size))
        return MR_EFORMAT;
    (void)mr_span_skip(payload, size);
    return MR_OK;
}

void mr_record_reader_init(struct mr_record_reader *reader, const struct mr_chunk *chunk)
{
    MR_ASSERT(has_its_records(chunk));
    reader->at = chunk->body.data;
    reader->end =
        chunk->body.size ? chunk->body.data + chunk->body.size : chunk->body.data;
    reader->ticks = chunk->ticks;
    reader->left = chunk->records;
    reader->encoding = chunk->encoding;
    reader->site_count = 0;
    reader->stack.depth = 0;
}

/* Whether a record of this kind may have this many payload words; nothing is known of unknown kinds. */
static bool is_well_sized(uint8_t kind, uint8_t words)
{
    static const uint16_t words_of[256] = {
#define X(number, name, count, event) [number] = (count) + 1,
        MR_RECORD_KINDS(X)
#undef X
    };

    if (words_of[kind] == UINT8_MAX + 1)
        return words <= MR_RECORD_WORDS_LIMIT;
    return kind != 0 && (words_of[kind] == 0 || words_of[kind] == words + 1);
}

/*
 * Sets the times of a record; a sync sets its own. False when a time is out of range. Events in words are not checked
 * (mr_record_next_event()): each adds less than 2^31, so that no chunk gets from MR_TICKS_LIMIT to 2^63.
 */
static bool set_time(struct mr_record_reader *reader, struct mr_record *record,
                     int64_t step)
{
    bool is_sync = record->kind == MR_RECORD_SYNC;
    uint64_t to = reader->ticks + (step < 0 ? 0 : (uint64_t)step);

    record->is_inversion = step < 0;
    if (is_sync) {
        to = record->payload[0];
        record->is_inversion = to < reader->ticks;
    }
    if (to >= (is_sync ? MR_TICKS_LIMIT : 2 * MR_TICKS_LIMIT))
        return false;
    if (!record->is_inversion)
        reader->ticks = to;
    record->ticks = reader->ticks;
    return true;
}

static void read_payload(struct mr_record *record, const uint8_t *at)
{
    for (uint32_t i = 0; i < record->words; i++)
        record->payload[i] =
            mr_get_u64(at + (size_t)i * WORD_SIZE) & MR_WORD_PAYLOAD_MASK;
}

static enum mr_status next_word(struct mr_record_reader *reader, struct mr_record *record)
{
    uint64_t word = mr_get_u64(reader->at);
    int32_t step = (int32_t)((uint32_t)word - (uint32_t)reader->ticks);

    MR_DEBUG_ASSERT((size_t)(reader->end - reader->at) ==
                    (size_t)reader->left * WORD_SIZE);
    record->site = mr_word_site(word);
    record->kind = (uint8_t)record->site;
    record->words = (uint8_t)(record->site >> 8);
    record->is_exit = (word & MR_WORD_EXIT) != 0;
    if (!is_well_sized(record->kind, record->words) || record->words >= reader->left)
        return MR_EFORMAT;
    read_payload(record, reader->at + WORD_SIZE);
    reader->at += (size_t)(record->words + 1) * WORD_SIZE;
    reader->left -= record->words + 1u;
    if (!set_time(reader, record, step))
        return MR_EFORMAT;
    return MR_OK;
}

/* What follows is the compact encoding, FORMAT.md section 6.3. */

/* Most are of one byte: asked first, they make 10 ns per record of 11. */
static inline bool take_varint(struct mr_record_reader *reader, uint64_t *value)
{
    struct mr_span rest = mr_span_of(reader->at, (size_t)(reader->end - reader->at));

    if (rest.size && *reader->at < 0x80) {
        *value = *reader->at++;
        return true;
    }
    if (!mr_varint_get(&rest, value))
        return false;
    reader->at = rest.data;
    return true;
}

/* Reads a site number, and the site itself where it is new to the chunk. 0 when it breaks the format. */
static uint16_t take_site(struct mr_record_reader *reader)
{
    uint64_t number, site;

    if (!take_varint(reader, &number) || number > reader->site_count)
        return 0;
    if (number)
        return (uint16_t)number;
    if (!take_varint(reader, &site) || site < MR_SITE_FIRST_NAMED ||
        site >= MR_SITE_LIMIT || reader->site_count == MR_CHUNK_STACK_MAX)
        return 0;
    reader->sites[++reader->site_count] = (uint32_t)site;
    reader->stack.open[reader->site_count] = 0;
    return (uint16_t)reader->site_count;
}

static bool take_top(struct mr_record_reader *reader, struct mr_record *record)
{
    uint16_t number = mr_compact_top(&reader->stack);

    record->site = reader->sites[number];
    mr_compact_leave(&reader->stack, number);
    return number != 0;
}

static bool take_enter_or_exit(struct mr_record_reader *reader, struct mr_record *record)
{
    uint16_t number = take_site(reader);

    if (number == 0)
        return false;
    record->site = reader->sites[number];
    if (record->is_exit)
        mr_compact_leave(&reader->stack, number);
    else
        mr_compact_enter(&reader->stack, number);
    return true;
}

static bool take_other(struct mr_record_reader *reader, struct mr_record *record)
{
    uint64_t head;

    if (!take_varint(reader, &head) || head >> 17)
        return false;
    record->is_exit = head & 1;
    record->words = (uint8_t)(head >> 1);
    record->kind = (uint8_t)(head >> 9);
    record->site = (uint32_t)record->words << 8 | record->kind;
    if (!is_well_sized(record->kind, record->words) ||
        (size_t)(reader->end - reader->at) < (size_t)record->words * WORD_SIZE)
        return false;
    read_payload(record, reader->at);
    reader->at += (size_t)record->words * WORD_SIZE;
    return true;
}

static bool take_rest(struct mr_record_reader *reader, struct mr_record *record,
                      enum mr_compact_record kind)
{
    record->kind = 0;
    record->words = 0;
    record->is_exit = kind == MR_COMPACT_EXIT_TOP || kind == MR_COMPACT_EXIT;
    switch (kind) {
    case MR_COMPACT_EXIT_TOP:
        return reader->stack.depth > 0 && take_top(reader, record);
    case MR_COMPACT_OTHER:
        return take_other(reader, record);
    default:
        return take_enter_or_exit(reader, record);
    }
}

static enum mr_status next_compact(struct mr_record_reader *reader,
                                   struct mr_record *record)
{
    uint64_t head;

    if (!take_varint(reader, &head))
        return MR_EFORMAT;
    if (!take_rest(reader, record, (enum mr_compact_record)(head & 3)) ||
        !set_time(reader, record, (int64_t)(head >> 2)))
        return MR_EFORMAT;
    reader->left--;
    if (reader->left == 0 && reader->at != reader->end)
        return MR_EFORMAT; /* bytes that belong to no record */
    return MR_OK;
}

enum mr_status mr_record_next(struct mr_record_reader *reader, struct mr_record *record)
{
    if (reader->left == 0)
        return MR_END;
    if (reader->encoding == MR_CHUNK_COMPACT)
        return next_compact(reader, record);
    if (mr_record_next_event(reader, record))
        return MR_OK;
    return next_word(reader, record);
}
