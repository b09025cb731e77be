/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lane.h: a sender that moves is given what it takes along, and takes it to the next one. */
#include "tests/unit/worker/support_lane.h"

#include "net/bytes.h"
#include "tests/unit/unit_test.h"

#include <sys/socket.h>
#include <unistd.h>

#define KEEPS (256u << 10)

/* `acked`: frames it knows to be here, all that it sent. */
static void greet(struct lane_rig *rig, uint64_t attempt, uint64_t acked,
                  uint32_t resume_max)
{
    struct mr_hello hello = lane_rig_hello(rig, attempt);

    hello.oldest = acked + 1;
    hello.custody.acked = hello.custody.sent = acked;
    hello.resume_max = resume_max;
    lane_rig_connect(rig, &hello);
}

/* A sender that has sent a frame, and says BYE. */
static void start_leaving(struct lane_rig *rig, uint32_t resume_max,
                          enum mr_bye_reason reason)
{
    uint8_t bye[MR_BYE_SIZE];

    greet(rig, 1, 0, resume_max);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    lane_rig_send_chunks(rig, 1);
    mr_bye_put(reason, bye);
    lane_rig_send(rig, MR_FRAME_BYE, 0, mr_span_of(bye, sizeof(bye)));
    lane_rig_settle(rig, 1);
}

/* The spool has all of it, and the end of its source. */
static void keep_end(struct lane_rig *rig)
{
    while (mr_load_relaxed(&rig->counting.ends) == 0)
        (void)usleep(1000);
    lane_rig_commit_end(rig, 1, (struct mr_id){9, 9}, 1);
}

/* Reads up to an OFFER of this step; the bytes of RESUME that came before, ACKs and heartbeats passed over. */
static struct mr_span rest_until(struct lane_rig *rig, enum mr_offer_step last,
                                 uint8_t *bytes)
{
    struct mr_span found = {0};
    enum mr_offer_step step = 0;
    struct mr_frame frame;
    uint64_t sequence;

    while (step != last) {
        lane_rig_take_answer(rig, bytes, &frame);
        if (frame.type == MR_FRAME_OFFER)
            assert_int_equal(mr_offer_get(frame.payload, &step), MR_OK);
        if (frame.type != MR_FRAME_RESUME)
            continue;
        assert_int_equal(mr_resume_frame_get(frame.payload, &sequence, &found), MR_OK);
        assert_int_equal(sequence, 1);
        bytes += LANE_ANSWER_SIZE; /* it is borrowed */
    }
    return found;
}

/* Of a sender that moves; what it is offered. */
static struct mr_span take_offer(struct lane_rig *rig, uint8_t *bytes)
{
    start_leaving(rig, KEEPS, MR_BYE_MOVING);
    keep_end(rig);
    return rest_until(rig, MR_OFFER_MADE, bytes);
}

static void accept_offer(struct lane_rig *rig)
{
    uint8_t payload[MR_OFFER_SIZE];

    mr_offer_put(MR_OFFER_ACCEPTED, payload);
    lane_rig_send(rig, MR_FRAME_OFFER, 0, mr_span_of(payload, sizeof(payload)));
}

/* Nothing more comes. */
static void expect_end(struct lane_rig *rig)
{
    uint8_t bytes[LANE_ANSWER_SIZE];

    assert_int_equal(recv(rig->fd, bytes, sizeof(bytes), 0), 0);
}

static void expect_ended_here(struct lane_rig *rig, uint32_t streams)
{
    while (mr_load_relaxed(&rig->counting.ended_again) == 0) /* CTest ends it */
        (void)usleep(1000);
    assert_int_equal(mr_load_relaxed(&rig->counting.ended_again), streams);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_declined), 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 0);
}

static void one_that_moves_is_given_its_streams(void **state)
{
    struct lane_rig *rig = *state;
    struct mr_resume *resume = mr_resume_new(NULL);
    uint8_t bytes[2 * LANE_ANSWER_SIZE];
    struct mr_span told;

    told = take_offer(rig, bytes);
    assert_int_equal(mr_handover_take(resume, told), MR_OK);
    assert_int_equal(resume->stream_count, 1);
    assert_int_equal(resume->streams[0].id, 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 0);
    accept_offer(rig);
    (void)rest_until(rig, MR_OFFER_GRANTED, bytes);
    expect_end(rig);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_declined), 0);
    (void)usleep(50000); /* some ticks */
    assert_int_equal(mr_load_relaxed(&rig->counting.ended_again), 0);
    mr_resume_free(resume);
}

/* Where it goes nobody takes it: it closes the connection. */
static void what_is_offered_and_not_accepted_ends_here(void **state)
{
    struct lane_rig *rig = *state;
    uint8_t bytes[2 * LANE_ANSWER_SIZE];

    (void)take_offer(rig, bytes);
    (void)close(rig->fd);
    rig->fd = -1;
    expect_ended_here(rig, 1);
}

static void what_nobody_decides_ends_here(void **state)
{
    struct lane_rig *rig = *state;
    uint8_t bytes[2 * LANE_ANSWER_SIZE];

    (void)take_offer(rig, bytes);
    lane_rig_send(rig, MR_FRAME_ASK, 0, mr_span_of(NULL, 0)); /* no word of it */
    expect_end(rig);
    expect_ended_here(rig, 1);
}

static void what_is_not_decided_when_the_lane_ends_ends_with_it(void **state)
{
    struct lane_rig *rig = *state;
    uint8_t bytes[2 * LANE_ANSWER_SIZE];

    (void)take_offer(rig, bytes);
    mr_lane_stop(&rig->lane, 1); /* a deadline that has passed */
    expect_end(rig);
    expect_ended_here(rig, 1);
}

/* Another frame than one that accepts: it cannot be trusted with what is offered. */
static void bad_answers_to_an_offer_end_it(void **state)
{
    struct lane_rig *rig = *state;
    uint8_t bytes[2 * LANE_ANSWER_SIZE];

    (void)take_offer(rig, bytes);
    mr_offer_put(MR_OFFER_GRANTED, bytes);
    lane_rig_send(rig, MR_FRAME_OFFER, 0, mr_span_of(bytes, MR_OFFER_SIZE));
    expect_end(rig);
    expect_ended_here(rig, 1);
}

/* A RESUME of what the lane's graph puts, with what `byte` of it is changed by, and this sequence. */
static void send_resume(struct lane_rig *rig, uint64_t sequence, size_t byte,
                        uint8_t change)
{
    struct mr_handover handover;
    uint8_t payload[200];
    size_t size;

    mr_handover_init(&handover, KEEPS);
    lane_rig_put_streams(&handover, 1);
    size = MR_RESUME_HEAD_SIZE + handover.bytes.size;
    assert_true(size <= sizeof(payload));
    mr_resume_frame_put_head(sequence, payload);
    memcpy(payload + MR_RESUME_HEAD_SIZE, handover.bytes.data, handover.bytes.size);
    payload[MR_RESUME_HEAD_SIZE + byte] ^= change;
    lane_rig_send(rig, MR_FRAME_RESUME, 0, mr_span_of(payload, size));
    mr_handover_fini(&handover);
}

static void swap(int *a, int *b)
{
    int kept = *a;

    *a = *b;
    *b = kept;
}

/* It was sent here again: the lane has its old connection and its new one, and the streams go on. */
static void one_that_comes_back_goes_on_with_what_it_was_offered(void **state)
{
    struct lane_rig *rig = *state;
    uint8_t bytes[2 * LANE_ANSWER_SIZE];
    int old;

    (void)take_offer(rig, bytes);
    old = rig->fd;
    rig->fd = -1;
    greet(rig, 2, 1, KEEPS);
    assert_true(lane_rig_welcome(rig) & MR_WELCOME_TAKES_RESUME);
    swap(&old, &rig->fd);
    accept_offer(rig);
    (void)rest_until(rig, MR_OFFER_GRANTED, bytes);
    expect_end(rig);
    swap(&old, &rig->fd);
    send_resume(rig, 1, 0, 0);
    lane_rig_send_chunks(rig, 2);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_taken), 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_declined), 0);
    (void)close(old);
}

static void expect_nothing(struct lane_rig *rig)
{
    uint8_t bytes[LANE_ANSWER_SIZE], *at = bytes;
    struct mr_span rest;
    struct mr_frame frame;
    ssize_t got;
    size_t need;

    while ((got = recv(rig->fd, at, (size_t)(bytes + sizeof(bytes) - at), 0)) > 0)
        at += got;
    rest = mr_span_of(bytes, (size_t)(at - bytes));
    while (mr_frame_take(&rest, LANE_MAX_FRAME, &frame, &need, NULL) == MR_OK)
        assert_true(frame.type != MR_FRAME_RESUME && frame.type != MR_FRAME_OFFER);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 0);
    assert_int_equal(mr_load_relaxed(&rig->counting.ends), 1);
}

static void who_ends_is_given_nothing(void **state)
{
    start_leaving(*state, KEEPS, MR_BYE_FINISHED);
    expect_nothing(*state);
}

static void who_takes_nothing_along_is_given_nothing(void **state)
{
    start_leaving(*state, 0, MR_BYE_MOVING);
    expect_nothing(*state);
}

/* Else who goes on from it would have the streams, too. */
static void nothing_is_given_before_the_spool_has_the_end(void **state)
{
    struct lane_rig *rig = *state;
    uint8_t bytes[2 * LANE_ANSWER_SIZE];

    start_leaving(rig, KEEPS, MR_BYE_MOVING);
    while (mr_load_relaxed(&rig->counting.ends) == 0)
        (void)usleep(1000);
    (void)usleep(50000); /* some ticks */
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 0);
    keep_end(rig);
    assert_true(rest_until(rig, MR_OFFER_MADE, bytes).size > 0);
}

/* Filters on other threads have not all that it sent yet. */
static void what_is_given_waits_for_the_filters(void **state)
{
    struct lane_rig *rig = *state;
    uint8_t bytes[2 * LANE_ANSWER_SIZE];

    rig->counting.passes_on = true;
    start_leaving(rig, KEEPS, MR_BYE_MOVING);
    keep_end(rig);
    (void)usleep(50000);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 0);
    mr_store_release(&rig->counting.may_take, true);
    assert_true(rest_until(rig, MR_OFFER_MADE, bytes).size > 0);
}

/* Its streams go on nowhere: they end here. */
static void what_one_had_open_that_left_before_ends(void **state)
{
    struct lane_rig *rig = *state;

    start_leaving(rig, KEEPS, MR_BYE_MOVING);
    while (mr_load_relaxed(&rig->counting.ends) == 0)
        (void)usleep(1000);
    (void)close(rig->fd);
    rig->fd = -1;
    while (mr_load_relaxed(&rig->counters.handovers_declined) == 0) /* CTest ends it */
        (void)usleep(1000);
    while (mr_load_relaxed(&rig->counting.ended_again) == 0)
        (void)usleep(1000);
    assert_int_equal(mr_load_relaxed(&rig->counting.ended_again), 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 0);
}

/* Its host is gone, or it hangs: nobody closes the connection. */
static void one_that_says_no_more_is_not_waited_for(void **state)
{
    struct lane_rig *rig = *state;

    start_leaving(rig, KEEPS, MR_BYE_MOVING);
    while (mr_load_relaxed(&rig->counters.handovers_declined) == 0) /* CTest ends it */
        (void)usleep(10000);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_given), 0);
}

/* More than the socket takes, and then nobody is there. */
static void what_was_told_in_part_ends_here(void **state)
{
    struct lane_rig *rig = *state;

    rig->counting.more_streams = 12000; /* of 65 bytes */
    start_leaving(rig, 1u << 20, MR_BYE_MOVING);
    keep_end(rig);
    (void)usleep(50000);
    (void)close(rig->fd);
    rig->fd = -1;
    expect_ended_here(rig, 12001);
}

static void what_one_brings_is_taken_before_its_first_frame(void **state)
{
    struct lane_rig *rig = *state;

    greet(rig, 1, 0, KEEPS);
    assert_true(lane_rig_welcome(rig) & MR_WELCOME_TAKES_RESUME);
    send_resume(rig, 0, 0, 0);
    send_resume(rig, 0, 0, 0); /* goes on in another frame */
    lane_rig_send_chunks(rig, 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_taken), 1);
    greet(rig, 2, 1, KEEPS); /* returns to its source: nothing can be brought any more */
    assert_false(lane_rig_welcome(rig) & MR_WELCOME_TAKES_RESUME);
}

static void what_is_of_another_frame_is_not_used(void **state)
{
    struct lane_rig *rig = *state;

    greet(rig, 1, 0, KEEPS);
    (void)lane_rig_welcome(rig);
    send_resume(rig, 5, 0, 0);
    lane_rig_send_chunks(rig, 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_taken), 0);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_lost), 1);
}

/* It comes again without, and is welcome. */
static void what_is_damaged_is_refused(void **state)
{
    struct lane_rig *rig = *state;
    struct mr_wire_error_text error;
    uint8_t bytes[LANE_ANSWER_SIZE];
    struct mr_frame frame;

    greet(rig, 1, 0, KEEPS);
    (void)lane_rig_welcome(rig);
    send_resume(rig, 0, 1, 0x80); /* the size of the entry */
    lane_rig_take_answer(rig, bytes, &frame);
    assert_int_equal(frame.type, MR_FRAME_ERROR);
    assert_int_equal(mr_error_get(frame.payload, &error), MR_OK);
    assert_int_equal(error.code, MR_WIRE_ERROR_FORMAT);
    greet(rig, 2, 0, KEEPS);
    (void)lane_rig_welcome(rig);
    lane_rig_send_chunks(rig, 1);
    assert_int_equal(mr_load_relaxed(&rig->counters.handovers_taken), 0);
}

static int start(void **state)
{
    *state = malloc(sizeof(struct lane_rig));
    assert_non_null(*state);
    lane_rig_start(*state);
    return 0;
}

static int stop(void **state)
{
    lane_rig_stop(*state);
    free(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_moves_is_given_its_streams),
        TEST(who_ends_is_given_nothing),
        TEST(who_takes_nothing_along_is_given_nothing),
        TEST(nothing_is_given_before_the_spool_has_the_end),
        TEST(what_is_given_waits_for_the_filters),
        TEST(what_one_had_open_that_left_before_ends),
        TEST(one_that_says_no_more_is_not_waited_for),
        TEST(what_was_told_in_part_ends_here),
        TEST(what_is_offered_and_not_accepted_ends_here),
        TEST(what_nobody_decides_ends_here),
        TEST(what_is_not_decided_when_the_lane_ends_ends_with_it),
        TEST(bad_answers_to_an_offer_end_it),
        TEST(one_that_comes_back_goes_on_with_what_it_was_offered),
        TEST(what_one_brings_is_taken_before_its_first_frame),
        TEST(what_is_of_another_frame_is_not_used),
        TEST(what_is_damaged_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
