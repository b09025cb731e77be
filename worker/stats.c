/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stats.h"

#include "base/clock.h"
#include "net/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* JSON has signed numbers; ours stay below 2^63 for centuries. */
static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static void set_number(json_t *object, const char *key, uint64_t value)
{
    (void)json_object_set_new(object, key, number(value));
}

uint64_t mr_worker_rss_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";
    char *second;
    uint64_t pages = 0;

    if (!file)
        return 0;
    second = fgets(line, sizeof(line), file) ? strchr(line, ' ') : NULL;
    if (second)
        pages = strtoull(second, NULL, 10);
    (void)fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static json_t *connections_json(const struct mr_worker_counters *counters)
{
    json_t *object = json_object();

#define MR_WORKER_COUNTER(name, meaning)                                                 \
    set_number(object, #name, mr_load_relaxed(&counters->name)); /* a number */
#include "worker/counters.def"
#undef MR_WORKER_COUNTER
    return object;
}

static json_t *forward_json(const struct mr_forward_link *link)
{
    json_t *object = json_object();

    /* Relaxed: numbers for people. */
    (void)json_object_set_new(object, "open",
                              json_boolean(mr_load_relaxed(&link->is_open)));
    set_number(object, "acked", mr_load_relaxed(&link->frames_acked));
    set_number(object, "held", mr_load_relaxed(&link->frames_held));
    set_number(object, "given_up", mr_load_relaxed(&link->frames_given_up));
    set_number(object, "reannounced", mr_load_relaxed(&link->reannounce));
    return object;
}

static json_t *driver_json(const struct mr_lanes_even *even, uint32_t driver)
{
    json_t *object = json_object();
    json_t *lanes = json_array();

    for (uint32_t i = 0; i < even->parts.lane_count; i++) {
        if (mr_lanes_even_driver(even, i) == driver)
            (void)json_array_append_new(lanes,
                                        json_string(even->parts.lanes[i].config.name));
    }
    (void)json_object_set_new(object, "busy_share", json_real(even->drivers[driver]));
    (void)json_object_set_new(object, "lanes", lanes);
    return object;
}

static void set_drivers(json_t *object, const struct mr_lanes_even *even)
{
    json_t *drivers = json_array();

    for (uint32_t i = 0; i < even->parts.driver_count; i++)
        (void)json_array_append_new(drivers, driver_json(even, i));
    (void)json_object_set_new(object, "drivers", drivers);
    set_number(object, "lanes_passed", even->passed);
}

static json_t *filter_json(const struct mr_filter_stats *filter, uint64_t uptime_ns)
{
    json_t *object = json_object();
    json_t *counters = json_object();

    (void)json_object_set_new(object, "graph", json_string(filter->graph));
    (void)json_object_set_new(object, "filter", json_string(filter->filter));
    set_number(object, "batches_in", filter->batches_in);
    set_number(object, "batches_out", filter->batches_out);
    set_number(object, "events_in", filter->events_in);
    set_number(object, "bytes_in", filter->bytes_in);
    set_number(object, "discarded", filter->discarded);
    set_number(object, "busy_ns", filter->busy_ns);
    set_number(object, "emit_wait_ns", filter->emit_wait_ns);
    set_number(object, "pipe_fill", filter->pipe_fill);
    set_number(object, "pipe_capacity", filter->pipe_capacity);
    (void)json_object_set_new(
        object, "busy_share",
        json_real(uptime_ns ? (double)filter->busy_ns / (double)uptime_ns : 0.0));
    for (uint32_t i = 0; i < MR_FILTER_COUNTERS; i++) {
        if (filter->counter_names[i])
            set_number(counters, filter->counter_names[i], filter->counters[i]);
    }
    (void)json_object_set_new(object, "counters", counters);
    return object;
}

static void add_to_sums(json_t *sums, const struct mr_filter_stats *filter)
{
    for (uint32_t i = 0; i < MR_FILTER_COUNTERS; i++) {
        const char *name = filter->counter_names[i];
        json_t *sum = name ? json_object_get(sums, name) : NULL;

        if (name)
            set_number(sums, name,
                       (sum ? (uint64_t)json_integer_value(sum) : 0) +
                           filter->counters[i]);
    }
}

static void add_graph(json_t *filters, json_t *sums, const struct mr_graph *graph,
                      uint64_t uptime_ns)
{
    struct mr_filter_stats stats[MR_GRAPH_NODES_MAX];
    uint32_t filter_count = mr_graph_stats(graph, stats, MR_GRAPH_NODES_MAX);

    for (uint32_t i = 0; i < filter_count && i < MR_GRAPH_NODES_MAX; i++) {
        (void)json_array_append_new(filters, filter_json(&stats[i], uptime_ns));
        add_to_sums(sums, &stats[i]);
    }
}

static json_t *stats_json(const struct mr_worker_stats *stats, uint64_t now_ns)
{
    json_t *object = json_object();
    json_t *filters = json_array();
    json_t *sums = json_object();
    uint64_t uptime_ns = now_ns - stats->started_ns;

    for (uint32_t i = 0; i < stats->graph_count; i++)
        add_graph(filters, sums, stats->graphs[i], uptime_ns);
    set_number(object, "level", stats->level);
    set_number(object, "pid", (uint64_t)getpid());
    set_number(object, "rss_bytes", mr_worker_rss_bytes());
    set_number(object, "uptime_ns", uptime_ns);
    (void)json_object_set_new(
        object, "state", json_string(mr_worker_state_word(stats->standing->view.state)));
    (void)json_object_set_new(object, "utilisation",
                              json_real(stats->standing->load.utilisation));
    (void)json_object_set_new(object, "connections", connections_json(stats->counters));
    (void)json_object_set_new(object, "forward", forward_json(stats->link));
    if (stats->even)
        set_drivers(object, stats->even);
    (void)json_object_set_new(object, "counters", sums);
    (void)json_object_set_new(object, "filters", filters);
    return object;
}

/* Takes `object`. */
static enum mr_status write_json(json_t *object, const char *path, size_t flags,
                                 struct mr_error *error)
{
    char *text = object ? json_dumps(object, flags) : NULL;
    enum mr_status status;

    json_decref(object);
    if (!text)
        return mr_error_set(error, MR_ENOMEM, "%s: no memory", path);
    status = mr_file_replace(path, text, strlen(text), error);
    free(text);
    return status;
}

enum mr_status mr_worker_stats_write(const struct mr_worker_stats *stats,
                                     const char *path, uint64_t now_ns,
                                     struct mr_error *error)
{
    return write_json(stats_json(stats, now_ns), path,
                      JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6),
                      error);
}

static void set_address(json_t *object, const char *key, const char *host, uint16_t port)
{
    char address[280];

    (void)snprintf(address, sizeof(address), strchr(host, ':') ? "[%s]:%u" : "%s:%u",
                   host, port);
    (void)json_object_set_new(object, key, json_string(address));
}

enum mr_status mr_worker_ready_write(const char *path,
                                     const struct mr_worker_address *addresses,
                                     size_t count, struct mr_error *error)
{
    json_t *object = json_object();

    for (size_t i = 0; i < count; i++) {
        if (addresses[i].host)
            set_address(object, addresses[i].name, addresses[i].host, addresses[i].port);
    }
    set_number(object, "pid", (uint64_t)getpid());
    return write_json(object, path, JSON_COMPACT | JSON_PRESERVE_ORDER, error);
}
