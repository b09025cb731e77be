/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: the list, and one with its tree of nodes expanded within limits. */
#include "base/sum.h"
#include "master/api_private.h"
#include "master/ranked.h"

#include <stdlib.h>
#include <string.h>

static const char *exactness_name(enum mr_exactness exactness)
{
    switch (exactness) {
    case MR_EXACTNESS_FOLDED:
        return "folded";
    case MR_EXACTNESS_EXACT:
        return "exact";
    case MR_EXACTNESS_SET:
        return "set";
    }
    return "?";
}

static json_t *statistics(const struct mr_shape_stats *stats)
{
    bool timed = mr_sum(stats->ok, stats->failed) > 0;

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "traces",
                     mr_json_u64(mr_sum(stats->ok, stats->failed)), "ok",
                     mr_json_u64(stats->ok), "failed", mr_json_u64(stats->failed),
                     "calls", mr_json_u64(stats->calls), "folded_traces",
                     mr_json_u64(stats->folded), "first_ns",
                     mr_json_u64_if(timed, stats->first_ns), "last_ns",
                     mr_json_u64_if(timed, stats->last_ns), "time_ns",
                     mr_json_u64_if(timed, stats->time.sum), "min_ns",
                     mr_json_u64_if(timed, stats->time.min), "max_ns",
                     mr_json_u64_if(timed, stats->time.max), "time",
                     mr_json_quantiles(&stats->histogram, &stats->time, timed));
}

static json_t *shape(const struct mr_model_root *root, uint32_t index)
{
    const struct mr_model_shape *record = mr_model_shape(root, index);
    const struct mr_model_path *path =
        mr_model_path(root, mr_model_entry(root, record->entry)->path);
    const struct mr_model_scope *scope = mr_model_scope(root, record->scope);
    json_t *object = statistics(&mr_model_shape_stat(root, index)->stats);

    json_object_set_new(object, "id", mr_json_id(record->id));
    json_object_set_new(object, "entry", mr_json_id(path->id));
    json_object_set_new(object, "site", mr_json_site(mr_model_site(root, path->site)));
    json_object_set_new(object, "scope", mr_json_id(scope->id));
    json_object_set_new(object, "app", mr_json_text(scope->app));
    json_object_set_new(object, "version", mr_json_text(scope->version));
    json_object_set_new(object, "host", mr_json_text(scope->host));
    return object;
}

static struct mr_ranked *gather(const struct mr_model_root *root, uint32_t entry,
                                bool by_count, size_t *count)
{
    uint32_t all = mr_model_count(root, MR_MODEL_SHAPE);
    struct mr_ranked *order = calloc((size_t)all + 1, sizeof(*order));

    *count = 0;
    for (uint32_t i = 0; order && i < all; i++) {
        const struct mr_shape_stats *stats = &mr_model_shape_stat(root, i)->stats;

        if (entry == MR_MODEL_NONE || mr_model_shape(root, i)->entry == entry)
            order[(*count)++] = (struct mr_ranked){
                by_count ? mr_sum(stats->ok, stats->failed) : stats->time.sum, i};
    }
    if (order)
        qsort(order, *count, sizeof(*order), mr_ranked_compare);
    return order;
}

static uint32_t chosen_entry(struct mr_api_request *request)
{
    struct mr_id id;

    if (!mr_api_id(request, "entry", &id))
        return MR_MODEL_NONE;
    const struct mr_model_path *path =
        mr_model_path(request->root, mr_model_find(request->root, MR_MODEL_PATH, id));
    if (path && path->parent == MR_MODEL_NONE && path->entry != MR_MODEL_NONE)
        return path->entry;
    mr_api_fail(request, 404, "parameter 'entry': no such entry point");
    return MR_MODEL_NONE;
}

json_t *mr_api_shapes(struct mr_api_request *request)
{
    static const char *const sorts[] = {"time", "count", NULL};
    uint64_t limit = mr_api_limit(request);
    bool by_count = mr_api_choice(request, "sort", sorts) == 1;
    uint32_t entry = chosen_entry(request);
    size_t count;

    if (request->status != 200)
        return NULL;
    struct mr_ranked *order = gather(request->root, entry, by_count, &count);
    if (!order)
        return NULL;
    json_t *rows = json_array();
    for (size_t i = 0; i < count && i < limit; i++)
        json_array_append_new(rows, shape(request->root, order[i].index));
    free(order);
    return json_pack("{s:o, s:o, s:o}", "generation",
                     mr_json_u64(request->root->head.generation), "total",
                     mr_json_u64(count), "shapes", rows);
}

/*
 * A node expanded. Equal subtrees are one node in the model, so the expanded tree can be
 * exponentially larger: `left` bounds it. A child that is not known (yet) shows its id.
 */
static json_t *expand(const struct mr_model_root *root, struct mr_id id, uint64_t depth,
                      uint64_t *left)
{
    const struct mr_model_node *node =
        mr_model_node(root, mr_model_find(root, MR_MODEL_NODE, id));
    json_t *object = json_pack("{s:o, s:b}", "id", mr_json_id(id), "known", node != NULL);

    --*left;
    if (!node)
        return object;
    json_object_set_new(object, "site", mr_json_site(mr_model_site(root, node->site)));
    json_object_set_new(object, "exactness",
                        json_string(exactness_name(node->exactness)));
    json_t *children = json_array();
    uint32_t shown = 0;
    for (; depth && *left && shown < node->child_count; shown++) {
        const struct mr_model_child *child = &node->children[shown];
        json_t *below = expand(root, child->id, depth - 1, left);

        /* null: one or more, the run was folded */
        json_object_set_new(below, "repeat",
                            mr_json_u64_if(child->repeat > 0, child->repeat));
        json_array_append_new(children, below);
    }
    json_object_set_new(object, "children", children);
    if (shown < node->child_count)
        json_object_set_new(object, "more", mr_json_u64(node->child_count - shown));
    return object;
}

struct shape_path {
    const struct mr_model_shape_path *row;
    uint32_t depth; /* below the entry point */
};

static int by_path(const void *a, const void *b)
{
    const struct shape_path *left = a, *right = b;

    if (left->depth != right->depth)
        return left->depth < right->depth ? -1 : 1;
    return left->row->path < right->row->path ? -1 : left->row->path > right->row->path;
}

static json_t *shape_path_json(const struct mr_model_root *root,
                               const struct shape_path *at)
{
    const struct mr_shape_path_stats *stats = &at->row->stats;
    const struct mr_model_path *path = mr_model_path(root, at->row->path);
    const struct mr_model_path *parent = mr_model_path(root, path->parent);

    return json_pack(
        "{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
        mr_json_id(path->id), "parent", parent ? mr_json_id(parent->id) : json_null(),
        "site", mr_json_site(mr_model_site(root, path->site)), "depth", (int)at->depth,
        "ok", mr_json_u64(stats->ok), "failed", mr_json_u64(stats->failed), "self_ns",
        mr_json_u64(stats->self.sum), "self_min_ns", mr_json_u64(stats->self.min),
        "self_max_ns", mr_json_u64(stats->self.max), "total_ns",
        mr_json_u64(stats->total.sum), "total_min_ns", mr_json_u64(stats->total.min),
        "total_max_ns", mr_json_u64(stats->total.max));
}

/* "paths" of a shape: outer before inner; "counted_traces": in how many of its traces they were counted. */
static void add_paths(json_t *object, const struct mr_model_root *root, uint32_t shape,
                      uint64_t limit)
{
    uint32_t all = mr_model_count(root, MR_MODEL_SHAPE_PATH), count = 0;
    struct shape_path *order = calloc((size_t)all + 1, sizeof(*order));
    json_t *rows = json_array();
    uint64_t traces = 0;

    for (uint32_t i = 0; order && i < all; i++) {
        const struct mr_model_shape_path *row = mr_model_shape_path(root, i);

        if (row->shape != shape)
            continue;
        order[count++] = (struct shape_path){row, mr_model_path(root, row->path)->depth};
    }
    if (order)
        qsort(order, count, sizeof(*order), by_path);
    if (count)
        traces = mr_sum(order[0].row->stats.ok, order[0].row->stats.failed);
    for (uint32_t i = 0; i < count && i < limit; i++)
        json_array_append_new(rows, shape_path_json(root, &order[i]));
    free(order);
    json_object_set_new(object, "counted_traces", mr_json_u64(traces));
    json_object_set_new(object, "paths_total", mr_json_u64(count));
    json_object_set_new(object, "paths", rows);
}

/* The shape's statistics in each scope, with the histogram. */
static json_t *scopes_of(const struct mr_model_root *root, uint32_t first, uint64_t limit)
{
    json_t *rows = json_array();

    for (uint32_t i = first; i != MR_MODEL_NONE && limit; limit--) {
        json_t *row = shape(root, i);

        json_object_set_new(
            row, "histogram",
            mr_json_histogram(&mr_model_shape_stat(root, i)->stats.histogram));
        add_paths(row, root, i, limit);
        json_array_append_new(rows, row);
        i = mr_model_shape(root, i)->next_same;
    }
    return rows;
}

json_t *mr_api_shape(struct mr_api_request *request)
{
    uint64_t limit = mr_api_limit(request), left = limit;
    uint64_t depth = mr_api_number(request, "depth", 64, 0, MR_API_DEPTH_MAX);
    const struct mr_model_root *root = request->root;
    struct mr_id id;

    if (request->status != 200)
        return NULL;
    if (mr_id_parse(request->tail, strlen(request->tail), &id) != MR_OK)
        return mr_api_fail(request, 400,
                           "shape: 32 hexadecimal digits are needed after /shapes/");
    uint32_t first = mr_model_find_shape(root, id);
    if (first == MR_MODEL_NONE)
        return mr_api_fail(request, 404, "no such shape");
    json_t *tree = expand(root, id, depth, &left);
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "generation",
                     mr_json_u64(root->head.generation), "id", mr_json_id(id), "nodes",
                     mr_json_u64(limit - left), "scopes", scopes_of(root, first, limit),
                     "tree", tree);
}
