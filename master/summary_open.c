/* SPDX-License-Identifier: Apache-2.0 */
/* What is open, and the stack of the oldest of each entry point: of the newest deltas that the model has taken. */
#include <stdlib.h>

#include "master/open_rows.h"
#include "master/summary_private.h"

static const char *keep(struct mr_arena *arena, const char *text)
{
    const char *copy = mr_arena_copy(arena, mr_span_of_text(text));

    return copy ? copy : "";
}

static const char *name_of(const struct mr_model_root *root, struct mr_arena *arena,
                           uint32_t path)
{
    char text[MR_SITE_LABEL_SIZE];
    uint32_t site = mr_model_path(root, path)->site;

    return keep(arena, mr_model_site_label(mr_model_site(root, site), text));
}

static enum mr_status make_stack(const struct mr_model_root *root, struct mr_arena *arena,
                                 uint32_t innermost, struct mr_summary_open *open)
{
    uint32_t depth = 0;

    for (uint32_t path = innermost; path != MR_MODEL_NONE;
         path = mr_model_path(root, path)->parent)
        depth++;
    open->stack_count = depth < MR_SUMMARY_STACK_MAX ? depth : MR_SUMMARY_STACK_MAX;
    open->stack_elided = depth - open->stack_count;
    open->stack = mr_arena_take(arena, (open->stack_count + 1) * sizeof(*open->stack));
    if (!open->stack)
        return MR_ENOMEM;
    for (uint32_t i = open->stack_count; i-- > 0;) {
        open->stack[i] = name_of(root, arena, innermost);
        innermost = mr_model_path(root, innermost)->parent;
    }
    return MR_OK;
}

static uint64_t age(uint64_t told_ns, uint64_t since_ns)
{
    return since_ns > 0 && told_ns > since_ns ? told_ns - since_ns : 0;
}

static enum mr_status make_row(const struct mr_model_root *root, struct mr_arena *arena,
                               const struct mr_open_row *row,
                               struct mr_summary_open *open)
{
    const struct mr_model_scope *scope =
        mr_model_scope(root, mr_model_path(root, row->path)->scope);

    *open = (struct mr_summary_open){
        .name = name_of(root, arena, row->path),
        .app = keep(arena, scope->app),
        .version = keep(arena, scope->version),
        .host = keep(arena, scope->host),
        .count = row->stats.count,
        .oldest_for_ns = age(row->told_ns, row->stats.oldest_ns),
        .in_call_for_ns = age(row->told_ns, row->stats.since_ns)};
    return make_stack(root, arena, row->stack, open);
}

enum mr_status mr_summary_make_open(const struct mr_model_root *root, uint64_t now_ns,
                                    size_t limit, struct mr_arena *arena,
                                    struct mr_summary *summary)
{
    struct mr_open_row *rows;
    enum mr_status status = MR_OK;
    size_t count;

    if (limit == 0)
        return MR_OK;
    rows = mr_open_rows_new(root, now_ns, &count);
    count = count < limit ? count : limit;
    summary->opens = calloc(count + 1, sizeof(*summary->opens));
    if (!rows || !summary->opens)
        status = MR_ENOMEM;
    for (size_t i = 0; i < count && status == MR_OK; i++)
        status = make_row(root, arena, &rows[i], &summary->opens[i]);
    summary->open_count = status == MR_OK ? count : 0;
    free(rows);
    return status;
}
