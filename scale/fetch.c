/* SPDX-License-Identifier: Apache-2.0 */
#include "scale/fetch.h"

#include "base/assert.h"
#include "base/clock.h"
#include "net/endpoint.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FETCHES_MAX 65

static void end(struct mr_fetch *fetch)
{
    if (fetch->fd >= 0)
        (void)close(fetch->fd);
    fetch->fd = -1;
}

static void fail(struct mr_fetch *fetch, const char *why, int system_errno)
{
    if (fetch->error.status == MR_OK)
        (void)mr_error_set(&fetch->error, MR_EIO, "%s: %s%s%s", fetch->address, why,
                           system_errno ? ": " : "",
                           system_errno ? strerror(system_errno) : "");
    end(fetch);
}

static void connect_to(struct mr_fetch *fetch, const struct mr_sender_address *to)
{
    fetch->fd =
        socket(to->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fetch->fd >= 0 &&
        connect(fetch->fd, (const struct sockaddr *)&to->address, to->size) != 0 &&
        errno != EINPROGRESS)
        end(fetch);
}

/* `failure`: of the address before, an errno. */
static void connect_to_next(struct mr_fetch *fetch, int failure)
{
    end(fetch);
    while (fetch->fd < 0 && fetch->next < fetch->address_count) {
        connect_to(fetch, &fetch->addresses[fetch->next++]);
        failure = errno;
    }
    fetch->next_at_ns = mr_clock_monotonic_ns() + fetch->wait_ns;
    if (fetch->fd < 0)
        fail(fetch, "connect", failure);
}

/* When it goes to its next address, if this one has not taken the connection before. */
static uint64_t moves_at_ns(const struct mr_fetch *fetch)
{
    bool has_next = fetch->next < fetch->address_count;

    return fetch->fd >= 0 && !fetch->has_asked && has_next ? fetch->next_at_ns
                                                           : UINT64_MAX;
}

static void start(struct mr_fetch *fetch, uint64_t timeout_ns)
{
    struct mr_endpoints endpoints;
    struct mr_error why = MR_ERROR_NONE;

    fetch->fd = -1;
    fetch->next = fetch->address_count = 0;
    fetch->is_there = fetch->has_asked = false;
    fetch->text = NULL;
    mr_error_clear(&fetch->error);
    mr_buffer_init(&fetch->answer, MR_FETCH_BYTES_MAX);
    if (mr_endpoints_parse(fetch->address, &endpoints, &why) != MR_OK ||
        mr_endpoints_resolve(&endpoints, fetch->addresses, &fetch->address_count, &why) !=
            MR_OK) {
        (void)mr_error_set(&fetch->error, why.status, "%s", why.text);
        return;
    }
    fetch->wait_ns = timeout_ns / fetch->address_count;
    connect_to_next(fetch, 0);
}

static void ask(struct mr_fetch *fetch, const char *path)
{
    char request[512];
    int failure = 0, size;
    socklen_t failure_size = sizeof(failure);

    if (getsockopt(fetch->fd, SOL_SOCKET, SO_ERROR, &failure, &failure_size) != 0 ||
        failure) {
        connect_to_next(fetch, failure);
        return;
    }
    size = snprintf(request, sizeof(request),
                    "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path,
                    fetch->address);
    MR_ASSERT(size > 0 && size < (int)sizeof(request));
    if (send(fetch->fd, request, (size_t)size, MSG_NOSIGNAL) != size)
        fail(fetch, "cannot ask", errno);
    fetch->has_asked = true;
}

static void finish(struct mr_fetch *fetch)
{
    const char *text;

    if (mr_buffer_append_byte(&fetch->answer, 0) != MR_OK) {
        fail(fetch, "the answer is too long", 0);
        return;
    }
    text = (const char *)fetch->answer.data;
    if (strncmp(text, "HTTP/1.1 200 ", 13) != 0) {
        (void)mr_error_set(&fetch->error, MR_EFORMAT, "%s: answered '%.40s'",
                           fetch->address, text);
        end(fetch);
        return;
    }
    fetch->text = strstr(text, "\r\n\r\n");
    fetch->is_there = fetch->text != NULL;
    if (fetch->is_there)
        end(fetch);
    else
        fail(fetch, "the answer has no end of its head", 0);
}

static void take(struct mr_fetch *fetch)
{
    uint8_t bytes[16384];
    ssize_t size = recv(fetch->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (size == 0)
        finish(fetch);
    else if (size < 0 && errno != EAGAIN && errno != EINTR)
        fail(fetch, "broke off", errno);
    else if (size > 0 && mr_buffer_append(&fetch->answer, bytes, (size_t)size) != MR_OK)
        fail(fetch, "the answer is too long", 0);
}

/* One wait; false when nobody is waited for. */
static bool turn(struct mr_fetch *fetches, uint32_t count, const char *path,
                 uint64_t now_ns, uint64_t deadline_ns)
{
    struct pollfd fds[FETCHES_MAX];
    bool is_waiting = false;
    uint64_t until_ns = deadline_ns;

    for (uint32_t i = 0; i < count; i++) {
        if (moves_at_ns(&fetches[i]) <= now_ns)
            connect_to_next(&fetches[i], ETIMEDOUT);
        if (moves_at_ns(&fetches[i]) < until_ns)
            until_ns = moves_at_ns(&fetches[i]);
        fds[i] =
            (struct pollfd){.fd = fetches[i].fd,
                            .events = (short)(fetches[i].has_asked ? POLLIN : POLLOUT)};
        is_waiting |= fetches[i].fd >= 0;
    }
    if (!is_waiting ||
        poll(fds, count, (int)((until_ns - now_ns) / MR_MILLISECOND_NS) + 1) <= 0)
        return is_waiting;
    for (uint32_t i = 0; i < count; i++) {
        if (fetches[i].fd < 0 || !fds[i].revents)
            continue;
        if (fetches[i].has_asked)
            take(&fetches[i]);
        else
            ask(&fetches[i], path);
    }
    return true;
}

void mr_fetch_all(struct mr_fetch *fetches, uint32_t count, const char *path,
                  uint64_t timeout_ns)
{
    uint64_t deadline_ns, now_ns;

    MR_ASSERT(count <= FETCHES_MAX);
    for (uint32_t i = 0; i < count; i++)
        start(&fetches[i], timeout_ns);
    now_ns = mr_clock_monotonic_ns();
    deadline_ns = now_ns + timeout_ns;
    while (now_ns < deadline_ns && turn(fetches, count, path, now_ns, deadline_ns))
        now_ns = mr_clock_monotonic_ns();
    for (uint32_t i = 0; i < count; i++)
        if (fetches[i].fd >= 0)
            fail(&fetches[i], "no answer in time", 0);
}

void mr_fetch_free(struct mr_fetch *fetches, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        mr_buffer_fini(&fetches[i].answer);
}

/* The next line that begins with `name`, and where its labels begin; NULL: none. */
static const char *next_line(const char *at, const char *name)
{
    size_t size = strlen(name);

    while (at && *at) {
        if (strncmp(at, name, size) == 0 && (at[size] == ' ' || at[size] == '{'))
            return at + size;
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    return NULL;
}

bool mr_fetch_value(const char *text, const char *name, const char *labels, double *value)
{
    size_t size = strlen(labels);

    for (const char *at = next_line(text, name); at; at = next_line(at, name)) {
        if (strncmp(at, labels, size) != 0 || at[size] != ' ')
            continue;
        *value = strtod(at + size, NULL);
        return true;
    }
    return false;
}

bool mr_fetch_largest(const char *text, const char *name, double *value)
{
    bool is_there = false;

    for (const char *at = next_line(text, name); at; at = next_line(at, name)) {
        const char *last = at + strcspn(at, "\n");
        double one;

        while (last > at && last[-1] != ' ')
            last--;
        one = strtod(last, NULL);
        if (!is_there || one > *value)
            *value = one;
        is_there = true;
    }
    return is_there;
}
