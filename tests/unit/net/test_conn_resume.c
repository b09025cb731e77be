/* SPDX-License-Identifier: Apache-2.0 */
/* net/conn.h: what one receiver knew of a sender comes to the next. */
#include "net/conn.h"

#include "tests/unit/net/conn_pair.h"

static const struct mr_span first = {(const uint8_t *)"\7\0\0\0\0\0\0\0first", 13};
static const struct mr_span second = {(const uint8_t *)"\7\0\0\0\0\0\0\0second", 14};

/* Up to a greeted connection that expects frame 8 and, before it, RESUME. */
static void greet_to_resume(struct pair *pair, size_t hold_size)
{
    struct mr_frame frame;
    struct mr_welcome welcome;
    uint8_t bytes[1024];

    pair_open(pair, MR_WIRE_MAX_FRAME_MIN);
    say_hello(pair);
    assert_int_equal(next(pair, &frame), MR_OK);
    pair->conn.takes_resume = true;
    if (hold_size)
        mr_conn_hold(&pair->conn, hold_size);
    assert_int_equal(mr_conn_welcome(&pair->conn, 8, 77), MR_OK);
    frame = heard(pair, bytes);
    assert_int_equal(mr_welcome_get(frame.payload, &welcome), MR_OK);
    assert_int_equal(welcome.flags, MR_WELCOME_TAKES_RESUME);
}

static void assert_refused(struct pair *pair, enum mr_status status, const char *text)
{
    struct mr_frame frame;

    assert_int_equal(next(pair, &frame), status);
    assert_int_equal(mr_conn_next(&pair->conn, &frame), status);
    assert_non_null(strstr(pair->conn.error.text, text));
    pair_close(pair);
}

static void resumes_are_handed_out_as_they_came_before_the_first_numbered_frame(
    void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet_to_resume(&pair, 0);
    say(&pair, MR_FRAME_RESUME, 0, 0, first);
    say(&pair, MR_FRAME_RESUME, 0, 0, second);
    say(&pair, MR_FRAME_DICT, 0, 0, mr_span_of("a", 1));
    say(&pair, MR_FRAME_DICT, 0, 8, mr_span_of("b", 1));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.type, MR_FRAME_RESUME);
    assert_true(mr_span_equal(frame.payload, first));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.type, MR_FRAME_RESUME);
    assert_true(mr_span_equal(frame.payload, second));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.type, MR_FRAME_DICT);
    assert_int_equal(frame.sequence, 0);
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.sequence, 8);
    pair_close(&pair);
}

static void a_resume_is_not_held_with_the_frames_behind_it(void **state)
{
    struct pair pair;
    struct mr_buffer held;
    struct mr_frame frame;

    (void)state;
    greet_to_resume(&pair, 1 << 20);
    say(&pair, MR_FRAME_RESUME, 0, 0, first);
    say(&pair, MR_FRAME_CHUNKS, 0, 8, mr_span_of("ab", 2));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_true(mr_span_equal(frame.payload, first));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.sequence, 8);
    mr_buffer_init(&held, 1 << 20);
    assert_int_equal(mr_conn_copy_held(&pair.conn, &held), MR_OK);
    assert_int_equal(held.size, MR_WIRE_HEADER_SIZE + 2);
    mr_buffer_fini(&held);
    assert_int_equal(mr_conn_next_settled(&pair.conn, 8, &frame), MR_OK);
    assert_int_equal(frame.sequence, 8);
    pair_close(&pair);
}

static void a_resume_behind_a_numbered_frame_is_refused_even_one_that_we_have(
    void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet_to_resume(&pair, 0);
    say(&pair, MR_FRAME_CHUNKS, 0, 8, mr_span_of("ab", 2));
    assert_int_equal(next(&pair, &frame), MR_OK);
    say(&pair, MR_FRAME_RESUME, 0, 0, first);
    assert_refused(&pair, MR_ESTATE, "RESUME behind data");
    greet_to_resume(&pair, 0);
    say(&pair, MR_FRAME_CHUNKS, 0, 7, mr_span_of("ab", 2)); /* a duplicate */
    say(&pair, MR_FRAME_RESUME, 0, 0, first);
    assert_refused(&pair, MR_ESTATE, "RESUME behind data");
}

static void a_resume_behind_bye_is_refused(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    uint8_t bye[MR_BYE_SIZE];

    (void)state;
    mr_bye_put(MR_BYE_MOVING, bye);
    greet_to_resume(&pair, 1 << 20); /* else nothing is read behind it */
    say(&pair, MR_FRAME_BYE, 0, 0, mr_span_of(bye, sizeof(bye)));
    assert_int_equal(next(&pair, &frame), MR_END);
    say(&pair, MR_FRAME_RESUME, 0, 0, first);
    assert_refused(&pair, MR_ESTATE, "RESUME behind BYE");
}

static void a_resume_to_who_takes_none_is_refused(void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet(&pair);
    say(&pair, MR_FRAME_RESUME, 0, 0, first);
    assert_refused(&pair, MR_ESTATE, "not asked for");
    pair_open(&pair, MR_WIRE_MAX_FRAME_MIN);
    say_hello(&pair);
    assert_int_equal(next(&pair, &frame), MR_OK);
    pair.conn.takes_resume = true;
    say(&pair, MR_FRAME_RESUME, 0, 0, first); /* before WELCOME */
    assert_refused(&pair, MR_ESTATE, "not asked for");
}

static void a_resume_without_a_byte_is_refused(void **state)
{
    struct pair pair;

    (void)state;
    greet_to_resume(&pair, 0);
    say(&pair, MR_FRAME_RESUME, 0, 0, mr_span_of(first.data, MR_RESUME_HEAD_SIZE));
    assert_refused(&pair, MR_EFORMAT, "bad RESUME");
}

static void who_moved_a_sender_tells_it_what_the_next_must_know(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    uint8_t bye[MR_BYE_SIZE], bytes[1024];

    (void)state;
    mr_bye_put(MR_BYE_MOVING, bye);
    greet_to_resume(&pair, 0);
    say(&pair, MR_FRAME_BYE, 0, 0, mr_span_of(bye, sizeof(bye)));
    assert_int_equal(next(&pair, &frame), MR_END);
    assert_int_equal(mr_conn_resume(&pair.conn, 7, mr_span_of("first", 5)), MR_OK);
    frame = heard(&pair, bytes);
    assert_int_equal(frame.type, MR_FRAME_RESUME);
    assert_true(mr_span_equal(frame.payload, first));
    pair_close(&pair);
}

static void leave(struct pair *pair, size_t hold_size)
{
    struct mr_frame frame;
    uint8_t bye[MR_BYE_SIZE];

    mr_bye_put(MR_BYE_MOVING, bye);
    greet_to_resume(pair, hold_size);
    say(pair, MR_FRAME_BYE, 0, 0, mr_span_of(bye, sizeof(bye)));
    assert_int_equal(next(pair, &frame), MR_END);
}

static void say_offer(struct pair *pair, uint8_t step)
{
    const uint8_t bytes[MR_OFFER_SIZE] = {step};

    say(pair, MR_FRAME_OFFER, 0, 0, mr_span_of(bytes, sizeof(bytes)));
}

static void an_offer_is_accepted_behind_bye(void **state)
{
    static const size_t holds[] = {0, 1 << 20};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pair pair;
        struct mr_frame frame;
        enum mr_offer_step step;
        uint8_t bytes[1024];

        leave(&pair, holds[i]);
        assert_int_equal(mr_conn_offer(&pair.conn, MR_OFFER_MADE), MR_OK);
        frame = heard(&pair, bytes);
        assert_int_equal(frame.type, MR_FRAME_OFFER);
        assert_int_equal(mr_offer_get(frame.payload, &step), MR_OK);
        assert_int_equal(step, MR_OFFER_MADE);
        say_offer(&pair, MR_OFFER_ACCEPTED);
        assert_int_equal(next(&pair, &frame), MR_OK);
        assert_int_equal(frame.type, MR_FRAME_OFFER);
        assert_int_equal(mr_conn_offer(&pair.conn, MR_OFFER_GRANTED), MR_OK);
        frame = heard(&pair, bytes);
        assert_int_equal(mr_offer_get(frame.payload, &step), MR_OK);
        assert_int_equal(step, MR_OFFER_GRANTED);
        pair_close(&pair);
    }
}

static void what_was_not_offered_or_is_no_answer_is_refused(void **state)
{
    struct pair pair;

    (void)state;
    leave(&pair, 1 << 20); /* else nothing is read behind it */
    say_offer(&pair, MR_OFFER_ACCEPTED);
    assert_refused(&pair, MR_ESTATE, "that was not made");
    greet_to_resume(&pair, 0);
    say_offer(&pair, MR_OFFER_ACCEPTED);
    assert_refused(&pair, MR_ESTATE, "that was not made");
    leave(&pair, 0);
    assert_int_equal(mr_conn_offer(&pair.conn, MR_OFFER_MADE), MR_OK);
    say_offer(&pair, MR_OFFER_GRANTED);
    assert_refused(&pair, MR_EFORMAT, "bad OFFER");
    leave(&pair, 0);
    assert_int_equal(mr_conn_offer(&pair.conn, MR_OFFER_MADE), MR_OK);
    say(&pair, MR_FRAME_CHUNKS, 0, 8, mr_span_of("ab", 2));
    assert_refused(&pair, MR_ESTATE, "data behind BYE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            resumes_are_handed_out_as_they_came_before_the_first_numbered_frame),
        cmocka_unit_test(a_resume_is_not_held_with_the_frames_behind_it),
        cmocka_unit_test(
            a_resume_behind_a_numbered_frame_is_refused_even_one_that_we_have),
        cmocka_unit_test(a_resume_behind_bye_is_refused),
        cmocka_unit_test(a_resume_to_who_takes_none_is_refused),
        cmocka_unit_test(a_resume_without_a_byte_is_refused),
        cmocka_unit_test(who_moved_a_sender_tells_it_what_the_next_must_know),
        cmocka_unit_test(an_offer_is_accepted_behind_bye),
        cmocka_unit_test(what_was_not_offered_or_is_no_answer_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
