/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field        written by           read by        access
 * totals->*    receiver's process   the harness    relaxed: counts, read when the
 *                                                  connections are closed [E]
 * closed       receiver's process   the harness    release store [E], acquire load [S]
 * wants_stamps the harness          receiver's     release store, acquire load: stamp_count
 *                                                  was set to 0 before; no connection is open
 * Pairs: [E]-[S] what a connection added is there once it counts as closed.
 * Checked by: tests/system/bench
 */
#include "bench/receiver.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "bench/machine.h"
#include "net/chunk.h"
#include "net/conn.h"
#include "net/control.h"
#include "net/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64
#define MAX_FRAME (UINT32_C(4) << 20)
#define CREDIT (UINT64_C(64) << 20)
#define POLL_MS 200
#define LOSS_EVENTS ((UINT64_C(1) << 48) - 1) /* of the first payload word */
#define SETTLE_NS (5 * MR_SECOND_NS)

struct taker {
    int listener;
    uint32_t count;
    struct mr_conn conns[CONNECTIONS_MAX];
    bool has_hello[CONNECTIONS_MAX];
    uint64_t bytes[CONNECTIONS_MAX]; /* of these, counted */
    FILE *recording;                 /* NULL: they are forgotten */
    struct mr_receiver_totals *totals;
    struct mr_record_reader reader; /* too large for a stack */
    struct mr_record record;
};

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    mr_store_relaxed(counter, mr_load_relaxed(counter) + value); /* one writer */
}

static void look_into(struct taker *taker, const struct mr_chunk *chunk, bool is_last)
{
    struct mr_receiver_totals *totals = taker->totals;
    bool wants_stamps = mr_load_relaxed(&totals->wants_stamps) != 0;
    struct mr_record *record = &taker->record;

    mr_record_reader_init(&taker->reader, chunk);
    while (mr_record_next(&taker->reader, record) == MR_OK) {
        uint64_t count = mr_load_relaxed(&totals->stamp_count);

        if (record->kind == MR_RECORD_LOSS && record->site < MR_SITE_FIRST_NAMED &&
            is_last)
            add(&totals->lost, record->payload[0] & LOSS_EVENTS);
        if (wants_stamps && record->site >= MR_SITE_FIRST_NAMED && !record->is_exit &&
            count < MR_RECEIVER_STAMPS_MAX) {
            totals->stamps[count] = record->ticks;
            mr_store_relaxed(&totals->stamp_count, count + 1);
        }
    }
}

static void count_chunks(struct taker *taker, struct mr_span payload)
{
    struct mr_chunk chunk;
    enum mr_status status;

    while ((status = mr_chunk_next(&payload, &chunk)) == MR_OK) {
        bool is_last = (chunk.flags & (MR_CHUNK_LAST | MR_CHUNK_SOURCE_END)) != 0;

        add(&taker->totals->events, chunk.events);
        if (is_last)
            add(&taker->totals->lost, chunk.lost);
        if (is_last || mr_load_acquire(&taker->totals->wants_stamps) != 0)
            look_into(taker, &chunk, is_last);
    }
    if (status != MR_END)
        add(&taker->totals->faults, 1);
}

static void record(struct taker *taker, const struct mr_frame *frame)
{
    const uint32_t head[2] = {frame->type, (uint32_t)frame->payload.size};

    if (taker->recording && (fwrite(head, sizeof(head), 1, taker->recording) != 1 ||
                             fwrite(frame->payload.data, 1, frame->payload.size,
                                    taker->recording) != frame->payload.size ||
                             fflush(taker->recording) != 0))
        add(&taker->totals->faults, 1);
}

static bool greet(struct taker *taker, uint32_t index, const struct mr_frame *frame)
{
    struct mr_hello_message message;

    if (mr_hello_get(frame->payload, &message, NULL) != MR_OK) {
        add(&taker->totals->faults, 1);
        return false;
    }
    mr_hello_free(&message);
    taker->has_hello[index] = true;
    return mr_conn_welcome(&taker->conns[index], 1, CREDIT) == MR_OK;
}

/* False when the connection has ended. */
static bool serve(struct taker *taker, uint32_t index)
{
    struct mr_conn *conn = &taker->conns[index];
    enum mr_status read = mr_conn_read(conn), status;
    struct mr_frame frame;

    while ((status = mr_conn_next(conn, &frame)) == MR_OK) {
        record(taker, &frame);
        if (frame.type == MR_FRAME_HELLO && !greet(taker, index, &frame))
            return false;
        if (frame.type == MR_FRAME_CHUNKS)
            count_chunks(taker, frame.payload);
    }
    if (taker->has_hello[index])
        (void)mr_conn_ack(conn, conn->next_sequence - 1, CREDIT);
    (void)mr_conn_flush(conn);
    add(&taker->totals->bytes, conn->stats.bytes - taker->bytes[index]);
    taker->bytes[index] = conn->stats.bytes;
    if (mr_status_is_error(status))
        add(&taker->totals->faults, 1);
    return status == MR_AGAIN && read != MR_END && read != MR_EIO;
}

static void drop(struct taker *taker, uint32_t index)
{
    uint32_t last = --taker->count;

    mr_conn_fini(&taker->conns[index]);
    taker->conns[index] = taker->conns[last];
    taker->has_hello[index] = taker->has_hello[last];
    taker->bytes[index] = taker->bytes[last];
    mr_store_release(&taker->totals->closed, /* [E] pairs with [S] in settle() */
                     mr_load_relaxed(&taker->totals->closed) + 1);
}

static void accept_all(struct taker *taker)
{
    int fd;

    while (taker->count < CONNECTIONS_MAX &&
           (fd = accept(taker->listener, NULL, NULL)) >= 0) {
        if (mr_conn_init(&taker->conns[taker->count], fd, "probe", MAX_FRAME) != MR_OK)
            continue;
        taker->has_hello[taker->count] = false;
        taker->bytes[taker->count++] = 0;
        add(&taker->totals->opened, 1);
    }
}

static void run_once(struct taker *taker)
{
    struct pollfd fds[CONNECTIONS_MAX + 1];
    uint32_t count = taker->count;
    uint64_t now_ns;

    for (uint32_t i = 0; i < count; i++)
        fds[i] = (struct pollfd){.fd = taker->conns[i].fd, .events = POLLIN};
    fds[count] = (struct pollfd){.fd = taker->listener, .events = POLLIN};
    if (poll(fds, count + 1, POLL_MS) < 0)
        return;
    now_ns = mr_clock_monotonic_ns();
    for (uint32_t i = count; i-- > 0;)
        if ((fds[i].revents && !serve(taker, i)) ||
            mr_conn_tick(&taker->conns[i], now_ns) != MR_OK)
            drop(taker, i);
    if (fds[count].revents)
        accept_all(taker);
}

MR_NORETURN static void take_for_ever(int listener, struct mr_receiver_totals *totals,
                                      const char *recording, int avoided_cpu,
                                      pid_t parent)
{
    struct taker *taker = calloc(1, sizeof(*taker));

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    mr_machine_leave_cpu(avoided_cpu); /* as if on another machine */
    if (!taker || getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)signal(SIGPIPE, SIG_IGN);
    taker->listener = listener;
    taker->totals = totals;
    if (recording)
        taker->recording = fopen(recording, "we");
    if (recording && !taker->recording)
        _exit(EXIT_FAILURE);
    for (;;)
        run_once(taker);
}

static enum mr_status start(struct mr_receiver *receiver, const char *host,
                            const char *recording, int avoided_cpu,
                            struct mr_error *error)
{
    struct mr_endpoint endpoint = {.port = "0"};
    pid_t parent = getpid();
    enum mr_status status;
    uint16_t port;
    int listener;
    void *memory = mmap(NULL, sizeof(*receiver->totals), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *receiver = (struct mr_receiver){0};
    if (memory == MAP_FAILED)
        return mr_error_set_errno(error, MR_ENOMEM, errno, "receiver");
    (void)snprintf(endpoint.host, sizeof(endpoint.host), "%s", host ? host : "127.0.0.1");
    status = mr_listen(&endpoint, false, host != NULL, &listener, &port, error);
    if (status != MR_OK) {
        (void)munmap(memory, sizeof(*receiver->totals));
        return status;
    }
    receiver->totals = memory;
    (void)snprintf(receiver->endpoint, sizeof(receiver->endpoint), "tcp://%.40s:%u",
                   endpoint.host, (unsigned)port);
    receiver->pid = fork();
    if (receiver->pid == 0)
        take_for_ever(listener, receiver->totals, recording, avoided_cpu, parent);
    (void)close(listener);
    if (receiver->pid > 0)
        return MR_OK;
    receiver->pid = 0;
    mr_receiver_stop(receiver);
    return mr_error_set_errno(error, MR_EIO, errno, "cannot start the receiver");
}

enum mr_status mr_receiver_start(struct mr_receiver *receiver, const char *host,
                                 int avoided_cpu, struct mr_error *error)
{
    return start(receiver, host, NULL, avoided_cpu, error);
}

enum mr_status mr_receiver_start_recording(struct mr_receiver *receiver, const char *path,
                                           struct mr_error *error)
{
    return start(receiver, NULL, path, -1, error);
}

void mr_receiver_settle(const struct mr_receiver *receiver)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t deadline_ns = mr_clock_monotonic_ns() + SETTLE_NS;

    while (mr_load_acquire(&receiver->totals->closed) < /* [S] pairs with [E] */
               mr_load_relaxed(&receiver->totals->opened) &&
           mr_clock_monotonic_ns() < deadline_ns)
        (void)nanosleep(&pause, NULL);
}

void mr_receiver_stop(struct mr_receiver *receiver)
{
    struct mr_usage usage = receiver->usage;

    if (receiver->pid > 0) {
        (void)kill(receiver->pid, SIGKILL);
        while (mr_usage_wait(receiver->pid, 0, NULL, &usage) < 0 && errno == EINTR)
            continue;
    }
    if (receiver->totals)
        (void)munmap(receiver->totals, sizeof(*receiver->totals));
    *receiver = (struct mr_receiver){.usage = usage};
}
