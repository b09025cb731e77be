/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/open: the traces that run now, by entry point, and the stack of the oldest of each: what a request that hangs is
 * doing. As the newest delta of each sender told it.
 */
#include "base/clock.h"
#include "master/api_private.h"
#include "master/open_rows.h"

#include <stdlib.h>

/* Outermost first; of a deep one the innermost MR_API_DEPTH_MAX, and how many are left out. */
static json_t *stack_of(const struct mr_model_root *root, uint32_t path, uint64_t *elided)
{
    json_t *array = json_array();
    uint32_t taken = 0;

    *elided = 0;
    for (; path != MR_MODEL_NONE; path = mr_model_path(root, path)->parent) {
        if (taken++ < MR_API_DEPTH_MAX)
            json_array_insert_new(
                array, 0,
                mr_json_site(mr_model_site(root, mr_model_path(root, path)->site)));
        else
            (*elided)++;
    }
    return array;
}

static json_t *age_of(uint64_t now_ns, uint64_t since_ns)
{
    return mr_json_u64_if(since_ns > 0, now_ns > since_ns ? now_ns - since_ns : 0);
}

static json_t *row_of(const struct mr_model_root *root, const struct mr_open_row *row,
                      uint64_t now_ns)
{
    static const char *const ages[MR_OPEN_AGES] = {"1s", "10s", "1min", "10min",
                                                   "longer"};
    const struct mr_model_path *path = mr_model_path(root, row->path);
    const struct mr_model_scope *scope = mr_model_scope(root, path->scope);
    json_t *by_age = json_object();
    uint64_t elided;
    json_t *stack = stack_of(root, row->stack, &elided);

    for (size_t i = 0; i < MR_OPEN_AGES; i++)
        json_object_set_new(by_age, ages[i], mr_json_u64(row->stats.ages[i]));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "entry",
        mr_json_id(path->id), "site", mr_json_site(mr_model_site(root, path->site)),
        "app", mr_json_text(scope->app), "version", mr_json_text(scope->version), "host",
        mr_json_text(scope->host), "open", mr_json_u64(row->stats.count), "by_age",
        by_age, "oldest_for_ns", age_of(now_ns, row->stats.oldest_ns), "in_call_for_ns",
        age_of(now_ns, row->stats.since_ns), "stack", stack, "stack_elided",
        mr_json_u64(elided));
}

json_t *mr_api_open(struct mr_api_request *request)
{
    uint64_t limit = mr_api_limit(request), now_ns = mr_clock_realtime_ns();
    size_t count;
    struct mr_open_row *rows = mr_open_rows_new(request->root, now_ns, &count);
    json_t *array = json_array();

    if (!rows) {
        json_decref(array);
        return NULL;
    }
    for (size_t i = 0; i < count && i < limit; i++)
        json_array_append_new(array, row_of(request->root, &rows[i], now_ns));
    free(rows);
    return json_pack("{s:o, s:o}", "total", mr_json_u64(count), "open", array);
}
