/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger, per source and in all. What a stream's rows say is added up; what is missing is found by two accounts: the number
 * of the last event that anybody told of, and what a probe says it sent, when it connects and when it ends. Between two workers
 * an event is missing for a moment; what stays missing was with a host that does not come back (docs/why/2026-11-22-account.md).
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/sum.h"
#include "master/summary_private.h"
#include "pipeline/source.h"

/* Three times as long as between two words of a source that lives: its clock alone is told every 10 s. */
#define SILENT_NS (30 * MR_SECOND_NS)

static const struct mr_id whole = {0, 0};

static void add_missing(const struct mr_summary_time *time,
                        struct mr_summary_ledger *ledger, uint64_t events,
                        uint64_t since_ns)
{
    mr_sum_add(&ledger->missing, events);
    if (time->gone_ns && time->now_ns > since_ns &&
        time->now_ns - since_ns >= time->gone_ns)
        mr_sum_add(&ledger->host_gone, events);
    if (ledger->since_ns == 0 || since_ns < ledger->since_ns)
        ledger->since_ns = since_ns;
}

/* Streams that have no row of their own: what came of them, which is all that is known. */
static void add_rest(const struct mr_model_stream *row, struct mr_summary_ledger *ledger)
{
    uint64_t events =
        row->entry.reduced + (uint64_t)row->entry.held + mr_ledger_lost(&row->entry);

    mr_sum_add(&ledger->last, events);
    mr_sum_add(&ledger->numbered, events);
    mr_sum_add(&ledger->past_limit, events);
}

/* Gives what is told of by number and is not in the sums. */
static int64_t add_numbers(const struct mr_model_stream *row,
                           struct mr_summary_ledger *ledger)
{
    int64_t gap = mr_ledger_gap(&row->entry);

    ledger->streams++;
    ledger->streams_balanced += gap == 0;
    mr_sum_add(&ledger->last, row->entry.last);
    mr_sum_add(&ledger->numbered, row->stream == MR_STREAM_NONE ? 0 : row->entry.last);
    return gap;
}

void mr_summary_add_stream(const struct mr_summary_time *time,
                           const struct mr_model_stream *row, bool is_over,
                           struct mr_summary_ledger *ledger)
{
    const struct mr_ledger_entry *entry = &row->entry;
    int64_t gap = 0;

    if (row->stream == MR_MODEL_STREAMS_REST)
        add_rest(row, ledger);
    else
        gap = add_numbers(row, ledger);
    mr_sum_add(&ledger->reduced, entry->reduced);
    ledger->held = mr_sum_signed(ledger->held, entry->held);
    for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        mr_sum_add(&ledger->lost[i], entry->lost[i]);
    mr_sum_add(&ledger->lost_all, mr_ledger_lost(entry));
    if (row->taken_ns > ledger->heard_ns)
        ledger->heard_ns = row->taken_ns;
    if (is_over) /* nobody is left who could see the exits of what is held */
        gap += entry->held;
    if (gap > 0)
        add_missing(time, ledger, (uint64_t)gap, is_over ? row->taken_ns : row->gap_ns);
    else
        mr_sum_add(&ledger->excess, -(uint64_t)gap);
}

/* The source's own account, if it told one: events of streams that nobody told of, or of their last part. */
static void add_account(const struct mr_summary_time *time,
                        const struct mr_model_root *root,
                        const struct mr_model_source *source,
                        struct mr_summary_ledger *ledger)
{
    const struct mr_model_note *note =
        mr_model_find_note(root, source->id, whole, mr_note_name(MR_NOTE_SENT_EVENTS));

    ledger->sources = 1;
    if (!note)
        return;
    ledger->sources_told = 1;
    ledger->sent = strtoull(note->value, NULL, 10);
    if (ledger->sent > MR_EVENTS_LIMIT) /* no probe says so; what wraps would balance */
        ledger->sent = MR_EVENTS_LIMIT;
    if (note->taken_ns > ledger->heard_ns)
        ledger->heard_ns = note->taken_ns;
    if (ledger->sent > ledger->numbered)
        add_missing(time, ledger, ledger->sent - ledger->numbered, ledger->heard_ns);
}

static void add_silence(const struct mr_summary_time *time,
                        const struct mr_model_root *root,
                        const struct mr_model_source *source,
                        struct mr_summary_ledger *ledger)
{
    const struct mr_model_note *drift =
        mr_model_find_note(root, source->id, whole, mr_note_name(MR_NOTE_DRIFT_NS));

    if (source->taken_ns > ledger->heard_ns)
        ledger->heard_ns = source->taken_ns;
    if (drift && drift->taken_ns > ledger->heard_ns)
        ledger->heard_ns = drift->taken_ns;
    if (source->known && source->state == MR_SOURCE_LIVE && time->gone_ns &&
        time->now_ns > ledger->heard_ns + SILENT_NS) {
        ledger->sources_silent = 1;
        ledger->silent_since_ns = ledger->heard_ns;
    }
}

static void settle(struct mr_summary_ledger *ledger)
{
    MR_DEBUG_ASSERT(ledger->host_gone <= ledger->missing);
    ledger->is_balanced = ledger->streams == ledger->streams_balanced &&
                          ledger->missing == 0 && ledger->excess == 0;
}

static void earlier(uint64_t *all_ns, uint64_t one_ns)
{
    if (one_ns && (*all_ns == 0 || one_ns < *all_ns))
        *all_ns = one_ns;
}

static void add(struct mr_summary_ledger *all, const struct mr_summary_ledger *one)
{
    all->streams += one->streams;
    all->streams_balanced += one->streams_balanced;
    mr_sum_add(&all->last, one->last);
    mr_sum_add(&all->numbered, one->numbered);
    mr_sum_add(&all->past_limit, one->past_limit);
    mr_sum_add(&all->reduced, one->reduced);
    all->held = mr_sum_signed(all->held, one->held);
    for (uint32_t i = 0; i < MR_LOSS_REASON_COUNT; i++)
        mr_sum_add(&all->lost[i], one->lost[i]);
    mr_sum_add(&all->lost_all, one->lost_all);
    all->sources += one->sources;
    all->sources_told += one->sources_told;
    all->sources_silent += one->sources_silent;
    all->sources_died += one->sources_died;
    mr_sum_add(&all->sent, one->sent);
    mr_sum_add(&all->missing, one->missing);
    mr_sum_add(&all->host_gone, one->host_gone);
    mr_sum_add(&all->excess, one->excess);
    earlier(&all->since_ns, one->since_ns);
    earlier(&all->silent_since_ns, one->silent_since_ns);
}

bool mr_summary_is_over(const struct mr_model_source *source)
{
    return source->known && source->state != MR_SOURCE_LIVE;
}

void mr_summary_make_ledgers(const struct mr_model_root *root,
                             const struct mr_summary_time *time,
                             struct mr_summary_ledger *ledgers,
                             struct mr_summary_ledger *all)
{
    uint32_t sources = mr_model_count(root, MR_MODEL_SOURCE);

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_STREAM); i++) {
        const struct mr_model_stream *row = mr_model_stream(root, i);

        mr_summary_add_stream(time, row,
                              mr_summary_is_over(mr_model_source(root, row->source)),
                              &ledgers[row->source]);
    }
    for (uint32_t i = 0; i < sources; i++) {
        const struct mr_model_source *source = mr_model_source(root, i);

        add_account(time, root, source, &ledgers[i]);
        add_silence(time, root, source, &ledgers[i]);
        ledgers[i].sources_died = source->known && source->state == MR_SOURCE_DIED;
        settle(&ledgers[i]);
        add(all, &ledgers[i]);
    }
    settle(all);
}

enum mr_status mr_summary_ledger_of(const struct mr_model_root *root, uint64_t gone_ns,
                                    struct mr_summary_ledger *all)
{
    const struct mr_summary_time time = {mr_clock_realtime_ns(), gone_ns};
    struct mr_summary_ledger *ledgers =
        calloc(mr_model_count(root, MR_MODEL_SOURCE) + 1, sizeof(*ledgers));

    *all = (struct mr_summary_ledger){0};
    if (!ledgers)
        return MR_ENOMEM;
    mr_summary_make_ledgers(root, &time, ledgers, all);
    free(ledgers);
    return MR_OK;
}
