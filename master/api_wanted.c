/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/exemplars/wanted: requests for exemplars. GET lists them, POST adds one, DELETE /api/v1/exemplars/wanted/ID takes
 * one out. What is asked for is named by the ids that the other answers tell; a wrong field is refused with its name and
 * what is right, as is one that is not known: a misspelt one would silently ask for something else.
 */
#include "master/api_private.h"

#include "base/clock.h"
#include "base/table.h"

#include <string.h>

#define TTL_S_MAX (MR_WANTED_LEFT_MS_MAX / 1000)
#define TTL_S_DEFAULT 60
#define MIN_NS_MAX (INT64_C(1000000000) * TTL_S_MAX)

static const char *const fields[] = {"path", "shape", "min_ns", "count", "ttl_s"};

static void check_fields(struct mr_api_request *request, json_t *body)
{
    const char *name;
    json_t *value;

    json_object_foreach(body, name, value)
    {
        size_t i = 0;

        while (i < sizeof(fields) / sizeof(*fields) && strcmp(fields[i], name) != 0)
            i++;
        if (i == sizeof(fields) / sizeof(*fields))
            mr_api_fail(request, 400,
                        "field '%.40s' is not known: path, shape, min_ns, count, ttl_s",
                        name);
    }
}

/* `otherwise` where it is not given. */
static uint64_t number_of(struct mr_api_request *request, const json_t *body,
                          const char *name, int64_t otherwise, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(body, name);

    if (!value)
        return (uint64_t)otherwise;
    if (json_is_integer(value) && json_integer_value(value) >= min &&
        json_integer_value(value) <= max)
        return (uint64_t)json_integer_value(value);
    mr_api_fail(request, 400, "field '%s': a number from %lld to %lld is needed", name,
                (long long)min, (long long)max);
    return 0;
}

/* False when not given or wrong. */
static bool id_of(struct mr_api_request *request, const json_t *body, const char *name,
                  struct mr_id *id)
{
    const json_t *value = json_object_get(body, name);

    if (!value)
        return false;
    if (json_is_string(value) &&
        mr_id_parse(json_string_value(value), json_string_length(value), id) == MR_OK &&
        !mr_id_is_zero(*id))
        return true;
    mr_api_fail(request, 400,
                "field '%s': an id of 32 hexadecimal digits is needed, as "
                "/api/v1/entries, /paths and /shapes tell it",
                name);
    return false;
}

/* The path's entry point, and the sites of the calls below that. */
static void take_path(struct mr_api_request *request, struct mr_wanted_request *into)
{
    const struct mr_model_root *root = request->root;
    uint32_t at = mr_model_find(root, MR_MODEL_PATH, into->path);
    const struct mr_model_path *path =
        at == MR_MODEL_NONE ? NULL : mr_model_path(root, at);

    if (!path) {
        mr_api_fail(request, 404, "field 'path': no such path; /api/v1/paths has them");
    } else if (path->entry == MR_MODEL_NONE) {
        mr_api_fail(request, 400,
                    "field 'path': that is an outer frame, which is no part of a trace: "
                    "name an entry point, or a path below one");
    } else if (path->depth > MR_WANTED_DEPTH_MAX) {
        mr_api_fail(request, 400,
                    "field 'path': %u calls below its entry point; at most %u: name one "
                    "further up",
                    path->depth, MR_WANTED_DEPTH_MAX);
    } else {
        into->wanted.depth = (uint16_t)path->depth;
        for (; path->depth > 0; path = mr_model_path(root, path->parent))
            into->wanted.sites[path->depth - 1] = mr_model_site(root, path->site)->id.lo;
        into->wanted.entry = path->id;
    }
}

/* Whether traces of the shape have the entry point that is asked for, if one is. */
static bool fits_entry(const struct mr_model_root *root, uint32_t shape,
                       struct mr_id entry)
{
    if (mr_id_is_zero(entry))
        return true;
    while (shape != MR_MODEL_NONE) {
        const struct mr_model_shape *record = mr_model_shape(root, shape);
        uint32_t path = mr_model_entry(root, record->entry)->path;

        if (mr_id_equal(mr_model_path(root, path)->id, entry))
            return true;
        shape = record->next_same;
    }
    return false;
}

static void take_shape(struct mr_api_request *request, struct mr_wanted_request *into)
{
    uint32_t shape = mr_model_find_shape(request->root, into->shape);

    if (shape == MR_MODEL_NONE)
        mr_api_fail(request, 404,
                    "field 'shape': no such shape; /api/v1/shapes has them");
    else if (!fits_entry(request->root, shape, into->wanted.entry))
        mr_api_fail(request, 400,
                    "field 'shape': its traces do not have the entry point of field "
                    "'path': leave one of them out");
    into->wanted.node = into->shape;
}

static void take_fields(struct mr_api_request *request, json_t *body,
                        struct mr_wanted_request *into)
{
    bool has_path, has_shape;

    check_fields(request, body);
    has_path = id_of(request, body, "path", &into->path);
    has_shape = id_of(request, body, "shape", &into->shape);
    into->wanted.min_ns = number_of(request, body, "min_ns", 0, 0, MIN_NS_MAX);
    into->wanted.count =
        (uint16_t)number_of(request, body, "count", 1, 1, MR_WANTED_COUNT_MAX);
    into->wanted.left_ms =
        1000 * (uint32_t)number_of(request, body, "ttl_s", TTL_S_DEFAULT, 1, TTL_S_MAX);
    if (!has_path && !has_shape)
        mr_api_fail(request, 400,
                    "field 'path' or 'shape' is needed: the id of an entry point, a path "
                    "or a shape");
    if (request->status == 200 && has_path)
        take_path(request, into);
    if (request->status == 200 && has_shape)
        take_shape(request, into);
}

/*
 * The exemplars that are there to be shown: a version of the model after they came, at most, and until later ones took their
 * places.
 */
static enum mr_status find_shown(const struct mr_model_root *root, struct mr_table *shown)
{
    enum mr_status status = MR_OK;

    mr_table_init(shown, MR_TABLE_COUNT_MAX);
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_EXEMPLAR) && status == MR_OK;
         i++) {
        const struct mr_exemplar *exemplar = &mr_model_exemplar(root, i)->exemplar;

        if (exemplar->why == MR_EXEMPLAR_ASKED)
            status = mr_table_put(shown, mr_model_exemplar_id(exemplar), i);
    }
    return status;
}

static json_t *exemplars_of(const struct mr_table *shown,
                            const struct mr_wanted_request *asked)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < asked->came; i++) {
        struct mr_id id = mr_model_exemplar_id(&asked->got[i]);

        if (mr_table_find(shown, id) != MR_TABLE_NONE)
            json_array_append_new(array, mr_json_id(id));
    }
    return array;
}

static json_t *id_or_null(struct mr_id id)
{
    return mr_id_is_zero(id) ? json_null() : mr_json_id(id);
}

/* The site of the path, or of the shape's root. */
static json_t *site_of(const struct mr_model_root *root,
                       const struct mr_wanted_request *asked)
{
    uint32_t path = mr_model_find(root, MR_MODEL_PATH, asked->path);
    uint32_t shape = mr_model_find_shape(root, asked->shape);

    if (path == MR_MODEL_NONE && shape != MR_MODEL_NONE)
        path = mr_model_entry(root, mr_model_shape(root, shape)->entry)->path;
    return path == MR_MODEL_NONE
               ? json_null()
               : mr_json_site(mr_model_site(root, mr_model_path(root, path)->site));
}

static json_t *request_json(const struct mr_model_root *root,
                            const struct mr_table *shown,
                            const struct mr_wanted_request *asked, uint64_t now_ns)
{
    uint64_t left_ns = asked->until_ns > now_ns ? asked->until_ns - now_ns : 0;
    bool is_open = asked->state == MR_WANTED_OPEN;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:s, s:o, s:o, s:i, s:f, s:o}",
        "id", mr_json_id(asked->wanted.id), "path", id_or_null(asked->path), "shape",
        id_or_null(asked->shape), "entry", id_or_null(asked->wanted.entry), "site",
        site_of(root, asked), "min_ns", mr_json_u64(asked->wanted.min_ns), "count",
        (int)asked->wanted.count, "came", (int)asked->came, "beyond",
        mr_json_u64(asked->beyond), "state", mr_wanted_state_name(asked->state),
        "created_ns", mr_json_u64(asked->created_ns), "ended_ns",
        mr_json_u64_if(!is_open, asked->ended_ns), "ttl_s",
        (int)(asked->wanted.left_ms / 1000), "left_s",
        is_open ? (double)left_ns / MR_SECOND_NS : 0.0, "exemplars",
        exemplars_of(shown, asked));
}

json_t *mr_api_wanted(struct mr_api_request *request)
{
    struct mr_wanted_book *book = request->api->wanted;
    uint64_t now_ns = mr_clock_monotonic_ns();
    struct mr_wanted_request asked;
    struct mr_table shown;
    json_t *rows;

    if (!book)
        return mr_api_fail(request, 503, "this master takes no requests yet");
    if (find_shown(request->root, &shown) != MR_OK) {
        mr_table_fini(&shown);
        return mr_api_fail(request, 503, "no memory");
    }
    rows = json_array();
    mr_wanted_book_tick(book, now_ns);
    for (uint32_t i = 0; mr_wanted_book_at(book, i, &asked); i++)
        json_array_append_new(rows, request_json(request->root, &shown, &asked, now_ns));
    mr_table_fini(&shown);
    return json_pack("{s:o, s:i, s:o}", "generation",
                     mr_json_u64(request->root->head.generation), "max_open",
                     (int)MR_WANTED_MAX, "requests", rows);
}

static json_t *add(struct mr_api_request *request, json_t *body)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    struct mr_wanted_request asked = {.beyond = 0};
    const struct mr_table none = {.count = 0}; /* nothing came yet */

    take_fields(request, body, &asked);
    if (request->status == 200 && mr_id_random(&asked.wanted.id) != MR_OK)
        mr_api_fail(request, 503, "no random numbers");
    if (request->status != 200)
        return NULL;
    if (mr_wanted_book_add(request->api->wanted, &asked, now_ns) != MR_OK)
        return mr_api_fail(request, 429,
                           "%u requests are open, and no more can be: wait for one, or "
                           "DELETE /api/v1/exemplars/wanted/ID",
                           MR_WANTED_MAX);
    asked.until_ns = now_ns + asked.wanted.left_ms * MR_MILLISECOND_NS;
    asked.created_ns = mr_clock_realtime_ns();
    return request_json(request->root, &none, &asked, now_ns);
}

json_t *mr_api_wanted_post(struct mr_api_request *request, struct mr_span text)
{
    json_error_t error;
    json_t *body =
        json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    json_t *answer;

    if (!body)
        return mr_api_fail(request, 400, "the body is no JSON: line %d, column %d: %s",
                           error.line, error.column, error.text);
    answer = json_is_object(body)
                 ? add(request, body)
                 : mr_api_fail(request, 400,
                               "the body is no JSON object: {\"path\": ID} is one");
    json_decref(body);
    return answer;
}

json_t *mr_api_wanted_delete(struct mr_api_request *request)
{
    struct mr_id id;

    if (mr_id_parse(request->tail, strlen(request->tail), &id) != MR_OK)
        return mr_api_fail(request, 400,
                           "the request's id, 32 hexadecimal digits, is needed after "
                           "/api/v1/exemplars/wanted/");
    if (!mr_wanted_book_remove(request->api->wanted, id, mr_clock_monotonic_ns()))
        return mr_api_fail(request, 404,
                           "no such request: GET /api/v1/exemplars/wanted lists them");
    return json_pack("{s:o}", "removed", mr_json_id(id));
}
