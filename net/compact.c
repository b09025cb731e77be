/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words to compact, FORMAT.md section 6.3. In the probe's writer thread: no malloc, no stack to speak of.
 *
 * put_run() is the hot loop: enters of sites that have a number, exits of the site on top. It keeps what changes in
 * registers (through a struct, stores to `out` would make the compiler read it again after every byte), and writes the
 * one or two bytes of nearly every varint without asking which. All else leaves it for one record: put_record().
 */
#include "net/compact.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "net/bytes.h"
#include "net/varint.h"

/*
 * The longest record without its payload: step (below 2^31, but for syncs, which write none), 0, site (below 2^30). A
 * varint of one byte writes two.
 */
enum { RECORD_MAX = 5 + 1 + 5 + 1, WORD_SIZE = 8 };

struct writer {
    struct mr_compact_workspace *work;
    const uint8_t *in; /* words not read yet */
    uint32_t left;
    uint8_t *at, *end;
    uint64_t ticks;
    uint32_t records;
};

/* What the last chunk left: its sites, of which there are few. */
static void workspace_clear(struct mr_compact_workspace *work)
{
    for (uint32_t i = 1; i <= work->site_count; i++)
        work->slots[work->slot_of[i]].site = 0;
    work->site_count = 0;
    work->depth = 0;
}

/* The slot of `site`, or the free one where it would go. There is always one: at most a quarter is taken. */
static inline struct mr_compact_slot *find_slot(struct mr_compact_workspace *work,
                                                uint32_t site)
{
    uint32_t slot =
        site * UINT32_C(0x9e3779b1) >> 18; /* Fibonacci hashing; 14 bits are left */

    static_assert(MR_COMPACT_SLOTS == 1 << 14, "the shift above");
    while (MR_UNLIKELY(work->slots[slot].site != site) && work->slots[slot].site != 0)
        slot = (slot + 1) % MR_COMPACT_SLOTS;
    return &work->slots[slot];
}

/* May write a byte more than the varint has. */
static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    uint64_t is_long = value > 0x7f;

    if (MR_UNLIKELY(value >= 1 << 14))
        return mr_varint_put(at, value);
    (void)mr_put_u16(at,
                     (uint16_t)((value & 0x7f) | is_long << 7 | (value & 0x3f80) << 1));
    return at + 1 + is_long;
}

static inline uint32_t step_to(uint64_t word, uint64_t ticks)
{
    int32_t step = (int32_t)((uint32_t)word - (uint32_t)ticks);

    return step < 0 ? 0 : (uint32_t)step; /* an inversion */
}

/*
 * Stops before the first record that is anything else, or for which there might be no room. calls[0] is no call: no site
 * is 0.
 */
static void put_run(struct writer *writer)
{
    struct mr_compact_workspace *const work = writer->work;
    const uint8_t *in = writer->in, *const in_end = in + (size_t)writer->left * WORD_SIZE;
    uint8_t *at = writer->at;
    uint8_t *const at_end = writer->end - RECORD_MAX;
    uint64_t ticks = writer->ticks;
    uint32_t depth = work->depth;

    for (; in < in_end && at <= at_end; in += WORD_SIZE) {
        uint64_t word = mr_get_u64(in);
        uint64_t head = (uint64_t)step_to(word, ticks) << 2;
        uint32_t site = mr_word_site(word);
        const struct mr_compact_slot *slot;

        if (word & MR_WORD_EXIT) {
            if (work->calls[depth].site != site || depth == 0)
                break;
            at = put_varint(at, head | MR_COMPACT_EXIT_TOP);
            work->open[work->calls[depth--].number]--;
        } else {
            slot = find_slot(work, site);
            if (slot->site != site || site < MR_SITE_FIRST_NAMED ||
                depth == MR_CHUNK_STACK_MAX)
                break;
            at = put_varint(put_varint(at, head | MR_COMPACT_ENTER), slot->number);
            work->open[slot->number]++;
            work->calls[++depth] = *slot;
        }
        ticks += head >> 2;
    }
    writer->records += (uint32_t)((size_t)(in - writer->in) / WORD_SIZE);
    writer->left = (uint32_t)((size_t)(in_end - in) / WORD_SIZE);
    writer->in = in;
    writer->at = at;
    writer->ticks = ticks;
    work->depth = depth;
}

static void put_head(struct writer *writer, uint64_t step, enum mr_compact_record kind)
{
    writer->at = put_varint(writer->at, step << 2 | kind);
    writer->ticks += step;
}

/* Writes the number of `site`, with the site itself where it is new. Its number; 0 when there are too many sites. */
static uint32_t put_site(struct writer *writer, uint32_t site)
{
    struct mr_compact_workspace *work = writer->work;
    struct mr_compact_slot *slot = find_slot(work, site);

    if (slot->site == site) {
        writer->at = put_varint(writer->at, slot->number);
        return slot->number;
    }
    if (work->site_count == MR_CHUNK_STACK_MAX)
        return 0;
    *slot = (struct mr_compact_slot){.site = site, .number = ++work->site_count};
    work->slot_of[slot->number] = (uint16_t)(slot - work->slots);
    work->open[slot->number] = 0;
    writer->at = mr_varint_put(mr_varint_put(writer->at, 0), site);
    return slot->number;
}

static void enter(struct mr_compact_workspace *work, uint32_t site, uint32_t number)
{
    if (work->depth == MR_CHUNK_STACK_MAX)
        return;
    work->calls[++work->depth] = (struct mr_compact_slot){.site = site, .number = number};
    work->open[number]++;
}

/* As mr_compact_leave(). */
static void leave(struct mr_compact_workspace *work, uint32_t number)
{
    uint32_t top;

    if (work->open[number] == 0)
        return;
    do {
        top = work->calls[work->depth--].number;
        work->open[top]--;
    } while (top != number);
}

/* An enter or exit that put_run() left. */
static bool put_call(struct writer *writer, uint64_t word)
{
    struct mr_compact_workspace *work = writer->work;
    uint32_t site = mr_word_site(word), number;
    bool is_exit = (word & MR_WORD_EXIT) != 0;

    MR_DEBUG_ASSERT(!is_exit || work->depth == 0 ||
                    work->calls[work->depth].site != site);
    put_head(writer, step_to(word, writer->ticks),
             is_exit ? MR_COMPACT_EXIT : MR_COMPACT_ENTER);
    number = put_site(writer, site);
    if (number == 0)
        return false;
    if (is_exit)
        leave(work, number);
    else
        enter(work, site, number);
    writer->in += WORD_SIZE;
    writer->left--;
    return true;
}

/* A record of another kind, by the reader of words. The step of a sync is 0: its payload tells the time. */
static bool put_other(struct writer *writer)
{
    struct mr_record_reader *reader = &writer->work->reader;
    struct mr_record *record = &writer->work->record;
    struct mr_chunk rest = {
        .encoding = MR_CHUNK_WORDS, .ticks = writer->ticks, .records = writer->left};
    uint64_t step;

    rest.body = mr_span_of(writer->in, (size_t)writer->left * WORD_SIZE);
    mr_record_reader_init(reader, &rest);
    if (mr_record_next(reader, record) != MR_OK)
        return false;
    step = record->kind == MR_RECORD_SYNC ? 0 : record->ticks - writer->ticks;
    put_head(writer, step, MR_COMPACT_OTHER);
    writer->ticks = record->ticks;
    writer->at =
        mr_varint_put(writer->at, (uint64_t)record->kind << 9 |
                                      (uint64_t)record->words << 1 | record->is_exit);
    if ((size_t)(writer->end - writer->at) < (size_t)record->words * WORD_SIZE)
        return false;
    for (uint32_t i = 0; i < record->words; i++)
        writer->at = mr_put_u64(writer->at, record->payload[i]);
    writer->in = reader->at;
    writer->left = reader->left;
    return true;
}

static bool put_record(struct writer *writer)
{
    uint64_t word = mr_get_u64(writer->in);

    if (writer->end - writer->at < RECORD_MAX)
        return false;
    writer->records++;
    if (mr_word_site(word) < MR_SITE_FIRST_NAMED)
        return put_other(writer);
    return put_call(writer, word);
}

size_t mr_chunk_compact(const struct mr_chunk *words,
                        struct mr_compact_workspace *workspace, uint8_t *out,
                        size_t capacity, uint32_t *records)
{
    struct writer writer = {.work = workspace,
                            .in = words->body.data,
                            .left = words->records,
                            .at = out,
                            .end = out + capacity,
                            .ticks = words->ticks};

    MR_DEBUG_ASSERT(words->encoding == MR_CHUNK_WORDS);
    MR_DEBUG_ASSERT(words->body.size == (size_t)words->records * WORD_SIZE);
    if (capacity < RECORD_MAX)
        return 0;
    workspace_clear(workspace);
    while (writer.left > 0) {
        put_run(&writer);
        if (writer.left > 0 && !put_record(&writer))
            return 0;
    }
    *records = writer.records;
    return (size_t)(writer.at - out);
}
