/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the api_*.c files alone: a request with its parameters, and JSON of the
 * things that occur in several answers.
 *
 * Use (a route):
 *     json_t *mr_api_functions(struct mr_api_request *request)
 *     {
 *         uint64_t limit = mr_api_limit(request);
 *         if (request->status != 200)
 *             return NULL;                          // a parameter was bad
 *         ...
 *     }
 */
#ifndef MR_MASTER_API_PRIVATE_H
#define MR_MASTER_API_PRIVATE_H

#include "base/buffer.h"
#include "master/api.h"
#include "master/summary.h"

#include <jansson.h>
#include <stdbool.h>

struct mr_api_request {
    const struct mr_api *api;
    const struct mr_model_root *root; /* held while the route runs */
    const struct mr_api_param *params;
    size_t param_count;
    const char *tail; /* what follows a route that ends with '/' */
    unsigned status;  /* 200 until something is wrong */
    char error[160];
    struct mr_buffer text; /* body of a route that answers text */
};

/* Routes: NULL with request->status != 200, or without memory. */
json_t *mr_api_paths(struct mr_api_request *request);
json_t *mr_api_functions(struct mr_api_request *request);
json_t *mr_api_entries(struct mr_api_request *request);
json_t *mr_api_open(struct mr_api_request *request);
json_t *mr_api_shapes(struct mr_api_request *request);
json_t *mr_api_shape(struct mr_api_request *request);
json_t *mr_api_traces(struct mr_api_request *request);
json_t *mr_api_trace(struct mr_api_request *request);
json_t *mr_api_exemplars(struct mr_api_request *request);
json_t *mr_api_exemplar(struct mr_api_request *request);
json_t *mr_api_wanted(struct mr_api_request *request);
json_t *mr_api_landscape(struct mr_api_request *request);
json_t *mr_api_ledger(struct mr_api_request *request);
json_t *mr_api_shares(struct mr_api_request *request);
/* Changes; api->wanted is there. */
json_t *mr_api_wanted_post(struct mr_api_request *request, struct mr_span text);
json_t *mr_api_wanted_delete(struct mr_api_request *request);
/* Into request->text; always NULL. */
json_t *mr_api_metrics(struct mr_api_request *request);

/* Parameters: a wrong one sets status 400 and the text, which names it; 0 then. */
uint64_t mr_api_number(struct mr_api_request *request, const char *name,
                       uint64_t otherwise, uint64_t min, uint64_t max);
/* NULL when not given. */
const char *mr_api_param(const struct mr_api_request *request, const char *name);
uint64_t mr_api_limit(struct mr_api_request *request);
/* Position of the value among `choices` (ended by NULL); 0, the first, when not given. */
unsigned mr_api_choice(struct mr_api_request *request, const char *name,
                       const char *const *choices);
/* False when not given or wrong. */
bool mr_api_id(struct mr_api_request *request, const char *name, struct mr_id *id);
/* Sets status and text. Returns NULL, so that a route can end with it. */
MR_PRINTF(3, 4)
json_t *mr_api_fail(struct mr_api_request *request, unsigned status, const char *format,
                    ...);

json_t *mr_json_u64(uint64_t value); /* beyond 2^63-1: that */
json_t *mr_json_id(struct mr_id id);
json_t *mr_json_text(
    const char *text); /* null for ""; bytes that are of no character of UTF-8 as '?' */
/* null unless `is_there`. */
json_t *mr_json_u64_if(bool is_there, uint64_t value);
/* {"value_ns", "low_ns", "high_ns"} or null. */
json_t *mr_json_quantile(bool is_there, const struct mr_summary_quantile *quantile);
/* {"zero", "scale", "buckets": [[low_ns, high_ns, count], ...]} */
json_t *mr_json_histogram(const struct mr_histogram *histogram);
/* Quantiles of a histogram, as null or {"p50": ..., "p90": ..., "p99": ...}. */
json_t *mr_json_quantiles(const struct mr_histogram *histogram,
                          const struct mr_times *times, bool is_timed);
/* {"id", "name", "module", "file", "line"} */
json_t *mr_json_site(const struct mr_model_site *site);
json_t *mr_json_ledger(const struct mr_summary_ledger *ledger);
/* Where events are, from probes to here; api_stages.c. */
json_t *mr_api_stages(struct mr_api_request *request,
                      const struct mr_summary_ledger *ledger);
/* The calls and times of a path. */
json_t *mr_json_path_stats(const struct mr_path_stats *stats);
/* "counters" of an object: of a path, of a function, of the answer as a whole. Nothing where there are none. */
void mr_json_add_path_counters(json_t *object, const struct mr_model_root *root,
                               uint32_t path);
void mr_json_add_function_counters(json_t *object, const struct mr_summary *summary,
                                   const struct mr_summary_function *row);
void mr_json_add_counters(json_t *body, const struct mr_model_root *root);
/* Adds all members of `from` (taken) to `into`. */
/*
 * "pruned": of a site of which calls were counted and not recorded, null of others, and
 * "self_includes_pruned". On a path the count is an estimate, by the calls recorded on it.
 */
void mr_json_add_pruned(json_t *object, const struct mr_site_pruned *site);
void mr_json_add_path_pruned(json_t *object, const struct mr_site_pruned *pruned,
                             const struct mr_model_root *root, uint32_t path);
void mr_json_merge(json_t *into, json_t *from);

/* Whether ingest and store made progress lately; *why says what did not. */
bool mr_api_is_ready(const struct mr_api *api, const char **why);

#endif
