/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of sources. The rate of a source's clock is fixed, so that durations are a
 * function of its stream alone; how far the wall clock has gone from it since, its sync
 * items tell. That is told upward as notes, and what needs a wall time, such as the window
 * that a trace falls in, adds the shift of its batch. The shift follows in steps, so that
 * it does not tremble with each sync's error, and depends on the order of frames only.
 */
#include "pipeline/filters/decode_private.h"

#include "net/encoding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A drift below this moves no window; and a clock that is set moves them at once. */
#define SHIFT_STEP_NS ((int64_t)MR_MILLISECOND_NS)
/* Drift is told of sources that live so long, and so often. */
#define TELL_NS (10 * MR_SECOND_NS)

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

enum mr_status mr_decode_put_note(struct mr_decode *decode, struct mr_source *source,
                                  struct mr_id site, enum mr_note note, const char *value)
{
    struct mr_dict_item item = {.kind = MR_DICT_NOTE,
                                .note = {.about = source->id,
                                         .site = site,
                                         .key = mr_note_name(note),
                                         .value = value,
                                         .version = source->drift.note_version}};

    return mr_dict_batch_put(&decode->dict, decode->filter, &item);
}

static enum mr_status put_note(struct mr_decode *decode, struct mr_source *source,
                               enum mr_note note, const char *value)
{
    return mr_decode_put_note(decode, source, (struct mr_id){0}, note, value);
}

static enum mr_status put_number(struct mr_decode *decode, struct mr_source *source,
                                 enum mr_note note, int64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, value);
    return put_note(decode, source, note, text);
}

void mr_decode_next_version(struct mr_source *source, uint64_t wall_ns)
{
    struct mr_drift *drift = &source->drift;

    drift->note_version =
        wall_ns > drift->note_version ? wall_ns : drift->note_version + 1;
}

static enum mr_status put_tick(struct mr_decode *decode, struct mr_source *source)
{
    enum mr_status status =
        put_number(decode, source, MR_NOTE_TICK_NS, source->info.tick_ns);

    return status == MR_OK
               ? put_number(decode, source, MR_NOTE_TICK_EVENTS, source->info.tick_events)
               : status;
}

enum mr_status mr_decode_clock_facts(struct mr_decode *decode, struct mr_source *source)
{
    enum mr_status status = MR_OK;

    mr_decode_next_version(source, source->info.start_ns);
    if (source->info.clock_warning[0])
        status =
            put_note(decode, source, MR_NOTE_CLOCK_WARNING, source->info.clock_warning);
    if (status == MR_OK && source->info.tick_ns > 0)
        status = put_tick(decode, source);
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

static enum mr_status tell(struct mr_decode *decode, struct mr_source *source)
{
    struct mr_drift *drift = &source->drift;
    enum mr_status status = MR_OK;

    drift->told_at_ns = drift->last_ns;
    mr_decode_next_version(source, drift->last_ns);
    if (drift->is_synced && drift->last_ns - drift->first_ns >= TELL_NS) {
        status = put_number(decode, source, MR_NOTE_DRIFT_NS, drift->now_ns);
        if (status == MR_OK)
            status = put_number(decode, source, MR_NOTE_DRIFT_MAX_NS, drift->max_ns);
    }
    if (status == MR_OK && drift->clamped > drift->clamped_told) {
        drift->clamped_told = drift->clamped;
        status = put_number(decode, source, MR_NOTE_TIMES_CLAMPED,
                            (int64_t)(drift->clamped & INT64_MAX));
    }
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

enum mr_status mr_decode_sync(struct mr_decode *decode, struct mr_source *source,
                              const struct mr_dict_sync *sync)
{
    struct mr_drift *drift = &source->drift;

    /* Both are of this era, so that their difference fits. */
    if (!mr_ticks_fit(&source->info.clock, sync->ticks) ||
        sync->realtime_ns / MR_SECOND_NS == 0 ||
        sync->realtime_ns / MR_SECOND_NS >= UINT32_MAX)
        return MR_OK;
    drift->now_ns =
        (int64_t)(sync->realtime_ns - mr_ticks_ns(&source->ticks, sync->ticks));
    if (!drift->is_synced)
        drift->first_ns = drift->told_at_ns = sync->realtime_ns;
    drift->is_synced = true;
    drift->last_ns =
        sync->realtime_ns > drift->first_ns ? sync->realtime_ns : drift->first_ns;
    if (magnitude(drift->now_ns) > magnitude(drift->max_ns))
        drift->max_ns = drift->now_ns;
    if (magnitude(drift->now_ns - drift->shift_ns) >= (uint64_t)SHIFT_STEP_NS)
        drift->shift_ns = drift->now_ns;
    if (drift->last_ns < drift->told_at_ns + TELL_NS)
        return MR_OK;
    return tell(decode, source);
}

/* A length of time. */
static int64_t ns_of(const struct mr_source *source, uint64_t ticks)
{
    const struct mr_clock_info *clock = &source->info.clock;
    mr_u128 ns = (mr_u128)ticks * clock->mult >> clock->shift;

    return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

enum mr_status mr_decode_ticker(struct mr_decode *decode, struct mr_source *source,
                                const struct mr_dict_ticker *ticker)
{
    const struct {
        enum mr_note note;
        int64_t value;
    } notes[] = {
        {MR_NOTE_TICK_GAP_P99_NS, ns_of(source, ticker->gap_p99_ticks)},
        {MR_NOTE_TICK_GAP_MAX_NS, ns_of(source, ticker->gap_max_ticks)},
        {MR_NOTE_TICKER_CPU_NS, (int64_t)(ticker->cpu_ns & INT64_MAX)},
    };
    enum mr_status status = MR_OK;

    mr_decode_next_version(source, source->drift.last_ns);
    for (uint32_t i = 0; i < MR_ARRAY_COUNT(notes) && status == MR_OK; i++)
        status = put_number(decode, source, notes[i].note, notes[i].value);
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

/* Of the notes that a probe may send, about itself; others are none of its business. */
enum mr_status mr_decode_depth(struct mr_decode *decode, struct mr_source *source,
                               const struct mr_dict_note *note)
{
    static const enum mr_note keys[] = {MR_NOTE_DEPTH_LIMIT, MR_NOTE_DEPTH_SKIPPED};
    size_t digits = strspn(note->value, "0123456789");
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < MR_ARRAY_COUNT(keys) && status == MR_OK; i++)
        if (strcmp(note->key, mr_note_name(keys[i])) == 0 && digits > 0 &&
            digits < sizeof("18446744073709551615") && note->value[digits] == '\0') {
            mr_decode_next_version(source, source->drift.last_ns);
            status = put_note(decode, source, keys[i], note->value);
        }
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

/* Its own account. It only grows, wherever it is told, so that it is its own version. */
static enum mr_status put_sent(struct mr_decode *decode, struct mr_source *source,
                               uint64_t events)
{
    char text[24];
    struct mr_dict_item item = {.kind = MR_DICT_NOTE,
                                .note = {.about = source->id,
                                         .key = mr_note_name(MR_NOTE_SENT_EVENTS),
                                         .value = text,
                                         .version = events}};

    (void)snprintf(text, sizeof(text), "%" PRIu64, events);
    return mr_dict_batch_put(&decode->dict, decode->filter, &item);
}

/* Which way a source sends, why, and how much it did. It tells when it is connected, has chosen anew, and ends. */
enum mr_status mr_decode_link(struct mr_decode *decode, struct mr_source *source,
                              const struct mr_dict_link *link)
{
    enum mr_status status;

    mr_decode_next_version(source, source->drift.last_ns);
    status = put_note(decode, source, MR_NOTE_ENCODING, mr_encoding_name(link->encoding));
    if (status == MR_OK)
        status = put_note(decode, source, MR_NOTE_ENCODING_REASON,
                          mr_encoding_reason_text(link->reason));
    if (status == MR_OK)
        status = put_sent(decode, source, link->events);
    return status == MR_OK ? mr_dict_batch_emit(&decode->dict, decode->filter) : status;
}

enum mr_status mr_decode_clock_end(struct mr_decode *decode, struct mr_source *source)
{
    return tell(decode, source);
}
