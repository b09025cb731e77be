/* SPDX-License-Identifier: Apache-2.0 */
#include "net/sender.h"

#include "tests/unit/net/hop.h"

static void a_configuration_that_cannot_work_is_refused(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    struct mr_sender_config good = hop->config;

    (void)state;
    hop->config.address_count = 0;
    assert_int_equal(mr_sender_init(&hop->sender, &hop->config), MR_EUSAGE);
    hop->config = good;
    hop->config.outbox_size = 2 * MR_WIRE_MAX_FRAME_MIN - 1;
    assert_int_equal(mr_sender_init(&hop->sender, &hop->config), MR_EUSAGE);
    hop->config = good;
    hop->config.max_frame--;
    assert_int_equal(mr_sender_init(&hop->sender, &hop->config), MR_EUSAGE);
    hop->config = good;
    hop->config.hello = NULL;
    assert_int_equal(mr_sender_init(&hop->sender, &hop->config), MR_EUSAGE);
    hop->config = good;
    mr_test_hop_start(hop);
    mr_test_hop_free(hop);
}

static void frames_committed_before_the_connection_are_sent(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    struct mr_frame frame;

    (void)state;
    mr_test_hop_start(hop);
    assert_int_equal(mr_test_hop_send(hop, 10, 1), 1);
    assert_int_equal(mr_test_hop_send(hop, 0, 2), 2);
    mr_test_hop_open(hop);
    frame = mr_test_hop_take(hop);
    assert_int_equal(frame.sequence, 1);
    assert_int_equal(frame.payload.size, 10);
    frame = mr_test_hop_take(hop);
    assert_int_equal(frame.sequence, 2);
    assert_false(mr_sender_is_drained(&hop->sender));
    assert_int_equal(mr_conn_ack(&hop->conn, 2, 0), MR_OK);
    assert_int_equal(mr_sender_poll(&hop->sender, MR_SECOND_NS), MR_OK);
    assert_true(mr_sender_is_drained(&hop->sender));
    assert_int_equal(hop->sender.stats.frames_acked, 2);
    mr_test_hop_free(hop);
}

static void a_full_outbox_says_no_until_something_is_acknowledged(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    uint64_t count = 0;

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    while (mr_sender_reserve(&hop->sender, 10000)) {
        (void)mr_sender_commit(&hop->sender, MR_FRAME_CHUNKS, 0, 10000);
        count++;
    }
    assert_int_equal(count, MR_TEST_OUTBOX_SIZE / (10000 + MR_WIRE_HEADER_SIZE));
    assert_true(mr_sender_room(&hop->sender) < 10000);
    assert_null(mr_sender_reserve(&hop->sender, mr_sender_room(&hop->sender) + 1));
    assert_non_null(mr_sender_reserve(&hop->sender, mr_sender_room(&hop->sender)));
    for (uint64_t i = 1; i <= count; i++)
        assert_int_equal(mr_test_hop_take(hop).sequence, i);
    assert_int_equal(mr_conn_ack(&hop->conn, 3, 0), MR_OK);
    assert_int_equal(mr_sender_poll(&hop->sender, MR_SECOND_NS), MR_OK);
    assert_non_null(mr_sender_reserve(&hop->sender, 20000));
    assert_null(mr_sender_reserve(&hop->sender, 40000));
    mr_test_hop_free(hop);
}

static void take_and_ack(struct mr_test_hop *hop, uint64_t sequence)
{
    struct mr_frame frame = mr_test_hop_take(hop);

    assert_int_equal(frame.sequence, sequence);
    assert_int_equal(frame.payload.data[0], (uint8_t)sequence);
    assert_int_equal(frame.payload.data[9999], (uint8_t)sequence);
    assert_int_equal(mr_conn_ack(&hop->conn, sequence, 0), MR_OK);
    assert_int_equal(mr_sender_poll(&hop->sender, MR_SECOND_NS), MR_OK);
}

static void with_a_window_the_beginning_is_used_again_and_without_it_all_the_room(
    void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    uint64_t sent, acked = 0;

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    hop->sender.window = 40000;
    for (sent = 1; sent <= 50; sent++) { /* three are held all the time */
        assert_int_equal(mr_test_hop_send(hop, 10000, (uint8_t)sent), sent);
        if (sent > 3)
            take_and_ack(hop, ++acked);
        assert_true(hop->sender.tail <= 60000);
        assert_true(mr_sender_held(&hop->sender) <= 50000);
    }
    sent--;
    hop->sender.window = 0;
    while (mr_sender_reserve(&hop->sender, 10000)) {
        sent++;
        assert_int_equal(mr_test_hop_send(hop, 10000, (uint8_t)sent), sent);
    }
    assert_true(mr_sender_held(&hop->sender) + 60000 > MR_TEST_OUTBOX_SIZE);
    while (acked < sent)
        take_and_ack(hop, ++acked);
    assert_int_equal(mr_sender_held(&hop->sender), 0);
    mr_test_hop_free(hop);
}

static void a_frame_above_max_frame_has_no_room(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    mr_test_hop_start(hop);
    assert_int_equal(mr_sender_room(&hop->sender), MR_WIRE_MAX_FRAME_MIN);
    assert_null(mr_sender_reserve(&hop->sender, MR_WIRE_MAX_FRAME_MIN + 1));
    assert_non_null(mr_sender_reserve(&hop->sender, MR_WIRE_MAX_FRAME_MIN));
    mr_test_hop_free(hop);
}

static void polling_between_reserve_and_commit_is_allowed(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    uint8_t *payload;

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    for (uint64_t i = 1; i <= 100; i++) { /* several times around */
        payload = mr_sender_reserve(&hop->sender, 60000);
        assert_non_null(payload);
        memset(payload, (int)i, 60000);
        if (i > 1) {
            assert_int_equal(mr_test_hop_take(hop).sequence, i - 1);
            assert_int_equal(mr_conn_ack(&hop->conn, i - 1, 0), MR_OK);
            assert_int_equal(mr_sender_poll(&hop->sender, MR_SECOND_NS), MR_OK);
        }
        assert_int_equal(mr_sender_commit(&hop->sender, MR_FRAME_CHUNKS, 0, 60000), i);
    }
    assert_int_equal(mr_test_hop_take(hop).payload.data[59999], 100);
    mr_test_hop_free(hop);
}

static struct mr_sender_address address_of(uint8_t last)
{
    const struct mr_endpoint endpoint = {"127.0.0.1", "7"};
    struct mr_endpoints endpoints = {.items = {endpoint}, .count = 1};
    struct mr_sender_address addresses[MR_SENDER_ADDRESSES_MAX];
    struct sockaddr_in in;
    uint32_t count;

    assert_int_equal(mr_endpoints_numeric(&endpoints, addresses, &count, NULL), MR_OK);
    memcpy(&in, &addresses[0].address, sizeof(in));
    in.sin_addr.s_addr = htonl(0x7f000000u + last);
    memcpy(&addresses[0].address, &in, sizeof(in));
    return addresses[0];
}

static void other_addresses_begin_behind_the_one_tried_last(void **state)
{
    const struct mr_sender_address five[] = {address_of(1), address_of(2), address_of(3),
                                             address_of(4), address_of(5)};
    struct mr_test_hop *hop = mr_test_hop_new();
    struct mr_sender *sender = &hop->sender;

    (void)state;
    mr_test_hop_start(hop);
    mr_sender_set_addresses(sender, five, 5);
    assert_int_equal(sender->address_index, 0); /* none was tried */
    sender->stats.failures = 1;                 /* the first was */
    sender->address_index = 1;
    mr_sender_set_addresses(sender, (const struct mr_sender_address[]){five[4], five[0]},
                            2);
    assert_int_equal(sender->address_index, 0); /* behind five[0], around */
    mr_sender_set_addresses(sender, five, 3);   /* five[0] is the one before */
    assert_int_equal(sender->address_index, 1);
    mr_sender_set_addresses(sender, five + 3, 2); /* it is gone */
    assert_int_equal(sender->address_index, 0);
    mr_test_hop_free(hop);
}

static void the_present_connection_stays_whatever_the_addresses_are(void **state)
{
    const struct mr_sender_address others[MR_SENDER_ADDRESSES_MAX] = {
        address_of(1),  address_of(2),  address_of(3),  address_of(4),
        address_of(5),  address_of(6),  address_of(7),  address_of(8),
        address_of(9),  address_of(10), address_of(11), address_of(12),
        address_of(13), address_of(14), address_of(15), address_of(16)};
    struct mr_test_hop *hop = mr_test_hop_new();
    struct mr_sender *sender = &hop->sender;

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    mr_sender_set_addresses(sender, others, 2);
    assert_int_equal(sender->config.address_count, 3);
    assert_int_equal(sender->address_index, 2);
    mr_sender_set_addresses(sender, others, MR_SENDER_ADDRESSES_MAX);
    assert_int_equal(sender->config.address_count, MR_SENDER_ADDRESSES_MAX);
    assert_int_equal(sender->address_index, MR_SENDER_ADDRESSES_MAX - 1);
    assert_memory_equal(&sender->config.addresses[sender->address_index].address,
                        &hop->config.addresses[0].address, hop->config.addresses[0].size);
    assert_int_equal(mr_test_hop_send(hop, 100, 1), 1);
    assert_int_equal(mr_test_hop_take(hop).sequence, 1);
    mr_test_hop_free(hop);
}

static void what_was_not_acknowledged_is_sent_again(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    for (int i = 1; i <= 5; i++)
        (void)mr_test_hop_send(hop, 100, (uint8_t)i);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(mr_test_hop_take(hop).sequence, i);
    mr_test_hop_hang_up(hop);
    hop->next_sequence = 3; /* frame 3 was read, but not kept */
    for (int i = 0; i < 100 && hop->sender.state == MR_SENDER_OPEN; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    assert_int_equal(hop->sender.last_error.status, MR_EIO);
    mr_test_hop_open(hop);
    assert_int_equal(hop->sender.oldest_sequence, 3);
    for (uint64_t i = 3; i <= 5; i++)
        assert_int_equal(mr_test_hop_take(hop).payload.data[0], i);
    assert_int_equal(hop->sender.stats.resends, 3);
    assert_int_equal(hop->sender.stats.connects, 2);
    mr_test_hop_free(hop);
}

static void no_more_than_the_credit_is_on_its_way(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    const uint64_t frame_bytes = 1000 + MR_WIRE_HEADER_SIZE;

    (void)state;
    hop->credit = 3 * frame_bytes + 10;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    for (int i = 0; i < 10; i++)
        (void)mr_test_hop_send(hop, 1000, 0);
    (void)mr_sender_poll(&hop->sender, 0);
    (void)mr_sender_poll(&hop->sender, 0);
    assert_int_equal(hop->sender.unacked_bytes, 3 * frame_bytes);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(mr_test_hop_take(hop).sequence, i);
    assert_int_equal(mr_conn_ack(&hop->conn, 1, 1), MR_OK); /* less than a frame */
    assert_int_equal(mr_sender_poll(&hop->sender, MR_SECOND_NS), MR_OK);
    assert_int_equal(hop->sender.unacked_bytes, 2 * frame_bytes);
    assert_int_equal(mr_conn_ack(&hop->conn, 3, 1), MR_OK); /* one may always go */
    assert_int_equal(mr_test_hop_take(hop).sequence, 4);
    assert_int_equal(hop->sender.unacked_bytes, frame_bytes);
    mr_test_hop_free(hop);
}

static void a_refused_hello_is_told_and_tried_again_late(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    enum mr_status status = MR_AGAIN;
    bool is_refused = false;

    (void)state;
    hop->config.backoff_max_ns = MR_HOUR_NS;
    mr_test_hop_start(hop);
    for (int i = 0; i < 1000 && status != MR_EREFUSED; i++) {
        status = mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        if (!hop->has_conn && mr_test_hop_accept(hop, 0))
            continue;
        if (hop->has_conn && !is_refused && mr_conn_read(&hop->conn) == MR_OK) {
            mr_conn_refuse(&hop->conn, MR_WIRE_ERROR_TOKEN, "the token is wrong");
            mr_test_hop_hang_up(hop);
            is_refused = true;
        }
    }
    assert_int_equal(status, MR_EREFUSED);
    assert_int_equal(hop->sender.state, MR_SENDER_REFUSED);
    assert_int_equal(hop->sender.last_error.status, MR_EREFUSED);
    assert_non_null(strstr(hop->sender.last_error.text, "the token is wrong"));
    assert_true(hop->sender.retry_at_ns > mr_clock_monotonic_ns() + MR_MINUTE_NS);
    mr_test_hop_free(hop);
}

/* Connects, and has the receiver answer HELLO with these bytes. */
static void answer(struct mr_test_hop *hop, const uint8_t *bytes, size_t size)
{
    mr_test_hop_start(hop);
    for (int i = 0; i < 1000 && hop->sender.stats.failures == 0; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        if (!hop->has_conn && mr_test_hop_accept(hop, 0) && size)
            assert_int_equal(send(hop->conn.fd, bytes, size, MSG_NOSIGNAL), size);
    }
    assert_int_equal(hop->sender.stats.failures, 1);
}

static void a_receiver_of_another_version_is_left(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    struct mr_test_bytes welcome =
        mr_test_bytes("4d4c5243 02 02 0000 00000000 00000000 0000000000000000");

    (void)state;
    hop->config.backoff_min_ns = hop->config.backoff_max_ns = MR_HOUR_NS;
    answer(hop, welcome.data, welcome.size);
    assert_non_null(strstr(hop->sender.last_error.text, "version 2"));
    mr_test_hop_free(hop);
}

static void a_receiver_that_knows_too_much_is_left(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    const struct mr_welcome welcome = {
        .version = 1, .max_frame = MR_WIRE_MAX_FRAME_MIN, .next_sequence = 2};
    uint8_t bytes[MR_WIRE_HEADER_SIZE + MR_WELCOME_SIZE];

    (void)state;
    hop->config.backoff_min_ns = hop->config.backoff_max_ns = MR_HOUR_NS;
    mr_welcome_put(&welcome, bytes + MR_WIRE_HEADER_SIZE);
    mr_frame_put_header(MR_FRAME_WELCOME, 0, 0,
                        mr_span_of(bytes + MR_WIRE_HEADER_SIZE, MR_WELCOME_SIZE), bytes);
    answer(hop, bytes, sizeof(bytes));
    assert_non_null(strstr(hop->sender.last_error.text, "never sent"));
    mr_test_hop_free(hop);
}

static void a_receiver_that_says_nothing_is_left(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    hop->config.silence_ns = 20 * MR_MILLISECOND_NS;
    hop->config.backoff_min_ns = hop->config.backoff_max_ns = MR_HOUR_NS;
    answer(hop, NULL, 0);
    assert_non_null(strstr(hop->sender.last_error.text, "nothing was heard"));
    mr_test_hop_free(hop);
}

static void nobody_listening_is_told_and_the_next_address_tried(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new(), *dead = mr_test_hop_new();

    (void)state;
    assert_int_equal(close(dead->listener), 0);
    hop->config.addresses[1] = hop->config.addresses[0];
    hop->config.addresses[0] = dead->config.addresses[0];
    hop->config.address_count = 2;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    assert_int_equal(hop->sender.stats.failures, 1);
    assert_non_null(strstr(hop->sender.last_error.text, "nobody listens"));
    free(dead);
    mr_test_hop_free(hop);
}

static void a_silent_sender_beats_its_heart(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    struct mr_frame frame;

    (void)state;
    hop->config.heartbeat_ns = 5 * MR_MILLISECOND_NS;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    for (int i = 0; i < 1000 && hop->conn.stats.frames < 4; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        assert_int_equal(mr_test_hop_receive(hop, &frame), MR_AGAIN);
    }
    assert_true(hop->conn.stats.frames >= 4); /* HELLO and heartbeats */
    mr_test_hop_free(hop);
}

static void move_makes_a_sender_say_bye_and_come_again(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    struct mr_frame frame;
    enum mr_status status = MR_AGAIN;

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    (void)mr_test_hop_send(hop, 10, 1);
    assert_int_equal(mr_conn_move(&hop->conn, 1), MR_OK);
    assert_int_equal(mr_test_hop_take(hop).sequence, 1);
    for (int i = 0; i < 1000 && status == MR_AGAIN; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        status = mr_test_hop_receive(hop, &frame);
    }
    assert_int_equal(status, MR_END);
    assert_int_equal(hop->conn.bye_reason, MR_BYE_MOVING);
    (void)mr_test_hop_send(hop, 10, 2); /* not sent any more on this connection */
    (void)mr_sender_poll(&hop->sender, 0);
    assert_int_equal(mr_conn_ack(&hop->conn, 1, 0), MR_OK);
    hop->next_sequence = 2;
    mr_test_hop_hang_up(hop);
    for (int i = 0; i < 1000 && hop->sender.state == MR_SENDER_OPEN; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    mr_test_hop_open(hop);
    assert_int_equal(mr_test_hop_take(hop).sequence, 2);
    assert_int_equal(hop->sender.stats.moves, 1);
    assert_int_equal(hop->sender.stats.failures, 0);
    assert_int_equal(hop->sender.stats.resends, 0);
    mr_test_hop_free(hop);
}

enum { ANNOUNCED = 5 }; /* payloads of a repetition, each as large as can be */

static size_t announce(void *context, uint64_t *cursor, uint8_t *out, size_t capacity)
{
    uint64_t *calls = context;

    (*calls)++;
    assert_int_equal(capacity, MR_SENDER_ANNOUNCE_SIZE);
    if (*cursor == ANNOUNCED)
        return 0;
    memset(out, (int)++*cursor, capacity);
    return capacity;
}

/* Sends and acknowledges `count` frames, sends one more, and loses the connection. */
static void acknowledge_and_break(struct mr_test_hop *hop, uint64_t count)
{
    mr_test_hop_open(hop);
    for (uint64_t i = 1; i <= count; i++) {
        (void)mr_test_hop_send(hop, 10, (uint8_t)i);
        assert_int_equal(mr_test_hop_take(hop).sequence, i);
    }
    assert_int_equal(mr_conn_ack(&hop->conn, count, 0), MR_OK);
    assert_int_equal(mr_sender_poll(&hop->sender, MR_SECOND_NS), MR_OK);
    (void)mr_test_hop_send(hop, 10, (uint8_t)(count + 1));
    mr_test_hop_hang_up(hop);
    for (int i = 0; i < 1000 && hop->sender.state == MR_SENDER_OPEN; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
}

static void expect_announcement(struct mr_test_hop *hop, uint64_t next_sequence)
{
    struct mr_frame frame;

    for (int i = 1; i <= ANNOUNCED; i++) {
        frame = mr_test_hop_take(hop);
        assert_int_equal(frame.type, MR_FRAME_DICT);
        assert_int_equal(frame.sequence, 0);
        assert_int_equal(frame.payload.size, MR_SENDER_ANNOUNCE_SIZE);
        assert_int_equal(frame.payload.data[0], i);
        assert_int_equal(frame.payload.data[frame.payload.size - 1], i);
    }
    frame = mr_test_hop_take(hop);
    assert_int_equal(frame.type, MR_FRAME_CHUNKS);
    assert_int_equal(frame.sequence, next_sequence);
}

static void a_receiver_that_lacks_acknowledged_frames_gets_the_dictionary_first(
    void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    uint64_t calls = 0;

    (void)state;
    hop->config.announce = announce;
    hop->config.context = &calls;
    mr_test_hop_start(hop);
    acknowledge_and_break(hop, 3);
    assert_int_equal(calls, 0);
    hop->next_sequence =
        2; /* a restarted receiver, or another one, that missed 2 and 3 */
    mr_test_hop_open(hop);
    hop->conn.next_sequence = 4;
    expect_announcement(hop, 4);
    assert_int_equal(calls, ANNOUNCED + 1);
    assert_int_equal(hop->sender.stats.announced, ANNOUNCED);
    mr_test_hop_free(hop);
}

static void a_receiver_that_knows_all_frames_gets_none_unless_it_asks(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    uint64_t calls = 0;

    (void)state;
    hop->config.announce = announce;
    hop->config.context = &calls;
    mr_test_hop_start(hop);
    acknowledge_and_break(hop, 2);
    hop->next_sequence = 3;
    mr_test_hop_open(hop);
    assert_int_equal(mr_test_hop_take(hop).sequence, 3);
    assert_int_equal(calls, 0);
    mr_test_hop_hang_up(hop);
    for (int i = 0; i < 1000 && hop->sender.state == MR_SENDER_OPEN; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    hop->wants_dictionary = true;
    mr_test_hop_open(hop);
    expect_announcement(hop, 3);
    mr_test_hop_free(hop);
}

static void a_repetition_that_breaks_off_starts_over(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    uint64_t calls = 0;

    (void)state;
    hop->config.announce = announce;
    hop->config.context = &calls;
    mr_test_hop_start(hop);
    acknowledge_and_break(hop, 1);
    hop->next_sequence = 1;
    mr_test_hop_open(hop);
    assert_int_equal(mr_test_hop_take(hop).payload.data[0], 1);
    assert_int_equal(mr_test_hop_take(hop).payload.data[0], 2);
    mr_test_hop_hang_up(hop);
    for (int i = 0; i < 1000 && hop->sender.state == MR_SENDER_OPEN; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    mr_test_hop_open(hop);
    hop->conn.next_sequence = 2;
    expect_announcement(hop, 2);
    mr_test_hop_free(hop);
}

static void finish_past_its_deadline_tells_what_is_left(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    (void)mr_test_hop_send(hop, 10, 1);
    assert_int_equal(mr_sender_finish(&hop->sender, MR_BYE_DRAINING,
                                      mr_clock_monotonic_ns() + 20 * MR_MILLISECOND_NS),
                     MR_ETIMEOUT);
    assert_false(mr_sender_is_drained(&hop->sender));
    assert_int_equal(mr_test_hop_take(hop).sequence, 1);
    assert_int_equal(mr_conn_next(&hop->conn, &(struct mr_frame){0}), MR_END);
    assert_int_equal(hop->conn.bye_reason, MR_BYE_DRAINING);
    mr_test_hop_free(hop);
}

static void an_abandoned_sender_never_connects_again(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    mr_sender_abandon(&hop->sender);
    assert_int_equal(hop->sender.fd, -1);
    assert_int_equal(mr_sender_poll(&hop->sender, 0), MR_AGAIN);
    assert_int_equal(hop->sender.fd, -1);
    mr_test_hop_free(hop);
}

static void what_is_discarded_makes_room_and_is_in_nobodys_custody(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    uint64_t sequence = 0;

    (void)state;
    mr_test_hop_start(hop);
    assert_int_equal(mr_sender_discard(&hop->sender), 0);
    for (int turn = 0; turn < 50; turn++) { /* several times around */
        uint64_t held = 0;

        for (; held < 3 || turn % 5 == 0; held++) {
            size_t size = 10000 + (size_t)turn * 100;
            uint8_t *payload = mr_sender_reserve(&hop->sender, size);

            if (!payload)
                break;
            memset(payload, turn, size);
            assert_int_equal(mr_sender_commit(&hop->sender, MR_FRAME_CHUNKS, 0, size - 5),
                             ++sequence);
        }
        assert_true(held >= 3);
        assert_false(mr_sender_is_drained(&hop->sender));
        assert_int_equal(mr_sender_discard(&hop->sender), held);
        assert_true(mr_sender_is_drained(&hop->sender));
    }
    assert_int_equal(hop->sender.oldest_sequence, sequence + 1);
    assert_int_equal(hop->sender.stats.discarded, sequence);
    assert_int_equal(hop->sender.stats.frames_acked, 0);
    mr_test_hop_free(hop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_configuration_that_cannot_work_is_refused),
        cmocka_unit_test(frames_committed_before_the_connection_are_sent),
        cmocka_unit_test(a_full_outbox_says_no_until_something_is_acknowledged),
        cmocka_unit_test(
            with_a_window_the_beginning_is_used_again_and_without_it_all_the_room),
        cmocka_unit_test(a_frame_above_max_frame_has_no_room),
        cmocka_unit_test(polling_between_reserve_and_commit_is_allowed),
        cmocka_unit_test(other_addresses_begin_behind_the_one_tried_last),
        cmocka_unit_test(the_present_connection_stays_whatever_the_addresses_are),
        cmocka_unit_test(what_was_not_acknowledged_is_sent_again),
        cmocka_unit_test(no_more_than_the_credit_is_on_its_way),
        cmocka_unit_test(a_refused_hello_is_told_and_tried_again_late),
        cmocka_unit_test(a_receiver_of_another_version_is_left),
        cmocka_unit_test(a_receiver_that_knows_too_much_is_left),
        cmocka_unit_test(a_receiver_that_says_nothing_is_left),
        cmocka_unit_test(nobody_listening_is_told_and_the_next_address_tried),
        cmocka_unit_test(a_silent_sender_beats_its_heart),
        cmocka_unit_test(move_makes_a_sender_say_bye_and_come_again),
        cmocka_unit_test(
            a_receiver_that_lacks_acknowledged_frames_gets_the_dictionary_first),
        cmocka_unit_test(a_receiver_that_knows_all_frames_gets_none_unless_it_asks),
        cmocka_unit_test(a_repetition_that_breaks_off_starts_over),
        cmocka_unit_test(finish_past_its_deadline_tells_what_is_left),
        cmocka_unit_test(an_abandoned_sender_never_connects_again),
        cmocka_unit_test(what_is_discarded_makes_room_and_is_in_nobodys_custody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
