/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lane.h: senders that an earlier process left in the spool. */
#include "tests/unit/worker/support_lane.h"

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#include <string.h>
#include <unistd.h>

/* Three senders, one more than --max-senders, as an earlier process left them. */
static void put_three(struct lane_rig *rig)
{
    uint8_t bytes[MR_WIRE_MAX_CONTROL];
    struct mr_error error = MR_ERROR_NONE;

    for (uint64_t i = 1; i <= 3; i++) {
        struct mr_hello hello = lane_rig_hello(rig, 1);
        const struct mr_spool_position position = {
            .custody = {.state = MR_CUSTODY_CLOSED, .epoch = 1}};
        size_t size;

        hello.sender.lo = i;
        size = mr_hello_put(&hello, bytes, sizeof(bytes));
        assert_int_equal(
            mr_spool_put_sender(rig->spool, mr_spool_sender(rig->spool, hello.sender),
                                &position, mr_span_of(bytes, size), true, &error),
            MR_OK);
    }
}

static void start_again(struct lane_rig *rig, uint64_t grace_ns)
{
    char folder[sizeof(rig->folder)];

    memcpy(folder, rig->folder, sizeof(folder));
    lane_rig_leave(rig);
    lane_rig_start_on(rig, folder, grace_ns);
}

/* CTest ends it where it never comes. */
static void wait_until_left(struct lane_rig *rig, uint64_t count)
{
    while (mr_load_relaxed(&rig->counters.senders_left) != count)
        (void)usleep(1000);
}

static void senders_of_the_spool_without_room_are_counted_and_wait(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    uint32_t refused = 0;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start(rig);
    put_three(rig);
    start_again(rig, MR_MINUTE_NS);
    wait_until_left(rig, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        struct mr_hello hello = lane_rig_hello(rig, 2);

        hello.sender.lo = i;
        lane_rig_connect(rig, &hello);
        refused += lane_rig_answer(rig) == MR_FRAME_ERROR;
    }
    assert_int_equal(refused, 1); /* which one the order of the spool decides */
    lane_rig_stop(rig);
    free(rig);
}

static void senders_that_wait_are_taken_up_when_there_is_room(void **state)
{
    struct lane_rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;

    MR_UNUSED(state);
    assert_non_null(rig);
    lane_rig_start(rig);
    put_three(rig);
    start_again(rig, MR_MILLISECOND_NS); /* those that are away are soon forgotten */
    wait_until_left(rig, 1);
    hello = lane_rig_hello(rig, 2);
    hello.sender.lo = 1; /* the last of the spool's, as they are added in front */
    do                   /* CTest ends it where its turn never comes */
        lane_rig_connect(rig, &hello);
    while (lane_rig_answer(rig) == MR_FRAME_ERROR);
    lane_rig_stop(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(senders_of_the_spool_without_room_are_counted_and_wait),
        cmocka_unit_test(senders_that_wait_are_taken_up_when_there_is_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
