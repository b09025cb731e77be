/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/greeter.h"

#include "base/assert.h"
#include "base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 64

static bool listen_for_peers(struct mr_greeter *greeter)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = greeter}};

    return epoll_ctl(greeter->epoll_fd, EPOLL_CTL_ADD, greeter->listen_fd, &event) == 0;
}

enum mr_status mr_greeter_open(struct mr_greeter *greeter)
{
    MR_ASSERT(greeter->give && greeter->counters);
    MR_ASSERT(greeter->listen_fd >= 0 && greeter->epoll_fd >= 0);
    return listen_for_peers(greeter) ? MR_OK : MR_EIO;
}

static void describe_peer(const struct sockaddr_storage *address, char *text, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->ss_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, address, sizeof(in));
        (void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
        (void)snprintf(text, size, "%s:%u", host, ntohs(in.sin_port));
    } else if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, address, sizeof(in6));
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
        (void)snprintf(text, size, "[%s]:%u", host, ntohs(in6.sin6_port));
    } else {
        (void)snprintf(text, size, "unknown");
    }
}

static void drop(struct mr_greeter *greeter, struct mr_connection *connection)
{
    mr_connection_list_remove(&greeter->pending, connection);
    mr_connection_free(connection); /* closing takes it out of the epoll set */
    mr_add_relaxed(&greeter->counters->open, (uint64_t)-1);
}

static void refuse(struct mr_greeter *greeter, struct mr_connection *connection,
                   enum mr_wire_error code, const char *text, uint64_t now_ns)
{
    mr_add_relaxed(&greeter->counters->refused, 1);
    mr_connection_refuse(connection, code, text, now_ns);
}

/* No descriptors, say. Whoever waits goes on waiting, and would be told of at every turn: not before the next tick. */
static void cannot_accept(struct mr_greeter *greeter, int system_errno)
{
    static struct mr_log_limit limit = MR_LOG_LIMIT(MR_SECOND_NS);

    (void)mr_log_limited(&limit, MR_LOG_ERROR, "cannot accept: %s",
                         strerror(system_errno));
    (void)epoll_ctl(greeter->epoll_fd, EPOLL_CTL_DEL, greeter->listen_fd, NULL);
    greeter->is_deaf = true;
}

/* False when there is nothing more to accept. */
static bool accept_one(struct mr_greeter *greeter, uint64_t now_ns)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof(address);
    struct epoll_event event = {.events = EPOLLIN};
    struct mr_connection *connection;
    char peer[64];
    int on = 1;
    int fd = accept4(greeter->listen_fd, (struct sockaddr *)&address, &size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        bool is_over = errno != EINTR && errno != ECONNABORTED;

        if (is_over && errno != EAGAIN)
            cannot_accept(greeter, errno);
        return !is_over;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    describe_peer(&address, peer, sizeof(peer));
    connection = mr_connection_new(fd, peer, greeter->rules.max_frame, now_ns);
    if (!connection)
        return false;
    event.data.ptr = connection;
    mr_connection_list_add(&greeter->pending, connection);
    mr_add_relaxed(&greeter->counters->accepted, 1);
    mr_add_relaxed(&greeter->counters->open, 1);
    if (epoll_ctl(greeter->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        drop(greeter, connection);
    else if (mr_load_relaxed(&greeter->counters->open) > greeter->rules.max_connections)
        refuse(greeter, connection, MR_WIRE_ERROR_BUSY,
               "too many connections (--max-connections)", now_ns);
    return true;
}

void mr_greeter_accept(struct mr_greeter *greeter, uint64_t now_ns)
{
    for (int i = 0; i < ACCEPTS_PER_TURN && accept_one(greeter, now_ns); i++)
        continue;
}

/* In constant time for tokens of one length: the length is no secret. */
static bool token_fits(const char *wanted, const char *given)
{
    size_t size = strlen(wanted);
    unsigned difference = size != strlen(given);

    for (size_t i = 0; i < size && !(i > 0 && given[i - 1] == '\0'); i++)
        difference |= (unsigned char)(wanted[i] ^ given[i]);
    return difference == 0;
}

enum mr_status mr_greeter_check(const struct mr_greeter_rules *rules,
                                const struct mr_hello *hello, enum mr_wire_error *code,
                                struct mr_error *error)
{
    if (*rules->token && !token_fits(rules->token, hello->token)) {
        *code = MR_WIRE_ERROR_TOKEN;
        return mr_error_set(error, MR_EREFUSED, "%s",
                            *hello->token ? "the token is wrong"
                                          : "a token is needed (MILLRACE_TOKEN_FILE)");
    }
    if (mr_id_equal(hello->sender, rules->self)) {
        *code = MR_WIRE_ERROR_LOOP;
        return mr_error_set(error, MR_EREFUSED,
                            "this worker sends to itself: check its --forward");
    }
    if (hello->role == MR_ROLE_WORKER && hello->level >= rules->level) {
        *code = MR_WIRE_ERROR_LOOP;
        return mr_error_set(error, MR_EREFUSED,
                            "a worker of level %" PRIu32 " cannot send to one of level "
                            "%" PRIu32 ": give the receiver a higher --level",
                            hello->level, rules->level);
    }
    return MR_OK;
}

static void greet(struct mr_greeter *greeter, struct mr_connection *connection,
                  const struct mr_frame *frame, uint64_t now_ns)
{
    struct mr_error error = MR_ERROR_NONE;
    enum mr_wire_error code = MR_WIRE_ERROR_FORMAT;
    enum mr_status status;

    if (frame->type != MR_FRAME_HELLO) { /* a heartbeat that comes too early */
        refuse(greeter, connection, MR_WIRE_ERROR_STATE, "HELLO must come first", now_ns);
        return;
    }
    status = mr_hello_get(frame->payload, &connection->hello, &error);
    if (status == MR_OK)
        status =
            mr_greeter_check(&greeter->rules, &connection->hello.hello, &code, &error);
    if (status != MR_OK) {
        refuse(greeter, connection, code, error.text, now_ns);
        return;
    }
    mr_connection_list_remove(&greeter->pending, connection);
    (void)epoll_ctl(greeter->epoll_fd, EPOLL_CTL_DEL, connection->conn.fd, NULL);
    greeter->give(greeter->context, connection);
}

static void end_of_peer(struct mr_greeter *greeter, struct mr_connection *connection)
{
    if (connection->conn.stats.bytes == 0 && connection->conn.input_end == 0) {
        mr_add_relaxed(&greeter->counters->health_checks, 1);
    } else {
        mr_add_relaxed(&greeter->counters->refused, 1);
        mr_connection_tell_cut(connection, "closed before its HELLO was complete");
    }
    drop(greeter, connection);
}

void mr_greeter_ready(struct mr_greeter *greeter, struct mr_connection *connection,
                      uint64_t now_ns)
{
    struct mr_frame frame;
    enum mr_status status;
    enum mr_status read_status;

    if (connection->linger_until_ns != 0) {
        if (!mr_connection_linger(connection, now_ns))
            drop(greeter, connection);
        return;
    }
    read_status = mr_conn_read(&connection->conn);
    status = mr_conn_next(&connection->conn, &frame);
    if (status == MR_OK)
        greet(greeter, connection, &frame, now_ns);
    else if (mr_status_is_error(status))
        refuse(greeter, connection, mr_conn_wire_code(status),
               connection->conn.error.text, now_ns);
    else if (read_status == MR_END || mr_status_is_error(read_status))
        end_of_peer(greeter, connection);
}

void mr_greeter_tick(struct mr_greeter *greeter, uint64_t now_ns)
{
    struct mr_connection *next;

    if (greeter->is_deaf)
        greeter->is_deaf = !listen_for_peers(greeter);
    for (struct mr_connection *at = greeter->pending.first; at; at = next) {
        next = at->next;
        if (at->linger_until_ns != 0) {
            if (!mr_connection_linger(at, now_ns))
                drop(greeter, at);
        } else if (now_ns - at->opened_ns >= MR_GREETER_WAIT_NS) {
            refuse(greeter, at, MR_WIRE_ERROR_STATE, "no HELLO within 5 s", now_ns);
        }
    }
}

void mr_greeter_close(struct mr_greeter *greeter)
{
    (void)close(greeter->listen_fd);
    greeter->listen_fd = -1;
    while (greeter->pending.first)
        drop(greeter, greeter->pending.first);
}
