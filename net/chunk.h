/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks: a run of events of one stream (docs/FORMAT.md section 6).
 *
 * A reader walks records one at a time in constant memory; it allocates nothing and trusts nothing. All functions may be
 * called from any thread on different objects. Bytes given to a reader are borrowed until it is done.
 *
 *     struct mr_chunk chunk;
 *     while ((status = mr_chunk_next(&payload, &chunk)) == MR_OK) {     // CHUNKS payload, chunk by chunk
 *         struct mr_record_reader reader;
 *         mr_record_reader_init(&reader, &chunk);
 *         while ((status = mr_record_next(&reader, &record)) == MR_OK)
 *             use(record.kind, record.site, record.ticks);
 *     }
 *     // status is MR_END, or MR_EFORMAT where bytes break the format
 */
#ifndef MR_NET_CHUNK_H
#define MR_NET_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/span.h"
#include "base/status.h"
#include "net/wire.h"

#define MR_CHUNK_HEADER_SIZE 56
#define MR_CHUNK_STACK_MAX 4096

enum mr_chunk_encoding { MR_CHUNK_WORDS = 0, MR_CHUNK_COMPACT = 1 };

enum mr_chunk_flag {
    MR_CHUNK_FIRST = 1,      /* first chunk of its stream */
    MR_CHUNK_LAST = 2,       /* the thread ended: last chunk of its stream */
    MR_CHUNK_SOURCE_END = 4, /* the source ends with this chunk */
};

struct mr_chunk {
    uint8_t encoding;     /* enum mr_chunk_encoding */
    uint8_t flags;        /* enum mr_chunk_flag, ored */
    uint32_t stream;      /* from 1 */
    uint32_t epoch;       /* module-table epoch */
    uint64_t first_event; /* number of its first event, from 0 */
    uint64_t events;      /* events in it, lost ones told by its loss records included */
    uint64_t lost;        /* lost on this stream before first_event, cumulative */
    uint64_t ticks;       /* full time just before the first record */
    uint32_t records;     /* words, or records for the compact encoding */
    struct mr_span body;  /* borrowed */
};

/* Writes the 56 header bytes of `chunk` (body.size gives its size) to `out`. */
void mr_chunk_put_header(const struct mr_chunk *chunk, uint8_t out[MR_CHUNK_HEADER_SIZE]);

/*
 * Takes the next chunk off the front of `payload`. MR_OK, MR_END when nothing is left, MR_EFORMAT when the header or a
 * size is wrong (payload is then left at the place of the fault).
 */
enum mr_status mr_chunk_next(struct mr_span *payload, struct mr_chunk *chunk);
/* In words, why the chunk at the front of what mr_chunk_next() left is refused. */
const char *mr_chunk_fault(struct mr_span payload);

#define MR_RECORD_WORDS_MAX 255

struct mr_record {
    uint32_t
        site; /* >= MR_SITE_FIRST_NAMED: an enter or exit of this site; else see kind */
    uint8_t
        kind; /* 0: enter or exit; else enum mr_record_kind (unknown kinds are handed on) */
    bool is_exit;      /* dir */
    bool is_inversion; /* its time lay before the record before it, and was clamped */
    uint8_t words;     /* payload words */
    uint64_t
        ticks; /* full time, never below that of the record before; for SYNC the time it sets */
    uint64_t payload[MR_RECORD_WORDS_MAX]; /* 63 bits each */
};

/* The sites of a compact chunk by number, from 1, and its stack of numbers (FORMAT.md section 6.3). */
struct mr_compact_stack {
    uint32_t depth;
    uint16_t numbers[MR_CHUNK_STACK_MAX];
    uint16_t open[MR_CHUNK_STACK_MAX + 1]; /* by number: how often it is on the stack */
};

struct mr_record_reader {
    const uint8_t *at, *end; /* what is left of the body */
    uint64_t ticks;
    uint32_t left; /* words (encoding 0) or records (encoding 1) still to read */
    uint8_t encoding;
    /* Compact only; entries above site_count and depth are not set. */
    uint32_t site_count;
    uint32_t sites[MR_CHUNK_STACK_MAX + 1];
    struct mr_compact_stack stack;
};

/* `chunk` comes from mr_chunk_next(); only its body must stay. */
void mr_record_reader_init(struct mr_record_reader *reader, const struct mr_chunk *chunk);

/* MR_OK and one record, MR_END, or MR_EFORMAT. Only the first `words` of payload are set. */
enum mr_status mr_record_next(struct mr_record_reader *reader, struct mr_record *record);

/*
 * The hot path: true, and all of `record` but its payload, when the next record is an enter or exit in words; false (and
 * nothing happened) when it is anything else: then mr_record_next().
 *
 *     for (;;) {
 *         if (!mr_record_next_event(&reader, &record) &&
 *             (status = mr_record_next(&reader, &record)) != MR_OK)
 *             break;
 *         ...
 *     }
 */
static inline bool mr_record_next_event(struct mr_record_reader *reader,
                                        struct mr_record *record)
{
    uint64_t word;
    int32_t step;

    if (reader->encoding != MR_CHUNK_WORDS || reader->left == 0)
        return false;
    memcpy(&word, reader->at, sizeof(word));
    record->site = mr_word_site(word);
    if (record->site < MR_SITE_FIRST_NAMED)
        return false;
    step = (int32_t)((uint32_t)word - (uint32_t)reader->ticks);
    record->is_inversion = step < 0;
    reader->ticks += step < 0 ? 0 : (uint32_t)step;
    record->ticks = reader->ticks;
    record->kind = 0;
    record->words = 0;
    record->is_exit = (word & MR_WORD_EXIT) != 0;
    reader->at += sizeof(word);
    reader->left--;
    return true;
}

/*
 * The same for compact chunks, many at a time: up to `capacity` enters and exits; how many. Fewer, or none, where another
 * record, an unusual or the last one comes: then mr_record_next(). Steps of it add less than 2^12 each.
 */
struct mr_record_event {
    uint64_t ticks;
    uint32_t site, is_exit;
};
uint32_t mr_record_next_run(struct mr_record_reader *reader, struct mr_record_event *out,
                            uint32_t capacity);

/*
 * Re-encodes the body of a words chunk as compact into out[capacity]. Returns the size, or 0 when it would not fit (a few
 * bytes of room may be left over), the chunk has no records, has more than MR_CHUNK_STACK_MAX distinct sites, or breaks the
 * format (send it as words then). *records is the number of records. An inversion becomes a step of 0. All but `encoding`,
 * `records` and `body` of the chunk stays as it was. `workspace` is scratch of the caller: zeroed before its first use, its
 * own from then on. No allocation is made. Cost: docs/why/2026-11-20-wire.md.
 */
#define MR_COMPACT_SLOTS (4 * MR_CHUNK_STACK_MAX)

struct mr_compact_slot {
    uint32_t site, number; /* site 0: free */
};

struct mr_compact_workspace {
    uint32_t site_count, depth;
    struct mr_compact_slot calls[MR_CHUNK_STACK_MAX + 1]; /* the stack, from 1 */
    uint16_t open[MR_CHUNK_STACK_MAX + 1]; /* by number: how often it is on the stack */
    uint16_t slot_of[MR_CHUNK_STACK_MAX + 1];       /* by number */
    struct mr_compact_slot slots[MR_COMPACT_SLOTS]; /* open addressing */
    struct mr_record_reader reader;                 /* for what is no enter or exit */
    struct mr_record record;
};
size_t mr_chunk_compact(const struct mr_chunk *words,
                        struct mr_compact_workspace *workspace, uint8_t *out,
                        size_t capacity, uint32_t *records);

#endif
