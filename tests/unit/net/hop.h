/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender and a listener on loopback, for tests of a hop. What is sent in frame n is known, so that a receiver can check it.
 *
 * Use:
 *     struct mr_test_hop *hop = mr_test_hop_new();      // listens; sender is configured, not yet connected
 *     hop->config.credit = ...; mr_test_hop_start(hop);
 *     mr_test_hop_open(hop);                            // both sides in turn until conn is greeted and sender open
 *     mr_test_hop_free(hop);
 */
#ifndef MR_TESTS_UNIT_NET_HOP_H
#define MR_TESTS_UNIT_NET_HOP_H

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/conn.h"
#include "net/control.h"
#include "net/endpoint.h"
#include "net/sender.h"
#include "tests/unit/net/net_test.h"

#define MR_TEST_OUTBOX_SIZE (3u * MR_WIRE_MAX_FRAME_MIN)

struct mr_test_hop {
    int listener;
    uint16_t port;
    struct mr_sender_config config;
    struct mr_sender sender;
    struct mr_conn conn;
    bool has_conn;
    uint64_t next_sequence; /* that the receiver would keep over connections */
    uint64_t credit;        /* that it gives */
    bool wants_dictionary;  /* as its WELCOME says */
    bool takes_resume;      /* the same */
    uint8_t outbox[MR_TEST_OUTBOX_SIZE];
};

static inline size_t mr_test_hello(void *context, const struct mr_custody_hello *custody,
                                   uint8_t *out, size_t capacity)
{
    const struct mr_hello hello = {.sender = {1, 2},
                                   .role = MR_ROLE_WORKER,
                                   .level = 1,
                                   .oldest = custody->acked + 1,
                                   .custody = *custody};

    (void)context;
    return mr_hello_put(&hello, out, capacity);
}

static inline struct mr_test_hop *mr_test_hop_new(void)
{
    const struct mr_endpoint endpoint = {"127.0.0.1", "0"};
    struct mr_test_hop *hop = calloc(1, sizeof(*hop));
    struct sockaddr_in address = {.sin_family = AF_INET};

    assert_non_null(hop);
    assert_int_equal(mr_listen(&endpoint, false, false, &hop->listener, &hop->port, NULL),
                     MR_OK);
    address.sin_port = htons(hop->port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&hop->config.addresses[0].address, &address, sizeof(address));
    hop->config.addresses[0].size = sizeof(address);
    hop->config.address_count = 1;
    hop->config.incarnation = (struct mr_id){1, 2};
    hop->config.outbox = hop->outbox;
    hop->config.outbox_size = sizeof(hop->outbox);
    hop->config.max_frame = MR_WIRE_MAX_FRAME_MIN;
    hop->config.now_ns_seed = 1;
    hop->config.hello = mr_test_hello;
    hop->config.backoff_min_ns = hop->config.backoff_max_ns = MR_MILLISECOND_NS;
    hop->next_sequence = 1;
    return hop;
}

static inline void mr_test_hop_start(struct mr_test_hop *hop)
{
    assert_int_equal(mr_sender_init(&hop->sender, &hop->config), MR_OK);
}

static inline void mr_test_hop_hang_up(struct mr_test_hop *hop)
{
    if (hop->has_conn)
        mr_conn_fini(&hop->conn);
    hop->has_conn = false;
}

static inline void mr_test_hop_free(struct mr_test_hop *hop)
{
    mr_test_hop_hang_up(hop);
    mr_sender_fini(&hop->sender);
    assert_int_equal(close(hop->listener), 0);
    free(hop);
}

static inline bool mr_test_hop_accept(struct mr_test_hop *hop, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = hop->listener, .events = POLLIN};
    int fd;

    if (poll(&poll_fd, 1, timeout_ms) <= 0)
        return false;
    fd = accept4(hop->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return false;
    hop->has_conn = true;
    return mr_conn_init(&hop->conn, fd, "test", MR_WIRE_MAX_FRAME_MIN) == MR_OK;
}

/* The next frame of the receiver, or the status that says why there is none; HELLO is answered here. */
static inline enum mr_status mr_test_hop_receive(struct mr_test_hop *hop,
                                                 struct mr_frame *frame)
{
    enum mr_status status = mr_conn_next(&hop->conn, frame);

    if (status == MR_AGAIN) {
        status = mr_conn_read(&hop->conn);
        if (status == MR_OK)
            status = mr_conn_next(&hop->conn, frame);
    }
    if (status != MR_OK || frame->type != MR_FRAME_HELLO)
        return status;
    hop->conn.wants_dictionary = hop->wants_dictionary;
    hop->conn.takes_resume = hop->takes_resume;
    status = mr_conn_welcome(&hop->conn, hop->next_sequence, hop->credit);
    return status == MR_OK ? MR_AGAIN : status;
}

/* Both sides in turn until the connection is open. */
static inline void mr_test_hop_open(struct mr_test_hop *hop)
{
    struct mr_frame frame;

    for (int i = 0; i < 1000 && hop->sender.state != MR_SENDER_OPEN; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        if (hop->sender.state != MR_SENDER_OPEN &&
            (hop->has_conn || mr_test_hop_accept(hop, 0)))
            assert_int_equal(mr_test_hop_receive(hop, &frame), MR_AGAIN);
    }
    assert_int_equal(hop->sender.state, MR_SENDER_OPEN);
}

static inline uint64_t mr_test_hop_send(struct mr_test_hop *hop, size_t size,
                                        uint8_t fill)
{
    uint8_t *payload = mr_sender_reserve(&hop->sender, size);

    assert_non_null(payload);
    memset(payload, fill, size);
    return mr_sender_commit(&hop->sender, MR_FRAME_CHUNKS, 0, size);
}

/* The next data frame, polling the sender until it comes. */
static inline struct mr_frame mr_test_hop_take(struct mr_test_hop *hop)
{
    struct mr_frame frame = {.type = 0};
    enum mr_status status = MR_AGAIN;

    for (int i = 0; i < 1000 && status == MR_AGAIN; i++) {
        (void)mr_sender_poll(&hop->sender, 0);
        status = mr_test_hop_receive(hop, &frame);
        if (status == MR_AGAIN)
            (void)poll(NULL, 0, 1);
    }
    assert_int_equal(status, MR_OK);
    return frame;
}

#endif
