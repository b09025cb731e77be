/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary_private.h"

#include "base/text.h"
#include "net/joined.h"
#include "net/part.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

json_int_t mr_summary_number(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (json_int_t)value;
}

static void set_number(json_t *object, const char *key, uint64_t value)
{
    (void)json_object_set_new(object, key, json_integer(mr_summary_number(value)));
}

json_t *mr_summary_text_json(const char *text)
{
    char *copy = strdup(text);
    json_t *string;

    if (!copy)
        return NULL;
    mr_text_make_valid(copy, strlen(copy));
    string = json_string(copy);
    free(copy);
    return string;
}

static void set_text(json_t *object, const char *key, const char *value)
{
    (void)json_object_set_new(object, key, mr_summary_text_json(value));
}

static json_t *id_json(struct mr_id id)
{
    char text[MR_ID_TEXT_SIZE];

    return json_string(mr_id_format(id, text));
}

static json_t *counter_stats_json(const struct mr_counter_stats *stats)
{
    json_t *object = json_object();

    set_number(object, "calls", stats->calls);
    set_number(object, "backward", stats->backward);
    if (stats->calls == 0)
        return object;
    set_number(object, "self", stats->self.sum);
    set_number(object, "self_min", stats->self.min);
    set_number(object, "self_max", stats->self.max);
    set_number(object, "total", stats->total.sum);
    set_number(object, "total_min", stats->total.min);
    set_number(object, "total_max", stats->total.max);
    return object;
}

/* Only those that counted in this function. */
static void set_counts(json_t *object, const struct mr_summary *summary,
                       const struct mr_summary_function *row)
{
    json_t *counts = json_object();

    for (size_t i = 0; row->counts && i < summary->counter_count; i++)
        if (row->counts[i].calls + row->counts[i].backward)
            (void)json_object_set_new(counts, summary->counters[i].name,
                                      counter_stats_json(&row->counts[i]));
    if (json_object_size(counts))
        (void)json_object_set(object, "counters", counts);
    json_decref(counts);
}

static json_t *counter_json(const struct mr_summary *summary, uint32_t counter)
{
    json_t *object = json_object();
    json_t *absent = json_array();

    set_text(object, "name", summary->counters[counter].name);
    set_text(object, "unit", summary->counters[counter].unit);
    (void)json_object_set_new(object, "counted",
                              json_boolean(summary->counters[counter].is_counted));
    for (size_t i = 0; i < summary->absence_count; i++) {
        json_t *row = json_object();

        set_text(row, "app", summary->absences[i].app);
        set_text(row, "version", summary->absences[i].version);
        set_text(row, "host", summary->absences[i].host);
        set_text(row, "reason", summary->absences[i].reason);
        if (summary->absences[i].counter == counter)
            (void)json_array_append(absent, row);
        json_decref(row);
    }
    (void)json_object_set_new(object, "absent", absent);
    return object;
}

/* Of functions of which calls were counted and not recorded. */
static void set_pruned(json_t *object, const struct mr_site_pruned *pruned)
{
    json_t *told = json_object();

    (void)json_object_set_new(object, "self_includes_pruned",
                              json_boolean(pruned->is_above));
    set_number(told, "sources", pruned->sources);
    if (pruned->since_ns)
        set_number(told, "since_ns", pruned->since_ns);
    set_number(told, "below_ns", pruned->below_ns);
    if (pruned->is_counted)
        set_number(told, "calls_not_recorded", pruned->calls);
    if (pruned->was_pruned)
        (void)json_object_set(object, "pruned", told);
    json_decref(told);
}

static json_t *function_json(const struct mr_summary *summary,
                             const struct mr_summary_function *row)
{
    json_t *object = json_object();

    (void)json_object_set_new(object, "site", id_json(row->site));
    set_text(object, "name", row->name);
    set_text(object, "module", row->module);
    set_text(object, "build_id", row->build);
    set_text(object, "file", row->file);
    set_number(object, "line", row->line);
    set_number(object, "calls", row->calls);
    if (summary->cheap_ns && !summary->tick_ns)
        set_number(object, "short_calls", row->cheap_calls);
    set_number(object, "ok", row->ok);
    set_number(object, "failed", row->failed);
    set_number(object, "incomplete", row->incomplete);
    (void)json_object_set_new(object, "outer", json_boolean(row->is_outer));
    set_pruned(object, &row->pruned);
    set_counts(object, summary, row);
    if (!row->is_timed)
        return object;
    set_number(object, "self_ns", row->self_ns);
    set_number(object, "self_min_ns", row->self_min_ns);
    set_number(object, "self_max_ns", row->self_max_ns);
    set_number(object, "total_ns", row->total_ns);
    set_number(object, "total_min_ns", row->total_min_ns);
    set_number(object, "total_max_ns", row->total_max_ns);
    return object;
}

static json_t *quantile_json(const struct mr_summary_quantile *quantile)
{
    return json_pack("{s:f, s:f, s:f}", "value_ns", quantile->value, "low_ns",
                     quantile->low, "high_ns", quantile->high);
}

static json_t *coverage_json(const uint64_t *values)
{
    json_t *object = json_object();

    for (int i = 0; i < MR_COVERAGE_COUNT; i++)
        set_number(object, mr_coverage_name((enum mr_coverage)i), values[i]);
    return object;
}

static json_t *past_limit_json(const struct mr_summary_past_limit *past_limit)
{
    json_t *object = json_object();

    set_number(object, "calls", past_limit->calls);
    set_number(object, "traces", past_limit->traces);
    set_number(object, "events", past_limit->events);
    set_number(object, "source_events", past_limit->source_events);
    set_number(object, "notes", past_limit->notes);
    set_number(object, "rows_too_large", past_limit->rows_too_large);
    set_number(object, "frames_too_large", past_limit->frames_too_large);
    return object;
}

static json_t *entry_json(const struct mr_summary_entry *row)
{
    json_t *object = json_object();

    (void)json_object_set_new(object, "path", id_json(row->path));
    set_text(object, "name", row->name);
    set_text(object, "app", row->app);
    set_text(object, "version", row->version);
    set_text(object, "host", row->host);
    set_number(object, "count", row->count);
    set_number(object, "ok", row->ok);
    set_number(object, "failed", row->failed);
    set_number(object, "incomplete", row->incomplete);
    set_number(object, "open", row->open);
    set_number(object, "paths", row->paths);
    set_number(object, "shapes", row->shapes);
    (void)json_object_set_new(object, "coverage", coverage_json(row->traces));
    if (!row->is_timed)
        return object;
    (void)json_object_set_new(object, "p50", quantile_json(&row->p50));
    (void)json_object_set_new(object, "p90", quantile_json(&row->p90));
    (void)json_object_set_new(object, "p99", quantile_json(&row->p99));
    set_number(object, "time_ns", row->time_ns);
    set_number(object, "min_ns", row->min_ns);
    set_number(object, "max_ns", row->max_ns);
    return object;
}

static json_t *ledger_json(const struct mr_summary_ledger *ledger)
{
    json_t *object = json_object();
    json_t *lost = json_object();

    set_number(object, "streams", ledger->streams);
    set_number(object, "streams_balanced", ledger->streams_balanced);
    (void)json_object_set_new(object, "balanced", json_boolean(ledger->is_balanced));
    set_number(object, "last", ledger->last);
    set_number(object, "reduced", ledger->reduced);
    (void)json_object_set_new(object, "held", json_integer(ledger->held));
    set_number(object, "lost", ledger->lost_all);
    for (uint32_t i = 1; i < MR_LOSS_REASON_COUNT; i++)
        set_number(lost, mr_loss_reason_name(i), ledger->lost[i]);
    (void)json_object_set_new(object, "lost_by_reason", lost);
    set_number(object, "sources", ledger->sources);
    set_number(object, "sources_told", ledger->sources_told);
    set_number(object, "sources_died", ledger->sources_died);
    if (ledger->sources_told)
        set_number(object, "sent", ledger->sent);
    set_number(object, "past_limit", ledger->past_limit);
    set_number(object, "missing", ledger->missing);
    set_number(object, "excess", ledger->excess);
    return object;
}

static json_t *run_json(const struct mr_run *run)
{
    json_t *object = json_object();

    set_text(object, "command", run->command);
    set_number(object, "started_ns", run->started_ns);
    set_number(object, "wall_ns", run->wall_ns);
    (void)json_object_set_new(object, "exit_status", json_integer(run->exit_status));
    if (run->plain_ns) {
        set_number(object, "plain_ns", run->plain_ns);
        (void)json_object_set_new(
            object, "slow_down", json_real((double)run->wall_ns / (double)run->plain_ns));
    }
    return object;
}

/* A value that is a number is one here too. */
static void set_note(json_t *object, enum mr_note note, const char *value)
{
    char *end;
    long long number = strtoll(value, &end, 10);

    if (!mr_note_is_number(note))
        set_text(object, mr_note_name(note), value);
    else if (*value && *end == '\0')
        (void)json_object_set_new(object, mr_note_name(note), json_integer(number));
}

static json_t *clocks_json(const struct mr_summary *summary)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < summary->source_count; i++) {
        const struct mr_summary_source *source = &summary->sources[i];
        json_t *object = json_object();

        (void)json_object_set_new(object, "source", id_json(source->id));
        set_number(object, "pid", source->pid);
        if (source->is_known)
            set_text(object, "kind", mr_clock_kind_name(source->clock.kind));
        for (uint32_t note = 0; note < MR_NOTE_DEPTH_LIMIT; note++)
            if (source->clock.notes[note])
                set_note(object, (enum mr_note)note, source->clock.notes[note]);
        (void)json_array_append_new(rows, object);
    }
    return rows;
}

/* How each source sends its events, where that is known. */
static json_t *links_json(const struct mr_summary *summary)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < summary->source_count; i++) {
        const struct mr_summary_source *source = &summary->sources[i];
        json_t *object;

        if (!source->clock.notes[MR_NOTE_ENCODING])
            continue;
        object = json_object();
        (void)json_object_set_new(object, "source", id_json(source->id));
        set_number(object, "pid", source->pid);
        for (uint32_t note = MR_NOTE_ENCODING; note <= MR_NOTE_ENCODING_REASON; note++)
            if (source->clock.notes[note])
                set_note(object, (enum mr_note)note, source->clock.notes[note]);
        (void)json_array_append_new(rows, object);
    }
    return rows;
}

/* Of sources with a depth limit. */
static json_t *depths_json(const struct mr_summary *summary)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < summary->source_count; i++) {
        const struct mr_summary_source *source = &summary->sources[i];
        json_t *object;

        if (!source->clock.notes[MR_NOTE_DEPTH_LIMIT])
            continue;
        object = json_object();
        (void)json_object_set_new(object, "source", id_json(source->id));
        set_number(object, "pid", source->pid);
        for (uint32_t note = MR_NOTE_DEPTH_LIMIT; note <= MR_NOTE_DEPTH_SKIPPED; note++)
            if (source->clock.notes[note])
                set_note(object, (enum mr_note)note, source->clock.notes[note]);
        (void)json_array_append_new(rows, object);
    }
    return rows;
}

static json_t *part_json(const struct mr_summary_part *part)
{
    json_t *object = json_object();

    set_number(object, "depth", part->depth);
    set_text(object, "kind", mr_edge_kind_name(part->kind));
    set_text(object, "name", part->name);
    set_text(object, "app", part->app);
    set_text(object, "version", part->version);
    set_text(object, "host", part->host);
    (void)json_object_set_new(object, "missing",
                              json_boolean(part->flags & MR_JOINED_MISSING));
    (void)json_object_set_new(
        object, "call_tree",
        json_boolean(!(part->flags & (MR_JOINED_MISSING | MR_JOINED_STUB))));
    (void)json_object_set_new(object, "run", json_boolean(part->flags & MR_JOINED_RUN));
    (void)json_object_set_new(object, "large",
                              json_boolean(part->flags & MR_JOINED_LARGE));
    set_number(object, "count", part->count);
    set_number(object, "clamped", part->clamped);
    if (part->count == 0)
        return object;
    (void)json_object_set_new(object, "p50_ns", json_real(part->p50.value));
    (void)json_object_set_new(object, "p99_ns", json_real(part->p99.value));
    set_number(object, "max_ns", part->max_ns);
    return object;
}

static json_t *trace_json(const struct mr_summary_trace *trace)
{
    json_t *object = json_object(), *parts = json_array();

    (void)json_object_set_new(object, "id", id_json(trace->id));
    set_number(object, "ok", trace->ok);
    set_number(object, "failed", trace->failed);
    set_number(object, "incomplete", trace->incomplete);
    if (trace->is_timed) {
        (void)json_object_set_new(object, "p50_ns", json_real(trace->p50.value));
        (void)json_object_set_new(object, "p99_ns", json_real(trace->p99.value));
        set_number(object, "max_ns", trace->max_ns);
        if (!mr_id_is_zero(trace->slowest)) /* hand-offs alone have no trace id */
            (void)json_object_set_new(object, "slowest", id_json(trace->slowest));
    }
    for (size_t i = 0; i < trace->part_count; i++)
        (void)json_array_append_new(parts, part_json(&trace->parts[i]));
    (void)json_object_set_new(object, "parts", parts);
    return object;
}

static json_t *parts_json(const struct mr_summary_parts *parts)
{
    json_t *object = json_object(), *reasons = json_object();

    for (int i = 0; i < MR_PARTS_COUNT; i++)
        set_number(i > MR_PARTS_JOINED ? reasons : object,
                   mr_parts_name((enum mr_parts)i), parts->of[i]);
    set_number(object, "waiting", parts->waiting);
    set_number(object, "incomplete", parts->incomplete);
    (void)json_object_set_new(object, "incomplete_by_reason", reasons);
    (void)json_object_set_new(object, "balanced", json_boolean(parts->is_balanced));
    return object;
}

static json_t *share_json(const struct mr_summary_share *share)
{
    json_t *object = json_object();

    set_number(object, "traces", share->traces);
    set_number(object, "calls", share->calls);
    set_number(object, "time_ns", share->time_ns);
    return object;
}

static json_t *shares_json(const struct mr_summary_shares *shares)
{
    json_t *object = share_json(&shares->all);

    for (int i = 0; i < MR_SHARE_COUNT; i++)
        (void)json_object_set_new(object, mr_share_name((enum mr_share)i),
                                  share_json(&shares->of[i]));
    set_number(object, "path_time_ns", shares->path_ns);
    return object;
}

static json_t *joined_json(const struct mr_summary *summary, const struct mr_view *view)
{
    json_t *object = json_object(), *rows = json_array();

    set_number(object, "ok", summary->joined_ok);
    set_number(object, "failed", summary->joined_failed);
    set_number(object, "incomplete", summary->joined_incomplete);
    set_number(object, "past_max_joined", summary->joined_past_limit);
    set_number(object, "parts_waiting", summary->parts.waiting);
    (void)json_object_set_new(object, "parts", parts_json(&summary->parts));
    set_number(object, "shapes", summary->trace_total);
    for (size_t i = 0; i < summary->trace_count && i < view->entries; i++)
        (void)json_array_append_new(rows, trace_json(&summary->joined[i]));
    (void)json_object_set_new(object, "traces", rows);
    return object;
}

static json_t *summary_json(const struct mr_summary *summary, const struct mr_run *run,
                            const struct mr_view *view)
{
    json_t *object = json_object();
    json_t *functions = json_array();
    json_t *entries = json_array();
    json_t *counters = json_array();

    if (run)
        (void)json_object_set_new(object, "run", run_json(run));
    for (size_t i = 0; i < summary->function_count && i < view->functions; i++)
        (void)json_array_append_new(functions,
                                    function_json(summary, &summary->functions[i]));
    for (size_t i = 0; i < summary->entry_count && i < view->entries; i++)
        (void)json_array_append_new(entries, entry_json(&summary->entries[i]));
    for (uint32_t i = 0; i < summary->counter_count; i++)
        (void)json_array_append_new(counters, counter_json(summary, i));
    set_number(object, "traces", summary->traces);
    set_number(object, "calls", summary->calls);
    set_number(object, "incomplete_calls", summary->incomplete_calls);
    if (summary->cheap_ns && !summary->tick_ns)
        set_number(object, "short_calls", summary->cheap_calls);
    set_number(object, "open", summary->open);
    (void)json_object_set_new(object, "open_traces", mr_summary_open_json(summary));
    set_number(object, "paths", summary->paths);
    set_number(object, "shapes", summary->shapes);
    set_number(object, "sites", summary->sites);
    set_number(object, "refused", summary->refused);
    (void)json_object_set_new(object, "past_limit",
                              past_limit_json(&summary->past_limit));
    (void)json_object_set_new(object, "coverage_traces",
                              coverage_json(summary->coverage.traces));
    (void)json_object_set_new(object, "coverage_time_ns",
                              coverage_json(summary->coverage.time_ns));
    (void)json_object_set_new(object, "shares", shares_json(&summary->shares));
    (void)json_object_set_new(object, "ledger", ledger_json(&summary->ledger));
    (void)json_object_set_new(object, "clocks", clocks_json(summary));
    (void)json_object_set_new(object, "depths", depths_json(summary));
    (void)json_object_set_new(object, "links", links_json(summary));
    if (summary->tick_ns)
        set_number(object, "tick_ns", summary->tick_ns);
    if (summary->counter_count)
        (void)json_object_set_new(object, "counters", counters);
    else
        json_decref(counters);
    set_number(object, "function_total", summary->function_total);
    (void)json_object_set_new(object, "functions", functions);
    set_number(object, "entry_total", summary->entry_total);
    (void)json_object_set_new(object, "entries", entries);
    (void)json_object_set_new(object, "joined", joined_json(summary, view));
    if (summary->kept.shapes)
        (void)json_object_set_new(object, "slowest", mr_summary_kept_json(summary));
    return object;
}

enum mr_status mr_summary_json(struct mr_summary *summary, const struct mr_run *run,
                               const struct mr_view *view, struct mr_buffer *out)
{
    json_t *object;
    char *text;
    enum mr_status status;

    mr_summary_sort(summary, view->sort);
    object = summary_json(summary, run, view);
    text = object ? json_dumps(object, JSON_INDENT(1) | JSON_PRESERVE_ORDER) : NULL;
    json_decref(object);
    if (!text)
        return MR_ENOMEM;
    status = mr_buffer_append_text(out, text);
    free(text);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}
