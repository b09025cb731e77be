/* SPDX-License-Identifier: Apache-2.0 */
/* The answers that are a summary's tables: functions, entries, ledger. */
#include "base/clock.h"
#include "base/compiler.h"
#include "master/api_private.h"

#include <stdlib.h>

static struct mr_summary *summarise(struct mr_api_request *request,
                                    struct mr_summary_limits limits)
{
    struct mr_summary *summary = NULL;

    if (request->status == 200)
        (void)mr_summary_of(request->root, &limits, &summary);
    return summary;
}

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? 1 : a > b ? -1 : 0; /* largest first */
}

static int by_total(const void *a, const void *b)
{
    return by_number(((const struct mr_summary_function *)a)->total_ns,
                     ((const struct mr_summary_function *)b)->total_ns);
}

static int by_calls(const void *a, const void *b)
{
    return by_number(((const struct mr_summary_function *)a)->calls,
                     ((const struct mr_summary_function *)b)->calls);
}

static int by_count(const void *a, const void *b)
{
    return by_number(((const struct mr_summary_entry *)a)->count,
                     ((const struct mr_summary_entry *)b)->count);
}

static int by_max(const void *a, const void *b)
{
    return by_number(((const struct mr_summary_entry *)a)->max_ns,
                     ((const struct mr_summary_entry *)b)->max_ns);
}

typedef int order(const void *a, const void *b);

/* Rows are by self time already; another order needs all of them. */
static void sort(void *rows, size_t count, size_t size, order *by)
{
    if (by)
        qsort(rows, count, size, by);
}

static size_t at_most(size_t count, uint64_t limit)
{
    return count > limit ? (size_t)limit : count;
}

static json_t *function(const struct mr_summary *summary,
                        const struct mr_summary_function *row)
{
    bool timed = row->is_timed;
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "site",
        mr_json_id(row->site), "name", mr_json_text(row->name), "module",
        mr_json_text(row->module), "build_id", mr_json_text(row->build), "has_twin",
        row->has_twin, "file", mr_json_text(row->file), "line",
        mr_json_u64_if(row->line > 0, row->line), "calls", mr_json_u64(row->calls), "ok",
        mr_json_u64(row->ok), "failed", mr_json_u64(row->failed), "incomplete",
        mr_json_u64(row->incomplete), "outer", row->is_outer);

    mr_json_merge(object,
                  json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "self_ns",
                            mr_json_u64_if(timed, row->self_ns), "self_min_ns",
                            mr_json_u64_if(timed, row->self_min_ns), "self_max_ns",
                            mr_json_u64_if(timed, row->self_max_ns), "total_ns",
                            mr_json_u64_if(timed, row->total_ns), "total_min_ns",
                            mr_json_u64_if(timed, row->total_min_ns), "total_max_ns",
                            mr_json_u64_if(timed, row->total_max_ns)));
    mr_json_add_pruned(object, &row->pruned);
    mr_json_add_function_counters(object, summary, row);
    return object;
}

json_t *mr_api_functions(struct mr_api_request *request)
{
    static const char *const names[] = {"self", "total", "calls", NULL};
    static order *const orders[] = {NULL, by_total, by_calls};
    uint64_t limit = mr_api_limit(request);
    order *by = orders[mr_api_choice(request, "sort", names)];
    struct mr_summary_limits limits = {.functions = by ? SIZE_MAX : (size_t)limit,
                                       .find = mr_api_param(request, "find")};
    struct mr_summary *summary = summarise(request, limits);

    if (!summary)
        return NULL;
    sort(summary->functions, summary->function_count, sizeof(*summary->functions), by);
    json_t *rows = json_array();
    for (size_t i = 0; i < at_most(summary->function_count, limit); i++)
        json_array_append_new(rows, function(summary, &summary->functions[i]));
    json_t *body = json_pack("{s:o, s:o, s:o, s:o, s:o}", "generation",
                             mr_json_u64(summary->generation), "total",
                             mr_json_u64(summary->function_total), "calls",
                             mr_json_u64(summary->calls), "self_ns",
                             mr_json_u64(summary->self_ns), "functions", rows);
    json_object_set_new(body, "found", mr_json_u64(summary->function_found));
    json_object_set_new(body, "calls_past_limit", mr_json_u64(summary->past_limit.calls));
    mr_json_add_counters(body, request->root);
    json_object_set_new(body, "tick_ns",
                        mr_json_u64_if(summary->tick_ns > 0, summary->tick_ns));
    mr_summary_free(summary);
    return body;
}

static json_t *by_coverage(const uint64_t values[MR_COVERAGE_COUNT])
{
    json_t *object = json_object();

    for (uint32_t i = 0; i < MR_COVERAGE_COUNT; i++)
        json_object_set_new(object, mr_coverage_name((enum mr_coverage)i),
                            mr_json_u64(values[i]));
    return object;
}

static json_t *entry(const struct mr_summary_entry *row)
{
    bool timed = row->is_timed;
    json_t *object =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
                  mr_json_id(row->path), "site", mr_json_id(row->site), "scope",
                  mr_json_id(row->scope), "name", mr_json_text(row->name), "app",
                  mr_json_text(row->app), "version", mr_json_text(row->version), "host",
                  mr_json_text(row->host), "count", mr_json_u64(row->count), "ok",
                  mr_json_u64(row->ok), "failed", mr_json_u64(row->failed), "incomplete",
                  mr_json_u64(row->incomplete));

    mr_json_merge(object, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "time_ns",
                                    mr_json_u64_if(timed, row->time_ns), "min_ns",
                                    mr_json_u64_if(timed, row->min_ns), "max_ns",
                                    mr_json_u64_if(timed, row->max_ns), "p50",
                                    mr_json_quantile(timed, &row->p50), "p90",
                                    mr_json_quantile(timed, &row->p90), "p99",
                                    mr_json_quantile(timed, &row->p99)));
    mr_json_merge(object,
                  json_pack("{s:o, s:o, s:o, s:i, s:i, s:o}", "open",
                            mr_json_u64(row->open), "oldest_open_ns",
                            mr_json_u64_if(row->oldest_open_ns > 0, row->oldest_open_ns),
                            "last_10s", mr_json_u64(row->recent), "paths",
                            (int)row->paths, "shapes", (int)row->shapes, "traces",
                            by_coverage(row->traces)));
    return object;
}

json_t *mr_api_entries(struct mr_api_request *request)
{
    static const char *const names[] = {"time", "count", "max", NULL};
    static order *const orders[] = {NULL, by_count, by_max};
    uint64_t limit = mr_api_limit(request);
    order *by = orders[mr_api_choice(request, "sort", names)];
    struct mr_summary_limits limits = {.entries = by ? SIZE_MAX : (size_t)limit};
    struct mr_summary *summary = summarise(request, limits);

    if (!summary)
        return NULL;
    sort(summary->entries, summary->entry_count, sizeof(*summary->entries), by);
    json_t *rows = json_array();
    for (size_t i = 0; i < at_most(summary->entry_count, limit); i++)
        json_array_append_new(rows, entry(&summary->entries[i]));
    json_t *body = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o}, s:o}", "generation",
        mr_json_u64(summary->generation), "total", mr_json_u64(summary->entry_total),
        "traces", mr_json_u64(summary->traces), "paths", mr_json_u64(summary->paths),
        "shapes", mr_json_u64(summary->shapes), "open", mr_json_u64(summary->open),
        "coverage", "traces", by_coverage(summary->coverage.traces), "calls",
        by_coverage(summary->coverage.calls), "time_ns",
        by_coverage(summary->coverage.time_ns), "entries", rows);
    json_object_set_new(body, "traces_past_limit",
                        mr_json_u64(summary->past_limit.traces));
    json_object_set_new(body, "tick_ns",
                        mr_json_u64_if(summary->tick_ns > 0, summary->tick_ns));
    mr_summary_free(summary);
    return body;
}

static json_t *note(enum mr_note key, const char *value)
{
    char *end;
    long long number = strtoll(value, &end, 10);

    if (!mr_note_is_number(key))
        return mr_json_text(value);
    return *value && *end == '\0' ? json_integer(number) : json_null();
}

/* Only what was told of it. */
static json_t *clock_of(const struct mr_summary_clock *clock)
{
    json_t *object = json_pack("{s:s}", "kind", mr_clock_kind_name(clock->kind));

    for (uint32_t i = 0; i < MR_NOTE_DEPTH_LIMIT; i++)
        if (clock->notes[i])
            json_object_set_new(object, mr_note_name((enum mr_note)i),
                                note((enum mr_note)i, clock->notes[i]));
    return object;
}

/* Calls below the depth limit were made, and are in no count of calls. */
static json_t *depth_of(const struct mr_summary_clock *told)
{
    const char *limit = told->notes[MR_NOTE_DEPTH_LIMIT];
    const char *skipped = told->notes[MR_NOTE_DEPTH_SKIPPED];

    return limit ? json_pack("{s:o, s:o}", "limit", note(MR_NOTE_DEPTH_LIMIT, limit),
                             "calls_not_recorded",
                             skipped ? note(MR_NOTE_DEPTH_SKIPPED, skipped) : json_null())
                 : json_null();
}

/* How its events come, as it last chose; null: nobody told. */
static json_t *link_of(const struct mr_summary_clock *told)
{
    const char *encoding = told->notes[MR_NOTE_ENCODING];
    const char *reason = told->notes[MR_NOTE_ENCODING_REASON];

    return encoding
               ? json_pack("{s:o, s:o}", "encoding", note(MR_NOTE_ENCODING, encoding),
                           "reason",
                           reason ? note(MR_NOTE_ENCODING_REASON, reason) : json_null())
               : json_null();
}

static json_t *source(const struct mr_summary_source *row)
{
    char const *const policies[] = {"drop", "block", "overwrite"};
    bool known = row->is_known;
    json_t *object =
        json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "id", mr_json_id(row->id),
                  "known", known, "worker",
                  mr_id_is_zero(row->worker) ? json_null() : mr_json_id(row->worker),
                  "host", mr_json_text(row->host), "app", mr_json_text(row->app),
                  "version", mr_json_text(row->version), "exe", mr_json_text(row->exe),
                  "pid", mr_json_u64_if(known, row->pid));

    mr_json_merge(
        object,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "start_ns",
                  mr_json_u64_if(row->start_ns > 0, row->start_ns), "end_ns",
                  mr_json_u64_if(row->end_ns > 0, row->end_ns), "state",
                  known ? json_string(mr_source_state_name(row->state)) : json_null(),
                  "policy",
                  known && row->policy < MR_ARRAY_COUNT(policies)
                      ? json_string(policies[row->policy])
                      : json_null(),
                  "clock", known ? clock_of(&row->clock) : json_null(), "ledger",
                  mr_json_ledger(&row->ledger)));
    json_object_set_new(object, "depth", depth_of(&row->clock));
    json_object_set_new(object, "link", link_of(&row->clock));
    return object;
}

static json_t *stream(struct mr_api_request *request, const struct mr_model_stream *row)
{
    const struct mr_summary_time time = {mr_clock_realtime_ns(), request->api->gone_ns};
    struct mr_summary_ledger ledger = {0};

    mr_summary_add_stream(&time, row,
                          mr_summary_is_over(mr_model_source(request->root, row->source)),
                          &ledger);
    ledger.is_balanced = ledger.streams == ledger.streams_balanced && ledger.missing == 0;
    json_t *object = mr_json_ledger(&ledger);
    json_object_set_new(
        object, "stream",
        mr_json_u64_if(row->stream != MR_MODEL_STREAMS_REST, row->stream));
    return object;
}

/* The streams of one source, in the order in which they came. */
static json_t *streams_of(struct mr_api_request *request, struct mr_id id, uint64_t limit)
{
    const struct mr_model_root *root = request->root;
    uint32_t at = mr_model_find(root, MR_MODEL_SOURCE, id);
    json_t *rows = json_array();
    uint64_t total = 0;

    if (at == MR_MODEL_NONE) {
        json_decref(rows);
        return mr_api_fail(request, 404, "parameter 'source': no such source");
    }
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_STREAM); i++) {
        const struct mr_model_stream *row = mr_model_stream(root, i);

        if (row->source == at && total++ < limit)
            json_array_append_new(rows, stream(request, row));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "generation",
                     mr_json_u64(root->head.generation), "source", mr_json_id(id),
                     "total", mr_json_u64(total), "streams", rows);
}

/* What came to be joined is joined, waits, or was ended for a reason. */
static json_t *parts_of(const struct mr_summary_parts *parts)
{
    json_t *reasons = json_object();

    for (int i = MR_PARTS_JOINED + 1; i < MR_PARTS_COUNT; i++)
        if (parts->of[i])
            json_object_set_new(reasons, mr_parts_name((enum mr_parts)i),
                                mr_json_u64(parts->of[i]));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:b}", "came", mr_json_u64(parts->of[MR_PARTS_CAME]),
        "joined", mr_json_u64(parts->of[MR_PARTS_JOINED]), "waiting",
        mr_json_u64(parts->waiting), "incomplete", mr_json_u64(parts->incomplete),
        "incomplete_by_reason", reasons, "balanced", parts->is_balanced);
}

static json_t *share(const struct mr_summary_share *share)
{
    return json_pack("{s:o, s:o, s:o}", "traces", mr_json_u64(share->traces), "calls",
                     mr_json_u64(share->calls), "time_ns", mr_json_u64(share->time_ns));
}

json_t *mr_api_shares(struct mr_api_request *request)
{
    struct mr_summary_shares shares;
    json_t *rows = json_object();

    mr_summary_make_shares(request->root, &shares);
    for (int i = 0; i < MR_SHARE_COUNT; i++)
        json_object_set_new(rows, mr_share_name((enum mr_share)i), share(&shares.of[i]));
    return json_pack("{s:o, s:o, s:o, s:o}", "generation",
                     mr_json_u64(request->root->head.generation), "all",
                     share(&shares.all), "shares", rows, "path_time_ns",
                     mr_json_u64(shares.path_ns));
}

json_t *mr_api_ledger(struct mr_api_request *request)
{
    uint64_t limit = mr_api_limit(request);
    struct mr_id id;

    if (mr_api_id(request, "source", &id))
        return request->status == 200 ? streams_of(request, id, limit) : NULL;
    struct mr_summary *summary =
        summarise(request, (struct mr_summary_limits){.sources = (size_t)limit,
                                                      .gone_ns = request->api->gone_ns});
    if (!summary)
        return NULL;
    json_t *rows = json_array();
    for (size_t i = 0; i < summary->source_count; i++)
        json_array_append_new(rows, source(&summary->sources[i]));
    json_t *body =
        json_pack("{s:o, s:o, s:o, s:o}", "generation", mr_json_u64(summary->generation),
                  "total", mr_json_u64(summary->source_total), "ledger",
                  mr_json_ledger(&summary->ledger), "sources", rows);
    json_object_set_new(body, "events_past_limit",
                        mr_json_u64(summary->past_limit.events));
    json_object_set_new(body, "source_events_past_limit",
                        mr_json_u64(summary->past_limit.source_events));
    json_object_set_new(body, "notes_past_limit", mr_json_u64(summary->past_limit.notes));
    json_object_set_new(body, "stages", mr_api_stages(request, &summary->ledger));
    json_object_set_new(body, "parts", parts_of(&summary->parts));
    json_object_set_new(body, "tick_ns",
                        mr_json_u64_if(summary->tick_ns > 0, summary->tick_ns));
    mr_summary_free(summary);
    return body;
}
