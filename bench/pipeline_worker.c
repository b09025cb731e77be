/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/pipeline.h"

#include "bench/server.h"
#include "net/endpoint.h"
#include "net/sender.h"

#include <dirent.h>
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

struct mr_bench_worker {
    struct mr_server server;
    char folder[PATH_MAX];
    uint8_t *outbox;
    struct mr_sender_address address;
    uint64_t plays;
    const struct mr_bench_stream *stream; /* being sent */
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
    enum mr_status status;

    if (!made)
        return MR_ENOMEM;
    *worker = made;
    made->outbox = malloc(OUTBOX_SIZE);
    (void)snprintf(made->folder, sizeof(made->folder), "%.*s/chain", PATH_MAX - 16,
                   bench->scratch);
    if (!made->outbox)
        return MR_ENOMEM;
    status = mr_folder_make(made->folder, error);
    if (status == MR_OK)
        status = mr_server_start(
            &made->server, &(struct mr_server_config){.folder = made->folder}, error);
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

static struct mr_hello hello_of(const struct mr_bench_worker *worker)
{
    struct mr_hello hello = worker->stream->hello;

    hello.sender.lo += UINT64_C(1000000) + worker->plays;
    hello.token = "";
    return hello;
}

static size_t say_hello(void *context, const struct mr_custody_hello *custody,
                        uint8_t *out, size_t capacity)
{
    struct mr_hello hello = hello_of(context);

    hello.oldest = custody->acked + 1;
    hello.custody = *custody;
    return mr_hello_put(&hello, out, capacity);
}

/* A chunk of a stream that goes on begins anew here: each play is a source of its own. */
static enum mr_status send_all(struct mr_bench_worker *worker, struct mr_sender *sender,
                               struct mr_error *error)
{
    uint64_t deadline_ns = mr_clock_monotonic_ns() + PLAY_NS;

    for (uint32_t i = 0; i < worker->stream->frame_count; i++) {
        const struct mr_bench_frame *frame = &worker->stream->frames[i];
        uint8_t *room;

        while (!(room = mr_sender_reserve(sender, frame->payload.size))) {
            (void)mr_sender_poll(sender, POLL_NS);
            if (mr_clock_monotonic_ns() > deadline_ns)
                return mr_error_set(error, MR_ETIMEOUT, "the worker does not take: %s",
                                    sender->last_error.text);
        }
        memcpy(room, frame->payload.data, frame->payload.size);
        (void)mr_sender_commit(sender, (enum mr_frame_type)frame->type, 0,
                               frame->payload.size);
        (void)mr_sender_poll(sender, 0);
    }
    if (mr_sender_finish(sender, MR_BYE_FINISHED, deadline_ns) != MR_OK)
        return mr_error_set(error, MR_ETIMEOUT, "the worker does not acknowledge: %s",
                            sender->last_error.text);
    return MR_OK;
}

enum mr_status mr_bench_worker_play(struct mr_bench_worker *worker,
                                    const struct mr_bench_stream *stream,
                                    uint64_t *cpu_ns, struct mr_error *error)
{
    const struct timespec pause = {.tv_nsec = (long)DELTA_NS};
    uint64_t before_ns = mr_bench_process_ns(worker->server.worker);
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
    worker->plays++;
    worker->stream = stream;
    config.incarnation = hello_of(worker).sender;
    status = mr_sender_init(sender, &config);
    if (status == MR_OK) {
        status = send_all(worker, sender, error);
        mr_sender_fini(sender);
    }
    (void)nanosleep(&pause, NULL);
    *cpu_ns = mr_bench_process_ns(worker->server.worker) - before_ns;
    free(sender);
    return status;
}
