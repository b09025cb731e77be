/* SPDX-License-Identifier: Apache-2.0 */
/* What had not ended when it was last told, and where the oldest of each entry point was: lines, and as JSON. */
#include "cli/summary_private.h"

#include <inttypes.h>
#include <string.h>

#define ROWS_MAX 5
#define CALLS_MAX 12 /* innermost ones of a stack; a recursion is one */

/* How often the name at `at` stands there and right before. */
static uint32_t run_of(const struct mr_summary_open *open, uint32_t at)
{
    uint32_t count = 1;

    while (count <= at && strcmp(open->stack[at - count], open->stack[at]) == 0)
        count++;
    return count;
}

static enum mr_status put_stack(const struct mr_summary_open *open, struct mr_buffer *out)
{
    uint32_t first = open->stack_count, more;
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < CALLS_MAX && first > 0; i++)
        first -= run_of(open, first - 1);
    more = open->stack_elided + first;
    if (more)
        status = mr_buffer_append_format(out, "%" PRIu32 " more > ", more);
    for (uint32_t i = first, end; i < open->stack_count && status == MR_OK; i = end) {
        for (end = i + 1;
             end < open->stack_count && strcmp(open->stack[end], open->stack[i]) == 0;)
            end++;
        status = mr_render_line(out, "%s%s", i > first ? " > " : "", open->stack[i]);
        if (status == MR_OK && end - i > 1)
            status = mr_buffer_append_format(out, " x %" PRIu32, end - i);
    }
    return status;
}

static enum mr_status put_one(const struct mr_summary_open *open, struct mr_buffer *out)
{
    char count[MR_RENDER_SIZE], oldest[MR_RENDER_SIZE], in_call[MR_RENDER_SIZE];
    enum mr_status status = mr_render_line(
        out, "          %s of %s in %s%s%s%s%s", mr_render_count(open->count, count),
        open->name, open->app, *open->version ? " " : "", open->version,
        *open->host ? " on " : "", open->host);

    if (status == MR_OK)
        status = mr_buffer_append_format(out, ", the oldest for %s",
                                         mr_render_ns(open->oldest_for_ns, oldest));
    if (status == MR_OK && open->stack_count > 0)
        status = mr_render_line(
            out, ", for %s in %s: ", mr_render_ns(open->in_call_for_ns, in_call),
            open->stack[open->stack_count - 1]);
    if (status == MR_OK)
        status = put_stack(open, out);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

enum mr_status mr_summary_put_open(const struct mr_summary *summary,
                                   struct mr_buffer *out)
{
    char text[MR_RENDER_SIZE];
    enum mr_status status;

    if (summary->open == 0)
        return MR_OK;
    status = mr_buffer_append_format(out, "Open      %s %s not ended\n",
                                     mr_render_count(summary->open, text),
                                     summary->open == 1 ? "trace has" : "traces have");
    for (size_t i = 0; i < summary->open_count && i < ROWS_MAX && status == MR_OK; i++)
        status = put_one(&summary->opens[i], out);
    if (status == MR_OK && summary->open_count > ROWS_MAX)
        status = mr_buffer_append_format(
            out, "          and of %zu entry points more: --json tells of each\n",
            summary->open_count - ROWS_MAX);
    return status;
}

static json_t *row_json(const struct mr_summary_open *open)
{
    json_t *stack = json_array();

    for (uint32_t i = 0; i < open->stack_count; i++)
        (void)json_array_append_new(stack, mr_summary_text_json(open->stack[i]));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:I}", "name",
        mr_summary_text_json(open->name), "app", mr_summary_text_json(open->app),
        "version", mr_summary_text_json(open->version), "host",
        mr_summary_text_json(open->host), "open", mr_summary_number(open->count),
        "oldest_for_ns", mr_summary_number(open->oldest_for_ns), "in_call_for_ns",
        mr_summary_number(open->in_call_for_ns), "stack", stack, "stack_elided",
        mr_summary_number(open->stack_elided));
}

json_t *mr_summary_open_json(const struct mr_summary *summary)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < summary->open_count; i++)
        (void)json_array_append_new(rows, row_json(&summary->opens[i]));
    return rows;
}
