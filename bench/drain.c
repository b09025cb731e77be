/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field      written by          read by       access
 * totals->*  drain's process     the harness   relaxed; read when `closed` says that all connections ended [E]
 * closed     drain's process     the harness   release store [E], acquire load [S]
 * Pairs: [E]-[S] what a connection added is there once it counts as closed.
 * Checked by: tests/unit/bench/test_drain.c
 */
#include "bench/drain.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "net/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64
#define BODY_MAX ((size_t)64 << 20)
#define SETTLE_NS (5 * MR_SECOND_NS)
#define READ_SIZE ((size_t)256 << 10)
#define ANSWER                                                                           \
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: "        \
    "0\r\n\r\n"

struct mr_drain_totals {
    _Atomic uint64_t bytes, spans, opened, closed;
};

struct taker {
    enum mr_drain_protocol protocol;
    struct mr_drain_totals *totals;
    uint32_t count;
    int fds[CONNECTIONS_MAX];
    struct mr_buffer requests[CONNECTIONS_MAX]; /* OTLP: what has come of the next one */
    uint8_t bytes[READ_SIZE];
};

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    mr_store_relaxed(counter, mr_load_relaxed(counter) + value); /* one writer */
}

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;

        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Past one field's value; a length-delimited one is told as *inner, which else is empty. */
static bool read_field(const uint8_t **at, const uint8_t *end, uint64_t *number,
                       struct mr_span *inner)
{
    uint64_t key, size = 0;

    *inner = (struct mr_span){.data = NULL};
    if (!read_varint(at, end, &key))
        return false;
    *number = key >> 3;
    switch (key & 7) {
    case 0:
        return read_varint(at, end, &size);
    case 1:
        size = 8;
        break;
    case 2:
        if (!read_varint(at, end, &size) || size > (uint64_t)(end - *at))
            return false;
        *inner = (struct mr_span){.data = *at, .size = (size_t)size};
        break;
    case 5:
        size = 4;
        break;
    default:
        return false;
    }
    if (size > (uint64_t)(end - *at))
        return false;
    *at += size;
    return true;
}

/* ExportTraceServiceRequest 1: ResourceSpans 2: ScopeSpans 2: Span */
static uint64_t count_level(const uint8_t *data, size_t size, unsigned level)
{
    static const uint64_t wanted[] = {1, 2, 2};
    const uint8_t *at = data, *end = data + size;
    uint64_t count = 0, number;
    struct mr_span inner;

    while (at < end && read_field(&at, end, &number, &inner))
        if (number == wanted[level] && inner.data)
            count += level == 2 ? 1 : count_level(inner.data, inner.size, level + 1);
    return count;
}

uint64_t mr_drain_count_spans(const uint8_t *data, size_t size)
{
    return size > 0 ? count_level(data, size, 0) : 0;
}

/* The value of Content-Length in the head; SIZE_MAX for none. */
static size_t content_length(const char *head, const char *end)
{
    static const char name[] = "content-length:";

    for (const char *line = head; line && line < end; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, name, sizeof(name) - 1) == 0)
            return strtoul(line + sizeof(name) - 1, NULL, 10);
    }
    return SIZE_MAX;
}

/* All whole requests of a connection. False when it is no HTTP as we know it. */
static bool answer_all(struct taker *taker, uint32_t index)
{
    struct mr_buffer *request = &taker->requests[index];

    while (request->size > 0) {
        const char *head = mr_command_text(request), *body = strstr(head, "\r\n\r\n");
        size_t length, head_size;

        mr_buffer_truncate(request, request->size - 1); /* the zero of text */
        if (!body)
            return request->size < READ_SIZE;
        head_size = (size_t)(body - head) + 4;
        length = content_length(head, body);
        if (length > BODY_MAX / 2)
            return false;
        if (request->size < head_size + length)
            return true;
        add(&taker->totals->spans,
            mr_drain_count_spans(request->data + head_size, length));
        mr_buffer_consume(request, head_size + length);
        if (send(taker->fds[index], ANSWER, sizeof(ANSWER) - 1, MSG_NOSIGNAL) < 0)
            return false;
    }
    return true;
}

/* False when the connection has ended. */
static bool serve(struct taker *taker, uint32_t index)
{
    ssize_t count = recv(taker->fds[index], taker->bytes, sizeof(taker->bytes), 0);

    if (count <= 0)
        return count < 0 && (errno == EINTR || errno == EAGAIN);
    add(&taker->totals->bytes, (uint64_t)count);
    if (taker->protocol == MR_DRAIN_BYTES)
        return true;
    return mr_buffer_append(&taker->requests[index], taker->bytes, (size_t)count) ==
               MR_OK &&
           answer_all(taker, index);
}

static void drop(struct taker *taker, uint32_t index)
{
    uint32_t last = --taker->count;

    (void)close(taker->fds[index]);
    mr_buffer_fini(&taker->requests[index]);
    taker->fds[index] = taker->fds[last];
    taker->requests[index] = taker->requests[last];
    mr_store_release(&taker->totals->closed, /* [E] pairs with [S] in stop() */
                     mr_load_relaxed(&taker->totals->closed) + 1);
}

MR_NORETURN static void take_for_ever(int listener, struct taker *taker)
{
    for (;;) {
        struct pollfd fds[CONNECTIONS_MAX + 1];
        uint32_t count = taker->count;

        for (uint32_t i = 0; i < count; i++)
            fds[i] = (struct pollfd){.fd = taker->fds[i], .events = POLLIN};
        fds[count] = (struct pollfd){.fd = listener, .events = POLLIN};
        if (poll(fds, count + 1, -1) < 0)
            continue;
        for (uint32_t i = count; i-- > 0;)
            if (fds[i].revents && !serve(taker, i))
                drop(taker, i);
        if (fds[count].revents && taker->count < CONNECTIONS_MAX) {
            int fd = accept(listener, NULL, NULL);

            if (fd < 0)
                continue;
            taker->fds[taker->count] = fd;
            mr_buffer_init(&taker->requests[taker->count++], BODY_MAX);
            add(&taker->totals->opened, 1);
        }
    }
}

MR_NORETURN static void become(int listener, enum mr_drain_protocol protocol,
                               struct mr_drain_totals *totals, pid_t parent)
{
    struct taker *taker = calloc(1, sizeof(*taker));

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    if (!taker || getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)signal(SIGPIPE, SIG_IGN);
    taker->protocol = protocol;
    taker->totals = totals;
    take_for_ever(listener, taker);
}

enum mr_status mr_drain_start(struct mr_drain *drain, enum mr_drain_protocol protocol,
                              struct mr_error *error)
{
    struct mr_endpoint endpoint = {.host = "127.0.0.1", .port = "0"};
    pid_t parent = getpid();
    enum mr_status status;
    int listener;
    void *memory = mmap(NULL, sizeof(*drain->totals), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *drain = (struct mr_drain){0};
    if (memory == MAP_FAILED)
        return mr_error_set_errno(error, MR_ENOMEM, errno, "no memory");
    drain->totals = memory;
    status = mr_listen(&endpoint, false, false, &listener, &drain->port, error);
    if (status != MR_OK) {
        mr_drain_stop(drain);
        return status;
    }
    drain->pid = fork();
    if (drain->pid == 0)
        become(listener, protocol, memory, parent);
    (void)close(listener);
    if (drain->pid > 0)
        return MR_OK;
    drain->pid = 0;
    mr_drain_stop(drain);
    return mr_error_set_errno(error, MR_EIO, errno, "cannot start what listens");
}

static void settle(const struct mr_drain *drain)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t deadline_ns = mr_clock_monotonic_ns() + SETTLE_NS;

    while (mr_load_acquire(&drain->totals->closed) < /* [S] pairs with [E] */
               mr_load_relaxed(&drain->totals->opened) &&
           mr_clock_monotonic_ns() < deadline_ns)
        (void)nanosleep(&pause, NULL);
}

void mr_drain_stop(struct mr_drain *drain)
{
    struct mr_drain kept = {.pid = 0};

    if (drain->pid > 0) {
        settle(drain);
        (void)kill(drain->pid, SIGKILL);
        while (mr_usage_wait(drain->pid, 0, NULL, &kept.usage) < 0 && errno == EINTR)
            continue;
    }
    if (drain->totals) {
        kept.bytes = mr_load_relaxed(&drain->totals->bytes); /* it has ended */
        kept.spans = mr_load_relaxed(&drain->totals->spans);
        (void)munmap(drain->totals, sizeof(*drain->totals));
    }
    *drain = kept;
}
