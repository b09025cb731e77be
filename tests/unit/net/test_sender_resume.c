/* SPDX-License-Identifier: Apache-2.0 */
/* net/sender.h: what a receiver that moves a sender away says comes to the next one, once. */
#include "net/sender.h"

#include "tests/unit/net/hop.h"

enum { LARGE_COUNT = 16 };

static uint8_t large[MR_RESUME_BYTES_MAX];
static uint8_t memory[LARGE_COUNT * MR_WIRE_MAX_CONTROL];

static void poll_until_closed(struct mr_test_hop *hop)
{
    for (int i = 0; i < 1000 && hop->sender.state == MR_SENDER_OPEN; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    assert_int_not_equal(hop->sender.state, MR_SENDER_OPEN);
}

/* Until the receiver has the sender's BYE (moving), and with it the frames before. */
static void say_move(struct mr_test_hop *hop)
{
    struct mr_frame frame;
    enum mr_status status = MR_AGAIN;

    assert_int_equal(mr_conn_move(&hop->conn, 0), MR_OK);
    for (int i = 0; i < 1000 && status == MR_AGAIN; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        status = mr_test_hop_receive(hop, &frame);
    }
    assert_int_equal(status, MR_END);
    assert_int_equal(hop->conn.bye_reason, MR_BYE_MOVING);
}

/* A sender that keeps `size` bytes, up to a receiver that has frame 1 and BYE; frame 2 waits. */
static struct mr_test_hop *moved_hop(size_t size)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    hop->config.resume = size ? memory : NULL;
    hop->config.resume_size = size;
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    assert_int_equal(mr_test_hop_send(hop, 10, 1), 1);
    assert_int_equal(mr_test_hop_take(hop).sequence, 1);
    assert_int_equal(mr_conn_ack(&hop->conn, 1, 0), MR_OK);
    say_move(hop);
    assert_int_equal(mr_test_hop_send(hop, 10, 2), 2);
    hop->next_sequence = 2;
    hop->takes_resume = true; /* the next one does */
    return hop;
}

static void say_resume(struct mr_test_hop *hop, const char *text)
{
    assert_int_equal(mr_conn_resume(&hop->conn, 1, mr_span_of_text(text)), MR_OK);
}

/* Of the connections that senders left. */
static struct mr_conn parted;

/* The receiver has said all; the connection is `parted`. */
static void offer(struct mr_test_hop *hop)
{
    assert_int_equal(mr_conn_offer(&hop->conn, MR_OFFER_MADE), MR_OK);
    poll_until_closed(hop);
    assert_int_equal(hop->sender.stats.failures, 0);
    assert_int_equal(hop->sender.resume_state, MR_SENDER_RESUME_OFFERED);
    parted = hop->conn;
    hop->has_conn = false;
}

/* Until the sender has said to the one that it left that the offer is accepted. */
static void poll_until_accepted(struct mr_test_hop *hop)
{
    struct mr_frame frame;
    enum mr_status status = MR_AGAIN;

    for (int i = 0; i < 3000 && status == MR_AGAIN; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        (void)mr_conn_read(&parted);
        status = mr_conn_next(&parted, &frame);
    }
    assert_int_equal(status, MR_OK);
    assert_int_equal(frame.type, MR_FRAME_OFFER);
    assert_int_equal(hop->sender.resume_state, MR_SENDER_RESUME_ACCEPTED);
}

static void grant(struct mr_test_hop *hop)
{
    assert_int_equal(mr_conn_offer(&parted, MR_OFFER_GRANTED), MR_OK);
    for (int i = 0; i < 1000 && hop->sender.parting.fd >= 0; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    mr_conn_fini(&parted);
}

/* Nobody is there now; the receiver lets go. */
static void let_go(struct mr_test_hop *hop)
{
    offer(hop);
    hop->sender.parting.due_ns = 0; /* however long it would wait */
    hop->sender.retry_at_ns += MR_HOUR_NS;
    poll_until_accepted(hop);
    grant(hop);
    hop->sender.retry_at_ns = 0;
    assert_int_equal(hop->sender.resume_state, MR_SENDER_RESUME_GRANTED);
}

/* The sender has closed the connection that it left, without a word. */
static void expect_declined(struct mr_test_hop *hop)
{
    struct mr_frame frame;

    for (int i = 0; i < 3000 && hop->sender.parting.fd >= 0; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    assert_int_equal(mr_conn_read(&parted), MR_END);
    assert_int_equal(mr_conn_next(&parted, &frame), MR_AGAIN);
    assert_int_equal(hop->sender.resume_state, MR_SENDER_RESUME_NONE);
    mr_conn_fini(&parted);
}

static void expect_resume(struct mr_test_hop *hop, struct mr_span bytes)
{
    struct mr_frame frame = mr_test_hop_take(hop);
    struct mr_span rest;
    uint64_t sequence;

    assert_int_equal(frame.type, MR_FRAME_RESUME);
    assert_int_equal(mr_resume_frame_get(frame.payload, &sequence, &rest), MR_OK);
    assert_int_equal(sequence, 1);
    assert_true(mr_span_equal(rest, bytes));
}

/* And no RESUME before it. */
static void expect_frame_2(struct mr_test_hop *hop)
{
    struct mr_frame frame = mr_test_hop_take(hop);

    assert_int_equal(frame.type, MR_FRAME_CHUNKS);
    assert_int_equal(frame.sequence, 2);
}

static size_t announce_once(void *context, uint64_t *cursor, uint8_t *out,
                            size_t capacity)
{
    (void)context;
    (void)capacity;
    *out = 0x90;
    return (*cursor)++ == 0;
}

static void the_next_receiver_gets_it_before_dictionary_and_data(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));
    struct mr_frame frame;

    (void)state;
    memset(large, 'l', sizeof(large));
    say_resume(hop, "first");
    assert_int_equal(mr_conn_resume(&hop->conn, 1, mr_span_of(large, sizeof(large))),
                     MR_OK);
    say_resume(hop, "third");
    let_go(hop);
    hop->sender.config.announce = announce_once;
    hop->wants_dictionary = true;
    mr_test_hop_open(hop);
    expect_resume(hop, mr_span_of_text("first"));
    expect_resume(hop, mr_span_of(large, sizeof(large)));
    expect_resume(hop, mr_span_of_text("third"));
    frame = mr_test_hop_take(hop);
    assert_int_equal(frame.type, MR_FRAME_DICT);
    assert_int_equal(frame.sequence, 0);
    expect_frame_2(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 0);
    mr_test_hop_free(hop);
}

static void it_is_not_given_twice(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    let_go(hop);
    mr_test_hop_open(hop);
    expect_resume(hop, mr_span_of_text("first"));
    mr_test_hop_hang_up(hop);
    poll_until_closed(hop);
    mr_test_hop_open(hop);
    expect_frame_2(hop);
    mr_test_hop_free(hop);
}

/* What was offered is accepted, as the next receiver takes it. */
static void accept_first(struct mr_test_hop *hop)
{
    say_resume(hop, "first");
    offer(hop);
    mr_test_hop_open(hop);
    poll_until_accepted(hop);
}

static void it_is_accepted_once_a_receiver_takes_it_and_given_once_it_is_granted(
    void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));
    struct mr_frame frame;

    (void)state;
    accept_first(hop);
    for (int i = 0; i < 20; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        assert_int_equal(mr_test_hop_receive(hop, &frame), MR_AGAIN);
    }
    assert_int_equal(mr_conn_move(&hop->conn, 0), MR_OK); /* not before it is given */
    for (int i = 0; i < 20; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    assert_false(hop->sender.is_leaving);
    grant(hop);
    expect_resume(hop, mr_span_of_text("first"));
    assert_int_equal(hop->sender.stats.resumes_dropped, 0);
    mr_test_hop_free(hop);
}

static void one_that_takes_none_is_said_by_a_connection_that_ends(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    offer(hop);
    hop->takes_resume = false;
    mr_test_hop_open(hop);
    expect_declined(hop);
    expect_frame_2(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 1);
    mr_test_hop_free(hop);
}

static void where_nobody_is_it_is_accepted_for_who_comes(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));
    struct mr_sender_address nobody = {.size = sizeof(struct sockaddr_in)};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(1)};

    (void)state;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(&nobody.address, &address, sizeof(address));
    say_resume(hop, "first");
    offer(hop);
    mr_sender_set_addresses(&hop->sender, &nobody, 1);
    poll_until_accepted(hop);
    assert_in_range(hop->sender.stats.failures, 1, 1000);
    grant(hop);
    assert_int_equal(hop->sender.resume_state, MR_SENDER_RESUME_GRANTED);
    mr_sender_set_addresses(&hop->sender, hop->config.addresses, 1);
    mr_test_hop_open(hop);
    expect_resume(hop, mr_span_of_text("first"));
    expect_frame_2(hop);
    mr_test_hop_free(hop);
}

static void of_several_addresses_all_are_tried_before(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    hop->sender.config.addresses[1] = hop->sender.config.addresses[0];
    hop->sender.config.address_count = 2;
    offer(hop);
    for (int i = 0; i < 1000 && hop->sender.stats.failures == 0; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        if (mr_test_hop_accept(hop, 0))
            mr_test_hop_hang_up(hop);
    }
    assert_int_equal(hop->sender.stats.failures, 1);
    assert_int_equal(hop->sender.resume_state, MR_SENDER_RESUME_OFFERED);
    mr_test_hop_open(hop);
    poll_until_accepted(hop);
    grant(hop);
    expect_resume(hop, mr_span_of_text("first"));
    mr_test_hop_free(hop);
}

static void what_is_not_granted_in_time_is_not_waited_for(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    accept_first(hop);
    hop->sender.parting.due_ns = 0;
    expect_declined(hop);
    expect_frame_2(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 1);
    mr_test_hop_free(hop);
}

/* It ends what is open itself. */
static void a_receiver_that_hangs_up_has_not_granted(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    mr_test_hop_hang_up(hop); /* before it offered */
    poll_until_closed(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 1);
    mr_test_hop_open(hop);
    expect_frame_2(hop);
    mr_test_hop_free(hop);

    hop = moved_hop(sizeof(memory));
    accept_first(hop);
    mr_conn_fini(&parted);
    expect_frame_2(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 1);
    mr_test_hop_free(hop);
}

/* Over the connection that was left: heartbeats are passed over, all else ends it. */
static void what_else_comes_over_it_ends_it(void **state)
{
    static const uint8_t types[] = {MR_FRAME_ACK, MR_FRAME_OFFER, MR_FRAME_ERROR, 99};

    (void)state;
    for (size_t i = 0; i < sizeof(types); i++) {
        struct mr_test_hop *hop = moved_hop(sizeof(memory));
        uint8_t bytes[2 * MR_WIRE_HEADER_SIZE + MR_OFFER_SIZE];
        uint8_t *at = bytes + MR_WIRE_HEADER_SIZE;

        say_resume(hop, "first");
        offer(hop);
        mr_offer_put(MR_OFFER_GRANTED, at + MR_WIRE_HEADER_SIZE); /* not accepted yet */
        mr_frame_put_header(MR_FRAME_HEARTBEAT, 0, 0, mr_span_of(NULL, 0), bytes);
        mr_frame_put_header(types[i], 0, 0,
                            mr_span_of(at + MR_WIRE_HEADER_SIZE, MR_OFFER_SIZE), at);
        assert_int_equal(send(parted.fd, bytes, MR_WIRE_HEADER_SIZE, MSG_NOSIGNAL),
                         MR_WIRE_HEADER_SIZE);
        hop->sender.retry_at_ns += MR_HOUR_NS;
        for (int turn = 0; turn < 20; turn++)
            (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        assert_true(hop->sender.parting.fd >= 0);
        assert_int_equal(
            send(parted.fd, at, sizeof(bytes) - MR_WIRE_HEADER_SIZE, MSG_NOSIGNAL),
            sizeof(bytes) - MR_WIRE_HEADER_SIZE);
        expect_declined(hop);
        mr_test_hop_free(hop);
    }
}

static void one_that_ends_while_it_waits_declines(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    accept_first(hop);
    (void)mr_sender_finish(&hop->sender, MR_BYE_FINISHED, 0);
    expect_declined(hop);
    mr_test_hop_free(hop);
}

/* As the probe does when the program closed it. */
static void one_that_was_closed_behind_its_back_is_forgotten_not_closed(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));
    int fd;

    (void)state;
    say_resume(hop, "first");
    offer(hop);
    fd = hop->sender.parting.fd;
    mr_sender_lose_parting(&hop->sender);
    assert_int_equal(hop->sender.resume_state, MR_SENDER_RESUME_NONE);
    assert_int_equal(close(fd), 0);
    mr_conn_fini(&parted);
    mr_test_hop_open(hop);
    expect_frame_2(hop);
    mr_test_hop_free(hop);
}

static void set_buffer(int fd, int option, int size)
{
    assert_int_equal(setsockopt(fd, SOL_SOCKET, option, &size, sizeof(size)), 0);
}

/* So that no more than a few of the large ones are on their way. */
static void open_narrow(struct mr_test_hop *hop)
{
    for (int i = 0; i < 1000 && !hop->has_conn; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        if (mr_test_hop_accept(hop, 0))
            set_buffer(hop->conn.fd, SO_RCVBUF, 4096);
    }
    for (int i = 0; i < 1000 && hop->sender.state != MR_SENDER_GREETING; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    set_buffer(hop->sender.fd, SO_SNDBUF, 4096);
    mr_test_hop_open(hop);
    (void)mr_sender_poll(&hop->sender, 0);
    assert_true(hop->sender.is_resuming);
    assert_in_range(hop->sender.resume_count, 1, LARGE_COUNT - 1);
}

static struct mr_test_hop *hop_with_more_than_goes_at_once(void)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    for (int i = 0; i < LARGE_COUNT; i++)
        assert_int_equal(mr_conn_resume(&hop->conn, 1, mr_span_of(large, sizeof(large))),
                         MR_OK);
    for (int i = 0; i < 1000 && hop->sender.resume_count < LARGE_COUNT; i++) {
        (void)mr_conn_flush(&hop->conn);
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    }
    assert_int_equal(hop->sender.resume_count, LARGE_COUNT);
    let_go(hop);
    return hop;
}

static void who_got_a_part_is_the_last_to_get_any(void **state)
{
    struct mr_test_hop *hop = hop_with_more_than_goes_at_once();
    uint32_t left;

    (void)state;
    open_narrow(hop);
    left = hop->sender.resume_count;
    mr_test_hop_hang_up(hop);
    poll_until_closed(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, left);
    mr_test_hop_open(hop);
    expect_frame_2(hop);
    mr_test_hop_free(hop);
}

static void a_move_while_it_is_given_ends_it_between_two(void **state)
{
    struct mr_test_hop *hop = hop_with_more_than_goes_at_once();
    struct mr_frame frame;
    enum mr_status status = MR_AGAIN;
    uint64_t count = 0;

    (void)state;
    open_narrow(hop);
    assert_int_equal(mr_conn_move(&hop->conn, 0), MR_OK);
    for (int i = 0; i < 1000 && !hop->sender.is_leaving; i++)
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
    hop->sender.move_at_ns += MR_HOUR_NS; /* however slow we are */
    set_buffer(hop->conn.fd, SO_RCVBUF, 1 << 20);
    set_buffer(hop->sender.fd, SO_SNDBUF, 1 << 20);
    for (int i = 0; i < 10000 && status != MR_END; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        status = mr_test_hop_receive(hop, &frame);
        assert_true(status == MR_OK || status == MR_AGAIN || status == MR_END);
        if (status == MR_OK)
            assert_int_equal(frame.type, MR_FRAME_RESUME);
        count += status == MR_OK;
    }
    assert_int_equal(status, MR_END);
    assert_int_equal(hop->conn.bye_reason, MR_BYE_MOVING);
    (void)mr_sender_poll(&hop->sender, 0);
    assert_in_range(count, 1, LARGE_COUNT - 1);
    assert_int_equal(hop->sender.stats.resumes_dropped, LARGE_COUNT - count);
    assert_false(hop->sender.is_resuming);
    mr_test_hop_free(hop);
}

static void a_receiver_that_takes_none_gets_none_and_no_later_one_does(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    say_resume(hop, "second");
    let_go(hop);
    hop->takes_resume = false;
    mr_test_hop_open(hop);
    expect_frame_2(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 2);
    mr_test_hop_hang_up(hop);
    poll_until_closed(hop);
    hop->takes_resume = true;
    mr_test_hop_open(hop);
    expect_frame_2(hop);
    mr_test_hop_free(hop);
}

static void what_is_of_another_frame_than_the_last_acknowledged_is_dropped(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    assert_int_equal(mr_conn_resume(&hop->conn, 0, mr_span_of("x", 1)), MR_OK);
    let_go(hop);
    mr_test_hop_open(hop);
    expect_frame_2(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 1);
    mr_test_hop_free(hop);
}

static void a_receiver_that_has_more_frames_than_were_acknowledged_gets_none(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    let_go(hop);
    hop->next_sequence = 3; /* it has 2 as well, and what came of it */
    mr_test_hop_open(hop);
    assert_int_equal(mr_test_hop_send(hop, 10, 3), 3);
    assert_int_equal(mr_test_hop_take(hop).sequence, 3);
    assert_int_equal(hop->sender.stats.resumes_dropped, 1);
    mr_test_hop_free(hop);
}

static void who_did_not_welcome_the_sender_leaves_it_to_the_next(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    let_go(hop);
    for (int i = 0; i < 1000 && hop->sender.stats.failures == 0; i++) {
        (void)mr_sender_poll(&hop->sender, MR_MILLISECOND_NS);
        if (mr_test_hop_accept(hop, 0))
            mr_test_hop_hang_up(hop);
    }
    assert_int_equal(hop->sender.stats.failures, 1);
    mr_test_hop_open(hop);
    expect_resume(hop, mr_span_of_text("first"));
    expect_frame_2(hop);
    mr_test_hop_free(hop);
}

static void as_much_as_hello_tells_finds_room_and_more_is_dropped(void **state)
{
    const size_t size = 2 * (MR_RESUME_HEAD_SIZE + sizeof("first") - 1);
    struct mr_test_hop *hop = moved_hop(size);

    (void)state;
    memory[size] = 0xee;
    say_resume(hop, "first");
    say_resume(hop, "third");
    say_resume(hop, "second");
    let_go(hop);
    assert_int_equal(hop->sender.stats.resumes_dropped, 1);
    assert_int_equal(memory[size], 0xee);
    mr_test_hop_open(hop);
    expect_resume(hop, mr_span_of_text("first"));
    expect_resume(hop, mr_span_of_text("third"));
    expect_frame_2(hop);
    mr_test_hop_free(hop);
}

/* What no mr_conn would send. */
static void say_raw_resume(struct mr_test_hop *hop, const char *payload, size_t size)
{
    uint8_t bytes[MR_WIRE_HEADER_SIZE + 16];

    memcpy(bytes + MR_WIRE_HEADER_SIZE, payload, size);
    mr_frame_put_header(MR_FRAME_RESUME, 0, 0,
                        mr_span_of(bytes + MR_WIRE_HEADER_SIZE, size), bytes);
    size += MR_WIRE_HEADER_SIZE;
    assert_int_equal(send(hop->conn.fd, bytes, size, MSG_NOSIGNAL), size);
}

static void expect_break(struct mr_test_hop *hop, const char *text)
{
    poll_until_closed(hop);
    assert_int_equal(hop->sender.stats.failures, 1);
    assert_non_null(strstr(hop->sender.last_error.text, text));
    assert_int_equal(hop->sender.resume_count, 0);
    mr_test_hop_free(hop);
}

static void from_who_was_not_told_bye_it_breaks_the_connection(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    hop->config.resume = memory;
    hop->config.resume_size = sizeof(memory);
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    say_raw_resume(hop, "\1\0\0\0\0\0\0\0x", 9);
    expect_break(hop, "bad RESUME");
}

static void from_who_was_told_that_the_sender_has_finished_as_well(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    hop->config.resume = memory;
    hop->config.resume_size = sizeof(memory);
    mr_test_hop_start(hop);
    mr_test_hop_open(hop);
    say_raw_resume(hop, "\0\0\0\0\0\0\0\0x", 9); /* read when BYE is on its way */
    assert_int_equal(mr_sender_finish(&hop->sender, MR_BYE_FINISHED,
                                      mr_clock_monotonic_ns() + MR_SECOND_NS),
                     MR_OK);
    expect_break(hop, "bad RESUME");
}

static void one_without_bytes_breaks_the_connection(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_raw_resume(hop, "\1\0\0\0\0\0\0\0", 8);
    expect_break(hop, "bad RESUME");
}

static void two_of_different_frames_break_the_connection_and_none_is_kept(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    say_raw_resume(hop, "\2\0\0\0\0\0\0\0x", 9);
    expect_break(hop, "bad RESUME");
}

static void an_offer_without_resume_or_of_another_step_breaks_the_connection(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    assert_int_equal(mr_conn_offer(&hop->conn, MR_OFFER_MADE), MR_OK);
    expect_break(hop, "bad OFFER");
    hop = moved_hop(sizeof(memory));
    say_resume(hop, "first");
    assert_int_equal(mr_conn_offer(&hop->conn, MR_OFFER_GRANTED), MR_OK);
    expect_break(hop, "bad OFFER");
}

static void without_memory_it_is_a_frame_that_no_receiver_sends(void **state)
{
    struct mr_test_hop *hop = moved_hop(0);

    (void)state;
    say_resume(hop, "first");
    expect_break(hop, "no receiver sends");
}

static void a_size_without_memory_is_refused(void **state)
{
    struct mr_test_hop *hop = mr_test_hop_new();

    (void)state;
    hop->config.resume_size = 1;
    assert_int_equal(mr_sender_init(&hop->sender, &hop->config), MR_EUSAGE);
    hop->config.resume = memory;
    mr_test_hop_start(hop);
    mr_test_hop_free(hop);
}

static void in_a_forked_child_it_is_forgotten(void **state)
{
    struct mr_test_hop *hop = moved_hop(sizeof(memory));

    (void)state;
    say_resume(hop, "first");
    let_go(hop);
    assert_int_equal(hop->sender.resume_count, 1);
    mr_sender_abandon(&hop->sender);
    assert_int_equal(hop->sender.resume_count, 0);
    mr_test_hop_free(hop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_receiver_gets_it_before_dictionary_and_data),
        cmocka_unit_test(it_is_not_given_twice),
        cmocka_unit_test(
            it_is_accepted_once_a_receiver_takes_it_and_given_once_it_is_granted),
        cmocka_unit_test(one_that_takes_none_is_said_by_a_connection_that_ends),
        cmocka_unit_test(where_nobody_is_it_is_accepted_for_who_comes),
        cmocka_unit_test(of_several_addresses_all_are_tried_before),
        cmocka_unit_test(what_is_not_granted_in_time_is_not_waited_for),
        cmocka_unit_test(a_receiver_that_hangs_up_has_not_granted),
        cmocka_unit_test(what_else_comes_over_it_ends_it),
        cmocka_unit_test(one_that_ends_while_it_waits_declines),
        cmocka_unit_test(one_that_was_closed_behind_its_back_is_forgotten_not_closed),
        cmocka_unit_test(who_got_a_part_is_the_last_to_get_any),
        cmocka_unit_test(a_move_while_it_is_given_ends_it_between_two),
        cmocka_unit_test(a_receiver_that_takes_none_gets_none_and_no_later_one_does),
        cmocka_unit_test(what_is_of_another_frame_than_the_last_acknowledged_is_dropped),
        cmocka_unit_test(
            a_receiver_that_has_more_frames_than_were_acknowledged_gets_none),
        cmocka_unit_test(who_did_not_welcome_the_sender_leaves_it_to_the_next),
        cmocka_unit_test(as_much_as_hello_tells_finds_room_and_more_is_dropped),
        cmocka_unit_test(from_who_was_not_told_bye_it_breaks_the_connection),
        cmocka_unit_test(from_who_was_told_that_the_sender_has_finished_as_well),
        cmocka_unit_test(one_without_bytes_breaks_the_connection),
        cmocka_unit_test(two_of_different_frames_break_the_connection_and_none_is_kept),
        cmocka_unit_test(
            an_offer_without_resume_or_of_another_step_breaks_the_connection),
        cmocka_unit_test(without_memory_it_is_a_frame_that_no_receiver_sends),
        cmocka_unit_test(a_size_without_memory_is_refused),
        cmocka_unit_test(in_a_forked_child_it_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
