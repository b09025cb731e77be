/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "master/http.h"
#include "master/ingest.h"
#include "master/options.h"
#include "master/store.h"
#include "net/file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define READY_SIZE 1024 /* two hosts and what stands around them */
#define STORE_LOOK_MS 200
#define FILES_OWN                                                                        \
    192 /* beside connections of workers: the store's, readers of the page */

struct master {
    struct mr_master_options options;
    struct mr_model *model;
    struct mr_store *store;
    struct mr_ingest *ingest;
    struct mr_http *http;
    struct mr_api api;
    struct mr_wanted_book *wanted;
    int signal_fd, listen_fd, http_fd;
    uint16_t port, http_port;
};

/* Before any thread is made, so that all of them leave signals to the descriptor. */
static enum mr_status open_signals(struct master *master, struct mr_error *error)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    master->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (master->signal_fd < 0)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot wait for signals");
    return MR_OK;
}

/* The ports first: a second master on them must not touch the store. */
static enum mr_status open_ports(struct master *master, struct mr_error *error)
{
    const struct mr_master_options *options = &master->options;
    struct mr_error cause = MR_ERROR_NONE;
    enum mr_status status =
        mr_listen(&options->listen_at, *options->token != '\0', options->insecure,
                  &master->listen_fd, &master->port, &cause);

    if (status != MR_OK)
        return mr_error_set(error, status, "--listen: %s", cause.text);
    status = mr_listen(&options->http_at, false, options->insecure, &master->http_fd,
                       &master->http_port, &cause);
    if (status == MR_OK)
        return MR_OK;
    if (status == MR_EUSAGE) /* a token would not help: who reads the page shows none */
        return mr_error_set(error, status,
                            "--http: %s is not loopback and has no login: give "
                            "--insecure to allow it",
                            options->http);
    return mr_error_set(error, status, "--http: %s", cause.text);
}

static enum mr_status open_model(struct master *master, struct mr_error *error)
{
    const struct mr_master_options *options = &master->options;
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    const struct mr_store_config config = {
        .directory = options->store,
        .sync = (enum mr_store_sync)options->store_sync,
        .commit_interval_ns = options->commit_interval_ns,
        .checkpoint_interval_ns = options->checkpoint_interval_ns,
        .checkpoint_bytes = options->checkpoint_bytes,
        .max_bytes = options->store_max,
    };

    limits.paths = (uint32_t)options->max_paths;
    limits.shapes = (uint32_t)options->max_shapes;
    limits.nodes = (uint32_t)options->max_nodes;
    limits.sites = (uint32_t)options->max_sites;
    limits.streams = (uint32_t)options->max_streams;
    limits.sources = (uint32_t)options->max_sources;
    limits.scopes = (uint32_t)options->max_scopes;
    limits.notes = (uint32_t)options->max_notes;
    limits.joined = (uint32_t)options->max_joined;
    limits.parts = (uint32_t)options->max_parts;
    limits.series_points = (uint32_t)options->max_points;
    limits.exemplars = (uint32_t)options->max_exemplars;
    limits.exemplar_bytes = options->max_exemplar_bytes;
    limits.shape_paths = (uint32_t)options->max_shape_paths;
    enum mr_status status = mr_model_new(&limits, &master->model);
    if (status != MR_OK)
        return mr_error_set(error, status, "out of memory");
    status = mr_store_open(&config, master->model, &master->store, error);
    return status == MR_OK ? mr_store_start(master->store, error) : status;
}

static bool on_asked(void *context, struct mr_id request,
                     const struct mr_exemplar *exemplar, struct mr_exemplar *gone)
{
    return mr_wanted_book_came(context, request, exemplar, gone);
}

static enum mr_status open_wanted(struct master *master, struct mr_error *error)
{
    master->wanted = malloc(sizeof(*master->wanted));
    if (!master->wanted)
        return mr_error_set(error, MR_ENOMEM, "out of memory");
    mr_wanted_book_init(master->wanted);
    mr_model_on_asked(master->model, on_asked, master->wanted);
    return MR_OK;
}

static enum mr_status start_servers(struct master *master, struct mr_error *error)
{
    const struct mr_master_options *options = &master->options;
    const struct mr_ingest_config config = {
        .listen_fd = master->listen_fd,
        .token = options->token,
        .max_frame = (uint32_t)options->max_frame,
        .max_connections = (uint32_t)options->max_connections,
        .credit = options->credit,
        .join_timeout_ns = options->join_timeout_ns,
        .wanted = master->wanted,
        .model = master->model,
        .store = master->store,
    };

    master->listen_fd = -1; /* taken */
    enum mr_status status = mr_ingest_start(&config, &master->ingest, error);
    if (status != MR_OK)
        return status;
    master->api = (struct mr_api){.model = master->model,
                                  .store = master->store,
                                  .ingest = master->ingest,
                                  .start_ns = mr_clock_realtime_ns(),
                                  .gone_ns = options->host_gone_after_ns,
                                  .wanted = master->wanted};
    int http_fd = master->http_fd;
    master->http_fd = -1; /* taken */
    return mr_http_start(http_fd, &master->api, &master->http, error);
}

static bool is_v6(const char *host)
{
    return strchr(host, ':') != NULL;
}

static enum mr_status write_ready(const struct master *master, struct mr_error *error)
{
    const struct mr_master_options *options = &master->options;
    const char *listen = options->listen_at.host, *http = options->http_at.host;
    struct mr_error cause = MR_ERROR_NONE;
    char text[READY_SIZE];

    if (!*options->ready_file)
        return MR_OK;
    int size = snprintf(text, sizeof(text),
                        "{\"listen\":\"%s%s%s:%u\",\"http\":\"%s%s%s:%u\",\"pid\":%ld}\n",
                        is_v6(listen) ? "[" : "", listen, is_v6(listen) ? "]" : "",
                        master->port, is_v6(http) ? "[" : "", http,
                        is_v6(http) ? "]" : "", master->http_port, (long)getpid());
    MR_ASSERT(size > 0 && size < READY_SIZE);
    enum mr_status status =
        mr_file_replace(options->ready_file, text, (size_t)size, &cause);
    if (status != MR_OK)
        mr_error_set(error, status, "--ready-file: %s", cause.text);
    return status;
}

static enum mr_status start(struct master *master, struct mr_error *error)
{
    enum mr_status status = open_signals(master, error);

    mr_process_take_files();
    if (status == MR_OK)
        status = open_ports(master, error);
    if (status == MR_OK)
        status = open_model(master, error);
    if (status == MR_OK)
        status = open_wanted(master, error);
    if (status == MR_OK)
        status = start_servers(master, error);
    if (status == MR_OK)
        status = write_ready(master, error);
    if (status == MR_OK)
        mr_log_info("listening for workers on %s:%u, page at http://%s:%u/, store in %s",
                    master->options.listen_at.host, master->port,
                    master->options.http_at.host, master->http_port,
                    master->options.store);
    return status;
}

/* Whether the store could not be written for longer than --store-patience. */
static bool is_store_given_up(const struct master *master)
{
    uint64_t patience_ns = master->options.store_patience_ns;
    uint64_t now_ns = mr_clock_monotonic_ns();
    struct mr_store_stats stats;

    if (patience_ns == 0)
        return false;
    mr_store_stats(master->store, &stats);
    if (stats.failing_ns == 0 || now_ns < stats.failing_ns + patience_ns)
        return false;
    mr_log_error(
        "the store %s could not be written for %.1f s (--store-patience): given up",
        master->options.store, (double)(now_ns - stats.failing_ns) / MR_SECOND_NS);
    return true;
}

/* Until a signal (true), until ingest ends by itself, or until the store is given up. */
static bool wait_for_end(const struct master *master)
{
    int timeout_ms = master->options.store_patience_ns ? STORE_LOOK_MS : -1;
    struct pollfd fds[] = {
        {.fd = master->signal_fd, .events = POLLIN},
        {.fd = mr_ingest_end_fd(master->ingest), .events = POLLIN},
    };

    for (;;) {
        int ready = poll(fds, 2, timeout_ms);

        if (ready > 0)
            return !(fds[1].revents & POLLIN);
        if (is_store_given_up(master))
            return false;
    }
}

/* In flow order: frames, journal, last acknowledgements; then what reads the model. */
static bool stop(struct master *master)
{
    bool is_saved = true;

    if (master->ingest)
        mr_ingest_stop(master->ingest);
    if (master->store)
        is_saved = mr_store_stop(master->store) == MR_OK;
    mr_http_stop(master->http);
    mr_ingest_free(master->ingest);
    mr_store_close(master->store);
    mr_model_free(master->model);
    if (master->wanted)
        mr_wanted_book_fini(master->wanted);
    free(master->wanted);
    if (master->listen_fd >= 0)
        close(master->listen_fd);
    if (master->http_fd >= 0)
        close(master->http_fd);
    if (master->signal_fd >= 0)
        close(master->signal_fd);
    return is_saved;
}

int mr_master_command(int argc, char **argv)
{
    struct master master = {.signal_fd = -1, .listen_fd = -1, .http_fd = -1};
    struct mr_error error = MR_ERROR_NONE;
    int exit_status = mr_master_options_read(argc, argv, &master.options);

    if (exit_status >= 0)
        return exit_status;
    mr_log_init("master", (enum mr_log_level)master.options.log_level);
    if (start(&master, &error) != MR_OK) {
        mr_log_error("%s", error.text);
        (void)stop(&master);
        return EXIT_USAGE;
    }
    mr_process_tell_files(master.options.max_connections, FILES_OWN);
    bool is_signal = wait_for_end(&master);
    bool is_saved = stop(&master);
    if (*master.options.ready_file)
        (void)unlink(master.options.ready_file);
    return is_signal && is_saved ? EXIT_SUCCESS : EXIT_FAILURE;
}
