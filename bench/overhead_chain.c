/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/overhead.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_server(const struct mr_overhead_case *which)
{
    return which->phase >= MR_PHASE_RECONSTRUCTION;
}

static enum mr_status start_server(struct mr_overhead_bench *bench, const char *host,
                                   const struct mr_overhead_case *which,
                                   struct mr_overhead_chain *chain,
                                   struct mr_error *error)
{
    static const char *const placements[] = {"fused", "threads"};
    struct mr_words worker = {0};
    const struct mr_server_config config = {
        .folder = chain->folder, .host = host, .worker = &worker};
    enum mr_status status = mr_folder_make(chain->folder, error);

    mr_words_add(&worker, "--stats-file");
    mr_words_add(&worker, "%s", chain->stats);
    mr_words_add(&worker, "--placement");
    mr_words_add(&worker, "%s", placements[bench->options.placement]);
    mr_words_add(&worker, "--lanes");
    mr_words_add(&worker, "%llu", (unsigned long long)bench->options.lanes);
    mr_words_add(&worker, "--until");
    mr_words_add(&worker, "%s",
                 which->phase == MR_PHASE_REDUCTION ? "reduce" : "reconstruct");
    if (status == MR_OK)
        status = mr_server_start(&chain->server, &config, error);
    mr_words_fini(&worker);
    return status;
}

enum mr_status mr_overhead_chain_start(struct mr_overhead_bench *bench,
                                       const struct mr_overhead_case *which,
                                       struct mr_overhead_chain *chain,
                                       struct mr_error *error)
{
    const char *host = which->point.is_slow_link ? bench->link.host : NULL;

    *chain = (struct mr_overhead_chain){.folder = ""};
    (void)snprintf(chain->folder, sizeof(chain->folder), "%.*s.chain", PATH_MAX - 64,
                   bench->rivals.folder);
    (void)snprintf(chain->stats, sizeof(chain->stats), "%.*s/worker.json", PATH_MAX - 32,
                   chain->folder);
    if (!which->variant || which->variant->kind != MR_VARIANT_DOOR)
        return MR_OK;
    if (which->phase == MR_PHASE_WRITING)
        return mr_receiver_start(&chain->receiver, host, bench->cpu, error);
    return has_server(which) ? start_server(bench, host, which, chain, error) : MR_OK;
}

const char *mr_overhead_chain_endpoint(const struct mr_overhead_chain *chain,
                                       const struct mr_overhead_case *which)
{
    switch (which->phase) {
    case MR_PHASE_COLLECTING:
        return "discard";
    case MR_PHASE_WRITING:
        return chain->receiver.endpoint;
    case MR_PHASE_RECONSTRUCTION:
    case MR_PHASE_REDUCTION:
        return chain->server.endpoint;
    default:
        return NULL;
    }
}

static void add_busy(const json_t *filter, double values[MR_OVERHEAD_MEASURES])
{
    static const struct {
        const char *filter;
        enum mr_overhead_measure measure;
    } filters[] = {{"decode", MR_OVERHEAD_BUSY_DECODE},
                   {"reconstruct", MR_OVERHEAD_BUSY_RECONSTRUCT},
                   {"reduce", MR_OVERHEAD_BUSY_REDUCE}};
    const char *name = json_string_value(json_object_get(filter, "filter"));
    double busy_s = (double)json_integer_value(json_object_get(filter, "busy_ns")) / 1e9;

    for (size_t i = 0; name && i < MR_ARRAY_COUNT(filters); i++)
        if (strcmp(name, filters[i].filter) == 0) {
            double *value = &values[filters[i].measure];

            *value = isnan(*value) ? busy_s : *value + busy_s;
        }
}

/* What the worker told when it ended. */
static void read_stats(const struct mr_overhead_case *which,
                       const struct mr_overhead_chain *chain,
                       double values[MR_OVERHEAD_MEASURES], double *arrived,
                       double *bytes)
{
    json_t *stats = json_load_file(chain->stats, 0, NULL);
    const json_t *counters = json_object_get(stats, "counters"), *filter;
    size_t index;

    if (!stats)
        return;
    *bytes = (double)json_integer_value(
        json_object_get(json_object_get(stats, "connections"), "bytes"));
    *arrived = which->phase == MR_PHASE_REDUCTION
                   ? (double)json_integer_value(json_object_get(counters, "reduced"))
                   : (double)(json_integer_value(
                                  json_object_get(counters, "decode_words_events")) +
                              json_integer_value(
                                  json_object_get(counters, "decode_compact_events")));
    json_array_foreach(json_object_get(stats, "filters"), index, filter)
        add_busy(filter, values);
    json_decref(stats);
}

void mr_overhead_chain_stop(const struct mr_overhead_case *which,
                            struct mr_overhead_chain *chain,
                            double values[MR_OVERHEAD_MEASURES], double *arrived,
                            double *bytes)
{
    bool has_receiver = chain->receiver.pid > 0, has_worker = chain->server.worker > 0;

    if (has_receiver) {
        mr_receiver_settle(&chain->receiver);
        *arrived = (double)mr_load_relaxed(&chain->receiver.totals->events) -
                   (double)mr_load_relaxed(&chain->receiver.totals->lost);
        *bytes = (double)mr_load_relaxed(&chain->receiver.totals->bytes);
    }
    mr_receiver_stop(&chain->receiver);
    mr_server_stop(&chain->server);
    if (has_receiver)
        values[MR_OVERHEAD_CPU_RECEIVER] = (double)chain->receiver.usage.cpu_ns / 1e9;
    if (has_worker) {
        read_stats(which, chain, values, arrived, bytes);
        values[MR_OVERHEAD_CPU_WORKER] = (double)chain->server.worker_usage.cpu_ns / 1e9;
        values[MR_OVERHEAD_PEAK_WORKER] = (double)chain->server.worker_usage.peak_kib;
        values[MR_OVERHEAD_CPU_MASTER] = (double)chain->server.master_usage.cpu_ns / 1e9;
        values[MR_OVERHEAD_PEAK_MASTER] = (double)chain->server.master_usage.peak_kib;
    }
    mr_folder_remove(chain->folder);
}
