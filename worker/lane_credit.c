/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes a sender may have on their way: as many as keep the lane at work. What waits here has left the cache when its turn
 * comes, and stays behind if the sender moves (docs/why/2026-11-26-credit.md).
 *
 *     sender -- frames --> lane -- ACK of N --> sender -- SETTLE of N --> lane
 *                            |<---------------- round trip ----------------->|
 *
 * A sender begins with CREDIT_FIRST, or with --credit if TCP has found its link to be long. If half of its credit came in a round
 * trip, for a quarter of which the lane's thread waited for work, the link is long (behind a balancer, perhaps) and the credit too
 * small: it is four times as much then, up to --credit. If the thread hardly waited, it halves, down to CREDIT_FIRST; and down to
 * CREDIT_MIN where what was settled takes more than a slice of the lane's time. One thread: the lane's.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/clock.h"
#include "worker/lane_private.h"

/* One frame may always be on its way, so these are no limits of a frame. */
#define CREDIT_FIRST ((uint64_t)512 << 10)
#define CREDIT_MIN ((uint64_t)256 << 10)
/* Shorter than this it is no link that takes time, but threads that share a processor; CREDIT_FIRST in it is 0.5 GB/s. */
#define TRIP_MIN_NS MR_MILLISECOND_NS

static uint64_t limited(const struct mr_lane *lane, uint64_t credit)
{
    return credit < lane->config.credit ? credit : lane->config.credit;
}

/* By the handshake. Sockets of other kinds are of this host. */
static bool is_long(int fd)
{
    struct tcp_info info = {.tcpi_rtt = 0};
    socklen_t size = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_rtt * MR_MICROSECOND_NS >= TRIP_MIN_NS;
}

void mr_lane_credit_begin(const struct mr_lane *lane, struct mr_connection *connection)
{
    connection->credit =
        is_long(connection->conn.fd) ? lane->config.credit : limited(lane, CREDIT_FIRST);
    connection->trip = (struct mr_round_trip){0};
    connection->acked_sequence = connection->acked_bytes = 0;
}

void mr_lane_credit_acked(const struct mr_lane *lane, struct mr_connection *connection)
{
    const struct mr_conn *conn = &connection->conn;

    if (conn->acked == connection->acked_sequence)
        return; /* of a part of a frame nothing is said */
    if (connection->trip.sequence == 0 && conn->acked > conn->settled)
        connection->trip =
            (struct mr_round_trip){.sequence = conn->acked,
                                   .bytes = connection->acked_bytes,
                                   .start_ns = mr_clock_monotonic_ns(),
                                   .waited_ns = mr_driven_waited_ns(&lane->driven)};
    connection->acked_sequence = conn->acked;
    connection->acked_bytes = conn->stats.bytes;
}

void mr_lane_credit_settled(const struct mr_lane *lane, struct mr_connection *connection)
{
    const struct mr_round_trip *trip = &connection->trip;
    const struct mr_conn *conn = &connection->conn;
    uint64_t trip_ns, waited_ns, bytes;

    if (trip->sequence == 0 || conn->settled < trip->sequence)
        return;
    trip_ns = mr_clock_monotonic_ns() - trip->start_ns;
    waited_ns = mr_driven_waited_ns(&lane->driven) - trip->waited_ns;
    bytes = conn->stats.bytes - trip->bytes;
    connection->trip.sequence = 0;
    if (trip_ns >= TRIP_MIN_NS && bytes >= connection->credit / 2 &&
        waited_ns >= trip_ns / 4)
        connection->credit = limited(lane, 4 * connection->credit);
    else if (waited_ns <= trip_ns / 16 && connection->credit >= 2 * CREDIT_FIRST)
        connection->credit /= 2;
}

void mr_lane_credit_used(const struct mr_lane *lane, struct mr_connection *connection)
{
    uint64_t credit = connection->credit;

    MR_DEBUG_ASSERT(credit > 0);
    if (mr_lane_is_behind(connection))
        credit = credit / 2 > CREDIT_MIN ? credit / 2 : CREDIT_MIN;
    else if (credit < CREDIT_FIRST)
        credit = 2 * credit < CREDIT_FIRST ? 2 * credit : CREDIT_FIRST;
    connection->credit = limited(lane, credit);
}
