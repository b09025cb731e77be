/* SPDX-License-Identifier: Apache-2.0 */
/* net/conn.h: frames that stay where they are until the peer has settled them. */
#include "net/conn.h"

#include "tests/unit/net/conn_pair.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_held_until_the_peer_knows_that_they_came),
        cmocka_unit_test(a_settle_of_what_was_not_acknowledged_is_refused),
        cmocka_unit_test(who_never_settles_is_cut_off),
        cmocka_unit_test(who_begins_a_frame_that_has_no_place_is_cut_off),
        cmocka_unit_test(what_is_held_lies_still_while_more_comes),
        cmocka_unit_test(frames_come_out_twice_in_order_however_late_they_are_settled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
