/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary that goes before the chunks that need it: modules, streams, named
 * sites, times, losses without a stream (docs/FORMAT.md section 5).
 *
 * field         written by  read by  access
 * ready_count   any thread  we       acquire load [C], pairs with [P] in named.c
 * ring.state    its thread  we       acquire load [C], pairs with [O] in pool.c
 * name_version  its thread  we       acquire load [C], pairs with [P] in thread.c
 */
#include "probe/writer.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool dict_open(struct mr_writer *writer)
{
    uint8_t *payload = mr_writer_reserve(writer);

    if (!payload)
        return false;
    mr_dict_writer_init(&writer->dict, payload, MR_WRITER_FRAME);
    writer->is_dict_open = true;
    return true;
}

static void dict_close(struct mr_writer *writer)
{
    size_t size = writer->is_dict_open ? mr_dict_writer_finish(&writer->dict) : 0;

    writer->is_dict_open = false;
    if (size > 0)
        mr_writer_commit(writer, MR_FRAME_DICT, 0, size, 0);
}

/* False: the outbox is full, and the item is to be put again. */
bool mr_announce_put(struct mr_writer *writer, const struct mr_dict_item *item)
{
    if (!writer->is_dict_open && !dict_open(writer))
        return false;
    if (mr_dict_put(&writer->dict, item) == MR_OK)
        return true;
    dict_close(writer);
    return dict_open(writer) && mr_dict_put(&writer->dict, item) == MR_OK;
}

static bool put(struct mr_writer *writer, const struct mr_dict_item *item)
{
    return mr_announce_put(writer, item);
}

void mr_announce_named_item(const struct mr_named_entry *entry, uint32_t index,
                            struct mr_dict_item *item)
{
    *item = (struct mr_dict_item){.kind = MR_DICT_NAMED_SITE,
                                  .named_site = {.site = MR_SITE_FIRST_NAMED + index,
                                                 .line = entry->line,
                                                 .flags = entry->flags,
                                                 .name = entry->name,
                                                 .file = entry->file}};
}

static bool put_named_entry(struct mr_writer *writer, uint32_t index,
                            struct mr_named_entry *entry)
{
    struct mr_dict_item item;

    mr_announce_named_item(entry, index, &item);
    if (!put(writer, &item))
        return false;
    entry->is_announced = 1;
    writer->named_announced++;
    return true;
}

/* Entries become ready in any order; named_first is behind the ones told without a gap. */
static bool put_named(struct mr_writer *writer)
{
    struct mr_named *named = &writer->probe->named;
    uint32_t count = mr_named_count(named);

    if (!mr_announce_is_stale(writer))
        return true;
    for (uint32_t i = writer->named_first; i < count; i++) {
        struct mr_named_entry *entry = mr_named_at(named, i);

        if (entry && !entry->is_announced && !put_named_entry(writer, i, entry))
            return false;
        if (entry && i == writer->named_first)
            writer->named_first++;
    }
    return true;
}

static bool put_stream(struct mr_writer *writer, struct mr_ring *ring)
{
    uint32_t version = mr_load_acquire(&ring->name_version); /* [C] */
    char name[MR_RING_NAME_SIZE];
    struct mr_dict_item item = {
        .kind = MR_DICT_STREAM,
        .stream = {.stream = ring->stream,
                   .tid = mr_load_relaxed(&ring->tid),
                   .start_site =
                       ring->start_address
                           ? mr_windows_site(&writer->probe->windows, ring->start_address)
                           : 0,
                   .name = name}};

    /* Relaxed: bytes of a newer name may be among them; its version comes again. */
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = mr_load_relaxed(&ring->name[i]);
    name[sizeof(name) - 1] = '\0';
    if (!put(writer, &item))
        return false;
    ring->announced_name = version;
    ring->is_announced = true;
    return true;
}

/* Before streams: which counters a stream has is known when it begins. */
static bool put_counters(struct mr_writer *writer)
{
    const struct mr_counters *counters = &writer->probe->counters;
    char text[MR_COUNTER_REASON_SIZE];
    struct mr_dict_item item;

    for (; writer->counters_announced < counters->count; writer->counters_announced++)
        if (mr_counters_item(counters, writer->counters_announced, 0, text, &item) &&
            !put(writer, &item))
            return false;
    while (writer->refusals_announced < MR_COUNTERS_REASONS_MAX &&
           mr_load_relaxed(&counters->refused[writer->refusals_announced]) != 0) {
        for (uint32_t i = 0; i < counters->present; i++)
            if (mr_counters_item(counters, i, writer->refusals_announced + 1, text,
                                 &item) &&
                !put(writer, &item))
                return false;
        writer->refusals_announced++;
    }
    return true;
}

static bool put_streams(struct mr_writer *writer)
{
    struct mr_ring *ring = mr_load_acquire(&writer->probe->pool.rings);

    for (; ring; ring = ring->next) {
        uint32_t state = mr_load_acquire(&ring->state); /* [C] */

        if (state != MR_RING_OWNED && state != MR_RING_CLOSED)
            continue;
        if (ring->is_announced &&
            ring->announced_name == mr_load_relaxed(&ring->name_version))
            continue;
        if (!put_stream(writer, ring))
            return false;
    }
    return true;
}

bool mr_announce_losses_acked(struct mr_writer *writer)
{
    if (writer->has_sender &&
        writer->sender.oldest_sequence <= writer->source_lost_sequence)
        return false;
    memcpy(writer->source_lost_acked, writer->source_lost, sizeof(writer->source_lost));
    return true;
}

/*
 * Cumulative, so whoever reads it takes the last. One telling is on its way at a time: we
 * always know what was acknowledged. But for the end of the program, which does not wait.
 */
static bool put_source_losses(struct mr_writer *writer)
{
    if (!mr_announce_losses_acked(writer) &&
        !mr_load_relaxed(&writer->probe->stop_wanted)) /* its order counts in writer.c */
        return true;
    for (uint32_t reason = 0; reason < MR_LOSS_REASON_COUNT; reason++) {
        uint64_t events = mr_probe_source_lost(writer->probe, reason);
        struct mr_dict_item item = {.kind = MR_DICT_SOURCE_LOSS,
                                    .source_loss = {.reason = reason, .events = events}};

        if (events == writer->source_lost[reason])
            continue;
        if (!put(writer, &item))
            return false;
        writer->source_lost[reason] = events;
        writer->source_lost_sequence =
            writer->sender.next_sequence; /* not committed yet */
    }
    return true;
}

void mr_announce_sync_item(const struct mr_writer *writer, struct mr_dict_item *item)
{
    struct mr_clock_sample sample;

    mr_clock_sample(writer->probe->clock.mode, &sample);
    *item = (struct mr_dict_item){.kind = MR_DICT_SYNC,
                                  .sync = {.ticks = sample.real_ticks,
                                           .realtime_ns = sample.real_ns,
                                           .error_ticks = sample.error_ticks}};
}

/* How far apart the ticks of clock hybrid are: the error of its times. */
static bool put_ticker(struct mr_writer *writer)
{
    const struct mr_ticker *ticker = &writer->probe->ticker;
    struct mr_dict_item item = {.kind = MR_DICT_TICKER,
                                .ticker = {.ticks = mr_tick_count(ticker),
                                           .gap_p99_ticks = mr_tick_gap(ticker, 990000),
                                           .gap_max_ticks = mr_tick_gap_max(ticker),
                                           .cpu_ns = mr_load_relaxed(&ticker->cpu_ns)}};

    return item.ticker.ticks == 0 || put(writer, &item);
}

/* Notes about this source: totals, so that the last one holds. */
static bool put_depth_note(struct mr_writer *writer, enum mr_note key, uint64_t value)
{
    char text[24];
    struct mr_dict_item item = {.kind = MR_DICT_NOTE,
                                .note = {.key = mr_note_name(key), .value = text}};

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return put(writer, &item);
}

/* Each second while connected, and what there is at the end, connected or not yet. */
static bool put_depth(struct mr_writer *writer, uint64_t now_ns)
{
    const struct mr_depth *depth = &writer->probe->depth;
    bool is_end = mr_load_relaxed(&writer->probe->stop_wanted);
    uint64_t skipped;

    if (depth->limit == 0 || (!is_end && (now_ns < writer->depth_at_ns ||
                                          writer->sender.state != MR_SENDER_OPEN)))
        return true;
    skipped = mr_depth_skipped(depth);
    if (is_end && writer->depth_told == skipped + 1)
        return true;
    if (!put_depth_note(writer, MR_NOTE_DEPTH_LIMIT, depth->limit) ||
        !put_depth_note(writer, MR_NOTE_DEPTH_SKIPPED, skipped))
        return false;
    writer->depth_told = skipped + 1;
    writer->depth_at_ns = now_ns + MR_SECOND_NS;
    return true;
}

/* While connected only: without a receiver they would fill the outbox. */
static bool put_sync(struct mr_writer *writer, uint64_t now_ns)
{
    struct mr_dict_item item;

    if (now_ns < writer->sync_at_ns || writer->sender.state != MR_SENDER_OPEN)
        return true;
    mr_announce_sync_item(writer, &item);
    if (!put(writer, &item) || !put_ticker(writer))
        return false;
    writer->sync_at_ns = now_ns + MR_SECOND_NS;
    return true;
}

/*
 * How what follows is written, and what was: to every receiver, and when it changes. At the end whether there is one yet or
 * not: a program may be over before it is welcomed, and says then how many events there were, too.
 */
static bool put_link(struct mr_writer *writer)
{
    bool is_end = mr_load_relaxed(&writer->probe->stop_wanted);
    struct mr_dict_item item = {.kind = MR_DICT_LINK,
                                .link = {.encoding = (uint32_t)writer->choice.level,
                                         .reason = (uint32_t)writer->choice.reason,
                                         .events = writer->events,
                                         .bytes = writer->encoded_bytes}};

    if (writer->is_link_told || (!is_end && writer->sender.state != MR_SENDER_OPEN))
        return true;
    writer->is_link_told = put(writer, &item);
    if (writer->is_link_told)
        writer->link_events = writer->events;
    return writer->is_link_told;
}

bool mr_announce_is_stale(const struct mr_writer *writer)
{
    /* [C] pairs with [P] in mr_named_add(). */
    return mr_load_acquire(&writer->probe->named.ready_count) != writer->named_announced;
}

bool mr_announce(struct mr_writer *writer, uint64_t now_ns)
{
    bool is_done = mr_announce_modules(writer) && put_named(writer) &&
                   put_counters(writer) && put_streams(writer) &&
                   put_source_losses(writer) && put_sync(writer, now_ns) &&
                   put_depth(writer, now_ns) && mr_announce_pruned(writer, now_ns) &&
                   put_link(writer);

    dict_close(writer);
    return is_done;
}
