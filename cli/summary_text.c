/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/summary_text.h"

#include "base/assert.h"
#include "base/sum.h"
#include "cli/render.h"
#include "cli/summary_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_self(const void *a, const void *b)
{
    const struct mr_summary_function *x = a, *y = b;

    if (x->self_ns != y->self_ns)
        return x->self_ns > y->self_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_total(const void *a, const void *b)
{
    const struct mr_summary_function *x = a, *y = b;

    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_calls(const void *a, const void *b)
{
    const struct mr_summary_function *x = a, *y = b;

    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct mr_summary_function *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : mr_id_compare(x->site, y->site);
}

void mr_summary_sort(struct mr_summary *summary, enum mr_view_sort sort)
{
    static int (*const orders[])(const void *, const void *) = {by_self, by_total,
                                                                by_calls, by_name};

    MR_ASSERT((size_t)sort < MR_ARRAY_COUNT(orders));
    if (summary->function_count > 1)
        qsort(summary->functions, summary->function_count, sizeof(*summary->functions),
              orders[sort]);
}

static enum mr_status put_run(const struct mr_run *run, struct mr_buffer *out)
{
    char wall[MR_RENDER_SIZE], plain[MR_RENDER_SIZE];
    enum mr_status status;

    if (!run)
        return MR_OK;
    status = mr_render_line(out, "%s\n", run->command);
    if (status == MR_OK)
        status =
            mr_buffer_append_format(out, "ran for %s, exit status %d\n",
                                    mr_render_ns(run->wall_ns, wall), run->exit_status);
    if (status == MR_OK && run->plain_ns != 0)
        status = mr_buffer_append_format(
            out,
            "untraced it ran for %s: %.2f times slower (its hooks cost something in that "
            "run, too)\n",
            mr_render_ns(run->plain_ns, plain),
            (double)run->wall_ns / (double)run->plain_ns);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

static enum mr_status put_title(const char *title, size_t shown, size_t all,
                                struct mr_buffer *out)
{
    char count[MR_RENDER_SIZE];

    if (shown == all)
        return mr_buffer_append_format(out, "%s\n", title);
    return mr_buffer_append_format(out, "%s (%zu of %s)\n", title, shown,
                                   mr_render_count(all, count));
}

/* The last part of a path. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Further counters are in --json alone. */
#define COUNTER_COLUMNS_MAX 6

static size_t counter_columns(const struct mr_summary *summary)
{
    return summary->counter_count < COUNTER_COLUMNS_MAX ? summary->counter_count
                                                        : COUNTER_COLUMNS_MAX;
}

static const char *render_count_of(const struct mr_summary *summary,
                                   const struct mr_summary_function *row, size_t counter,
                                   char *text)
{
    const struct mr_counter_stats *stats = &row->counts[counter];

    if (stats->calls == 0)
        return summary->counters[counter].is_counted ? "-" : "absent";
    return strcmp(summary->counters[counter].unit, "ns") == 0
               ? mr_render_ns(stats->self.sum, text)
               : mr_render_count(stats->self.sum, text);
}

/* A mean is told finer than one time: but not where all that it is of was below a tick. */
static const char *render_mean(const struct mr_summary *summary, uint64_t sum_ns,
                               uint64_t calls, char *text)
{
    return sum_ns == 0 ? mr_summary_time(summary, 0, 1, text)
                       : mr_render_ns(sum_ns / calls, text);
}

/* Of the build id as much as tells two apart. */
#define BUILD_DIGITS 8

static void put_where(const struct mr_summary_function *row, struct mr_grid *grid)
{
    const char *build = !row->has_twin ? "" : *row->build ? row->build : "none";
    const char *before = *build ? " (build " : "", *after = *build ? ")" : "";

    if (*row->file && row->line)
        mr_grid_cell(grid, "%s:%" PRIu32 "%s%.*s%s", file_name(row->file), row->line,
                     before, BUILD_DIGITS, build, after);
    else
        mr_grid_cell(grid, "%s%s%.*s%s", row->module, before, BUILD_DIGITS, build, after);
}

static void put_function_row(const struct mr_summary *summary,
                             const struct mr_summary_function *row, struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];
    uint64_t timed = mr_sum(row->ok, row->failed);

    mr_grid_cell(grid, "%s",
                 row->is_timed ? mr_summary_time(summary, row->self_ns, timed, text)
                               : "-");
    mr_grid_cell(grid, "%s", mr_render_share(row->self_ns, summary->self_ns, text));
    mr_grid_cell(grid, "%s",
                 row->is_timed ? mr_summary_time(summary, row->total_ns, timed, text)
                               : "-");
    mr_grid_cell(grid, "%s", mr_render_count(row->calls, text));
    mr_grid_cell(grid, "%s",
                 row->is_timed ? render_mean(summary, row->self_ns, timed, text) : "-");
    for (size_t i = 0; i < counter_columns(summary); i++)
        mr_grid_cell(grid, "%s", render_count_of(summary, row, i, text));
    mr_grid_cell(grid, "%s%s%s", row->name, row->is_outer ? " (outer)" : "",
                 row->pruned.sources ? " (pruned)" : "");
    put_where(row, grid);
}

#define FUNCTION_COLUMNS 7
#define COLUMNS_BEFORE_COUNTERS 5

/* Self gains of the counters stand behind self time per call. */
static size_t function_columns(const struct mr_summary *summary,
                               struct mr_column *columns)
{
    static const struct mr_column fixed[FUNCTION_COLUMNS] = {
        {"self", MR_RIGHT},     {"share", MR_RIGHT},     {"total", MR_RIGHT},
        {"calls", MR_RIGHT},    {"self/call", MR_RIGHT}, {"function", MR_LEFT_CUT},
        {"where", MR_LEFT_CUT},
    };
    size_t count = 0;

    for (size_t i = 0; i < FUNCTION_COLUMNS; i++) {
        for (size_t c = 0; i == COLUMNS_BEFORE_COUNTERS && c < counter_columns(summary);
             c++)
            columns[count++] = (struct mr_column){summary->counters[c].name, MR_RIGHT};
        columns[count++] = fixed[i];
    }
    return count;
}

static enum mr_status put_functions(const struct mr_summary *summary,
                                    const struct mr_view *view, struct mr_buffer *out)
{
    struct mr_column columns[FUNCTION_COLUMNS + COUNTER_COLUMNS_MAX];
    size_t column_count = function_columns(summary, columns);
    static const char *const titles[] = {"Functions by self time",
                                         "Functions by total time", "Functions by calls",
                                         "Functions by name"};
    size_t shown = summary->function_count < view->functions ? summary->function_count
                                                             : view->functions;
    struct mr_grid grid;
    enum mr_status status;

    if (shown == 0)
        return MR_OK;
    mr_grid_init(&grid, columns, column_count);
    for (size_t i = 0; i < shown; i++)
        put_function_row(summary, &summary->functions[i], &grid);
    status = put_title(titles[view->sort], shown, summary->function_total, out);
    if (status == MR_OK)
        status = mr_grid_render(&grid, view->width, out);
    mr_grid_fini(&grid);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

static void put_quantile(const struct mr_summary *summary,
                         const struct mr_summary_entry *row,
                         const struct mr_summary_quantile *quantile, struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];
    const char *shown = "-";

    if (row->is_timed && quantile->value < (double)summary->tick_ns)
        shown = mr_summary_time(summary, 0, 1, text);
    else if (row->is_timed)
        shown = mr_render_range_ns(quantile->value, quantile->low, quantile->high, text);
    mr_grid_cell(grid, "%s", shown);
}

static void put_entry_row(const struct mr_summary *summary,
                          const struct mr_summary_entry *row, struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];
    uint64_t timed = mr_sum(row->ok, row->failed);

    mr_grid_cell(grid, "%s", mr_render_count(row->count, text));
    put_quantile(summary, row, &row->p50, grid);
    put_quantile(summary, row, &row->p99, grid);
    mr_grid_cell(grid, "%s",
                 row->is_timed ? mr_summary_time(summary, row->max_ns, 1, text) : "-");
    mr_grid_cell(grid, "%s",
                 row->is_timed ? mr_summary_time(summary, row->time_ns, timed, text)
                               : "-");
    mr_grid_cell(grid, "%s", row->failed ? mr_render_count(row->failed, text) : "");
    mr_grid_cell(grid, "%s",
                 row->incomplete ? mr_render_count(row->incomplete, text) : "");
    mr_grid_cell(grid, "%s", row->open ? mr_render_count(row->open, text) : "");
    mr_grid_cell(grid, "%s", mr_render_count(row->shapes, text));
    mr_grid_cell(grid, "%s", mr_render_count(row->paths, text));
    mr_grid_cell(grid, "%s", row->name);
    mr_grid_cell(grid, "%s", row->app);
    mr_grid_cell(grid, "%s", row->version);
    mr_grid_cell(grid, "%s", row->host);
}

static enum mr_status put_entries(const struct mr_summary *summary,
                                  const struct mr_view *view, struct mr_buffer *out)
{
    static const struct mr_column columns[] = {
        {"count", MR_RIGHT},
        {"p50", MR_RIGHT},
        {"p99", MR_RIGHT},
        {"max", MR_RIGHT},
        {"total", MR_RIGHT},
        {"failed", MR_RIGHT},
        {"incomplete", MR_RIGHT},
        {"open", MR_RIGHT},
        {"shapes", MR_RIGHT},
        {"paths", MR_RIGHT},
        {"entry point", MR_LEFT_CUT},
        {"application", MR_LEFT_CUT},
        {"version", MR_LEFT_CUT},
        {"host", MR_LEFT_CUT},
    };
    size_t shown =
        summary->entry_count < view->entries ? summary->entry_count : view->entries;
    struct mr_grid grid;
    enum mr_status status;

    if (shown == 0)
        return MR_OK;
    mr_grid_init(&grid, columns, MR_ARRAY_COUNT(columns));
    for (size_t i = 0; i < shown; i++)
        put_entry_row(summary, &summary->entries[i], &grid);
    status = put_title("Entry points", shown, summary->entry_total, out);
    if (status == MR_OK)
        status = mr_grid_render(&grid, view->width, out);
    mr_grid_fini(&grid);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

static enum mr_status put_coverage(const struct mr_summary *summary,
                                   struct mr_buffer *out)
{
    static const char *const names[MR_COVERAGE_COUNT] = {
        "in whole shapes", "in folded shapes", "in paths only", "incomplete"};
    uint64_t time_ns = 0;
    char text[MR_RENDER_SIZE];
    enum mr_status status;

    for (int i = 0; i < MR_COVERAGE_COUNT; i++)
        mr_sum_add(&time_ns, summary->coverage.time_ns[i]);
    status = mr_buffer_append_format(out, "Traces    %s",
                                     mr_render_count(summary->traces, text));
    for (int i = 0; status == MR_OK && i < MR_COVERAGE_COUNT; i++)
        status = mr_buffer_append_format(
            out, "%s%s %s", i == 0 ? "; of their time " : ", ",
            mr_render_share(summary->coverage.time_ns[i], time_ns, text), names[i]);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

/* Of calls or of time, what lies where; what is nowhere is not said. */
static enum mr_status put_share(const struct mr_summary_shares *shares, bool is_time,
                                struct mr_buffer *out)
{
    static const char *const names[MR_SHARE_COUNT] = {
        "in shapes that recur", "in shapes seen once", "in shapes not kept",
        "in paths only", "incomplete"};
    uint64_t all = is_time ? shares->all.time_ns : shares->all.calls;
    const char *separator = is_time ? "          of time " : "Shares    of calls ";
    enum mr_status status = MR_OK;
    char text[MR_RENDER_SIZE];

    for (int i = 0; i < MR_SHARE_COUNT && status == MR_OK; i++) {
        uint64_t of = is_time ? shares->of[i].time_ns : shares->of[i].calls;

        if (of == 0)
            continue;
        status = mr_buffer_append_format(out, "%s%s %s", separator,
                                         mr_render_share(of, all, text), names[i]);
        separator = ", ";
    }
    if (status == MR_OK && is_time)
        status = mr_buffer_append_format(out, "; on a path %s",
                                         mr_render_share(shares->path_ns, all, text));
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

static enum mr_status put_shares(const struct mr_summary *summary, struct mr_buffer *out)
{
    enum mr_status status = MR_OK;

    if (summary->shares.all.calls)
        status = put_share(&summary->shares, false, out);
    if (status == MR_OK && summary->shares.all.time_ns)
        status = put_share(&summary->shares, true, out);
    return status;
}

static enum mr_status put_loss(const struct mr_summary *summary, struct mr_buffer *out)
{
    const struct mr_summary_ledger *ledger = &summary->ledger;
    char lost[MR_RENDER_SIZE], last[MR_RENDER_SIZE], share[MR_RENDER_SIZE];
    const char *separator = ": ";
    enum mr_status status;

    if (ledger->lost_all == 0)
        return mr_buffer_append_format(out, "Lost      none of %s events\n",
                                       mr_render_count(ledger->last, last));
    status = mr_buffer_append_format(
        out, "Lost      %s of %s events (%s)", mr_render_count(ledger->lost_all, lost),
        mr_render_count(ledger->last, last),
        mr_render_share(ledger->lost_all, ledger->last, share));
    for (uint32_t i = 0; status == MR_OK && i < MR_LOSS_REASON_COUNT; i++) {
        if (ledger->lost[i] == 0)
            continue;
        status =
            mr_buffer_append_format(out, "%s%s %s", separator, mr_loss_reason_name(i),
                                    mr_render_count(ledger->lost[i], lost));
        separator = ", ";
    }
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

/* By the accounts of probes: nothing is said where there are none. */
static enum mr_status put_sent(const struct mr_summary_ledger *ledger,
                               struct mr_buffer *out)
{
    char sent[MR_RENDER_SIZE], missing[MR_RENDER_SIZE], excess[MR_RENDER_SIZE];
    enum mr_status status = MR_OK;

    if (ledger->sources_told)
        status = mr_buffer_append_format(
            out,
            "Sent      %s events, by the accounts of %" PRIu64 " of %" PRIu64
            " sources\n",
            mr_render_count(ledger->sent, sent), ledger->sources_told, ledger->sources);
    if (status == MR_OK && ledger->missing)
        status = mr_buffer_append_format(out,
                                         "Missing   %s events were sent and are not "
                                         "here: with a worker, or gone with it\n",
                                         mr_render_count(ledger->missing, missing));
    if (status == MR_OK && ledger->excess)
        status = mr_buffer_append_format(
            out, "Excess    %s events are here and were never told of\n",
            mr_render_count(ledger->excess, excess));
    return status;
}

static enum mr_status put_died(const struct mr_summary_ledger *ledger,
                               struct mr_buffer *out)
{
    char died[MR_RENDER_SIZE], all[MR_RENDER_SIZE];

    if (ledger->sources_died == 0)
        return MR_OK;
    return mr_buffer_append_format(
        out,
        "Died      %s of %s sources left without a goodbye (killed, crashed, or out of "
        "time at the end): what they had not sent is in no number here\n",
        mr_render_count(ledger->sources_died, died),
        mr_render_count(ledger->sources, all));
}

static enum mr_status put_events_past_limit(const struct mr_summary *summary,
                                            struct mr_buffer *out)
{
    const struct mr_summary_past_limit *past = &summary->past_limit;
    char text[MR_RENDER_SIZE], frames[MR_RENDER_SIZE];
    enum mr_status status = MR_OK;

    if (past->events)
        status = mr_buffer_append_format(
            out,
            "Not kept  rows of streams past the master's --max-streams: their %s events "
            "are in the sums alone\n",
            mr_render_count(past->events, text));
    if (status == MR_OK && past->source_events)
        status = mr_buffer_append_format(
            out, "Not kept  %s events of sources past the master's --max-sources\n",
            mr_render_count(past->source_events, text));
    if (status == MR_OK && past->notes)
        status = mr_buffer_append_format(
            out,
            "Not kept  notes past the master's --max-notes (%s came): of what is told "
            "of sources and functions some is missing\n",
            mr_render_count(past->notes, text));
    if (status == MR_OK && (past->rows_too_large || past->frames_too_large))
        status = mr_buffer_append_format(
            out,
            "Not kept  %s rows and %s frames of deltas, larger than the --max-frame of "
            "the next level: calls and traces are missing\n",
            mr_render_count(past->rows_too_large, text),
            mr_render_count(past->frames_too_large, frames));
    return status;
}

static enum mr_status put_ledger(const struct mr_summary *summary, struct mr_buffer *out)
{
    const struct mr_summary_ledger *ledger = &summary->ledger;
    char last[MR_RENDER_SIZE], reduced[MR_RENDER_SIZE], lost[MR_RENDER_SIZE];
    enum mr_status status = mr_buffer_append_format(
        out, "Ledger    %s: %s events = %s reduced + %" PRId64 " held + %s lost",
        ledger->is_balanced ? "balanced" : "NOT BALANCED",
        mr_render_count(ledger->last, last), mr_render_count(ledger->reduced, reduced),
        ledger->held, mr_render_count(ledger->lost_all, lost));

    if (status == MR_OK)
        status =
            mr_buffer_append_format(out, "; %" PRIu64 " of %" PRIu64 " streams balanced",
                                    ledger->streams_balanced, ledger->streams);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

static enum mr_status put_absences(const struct mr_summary *summary,
                                   struct mr_buffer *out)
{
    enum mr_status status = MR_OK;

    for (size_t i = 0; i < summary->absence_count && status == MR_OK; i++) {
        const struct mr_summary_absence *absence = &summary->absences[i];
        const struct mr_summary_counter *counter = &summary->counters[absence->counter];

        status =
            mr_render_line(out, "Counter   %s %s in %s%s%s: %s\n", counter->name,
                           counter->is_counted ? "partly absent" : "absent", absence->app,
                           *absence->host ? " on " : "", absence->host, absence->reason);
    }
    return status;
}

/* What only sometimes is there to be told. */
static enum mr_status put_remarks(const struct mr_summary *summary, struct mr_buffer *out)
{
    char text[MR_RENDER_SIZE], traces[MR_RENDER_SIZE];
    enum mr_status status = MR_OK;

    if (summary->past_limit.calls || summary->past_limit.traces)
        status =
            mr_buffer_append_format(out,
                                    "Not kept  %s calls and %s traces more: of paths "
                                    "past the master's --max-paths, "
                                    "--max-sites or --max-scopes\n",
                                    mr_render_count(summary->past_limit.calls, text),
                                    mr_render_count(summary->past_limit.traces, traces));
    if (status == MR_OK && summary->incomplete_calls)
        status = mr_buffer_append_format(
            out, "Calls     %s without an end: counted, not timed\n",
            mr_render_count(summary->incomplete_calls, text));
    if (status == MR_OK)
        status = mr_summary_put_open(summary, out);
    if (status == MR_OK && summary->refused)
        status =
            mr_buffer_append_format(out, "Refused   %s items past a limit of the model\n",
                                    mr_render_count(summary->refused, text));
    return status;
}

enum mr_status mr_summary_text(struct mr_summary *summary, const struct mr_run *run,
                               const struct mr_view *view, struct mr_buffer *out)
{
    enum mr_status status = put_run(run, out);

    mr_summary_sort(summary, view->sort);
    if (status == MR_OK && summary->function_total == 0)
        status = mr_buffer_append_text(out, "No call was recorded.\n\n");
    if (status == MR_OK)
        status = put_functions(summary, view, out);
    if (status == MR_OK)
        status = put_entries(summary, view, out);
    if (status == MR_OK)
        status = mr_summary_put_traces(summary, view, out);
    if (status == MR_OK)
        status = mr_summary_put_pruned(summary, out);
    if (status == MR_OK)
        status = mr_summary_put_cheap(summary, out);
    if (status == MR_OK)
        status = put_coverage(summary, out);
    if (status == MR_OK)
        status = put_shares(summary, out);
    if (status == MR_OK)
        status = mr_summary_put_kept(summary, out);
    if (status == MR_OK)
        status = put_remarks(summary, out);
    if (status == MR_OK)
        status = put_absences(summary, out);
    if (status == MR_OK)
        status = mr_summary_put_clocks(summary, out);
    if (status == MR_OK)
        status = put_loss(summary, out);
    if (status == MR_OK)
        status = put_sent(&summary->ledger, out);
    if (status == MR_OK)
        status = put_died(&summary->ledger, out);
    if (status == MR_OK)
        status = put_events_past_limit(summary, out);
    return status == MR_OK ? put_ledger(summary, out) : status;
}
