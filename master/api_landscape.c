/* SPDX-License-Identifier: Apache-2.0 */
/* What there is: hosts, applications, sources, and which site calls which. */
#include "base/sum.h"
#include "base/table.h"
#include "master/api_private.h"

#include <stdlib.h>
#include <string.h>

struct edge { /* calls from one site to another, over all paths */
    uint32_t from, to;
    uint64_t calls, time_ns;
};

struct edges {
    struct mr_table ids; /* {from, to} -> index */
    struct edge *items;
    uint32_t count, capacity;
};

static enum mr_status add_edge(struct edges *edges, uint32_t from, uint32_t to,
                               const struct mr_path_stats *stats)
{
    uint32_t index;
    enum mr_status status =
        mr_table_find_or_add(&edges->ids, (struct mr_id){from, to}, edges->count, &index);

    if (status != MR_OK)
        return status;
    if (index == edges->capacity) {
        uint32_t capacity = index ? 2 * index : 256;
        struct edge *items = realloc(edges->items, capacity * sizeof(*items));

        if (!items)
            return MR_ENOMEM;
        edges->items = items;
        edges->capacity = capacity;
    }
    if (index == edges->count)
        edges->items[edges->count++] = (struct edge){.from = from, .to = to};
    mr_sum_add(&edges->items[index].calls,
               mr_sum3(stats->ok, stats->failed, stats->incomplete));
    edges->items[index].time_ns += stats->total.sum;
    return MR_OK;
}

static enum mr_status gather(const struct mr_model_root *root, struct edges *edges)
{
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PATH) && status == MR_OK;
         i++) {
        const struct mr_model_path *path = mr_model_path(root, i);

        if (path->parent != MR_MODEL_NONE)
            status = add_edge(edges, mr_model_path(root, path->parent)->site, path->site,
                              &mr_model_path_stat(root, i)->stats);
    }
    return status;
}

static int by_calls(const void *a, const void *b)
{
    const struct edge *left = a, *right = b;

    return left->calls < right->calls ? 1 : left->calls > right->calls ? -1 : 0;
}

static json_t *edge(const struct mr_model_root *root, const struct edge *edge)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "from",
                     mr_json_site(mr_model_site(root, edge->from)), "to",
                     mr_json_site(mr_model_site(root, edge->to)), "calls",
                     mr_json_u64(edge->calls), "time_ns", mr_json_u64(edge->time_ns));
}

/* {"total", "edges"}; NULL without memory. */
static json_t *calls(const struct mr_model_root *root, uint64_t limit)
{
    struct edges edges = {.items = NULL};
    json_t *rows = NULL;

    mr_table_init(&edges.ids, MR_TABLE_COUNT_MAX);
    if (gather(root, &edges) == MR_OK) {
        if (edges.count)
            qsort(edges.items, edges.count, sizeof(*edges.items), by_calls);
        rows = json_array();
        for (uint32_t i = 0; i < edges.count && i < limit; i++)
            json_array_append_new(rows, edge(root, &edges.items[i]));
        rows = json_pack("{s:o, s:o}", "total", mr_json_u64(edges.count), "edges", rows);
    }
    mr_table_fini(&edges.ids);
    free(edges.items);
    return rows;
}

static json_t *scopes(const struct mr_model_root *root, uint64_t limit)
{
    json_t *rows = json_array();

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_SCOPE) && i < limit; i++) {
        const struct mr_model_scope *scope = mr_model_scope(root, i);

        json_array_append_new(rows, json_pack("{s:o, s:o, s:o, s:o}", "id",
                                              mr_json_id(scope->id), "app",
                                              mr_json_text(scope->app), "version",
                                              mr_json_text(scope->version), "host",
                                              mr_json_text(scope->host)));
    }
    return rows;
}

/* Each host with its sources, newest first; the ledger has the rest of a source. */
static json_t *hosts(const struct mr_summary *summary)
{
    json_t *hosts = json_object();

    for (size_t i = 0; i < summary->source_count; i++) {
        const struct mr_summary_source *source = &summary->sources[i];
        json_t *name = mr_json_text(source->host);
        const char *key = json_is_string(name) ? json_string_value(name) : "";
        json_t *list = json_object_get(hosts, key);

        if (!list) {
            json_object_set_new(hosts, key, json_array());
            list = json_object_get(hosts, key);
        }
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:o, s:o}", "id", mr_json_id(source->id), "app",
                      mr_json_text(source->app), "version", mr_json_text(source->version),
                      "pid", mr_json_u64_if(source->is_known, source->pid), "state",
                      source->is_known ? json_string(mr_source_state_name(source->state))
                                       : json_null()));
        json_decref(name);
    }
    return hosts;
}

static json_t *outers(const struct mr_model_root *root, uint64_t limit)
{
    static const char *const why[] = {"start", "option", "learned"};
    json_t *rows = json_array();

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_OUTER) && i < limit; i++) {
        const struct mr_model_outer *outer = mr_model_outer(root, i);

        json_array_append_new(
            rows, json_pack("{s:o, s:o, s:o}", "scope",
                            mr_json_id(mr_model_scope(root, outer->scope)->id), "site",
                            mr_json_site(mr_model_site(root, outer->site)), "why",
                            outer->why < 3 ? json_string(why[outer->why]) : json_null()));
    }
    return rows;
}

json_t *mr_api_landscape(struct mr_api_request *request)
{
    const struct mr_model_root *root = request->root;
    uint64_t limit = mr_api_limit(request);
    struct mr_summary_limits limits = {.sources = (size_t)limit};
    struct mr_summary *summary;

    if (request->status != 200 || mr_summary_of(root, &limits, &summary) != MR_OK)
        return NULL;
    json_t *body = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "generation",
                             mr_json_u64(root->head.generation), "sites",
                             mr_json_u64(mr_model_count(root, MR_MODEL_SITE)), "sources",
                             mr_json_u64(summary->source_total), "hosts", hosts(summary),
                             "applications", scopes(root, limit), "outer_frames",
                             outers(root, limit), "calls", calls(root, limit));
    mr_summary_free(summary);
    return body;
}
