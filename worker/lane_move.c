/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field        written by          read by  access
 * move_wanted  main thread, lane   lane     relaxed: a wish; wake_fd tells
 * Senders that are asked to go elsewhere while the worker goes on.
 */
#include "worker/lane_private.h"

/* Each sender draws a time within, so that they do not all knock elsewhere at one moment. */
#define JITTER_MS 1000
/* One that came lately stays: it was just sent here, perhaps. */
#define STAY_NS (3 * MR_SECOND_NS)
/* When all have come lately: a later wish is of another time. */
#define WISH_NS MR_SECOND_NS
/* One that was asked may not be able to leave, or an old one that does not understand. */
#define ASK_AGAIN_NS (10 * MR_SECOND_NS)

void mr_lane_move(struct mr_lane *lane, uint32_t count)
{
    mr_store_relaxed(&lane->move_wanted, count);
    mr_lane_wake(lane);
}

static bool may_go(const struct mr_lane *lane, const struct mr_connection *connection,
                   bool must_all)
{
    if (connection->linger_until_ns != 0 || !connection->conn.greeted ||
        connection->conn.finished)
        return false;
    if (connection->asked_ns && lane->now_ns - connection->asked_ns < ASK_AGAIN_NS)
        return false;
    return must_all || lane->now_ns - connection->opened_ns >= STAY_NS;
}

/* Who came last was sent here last, perhaps: it goes last, or two workers would send it to and fro. */
static struct mr_connection *oldest(const struct mr_lane *lane)
{
    struct mr_connection *at = lane->open.first;

    while (at && at->next)
        at = at->next;
    return at;
}

void mr_lane_move_some(struct mr_lane *lane)
{
    uint32_t wanted = mr_load_relaxed(&lane->move_wanted);
    bool must_all = wanted == MR_LANE_MOVE_ALL;

    if (wanted) {
        mr_store_relaxed(&lane->move_wanted, 0);
        lane->move_left = wanted;
        lane->move_until_ns = lane->now_ns + WISH_NS;
    }
    if (lane->now_ns >= lane->move_until_ns)
        lane->move_left = 0;
    if (lane->move_left == 0)
        return;
    for (struct mr_connection *at = oldest(lane); at && lane->move_left;
         at = at->previous) {
        if (!may_go(lane, at, must_all))
            continue;
        at->asked_ns = lane->now_ns;
        (void)mr_conn_move(&at->conn,
                           JITTER_MS); /* who does not hear it is asked again */
        mr_lane_count(&lane->config.counters->moved, 1);
        lane->move_left--;
    }
    if (must_all)
        lane->move_left = 0;
}
