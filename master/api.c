/* SPDX-License-Identifier: Apache-2.0 */
/* Routing and parameters. */
#include "master/api.h"

#include "base/assert.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/metrics.h"
#include "master/api_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)16 << 20)
#define REAL_DIGITS 15 /* of a double: with 9, a time of seconds was past its maximum */

json_t *mr_api_fail(struct mr_api_request *request, unsigned status, const char *format,
                    ...)
{
    va_list arguments;

    if (request->status != 200)
        return NULL; /* the first one counts */
    request->status = status;
    va_start(arguments, format);
    (void)vsnprintf(request->error, sizeof(request->error), format, arguments);
    va_end(arguments);
    return NULL;
}

const char *mr_api_param(const struct mr_api_request *request, const char *name)
{
    for (size_t i = 0; i < request->param_count; i++)
        if (strcmp(request->params[i].name, name) == 0)
            return request->params[i].value;
    return NULL;
}

uint64_t mr_api_number(struct mr_api_request *request, const char *name,
                       uint64_t otherwise, uint64_t min, uint64_t max)
{
    const char *text = mr_api_param(request, name);
    uint64_t value = 0;

    if (!text)
        return otherwise;
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9' || value > max) {
            value = UINT64_MAX;
            break;
        }
        value = value * 10 + (uint64_t)(*at - '0');
    }
    if (*text && value >= min && value <= max)
        return value;
    mr_api_fail(request, 400, "parameter '%s': a number from %llu to %llu is needed",
                name, (unsigned long long)min, (unsigned long long)max);
    return 0;
}

uint64_t mr_api_limit(struct mr_api_request *request)
{
    return mr_api_number(request, "limit", MR_API_LIMIT_DEFAULT, 1, MR_API_LIMIT_MAX);
}

unsigned mr_api_choice(struct mr_api_request *request, const char *name,
                       const char *const *choices)
{
    const char *text = mr_api_param(request, name);
    char all[96] = "";
    size_t size = 0;

    if (!text)
        return 0;
    for (unsigned i = 0; choices[i]; i++) {
        if (strcmp(text, choices[i]) == 0)
            return i;
        int added =
            snprintf(all + size, sizeof(all) - size, "%s%s", i ? ", " : "", choices[i]);
        size += added > 0 ? (size_t)added : 0;
        MR_ASSERT(size < sizeof(all));
    }
    mr_api_fail(request, 400, "parameter '%s': one of %s is needed", name, all);
    return 0;
}

bool mr_api_id(struct mr_api_request *request, const char *name, struct mr_id *id)
{
    const char *text = mr_api_param(request, name);

    if (!text)
        return false;
    if (mr_id_parse(text, strlen(text), id) == MR_OK)
        return true;
    mr_api_fail(request, 400, "parameter '%s': 32 hexadecimal digits are needed", name);
    return false;
}

bool mr_api_is_ready(const struct mr_api *api, const char **why)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    struct mr_store_stats stats;

    *why = "not started";
    if (!api->store || !api->ingest)
        return false;
    mr_store_stats(api->store, &stats);
    *why = "the store cannot be written";
    if (stats.failing_ns)
        return false;
    *why = "the commit thread makes no progress";
    if (now_ns > stats.progress_ns + MR_API_READY_NS)
        return false;
    *why = "the ingest thread makes no progress";
    /* Relaxed: a single number, a moment old. */
    if (now_ns >
        mr_load_relaxed(&mr_ingest_counters(api->ingest)->progress_ns) + MR_API_READY_NS)
        return false;
    *why = "ready";
    return true;
}

static json_t *healthz(struct mr_api_request *request)
{
    MR_UNUSED(request);
    return json_pack("{s:s}", "status", "alive");
}

static json_t *readyz(struct mr_api_request *request)
{
    const char *why;

    if (mr_api_is_ready(request->api, &why))
        return json_pack("{s:s}", "status", why);
    return mr_api_fail(request, 503, "%s", why);
}

#define WANTED "/api/v1/exemplars/wanted"

static const struct route {
    const char *path; /* ending with '/': the rest is the route's tail */
    json_t *(*answer)(struct mr_api_request *request);
    const char *params; /* allowed ones, with commas around */
} routes[] = {
    {"/api/v1/paths", mr_api_paths, ",entry,scope,depth,limit,form,"},
    {"/api/v1/functions", mr_api_functions, ",limit,sort,find,"},
    {"/api/v1/entries", mr_api_entries, ",limit,sort,"},
    {"/api/v1/open", mr_api_open, ",limit,"},
    {"/api/v1/shapes", mr_api_shapes, ",entry,limit,sort,"},
    {"/api/v1/shapes/", mr_api_shape, ",depth,limit,"},
    {"/api/v1/traces", mr_api_traces, ",limit,sort,"},
    {"/api/v1/traces/", mr_api_trace, ""},
    {"/api/v1/exemplars", mr_api_exemplars, ",entry,shape,limit,"},
    {WANTED, mr_api_wanted, ""},
    {"/api/v1/exemplars/", mr_api_exemplar, ""},
    {"/api/v1/landscape", mr_api_landscape, ",limit,"},
    {"/api/v1/ledger", mr_api_ledger, ",source,limit,"},
    {"/api/v1/shares", mr_api_shares, ""},
    {"/metrics", mr_api_metrics, ""},
    {"/healthz", healthz, ""},
    {"/readyz", readyz, ""},
};

static const struct route *find_route(const char *path, const char **tail)
{
    for (size_t i = 0; i < MR_ARRAY_COUNT(routes); i++) {
        size_t size = strlen(routes[i].path);
        bool is_prefix = routes[i].path[size - 1] == '/';

        if (strncmp(path, routes[i].path, size) != 0 || (!is_prefix && path[size]))
            continue;
        *tail = path + size;
        return &routes[i];
    }
    return NULL;
}

/* Parameters before number `count` that have its name. */
static bool is_again(const struct mr_api_request *request, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(request->params[i].name, request->params[count].name) == 0)
            return true;
    return false;
}

/*
 * Unknown parameters are refused: a misspelt one would silently show something else. So would the second of two that say different
 * things.
 */
static void check_params(struct mr_api_request *request, const struct route *route)
{
    char wanted[32];

    for (size_t i = 0; i < request->param_count; i++) {
        int size = snprintf(wanted, sizeof(wanted), ",%s,", request->params[i].name);

        if (size >= (int)sizeof(wanted) || !strstr(route->params, wanted) ||
            strchr(request->params[i].name, ','))
            mr_api_fail(request, 400, "parameter '%.40s' is not known here",
                        request->params[i].name);
        else if (is_again(request, i))
            mr_api_fail(request, 400, "parameter '%s' is given twice",
                        request->params[i].name);
    }
}

enum mr_status mr_api_error(unsigned status, const char *text, struct mr_api_reply *reply)
{
    json_t *body = json_object();
    char *dump = NULL;

    if (body && json_object_set_new(body, "error", mr_json_text(text)) == 0)
        dump = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!dump)
        return MR_ENOMEM;
    *reply = (struct mr_api_reply){
        .status = status, .type = "application/json", .body = dump, .size = strlen(dump)};
    return MR_OK;
}

static enum mr_status reply_json(json_t *body, struct mr_api_reply *reply)
{
    char *dump = json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));

    json_decref(body);
    if (!dump)
        return MR_ENOMEM;
    *reply = (struct mr_api_reply){
        .status = 200, .type = "application/json", .body = dump, .size = strlen(dump)};
    return MR_OK;
}

/* `status` where the request has none that is wrong. */
static enum mr_status reply_body(const struct mr_api_request *request, json_t *body,
                                 unsigned status, struct mr_api_reply *reply)
{
    enum mr_status result;

    if (request->status != 200) {
        json_decref(body);
        return mr_api_error(request->status, request->error, reply);
    }
    if (!body)
        return MR_ENOMEM;
    result = reply_json(body, reply);
    reply->status = status;
    return result;
}

static enum mr_status reply_text(struct mr_api_request *request,
                                 struct mr_api_reply *reply)
{
    *reply = (struct mr_api_reply){
        .status = 200,
        .type = MR_METRICS_TYPE,
        .body = (char *)request->text.data,
        .size = request->text.size,
    };
    request->text.data = NULL; /* given away */
    return MR_OK;
}

static enum mr_status answer(struct mr_api_request *request, const struct route *route,
                             struct mr_api_reply *reply)
{
    json_t *body = NULL;

    check_params(request, route);
    if (request->status == 200) {
        request->root = mr_model_read_lock(request->api->model);
        body = route->answer(request);
        mr_model_read_unlock(request->api->model);
    }
    if (!body && request->status == 200 && request->text.data)
        return reply_text(request, reply);
    return reply_body(request, body, 200, reply);
}

bool mr_api_takes(const char *method, const char *path)
{
    if (strcmp(method, "POST") == 0)
        return strcmp(path, WANTED) == 0;
    return strcmp(method, "DELETE") == 0 &&
           strncmp(path, WANTED "/", strlen(WANTED "/")) == 0;
}

enum mr_status mr_api_change(const struct mr_api *api, const char *path,
                             const char *method, struct mr_span body,
                             struct mr_api_reply *reply)
{
    bool is_post = strcmp(method, "POST") == 0;
    struct mr_api_request request = {.api = api, .status = 200};
    json_t *answer;

    MR_ASSERT(mr_api_takes(method, path));
    if (!api->wanted)
        return mr_api_error(503, "this master takes no requests yet", reply);
    request.root = mr_model_read_lock(api->model);
    request.tail = is_post ? "" : path + strlen(WANTED "/");
    answer =
        is_post ? mr_api_wanted_post(&request, body) : mr_api_wanted_delete(&request);
    mr_model_read_unlock(api->model);
    return reply_body(&request, answer, is_post ? 201 : 200, reply);
}

enum mr_status mr_api_answer(const struct mr_api *api, const char *path,
                             const struct mr_api_param *params, size_t param_count,
                             struct mr_api_reply *reply)
{
    struct mr_api_request request = {
        .api = api, .params = params, .param_count = param_count, .status = 200};
    const struct route *route = find_route(path, &request.tail);

    if (!route)
        return mr_api_error(
            404,
            "no such path; see /api/v1/functions, /entries, /paths, /shapes, /traces, "
            "/exemplars, /open, /landscape, /ledger, and /metrics",
            reply);
    mr_buffer_init(&request.text, TEXT_MAX);
    enum mr_status status = answer(&request, route, reply);
    if (request.text.data)
        mr_buffer_fini(&request.text);
    return status;
}
