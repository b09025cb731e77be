/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are called often and do little: they cost more to trace than to run, and
 * their number hides what takes the time. Said once, by who has seen all calls.
 */
#include "base/sum.h"
#include "cli/leave_out.h"
#include "cli/summary_private.h"

#include <stdlib.h>

#define WORST_COUNT 10

struct cheap {
    const struct mr_summary_function *worst[WORST_COUNT]; /* most cheap calls first */
    size_t count;
};

static void add(struct cheap *cheap, const struct mr_summary_function *row)
{
    size_t at;

    if (row->cheap_calls == 0 || row->pruned.sources > 0)
        return;
    if (cheap->count < WORST_COUNT)
        cheap->count++;
    else if (cheap->worst[WORST_COUNT - 1]->cheap_calls >= row->cheap_calls)
        return;
    for (at = cheap->count - 1;
         at > 0 && cheap->worst[at - 1]->cheap_calls < row->cheap_calls; at--)
        cheap->worst[at] = cheap->worst[at - 1];
    cheap->worst[at] = row;
}

static enum mr_status put_table(const struct cheap *cheap, struct mr_buffer *out)
{
    static const struct mr_column columns[] = {
        {"short calls", MR_RIGHT}, {"of its calls", MR_RIGHT}, {"function", MR_LEFT}};
    char text[MR_RENDER_SIZE];
    struct mr_grid grid;
    enum mr_status status;

    mr_grid_init(&grid, columns, MR_ARRAY_COUNT(columns));
    for (size_t i = 0; i < cheap->count; i++) {
        const struct mr_summary_function *row = cheap->worst[i];

        mr_grid_cell(&grid, "%s", mr_render_count(row->cheap_calls, text));
        mr_grid_cell(&grid, "%s", mr_render_share(row->cheap_calls, row->calls, text));
        mr_grid_cell(&grid, "%s", row->name);
    }
    status = mr_grid_render(&grid, 0, out);
    mr_grid_fini(&grid);
    return status;
}

static enum mr_status put_ways(const struct cheap *cheap, struct mr_buffer *out)
{
    const char *names[WORST_COUNT];
    size_t count = 0;
    enum mr_status status;

    for (size_t i = 0; i < cheap->count; i++)
        if (cheap->worst[i]->is_named)
            names[count++] = cheap->worst[i]->name;
    status = mr_leave_out_put(names, count, out);
    return status == MR_OK ? mr_buffer_append_byte(out, '\n') : status;
}

/* Of functions that are pruned already, nothing is left to be said. */
static uint64_t count_pruned(const struct mr_summary *summary)
{
    uint64_t cheap_calls = 0;

    for (size_t i = 0; i < summary->function_count; i++)
        if (summary->functions[i].pruned.sources > 0)
            mr_sum_add(&cheap_calls, summary->functions[i].cheap_calls);
    return cheap_calls;
}

enum mr_status mr_summary_put_cheap(const struct mr_summary *summary,
                                    struct mr_buffer *out)
{
    struct cheap cheap = {.count = 0};
    char share[MR_RENDER_SIZE];
    enum mr_status status;

    /* Ticks of a microsecond tell nothing of single bodies that short. */
    if (summary->tick_ns > 0 ||
        summary->cheap_calls - count_pruned(summary) <= summary->calls / 2)
        return MR_OK;
    for (size_t i = 0; i < summary->function_count; i++)
        add(&cheap, &summary->functions[i]);
    status = mr_buffer_append_format(
        out,
        "Short calls: %s of all have bodies under %u ns (their time, less the %u ns of "
        "the "
        "shortest of all calls):\ntracing them costs more than they do. Most are of\n",
        mr_render_share(summary->cheap_calls, summary->calls, share),
        (unsigned)summary->cheap_ns, (unsigned)summary->least_ns);
    if (status == MR_OK)
        status = put_table(&cheap, out);
    return status == MR_OK ? put_ways(&cheap, out) : status;
}
