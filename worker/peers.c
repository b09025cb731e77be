/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field             written by   read by        access
 * views, count      the thread   take()         under `lock`, is_new with them
 * stop_fd           stop()       the thread     an eventfd
 * the rest          the thread (start before it, stop behind it)
 * Progress: take() waits for a copy of the views at most.
 */
#include "worker/peers.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUND_MS 1000
#define ANSWER_NS (500 * MR_MILLISECOND_NS)
#define RESOLVE_NS (5 * MR_SECOND_NS)

/* A question under way. */
struct question {
    int fd; /* -1: over */
    char line[MR_AGENT_LINE_MAX];
    size_t size;
};

struct mr_peers {
    struct mr_endpoints endpoints;
    uint16_t own_port;
    pthread_t thread;
    int stop_fd;
    struct mr_sender_address addresses[MR_PEERS_MAX];
    uint32_t address_count;
    uint64_t resolve_at_ns;
    struct question questions[MR_PEERS_MAX];

    pthread_mutex_t lock;
    struct mr_agent_view views[MR_PEERS_MAX];
    uint32_t count;
    bool is_new;
};

static void resolve(struct mr_peers *peers, uint64_t now_ns)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_MINUTE_NS);
    struct mr_sender_address addresses[MR_PEERS_MAX];
    struct mr_error error = MR_ERROR_NONE;
    uint32_t count;

    if (now_ns < peers->resolve_at_ns)
        return;
    peers->resolve_at_ns = now_ns + RESOLVE_NS;
    if (mr_endpoints_resolve(&peers->endpoints, addresses, &count, &error) != MR_OK) {
        (void)mr_log_limited(&limit, MR_LOG_WARN, "--peers: %s", error.text);
        return; /* those that were known may still be there */
    }
    memcpy(peers->addresses, addresses, sizeof(addresses));
    peers->address_count = count;
}

static void end(struct question *question)
{
    if (question->fd >= 0)
        (void)close(question->fd);
    question->fd = -1;
}

static void ask(struct question *question, const struct mr_sender_address *to)
{
    *question =
        (struct question){.fd = socket(to->address.ss_family,
                                       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (question->fd < 0)
        return;
    if (connect(question->fd, (const struct sockaddr *)&to->address, to->size) != 0 &&
        errno != EINPROGRESS)
        end(question);
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    struct sockaddr_in6 v6;

    memcpy(&v6, address, sizeof(v6)); /* both kinds have it in one place */
    return ntohs(v6.sin6_port);
}

static bool is_same_host(const struct sockaddr_storage *a,
                         const struct sockaddr_storage *b)
{
    struct sockaddr_in6 a6, b6;
    struct sockaddr_in a4, b4;

    memcpy(&a6, a, sizeof(a6));
    memcpy(&b6, b, sizeof(b6));
    memcpy(&a4, a, sizeof(a4));
    memcpy(&b4, b, sizeof(b4));
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6)
        return memcmp(&a6.sin6_addr, &b6.sin6_addr, sizeof(a6.sin6_addr)) == 0;
    return a4.sin_addr.s_addr == b4.sin_addr.s_addr;
}

/* A connection that begins and ends at one address, at our agent's port, is one to ourselves. */
static bool is_own(const struct mr_peers *peers, int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_size = sizeof(here), there_size = sizeof(there);

    if (getsockname(fd, (struct sockaddr *)&here, &here_size) != 0 ||
        getpeername(fd, (struct sockaddr *)&there, &there_size) != 0)
        return false;
    return port_of(&there) == peers->own_port && is_same_host(&here, &there);
}

/* What came; the answer is whole when its line has ended. */
static bool has_answered(struct question *question)
{
    ssize_t size = recv(question->fd, question->line + question->size,
                        sizeof(question->line) - question->size, MSG_DONTWAIT);

    if (size <= 0) {
        if (size == 0 || (errno != EAGAIN && errno != EINTR))
            end(question);
        return false;
    }
    question->size += (size_t)size;
    if (memchr(question->line, '\n', question->size))
        return true;
    if (question->size == sizeof(question->line))
        end(question);
    return false;
}

/* Waits for some of what is asked, or for the stop: then false. */
static bool wait_for_answers(struct mr_peers *peers, uint64_t wait_ns, bool *is_waiting)
{
    struct pollfd fds[MR_PEERS_MAX + 1];

    *is_waiting = false;
    for (uint32_t i = 0; i < MR_PEERS_MAX; i++) {
        fds[i] = (struct pollfd){.fd = peers->questions[i].fd, .events = POLLIN};
        *is_waiting |= fds[i].fd >= 0;
    }
    fds[MR_PEERS_MAX] = (struct pollfd){.fd = peers->stop_fd, .events = POLLIN};
    if (*is_waiting)
        (void)poll(fds, MR_PEERS_MAX + 1, (int)(wait_ns / MR_MILLISECOND_NS) + 1);
    return !(*is_waiting && fds[MR_PEERS_MAX].revents);
}

/* Takes what has come of all. */
static void take_answers(struct mr_peers *peers, struct mr_agent_view *views,
                         uint32_t *count)
{
    for (uint32_t i = 0; i < MR_PEERS_MAX; i++) {
        struct question *question = &peers->questions[i];
        struct mr_agent_view view;

        if (question->fd < 0 || !has_answered(question))
            continue;
        if (!is_own(peers, question->fd) &&
            mr_agent_get(mr_span_of(question->line, question->size), &view) == MR_OK)
            views[(*count)++] = view;
        end(question);
    }
}

static void publish(struct mr_peers *peers, const struct mr_agent_view *views,
                    uint32_t count)
{
    (void)pthread_mutex_lock(&peers->lock);
    memcpy(peers->views, views, count * sizeof(*views));
    peers->count = count;
    peers->is_new = true;
    (void)pthread_mutex_unlock(&peers->lock);
}

/* False when the stop came. */
static bool go_round(struct mr_peers *peers)
{
    uint64_t now_ns = mr_clock_monotonic_ns(), deadline_ns = now_ns + ANSWER_NS;
    struct mr_agent_view views[MR_PEERS_MAX];
    bool is_waiting = true, goes_on = true;
    uint32_t count = 0;

    resolve(peers, now_ns);
    for (uint32_t i = 0; i < peers->address_count; i++)
        ask(&peers->questions[i], &peers->addresses[i]);
    while (goes_on && is_waiting && now_ns < deadline_ns) {
        goes_on = wait_for_answers(peers, deadline_ns - now_ns, &is_waiting);
        take_answers(peers, views, &count);
        now_ns = mr_clock_monotonic_ns();
    }
    for (uint32_t i = 0; i < MR_PEERS_MAX; i++)
        end(&peers->questions[i]);
    publish(peers, views, count);
    return goes_on;
}

static void *run(void *context)
{
    struct mr_peers *peers = context;
    struct pollfd stop = {.fd = peers->stop_fd, .events = POLLIN};

    (void)pthread_setname_np(pthread_self(), "peers");
    while (go_round(peers) && poll(&stop, 1, ROUND_MS) <= 0)
        continue;
    return NULL;
}

enum mr_status mr_peers_start(const struct mr_endpoints *endpoints, uint16_t own_port,
                              struct mr_peers **out, struct mr_error *error)
{
    struct mr_peers *peers = calloc(1, sizeof(*peers));
    int failure = ENOMEM;

    if (peers) {
        peers->endpoints = *endpoints;
        peers->own_port = own_port;
        for (uint32_t i = 0; i < MR_PEERS_MAX; i++)
            peers->questions[i].fd = -1;
        (void)pthread_mutex_init(&peers->lock, NULL);
        peers->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        failure =
            peers->stop_fd < 0 ? errno : pthread_create(&peers->thread, NULL, run, peers);
    }
    if (failure == 0) {
        *out = peers;
        return MR_OK;
    }
    if (peers && peers->stop_fd >= 0)
        (void)close(peers->stop_fd);
    free(peers);
    return mr_error_set_errno(error, MR_EIO, failure, "--peers: cannot start");
}

bool mr_peers_take(struct mr_peers *peers, struct mr_agent_view views[MR_PEERS_MAX],
                   uint32_t *count)
{
    bool is_new;

    (void)pthread_mutex_lock(&peers->lock);
    is_new = peers->is_new;
    peers->is_new = false;
    *count = peers->count;
    memcpy(views, peers->views, peers->count * sizeof(*views));
    (void)pthread_mutex_unlock(&peers->lock);
    return is_new;
}

void mr_peers_stop(struct mr_peers *peers)
{
    const uint64_t one = 1;

    if (!peers)
        return;
    (void)!write(peers->stop_fd, &one, sizeof(one));
    (void)pthread_join(peers->thread, NULL);
    (void)close(peers->stop_fd);
    (void)pthread_mutex_destroy(&peers->lock);
    free(peers);
}
