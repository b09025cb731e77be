/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks to events. The hot loops are in decode_run.c; what is no enter or exit leaves them. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "net/delta.h"
#include "pipeline/filters/decode_private.h"

/* A step within a chunk is below 2^31 ticks, so a run of words of one batch stays below this. */
#define RUN_TICKS ((uint64_t)MR_BATCH_EVENTS_MAX << 31)
#define SAFE_TICKS                                                                       \
    (UINT64_C(1) << 50) /* how far ahead times are checked: 4 days at 3 GHz */
#define UNWIND_UNKNOWN (UINT64_C(1) << 62)

static enum mr_status add_loss(struct mr_batch *batch, const struct mr_loss *loss)
{
    if (batch->loss_count == batch->loss_capacity) {
        uint32_t capacity = batch->loss_capacity ? 2 * batch->loss_capacity : 16;
        struct mr_loss *grown = realloc(batch->losses, capacity * sizeof(*grown));

        if (!grown)
            return MR_ENOMEM;
        batch->losses = grown;
        batch->loss_capacity = capacity;
    }
    batch->losses[batch->loss_count++] = *loss;
    return MR_OK;
}

static enum mr_status lose(struct mr_decode *decode, uint64_t ticks,
                           const struct mr_loss *loss)
{
    struct mr_event event = {.ns = mr_ticks_ns(&decode->source->ticks, ticks),
                             .kind = MR_EVENT_LOSS};
    enum mr_status status = mr_decode_reserve(decode, decode->stream);

    if (status != MR_OK)
        return status;
    event.site = decode->out->loss_count;
    status = add_loss(decode->out, loss);
    return status == MR_OK ? mr_decode_add(decode, decode->stream, &event) : status;
}

/* `events` of which nobody knows how they nested. */
static enum mr_status lose_blindly(struct mr_decode *decode, uint64_t events,
                                   uint8_t reason)
{
    struct mr_loss loss = {.events = events,
                           .pops = MR_LOSS_NESTING_UNKNOWN,
                           .pushes = MR_LOSS_NESTING_UNKNOWN,
                           .reason = reason};

    return lose(decode, decode->reader.ticks, &loss);
}

/* Whether times from `ticks` to SAFE_TICKS later are of this era, and near enough to now. */
static bool check_clock(struct mr_decode *decode, uint64_t ticks)
{
    const struct mr_clock_info *clock = &decode->source->info.clock;
    uint64_t limit = decode->config->clock_limit_ns, ns, now;

    decode->is_clock_off = true;
    if (!mr_ticks_fit(clock, ticks) || !mr_ticks_fit(clock, ticks + SAFE_TICKS))
        return false;
    decode->safe_ticks = ticks + SAFE_TICKS;
    ns = mr_ticks_ns(&decode->source->ticks, ticks) +
         (uint64_t)decode->source->drift.shift_ns;
    now = limit ? mr_clock_realtime_ns() : ns;
    decode->is_clock_off = (ns > now ? ns - now : now - ns) > limit;
    return !decode->is_clock_off;
}

static enum mr_status put_event(struct mr_decode *decode, uint16_t kind, uint32_t site)
{
    struct mr_event event = {
        .ns = mr_ticks_ns(&decode->source->ticks, decode->reader.ticks),
        .site = site,
        .kind = kind};

    decode->counted++;
    return mr_decode_add(decode, decode->stream, &event);
}

static enum mr_status put_call(struct mr_decode *decode, uint32_t site)
{
    decode->unknown_sites += site == MR_SITE_UNKNOWN;
    return put_event(decode, decode->record.is_exit ? MR_EVENT_EXIT : MR_EVENT_ENTER,
                     site);
}

static uint32_t find_site(struct mr_decode *decode, uint32_t wire)
{
    uint64_t slot = mr_site_map_find(&decode->source->map, wire);

    return slot == MR_SITE_MAP_NONE
               ? mr_source_resolve(decode->source, decode->sites, decode->epoch, wire)
               : (uint32_t)slot;
}

static enum mr_status put_site(struct mr_decode *decode)
{
    return put_call(decode, find_site(decode, decode->record.site));
}

static enum mr_status put_loss(struct mr_decode *decode)
{
    const uint64_t *payload = decode->record.payload;
    struct mr_loss loss = {.events = payload[0] & ((UINT64_C(1) << 48) - 1),
                           .pops = (uint32_t)payload[1] & INT32_MAX,
                           .pushes = (uint32_t)(payload[1] >> 31) & INT32_MAX,
                           .reason = (uint8_t)(payload[0] >> 48)};

    if (loss.reason == 0 || loss.reason >= MR_LOSS_REASON_COUNT)
        loss.reason = MR_LOSS_FORMAT; /* of a later version */
    decode->counted += loss.events;
    return lose(decode, decode->reader.ticks, &loss);
}

static enum mr_status put_status(struct mr_decode *decode)
{
    return put_event(decode, MR_EVENT_STATUS, (decode->record.payload[0] & 0xff) != 0);
}

static enum mr_status put_unwind(struct mr_decode *decode)
{
    uint64_t depth = decode->record.payload[0];

    return put_event(decode, MR_EVENT_UNWIND,
                     depth < UINT32_MAX ? (uint32_t)depth : UINT32_MAX);
}

/* A function of a landing: 0 where nothing that is open can be of it. */
static enum mr_status put_frame(struct mr_decode *decode, uint64_t word, uint16_t kind,
                                uint16_t flags)
{
    uint64_t address = word & ((UINT64_C(1) << MR_LANDING_TAG_SHIFT) - 1);
    uint64_t tag = word >> MR_LANDING_TAG_SHIFT & MR_LANDING_TAG_MASK;
    struct mr_event event = {
        .ns = mr_ticks_ns(&decode->source->ticks, decode->reader.ticks),
        .site =
            mr_source_find_address(decode->source, decode->sites, decode->epoch, address),
        .kind = kind,
        .flags = (uint16_t)(flags | tag)};

    if (event.site == MR_SITE_UNKNOWN && !(flags & MR_LANDED_FIRST))
        return MR_OK;
    return mr_decode_add(decode, decode->stream, &event);
}

static enum mr_status put_landing(struct mr_decode *decode)
{
    const uint64_t *payload = decode->record.payload;
    uint32_t left = decode->record.words > 0 ? payload[0] & MR_LANDING_LEFT_MASK : 0;
    enum mr_status status = MR_OK;

    for (uint32_t i = 1; i < decode->record.words && status == MR_OK; i++) {
        bool is_left = i <= left;
        uint16_t flags = i == left + 1 ? MR_LANDED_FIRST : 0;

        if (!is_left && payload[i] & MR_LANDING_ABOVE)
            flags |= MR_LANDED_ABOVE;
        status = put_frame(decode, payload[i], is_left ? MR_EVENT_LEFT : MR_EVENT_LANDED,
                           flags);
    }
    return status;
}

/* Counters at the enter or exit before the record: that event has gone into the batch as whatever it is. */
static enum mr_status put_values(struct mr_decode *decode)
{
    uint32_t known = decode->source->counter_count;
    enum mr_status status = MR_OK;

    if (decode->record.words > known)
        mr_counters_add(&decode->counters, MR_DECODE_UNKNOWN_VALUES,
                        decode->record.words - known);
    for (uint32_t i = 0; i < decode->record.words && i < known && status == MR_OK; i++) {
        struct mr_event event = {
            .ns = decode->record.payload[i], .site = i, .kind = MR_EVENT_VALUE};

        status = mr_decode_add(decode, decode->stream, &event);
    }
    return status;
}

/* A word of the link that follows; no event of its own. */
static enum mr_status put_word(struct mr_decode *decode, uint32_t place, uint64_t word)
{
    struct mr_event event = {.ns = word, .site = place, .kind = MR_EVENT_WORD};

    return mr_decode_add(decode, decode->stream, &event);
}

/* Send, receive: FORMAT.md section 6.2. */
static enum mr_status put_message(struct mr_decode *decode, enum mr_link_kind kind)
{
    const uint64_t *payload = decode->record.payload;
    const uint64_t low = (UINT64_C(1) << 62) - 1;
    uint64_t words[MR_LINK_WORDS] = {
        payload[2] << 60 | (payload[1] & low) >> 2, payload[1] << 62 | (payload[0] & low),
        (payload[2] >> 4 & ((UINT64_C(1) << 58) - 1)) | payload[3] << 58};
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < MR_LINK_WORDS && status == MR_OK; i++)
        status = put_word(decode, i, words[i]);
    return status == MR_OK ? put_event(decode, MR_EVENT_LINK, kind) : status;
}

static enum mr_status put_hand_off(struct mr_decode *decode, enum mr_link_kind kind)
{
    enum mr_status status = put_word(decode, 0, decode->record.payload[0]);

    return status == MR_OK ? put_event(decode, MR_EVENT_LINK, kind) : status;
}

/* A record that joins call trees. */
static enum mr_status put_link(struct mr_decode *decode)
{
    switch (decode->record.kind) {
    case MR_RECORD_SEND:
        return put_message(decode, MR_LINK_SEND);
    case MR_RECORD_RECEIVE:
        return put_message(decode, MR_LINK_RECEIVE);
    case MR_RECORD_CAPTURE:
        return put_hand_off(decode, MR_LINK_CAPTURE);
    case MR_RECORD_ATTACH:
        return put_hand_off(decode, MR_LINK_ATTACH);
    default:
        return put_event(decode, MR_EVENT_LINK,
                         decode->record.payload[0] ? MR_LINK_DETACH : MR_LINK_DONE);
    }
}

/* No event of its own: nothing is counted. */
static enum mr_status put_prune(struct mr_decode *decode)
{
    uint64_t payload = decode->record.payload[0];
    struct mr_event event = {
        .ns = mr_ticks_ns(&decode->source->ticks, decode->reader.ticks),
        .site = find_site(decode, (uint32_t)payload & MR_WORD_SITE_MASK),
        .kind = MR_EVENT_PRUNE,
        .flags = (uint16_t)((payload & MR_PRUNE_ON_AGAIN ? MR_EVENT_PRUNE_ON_AGAIN : 0) |
                            (payload & MR_PRUNE_SETTLED ? MR_EVENT_PRUNE_SETTLED : 0))};

    return event.site == MR_SITE_UNKNOWN ? MR_OK
                                         : mr_decode_add(decode, decode->stream, &event);
}

/* A record that is not an enter or exit. */
static enum mr_status put_record(struct mr_decode *decode)
{
    switch (decode->record.kind) {
    case MR_RECORD_LOSS:
        return put_loss(decode);
    case MR_RECORD_WIDE:
        return put_call(decode, mr_source_resolve_address(decode->source, decode->sites,
                                                          decode->epoch,
                                                          decode->record.payload[0]));
    case MR_RECORD_CUT:
        mr_counters_add(&decode->counters, MR_DECODE_CUTS, 1);
        return lose_blindly(decode, 0, MR_LOSS_FORMAT);
    case MR_RECORD_STATUS:
        return put_status(decode);
    case MR_RECORD_UNWIND:
        return put_unwind(decode);
    case MR_RECORD_LANDING:
        return put_landing(decode);
    case MR_RECORD_COUNTER:
        return put_values(decode);
    case MR_RECORD_PRUNE:
        return put_prune(decode);
    case MR_RECORD_SYNC:
        return MR_OK;
    case MR_RECORD_SEND:
    case MR_RECORD_RECEIVE:
    case MR_RECORD_CAPTURE:
    case MR_RECORD_ATTACH:
    case MR_RECORD_DETACH:
        return put_link(decode);
    case MR_RECORD_LABEL:
    case MR_RECORD_MARK:
    case MR_RECORD_PLOT:
    case MR_RECORD_SWITCH:
        decode->counted++;
        return mr_decode_count(decode, decode->stream, 1, 0);
    default:
        decode->unknown_records++;
        return MR_OK;
    }
}

/* One record by the general reader. MR_END when the chunk has no more, or none whose time is known; MR_EFORMAT. */
static enum mr_status read_record(struct mr_decode *decode)
{
    uint64_t before = decode->reader.ticks;
    enum mr_status status = mr_record_next(&decode->reader, &decode->record);

    if (status != MR_OK)
        return status;
    decode->inversions += decode->record.is_inversion;
    if (decode->record.ticks > decode->safe_ticks - RUN_TICKS &&
        !check_clock(decode, decode->record.ticks)) {
        decode->reader.ticks = before;
        return MR_END;
    }
    return decode->record.kind == 0 ? put_site(decode) : put_record(decode);
}

/* Enters and exits; `*is_before_record`: what comes next, if anything, is something else. */
static enum mr_status read_run(struct mr_decode *decode, bool *is_before_record)
{
    const bool has_repeat = decode->stream->repeat != NULL;
    uint32_t most = MR_BATCH_EVENTS_MAX, room, done;
    enum mr_status status = MR_OK;
    const uint8_t *words;
    struct mr_event *events;

    if (MR_UNLIKELY(has_repeat))
        status = mr_decode_repeats(decode, &most);
    *is_before_record = false;
    if (most == 0)
        return status;
    if (status == MR_OK)
        status = mr_decode_reserve(decode, decode->stream);
    if (status != MR_OK)
        return status;
    words = decode->reader.at;
    events = decode->out->events + decode->out->event_count;
    room = MR_BATCH_EVENTS_MAX - decode->out->event_count;
    room = most < room ? most : room;
    done = mr_decode_run(decode, events, room);
    decode->out->event_count += done;
    if (MR_UNLIKELY(has_repeat))
        mr_decode_learn_wire(decode, words, events, done);
    *is_before_record = done < room;
    return MR_OK;
}

/* MR_END after the last record, MR_EFORMAT, or what is fatal. */
static enum mr_status read_records(struct mr_decode *decode)
{
    enum mr_status status = MR_OK;

    while (status == MR_OK) {
        if (decode->reader.ticks <= decode->safe_ticks - RUN_TICKS) {
            bool is_before_record;

            status = read_run(decode, &is_before_record);
            if (status != MR_OK || !is_before_record)
                continue;
        }
        status = read_record(decode);
    }
    return status;
}

/* Takes up where the stream stands; what is missing before the chunk is lost. */
static enum mr_status meet_chunk(struct mr_decode *decode, const struct mr_chunk *chunk)
{
    struct mr_stream *stream = decode->stream;
    bool is_late = !stream->is_started &&
                   (decode->source->is_continuation || decode->source->has_refused);
    uint64_t missing;

    stream->is_started = true;
    if (is_late && chunk->first_event > 0) {
        /* What came before is accounted for, by an earlier receiver or as refused, but we do not know what is open. */
        stream->base_event = chunk->first_event;
        stream->next_event = chunk->first_event;
        return lose_blindly(decode, 0, MR_LOSS_FORMAT);
    }
    missing = chunk->first_event - stream->next_event;
    if (missing == 0)
        return MR_OK;
    stream->next_event = chunk->first_event;
    mr_counters_add(&decode->counters, MR_DECODE_GAPS, 1);
    return lose_blindly(decode, missing, MR_LOSS_FORMAT);
}

static void resolve_start(struct mr_decode *decode)
{
    struct mr_stream *stream = decode->stream;
    uint32_t site = mr_load_relaxed(&stream->start_site); /* only this thread writes it */

    if (stream->start_wire && site == MR_SITE_UNKNOWN) {
        site = mr_source_resolve(decode->source, decode->sites, decode->epoch,
                                 stream->start_wire);
        mr_store_relaxed(&stream->start_site,
                         site); /* a hint: no other memory hangs on it */
    }
}

static void begin_chunk(struct mr_decode *decode, const struct mr_chunk *chunk)
{
    uint64_t before = decode->stream->ticks;

    decode->epoch = chunk->epoch;
    decode->counted = 0;
    decode->unknown_records = 0;
    mr_source_enter_epoch(decode->source, chunk->epoch);
    resolve_start(decode);
    mr_record_reader_init(&decode->reader, chunk);
    if (!check_clock(decode, decode->reader.ticks)) {
        decode->reader.ticks = before;
    } else if (decode->reader.ticks < before) {
        decode->reader.ticks = before;
        decode->inversions++;
    }
}

static void count_received(struct mr_decode *decode, const struct mr_chunk *chunk)
{
    bool is_compact = chunk->encoding == MR_CHUNK_COMPACT;

    mr_counters_add(&decode->counters,
                    is_compact ? MR_DECODE_COMPACT_EVENTS : MR_DECODE_WORDS_EVENTS,
                    chunk->events);
    mr_counters_add(&decode->counters,
                    is_compact ? MR_DECODE_COMPACT_BYTES : MR_DECODE_WORDS_BYTES,
                    MR_CHUNK_HEADER_SIZE + chunk->body.size);
}

static void count_chunk(struct mr_decode *decode, const struct mr_chunk *chunk)
{
    count_received(decode, chunk);
    mr_counters_add(&decode->counters, MR_DECODE_INVERSIONS, decode->inversions);
    decode->source->drift.clamped += decode->inversions;
    mr_counters_add(&decode->counters, MR_DECODE_UNKNOWN_SITES, decode->unknown_sites);
    mr_counters_add(&decode->counters, MR_DECODE_UNKNOWN_RECORDS,
                    decode->unknown_records);
    decode->inversions = 0;
    decode->unknown_sites = 0;
}

/* Accounts for the events that the chunk's header tells and its records did not. */
static enum mr_status end_chunk(struct mr_decode *decode, const struct mr_chunk *chunk,
                                enum mr_status status)
{
    struct mr_stream *stream = decode->stream;
    uint64_t left = chunk->events - decode->counted;

    stream->ticks = decode->reader.ticks;
    stream->next_event = chunk->first_event + chunk->events;
    count_chunk(decode, chunk);
    if (decode->counted > chunk->events) {
        stream->next_event = chunk->first_event + decode->counted;
        mr_decode_break(decode, decode->source,
                        "stream %u: a chunk holds more events than it tells", stream->id);
        return MR_OK;
    }
    if (decode->is_clock_off)
        return lose_blindly(decode, left, MR_LOSS_CLOCK);
    if (status == MR_END && left <= decode->unknown_records)
        return left ? mr_decode_count(decode, stream, left, 0) : MR_OK;
    mr_decode_break(
        decode, decode->source, "stream %u: %s after event %" PRIu64, stream->id,
        status == MR_EFORMAT ? "a record breaks the format" : "events are missing",
        chunk->first_event + decode->counted);
    return left ? lose_blindly(decode, left, MR_LOSS_FORMAT) : MR_OK;
}

static enum mr_status end_stream(struct mr_decode *decode)
{
    struct mr_event event = {
        .ns = mr_ticks_ns(&decode->source->ticks, decode->stream->ticks),
        .kind = MR_EVENT_STREAM_END};

    decode->stream->is_ended = true;
    mr_decode_drop_repeat(decode->stream);
    return mr_decode_add(decode, decode->stream, &event);
}

static void note_time(struct mr_decode *decode)
{
    uint64_t ns = mr_ticks_ns(&decode->source->ticks, decode->stream->ticks);

    if (!decode->is_clock_off && ns > decode->source->last_ns)
        decode->source->last_ns = ns;
}

static enum mr_status read_chunk(struct mr_decode *decode, const struct mr_chunk *chunk)
{
    enum mr_status status;

    begin_chunk(decode, chunk);
    status = meet_chunk(decode, chunk);
    if (status == MR_OK)
        status = decode->is_clock_off ? MR_END : read_records(decode);
    if (status != MR_END && status != MR_EFORMAT)
        return status; /* fatal */
    status = end_chunk(decode, chunk, status);
    note_time(decode);
    if (status != MR_OK || !(chunk->flags & MR_CHUNK_LAST))
        return status;
    return end_stream(decode);
}

/* A row of the ledger for a stream that nobody behind this filter knows; it is of the frame at hand. */
static enum mr_status tell_lost(struct mr_decode *decode, uint32_t stream,
                                const struct mr_ledger_entry *entry)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    struct mr_delta_writer writer;

    if (!batch)
        return MR_ENOMEM;
    batch->frame.sequence = decode->sequence;
    mr_delta_begin(&writer, &batch->bytes);
    mr_delta_head(&writer, decode->config->level, mr_clock_realtime_ns());
    mr_delta_ledger(&writer, mr_delta_source(&writer, decode->source->id), stream, entry);
    if (mr_delta_status(&writer) == MR_OK)
        return mr_filter_emit(decode->filter, batch);
    mr_batch_free(batch);
    return mr_delta_status(&writer);
}

/*
 * A chunk of a stream that has no room. Nothing of it is kept, but what it held is lost in the stream's own row: its numbers, and what the
 * source says that it sent, are held against that.
 */
static enum mr_status refuse_chunk(struct mr_decode *decode, const struct mr_chunk *chunk)
{
    struct mr_ledger_entry entry = {.last = chunk->first_event + chunk->events,
                                    .lost = {[MR_LOSS_BUDGET] = chunk->events}};

    decode->source->has_refused = true;
    mr_counters_add(&decode->counters, MR_DECODE_REFUSED_STREAMS, 1);
    count_received(decode, chunk);
    mr_filter_count(decode->filter, MR_DECODE_SUM_LOST, chunk->events);
    return chunk->events ? tell_lost(decode, chunk->stream, &entry) : MR_OK;
}

static enum mr_status take_chunk(struct mr_decode *decode, const struct mr_chunk *chunk)
{
    enum mr_status status = mr_source_stream(
        decode->source, chunk->stream, decode->config->streams_max, &decode->stream);

    if (status == MR_ELIMIT)
        return refuse_chunk(decode, chunk);
    if (status != MR_OK)
        return status;
    if (decode->stream->is_ended || chunk->first_event < decode->stream->next_event) {
        mr_decode_break(
            decode, decode->source, "stream %u: a chunk begins at event %" PRIu64 ", %s",
            chunk->stream, chunk->first_event,
            decode->stream->is_ended ? "after the last" : "which came already");
        return MR_OK;
    }
    return read_chunk(decode, chunk);
}

enum mr_status mr_decode_chunks(struct mr_decode *decode, struct mr_source *source,
                                struct mr_span payload)
{
    struct mr_span rest = payload;
    enum mr_status status = MR_OK;
    struct mr_chunk chunk;

    decode->source = source;
    while (status == MR_OK && !mr_source_is_broken(source)) {
        status = mr_chunk_next(&rest, &chunk);
        if (status == MR_OK)
            status = take_chunk(decode, &chunk);
    }
    if (status == MR_EFORMAT)
        mr_decode_break(decode, source, "CHUNKS frame: the chunk at byte %zu of %zu: %s",
                        payload.size - rest.size, payload.size, mr_chunk_fault(rest));
    if (status == MR_OK || status == MR_END || status == MR_EFORMAT)
        return mr_decode_flush(decode);
    return status;
}
