/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pipeline.h"

#include "bench/interrupt.h"
#include "bench/server.h"
#include "net/endpoint.h"
#include "net/sender.h"

#include <dirent.h>
#include <jansson.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTBOX_SIZE ((size_t)64 << 20)
#define MAX_FRAME (UINT32_C(4) << 20)
#define POLL_NS (5 * MR_MILLISECOND_NS)
#define PLAY_NS (60 * MR_SECOND_NS)
#define DELTA_NS (300 * MR_MILLISECOND_NS) /* three periods: what was gained has left */
/* At rest: so little processor time in so long; what its timers alone take is a tenth of it. */
#define REST_NS (100 * MR_MILLISECOND_NS)
#define REST_CPU_NS (3 * MR_MILLISECOND_NS)
#define REST_WAITS 300

struct mr_bench_worker {
    struct mr_server server;
    char folder[PATH_MAX];
    uint8_t *outbox;
    struct mr_sender_address address;
    char stats[PATH_MAX]; /* what it tells when it ends */
    struct mr_bench_replay replay;
    uint64_t events; /* sent */
};

/* The first number of a file; 0. */
static uint64_t first_number(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[80] = "";

    if (!file)
        return 0;
    if (!fgets(line, sizeof(line), file))
        line[0] = '\0';
    (void)fclose(file);
    return strtoull(line, NULL, 10);
}

/* Of all its threads, none of which ends; /proc/PID/stat has only ticks of 10 ms. */
uint64_t mr_bench_process_ns(pid_t pid)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    uint64_t ns = 0;
    DIR *folder;

    (void)snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    folder = opendir(path);
    if (!folder)
        return 0;
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof(path), "/proc/%ld/task/%.32s/schedstat",
                           (long)pid, entry->d_name);
            ns += first_number(path);
        }
    (void)closedir(folder);
    return ns;
}

static bool resolve(const char *endpoint, struct mr_sender_address *address)
{
    const char *port = strrchr(endpoint, ':');
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;

    if (!port || getaddrinfo("127.0.0.1", port + 1, &hints, &found) != 0)
        return false;
    memcpy(&address->address, found->ai_addr, found->ai_addrlen);
    address->size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

enum mr_status mr_bench_worker_start(struct mr_pipeline_bench *bench,
                                     struct mr_bench_worker **worker,
                                     struct mr_error *error)
{
    struct mr_bench_worker *made = calloc(1, sizeof(*made));
    struct mr_words words = {0};
    const struct mr_server_config config = {.folder = made ? made->folder : NULL,
                                            .worker = &words};
    enum mr_status status;

    if (!made)
        return MR_ENOMEM;
    *worker = made;
    made->outbox = malloc(OUTBOX_SIZE);
    (void)snprintf(made->folder, sizeof(made->folder), "%.*s/chain", PATH_MAX - 48,
                   bench->scratch);
    (void)snprintf(made->stats, sizeof(made->stats), "%.*s/worker.json", PATH_MAX - 32,
                   made->folder);
    if (!made->outbox)
        return MR_ENOMEM;
    mr_words_add(&words, "--stats-file");
    mr_words_add(&words, "%s", made->stats);
    status = mr_folder_make(made->folder, error);
    if (status == MR_OK)
        status = mr_server_start(&made->server, &config, error);
    mr_words_fini(&words);
    if (status == MR_OK && !resolve(made->server.endpoint, &made->address))
        status = mr_error_set(error, MR_EIO, "no address of the worker");
    return status;
}

void mr_bench_worker_stop(struct mr_bench_worker *worker)
{
    if (!worker)
        return;
    mr_server_stop(&worker->server);
    mr_folder_remove(worker->folder);
    free(worker->outbox);
    free(worker);
}

static size_t say_hello(void *context, const struct mr_custody_hello *custody,
                        uint8_t *out, size_t capacity)
{
    const struct mr_bench_worker *worker = context;
    struct mr_hello hello = mr_bench_replay_hello(&worker->replay);

    hello.oldest = custody->acked + 1;
    hello.custody = *custody;
    return mr_hello_put(&hello, out, capacity);
}

static enum mr_status send_frame(struct mr_bench_worker *worker, struct mr_sender *sender,
                                 const struct mr_bench_frame *frame, uint64_t deadline_ns,
                                 struct mr_error *error)
{
    size_t size;
    uint8_t *room;

    while (!(room = mr_sender_reserve(sender, mr_bench_replay_room(frame)))) {
        (void)mr_sender_poll(sender, POLL_NS);
        if (mr_clock_monotonic_ns() > deadline_ns)
            return mr_error_set(error, MR_ETIMEOUT, "the worker does not take: %s",
                                sender->last_error.text);
    }
    if (mr_bench_replay_frame(&worker->replay, frame, room, &size) != MR_OK)
        return mr_error_set(error, MR_EIO, "a dictionary of the stream is broken");
    if (size > 0)
        (void)mr_sender_commit(sender, (enum mr_frame_type)frame->type, 0, size);
    (void)mr_sender_poll(sender, 0);
    return MR_OK;
}

static enum mr_status send_all(struct mr_bench_worker *worker, struct mr_sender *sender,
                               struct mr_error *error)
{
    const struct mr_bench_stream *stream = worker->replay.stream;
    uint64_t deadline_ns = mr_clock_monotonic_ns() + PLAY_NS;
    enum mr_status status = MR_OK;

    for (uint32_t i = 0; i < stream->frame_count && status == MR_OK; i++)
        status = send_frame(worker, sender, &stream->frames[i], deadline_ns, error);
    if (status == MR_OK &&
        mr_sender_finish(sender, MR_BYE_FINISHED, deadline_ns) != MR_OK)
        status = mr_error_set(error, MR_ETIMEOUT, "the worker does not acknowledge: %s",
                              sender->last_error.text);
    return status;
}

static enum mr_status play_once(struct mr_bench_worker *worker,
                                struct mr_bench_stream *stream, struct mr_error *error)
{
    struct mr_sender_config config = {.addresses = {worker->address},
                                      .address_count = 1,
                                      .outbox = worker->outbox,
                                      .outbox_size = OUTBOX_SIZE,
                                      .max_frame = MAX_FRAME,
                                      .hello = say_hello,
                                      .context = worker};
    struct mr_sender *sender = calloc(1, sizeof(*sender));
    enum mr_status status;

    if (!sender)
        return MR_ENOMEM;
    mr_bench_begin_anew(&worker->replay, stream);
    config.incarnation = mr_bench_replay_hello(&worker->replay).sender;
    status = mr_sender_init(sender, &config);
    if (status == MR_OK) {
        status = send_all(worker, sender, error);
        mr_sender_fini(sender);
    }
    free(sender);
    worker->events += stream->events;
    return status;
}

static uint64_t busy_ns(const struct mr_bench_worker *worker)
{
    return mr_bench_process_ns(worker->server.worker) +
           mr_bench_process_ns(worker->server.master);
}

/*
 * Until worker and master have done what the plays left them: what is acknowledged need not be reduced, and deltas are made
 * and merged behind it. Else it would count for nobody, and disturb what is measured next.
 */
static void rest(const struct mr_bench_worker *worker)
{
    const struct timespec delta = {.tv_nsec = (long)DELTA_NS};
    const struct timespec pause = {.tv_nsec = (long)REST_NS};
    uint64_t before_ns, after_ns;

    (void)nanosleep(&delta, NULL);
    after_ns = busy_ns(worker);
    for (int i = 0; i < REST_WAITS && !mr_interrupt_seen(); i++) {
        before_ns = after_ns;
        (void)nanosleep(&pause, NULL);
        after_ns = busy_ns(worker);
        if (after_ns - before_ns < REST_CPU_NS)
            return;
    }
}

enum mr_status mr_bench_worker_play(struct mr_bench_worker *worker,
                                    struct mr_bench_stream *stream, uint64_t events,
                                    double *ns_per_event, struct mr_error *error)
{
    uint64_t before_ns = mr_bench_process_ns(worker->server.worker);
    uint64_t before = worker->events;
    enum mr_status status;

    do
        status = play_once(worker, stream, error);
    while (status == MR_OK && worker->events - before < events && !mr_interrupt_seen());
    rest(worker);
    *ns_per_event = (double)(mr_bench_process_ns(worker->server.worker) - before_ns) /
                    (double)(worker->events - before);
    return mr_interrupt_seen() ? MR_END : status;
}

enum mr_status mr_bench_worker_end(struct mr_bench_worker *worker, uint64_t *lost,
                                   struct mr_error *error)
{
    json_t *stats;
    const json_t *reduced;
    enum mr_status status = MR_OK;

    *lost = 0;
    if (!worker)
        return MR_OK;
    mr_server_stop(&worker->server);
    stats = json_load_file(worker->stats, 0, NULL);
    reduced = json_object_get(json_object_get(stats, "counters"), "reduced");
    if (json_is_integer(reduced))
        *lost = worker->events - (uint64_t)json_integer_value(reduced);
    else
        status = mr_error_set(error, MR_EIO, "the worker did not tell what it reduced");
    json_decref(stats);
    return status;
}
