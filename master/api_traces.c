/* SPDX-License-Identifier: Apache-2.0 */
/* Traces over several threads and processes: the list of joined shapes, and one as a tree with its edges. */
#include "base/sum.h"
#include "master/api_private.h"
#include "master/ranked.h"

#include <stdlib.h>
#include <string.h>

#define TOP 0u /* place of the first node */

static uint64_t count_of(const struct mr_joined_stats *stats)
{
    return mr_sum3(stats->ok, stats->failed, stats->incomplete);
}

static struct mr_ranked *gather(const struct mr_model_root *root, bool by_time,
                                size_t *count)
{
    uint32_t all = mr_model_count(root, MR_MODEL_JOINED);
    struct mr_ranked *order = calloc((size_t)all + 1, sizeof(*order));

    *count = 0;
    for (uint32_t i = 0; order && i < all; i++) {
        const struct mr_joined_stats *stats = &mr_model_joined_stat(root, i)->stats;

        order[(*count)++] =
            (struct mr_ranked){by_time ? stats->time.sum : count_of(stats), i};
    }
    if (order)
        qsort(order, *count, sizeof(*order), mr_ranked_compare);
    return order;
}

static json_t *statistics(const struct mr_joined_stats *stats)
{
    bool timed = mr_sum(stats->ok, stats->failed) > 0;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "traces",
                     mr_json_u64(count_of(stats)), "ok", mr_json_u64(stats->ok), "failed",
                     mr_json_u64(stats->failed), "incomplete",
                     mr_json_u64(stats->incomplete), "first_ns",
                     mr_json_u64(stats->first_ns), "last_ns", mr_json_u64(stats->last_ns),
                     "time_ns", mr_json_u64_if(timed, stats->time.sum), "min_ns",
                     mr_json_u64_if(timed, stats->time.min), "max_ns",
                     mr_json_u64_if(timed, stats->time.max), "time",
                     mr_json_quantiles(&stats->histogram, &stats->time, timed), "slowest",
                     timed && !mr_id_is_zero(stats->slowest) ? mr_json_id(stats->slowest)
                                                             : json_null());
}

/* From send to receive, or from capture to attach; null where no part was seen at its end. */
static json_t *edge(const struct mr_edge_stats *stats)
{
    if (!stats || stats->count == 0)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "count", mr_json_u64(stats->count),
                     "clamped", mr_json_u64(stats->clamped), "time_ns",
                     mr_json_u64(stats->time.sum), "min_ns", mr_json_u64(stats->time.min),
                     "max_ns", mr_json_u64(stats->time.max), "time",
                     mr_json_quantiles(&stats->histogram, &stats->time, true));
}

/* Where the part was: its entry point, or the outer frame it was outside of call trees in. */
static void set_place(json_t *object, const struct mr_model_root *root,
                      const struct mr_joined_node *node)
{
    const struct mr_model_path *path =
        mr_model_path(root, mr_model_find(root, MR_MODEL_PATH, node->path));
    const struct mr_model_scope *scope = path ? mr_model_scope(root, path->scope) : NULL;

    json_object_set_new(object, "entry",
                        mr_id_is_zero(node->path) ? json_null() : mr_json_id(node->path));
    json_object_set_new(object, "site",
                        path ? mr_json_site(mr_model_site(root, path->site))
                             : json_null());
    json_object_set_new(object, "app", scope ? mr_json_text(scope->app) : json_null());
    json_object_set_new(object, "version",
                        scope ? mr_json_text(scope->version) : json_null());
    json_object_set_new(object, "host", scope ? mr_json_text(scope->host) : json_null());
    json_object_set_new(object, "shape",
                        mr_id_is_zero(node->node) ? json_null() : mr_json_id(node->node));
}

static json_t *node_of(const struct mr_model_root *root, uint32_t joined, uint32_t place)
{
    const struct mr_joined_node *node = &mr_model_joined(root, joined)->nodes[place];
    json_t *object =
        json_pack("{s:s, s:b, s:b, s:b, s:b}", "kind", mr_edge_kind_name(node->kind),
                  "missing", (node->flags & MR_JOINED_MISSING) != 0, "call_tree",
                  (node->flags & (MR_JOINED_MISSING | MR_JOINED_STUB)) == 0, "run",
                  (node->flags & MR_JOINED_RUN) != 0, "large",
                  (node->flags & MR_JOINED_LARGE) != 0);

    set_place(object, root, node);
    json_object_set_new(object, "edge",
                        place == TOP ? json_null()
                                     : edge(mr_model_edge_of(root, joined, place)));
    return object;
}

/* Shallow trees of at most MR_JOINED_NODES_MAX nodes: recursion is bounded by that. */
static json_t *tree(const struct mr_model_root *root, uint32_t joined, uint32_t *place)
{
    const struct mr_model_joined *record = mr_model_joined(root, joined);
    uint32_t children = record->nodes[*place].children;
    json_t *object = node_of(root, joined, (*place)++), *list = json_array();

    for (uint32_t i = 0; i < children && *place < record->node_count; i++)
        json_array_append_new(list, tree(root, joined, place));
    json_object_set_new(object, "children", list);
    return object;
}

static json_t *row_of(const struct mr_model_root *root, uint32_t joined)
{
    const struct mr_model_joined *record = mr_model_joined(root, joined);
    uint32_t place = TOP;
    json_t *object = statistics(&mr_model_joined_stat(root, joined)->stats);

    json_object_set_new(object, "id", mr_json_id(record->id));
    json_object_set_new(object, "nodes", mr_json_u64(record->node_count));
    json_object_set_new(object, "tree", tree(root, joined, &place));
    return object;
}

json_t *mr_api_traces(struct mr_api_request *request)
{
    static const char *const sorts[] = {"count", "time", NULL};
    uint64_t limit = mr_api_limit(request);
    bool by_time = mr_api_choice(request, "sort", sorts) == 1;
    const struct mr_model_root *root = request->root;
    size_t count;

    if (request->status != 200)
        return NULL;
    struct mr_ranked *order = gather(root, by_time, &count);
    if (!order)
        return NULL;
    json_t *rows = json_array();
    for (size_t i = 0; i < count && i < limit; i++)
        json_array_append_new(rows, row_of(root, order[i].index));
    free(order);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "generation",
                     mr_json_u64(root->head.generation), "total", mr_json_u64(count),
                     "past_max_joined", mr_json_u64(mr_summary_traces_past_limit(root)),
                     "parts_waiting", mr_json_u64(root->parts_waiting), "traces", rows);
}

json_t *mr_api_trace(struct mr_api_request *request)
{
    const struct mr_model_root *root = request->root;
    struct mr_id id;

    if (mr_id_parse(request->tail, strlen(request->tail), &id) != MR_OK)
        return mr_api_fail(request, 400,
                           "trace: 32 hexadecimal digits are needed after /traces/");
    uint32_t joined = mr_model_find(root, MR_MODEL_JOINED, id);
    if (joined == MR_MODEL_NONE)
        return mr_api_fail(request, 404, "no such joined shape");
    json_t *object = row_of(root, joined);
    json_object_set_new(
        object, "histogram",
        mr_json_histogram(&mr_model_joined_stat(root, joined)->stats.histogram));
    json_object_set_new(object, "generation", mr_json_u64(root->head.generation));
    return object;
}
