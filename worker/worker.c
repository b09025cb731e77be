/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/worker.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/process.h"
#include "net/ids.h"
#include "worker/graphs.h"
#include "worker/greeter.h"
#include "worker/homes.h"
#include "worker/lane.h"
#include "worker/lanes_even.h"
#include "worker/metrics.h"
#include "worker/options.h"
#include "worker/places.h"
#include "worker/standing.h"
#include "worker/stats.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define TURN_MS 100
#define END_TURN_MS 5
#define EVENTS_MAX 64
#define FILES_OWN 192 /* beside connections: the spool's, and some */
#define FILES_LANE 4
/* From this size on, what is freed goes back to the system at once. Left alone, glibc raises it to 32 MiB
 * when a delta of a megabyte is freed, and the arenas then keep the largest burst for ever. */
#define MMAP_BYTES (256 << 10)

/* A filter gives back within a delta interval and a tick of its quiet time, which we see begin within a turn. */
#define TRIM_AFTER_NS (MR_FILTER_QUIET_NS + 500 * MR_MILLISECOND_NS)

static_assert(MR_WORKER_LANES_MAX <= MR_SPREAD_LANES_MAX &&
                  MR_WORKER_LANES_MAX + 1 <= MR_WORKER_LOAD_PARTS &&
                  MR_WORKER_LANES_MAX <= MR_GRAPH_INPUTS_MAX,
              "each lane is a graph, and an input of the trunk");

struct worker {
    struct mr_worker_options options;
    struct mr_worker_counters counters;
    struct mr_worker_graphs *graphs;
    struct mr_worker_stats stats;
    struct mr_worker_metrics *metrics; /* NULL: not asked for */
    struct mr_standing standing;
    struct mr_greeter greeter;
    struct mr_homes homes;
    struct mr_places places;
    struct mr_asks asks;
    struct mr_wanted_board wanted;
    struct mr_spool *spool; /* NULL: none */
    struct mr_lane_recovered *recovered[MR_WORKER_LANES_MAX];
    uint64_t recovered_count;
    struct mr_lane lanes[MR_WORKER_LANES_MAX];
    uint32_t lane_count; /* running */
    struct mr_driver drivers[MR_WORKER_LANES_MAX];
    uint32_t driver_count; /* running */
    struct mr_lanes_even even;
    char lane_names[MR_WORKER_LANES_MAX][16];
    struct mr_id incarnation;
    int epoll_fd, signal_fd;
    /* Events of the lanes and frames acknowledged above, a second ago, and since when; the allocator is trimmed since then. */
    uint64_t work_seen, worked_ns;
    bool is_trimmed;
    uint64_t stop_at_ns; /* 0: not stopping */
};

static uint32_t choose_lane(struct worker *worker, const struct mr_hello *hello)
{
    const struct mr_source_info *info = &hello->source;
    struct mr_id application = hello->role == MR_ROLE_PROBE
                                   ? mr_id_scope(info->app, info->version, "")
                                   : hello->sender;
    struct mr_place_lane lanes[MR_WORKER_LANES_MAX];

    for (uint32_t i = 0; i < worker->lane_count; i++) {
        uint32_t driver = mr_lanes_even_driver(&worker->even, i);

        lanes[i] =
            (struct mr_place_lane){driver < worker->driver_count ? driver : UINT32_MAX,
                                   mr_lane_load(&worker->lanes[i])};
    }
    return mr_places_choose(&worker->places, application, lanes, worker->lane_count);
}

static void give_to_lane(void *context, struct mr_connection *connection)
{
    struct worker *worker = context;
    struct mr_id sender = connection->hello.hello.sender;
    uint32_t lane;

    if (!mr_homes_find(&worker->homes, sender, &lane)) {
        lane = choose_lane(worker, &connection->hello.hello);
        mr_homes_put(&worker->homes, sender, lane);
    }
    mr_lane_give(&worker->lanes[lane], connection);
}

static enum mr_status open_signals(struct worker *worker, struct mr_error *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &worker->signal_fd}};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    worker->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (worker->epoll_fd < 0 || worker->signal_fd < 0 ||
        epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->signal_fd, &event) != 0)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot wait for signals");
    return MR_OK;
}

/* Opens the port; nothing is accepted yet. */
static enum mr_status open_port(struct worker *worker, uint16_t *port,
                                struct mr_error *error)
{
    const struct mr_worker_options *options = &worker->options;
    struct mr_error why = MR_ERROR_NONE;
    int fd;
    enum mr_status status = mr_listen(&options->listen_at, *options->token != '\0',
                                      options->insecure, &fd, port, &why);

    if (status != MR_OK)
        return mr_error_set(error, status, "--listen: %s", why.text);
    worker->greeter = (struct mr_greeter){
        .rules = {.self = worker->incarnation,
                  .level = (uint32_t)options->level,
                  .token = options->token,
                  .max_frame = (uint32_t)options->max_frame,
                  .max_connections = options->max_connections},
        .give = give_to_lane,
        .context = worker,
        .listen_fd = fd,
        .epoll_fd = worker->epoll_fd,
        .counters = &worker->counters,
    };
    return MR_OK;
}

static void wake_lane(void *context, uint32_t lane)
{
    struct worker *worker = context;

    mr_lane_wake(&worker->lanes[lane]);
}

static enum mr_status start_drivers(struct worker *worker, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    while (status == MR_OK && worker->driver_count < worker->options.drivers) {
        char name[16];

        (void)snprintf(name, sizeof(name), "driver%" PRIu32, worker->driver_count);
        status = mr_driver_start(&worker->drivers[worker->driver_count], name, error);
        if (status == MR_OK)
            worker->driver_count++;
    }
    return status;
}

static enum mr_status start_lanes(struct worker *worker, struct mr_error *error)
{
    const struct mr_worker_options *options = &worker->options;
    enum mr_status status = start_drivers(worker, error);

    while (status == MR_OK && worker->lane_count < options->lanes) {
        uint32_t i = worker->lane_count;
        struct mr_lane_config config = {.graph = mr_worker_graphs_lane(worker->graphs, i),
                                        .driver =
                                            &worker->drivers[i % worker->driver_count],
                                        .name = worker->lane_names[i],
                                        .credit = options->credit,
                                        .source_grace_ns = options->source_grace_ns,
                                        .hands_over = options->handover == 0,
                                        .max_senders = (uint32_t)options->max_senders,
                                        .max_frame = (uint32_t)options->max_frame,
                                        .group_by_host = options->group_by == 1,
                                        .counters = &worker->counters,
                                        .has_custody = options->custody == 0,
                                        .self = worker->incarnation,
                                        .index = i,
                                        .asks = &worker->asks,
                                        .wanted = &worker->wanted,
                                        .spool = worker->spool};

        (void)snprintf(worker->lane_names[i], sizeof(worker->lane_names[i]),
                       "lane%" PRIu32, i);
        config.log = worker->spool ? mr_spool_log_new(worker->spool) : NULL;
        if (worker->spool && !config.log)
            return mr_error_set(error, MR_ENOMEM, "no memory for the spool");
        config.recovered = worker->recovered[i]; /* given away */
        worker->recovered[i] = NULL;
        status = mr_lane_start(&worker->lanes[i], &config, error);
        if (status == MR_OK)
            worker->lane_count++;
    }
    return status;
}

/* They are even before the first sender comes. */
static void watch_lanes(struct worker *worker)
{
    const struct mr_lanes_even_parts parts = {worker->lanes, worker->lane_count,
                                              worker->drivers, worker->driver_count};
    bool is_threaded = worker->options.placement == MR_WORKER_THREADS;

    mr_lanes_even_open(&worker->even, &parts, worker->options.driver_hot);
    worker->stats.even = &worker->even;
    worker->standing.load.lane_threads =
        is_threaded ? worker->lane_count : worker->driver_count;
}

/* A listener without a login, of option `flag`: loopback, or --insecure. */
static enum mr_status listen_beside(const struct worker *worker, const char *flag,
                                    const char *text, const struct mr_endpoint *at,
                                    int *fd, uint16_t *port, struct mr_error *error)
{
    struct mr_error why = MR_ERROR_NONE;
    enum mr_status status =
        mr_listen(at, false, worker->options.insecure, fd, port, &why);

    if (status == MR_EUSAGE)
        return mr_error_set(error, status,
                            "--%s: %s is not loopback and has no login: give "
                            "--insecure to allow it",
                            flag, text);
    if (status != MR_OK)
        return mr_error_set(error, status, "--%s: %s", flag, why.text);
    return MR_OK;
}

/* Opens --metrics, if it is asked for; served in serve(). */
static enum mr_status open_metrics(struct worker *worker, uint16_t *port,
                                   struct mr_error *error)
{
    const struct mr_worker_options *options = &worker->options;
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &worker->metrics}};
    enum mr_status status;
    int fd;

    if (!*options->metrics)
        return MR_OK;
    status = listen_beside(worker, "metrics", options->metrics, &options->metrics_at, &fd,
                           port, error);
    if (status != MR_OK)
        return status;
    status = mr_worker_metrics_open(&worker->stats, fd, &worker->metrics, error);
    if (status == MR_OK && epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD,
                                     mr_worker_metrics_fd(worker->metrics), &event) != 0)
        status = mr_error_set_errno(error, MR_EIO, errno, "--metrics: epoll");
    return status;
}

/* Opens --agent and --peers, where they are asked for. */
static enum mr_status open_standing(struct worker *worker, uint16_t *port,
                                    struct mr_error *error)
{
    const struct mr_worker_options *options = &worker->options;
    struct mr_peers *peers = NULL;
    enum mr_status status = MR_OK;
    int fd = -1;

    if (*options->agent)
        status = listen_beside(worker, "agent", options->agent, &options->agent_at, &fd,
                               port, error);
    if (status == MR_OK && *options->peers)
        status = mr_peers_start(&options->peers_at, *port, &peers, error);
    if (status == MR_OK)
        status = mr_standing_open(&worker->standing, (uint32_t)options->level, fd, peers,
                                  worker->epoll_fd, error);
    else if (fd >= 0)
        (void)close(fd);
    return status;
}

static enum mr_status announce(struct worker *worker, uint16_t port, uint16_t http_port,
                               uint16_t agent_port, struct mr_error *error)
{
    const struct mr_worker_options *options = &worker->options;
    const struct mr_worker_address addresses[] = {
        {"listen", options->listen_at.host, port},
        {"http", worker->metrics ? options->metrics_at.host : NULL, http_port},
        {"agent", *options->agent ? options->agent_at.host : NULL, agent_port}};

    mr_log_info("level %" PRIu64 ", %" PRIu64 " lanes on %" PRIu64
                " drivers, listening on %s:%u, forwarding to %s",
                options->level, options->lanes, options->drivers, options->listen_at.host,
                port, options->forward);
    mr_process_tell_files(options->max_connections,
                          FILES_OWN + FILES_LANE * options->lanes);
    struct mr_error why = MR_ERROR_NONE;
    enum mr_status status;

    if (!*options->ready_file)
        return MR_OK;
    status = mr_worker_ready_write(options->ready_file, addresses,
                                   MR_ARRAY_COUNT(addresses), &why);
    return status == MR_OK ? status
                           : mr_error_set(error, status, "--ready-file: %s", why.text);
}

/* "auto" is a folder in memory that outlasts the process; a port that changes names none. */
static bool spool_folder(const struct worker *worker, char *folder, size_t size)
{
    const struct mr_worker_options *options = &worker->options;

    if (strcmp(options->spool, "auto") != 0) {
        (void)snprintf(folder, size, "%s", options->spool);
        return true;
    }
    (void)snprintf(folder, size, "/dev/shm/millrace-%u/%s-%s", (unsigned)geteuid(),
                   options->listen_at.host, options->listen_at.port);
    return strcmp(options->listen_at.port, "0") != 0;
}

static enum mr_status open_spool(struct worker *worker, struct mr_error *error)
{
    const struct mr_worker_options *options = &worker->options;
    char folder[4096];
    const struct mr_spool_config config = {.folder = folder,
                                           .bytes_max = options->spool_max};
    enum mr_status status;

    if (strcmp(options->spool, "none") == 0 || options->custody != 0 ||
        options->until != 0 || !spool_folder(worker, folder, sizeof(folder)))
        return MR_OK;
    status = mr_spool_open(&config, &worker->spool, error);
    if (status == MR_OK)
        worker->incarnation = mr_spool_self(worker->spool);
    return status;
}

/* Each sender to the lane where it will be at home. */
static enum mr_status take_recovered(void *context, struct mr_spool_found *found)
{
    struct worker *worker = context;
    uint32_t lane = (uint32_t)(worker->recovered_count % worker->options.lanes);
    struct mr_lane_recovered *recovered;
    enum mr_status status = mr_lane_recovered_new(found, &recovered);

    if (status == MR_EFORMAT) {
        mr_log_error("--spool: what is there of a sender is damaged; it is not used");
        return MR_OK;
    }
    if (status != MR_OK)
        return status;
    recovered->next = worker->recovered[lane];
    worker->recovered[lane] = recovered;
    worker->recovered_count++;
    mr_homes_put(&worker->homes, recovered->kept->id, lane);
    return MR_OK;
}

static enum mr_status recover(struct worker *worker, struct mr_error *error)
{
    enum mr_status status = MR_OK;

    if (!worker->spool)
        return MR_OK;
    status = mr_spool_recover(worker->spool, take_recovered, worker, error);
    if (status == MR_OK && worker->recovered_count)
        mr_log_info("--spool %s: going on with %" PRIu64 " senders",
                    mr_spool_folder(worker->spool), worker->recovered_count);
    return status;
}

static enum mr_status start(struct worker *worker, struct mr_error *error)
{
    uint16_t port = 0, http_port = 0, agent_port = 0;
    enum mr_status status = mr_id_random(&worker->incarnation);

    mr_homes_init(&worker->homes);
    mr_places_init(&worker->places, worker->options.lane_of == 1);
    mr_asks_init(&worker->asks, wake_lane, worker);
    mr_wanted_board_init(&worker->wanted);
    if (status != MR_OK)
        return mr_error_set(error, status, "no random numbers");
    mr_process_take_files();
    status = open_signals(worker, error);
    if (status == MR_OK)
        status = open_spool(worker, error);
    if (status == MR_OK)
        status = open_port(worker, &port, error);
    if (status == MR_OK)
        status = open_metrics(worker, &http_port, error);
    if (status == MR_OK)
        status = open_standing(worker, &agent_port, error);
    if (status == MR_OK)
        status = recover(worker, error);
    if (status == MR_OK)
        status = mr_worker_graphs_new(&worker->options, worker->incarnation,
                                      &worker->asks, &worker->wanted, worker->spool,
                                      &worker->counters, &worker->graphs, error);
    if (status == MR_OK) {
        worker->stats.graphs =
            mr_worker_graphs_all(worker->graphs, &worker->stats.graph_count);
        worker->stats.link = mr_worker_graphs_link(worker->graphs);
        status = start_lanes(worker, error);
    }
    if (status == MR_OK)
        watch_lanes(worker);
    if (status == MR_OK && mr_greeter_open(&worker->greeter) != MR_OK)
        status = mr_error_set_errno(error, MR_EIO, errno, "cannot accept connections");
    return status == MR_OK ? announce(worker, port, http_port, agent_port, error)
                           : status;
}

static void stop_lanes(struct worker *worker, uint64_t deadline_ns)
{
    worker->stop_at_ns = deadline_ns;
    for (uint32_t i = 0; i < worker->lane_count; i++)
        mr_lane_stop(&worker->lanes[i], deadline_ns);
}

/* The first signal: no new senders, those that are here are to move. The second: now. */
static void on_end_signal(struct worker *worker, uint64_t now_ns)
{
    mr_standing_end(&worker->standing);
    if (worker->stop_at_ns == 0)
        stop_lanes(worker, now_ns + worker->options.drain_timeout_ns + 1);
    else
        stop_lanes(worker, 1);
}

static void on_signal(struct worker *worker, uint64_t now_ns)
{
    struct signalfd_siginfo info;

    if (read(worker->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (info.ssi_signo == SIGUSR1)
        mr_standing_drain(&worker->standing);
    else if (info.ssi_signo == SIGUSR2)
        mr_standing_make_ready(&worker->standing);
    else
        on_end_signal(worker, now_ns);
}

static void on_event(struct worker *worker, const struct epoll_event *event,
                     uint64_t now_ns)
{
    if (event->data.ptr == &worker->signal_fd)
        on_signal(worker, now_ns);
    else if (event->data.ptr == &worker->greeter)
        mr_greeter_accept(&worker->greeter, now_ns);
    else if (event->data.ptr == &worker->standing.agent)
        mr_standing_answer(&worker->standing);
    else if (event->data.ptr == &worker->metrics)
        return; /* it runs each turn */
    else
        mr_greeter_ready(&worker->greeter, event->data.ptr, now_ns);
}

/* Of each lane as many as are above what the others have. */
static void move_senders(struct worker *worker, uint32_t count)
{
    uint32_t wanted[MR_WORKER_LANES_MAX] = {0};

    for (uint32_t i = 0; i < count; i++) {
        uint32_t fullest = 0;

        for (uint32_t at = 1; at < worker->lane_count; at++)
            if (mr_lane_load(&worker->lanes[at]) >
                mr_lane_load(&worker->lanes[fullest]) + wanted[at] - wanted[fullest])
                fullest = at;
        wanted[fullest]++;
    }
    for (uint32_t at = 0; at < worker->lane_count; at++)
        if (wanted[at])
            mr_lane_move(&worker->lanes[at], wanted[at]);
}

static void even_out(struct worker *worker, uint64_t now_ns)
{
    uint32_t senders = 0, move;

    for (uint32_t i = 0; i < worker->lane_count; i++)
        senders += mr_lane_load(&worker->lanes[i]);
    move = mr_standing_turn(&worker->standing, worker->stats.graphs,
                            worker->stats.graph_count, senders, now_ns);
    if (move != MR_STANDING_ALL) {
        move_senders(worker, move);
        return;
    }
    for (uint32_t i = 0; i < worker->lane_count; i++)
        mr_lane_move(&worker->lanes[i], MR_LANE_MOVE_ALL);
}

static void write_stats(struct worker *worker, uint64_t now_ns)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_MINUTE_NS);
    struct mr_error error = MR_ERROR_NONE;

    if (!*worker->options.stats_file || !worker->graphs)
        return;
    if (mr_worker_stats_write(&worker->stats, worker->options.stats_file, now_ns,
                              &error) != MR_OK)
        (void)mr_log_limited(&limit, MR_LOG_WARN, "--stats-file: %s", error.text);
}

static uint64_t events_of_lanes(const struct worker *worker)
{
    uint64_t events = 0;

    for (uint32_t i = 0; i < worker->lane_count; i++) {
        struct mr_filter_stats stats[MR_GRAPH_NODES_MAX];
        uint32_t count = mr_graph_stats(mr_worker_graphs_lane(worker->graphs, i), stats,
                                        MR_GRAPH_NODES_MAX);

        for (uint32_t filter = 0; filter < count; filter++)
            events += stats[filter].events_in;
    }
    return events;
}

/*
 * Once in every quiet time, when filters have given back theirs, not a moment before: what the allocator keeps of the last burst goes
 * back to the system.
 */
static void trim_when_quiet(struct worker *worker, uint64_t now_ns)
{
    const struct mr_forward_link *link = mr_worker_graphs_link(worker->graphs);
    uint64_t work = events_of_lanes(worker) + mr_load_relaxed(&link->frames_acked);

    if (work != worker->work_seen) {
        worker->is_trimmed = false;
        worker->worked_ns = now_ns;
    } else if (!worker->is_trimmed &&
               now_ns - worker->worked_ns >
                   TRIM_AFTER_NS + 2 * worker->options.delta_interval_ns) {
        worker->is_trimmed = malloc_trim(0) >= 0;
    }
    worker->work_seen = work;
}

/* Until a signal, or until the analysis fails. */
static enum mr_status serve(struct worker *worker, struct mr_error *error)
{
    uint64_t next_stats_ns = 0;
    enum mr_status status = MR_OK;

    while (status == MR_OK && worker->stop_at_ns == 0) {
        struct epoll_event events[EVENTS_MAX];
        int ready = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, TURN_MS);
        uint64_t now_ns = mr_clock_monotonic_ns();

        for (int i = 0; i < ready; i++)
            on_event(worker, &events[i], now_ns);
        mr_greeter_tick(&worker->greeter, now_ns);
        even_out(worker, now_ns);
        mr_lanes_even_turn(&worker->even, now_ns);
        if (worker->metrics)
            mr_worker_metrics_run(worker->metrics, now_ns);
        if (now_ns >= next_stats_ns) {
            trim_when_quiet(worker, now_ns);
            write_stats(worker, now_ns);
            next_stats_ns = now_ns + MR_SECOND_NS;
        }
        status = mr_worker_graphs_status(worker->graphs, error);
    }
    return status;
}

/* While senders finish; a second signal ends the wait. */
static void wait_for_lanes(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->lane_count; i++) {
        while (!mr_lane_has_ended(&worker->lanes[i])) {
            struct epoll_event event;

            if (epoll_wait(worker->epoll_fd, &event, 1, END_TURN_MS) > 0)
                on_event(worker, &event, mr_clock_monotonic_ns());
        }
    }
}

static void drain(struct worker *worker)
{
    mr_standing_end(&worker->standing);
    if (worker->graphs)
        mr_worker_graphs_stop(worker->graphs);
    if (worker->stop_at_ns == 0) /* a failure, not a signal: nobody is waited for */
        stop_lanes(worker, 1);
    wait_for_lanes(worker);
    mr_asks_mute(&worker->asks);
    for (uint32_t i = 0; i < worker->driver_count; i++)
        mr_driver_stop(&worker->drivers[i]);
    for (uint32_t i = 0; i < worker->lane_count; i++)
        mr_lane_join(&worker->lanes[i]);
    if (worker->graphs)
        mr_worker_graphs_drain(worker->graphs);
    mr_homes_fini(&worker->homes);
    mr_places_fini(&worker->places);
    mr_asks_fini(&worker->asks);
    mr_wanted_board_fini(&worker->wanted);
}

/* Frames of senders that broke off, and the register has not said whose they are. */
static uint64_t tell_in_doubt(const struct worker *worker, uint64_t *kept)
{
    uint64_t lost = 0;

    for (uint32_t i = 0; i < worker->lane_count; i++) {
        *kept += worker->lanes[i].left_kept;
        lost += worker->lanes[i].left_in_doubt;
    }
    if (lost > 0)
        mr_log_error("gave up %" PRIu64
                     " frames of senders that broke off: the register at the master did "
                     "not say whether they are ours before the end (--drain-timeout, "
                     "or a second signal)",
                     lost);
    return lost;
}

static int tell_end(struct worker *worker)
{
    const struct mr_forward_link *link = mr_worker_graphs_link(worker->graphs);
    uint64_t given_up =
        mr_load_relaxed(&link->frames_given_up); /* final: all has ended */
    uint64_t acked = mr_load_relaxed(&link->frames_acked);
    uint64_t kept = mr_load_relaxed(&link->frames_kept); /* final, too */
    uint64_t in_doubt = tell_in_doubt(worker, &kept);

    if (kept > 0)
        mr_log_warn("%" PRIu64
                    " frames stay in the spool until a worker is started on it again",
                    kept);
    if (given_up == 0 && in_doubt > 0)
        return EXIT_FAILURE;
    if (given_up == 0) {
        mr_log_info("done: %" PRIu64 " frames are in custody above", acked);
        return EXIT_SUCCESS;
    }
    mr_log_error("gave up %" PRIu64 " frames that %s did not acknowledge (%" PRIu64
                 " are in custody above)",
                 given_up, worker->options.forward, acked);
    return EXIT_FAILURE;
}

/* What failed while it ended, where nothing had before: then what is in custody above is not all. */
static enum mr_status end_status(const struct worker *worker)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_worker_graphs_status(worker->graphs, &error);

    if (status != MR_OK)
        mr_log_error("%s: not all that came is in custody above", error.text);
    return status;
}

static int run(struct worker *worker)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = start(worker, &error);
    bool has_started = status == MR_OK;
    int exit_status = EXIT_USAGE;

    if (has_started)
        status = serve(worker, &error);
    if (status != MR_OK)
        mr_log_error("%s", error.text);
    if (worker->greeter.listen_fd > 0)
        mr_greeter_close(&worker->greeter);
    mr_worker_metrics_close(worker->metrics);
    drain(worker);
    mr_standing_close(&worker->standing);
    if (has_started) {
        if (status == MR_OK)
            status = end_status(worker);
        exit_status = tell_end(worker);
        if (status != MR_OK)
            exit_status = EXIT_FAILURE;
    }
    write_stats(worker, mr_clock_monotonic_ns());
    mr_worker_graphs_free(worker->graphs);
    for (uint32_t i = 0; i < worker->lane_count; i++)
        mr_lane_fini(&worker->lanes[i]);
    for (uint32_t i = 0; i < MR_WORKER_LANES_MAX; i++)
        while (worker->recovered[i]) { /* of lanes that were not started */
            struct mr_lane_recovered *recovered = worker->recovered[i];

            worker->recovered[i] = recovered->next;
            mr_lane_recovered_free(recovered);
        }
    mr_spool_close(worker->spool);
    return exit_status;
}

int mr_worker_command(int argc, char **argv)
{
    struct worker *worker = calloc(1, sizeof(*worker));
    int exit_status;

    if (!worker)
        return EXIT_FAILURE;
    worker->standing.agent.listen_fd = -1;
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    exit_status = mr_worker_options_read(argc, argv, &worker->options);
    if (exit_status < 0) {
        mr_log_init("worker", (enum mr_log_level)worker->options.log_level);
        worker->stats = (struct mr_worker_stats){.counters = &worker->counters,
                                                 .standing = &worker->standing,
                                                 .level = (uint32_t)worker->options.level,
                                                 .started_ns = mr_clock_monotonic_ns()};
        exit_status = run(worker);
    }
    mr_worker_options_fini(&worker->options);
    free(worker);
    return exit_status;
}
