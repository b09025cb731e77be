/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A receiver that keeps an account of its own of what probes send, and prints it:
 *
 *     sink PORT_FILE [--sources N] [--sleep-us N] [--deaf] [--deaf-after N] [--patient] [--trees FILE]
 *
 * It listens on a free port of loopback, writes its number to PORT_FILE, and ends when N
 * (1) sources have finished or died, or at SIGTERM. --sleep-us: between two frames.
 * --deaf: accepts and never reads. --deaf-after: reads no more once N data frames came. --patient: who leaves without
 * BYE will come again. --trees: writes what a worker makes of it, see sink_trees.h. Exit status 1 if a probe broke a
 * promise.
 */
#include "sink.h"
#include "sink_calls.h"
#include "sink_trees.h"

#include "base/clock.h"
#include "net/conn.h"
#include "net/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX 2048
#define MAX_FRAME (UINT32_C(4) << 20)
#define CREDIT (UINT64_C(64) << 20)

struct options {
    const char *port_file, *trees;
    uint32_t sources, sleep_us;
    uint64_t deaf_after; /* 0: never */
    bool is_deaf, is_patient;
};

struct sink {
    struct options options;
    int listener;
    uint32_t connection_count, source_count, ended;
    struct mr_conn *connections[CONNECTIONS_MAX];
    struct sink_source *sources[CONNECTIONS_MAX]; /* of each connection, or NULL */
    struct sink_source all[CONNECTIONS_MAX];
};

static volatile sig_atomic_t has_signal;
static struct sink sink;

static void on_signal(int number)
{
    (void)number;
    has_signal = 1;
}

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static void write_port(const char *path, uint16_t port)
{
    char temporary[4096];
    FILE *file;

    (void)snprintf(temporary, sizeof(temporary), "%s.new", path);
    file = fopen(temporary, "w");
    if (!file || fprintf(file, "%u\n", port) < 0 || fclose(file) != 0 ||
        rename(temporary, path) != 0)
        die(path);
}

static void start_listening(void)
{
    struct mr_endpoint endpoint = {.host = "127.0.0.1", .port = "0"};
    struct mr_error error = MR_ERROR_NONE;
    uint16_t port;

    if (mr_listen(&endpoint, false, false, &sink.listener, &port, &error) != MR_OK) {
        fprintf(stderr, "sink: %s\n", error.text);
        exit(2);
    }
    write_port(sink.options.port_file, port);
}

static void take_connections(void)
{
    int fd;

    while (sink.connection_count < CONNECTIONS_MAX &&
           (fd = accept(sink.listener, NULL, NULL)) >= 0) {
        struct mr_conn *conn = malloc(sizeof(*conn));

        if (!conn || mr_conn_init(conn, fd, "probe", MAX_FRAME) != MR_OK)
            die("connection");
        sink.sources[sink.connection_count] = NULL;
        sink.connections[sink.connection_count++] = conn;
    }
}

static struct sink_source *source_of(const struct mr_hello *hello)
{
    struct sink_source *source;

    for (uint32_t i = 0; i < sink.source_count; i++)
        if (mr_id_equal(sink.all[i].id, hello->sender)) {
            printf("again pid=%u\n", hello->source.pid);
            return &sink.all[i];
        }
    if (sink.source_count == CONNECTIONS_MAX)
        die("sources");
    source = &sink.all[sink.source_count++];
    source->id = hello->sender;
    source->pid = hello->source.pid;
    source->next_sequence = 1;
    source->site_limit = MR_SITE_FIRST_NAMED;
    if (sink.options.trees)
        source->trees = sink_trees_source(hello, sink.source_count - 1);
    (void)snprintf(source->app, sizeof(source->app), "%s", hello->source.app);
    printf(
        "hello app=%s pid=%u host=%s version=%s mult=%u shift=%u attributes=%u clock=%s "
        "tick_ns=%u tick_events=%u warning=%s\n",
        hello->source.app, hello->source.pid, hello->source.host, hello->source.version,
        hello->source.clock.mult, hello->source.clock.shift,
        hello->source.attribute_count, mr_clock_kind_name(hello->source.clock.kind),
        hello->source.tick_ns, hello->source.tick_events, hello->source.clock_warning);
    return source;
}

static bool take_hello(uint32_t index, const struct mr_frame *frame)
{
    struct mr_hello_message message;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_conn *conn = sink.connections[index];

    if (mr_hello_get(frame->payload, &message, &error) != MR_OK) {
        printf("fault: hello: %s\n", error.text);
        return false;
    }
    sink.sources[index] = source_of(&message.hello);
    /* A sender that comes again has left its connection before. */
    for (uint32_t i = 0; i < sink.connection_count; i++)
        if (i != index && sink.sources[i] == sink.sources[index])
            sink.sources[i] = NULL;
    mr_hello_free(&message);
    return mr_conn_welcome(conn, sink.sources[index]->next_sequence, CREDIT) == MR_OK;
}

static bool take_frame(uint32_t index, const struct mr_frame *frame)
{
    struct sink_source *source = sink.sources[index];

    if (frame->type == MR_FRAME_HELLO)
        return take_hello(index, frame);
    if (!source)
        return false;
    if (frame->type == MR_FRAME_DICT)
        sink_take_dict(source, frame->payload);
    else if (frame->type == MR_FRAME_CHUNKS)
        sink_take_chunks(source, frame->payload);
    if (source->trees)
        sink_trees_frame(source->trees, frame);
    source->next_sequence = frame->sequence + 1;
    if (sink.options.deaf_after && frame->sequence >= sink.options.deaf_after)
        sink.options.is_deaf = true;
    if (sink.options.sleep_us) {
        (void)usleep(sink.options.sleep_us);
        (void)mr_conn_ack(sink.connections[index], frame->sequence, CREDIT);
    }
    return true;
}

/* False when the connection has ended, well or not. */
static bool serve(uint32_t index)
{
    struct mr_conn *conn = sink.connections[index];
    enum mr_status read = mr_conn_read(conn), status = MR_AGAIN;
    struct mr_frame frame;

    while (!sink.options.is_deaf && (status = mr_conn_next(conn, &frame)) == MR_OK)
        if (!take_frame(index, &frame))
            return false;
    if (sink.sources[index])
        (void)mr_conn_ack(conn, conn->next_sequence - 1, CREDIT);
    (void)mr_conn_flush(conn);
    if (mr_status_is_error(status))
        printf("fault: connection: %s\n", conn->error.text);
    if (status == MR_END && sink.sources[index])
        sink.sources[index]->is_finished = true;
    return status == MR_AGAIN && read != MR_END && read != MR_EIO;
}

static void drop_connection(uint32_t index)
{
    mr_conn_fini(sink.connections[index]);
    free(sink.connections[index]);
    if (sink.sources[index] &&
        (sink.sources[index]->is_finished || !sink.options.is_patient))
        sink.ended++;
    sink.connection_count--;
    sink.connections[index] = sink.connections[sink.connection_count];
    sink.sources[index] = sink.sources[sink.connection_count];
}

static void run_once(void)
{
    static struct pollfd fds[CONNECTIONS_MAX + 1];
    uint32_t count = sink.connection_count;

    fds[0] = (struct pollfd){.fd = sink.listener, .events = POLLIN};
    for (uint32_t i = 0; i < count; i++)
        fds[i + 1] = (struct pollfd){.fd = sink.connections[i]->fd,
                                     .events = sink.options.is_deaf ? 0 : POLLIN};
    if (poll(fds, count + 1, 200) < 0 && errno != EINTR)
        die("poll");
    for (uint32_t i = count; i-- > 0 && !sink.options.is_deaf;) {
        if (fds[i + 1].revents && !serve(i))
            drop_connection(i);
        else
            (void)mr_conn_tick(sink.connections[i], mr_clock_monotonic_ns());
    }
    if (fds[0].revents)
        take_connections();
}

static void parse(int argc, char **argv)
{
    sink.options.sources = 1;
    if (argc < 2)
        exit(2);
    sink.options.port_file = argv[1];
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--sources") == 0 && i + 1 < argc)
            sink.options.sources = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--sleep-us") == 0 && i + 1 < argc)
            sink.options.sleep_us = (uint32_t)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--deaf-after") == 0 && i + 1 < argc)
            sink.options.deaf_after = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--trees") == 0 && i + 1 < argc)
            sink.options.trees = argv[++i];
        else if (strcmp(argv[i], "--calls") == 0 && i + 1 < argc)
            sink_calls_start(argv[++i]);
        else if (strcmp(argv[i], "--deaf") == 0)
            sink.options.is_deaf = true;
        else if (strcmp(argv[i], "--patient") == 0)
            sink.options.is_patient = true;
        else
            exit(2);
    }
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    uint64_t faults = 0;

    parse(argc, argv);
    if (sink.options.trees)
        sink_trees_open(sink.options.trees);
    (void)sigaction(SIGTERM, &action, NULL);
    start_listening();
    while (!has_signal && sink.ended < sink.options.sources)
        run_once();
    for (uint32_t i = 0; i < sink.source_count; i++) {
        if (sink.all[i].trees)
            sink_trees_end(sink.all[i].trees, sink.all[i].is_finished);
        sink_print(&sink.all[i]);
        faults += sink.all[i].faults;
        free(sink.all[i].streams);
    }
    if (sink.options.trees)
        sink_trees_close();
    if (sink_calls_are_wanted())
        sink_calls_print();
    while (sink.connection_count > 0)
        drop_connection(0);
    return faults > 0;
}
