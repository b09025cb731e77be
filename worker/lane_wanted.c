/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for exemplars (net/wanted.h) on their way down: each sender that takes them is told what is wanted now. */
#include "worker/lane_private.h"

static bool is_to_be_told(const struct mr_connection *connection, uint32_t revision)
{
    return connection->wanted_revision != revision &&
           connection->hello.hello.takes_wanted && connection->conn.greeted &&
           connection->linger_until_ns == 0 && !connection->conn.finished;
}

void mr_lane_tell_wanted(struct mr_lane *lane)
{
    struct mr_wanted_board *board = lane->config.wanted;
    uint8_t payload[MR_WANTED_SIZE_MAX];
    uint32_t revision = board ? mr_wanted_board_revision(board) : 0;
    size_t size = 0;

    if (revision == 0) /* nobody above has told us */
        return;
    for (struct mr_connection *at = lane->open.first; at; at = at->next) {
        if (!is_to_be_told(at, revision))
            continue;
        if (size == 0) {
            struct mr_wanted_list list;

            revision = mr_wanted_board_take(board, lane->now_ns, &list);
            size = mr_wanted_put(&list, payload);
        }
        at->wanted_revision = revision;
        /* One whose connection is broken is told again over its next one. */
        if (mr_conn_wanted(&at->conn, mr_span_of(payload, size)) == MR_OK)
            mr_lane_count(&lane->config.counters->wanted_told, 1);
    }
}
