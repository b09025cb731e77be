/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lane.h: frames that a broken connection leaves held, or in doubt. */
#include "tests/unit/worker/support_lane.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#include <string.h>
#include <unistd.h>

/* The same epoch again, with all that was sent acknowledged. */
static void return_with(struct lane_rig *rig, uint64_t attempt, uint64_t acked)
{
    struct mr_hello hello = lane_rig_hello(rig, attempt);

    hello.custody.was_shown = false;
    hello.custody.acked = hello.custody.sent = acked;
    hello.oldest = acked + 1;
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
}

/* Twice in one epoch the connection breaks with a frame held; behind the first lies a SETTLE, and a frame between them was never held. */
static void what_is_held_again_is_found(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start_with_sender(rig);
    lane_rig_send_chunks(rig, 1);
    lane_rig_send_chunks(rig, 2);
    lane_rig_settle(rig, 1);
    lane_rig_wait_for_frames(rig, 1);
    return_with(rig, 2, 2);
    lane_rig_settle(rig, 2);
    lane_rig_wait_for_frames(rig, 2);
    lane_rig_send_chunks(rig, 3);
    lane_rig_settle(rig, 3);
    lane_rig_wait_for_frames(rig, 3);
    lane_rig_send_chunks(rig, 4);
    return_with(rig, 3, 4);
    lane_rig_settle(rig, 4);
    lane_rig_wait_for_frames(rig, 4);
    lane_rig_stop(rig);
    free(rig);
}

/* What lies behind the last frame held, a SETTLE here, is not mixed up with what is held in a later epoch. */
static void what_is_held_in_another_epoch_is_found(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start_with_sender(rig);
    lane_rig_send_chunks(rig, 1);
    lane_rig_send_chunks(rig, 2);
    lane_rig_settle(rig, 1);
    lane_rig_wait_for_frames(rig, 1);
    return_with(rig, 2, 2);
    lane_rig_settle(rig, 2);
    lane_rig_wait_for_frames(rig, 2);
    hello = lane_rig_hello(rig, 3); /* it was elsewhere, with three frames */
    hello.custody.custodian = (struct mr_id){7, 7};
    hello.custody.epoch = 5;
    hello.custody.acked = hello.custody.sent = 5;
    hello.oldest = 6;
    lane_rig_connect(rig, &hello);
    while (mr_load_relaxed(&rig->counting.ends) < 1)
        (void)usleep(1000);
    lane_rig_commit_end(rig, 1, hello.sender, 2);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    lane_rig_send_chunks(rig, 6);
    hello = lane_rig_hello(rig, 4);
    hello.custody.epoch = 6;
    hello.custody.was_shown = false;
    hello.custody.acked = hello.custody.sent = 6;
    hello.oldest = 7;
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    lane_rig_settle(rig, 6);
    lane_rig_wait_for_frames(rig, 3);
    lane_rig_stop(rig);
    free(rig);
}

/* The question about this epoch, once it is asked. */
static struct mr_custody_ask wait_for_ask(struct lane_rig *rig, uint64_t epoch)
{
    struct mr_custody_ask ask = {.epoch = 0};

    while (!mr_asks_next(&rig->asks, &ask) || ask.epoch != epoch)
        (void)usleep(1000);
    return ask;
}

/* SIGTERM: a sender leaves without having settled all; the lane stays until the register has said whose its frames are. */
static void who_stops_claims_what_is_left_behind(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_custody_ask ask;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start_with_sender(rig);
    for (uint64_t i = 1; i <= 3; i++)
        lane_rig_send_chunks(rig, i);
    mr_lane_stop(&rig->lane, mr_clock_monotonic_ns() + MR_MINUTE_NS);
    (void)usleep(50000); /* some ticks, with nothing in doubt */
    (void)close(rig->fd);
    rig->fd = -1;
    ask = wait_for_ask(rig, 1);
    assert_true(ask.is_claim);
    mr_asks_answer(&rig->asks, &ask);
    lane_rig_wait_for_frames(rig, 3);
    lane_rig_stop(rig);
    free(rig);
}

/* The register never answers: what is in doubt stays in the spool, and the worker can tell how much that is. */
static void what_stays_in_doubt_at_the_end_is_told(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start_with_sender(rig);
    for (uint64_t i = 1; i <= 3; i++)
        lane_rig_send_chunks(rig, i);
    lane_rig_settle(rig, 1);
    lane_rig_wait_for_frames(rig, 1);
    lane_rig_leave(rig);
    assert_int_equal(rig->lane.left_kept, 2);
    assert_int_equal(rig->lane.left_in_doubt, 0);
    lane_rig_remove_spool(rig);
    free(rig);
}

/* A sender comes with frames in doubt, goes, and comes again with others before the register has answered about the first. */
static void who_waits_is_asked_about_after_an_answer_about_another(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    struct mr_custody_ask ask;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start(rig);
    hello = lane_rig_hello(rig, 2);
    hello.custody.custodian = (struct mr_id){7, 7};
    hello.custody.epoch = 5;
    hello.custody.acked = 1;
    hello.custody.sent = 3;
    hello.oldest = 2;
    lane_rig_connect(rig, &hello);
    ask = wait_for_ask(rig, 5);
    hello.custody.attempt = 4;
    hello.custody.epoch = 6;
    hello.custody.acked = 4;
    hello.custody.sent = 6;
    hello.oldest = 5;
    lane_rig_connect(rig, &hello);
    (void)usleep(50000); /* so that it waits when the answer comes */
    ask.position = 2;
    mr_asks_answer(&rig->asks, &ask);
    ask = wait_for_ask(rig, 6);
    ask.position = 5;
    mr_asks_answer(&rig->asks, &ask);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
    lane_rig_stop(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_held_again_is_found),
        cmocka_unit_test(what_is_held_in_another_epoch_is_found),
        cmocka_unit_test(who_stops_claims_what_is_left_behind),
        cmocka_unit_test(what_stays_in_doubt_at_the_end_is_told),
        cmocka_unit_test(who_waits_is_asked_about_after_an_answer_about_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
