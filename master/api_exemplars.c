/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/exemplars: traces that are kept, the slowest first; and one of them with its calls. A trace may stand in several
 * places, one for each reason, with more of its calls in one than in another: who asks has all that fit a frame, and of
 * the oldest that were asked for only the root call is left. It is one row, with the calls of the fullest.
 */
#include "base/sum.h"
#include "master/api_private.h"

#include <stdlib.h>
#include <string.h>

static uint32_t reasons_of(const struct mr_model_root *root,
                           const struct mr_exemplar *exemplar)
{
    uint32_t why = 0;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_EXEMPLAR); i++) {
        const struct mr_exemplar *other = &mr_model_exemplar(root, i)->exemplar;

        if (mr_exemplar_is_same(other, exemplar))
            why |= other->why;
    }
    return why;
}

static json_t *reasons_json(uint32_t why)
{
    json_t *array = json_array();

    if (why & MR_EXEMPLAR_FIRST)
        json_array_append_new(array, json_string("first"));
    if (why & MR_EXEMPLAR_SLOWEST)
        json_array_append_new(array, json_string("slowest"));
    if (why & MR_EXEMPLAR_ASKED)
        json_array_append_new(array, json_string("asked"));
    return array;
}

static const char *status_name(enum mr_exemplar_status status)
{
    static const char *const names[MR_EXEMPLAR_STATUS_COUNT] = {
        [MR_EXEMPLAR_OK] = "ok",
        [MR_EXEMPLAR_FAILED] = "failed",
        [MR_EXEMPLAR_INCOMPLETE] = "incomplete"};

    return names[status];
}

static void add_elided(json_t *object, const struct mr_exemplar *exemplar)
{
    uint64_t calls = 0, ns = 0;

    for (uint32_t i = 0; i < exemplar->call_count; i++) {
        mr_sum_add(&calls, exemplar->items[i].elided_calls);
        mr_sum_add(&ns, exemplar->items[i].elided_ns);
    }
    json_object_set_new(object, "elided_calls", mr_json_u64(calls));
    json_object_set_new(object, "elided_ns", mr_json_u64(ns));
}

static json_t *row_of(const struct mr_model_root *root,
                      const struct mr_model_exemplar *record)
{
    const struct mr_exemplar *exemplar = &record->exemplar;
    const struct mr_model_path *path =
        mr_model_path(root, mr_model_entry(root, record->entry)->path);
    const struct mr_model_scope *scope = mr_model_scope(root, path->scope);
    const struct mr_model_source *source = mr_model_source(root, record->source);
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
        mr_json_id(mr_model_exemplar_id(exemplar)), "entry", mr_json_id(path->id), "site",
        mr_json_site(mr_model_site(root, path->site)), "app", mr_json_text(scope->app),
        "version", mr_json_text(scope->version), "host",
        mr_json_text(source->known ? source->host : scope->host), "why",
        reasons_json(reasons_of(root, exemplar)), "status", status_name(exemplar->status),
        "source", mr_json_id(exemplar->source), "pid",
        mr_json_u64_if(source->known, source->pid), "stream",
        mr_json_u64(exemplar->stream), "start_ns", mr_json_u64(exemplar->start_ns),
        "total_ns", mr_json_u64(mr_exemplar_ns(exemplar)), "calls",
        mr_json_u64(exemplar->calls));

    json_object_set_new(object, "shape",
                        record->shape == MR_MODEL_NONE
                            ? json_null()
                            : mr_json_id(mr_model_shape(root, record->shape)->id));
    add_elided(object, exemplar);
    return object;
}

/* The slowest first; of one trace the fullest. */
static int by_time(const void *a, const void *b)
{
    const struct mr_model_exemplar *const *left = a, *const *right = b;
    const struct mr_exemplar *x = &(*left)->exemplar, *y = &(*right)->exemplar;

    if (mr_exemplar_is_same(x, y))
        return (x->call_count < y->call_count) - (x->call_count > y->call_count);
    return mr_exemplar_is_before(x, y, MR_EXEMPLAR_SLOWEST) ? -1 : 1;
}

/* What the request asks for. */
struct filter {
    bool has_entry, has_shape;
    struct mr_id entry, shape;
};

static bool is_wanted(const struct mr_model_root *root,
                      const struct mr_model_exemplar *record, const struct filter *filter)
{
    uint32_t path = mr_model_entry(root, record->entry)->path;

    if (filter->has_entry && !mr_id_equal(mr_model_path(root, path)->id, filter->entry))
        return false;
    return !filter->has_shape ||
           (record->shape != MR_MODEL_NONE &&
            mr_id_equal(mr_model_shape(root, record->shape)->id, filter->shape));
}

json_t *mr_api_exemplars(struct mr_api_request *request)
{
    const struct mr_model_root *root = request->root;
    uint32_t all = mr_model_count(root, MR_MODEL_EXEMPLAR);
    uint64_t limit = mr_api_limit(request);
    const struct mr_model_exemplar **order;
    struct filter filter = {.has_entry = false};
    size_t count = 0;

    filter.has_entry = mr_api_id(request, "entry", &filter.entry);
    filter.has_shape = mr_api_id(request, "shape", &filter.shape);
    if (request->status != 200)
        return NULL;
    order = calloc((size_t)all + 1, sizeof(struct mr_model_exemplar *));
    if (!order)
        return NULL;
    for (uint32_t i = 0; i < all; i++)
        if (is_wanted(root, mr_model_exemplar(root, i), &filter))
            order[count++] = mr_model_exemplar(root, i);
    qsort((void *)order, count, sizeof(struct mr_model_exemplar *), by_time);
    json_t *rows = json_array();
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && mr_exemplar_is_same(&order[i - 1]->exemplar, &order[i]->exemplar))
            continue; /* its other reasons are told with the first */
        if (total++ < limit)
            json_array_append_new(rows, row_of(root, order[i]));
    }
    free((void *)order);
    return json_pack("{s:o, s:o, s:o}", "generation", mr_json_u64(root->head.generation),
                     "total", mr_json_u64(total), "exemplars", rows);
}

static json_t *call_json(const struct mr_exemplar_call *call, size_t site)
{
    json_t *object = json_pack("{s:I, s:i, s:o, s:o}", "site", (json_int_t)site, "depth",
                               (int)call->depth, "start_ns", mr_json_u64(call->start_ns),
                               "total_ns", mr_json_u64(call->total_ns));

    json_object_set_new(object, "status",
                        json_string(call->flags & MR_EXEMPLAR_CALL_INCOMPLETE
                                        ? "incomplete"
                                    : call->flags ? "failed"
                                                  : "ok"));
    if (call->flags & MR_EXEMPLAR_CALL_UNWOUND)
        json_object_set_new(object, "unwound", json_true());
    if (call->elided_calls) {
        json_object_set_new(object, "elided_calls", mr_json_u64(call->elided_calls));
        json_object_set_new(object, "elided_ns", mr_json_u64(call->elided_ns));
    }
    return object;
}

/* The calls in the order of their beginning, outer before inner; their sites once each. */
static enum mr_status add_calls(json_t *object, const struct mr_model_root *root,
                                const struct mr_exemplar *exemplar)
{
    uint32_t *numbers = calloc(mr_model_count(root, MR_MODEL_SITE), sizeof(*numbers));
    json_t *sites = json_array(), *calls = json_array();

    for (uint32_t i = 0; numbers && i < exemplar->call_count; i++) {
        const struct mr_exemplar_call *call = &exemplar->items[i];

        if (numbers[call->site] == 0) {
            json_array_append_new(sites, mr_json_site(mr_model_site(root, call->site)));
            numbers[call->site] = (uint32_t)json_array_size(sites);
        }
        json_array_append_new(calls, call_json(call, numbers[call->site] - 1));
    }
    json_object_set_new(object, "sites", sites);
    json_object_set_new(object, "tree", calls);
    free(numbers);
    return numbers ? MR_OK : MR_ENOMEM;
}

json_t *mr_api_exemplar(struct mr_api_request *request)
{
    const struct mr_model_root *root = request->root;
    const struct mr_model_exemplar *record;
    struct mr_id id;

    if (mr_id_parse(request->tail, strlen(request->tail), &id) != MR_OK)
        return mr_api_fail(
            request, 400, "exemplar: 32 hexadecimal digits are needed after /exemplars/");
    record = mr_model_find_exemplar(root, id);
    if (!record)
        return mr_api_fail(request, 404,
                           "no such exemplar: a slower one may have replaced it");
    json_t *object = row_of(root, record);
    json_object_set_new(object, "generation", mr_json_u64(root->head.generation));
    (void)add_calls(object, root, &record->exemplar);
    return object;
}
