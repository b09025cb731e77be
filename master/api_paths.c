/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths as trees below their entry points, or as a flat list. A tree is walked depth
 * first, children with the largest total first, until `limit` nodes are out; a node whose
 * children are not all shown says how many are missing in "more".
 */
#include "base/assert.h"
#include "master/api_private.h"
#include "master/ranked.h"

#include <stdlib.h>

struct tree {
    const struct mr_model_root *root;
    struct mr_site_pruned *pruned; /* by site; NULL: none ever was */
    uint64_t left;                 /* nodes that may still be shown */
    uint64_t depth;
};

static struct mr_ranked rank(const struct mr_model_root *root, uint32_t path)
{
    return (struct mr_ranked){.weight = mr_model_path_stat(root, path)->stats.total.sum,
                              .index = path};
}

static json_t *node(const struct tree *tree, uint32_t index)
{
    const struct mr_model_root *root = tree->root;
    const struct mr_model_path *path = mr_model_path(root, index);
    json_t *object = mr_json_path_stats(&mr_model_path_stat(root, index)->stats);

    json_object_set_new(object, "id", mr_json_id(path->id));
    json_object_set_new(object, "site", mr_json_site(mr_model_site(root, path->site)));
    if (path->flags & MR_DELTA_PATH_OUTER)
        json_object_set_new(object, "outer", json_true());
    mr_json_add_path_pruned(object, tree->pruned, root, index);
    mr_json_add_path_counters(object, root, index);
    return object;
}

static json_t *subtree(struct tree *tree, uint32_t index, uint64_t depth);

/* The children's array; *more is how many are not in it. */
static json_t *children_of(struct tree *tree, uint32_t index, uint64_t depth,
                           uint64_t *more)
{
    uint32_t first = mr_model_path(tree->root, index)->first_child;
    size_t count = 0, at = 0;
    json_t *array = json_array();

    for (uint32_t i = first; i != MR_MODEL_NONE;
         i = mr_model_path(tree->root, i)->next_sibling)
        count++;
    *more = count;
    struct mr_ranked *order = depth && count ? calloc(count, sizeof(*order)) : NULL;
    if (!order)
        return array;
    for (uint32_t i = first; i != MR_MODEL_NONE;
         i = mr_model_path(tree->root, i)->next_sibling)
        order[at++] = rank(tree->root, i);
    qsort(order, count, sizeof(*order), mr_ranked_compare);
    for (at = 0; at < count && tree->left; at++)
        json_array_append_new(array, subtree(tree, order[at].index, depth - 1));
    *more = count - at;
    free(order);
    return array;
}

static json_t *subtree(struct tree *tree, uint32_t index, uint64_t depth)
{
    uint64_t more;
    json_t *object = node(tree, index);

    tree->left--;
    json_object_set_new(object, "children", children_of(tree, index, depth, &more));
    if (more)
        json_object_set_new(object, "more", mr_json_u64(more));
    return object;
}

/* Whether the path is one that the request asks for. */
struct choice {
    uint32_t entry, scope; /* MR_MODEL_NONE: any */
};

static bool is_chosen(const struct choice *choice, const struct mr_model_path *path)
{
    return (choice->entry == MR_MODEL_NONE || path->entry == choice->entry) &&
           (choice->scope == MR_MODEL_NONE || path->scope == choice->scope);
}

/* Reads ?entry= and ?scope=; a 404 where there is none. */
static void choose(struct mr_api_request *request, struct choice *choice)
{
    const struct mr_model_root *root = request->root;
    struct mr_id id;

    *choice = (struct choice){MR_MODEL_NONE, MR_MODEL_NONE};
    if (mr_api_id(request, "entry", &id)) {
        const struct mr_model_path *path =
            mr_model_path(root, mr_model_find(root, MR_MODEL_PATH, id));

        if (path && path->parent == MR_MODEL_NONE)
            choice->entry = path->entry;
        if (choice->entry == MR_MODEL_NONE)
            mr_api_fail(request, 404, "parameter 'entry': no such entry point");
    }
    if (mr_api_id(request, "scope", &id)) {
        choice->scope = mr_model_find(root, MR_MODEL_SCOPE, id);
        if (choice->scope == MR_MODEL_NONE)
            mr_api_fail(request, 404, "parameter 'scope': no such scope");
    }
}

/* The chosen paths, by weight; only those without a parent if `tops`. */
static struct mr_ranked *gather(const struct mr_model_root *root,
                                const struct choice *choice, bool tops, size_t *count)
{
    uint32_t all = mr_model_count(root, MR_MODEL_PATH);
    struct mr_ranked *order = calloc((size_t)all + 1, sizeof(*order));

    *count = 0;
    for (uint32_t i = 0; order && i < all; i++) {
        const struct mr_model_path *path = mr_model_path(root, i);

        if (is_chosen(choice, path) && (!tops || path->parent == MR_MODEL_NONE))
            order[(*count)++] = rank(root, i);
    }
    if (order)
        qsort(order, *count, sizeof(*order), mr_ranked_compare);
    return order;
}

static json_t *list_node(const struct tree *tree, uint32_t index)
{
    const struct mr_model_root *root = tree->root;
    const struct mr_model_path *path = mr_model_path(root, index);
    json_t *object = node(tree, index);

    json_object_set_new(object, "parent",
                        path->parent == MR_MODEL_NONE
                            ? json_null()
                            : mr_json_id(mr_model_path(root, path->parent)->id));
    json_object_set_new(object, "depth", mr_json_u64(path->depth));
    return object;
}

json_t *mr_api_paths(struct mr_api_request *request)
{
    static const char *const forms[] = {"tree", "list", NULL};
    uint64_t limit = mr_api_limit(request);
    uint64_t depth = mr_api_number(request, "depth", 64, 0, MR_API_DEPTH_MAX);
    bool is_list = mr_api_choice(request, "form", forms) == 1;
    struct tree tree = {.root = request->root, .left = limit, .depth = depth};
    struct choice choice;
    size_t count, at = 0;

    choose(request, &choice);
    if (request->status != 200)
        return NULL;
    if (mr_site_pruned_new(tree.root, &tree.pruned) != MR_OK)
        return NULL;
    struct mr_ranked *order = gather(tree.root, &choice, !is_list, &count);
    if (!order) {
        free(tree.pruned);
        return NULL;
    }
    json_t *rows = json_array();
    for (; at < count && tree.left; at++) {
        if (is_list)
            tree.left--;
        json_array_append_new(rows, is_list ? list_node(&tree, order[at].index)
                                            : subtree(&tree, order[at].index, depth));
    }
    free(order);
    free(tree.pruned);
    json_t *body = json_pack("{s:o, s:o, s:o, s:o, s:o}", "generation",
                             mr_json_u64(tree.root->head.generation), "total",
                             mr_json_u64(mr_model_count(tree.root, MR_MODEL_PATH)),
                             "shown", mr_json_u64(limit - tree.left), "more",
                             mr_json_u64(count - at), "paths", rows);
    mr_json_add_counters(body, tree.root);
    return body;
}
