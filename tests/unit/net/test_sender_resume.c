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

/* The receiver has said all. */
static void let_go(struct mr_test_hop *hop)
{
    mr_test_hop_hang_up(hop);
    poll_until_closed(hop);
    assert_int_equal(hop->sender.stats.failures, 0);
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
        cmocka_unit_test(without_memory_it_is_a_frame_that_no_receiver_sends),
        cmocka_unit_test(a_size_without_memory_is_refused),
        cmocka_unit_test(in_a_forked_child_it_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
