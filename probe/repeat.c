/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary once more, for a receiver that lacks what another one acknowledged: a
 * worker that was restarted, or another behind the same address. It goes out of custody
 * (docs/FORMAT.md section 2), before what was not acknowledged is sent again, so it must
 * hold what those frames take for granted:
 *
 *     modules    those of now, and those gone since a frame that is still held
 *     streams    those of now, and those ended in a frame that is still held
 *     sites      all that were named
 *     counters   all
 *     losses     without a stream, as far as they were acknowledged: the receiver
 *                counts from there
 *
 * What is announced in a held frame comes again with it; items are idempotent.
 *
 * field          written by  read by  access
 * ring.state     its thread  we       acquire load [C], pairs with [O] in pool.c
 * ring.name      its thread  we       relaxed: bytes of two names may be mixed, the newer one is announced
 */
#include "probe/writer.h"

#include "base/clock.h"

#include <string.h>

/* The cursor: which part, and how many of it were told. */
enum part { MODULES, GONE, NAMED, COUNTERS, STREAMS, ENDED, LOSSES, SYNC, PARTS };
#define PART_SHIFT 32
/* Of each counter: itself, and why threads went without. */
#define PER_COUNTER (1 + MR_COUNTERS_REASONS_MAX)

/* What one call has told so far. */
struct page {
    struct mr_writer *writer;
    struct mr_dict_writer dict;
    uint32_t told; /* of the part */
};

/* False: the page is full, and the item comes first on the next. */
static bool put(struct page *page, const struct mr_dict_item *item)
{
    if (mr_dict_put(&page->dict, item) != MR_OK)
        return false;
    page->told++;
    return true;
}

/* Passes over an item that need not be told. */
static bool skip(struct page *page)
{
    page->told++;
    return true;
}

static bool put_module(struct page *page, const struct mr_module *module)
{
    struct mr_dict_item item;

    mr_announce_module_item(module, &item);
    return put(page, &item);
}

static bool put_modules(struct page *page)
{
    const struct mr_module_table *modules = &page->writer->modules;
    bool has_room = true;

    while (has_room && page->told < modules->count)
        has_room = put_module(page, &modules->items[page->told]);
    return has_room;
}

static bool put_gone(struct page *page)
{
    const struct mr_writer *writer = page->writer;
    bool has_room = true;

    while (has_room && page->told < MR_WRITER_GONE_MAX) {
        const struct mr_gone_module *gone = &writer->gone[page->told];
        bool is_needed = gone->until_sequence > writer->sender.oldest_sequence;

        has_room = is_needed ? put_module(page, &gone->module) : skip(page);
    }
    return has_room;
}

static bool put_named(struct page *page)
{
    struct mr_named *named = &page->writer->probe->named;
    uint32_t count = mr_named_count(named);
    bool has_room = true;

    while (has_room && page->told < count) {
        const struct mr_named_entry *entry = mr_named_at(named, page->told);
        struct mr_dict_item item;

        if (entry && entry->is_announced) {
            mr_announce_named_item(entry, page->told, &item);
            has_room = put(page, &item);
        } else {
            has_room = skip(page); /* its announcement is in a frame yet to come */
        }
    }
    return has_room;
}

/* Each, then each with every reason why it does not count on some threads. */
static bool put_counters(struct page *page)
{
    const struct mr_counters *counters = &page->writer->probe->counters;
    uint32_t count = counters->count;
    bool has_room = true;

    while (has_room && count > 0 && page->told < PER_COUNTER * count) {
        char text[MR_COUNTER_REASON_SIZE];
        struct mr_dict_item item;

        has_room = mr_counters_item(counters, page->told % count, page->told / count,
                                    text, &item)
                       ? put(page, &item)
                       : skip(page);
    }
    return has_room;
}

static bool put_stream(struct page *page, const struct mr_stream_note *stream)
{
    struct mr_dict_item item = {.kind = MR_DICT_STREAM,
                                .stream = {.stream = stream->stream,
                                           .tid = stream->tid,
                                           .start_site = stream->start_site,
                                           .name = stream->name}};

    return put(page, &item);
}

static void note_stream(const struct mr_writer *writer, const struct mr_ring *ring,
                        struct mr_stream_note *note)
{
    note->stream = ring->stream;
    note->tid = mr_load_relaxed(&ring->tid);
    note->start_site = ring->start_address
                           ? mr_windows_site(&writer->probe->windows, ring->start_address)
                           : 0;
    for (size_t i = 0; i < sizeof(note->name); i++)
        note->name[i] = mr_load_relaxed(&ring->name[i]);
    note->name[sizeof(note->name) - 1] = '\0';
}

/* Rings are only ever added in front, so the list behind a place stays. */
static bool put_streams(struct page *page)
{
    struct mr_writer *writer = page->writer;
    struct mr_stream_note note;

    if (page->told == 0)
        writer->repeat_ring = mr_load_acquire(&writer->probe->pool.rings);
    page->told = 1; /* begun */
    for (; writer->repeat_ring; writer->repeat_ring = writer->repeat_ring->next) {
        const struct mr_ring *ring = writer->repeat_ring;
        uint32_t state = mr_load_acquire(&ring->state); /* [C] */

        if ((state != MR_RING_OWNED && state != MR_RING_CLOSED) || !ring->is_announced)
            continue;
        note_stream(writer, ring, &note);
        if (!put_stream(page, &note))
            return false;
    }
    return true;
}

static bool put_ended(struct page *page)
{
    const struct mr_writer *writer = page->writer;
    bool has_room = true;

    while (has_room && page->told < MR_WRITER_ENDED_MAX) {
        const struct mr_stream_note *note = &writer->ended[page->told];
        bool is_needed = note->sequence >= writer->sender.oldest_sequence;

        has_room = is_needed ? put_stream(page, note) : skip(page);
    }
    return has_room;
}

static bool put_losses(struct page *page)
{
    const uint64_t *acked = page->writer->source_lost_acked;
    bool has_room = true;

    while (has_room && page->told < MR_LOSS_REASON_COUNT) {
        struct mr_dict_item item = {
            .kind = MR_DICT_SOURCE_LOSS,
            .source_loss = {.reason = page->told, .events = acked[page->told]}};

        has_room = acked[page->told] ? put(page, &item) : skip(page);
    }
    return has_room;
}

static bool put_sync(struct page *page)
{
    struct mr_dict_item item;

    if (page->told)
        return true;
    mr_announce_sync_item(page->writer, &item);
    return put(page, &item);
}

static bool put_part(struct page *page, uint64_t part)
{
    switch (part) {
    case MODULES:
        return put_modules(page);
    case GONE:
        return put_gone(page);
    case NAMED:
        return put_named(page);
    case COUNTERS:
        return put_counters(page);
    case STREAMS:
        return put_streams(page);
    case ENDED:
        return put_ended(page);
    case LOSSES:
        return put_losses(page);
    default:
        return put_sync(page);
    }
}

size_t mr_repeat(void *context, uint64_t *cursor, uint8_t *out, size_t capacity)
{
    struct page page = {.writer = context, .told = (uint32_t)*cursor};
    uint64_t part = *cursor >> PART_SHIFT;

    if (part == MODULES && page.told == 0)
        mr_announce_losses_acked(page.writer);
    mr_dict_writer_init(&page.dict, out, capacity);
    while (part < PARTS && put_part(&page, part)) {
        part++;
        page.told = 0;
    }
    *cursor = part << PART_SHIFT | page.told;
    return mr_dict_writer_finish(&page.dict);
}

void mr_repeat_note_gone(struct mr_writer *writer, const struct mr_module *module,
                         uint32_t epoch)
{
    struct mr_gone_module *gone =
        &writer->gone[writer->gone_count++ % MR_WRITER_GONE_MAX];

    gone->module = *module;
    gone->epoch = epoch;
    gone->until_sequence = UINT64_MAX;
    writer->gone_open++;
}

void mr_repeat_note_epoch(struct mr_writer *writer, uint32_t oldest)
{
    uint64_t next = writer->has_sender ? writer->sender.next_sequence : 0;

    writer->gone_open = 0;
    for (uint32_t i = 0; i < MR_WRITER_GONE_MAX && i < writer->gone_count; i++) {
        struct mr_gone_module *gone = &writer->gone[i];

        if (gone->until_sequence == UINT64_MAX && gone->epoch <= oldest)
            gone->until_sequence = next;
        writer->gone_open += gone->until_sequence == UINT64_MAX;
    }
}

void mr_repeat_note_ended(struct mr_writer *writer)
{
    const struct mr_ring *ring = writer->frame.staged;

    for (; ring; ring = ring->staged_next) {
        struct mr_stream_note *note;

        if (!ring->staged.is_last)
            continue;
        note = &writer->ended[writer->ended_count++ % MR_WRITER_ENDED_MAX];
        note_stream(writer, ring, note);
        note->sequence = writer->sender.next_sequence - 1;
    }
}
