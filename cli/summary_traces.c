/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces over several threads and processes as a table of trees: a line for each joined
 * shape, and one for each part below it with the time that it was waited for.
 */
#include "cli/summary_private.h"

#include "base/sum.h"
#include "net/joined.h"
#include "net/part.h"

static void put_quantile(const struct mr_summary *summary, bool is_there,
                         const struct mr_summary_quantile *quantile, struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];
    const char *shown = "-";

    if (is_there && quantile->value < (double)summary->tick_ns)
        shown = mr_summary_time(summary, 0, 1, text);
    else if (is_there)
        shown = mr_render_range_ns(quantile->value, quantile->low, quantile->high, text);
    mr_grid_cell(grid, "%s", shown);
}

static void put_count(uint64_t count, struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];

    mr_grid_cell(grid, "%s", count ? mr_render_count(count, text) : "");
}

static const char *name_of(const struct mr_summary_part *part)
{
    if (part->flags & MR_JOINED_MISSING)
        return "(not seen)";
    return *part->name ? part->name : "(no call)";
}

/* "  message -> render", indented by depth. */
static void put_name(const struct mr_summary_part *part, struct mr_grid *grid)
{
    bool is_stub = part->flags & MR_JOINED_STUB;

    mr_grid_cell(grid, "%*s%s%s%s%s%s%s", (int)(2 * part->depth), "",
                 part->depth ? mr_edge_kind_name(part->kind) : "",
                 part->depth ? " > " : "", name_of(part),
                 is_stub ? " (outside of call trees)" : "",
                 part->flags & MR_JOINED_RUN ? " *" : "",
                 part->flags & MR_JOINED_LARGE ? " ..." : "");
    mr_grid_cell(grid, "%s", part->app);
    mr_grid_cell(grid, "%s", part->version);
    mr_grid_cell(grid, "%s", part->host);
}

static void put_part(const struct mr_summary *summary, const struct mr_summary_part *part,
                     struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];

    put_count(part->count, grid);
    put_quantile(summary, part->count > 0, &part->p50, grid);
    put_quantile(summary, part->count > 0, &part->p99, grid);
    mr_grid_cell(grid, "%s",
                 part->count ? mr_summary_time(summary, part->max_ns, 1, text) : "-");
    mr_grid_cell(grid, "%s", "");
    mr_grid_cell(grid, "%s", "");
    put_count(part->clamped, grid);
    put_name(part, grid);
}

static void put_trace(const struct mr_summary *summary,
                      const struct mr_summary_trace *trace, struct mr_grid *grid)
{
    char text[MR_RENDER_SIZE];

    mr_grid_cell(
        grid, "%s",
        mr_render_count(mr_sum3(trace->ok, trace->failed, trace->incomplete), text));
    put_quantile(summary, trace->is_timed, &trace->p50, grid);
    put_quantile(summary, trace->is_timed, &trace->p99, grid);
    mr_grid_cell(grid, "%s",
                 trace->is_timed ? mr_summary_time(summary, trace->max_ns, 1, text)
                                 : "-");
    put_count(trace->failed, grid);
    put_count(trace->incomplete, grid);
    mr_grid_cell(grid, "%s", "");
    put_name(&trace->parts[0], grid);
    for (size_t i = 1; i < trace->part_count; i++)
        put_part(summary, &trace->parts[i], grid);
}

static enum mr_status put_totals(const struct mr_summary *summary, struct mr_buffer *out)
{
    static const char *const reasons[MR_PARTS_COUNT] = {
        [MR_PARTS_LIMIT] = "--max-parts",
        [MR_PARTS_TIMEOUT] = "time-out",
        [MR_PARTS_CIRCLE] = "in a circle",
    };
    char ok[MR_RENDER_SIZE], failed[MR_RENDER_SIZE], incomplete[MR_RENDER_SIZE];
    enum mr_status status =
        mr_buffer_append_format(out, "Joined traces: %s ok, %s failed, %s incomplete",
                                mr_render_count(summary->joined_ok, ok),
                                mr_render_count(summary->joined_failed, failed),
                                mr_render_count(summary->joined_incomplete, incomplete));

    if (status == MR_OK && summary->joined_past_limit)
        status = mr_buffer_append_format(out, ", %s more of shapes past --max-joined",
                                         mr_render_count(summary->joined_past_limit, ok));
    if (status == MR_OK && summary->parts.waiting)
        status = mr_buffer_append_format(out, "; %s parts wait for others",
                                         mr_render_count(summary->parts.waiting, ok));
    for (int i = MR_PARTS_JOINED + 1; i < MR_PARTS_COUNT && status == MR_OK; i++)
        if (summary->parts.of[i])
            status = mr_buffer_append_format(out, "; %s parts ended incomplete, %s",
                                             mr_render_count(summary->parts.of[i], ok),
                                             reasons[i]);
    return status == MR_OK
               ? mr_buffer_append_text(out, " (times of messages and hand-offs: from "
                                            "send to receive)\n")
               : status;
}

enum mr_status mr_summary_put_traces(const struct mr_summary *summary,
                                     const struct mr_view *view, struct mr_buffer *out)
{
    static const struct mr_column columns[] = {
        {"count", MR_RIGHT},      {"p50", MR_RIGHT},      {"p99", MR_RIGHT},
        {"max", MR_RIGHT},        {"failed", MR_RIGHT},   {"incomplete", MR_RIGHT},
        {"clamped", MR_RIGHT},    {"trace", MR_LEFT_CUT}, {"application", MR_LEFT_CUT},
        {"version", MR_LEFT_CUT}, {"host", MR_LEFT_CUT},
    };
    size_t shown =
        summary->trace_count < view->entries ? summary->trace_count : view->entries;
    struct mr_grid grid;
    enum mr_status status;

    if (summary->trace_total == 0 && summary->parts.waiting == 0)
        return MR_OK;
    status = put_totals(summary, out);
    mr_grid_init(&grid, columns, MR_ARRAY_COUNT(columns));
    for (size_t i = 0; i < shown; i++)
        put_trace(summary, &summary->joined[i], &grid);
    if (status == MR_OK && shown > 0)
        status = mr_grid_render(&grid, view->width, out);
    mr_grid_fini(&grid);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}
