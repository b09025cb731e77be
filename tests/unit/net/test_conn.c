/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include "net/frame_compress.h"

#include "tests/unit/net/hop.h"

/* A conn at one end of a socket pair; the test writes and reads bytes at the other. */
struct pair {
    struct mr_conn conn;
    int peer;
};

static void pair_open(struct pair *pair, uint32_t max_frame)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(mr_conn_init(&pair->conn, fds[0], "test", max_frame), MR_OK);
    pair->peer = fds[1];
}

static void pair_close(struct pair *pair)
{
    mr_conn_fini(&pair->conn);
    assert_int_equal(close(pair->peer), 0);
}

static void say(struct pair *pair, uint8_t type, uint16_t flags, uint64_t sequence,
                struct mr_span payload)
{
    uint8_t header[MR_WIRE_HEADER_SIZE];

    mr_frame_put_header(type, flags, sequence, payload, header);
    assert_int_equal(send(pair->peer, header, sizeof(header), MSG_NOSIGNAL),
                     sizeof(header));
    assert_int_equal(send(pair->peer, payload.data, payload.size, MSG_NOSIGNAL),
                     payload.size);
}

static void say_hello(struct pair *pair)
{
    uint8_t bytes[256];
    size_t size =
        mr_test_hello(NULL, &(struct mr_custody_hello){.acked = 0}, bytes, sizeof(bytes));

    say(pair, MR_FRAME_HELLO, 0, 0, mr_span_of(bytes, size));
}

static enum mr_status next(struct pair *pair, struct mr_frame *frame)
{
    enum mr_status status = mr_conn_next(&pair->conn, frame);

    while (status == MR_AGAIN && mr_conn_read(&pair->conn) == MR_OK)
        status = mr_conn_next(&pair->conn, frame);
    return status;
}

/* Up to a greeted connection that expects frame 1. */
static void greet(struct pair *pair)
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
static struct mr_frame heard(struct pair *pair, uint8_t bytes[1024])
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

static void a_max_frame_below_64_kib_is_refused(void **state)
{
    struct mr_conn conn;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(mr_conn_init(&conn, fds[0], "test", 1000), MR_EUSAGE);
    mr_conn_fini(&conn);
    assert_int_equal(close(fds[1]), 0);
}

static void frames_come_out_though_bytes_drip_in(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    uint8_t bytes[MR_WIRE_HEADER_SIZE + 3] = {[MR_WIRE_HEADER_SIZE] = 'a', 'b', 'c'};

    (void)state;
    greet(&pair);
    mr_frame_put_header(MR_FRAME_DICT, 0, 1, mr_span_of(bytes + MR_WIRE_HEADER_SIZE, 3),
                        bytes);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(next(&pair, &frame), MR_AGAIN);
        assert_int_equal(send(pair.peer, bytes + i, 1, MSG_NOSIGNAL), 1);
    }
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_true(mr_span_equal(frame.payload, mr_span_of("abc", 3)));
    assert_int_equal(pair.conn.next_sequence, 2);
    pair_close(&pair);
}

/* Up to a greeted connection that holds frames and expects frame 1. */
static void greet_to_hold(struct pair *pair, size_t size)
{
    struct mr_frame frame;
    uint8_t bytes[MR_WIRE_HEADER_SIZE + MR_WELCOME_SIZE];

    pair_open(pair, MR_WIRE_MAX_FRAME_MIN);
    say_hello(pair);
    assert_int_equal(next(pair, &frame), MR_OK);
    mr_conn_hold(&pair->conn, size);
    assert_int_equal(mr_conn_welcome_epoch(&pair->conn, 1, 77, 1, (struct mr_id){9, 9}),
                     MR_OK);
    assert_int_equal(recv(pair->peer, bytes, sizeof(bytes), 0), sizeof(bytes));
}

static void say_settle(struct pair *pair, uint64_t sequence)
{
    uint8_t bytes[MR_SETTLE_SIZE];

    mr_settle_put(sequence, bytes);
    say(pair, MR_FRAME_SETTLE, 0, 0, mr_span_of(bytes, sizeof(bytes)));
}

static size_t held_size(const struct mr_conn *conn)
{
    struct mr_buffer held;
    size_t size;

    mr_buffer_init(&held, 64 << 20);
    assert_int_equal(mr_conn_copy_held(conn, &held), MR_OK);
    size = held.size;
    mr_buffer_fini(&held);
    return size;
}

static void frames_are_held_until_the_peer_knows_that_they_came(void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet_to_hold(&pair, 1 << 20);
    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        say(&pair, MR_FRAME_CHUNKS, 0, sequence, mr_span_of("abcdef", 2 * sequence));
        assert_int_equal(next(&pair, &frame), MR_OK);
    }
    assert_int_equal(mr_conn_next_settled(&pair.conn, 0, &frame), MR_AGAIN);
    assert_int_equal(mr_conn_ack(&pair.conn, 3, 77), MR_OK);
    say_settle(&pair, 2);
    assert_int_equal(next(&pair, &frame), MR_AGAIN);
    assert_int_equal(pair.conn.settled, 2);
    for (uint64_t sequence = 1; sequence <= 2; sequence++) {
        assert_int_equal(mr_conn_next_settled(&pair.conn, 2, &frame), MR_OK);
        assert_int_equal(frame.sequence, sequence);
        assert_true(mr_span_equal(frame.payload, mr_span_of("abcdef", 2 * sequence)));
    }
    assert_int_equal(mr_conn_next_settled(&pair.conn, 2, &frame), MR_AGAIN);
    /* Frame 3 and the SETTLE behind it. */
    assert_int_equal(held_size(&pair.conn), 2 * MR_WIRE_HEADER_SIZE + 6 + MR_SETTLE_SIZE);
    pair_close(&pair);
}

static void a_settle_of_what_was_not_acknowledged_is_refused(void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet_to_hold(&pair, 1 << 20);
    say(&pair, MR_FRAME_CHUNKS, 0, 1, mr_span_of("ab", 2));
    assert_int_equal(next(&pair, &frame), MR_OK);
    say_settle(&pair, 1);
    assert_int_equal(next(&pair, &frame), MR_EFORMAT);
    pair_close(&pair);
}

static void who_never_settles_is_cut_off(void **state)
{
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN];
    enum mr_status status = MR_OK;
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet_to_hold(&pair, 1 << 20);
    for (uint64_t sequence = 1; sequence < 64 && !mr_status_is_error(status);
         sequence++) {
        say(&pair, MR_FRAME_CHUNKS, 0, sequence, mr_span_of(payload, sizeof(payload)));
        status = mr_conn_read(&pair.conn);
        while (mr_conn_next(&pair.conn, &frame) == MR_OK)
            continue;
    }
    assert_int_equal(status, MR_ELIMIT);
    assert_non_null(strstr(pair.conn.error.text, "SETTLE"));
    pair_close(&pair);
}

static void who_begins_a_frame_that_has_no_place_is_cut_off(void **state)
{
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN];
    uint8_t header[MR_WIRE_HEADER_SIZE];
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet_to_hold(&pair, 1 << 20);
    for (uint64_t sequence = 1; sequence <= 16; sequence++) {
        say(&pair, MR_FRAME_CHUNKS, 0, sequence, mr_span_of(payload, sizeof(payload)));
        assert_int_equal(next(&pair, &frame), MR_OK);
    }
    mr_frame_put_header(MR_FRAME_CHUNKS, 0, 17, mr_span_of(payload, sizeof(payload)),
                        header);
    assert_int_equal(send(pair.peer, header, sizeof(header), MSG_NOSIGNAL),
                     sizeof(header));
    assert_int_equal(mr_conn_read(&pair.conn), MR_OK);
    assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_AGAIN);
    assert_int_equal(mr_conn_read(&pair.conn), MR_ELIMIT);
    assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_ELIMIT);
    pair_close(&pair);
}

/* Of frame `sequence` in the tests of what is held: up to all that a frame may have. */
static size_t payload_of(uint64_t sequence, uint8_t payload[MR_WIRE_MAX_FRAME_MIN])
{
    struct mr_test_random random = {sequence};
    size_t size = 8 + mr_test_random_below(&random, MR_WIRE_MAX_FRAME_MIN - 7);

    memset(payload, (uint8_t)sequence, size);
    memcpy(payload, &sequence, sizeof(sequence));
    return size;
}

static void assert_is_frame(const struct mr_frame *frame, uint64_t sequence)
{
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN];

    assert_int_equal(frame->sequence, sequence);
    assert_true(mr_span_equal(frame->payload,
                              mr_span_of(payload, payload_of(sequence, payload))));
}

static void what_is_held_lies_still_while_more_comes(void **state)
{
    enum { COUNT = 300, LAG = 5, GROWN = 50 };
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN];
    const uint8_t *places[COUNT + 1];
    struct pair pair;
    struct mr_frame frame;
    uint8_t bytes[1024];

    (void)state;
    greet_to_hold(&pair, 4 << 20);
    for (uint64_t sequence = 1; sequence <= COUNT; sequence++) {
        say(&pair, MR_FRAME_CHUNKS, 0, sequence, mr_span_of(payload, sizeof(payload)));
        assert_int_equal(next(&pair, &frame), MR_OK);
        places[sequence] = frame.payload.data;
        assert_int_equal(mr_conn_ack(&pair.conn, sequence, 77), MR_OK);
        (void)heard(&pair, bytes);
        if (sequence <= LAG)
            continue;
        say_settle(&pair, sequence - LAG);
        assert_int_equal(next(&pair, &frame), MR_AGAIN);
        assert_int_equal(mr_conn_next_settled(&pair.conn, sequence - LAG, &frame), MR_OK);
        assert_int_equal(frame.sequence, sequence - LAG);
        if (sequence > GROWN + LAG)
            assert_ptr_equal(frame.payload.data, places[sequence - LAG]);
    }
    assert_int_equal(pair.conn.input_capacity, 1 << 20);
    pair_close(&pair);
}

#define HOLD (3u << 20)

/* A peer that settles late, and the bytes that it has not sent yet. Of frames that are not settled it says HOLD bytes at most. */
struct late_peer {
    struct pair pair;
    struct mr_test_random random;
    struct mr_buffer output;
    uint64_t said, came, settled, used; /* frames */
    size_t unsettled;                   /* bytes said */
    size_t lag_max;                     /* bytes held before it settles */
    uint32_t wraps;
};

static void put_frame(struct mr_buffer *output, uint8_t type, uint64_t sequence,
                      struct mr_span payload)
{
    uint8_t header[MR_WIRE_HEADER_SIZE];

    mr_frame_put_header(type, 0, sequence, payload, header);
    assert_int_equal(mr_buffer_append(output, header, sizeof(header)), MR_OK);
    assert_int_equal(mr_buffer_append(output, payload.data, payload.size), MR_OK);
}

static void late_peer_adds_frames(struct late_peer *peer)
{
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN];
    size_t size;

    while (peer->output.size < 4 * MR_WIRE_MAX_FRAME_MIN) {
        size = payload_of(peer->said + 1, payload);
        if (peer->unsettled + MR_WIRE_HEADER_SIZE + size > HOLD)
            return;
        peer->said++;
        peer->unsettled += MR_WIRE_HEADER_SIZE + size;
        put_frame(&peer->output, MR_FRAME_CHUNKS, peer->said, mr_span_of(payload, size));
    }
}

static void late_peer_settles(struct late_peer *peer)
{
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN];
    uint64_t until = peer->settled + 1 +
                     mr_test_random_below(&peer->random, peer->came - peer->settled);
    uint8_t settle[MR_SETTLE_SIZE];

    while (peer->settled < until)
        peer->unsettled -= MR_WIRE_HEADER_SIZE + payload_of(++peer->settled, payload);
    mr_settle_put(until, settle);
    put_frame(&peer->output, MR_FRAME_SETTLE, 0, mr_span_of(settle, sizeof(settle)));
}

/* Some of what it has to say. */
static void late_peer_speaks(struct late_peer *peer)
{
    ssize_t size;

    late_peer_adds_frames(peer);
    if (held_size(&peer->pair.conn) > peer->lag_max && peer->settled < peer->came)
        late_peer_settles(peer);
    size = send(peer->pair.peer, peer->output.data,
                mr_test_random_below(&peer->random, peer->output.size + 1),
                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size > 0)
        mr_buffer_consume(&peer->output, (size_t)size);
}

static void late_peer_is_heard(struct late_peer *peer)
{
    struct mr_conn *conn = &peer->pair.conn;
    bool was_wrapped = conn->input_older_end > 0;
    enum mr_status status = mr_conn_read(conn);
    struct mr_frame frame;
    uint8_t bytes[1024];

    assert_true(status == MR_OK || status == MR_AGAIN);
    peer->wraps += !was_wrapped && conn->input_older_end > 0;
    while ((status = mr_conn_next(conn, &frame)) == MR_OK)
        assert_is_frame(&frame, ++peer->came);
    assert_int_equal(status, MR_AGAIN);
    assert_int_equal(mr_conn_ack(conn, peer->came, 77), MR_OK);
    (void)heard(&peer->pair, bytes);
    while (mr_conn_next_settled(conn, conn->settled, &frame) == MR_OK)
        assert_is_frame(&frame, ++peer->used);
    assert_int_equal(peer->used, conn->settled);
}

/* And no other but control frames. */
static void assert_all_are_held(const struct late_peer *peer)
{
    uint64_t sequence = peer->used;
    struct mr_buffer held;
    struct mr_span rest;
    struct mr_frame frame;

    mr_buffer_init(&held, 64 << 20);
    assert_int_equal(mr_conn_copy_held(&peer->pair.conn, &held), MR_OK);
    rest = mr_buffer_span(&held);
    while (mr_frame_take_again(&rest, &frame))
        if (frame.sequence)
            assert_is_frame(&frame, ++sequence);
    assert_int_equal(sequence, peer->came);
    mr_buffer_fini(&held);
}

static void frames_come_out_twice_in_order_however_late_they_are_settled(void **state)
{
    enum { ROUNDS = 20, STEPS = 100 };
    struct late_peer peer = {.random = mr_test_random_new()};

    (void)state;
    greet_to_hold(&peer.pair, HOLD);
    mr_buffer_init(&peer.output, 1 << 20);
    for (int round = 0; round < ROUNDS; round++) {
        peer.lag_max = mr_test_random_below(&peer.random, HOLD - (1u << 19));
        for (int i = 0; i < STEPS; i++) {
            late_peer_speaks(&peer);
            late_peer_is_heard(&peer);
        }
        assert_all_are_held(&peer);
    }
    assert_true(peer.wraps > 0);
    assert_true(peer.pair.conn.input_capacity <=
                HOLD + MR_WIRE_MAX_FRAME_MIN + MR_WIRE_HEADER_SIZE);
    mr_buffer_fini(&peer.output);
    pair_close(&peer.pair);
}

static void small_frames_that_came_together_take_one_read(void **state)
{
    enum { COUNT = 1000 };
    struct mr_buffer output;
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet(&pair);
    mr_buffer_init(&output, 1 << 20);
    for (uint64_t sequence = 1; sequence <= COUNT; sequence++)
        put_frame(&output, MR_FRAME_CHUNKS, sequence, mr_span_of("abcdefgh", 8));
    assert_int_equal(send(pair.peer, output.data, output.size, MSG_NOSIGNAL),
                     output.size);
    assert_int_equal(mr_conn_read(&pair.conn), MR_OK);
    for (uint64_t sequence = 1; sequence <= COUNT; sequence++) {
        assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_OK);
        assert_int_equal(frame.sequence, sequence);
    }
    assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_AGAIN);
    mr_buffer_fini(&output);
    pair_close(&pair);
}

/* So many bytes that the peer sends, and what of them the conn's buffer has room for. */
static void fill(struct pair *pair, struct mr_buffer *output)
{
    ssize_t size;

    while (output->size > 0) {
        size = send(pair->peer, output->data, output->size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size > 0)
            mr_buffer_consume(output, (size_t)size);
        assert_int_equal(mr_conn_read(&pair->conn), MR_OK);
    }
    while (mr_conn_read(&pair->conn) == MR_OK &&
           pair->conn.input_end < pair->conn.input_capacity)
        ;
}

static void a_frame_may_end_where_the_buffer_does(void **state)
{
    enum { COUNT = 8 };
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN - MR_WIRE_HEADER_SIZE];
    struct mr_buffer output;
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet(&pair);
    mr_buffer_init(&output, 1 << 20);
    for (int round = 0; round < 2; round++) {
        uint64_t before = (uint64_t)round * COUNT;

        for (uint64_t i = 1; i <= COUNT; i++)
            put_frame(&output, MR_FRAME_CHUNKS, before + i,
                      mr_span_of(payload, sizeof(payload)));
        fill(&pair, &output);
        assert_int_equal(pair.conn.input_end, COUNT * MR_WIRE_MAX_FRAME_MIN);
        assert_int_equal(pair.conn.input_end, pair.conn.input_capacity);
        assert_int_equal(mr_conn_read(&pair.conn), MR_OK); /* there is no room: nothing */
        for (uint64_t i = 1; i <= COUNT; i++) {
            assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_OK);
            assert_int_equal(frame.sequence, before + i);
            assert_int_equal(frame.payload.size, sizeof(payload));
        }
        assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_AGAIN);
    }
    mr_buffer_fini(&output);
    pair_close(&pair);
}

static void a_frame_larger_than_the_buffer_makes_it_grow_up_to_max_frame(void **state)
{
    static uint8_t payload[3u << 20];
    struct pair pair;
    struct mr_frame frame;
    uint8_t header[MR_WIRE_HEADER_SIZE];
    size_t sent = 0;

    (void)state;
    pair_open(&pair, sizeof(payload));
    say_hello(&pair);
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(mr_conn_welcome(&pair.conn, 1, 0), MR_OK);
    memset(payload, 7, sizeof(payload));
    mr_frame_put_header(MR_FRAME_DICT, 0, 1, mr_span_of(payload, sizeof(payload)),
                        header);
    assert_int_equal(send(pair.peer, header, sizeof(header), MSG_NOSIGNAL),
                     sizeof(header));
    while (sent < sizeof(payload)) {
        ssize_t size = send(pair.peer, payload + sent, sizeof(payload) - sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        sent += size > 0 ? (size_t)size : 0;
        if (sent < sizeof(payload))
            assert_int_equal(next(&pair, &frame), MR_AGAIN);
    }
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_true(mr_span_equal(frame.payload, mr_span_of(payload, sizeof(payload))));
    assert_true(pair.conn.input_capacity <= sizeof(payload) + MR_WIRE_HEADER_SIZE);
    pair_close(&pair);
}

static void what_we_have_already_is_dropped_and_counted(void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet(&pair);
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    say(&pair, MR_FRAME_DICT, 0, 2, mr_span_of("b", 1));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.sequence, 2);
    assert_int_equal(pair.conn.stats.duplicates, 1);
    pair_close(&pair);
}

static void a_dict_frame_without_a_number_is_handed_out_and_not_acknowledged(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    uint8_t bytes[1024];

    (void)state;
    greet(&pair);
    for (uint64_t i = 1; i <= 2; i++) {
        say(&pair, MR_FRAME_DICT, 0, 0, mr_span_of("a", 1));
        assert_int_equal(next(&pair, &frame), MR_OK);
        assert_int_equal(frame.sequence, 0);
        assert_int_equal(pair.conn.next_sequence, i);
        assert_int_equal(mr_conn_ack(&pair.conn, i - 1, 77), MR_OK);
        assert_int_equal(heard(&pair, bytes).type, i == 1 ? 0 : MR_FRAME_ACK);
        say(&pair, MR_FRAME_CHUNKS, 0, i, mr_span_of("b", 1));
        assert_int_equal(next(&pair, &frame), MR_OK);
        assert_int_equal(frame.sequence, i);
    }
    assert_int_equal(pair.conn.stats.duplicates, 0);
    pair_close(&pair);
}

/* The status after a greeting and this frame; it must be latched. */
static enum mr_status status_of(uint8_t type, uint16_t flags, uint64_t sequence,
                                struct mr_span payload, const char *text)
{
    struct pair pair;
    struct mr_frame frame;
    enum mr_status status;

    greet(&pair);
    say(&pair, type, flags, sequence, payload);
    status = next(&pair, &frame);
    assert_int_equal(mr_conn_next(&pair.conn, &frame), status);
    assert_non_null(strstr(pair.conn.error.text, text));
    pair_close(&pair);
    return status;
}

static void a_frame_out_of_order_is_refused(void **state)
{
    const struct mr_span a = mr_span_of("a", 1);

    (void)state;
    assert_int_equal(status_of(MR_FRAME_DICT, 0, 2, a, "missing"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_HELLO, 0, 0, a, "second HELLO"), MR_ESTATE);
    assert_int_equal(status_of(MR_FRAME_WELCOME, 0, 0, a, "no sender sends"), MR_ESTATE);
    assert_int_equal(status_of(MR_FRAME_WANTED, 0, 0, a, "no sender sends"), MR_ESTATE);
    assert_int_equal(status_of(MR_FRAME_BYE, 0, 0, a, "bad BYE"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_ERROR, 0, 0, a, "bad ERROR"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_ERROR, 0, 0, mr_span_of("\1\0\3\0why", 7), "why"),
                     MR_EREFUSED);
    assert_int_equal(status_of(99, 0, 0, a, "unknown type"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_DICT, MR_WIRE_FLAG_ZSTD, 1, a, "size"),
                     MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_DICT, MR_WIRE_FLAG_ZSTD, 1,
                               mr_span_of("\4\0\0\0xxxx", 8), "expand"),
                     MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_DICT, MR_WIRE_FLAG_ZSTD, 1,
                               mr_span_of("\0\0\1\1", 4), "limit"),
                     MR_ELIMIT);
}

static void nothing_comes_before_hello_and_no_data_before_welcome(void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    pair_open(&pair, MR_WIRE_MAX_FRAME_MIN);
    say(&pair, MR_FRAME_HEARTBEAT, 0, 0, mr_span_of("", 0));
    assert_int_equal(next(&pair, &frame), MR_ESTATE);
    pair_close(&pair);
    pair_open(&pair, MR_WIRE_MAX_FRAME_MIN);
    say_hello(&pair);
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(next(&pair, &frame), MR_ESTATE);
    pair_close(&pair);
}

static void another_version_is_told_in_an_error_frame(void **state)
{
    struct pair pair;
    struct mr_test_bytes hello =
        mr_test_bytes("4d4c5243 02 01 0000 00000000 00000000 0000000000000000");
    struct mr_wire_error_text error;
    struct mr_frame frame;
    enum mr_status status;
    uint8_t bytes[1024];

    (void)state;
    pair_open(&pair, MR_WIRE_MAX_FRAME_MIN);
    assert_int_equal(send(pair.peer, hello.data, hello.size, MSG_NOSIGNAL), hello.size);
    status = next(&pair, &frame);
    assert_int_equal(status, MR_EVERSION);
    mr_conn_refuse(&pair.conn, mr_conn_wire_code(status), pair.conn.error.text);
    frame = heard(&pair, bytes);
    assert_int_equal(frame.type, MR_FRAME_ERROR);
    assert_int_equal(mr_error_get(frame.payload, &error), MR_OK);
    assert_int_equal(error.code, MR_WIRE_ERROR_VERSION);
    assert_int_equal(recv(pair.peer, bytes, sizeof(bytes), 0), 0); /* and no more */
    pair_close(&pair);
}

static void compressed_frames_come_out_expanded(void **state)
{
    static uint8_t payload[50000], packed[60000];
    struct mr_frame_compressor compressor;
    struct pair pair;
    struct mr_frame frame;
    void *memory;
    size_t size;

    (void)state;
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i / 100);
    memory = malloc(mr_frame_compressor_size(1));
    assert_int_equal(
        mr_frame_compressor_init(&compressor, 1, memory, mr_frame_compressor_size(1)),
        MR_OK);
    size = mr_frame_compress(&compressor, mr_span_of(payload, sizeof(payload)), packed,
                             sizeof(packed));
    assert_true(size > 0 && size < sizeof(payload) / 10);
    assert_int_equal(
        mr_frame_compress(&compressor, mr_span_of("abc", 3), packed + size, 100), 0);
    greet(&pair);
    say(&pair, MR_FRAME_DELTA, MR_WIRE_FLAG_ZSTD, 1, mr_span_of(packed, size));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.flags, 0);
    assert_true(mr_span_equal(frame.payload, mr_span_of(payload, sizeof(payload))));
    free(memory);
    pair_close(&pair);
}

static void an_ack_is_sent_when_it_is_news(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    struct mr_ack ack;
    uint8_t bytes[1024];

    (void)state;
    greet(&pair);
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(mr_conn_ack(&pair.conn, 1, 77), MR_OK);
    frame = heard(&pair, bytes);
    assert_int_equal(frame.type, MR_FRAME_ACK);
    assert_int_equal(mr_ack_get(frame.payload, &ack), MR_OK);
    assert_int_equal(ack.sequence, 1);
    assert_int_equal(mr_conn_ack(&pair.conn, 1, 77), MR_OK);
    assert_int_equal(heard(&pair, bytes).type, 0);
    assert_int_equal(mr_conn_ack(&pair.conn, 1, 78), MR_OK); /* new credit */
    assert_int_equal(heard(&pair, bytes).type, MR_FRAME_ACK);
    pair_close(&pair);
}

static void resume_states_go_with_an_ack(void **state)
{
    const struct mr_resume_state resume = {.stream = 5};
    struct pair pair;
    struct mr_frame frame;
    struct mr_ack ack;
    uint8_t states[MR_RESUME_SIZE], bytes[1024];

    (void)state;
    greet(&pair);
    assert_int_equal(mr_resume_put(&resume, NULL, states, sizeof(states)),
                     sizeof(states));
    assert_int_equal(
        mr_conn_ack_states(&pair.conn, 0, 0, 1, mr_span_of(states, sizeof(states))),
        MR_OK);
    frame = heard(&pair, bytes);
    assert_int_equal(mr_ack_get(frame.payload, &ack), MR_OK);
    assert_int_equal(ack.state_count, 1);
    pair_close(&pair);
}

static void a_silent_receiver_beats_its_heart_and_a_silent_peer_times_out(void **state)
{
    struct pair pair;
    uint8_t bytes[1024];
    uint64_t now_ns;

    (void)state;
    greet(&pair);
    now_ns = pair.conn.said_ns;
    assert_int_equal(mr_conn_tick(&pair.conn, now_ns), MR_OK);
    assert_int_equal(heard(&pair, bytes).type, 0);
    assert_int_equal(mr_conn_tick(&pair.conn, now_ns + MR_WIRE_HEARTBEAT_NS), MR_OK);
    assert_int_equal(heard(&pair, bytes).type, MR_FRAME_HEARTBEAT);
    now_ns = pair.conn.heard_ns;
    assert_int_equal(mr_conn_tick(&pair.conn, now_ns + MR_WIRE_SILENCE_NS), MR_ETIMEOUT);
    pair_close(&pair);
}

static void a_peer_that_does_not_read_its_answers_is_cut_off_in_the_end(void **state)
{
    struct pair pair;
    enum mr_status status = MR_OK;
    uint64_t count = 0;

    (void)state;
    greet(&pair);
    while (status == MR_OK && count < 1000000)
        status = mr_conn_ack(&pair.conn, 0, ++count + 1000);
    assert_int_equal(status, MR_ELIMIT);
    assert_int_equal(mr_conn_flush(&pair.conn), MR_AGAIN);
    pair_close(&pair);
}

static void a_peer_that_closes_is_the_end(void **state)
{
    struct pair pair;

    (void)state;
    greet(&pair);
    assert_int_equal(mr_conn_read(&pair.conn), MR_AGAIN);
    assert_int_equal(shutdown(pair.peer, SHUT_WR), 0);
    assert_int_equal(mr_conn_read(&pair.conn), MR_END);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_max_frame_below_64_kib_is_refused),
        cmocka_unit_test(frames_come_out_though_bytes_drip_in),
        cmocka_unit_test(frames_are_held_until_the_peer_knows_that_they_came),
        cmocka_unit_test(a_settle_of_what_was_not_acknowledged_is_refused),
        cmocka_unit_test(who_never_settles_is_cut_off),
        cmocka_unit_test(who_begins_a_frame_that_has_no_place_is_cut_off),
        cmocka_unit_test(what_is_held_lies_still_while_more_comes),
        cmocka_unit_test(frames_come_out_twice_in_order_however_late_they_are_settled),
        cmocka_unit_test(small_frames_that_came_together_take_one_read),
        cmocka_unit_test(a_frame_may_end_where_the_buffer_does),
        cmocka_unit_test(a_frame_larger_than_the_buffer_makes_it_grow_up_to_max_frame),
        cmocka_unit_test(what_we_have_already_is_dropped_and_counted),
        cmocka_unit_test(
            a_dict_frame_without_a_number_is_handed_out_and_not_acknowledged),
        cmocka_unit_test(a_frame_out_of_order_is_refused),
        cmocka_unit_test(nothing_comes_before_hello_and_no_data_before_welcome),
        cmocka_unit_test(another_version_is_told_in_an_error_frame),
        cmocka_unit_test(compressed_frames_come_out_expanded),
        cmocka_unit_test(an_ack_is_sent_when_it_is_news),
        cmocka_unit_test(resume_states_go_with_an_ack),
        cmocka_unit_test(a_silent_receiver_beats_its_heart_and_a_silent_peer_times_out),
        cmocka_unit_test(a_peer_that_does_not_read_its_answers_is_cut_off_in_the_end),
        cmocka_unit_test(a_peer_that_closes_is_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
