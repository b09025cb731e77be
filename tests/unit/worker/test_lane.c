/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lane.h: senders that come, are refused, and come again. */
#include "tests/unit/worker/support_lane.h"

#include "pipeline/mark.h"
#include "tests/unit/unit_test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CREDIT_FIRST (512u << 10) /* worker/lane_credit.c */

/* Until not one page is left; with streams of another sender, at the end of whose source they are released. */
static void fill(struct lane_rig *rig)
{
    static const uint8_t state[1000]; /* longer ones have a part of it alone */
    struct mr_mark mark = {.kind = MR_MARK_STREAM,
                           .id = {8, 8},
                           .serial = 1,
                           .bytes = mr_span_of(state, sizeof(state))};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = MR_OK;

    for (; status == MR_OK && mark.stream < LANE_SPOOL_BYTES / sizeof(state);
         mark.stream++) {
        struct mr_buffer marks;

        mr_buffer_init(&marks, SIZE_MAX);
        assert_int_equal(mr_mark_put(&marks, &mark), MR_OK);
        status = mr_spool_commit(rig->spool, 1, NULL, mr_buffer_span(&marks), &error);
        mr_buffer_fini(&marks);
    }
    assert_int_equal(status, MR_ELIMIT);
}

static void make_room(struct lane_rig *rig)
{
    lane_rig_commit_end(rig, 1, (struct mr_id){8, 8}, 0);
}

static void one_that_was_refused_for_room_goes_on_with_its_source(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    char long_name[MR_TEXT_MAX];

    MR_UNUSED(state);
    assert_non_null(rig);
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    lane_rig_start(rig);
    hello = lane_rig_hello(rig, 1);
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    fill(rig);
    hello = lane_rig_hello(rig, 2);
    hello.source.exe = hello.source.host = long_name; /* so that it needs more pages */
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_ERROR);
    make_room(rig);
    hello = lane_rig_hello(rig, 3);
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    assert_int_equal(mr_load_relaxed(&rig->counting.ends), 0); /* of before the WELCOME */
    lane_rig_stop(rig);
    free(rig);
}

#define MANY 200u

static void who_has_settled_much_does_not_hold_up_others(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    int first;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start(rig);
    rig->counting.frame_us = 5000;
    hello = lane_rig_hello(rig, 1);
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    for (uint64_t i = 1; i <= MANY; i++)
        lane_rig_send(rig, MR_FRAME_CHUNKS, i, mr_span_of_text("not looked at"));
    while (lane_rig_next_ack(rig).sequence < MANY)
        continue;
    lane_rig_settle(rig, MANY);
    while (mr_load_relaxed(&rig->counting.frames) == 0)
        (void)usleep(100);
    assert_true(lane_rig_next_ack(rig).credit <
                CREDIT_FIRST); /* and it is to send less at a time */
    first = rig->fd;
    rig->fd = -1;
    hello.sender.lo++;
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    assert_true(mr_load_relaxed(&rig->counting.frames) < MANY);
    (void)close(first);
    lane_rig_leave(rig);
    assert_int_equal(mr_load_relaxed(&rig->counting.frames),
                     MANY); /* all, all the same */
    lane_rig_remove_spool(rig);
    free(rig);
}

/* A program takes a receiver that it does not hear of for 5 s as gone, and connects again: for nothing, where it only has to wait. */
static void senders_hear_of_a_lane_that_waits_for_room(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    int first;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start(rig);
    rig->counting.passes_on = true;
    hello = lane_rig_hello(rig, 1);
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    first = rig->fd; /* of one that has nothing to say */
    rig->fd = -1;
    hello.sender.lo++;
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    for (uint64_t i = 1; i <= MANY; i++)
        lane_rig_send(rig, MR_FRAME_CHUNKS, i, mr_span_of_text("not looked at"));
    while (lane_rig_next_ack(rig).sequence < MANY)
        continue;
    lane_rig_settle(rig, MANY);
    while (mr_load_relaxed(&rig->counting.frames) <= MR_GRAPH_PIPE_BATCHES)
        (void)usleep(100);
    for (uint32_t beats = 0; beats < 3;) /* CTest ends it where they never come */
        beats += lane_rig_answer(rig) == MR_FRAME_HEARTBEAT;
    (void)close(rig->fd);
    rig->fd = first;
    for (uint32_t beats = 0; beats < 2;)
        beats += lane_rig_answer(rig) == MR_FRAME_HEARTBEAT;
    assert_true(mr_load_relaxed(&rig->counting.frames) < MANY); /* it waits still */
    mr_store_release(&rig->counting.may_take, true);
    lane_rig_stop(rig);
    free(rig);
}

/* It comes from another receiver, and the connection breaks before it may have heard that its dictionary is lacking. */
static void who_lacks_a_dictionary_asks_until_it_is_told(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start(rig);
    hello = lane_rig_hello(rig, 2);
    hello.custody.custodian = (struct mr_id){7, 7};
    hello.custody.epoch = 5;
    hello.custody.acked = hello.custody.sent = 3;
    hello.oldest = 4;
    lane_rig_connect(rig, &hello);
    assert_true(lane_rig_lacks_dictionary(rig));
    hello.custody.attempt++;
    hello.custody.was_shown = true;
    lane_rig_connect(rig, &hello);
    assert_true(lane_rig_lacks_dictionary(rig));
    hello.custody = (struct mr_custody_hello){.custodian = mr_spool_self(rig->spool),
                                              .epoch = 6,
                                              .acked = 3,
                                              .sent = 3,
                                              .attempt = hello.custody.attempt + 1,
                                              .is_told = true};
    lane_rig_connect(rig, &hello);
    assert_true(lane_rig_lacks_dictionary(rig));
    lane_rig_send_chunks(rig, 4);
    hello.custody.attempt++;
    hello.custody.acked = hello.custody.sent = 4;
    hello.oldest = 5;
    lane_rig_connect(rig, &hello);
    assert_false(lane_rig_lacks_dictionary(rig));
    lane_rig_stop(rig);
    free(rig);
}

/* It would fill the register, which is all workers', with what nobody has in doubt. */
static void a_probe_does_not_ask_the_register(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    const struct mr_custody_ask ask = {.subject = {4, 4}, .epoch = 1, .position = 7};
    struct mr_custody_ask asked;
    struct mr_hello hello;
    uint8_t bytes[MR_ASK_SIZE];

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start(rig);
    hello = lane_rig_hello(rig, 1);
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    mr_ask_put(&ask, bytes);
    lane_rig_send(rig, MR_FRAME_ASK, 0, mr_span_of(bytes, sizeof(bytes)));
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_ERROR);
    assert_false(mr_asks_next(&rig->asks, &asked));
    lane_rig_stop(rig);
    free(rig);
}

/* Nothing comes behind it that would wake the lane; it waited until the sender was silent for too long, with heartbeats. */
static void bye_that_came_with_hello_ends_the_connection(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    uint8_t bye[MR_WIRE_HEADER_SIZE + MR_BYE_SIZE], rest[LANE_ANSWER_SIZE];
    struct mr_hello hello;

    MR_UNUSED(state);
    assert_non_null(rig);
    mr_bye_put(MR_BYE_FINISHED, bye + MR_WIRE_HEADER_SIZE);
    mr_frame_put_header(MR_FRAME_BYE, 0, 0,
                        mr_span_of(bye + MR_WIRE_HEADER_SIZE, MR_BYE_SIZE), bye);
    lane_rig_start(rig);
    hello = lane_rig_hello(rig, 1);
    lane_rig_connect_with(rig, &hello, mr_span_of(bye, sizeof(bye)));
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    assert_int_equal(recv(rig->fd, rest, sizeof(rest), 0), 0); /* no heartbeat */
    lane_rig_stop(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_was_refused_for_room_goes_on_with_its_source),
        cmocka_unit_test(who_has_settled_much_does_not_hold_up_others),
        cmocka_unit_test(senders_hear_of_a_lane_that_waits_for_room),
        cmocka_unit_test(who_lacks_a_dictionary_asks_until_it_is_told),
        cmocka_unit_test(a_probe_does_not_ask_the_register),
        cmocka_unit_test(bye_that_came_with_hello_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
