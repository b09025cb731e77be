/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The greeter: accepts connections, waits for each one's HELLO, checks version, token, role and
 * level, and gives the connection away. Runs on the main thread. What is wrong with a connection is
 * said to its peer in one ERROR frame and to the log in one line, and harms no other. A connection
 * that closes before its first byte is a health check and passes in silence.
 *
 *     mr_greeter_open(&greeter, &rules, give, context, listen_fd, epoll_fd, counters);
 *     if (event.data.ptr == &greeter) mr_greeter_accept(&greeter, now);
 *     else if (...) mr_greeter_ready(&greeter, connection, now);
 *     mr_greeter_tick(&greeter, now);                          // about every 100 ms
 *     mr_greeter_close(&greeter);                              // pending ones too
 */
#ifndef MR_WORKER_GREETER_H
#define MR_WORKER_GREETER_H

#include "worker/connection.h"
#include "worker/counters.h"

#define MR_GREETER_WAIT_NS                                                               \
    (5 * MR_SECOND_NS) /* for HELLO; as long as a silent peer has */

struct mr_greeter_rules {
    struct mr_id self; /* our own incarnation: a loop when it comes in */
    uint32_t level;    /* ours; a worker that sends to us is of a lower one */
    const char *token; /* "" : none is asked for */
    uint32_t max_frame;
    uint64_t max_connections;
};

struct mr_greeter {
    struct mr_greeter_rules rules;
    /* Takes the connection, whose hello is filled and passed all checks. */
    void (*give)(void *context, struct mr_connection *connection);
    void *context;
    int listen_fd, epoll_fd;
    bool is_deaf; /* it could not accept, and listens again from the next tick on */
    struct mr_connection_list pending;
    struct mr_worker_counters *counters;
};

/* Registers `listen_fd` (taken) in `epoll_fd` (borrowed) with the greeter as data. MR_EIO. */
enum mr_status mr_greeter_open(struct mr_greeter *greeter);
void mr_greeter_accept(struct mr_greeter *greeter, uint64_t now_ns);
void mr_greeter_ready(struct mr_greeter *greeter, struct mr_connection *connection,
                      uint64_t now_ns);
void mr_greeter_tick(struct mr_greeter *greeter, uint64_t now_ns);
/* No new connections from here on; those that wait for a HELLO are dropped. */
void mr_greeter_close(struct mr_greeter *greeter);

/*
 * Whether a sender that says `hello` may come in: MR_OK, or why not, in `code` and `error`. Pure.
 */
enum mr_status mr_greeter_check(const struct mr_greeter_rules *rules,
                                const struct mr_hello *hello, enum mr_wire_error *code,
                                struct mr_error *error);

#endif
