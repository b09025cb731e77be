/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/metrics.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/process.h"
#include "pipeline/graph_metrics.h"

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MR_VERSION
#define MR_VERSION "unknown"
#endif

#define TEXT_MAX ((size_t)4 << 20)
#define IDLE_S 30
#define REQUEST_BYTES ((size_t)32 << 10)

struct mr_worker_metrics {
    const struct mr_worker_stats *stats;
    struct MHD_Daemon *daemon;
    int epoll_fd;
    struct mr_filter_stats filters[MR_WORKER_FILTERS_MAX];
    uint32_t filter_count;
    /* Of each filter: time inside it a second ago, and the part of the second since then. */
    uint64_t busy_ns[MR_WORKER_FILTERS_MAX], sampled_ns;
    double shares[MR_WORKER_FILTERS_MAX];
};

static void read_filters(struct mr_worker_metrics *metrics)
{
    const struct mr_worker_stats *stats = metrics->stats;

    metrics->filter_count = 0;
    for (uint32_t i = 0; i < stats->graph_count; i++)
        metrics->filter_count +=
            mr_graph_stats(stats->graphs[i], metrics->filters + metrics->filter_count,
                           MR_WORKER_FILTERS_MAX - metrics->filter_count);
}

/* Each second: how busy the filters were in it. */
static void sample(struct mr_worker_metrics *metrics, uint64_t now_ns)
{
    uint64_t since_ns = now_ns - metrics->sampled_ns;

    if (since_ns < MR_SECOND_NS)
        return;
    read_filters(metrics);
    for (uint32_t i = 0; i < metrics->filter_count; i++) {
        uint64_t busy_ns = metrics->filters[i].busy_ns;
        double share = (double)(busy_ns - metrics->busy_ns[i]) / (double)since_ns;

        metrics->shares[i] = metrics->sampled_ns == 0 || share < 0 ? 0
                             : share > 1                           ? 1
                                                                   : share;
        metrics->busy_ns[i] = busy_ns;
    }
    metrics->sampled_ns = now_ns;
}

static void put_connections(struct mr_buffer *out,
                            const struct mr_worker_counters *counters)
{
    mr_metrics_head(
        out, "connections", "gauge",
        "What happened to connections, by name; open: how many there are now.");
#define MR_WORKER_COUNTER(name, meaning)                                                 \
    mr_metrics_labels(out, "connections", 1, (const char *const[]){"event", #name});     \
    mr_metrics_value(out, mr_load_relaxed(&counters->name)); /* a number */
#include "worker/counters.def"
#undef MR_WORKER_COUNTER
}

static void put_link(struct mr_buffer *out, const struct mr_forward_link *link)
{
    /* Relaxed: numbers for people. */
    mr_metrics_put(out, "forward_open", "gauge", "1: the next level has welcomed us.",
                   mr_load_relaxed(&link->is_open));
    mr_metrics_put(out, "forward_acked_total", "counter", "Frames in custody above.",
                   mr_load_relaxed(&link->frames_acked));
    mr_metrics_put(out, "forward_held", "gauge", "Frames not acknowledged.",
                   mr_load_relaxed(&link->frames_held));
    mr_metrics_put(out, "forward_given_up_total", "counter",
                   "Frames that were never acknowledged.",
                   mr_load_relaxed(&link->frames_given_up));
}

static void put_standing(struct mr_buffer *out, const struct mr_standing *standing)
{
    mr_metrics_head(out, "state", "gauge", "1: what this worker is for its level.");
    for (uint32_t i = 0; i < MR_WORKER_STATES; i++) {
        const char *word = mr_worker_state_word((enum mr_worker_state)i);

        mr_metrics_labels(out, "state", 1, (const char *const[]){"state", word});
        mr_metrics_value(out, standing->view.state == (enum mr_worker_state)i);
    }
    mr_metrics_put(out, "senders", "gauge", "Senders that are connected.",
                   standing->view.senders);
    mr_metrics_head(out, "utilisation", "gauge",
                    "Part of this worker that is in use: its lanes, or the trunk behind "
                    "them if that is busier.");
    mr_metrics_labels(out, "utilisation", 0, NULL);
    mr_metrics_real(out, standing->load.utilisation);
    mr_metrics_head(out, "process_cpu_share", "gauge",
                    "CPU time of this process, of what its processors have.");
    mr_metrics_labels(out, "process_cpu_share", 0, NULL);
    mr_metrics_real(out, standing->load.process);
}

static void put_lanes(struct mr_buffer *out, const struct mr_lanes_even *even)
{
    char number[16];

    mr_metrics_head(out, "driver_busy_share", "gauge",
                    "Part of the last second in which a thread turned its lanes.");
    for (uint32_t i = 0; i < even->parts.driver_count; i++) {
        (void)snprintf(number, sizeof(number), "%u", i);
        mr_metrics_labels(out, "driver_busy_share", 1,
                          (const char *const[]){"driver", number});
        mr_metrics_real(out, even->drivers[i]);
    }
    mr_metrics_head(out, "lane_senders", "gauge",
                    "Senders connected, by lane and the driver that has it.");
    for (uint32_t i = 0; i < even->parts.lane_count; i++) {
        const struct mr_lane *lane = &even->parts.lanes[i];

        (void)snprintf(number, sizeof(number), "%u", mr_lanes_even_driver(even, i));
        mr_metrics_labels(
            out, "lane_senders", 2,
            (const char *const[]){"graph", lane->config.name, "driver", number});
        mr_metrics_value(out, mr_lane_load(lane));
    }
    mr_metrics_put(out, "lanes_passed_total", "counter",
                   "Lanes that went to a driver with more time.", even->passed);
}

static void put_process(struct mr_buffer *out, const struct mr_worker_stats *stats)
{
    const char *const version[] = {"version", MR_VERSION};

    mr_metrics_head(out, "build_info", "gauge", "Version of this program.");
    mr_metrics_labels(out, "build_info", 1, version);
    mr_metrics_value(out, 1);
    mr_metrics_put(out, "level", "gauge", "Distance from the probes.", stats->level);
    mr_metrics_put_seconds(out, "uptime_seconds", "gauge", "Time since the start.",
                           mr_clock_monotonic_ns() - stats->started_ns);
    mr_metrics_put(out, "resident_bytes", "gauge", "Memory of this process.",
                   mr_worker_rss_bytes());
    mr_metrics_put(out, "open_files_max", "gauge",
                   "Files and connections that this process may have open.",
                   mr_process_files_max());
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status,
                              const char *type, const void *text, size_t size)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        size, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;

    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    if (status == 405)
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_json(struct MHD_Connection *connection, unsigned status,
                                   const char *key, const char *value)
{
    char text[200];
    int size = snprintf(text, sizeof(text), "{\"%s\":\"%s\"}", key, value);

    return answer(connection, status, "application/json", text, (size_t)size);
}

static enum MHD_Result answer_metrics(struct mr_worker_metrics *metrics,
                                      struct MHD_Connection *connection)
{
    struct mr_buffer out;
    enum MHD_Result result;

    mr_buffer_init(&out, TEXT_MAX);
    read_filters(metrics);
    put_process(&out, metrics->stats);
    put_standing(&out, metrics->stats->standing);
    put_connections(&out, metrics->stats->counters);
    put_link(&out, metrics->stats->link);
    if (metrics->stats->even)
        put_lanes(&out, metrics->stats->even);
    mr_graph_metrics(&out, metrics->filters, metrics->filter_count, metrics->shares);
    result = answer(connection, 200, MR_METRICS_TYPE, out.data, out.size);
    mr_buffer_fini(&out);
    return result;
}

static enum MHD_Result answer_ready(struct mr_worker_metrics *metrics,
                                    struct MHD_Connection *connection)
{
    uint64_t now_ns = mr_clock_monotonic_ns();
    char why[160];

    read_filters(metrics);
    for (uint32_t i = 0; i < metrics->filter_count; i++) {
        const struct mr_filter_stats *filter = &metrics->filters[i];

        if (now_ns < filter->progress_ns + MR_WORKER_METRICS_READY_NS)
            continue;
        (void)snprintf(why, sizeof(why), "filter %s of %s makes no progress",
                       filter->filter, filter->graph);
        return answer_json(connection, 503, "error", why);
    }
    if (!mr_load_relaxed(&metrics->stats->link->is_open)) /* a flag of its own */
        return answer_json(connection, 503, "error", "the next level is not there");
    return answer_json(connection, 200, "status", "ready");
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method,
                                  const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    static int seen;
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    MR_UNUSED(version);
    MR_UNUSED(upload);
    if (!*state && is_get) { /* the first call comes before the rest of the request */
        *state = &seen;
        return MHD_YES;
    }
    if (!is_get)
        return answer_json(connection, 405, "error", "only GET and HEAD are served");
    if (*upload_size)
        return MHD_NO; /* a body on a GET: close */
    if (strcmp(path, "/metrics") == 0)
        return answer_metrics(context, connection);
    if (strcmp(path, "/healthz") == 0)
        return answer_json(connection, 200, "status", "alive");
    if (strcmp(path, "/readyz") == 0)
        return answer_ready(context, connection);
    return answer_json(connection, 404, "error",
                       "no such path; see /metrics, /healthz, /readyz");
}

static void log_line(void *context, const char *format, va_list arguments)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_SECOND_NS);
    char text[200];

    MR_UNUSED(context);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    text[strcspn(text, "\n")] = '\0';
    (void)mr_log_limited(&limit, MR_LOG_DEBUG, "metrics: %s", text);
}

static enum mr_status open_daemon(struct mr_worker_metrics *metrics, int listen_fd,
                                  struct mr_error *error)
{
    const union MHD_DaemonInfo *info;

    metrics->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, metrics,
        MHD_OPTION_EXTERNAL_LOGGER, log_line, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MR_WORKER_METRICS_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, REQUEST_BYTES, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_END);
    if (!metrics->daemon) {
        (void)close(listen_fd);
        return mr_error_set(error, MR_EIO, "--metrics: the server could not be started");
    }
    info = MHD_get_daemon_info(metrics->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || info->epoll_fd < 0)
        return mr_error_set(error, MR_EIO, "--metrics: no epoll in libmicrohttpd");
    metrics->epoll_fd = info->epoll_fd;
    return MR_OK;
}

enum mr_status mr_worker_metrics_open(const struct mr_worker_stats *stats, int listen_fd,
                                      struct mr_worker_metrics **out,
                                      struct mr_error *error)
{
    struct mr_worker_metrics *metrics = calloc(1, sizeof(*metrics));
    enum mr_status status;

    if (!metrics) {
        (void)close(listen_fd);
        return mr_error_set(error, MR_ENOMEM, "--metrics: out of memory");
    }
    metrics->stats = stats;
    status = open_daemon(metrics, listen_fd, error);
    if (status != MR_OK) {
        mr_worker_metrics_close(metrics);
        return status;
    }
    *out = metrics;
    return MR_OK;
}

void mr_worker_metrics_close(struct mr_worker_metrics *metrics)
{
    if (!metrics)
        return;
    if (metrics->daemon)
        MHD_stop_daemon(metrics->daemon);
    free(metrics);
}

int mr_worker_metrics_fd(const struct mr_worker_metrics *metrics)
{
    return metrics->epoll_fd;
}

void mr_worker_metrics_run(struct mr_worker_metrics *metrics, uint64_t now_ns)
{
    sample(metrics, now_ns);
    (void)MHD_run(metrics->daemon);
}
