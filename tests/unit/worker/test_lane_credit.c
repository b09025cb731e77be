/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lane_credit.c: how much a sender is told that it may have on its way. Times are set, none is waited for. */
#include "base/clock.h"
#include "tests/unit/unit_test.h"
#include "worker/lane_private.h"

#include <stdlib.h>

#define KIB UINT64_C(1024)
#define FIRST (512 * KIB)
#define LEAST (256 * KIB)
#define MOST (16 * KIB * KIB)
#define MS MR_MILLISECOND_NS

/* A lane, its driver and one sender, of which there is what the credit hangs on. */
struct rig {
    struct mr_driver driver;
    struct mr_lane lane;
    struct mr_lane_sender sender;
    struct mr_connection connection;
};

static struct rig *new_rig(uint64_t most)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    rig->lane.config.credit = most;
    mr_store_relaxed(&rig->lane.driven.driver, &rig->driver);
    rig->connection.sender = &rig->sender;
    rig->sender.connection = &rig->connection;
    rig->connection.conn.hold_max = 1;
    rig->connection.conn.fd = -1;
    mr_lane_credit_begin(&rig->lane, &rig->connection);
    return rig;
}

/* `bytes` come, and are acknowledged: frame `sequence` is the last of them. */
static void come(struct rig *rig, uint64_t bytes, uint64_t sequence)
{
    rig->connection.conn.stats.bytes += bytes;
    rig->connection.conn.acked = sequence;
    mr_lane_credit_acked(&rig->lane, &rig->connection);
}

/* `trip_ns` after the ACK that began the round trip, of which the driver waited for `waited_ns`. */
static void settle(struct rig *rig, uint64_t sequence, uint64_t trip_ns,
                   uint64_t waited_ns)
{
    rig->connection.trip.start_ns = mr_clock_monotonic_ns() - trip_ns;
    rig->driver.waited_ns = rig->connection.trip.waited_ns + waited_ns;
    rig->connection.conn.settled = sequence;
    mr_lane_credit_settled(&rig->lane, &rig->connection);
}

/* A round trip in which all of the credit comes. */
static void go_round(struct rig *rig, uint64_t trip_ns, uint64_t waited_ns)
{
    uint64_t sequence = rig->connection.conn.settled + 1;

    come(rig, rig->connection.credit, sequence);
    settle(rig, sequence, trip_ns, waited_ns);
}

/* A slice was too little for what was settled, or was not. */
static void use(struct rig *rig, bool is_behind)
{
    struct mr_conn *conn = &rig->connection.conn;

    conn->held_sequence = 7;
    conn->next_sequence = is_behind ? 8 : 7;
    rig->sender.custody.settled = 7;
    assert_int_equal(mr_lane_is_behind(&rig->connection), is_behind);
    mr_lane_credit_used(&rig->lane, &rig->connection);
}

static void it_begins_small_and_within_the_limit(void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    assert_int_equal(rig->connection.credit, FIRST);
    free(rig);
    rig = new_rig(64 * KIB);
    assert_int_equal(rig->connection.credit, 64 * KIB);
    go_round(rig, 20 * MS, 20 * MS);
    use(rig, true);
    use(rig, false);
    assert_int_equal(rig->connection.credit, 64 * KIB);
    free(rig);
}

static void a_long_link_is_given_more_up_to_the_limit(void **state)
{
    struct rig *rig = new_rig(7 * FIRST);

    MR_UNUSED(state);
    go_round(rig, 20 * MS, 19 * MS);
    assert_int_equal(rig->connection.credit, 4 * FIRST);
    go_round(rig, 20 * MS, 19 * MS);
    go_round(rig, 20 * MS, 19 * MS);
    assert_int_equal(rig->connection.credit, 7 * FIRST);
    free(rig);
}

static void what_the_acknowledgement_is_of_came_in_the_round_trip(void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    come(rig, 10, 1);
    settle(rig, 1, 20 * MS, 20 * MS);
    assert_int_equal(rig->connection.credit, FIRST); /* hardly anything came */
    come(rig, FIRST / 2, 2);
    settle(rig, 2, 20 * MS, 20 * MS);
    assert_int_equal(rig->connection.credit, 4 * FIRST);
    free(rig);
}

static void a_frame_that_comes_in_parts_counts_whole(void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    come(rig, FIRST, 0); /* nothing to acknowledge yet */
    come(rig, FIRST, 0);
    come(rig, 10, 1);
    settle(rig, 1, 20 * MS, 20 * MS);
    assert_int_equal(rig->connection.credit, 4 * FIRST);
    free(rig);
}

static void a_lane_that_has_to_work_gives_no_more(void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    go_round(rig, 20 * MS, 4 * MS);
    go_round(rig, 20 * MS, 0);
    assert_int_equal(rig->connection.credit, FIRST);
    free(rig);
}

static void threads_that_share_a_processor_are_no_long_link(void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    come(rig, FIRST, 1);
    rig->connection.conn.settled = 1; /* at once */
    rig->driver.waited_ns = UINT64_MAX / 2;
    mr_lane_credit_settled(&rig->lane, &rig->connection);
    if (mr_clock_monotonic_ns() - rig->connection.trip.start_ns < MS)
        assert_int_equal(rig->connection.credit, FIRST);
    free(rig);
}

static void a_round_trip_ends_with_what_was_acknowledged_at_its_beginning(void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    come(rig, FIRST, 5);
    come(rig, FIRST, 9);
    settle(rig, 4, 20 * MS, 20 * MS);
    assert_int_equal(rig->connection.credit, FIRST);
    settle(rig, 5, 20 * MS, 20 * MS);
    assert_int_equal(rig->connection.credit, 4 * FIRST);
    settle(rig, 9, 20 * MS, 20 * MS); /* none is measured */
    assert_int_equal(rig->connection.credit, 4 * FIRST);
    free(rig);
}

static void it_shrinks_where_the_lane_has_no_time_to_wait(void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    go_round(rig, 20 * MS, 20 * MS);
    go_round(rig, 20 * MS, 2 * MS); /* neither */
    assert_int_equal(rig->connection.credit, 4 * FIRST);
    for (int i = 0; i < 5; i++)
        go_round(rig, 20 * MS, 1 * MS);
    assert_int_equal(rig->connection.credit, FIRST);
    free(rig);
}

static void one_that_settles_more_than_a_slice_is_given_less_until_it_does_not(
    void **state)
{
    struct rig *rig = new_rig(MOST);

    MR_UNUSED(state);
    for (int i = 0; i < 5; i++)
        use(rig, true);
    assert_int_equal(rig->connection.credit, LEAST);
    for (int i = 0; i < 5; i++)
        use(rig, false);
    assert_int_equal(rig->connection.credit, FIRST);
    go_round(rig, 20 * MS, 20 * MS);
    use(rig, false);
    assert_int_equal(rig->connection.credit, 4 * FIRST);
    use(rig, true);
    assert_int_equal(rig->connection.credit, 2 * FIRST);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_small_and_within_the_limit),
        cmocka_unit_test(a_long_link_is_given_more_up_to_the_limit),
        cmocka_unit_test(what_the_acknowledgement_is_of_came_in_the_round_trip),
        cmocka_unit_test(a_frame_that_comes_in_parts_counts_whole),
        cmocka_unit_test(a_lane_that_has_to_work_gives_no_more),
        cmocka_unit_test(threads_that_share_a_processor_are_no_long_link),
        cmocka_unit_test(a_round_trip_ends_with_what_was_acknowledged_at_its_beginning),
        cmocka_unit_test(it_shrinks_where_the_lane_has_no_time_to_wait),
        cmocka_unit_test(
            one_that_settles_more_than_a_slice_is_given_less_until_it_does_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
