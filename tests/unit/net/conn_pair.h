/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conn at one end of a socket pair; the test writes and reads bytes at the other.
 *
 *     greet(&pair);                                     // a peer has said HELLO and was welcomed
 *     say(&pair, MR_FRAME_CHUNKS, 0, 1, payload);       // by the peer
 *     status = next(&pair, &frame);                     // what the conn makes of it
 *     frame = heard(&pair, bytes);                      // what it said to the peer
 *     pair_close(&pair);
 */
#ifndef MR_TESTS_UNIT_NET_CONN_PAIR_H
#define MR_TESTS_UNIT_NET_CONN_PAIR_H

#include "tests/unit/net/hop.h"

struct pair {
    struct mr_conn conn;
    int peer;
};

static inline void pair_open(struct pair *pair, uint32_t max_frame)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(mr_conn_init(&pair->conn, fds[0], "test", max_frame), MR_OK);
    pair->peer = fds[1];
}

static inline void pair_close(struct pair *pair)
{
    mr_conn_fini(&pair->conn);
    assert_int_equal(close(pair->peer), 0);
}

static inline void say(struct pair *pair, uint8_t type, uint16_t flags, uint64_t sequence,
                       struct mr_span payload)
{
    uint8_t header[MR_WIRE_HEADER_SIZE];

    mr_frame_put_header(type, flags, sequence, payload, header);
    assert_int_equal(send(pair->peer, header, sizeof(header), MSG_NOSIGNAL),
                     sizeof(header));
    assert_int_equal(send(pair->peer, payload.data, payload.size, MSG_NOSIGNAL),
                     payload.size);
}

static inline void say_hello(struct pair *pair)
{
    uint8_t bytes[256];
    size_t size =
        mr_test_hello(NULL, &(struct mr_custody_hello){.acked = 0}, bytes, sizeof(bytes));

    say(pair, MR_FRAME_HELLO, 0, 0, mr_span_of(bytes, size));
}

static inline enum mr_status next(struct pair *pair, struct mr_frame *frame)
{
    enum mr_status status = mr_conn_next(&pair->conn, frame);

    while (status == MR_AGAIN && mr_conn_read(&pair->conn) == MR_OK)
        status = mr_conn_next(&pair->conn, frame);
    return status;
}

/* Up to a greeted connection that expects frame 1. */
static inline void greet(struct pair *pair)
{
    struct mr_frame frame;
    uint8_t bytes[MR_WIRE_HEADER_SIZE + MR_WELCOME_SIZE];

    pair_open(pair, MR_WIRE_MAX_FRAME_MIN);
    say_hello(pair);
    assert_int_equal(next(pair, &frame), MR_OK);
    assert_int_equal(frame.type, MR_FRAME_HELLO);
    assert_int_equal(mr_conn_welcome(&pair->conn, 1, 77), MR_OK);
    assert_int_equal(recv(pair->peer, bytes, sizeof(bytes), 0), sizeof(bytes));
}

/* The next frame that the conn sent; its payload in `bytes`. */
static inline struct mr_frame heard(struct pair *pair, uint8_t bytes[1024])
{
    ssize_t size = recv(pair->peer, bytes, 1024, MSG_DONTWAIT);
    struct mr_span span = mr_span_of(bytes, size > 0 ? (size_t)size : 0);
    struct mr_frame frame = {.type = 0};
    size_t need;

    if (size > 0)
        assert_int_equal(mr_frame_take(&span, MR_WIRE_MAX_CONTROL, &frame, &need, NULL),
                         MR_OK);
    assert_int_equal(span.size, 0);
    return frame;
}

static inline void put_frame(struct mr_buffer *output, uint8_t type, uint64_t sequence,
                             struct mr_span payload)
{
    uint8_t header[MR_WIRE_HEADER_SIZE];

    mr_frame_put_header(type, 0, sequence, payload, header);
    assert_int_equal(mr_buffer_append(output, header, sizeof(header)), MR_OK);
    assert_int_equal(mr_buffer_append(output, payload.data, payload.size), MR_OK);
}

#endif
