/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics: the Prometheus text format, version 0.0.4. */
#include "base/metrics.h"
#include "base/atomics.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/sum.h"
#include "master/api_private.h"
#include "pipeline/graph_metrics.h"

#include <inttypes.h>

#ifndef MR_VERSION
#define MR_VERSION "unknown"
#endif

static void put_ingest(struct mr_buffer *out, const struct mr_ingest *ingest)
{
    const struct mr_ingest_counters *counters = mr_ingest_counters(ingest);

    /* Relaxed: each is a number of its own. */
    mr_metrics_put(out, "connections", "gauge", "Workers that are connected.",
                   mr_load_relaxed(&counters->connections));
    mr_metrics_put(out, "connections_accepted_total", "counter", "Connections that came.",
                   mr_load_relaxed(&counters->accepted));
    mr_metrics_put(out, "connections_refused_total", "counter",
                   "Connections refused or cut off.",
                   mr_load_relaxed(&counters->refused));
    mr_metrics_put(out, "ingest_frames_total", "counter",
                   "Data frames applied to the model.",
                   mr_load_relaxed(&counters->frames));
    mr_metrics_put(out, "ingest_bytes_total", "counter", "Bytes read from workers.",
                   mr_load_relaxed(&counters->bytes));
    mr_metrics_put(out, "ingest_duplicates_total", "counter",
                   "Data frames that came again.",
                   mr_load_relaxed(&counters->duplicates));
    mr_metrics_put(out, "ingest_bad_frames_total", "counter",
                   "Data frames that broke the format.",
                   mr_load_relaxed(&counters->bad_frames));
    mr_metrics_put(out, "ingest_gaps_total", "counter",
                   "Senders whose earlier frames another store has.",
                   mr_load_relaxed(&counters->gaps));
    mr_metrics_put(out, "ingest_pauses_total", "counter",
                   "Times that reading waited for the store.",
                   mr_load_relaxed(&counters->pauses));
    mr_metrics_put(out, "publishes_total", "counter", "Versions of the model published.",
                   mr_load_relaxed(&counters->publishes));
    mr_metrics_put_seconds(out, "publish_seconds_total", "counter",
                           "Time spent publishing.",
                           mr_load_relaxed(&counters->publish_ns));
}

static void put_store_size(struct mr_buffer *out, const struct mr_store_stats *stats)
{
    mr_metrics_put(
        out, "store_used_bytes", "gauge",
        "Pages of the store in use, without its WAL, after the last checkpoint.",
        stats->used_bytes);
    mr_metrics_put(out, "store_max_bytes", "gauge", "--store-max; 0: no limit.",
                   stats->max_bytes);
    mr_metrics_put(
        out, "store_over_max", "gauge",
        "1: the store is larger than that, and no old windows are left to drop.",
        stats->is_over_max);
    mr_metrics_put(out, "store_trimmed_rows_total", "counter",
                   "Rows of old windows that were dropped to keep it below that.",
                   stats->trimmed_rows);
    mr_metrics_put_seconds(out, "store_trim_seconds_total", "counter",
                           "Time in transactions that did so.", stats->trim_ns_sum);
    mr_metrics_put_seconds(out, "store_trim_seconds_max", "gauge", "The longest of them.",
                           stats->trim_ns_max);
}

static void put_store(struct mr_buffer *out, struct mr_store *store)
{
    struct mr_store_stats stats;

    mr_store_stats(store, &stats);
    mr_metrics_put(out, "store_commits_total", "counter", "Transactions of journal rows.",
                   stats.commits);
    mr_metrics_put(out, "store_rows_total", "counter", "Journal rows committed.",
                   stats.commit_rows);
    mr_metrics_put(out, "store_bytes_total", "counter", "Bytes of journal committed.",
                   stats.commit_bytes);
    mr_metrics_put_seconds(out, "store_commit_seconds_total", "counter",
                           "Time in those transactions.", stats.commit_ns_sum);
    mr_metrics_put_seconds(out, "store_commit_seconds_max", "gauge",
                           "The longest of them.", stats.commit_ns_max);
    mr_metrics_put_seconds(
        out, "store_latency_seconds_total", "counter",
        "From the first frame of a transaction to its being durable, summed.",
        stats.latency_ns_sum);
    mr_metrics_put_seconds(out, "store_latency_seconds_max", "gauge",
                           "The longest of those.", stats.latency_ns_max);
    mr_metrics_put(out, "store_checkpoints_total", "counter", "Checkpoints written.",
                   stats.checkpoints);
    mr_metrics_put(out, "store_checkpoint_rows_total", "counter",
                   "Rows that checkpoints wrote.", stats.checkpoint_rows);
    mr_metrics_put_seconds(out, "store_checkpoint_seconds_total", "counter",
                           "Time in checkpoints.", stats.checkpoint_ns_sum);
    mr_metrics_put_seconds(out, "store_checkpoint_seconds_max", "gauge",
                           "The longest of them.", stats.checkpoint_ns_max);
    put_store_size(out, &stats);
    mr_metrics_put(out, "store_failures_total", "counter", "Transactions that failed.",
                   stats.failures);
    mr_metrics_put(out, "store_pending_bytes", "gauge", "Bytes not yet durable.",
                   stats.pending_bytes);
}

static void put_model(struct mr_buffer *out, const struct mr_model_root *root)
{
    mr_metrics_head(out, "model_records", "gauge", "Records of the model, by table.");
    for (uint32_t i = 0; i < MR_MODEL_TABLE_COUNT; i++)
        (void)mr_buffer_append_format(out, "millrace_model_records{table=\"%s\"} %u\n",
                                      mr_model_table_name((enum mr_model_table)i),
                                      mr_model_count(root, (enum mr_model_table)i));
    mr_metrics_head(out, "model_refused_total", "counter",
                    "Records refused by a limit, by table.");
    for (uint32_t i = 0; i < MR_MODEL_TABLE_COUNT; i++)
        (void)mr_buffer_append_format(
            out, "millrace_model_refused_total{table=\"%s\"} %" PRIu64 "\n",
            mr_model_table_name((enum mr_model_table)i), root->refused[i]);
    mr_metrics_put(out, "paths", "gauge", "Paths.", mr_model_count(root, MR_MODEL_PATH));
    mr_metrics_put(out, "shapes", "gauge", "Shapes.",
                   mr_model_count(root, MR_MODEL_SHAPE));
    mr_metrics_put(
        out, "calls_total", "counter", "Calls, over all paths.",
        mr_sum3(root->totals.ok, root->totals.failed, root->totals.incomplete));
    mr_metrics_put(out, "deltas_total", "counter", "Deltas applied.", root->deltas);
    mr_metrics_put(out, "dicts_total", "counter", "Dictionaries applied.", root->dicts);
    mr_metrics_put(out, "skipped_items_total", "counter", "Items of unknown kinds.",
                   root->skipped_items);
    mr_metrics_put(out, "id_collisions_total", "counter",
                   "Shapes' nodes that came with the id of another one.",
                   root->collisions);
    mr_metrics_put(out, "late_points_total", "counter",
                   "Statistics for windows that were gone.", root->late_points);
    mr_metrics_put(out, "refused_points_total", "counter",
                   "Statistics past a limit of windows.", root->refused_points);
}

static void put_missing(struct mr_buffer *out, const struct mr_summary_ledger *ledger)
{
    mr_metrics_put(out, "events_missing", "gauge",
                   "Events sent and not here: in custody of workers, or gone with one.",
                   ledger->missing);
    mr_metrics_put(out, "events_host_gone", "gauge",
                   "Of them, those missing for longer than --host-gone-after.",
                   ledger->host_gone);
    mr_metrics_put(out, "events_excess", "gauge",
                   "Events counted that nobody told of: counted twice.", ledger->excess);
    mr_metrics_put(out, "sources_silent", "gauge",
                   "Live sources not heard of for half a minute.",
                   ledger->sources_silent);
    mr_metrics_put(out, "sources_died", "gauge",
                   "Sources that left without a goodbye: what they had not sent is in no "
                   "number.",
                   ledger->sources_died);
}

static void put_ledger(struct mr_buffer *out, const struct mr_model_root *root,
                       uint64_t gone_ns)
{
    struct mr_summary_ledger ledger;

    if (mr_summary_ledger_of(root, gone_ns, &ledger) != MR_OK)
        return; /* absent, not 0 */
    mr_metrics_put(out, "events_written_total", "counter", "Events of all streams.",
                   ledger.last);
    mr_metrics_put(out, "events_reduced_total", "counter", "Events reduced to paths.",
                   ledger.reduced);
    mr_metrics_head(out, "events_held", "gauge",
                    "Events that wait for their call to end.");
    (void)mr_buffer_append_format(out, "millrace_events_held %" PRId64 "\n", ledger.held);
    mr_metrics_head(out, "events_lost_total", "counter", "Events lost, by reason.");
    for (uint32_t reason = 1; reason < MR_LOSS_REASON_COUNT; reason++)
        (void)mr_buffer_append_format(
            out, "millrace_events_lost_total{reason=\"%s\"} %" PRIu64 "\n",
            mr_loss_reason_name(reason), ledger.lost[reason]);
    mr_metrics_put(out, "streams_unbalanced", "gauge",
                   "Streams whose ledger does not add up.",
                   ledger.streams - ledger.streams_balanced);
    put_missing(out, &ledger);
}

static void put_chain(struct mr_buffer *out, const struct mr_model_root *root)
{
    mr_metrics_head(out, "chain_counter_total", "counter",
                    "What the filters of all levels counted.");
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_COUNTER); i++) {
        const struct mr_model_counter *counter = mr_model_counter(root, i);
        const char *const name[] = {"name", counter->name};

        mr_metrics_labels(out, "chain_counter_total", 1, name);
        mr_metrics_value(out, counter->value);
    }
}

static void put_filters(struct mr_buffer *out, const struct mr_graph *graph)
{
    struct mr_filter_stats stats[MR_GRAPH_NODES_MAX];
    uint32_t count = mr_graph_stats(graph, stats, MR_GRAPH_NODES_MAX);

    mr_graph_metrics(out, stats, count, NULL);
}

static void put_process(struct mr_buffer *out)
{
    mr_metrics_put_seconds(out, "process_cpu_seconds_total", "counter",
                           "CPU time of this process.", mr_process_cpu_ns());
    mr_metrics_put(out, "processors", "gauge", "Processors that it may use.",
                   mr_process_processors());
    mr_metrics_put(out, "open_files_max", "gauge",
                   "Files and connections that this process may have open.",
                   mr_process_files_max());
}

json_t *mr_api_metrics(struct mr_api_request *request)
{
    struct mr_buffer *out = &request->text;

    mr_metrics_head(out, "build_info", "gauge", "Version of this program.");
    (void)mr_buffer_append_format(out, "millrace_build_info{version=\"%s\"} 1\n",
                                  MR_VERSION);
    mr_metrics_put_seconds(out, "start_time_seconds", "gauge", "Unix time of the start.",
                           request->api->start_ns);
    put_process(out);
    mr_metrics_put(out, "http_gave_way_total", "counter",
                   "Slow HTTP clients cut off when all places were taken.",
                   request->api->http_gave_way);
    put_model(out, request->root);
    put_ledger(out, request->root, request->api->gone_ns);
    put_chain(out, request->root);
    if (request->api->ingest) {
        put_ingest(out, request->api->ingest);
        put_filters(out, mr_ingest_graph(request->api->ingest));
    }
    if (request->api->store)
        put_store(out, request->api->store);
    return NULL;
}
