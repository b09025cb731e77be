/* SPDX-License-Identifier: Apache-2.0 */
/* Words to compact, FORMAT.md section 6.3. In the probe's writer thread: no malloc, and about 10 ns per record. */
#include "net/compact.h"

#include "base/assert.h"
#include "net/bytes.h"
#include "net/varint.h"

/*
 * The longest record without its payload: step (below 2^31, but for syncs, which write none), 0, site (below 2^30).
 */
enum { RECORD_MAX = 5 + 1 + 5 };

struct writer {
    struct mr_compact_workspace *work;
    uint8_t *at, *end;
    uint64_t ticks;
};

static void workspace_clear(struct mr_compact_workspace *work)
{
    work->stack.depth = 0;
    work->site_count = 0;
    memset(work->slots, 0, sizeof(work->slots));
}

/* The slot of `site`, or the free one where it would go. There is always one: at most a quarter is taken. */
static uint32_t find_slot(const struct mr_compact_workspace *work, uint32_t site)
{
    uint32_t slot =
        site * UINT32_C(0x9e3779b1) >> 18; /* Fibonacci hashing; 14 bits are left */

    static_assert(MR_COMPACT_SLOTS == 1 << 14, "the shift above");
    while (work->slots[slot] != 0 && work->slots[slot] != site)
        slot = (slot + 1) % MR_COMPACT_SLOTS;
    return slot;
}

/* Writes the number of `site`, with the site itself where it is new. Its number; 0 when there are too many sites. */
static uint16_t put_site(struct writer *writer, uint32_t site)
{
    struct mr_compact_workspace *work = writer->work;
    uint32_t slot = find_slot(work, site);

    if (work->slots[slot] == site) {
        writer->at = mr_varint_put(writer->at, work->numbers[slot]);
        return work->numbers[slot];
    }
    if (work->site_count == MR_CHUNK_STACK_MAX)
        return 0;
    work->slots[slot] = site;
    work->numbers[slot] = (uint16_t)++work->site_count;
    work->stack.open[work->site_count] = 0;
    writer->at = mr_varint_put(mr_varint_put(writer->at, 0), site);
    return work->numbers[slot];
}

static void put_head(struct writer *writer, uint64_t ticks, enum mr_compact_record kind)
{
    writer->at = mr_varint_put(writer->at, (ticks - writer->ticks) << 2 | kind);
    writer->ticks = ticks;
}

static bool put_enter(struct writer *writer, const struct mr_record *record)
{
    uint16_t number;

    put_head(writer, record->ticks, MR_COMPACT_ENTER);
    number = put_site(writer, record->site);
    if (number == 0)
        return false;
    mr_compact_enter(&writer->work->stack, number);
    return true;
}

static bool put_exit(struct writer *writer, const struct mr_record *record)
{
    struct mr_compact_workspace *work = writer->work;
    uint32_t slot = find_slot(work, record->site);
    uint16_t number = work->slots[slot] ? work->numbers[slot] : 0;

    if (number && number == mr_compact_top(&work->stack)) {
        put_head(writer, record->ticks, MR_COMPACT_EXIT_TOP);
    } else {
        put_head(writer, record->ticks, MR_COMPACT_EXIT);
        number = put_site(writer, record->site);
    }
    if (number == 0)
        return false;
    mr_compact_leave(&work->stack, number);
    return true;
}

/* The step of a sync is 0: its payload tells the time. */
static bool put_other(struct writer *writer, const struct mr_record *record)
{
    bool is_sync = record->kind == MR_RECORD_SYNC;

    put_head(writer, is_sync ? writer->ticks : record->ticks, MR_COMPACT_OTHER);
    writer->ticks = record->ticks;
    writer->at =
        mr_varint_put(writer->at, (uint64_t)record->kind << 9 |
                                      (uint64_t)record->words << 1 | record->is_exit);
    if ((size_t)(writer->end - writer->at) < (size_t)record->words * 8)
        return false;
    for (uint32_t i = 0; i < record->words; i++)
        writer->at = mr_put_u64(writer->at, record->payload[i]);
    return true;
}

static bool put_record(struct writer *writer, const struct mr_record *record)
{
    if (writer->end - writer->at < RECORD_MAX)
        return false;
    if (record->kind)
        return put_other(writer, record);
    return record->is_exit ? put_exit(writer, record) : put_enter(writer, record);
}

/* A reader of words: the compact part of struct mr_record_reader, 40 KiB of it, stays untouched. */
static enum mr_status compact_all(struct writer *writer, struct mr_record_reader *reader,
                                  uint32_t *records)
{
    struct mr_record record;
    enum mr_status status;

    while ((status = mr_record_next(reader, &record)) == MR_OK) {
        if (!put_record(writer, &record))
            return MR_ELIMIT;
        ++*records;
    }
    return status;
}

size_t mr_chunk_compact(const struct mr_chunk *words,
                        struct mr_compact_workspace *workspace, uint8_t *out,
                        size_t capacity, uint32_t *records)
{
    struct writer writer = {workspace, out, out + capacity, words->ticks};
    struct mr_record_reader reader;

    MR_DEBUG_ASSERT(words->encoding == MR_CHUNK_WORDS);
    workspace_clear(workspace);
    mr_record_reader_init(&reader, words);
    *records = 0;
    if (compact_all(&writer, &reader, records) != MR_END)
        return 0;
    return (size_t)(writer.at - out);
}
