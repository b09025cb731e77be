/* SPDX-License-Identifier: Apache-2.0 */
/* The counters on spans of a summary: their names, where and why one is absent, and what each function gained. */
#include "master/summary_private.h"

#include <stdlib.h>

static const char *keep(struct mr_arena *arena, const char *text)
{
    const char *copy = mr_arena_copy(arena, mr_span_of_text(text));

    return copy ? copy : "";
}

static const char *name_of(const struct mr_model_span_counter *counter,
                           struct mr_arena *arena)
{
    char text[MR_ID_TEXT_SIZE];

    return keep(arena, counter->known ? counter->name : mr_id_format(counter->id, text));
}

static enum mr_status make_names(const struct mr_model_root *root, struct mr_arena *arena,
                                 struct mr_summary *summary)
{
    uint32_t count = mr_model_count(root, MR_MODEL_SPAN_COUNTER);

    summary->counters = calloc(count, sizeof(*summary->counters));
    if (!summary->counters)
        return MR_ENOMEM;
    summary->counter_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_model_span_counter *counter = mr_model_span_counter(root, i);

        summary->counters[i] =
            (struct mr_summary_counter){.id = counter->id,
                                        .name = name_of(counter, arena),
                                        .unit = keep(arena, counter->unit)};
    }
    return MR_OK;
}

static enum mr_status make_absences(const struct mr_model_root *root,
                                    struct mr_arena *arena, struct mr_summary *summary)
{
    uint32_t count = mr_model_count(root, MR_MODEL_COUNTER_NOTE);

    summary->absences = calloc((size_t)count + 1, sizeof(*summary->absences));
    if (!summary->absences)
        return MR_ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_model_counter_note *note = mr_model_counter_note(root, i);
        const struct mr_model_scope *scope = mr_model_scope(root, note->scope);

        if (note->absent[0] == '\0') {
            summary->counters[note->counter].is_counted = true;
            continue;
        }
        summary->absences[summary->absence_count++] =
            (struct mr_summary_absence){.counter = note->counter,
                                        .app = keep(arena, scope->app),
                                        .version = keep(arena, scope->version),
                                        .host = keep(arena, scope->host),
                                        .reason = keep(arena, note->absent)};
    }
    return MR_OK;
}

/* As a function's times: what a recursive call gained is in its outermost call's total. */
static void add(struct mr_counter_stats *into, const struct mr_counter_stats *from,
                bool is_recursive)
{
    struct mr_counter_stats gained = *from;

    if (is_recursive)
        gained.total.sum = 0;
    mr_counter_stats_merge(into, &gained);
}

static enum mr_status make_functions(const struct mr_model_root *root,
                                     struct mr_summary *summary)
{
    uint32_t sites = mr_model_count(root, MR_MODEL_SITE);
    size_t width = summary->counter_count;
    uint32_t *rows = calloc((size_t)sites + 1, sizeof(*rows)); /* row + 1, by site */

    summary->counts =
        calloc(summary->function_count * width + 1, sizeof(*summary->counts));
    if (!rows || !summary->counts) {
        free(rows);
        return MR_ENOMEM;
    }
    for (size_t i = 0; i < summary->function_count; i++) {
        summary->functions[i].counts = summary->counts + i * width;
        rows[summary->functions[i].line] = (uint32_t)i + 1;
    }
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH_COUNTER); i++) {
        const struct mr_model_path_counter *record = mr_model_path_counter(root, i);
        const struct mr_model_path *path = mr_model_path(root, record->path);
        uint32_t row = rows[path->site];

        if (row)
            add(&summary->functions[row - 1].counts[record->counter], &record->stats,
                path->flags & MR_MODEL_PATH_RECURSIVE);
    }
    free(rows);
    return MR_OK;
}

enum mr_status mr_summary_make_counters(const struct mr_model_root *root,
                                        struct mr_arena *arena,
                                        struct mr_summary *summary)
{
    enum mr_status status;

    if (mr_model_count(root, MR_MODEL_SPAN_COUNTER) == 0)
        return MR_OK;
    status = make_names(root, arena, summary);
    if (status == MR_OK)
        status = make_absences(root, arena, summary);
    return status == MR_OK ? make_functions(root, summary) : status;
}
