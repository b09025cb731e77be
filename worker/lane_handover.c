/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender that moves takes along where the analysis of its streams stands (pipeline/handover.h), so that its call trees survive
 * the change of worker. The bytes go to it behind its BYE, when all that it sent has passed the lane's filters, and come
 * with it to the next worker, before its first frame there. The connection stays until the sender says that they are taken,
 * or that there is nobody else now; then it has them, and no one else. Else they end here: nothing is there twice.
 */
#include "base/assert.h"
#include "base/log.h"
#include "pipeline/source.h"
#include "worker/lane_private.h"

/* For the sender to read it, and to find the next worker, or nobody: it says so within half a second. */
#define DECIDE_NS (2 * MR_SECOND_NS)

static bool may_hand_over(const struct mr_lane *lane,
                          const struct mr_connection *connection)
{
    const struct mr_source *source = connection->sender->source;

    return lane->config.hands_over && connection->conn.bye_reason == MR_BYE_MOVING &&
           source && source->role == MR_ROLE_PROBE && source->handover.bytes_max > 0 &&
           !mr_source_is_broken(source);
}

/* Its streams end here after all. */
static void end_here(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_source *again = NULL;

    mr_log_info(
        "%s: no worker goes on with what its sender had open, or it left before it "
        "was told of that: it ends incomplete",
        connection->conn.peer);
    mr_lane_count(&lane->config.counters->handovers_declined, 1);
    if (mr_source_new(&connection->hello.hello, lane->config.group_by_host, &again) ==
        MR_OK) {
        again->is_continuation = true;
        again->serial = connection->leaving->serial;
    }
    mr_lane_let_source(lane, connection->leaving, again);
    connection->leaving = NULL;
}

void mr_lane_give_up_handover(struct mr_lane *lane, struct mr_connection *connection)
{
    if (connection->leaving)
        end_here(lane, connection);
}

bool mr_lane_take_back(const struct mr_source *source, struct mr_source *again)
{
    struct mr_span rest = mr_buffer_span(&source->handover.bytes), payload;
    enum mr_status status;

    again->resume = mr_resume_new(NULL);
    status = again->resume ? MR_OK : MR_ENOMEM;
    while (status == MR_OK && mr_handover_next(&rest, &payload))
        status = mr_handover_take(again->resume, payload);
    return status == MR_OK;
}

/* False: the sender can no longer be told. */
static bool offer(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_conn *conn = &connection->conn;
    struct mr_span rest = mr_buffer_span(&connection->leaving->handover.bytes), payload;
    enum mr_status status = MR_OK;

    while (!mr_status_is_error(status) && mr_handover_next(&rest, &payload))
        status = mr_conn_resume(conn, conn->next_sequence - 1, payload);
    if (!mr_status_is_error(status))
        status = mr_conn_offer(conn, MR_OFFER_MADE);
    if (mr_status_is_error(status))
        return false;
    mr_lane_part(lane, connection);
    connection->handing = MR_HANDING_OFFERED;
    connection->offered_ns = lane->now_ns;
    return true;
}

/* Nothing was open, and nothing is to be known of the streams. */
static bool is_empty(const struct mr_source *source)
{
    return source->handover.bytes.size == 0;
}

bool mr_lane_hand_over(struct mr_lane *lane, struct mr_connection *connection)
{
    if (connection->handing == MR_HANDING_NOT) {
        if (!may_hand_over(lane, connection))
            return false;
        connection->leaving = mr_lane_hand_source_over(lane, connection->sender);
        connection->handing = MR_HANDING_ENDING;
    }
    /* Who goes on from the spool must not have its streams, too. */
    if (!mr_source_is_done(connection->leaving) ||
        !mr_lane_is_covered(connection->sender))
        return lane->status == MR_OK;
    if (!is_empty(connection->leaving))
        return offer(lane, connection);
    mr_source_free(connection->leaving);
    connection->leaving = NULL;
    return false;
}

static void grant(struct mr_lane *lane, struct mr_connection *connection)
{
    mr_source_free(connection->leaving);
    connection->leaving = NULL;
    connection->handing = MR_HANDING_GRANTED;
    mr_lane_count(&lane->config.counters->handovers_given, 1);
    (void)mr_conn_offer(&connection->conn, MR_OFFER_GRANTED); /* what fails is flush's */
}

/* False: the sender closed it, or broke it. */
static bool hear(struct mr_lane *lane, struct mr_connection *connection)
{
    enum mr_status status = mr_conn_read(&connection->conn), next;
    struct mr_frame frame;

    while ((next = mr_conn_next(&connection->conn, &frame)) == MR_OK) {
        if (frame.type == MR_FRAME_OFFER && connection->handing == MR_HANDING_OFFERED)
            grant(lane, connection);
    }
    if (mr_status_is_error(next))
        mr_log_info("%s: %s", connection->conn.peer, connection->conn.error.text);
    return next == MR_AGAIN && status != MR_END && !mr_status_is_error(status);
}

bool mr_lane_tend_parting(struct mr_lane *lane, struct mr_connection *connection)
{
    bool is_there = hear(lane, connection);
    enum mr_status status = mr_conn_flush(&connection->conn);

    if (!is_there || mr_status_is_error(status))
        return false;
    if (connection->handing == MR_HANDING_GRANTED && status == MR_OK)
        return false;
    return lane->now_ns - connection->offered_ns < DECIDE_NS;
}

static void refuse(struct mr_lane *lane, struct mr_connection *connection,
                   enum mr_wire_error code, const char *text)
{
    struct mr_source *source = connection->sender->source;

    mr_resume_free(source->resume);
    source->resume = NULL; /* it comes again without */
    mr_lane_refuse(lane, connection, code, text);
}

void mr_lane_take_resume(struct mr_lane *lane, struct mr_connection *connection,
                         const struct mr_frame *frame)
{
    struct mr_source *source = connection->sender->source;
    bool is_first = connection->resume_bytes == 0;
    struct mr_span bytes;
    uint64_t sequence;
    enum mr_status status = mr_resume_frame_get(frame->payload, &sequence, &bytes);

    MR_ASSERT(status == MR_OK); /* mr_conn_next() hands out no others */
    connection->resume_bytes += bytes.size;
    if (connection->resume_bytes > MR_HANDOVER_BYTES_MAX) {
        refuse(lane, connection, MR_WIRE_ERROR_LIMIT,
               "RESUME: more than 1 MiB; come again without");
        return;
    }
    if (sequence != connection->conn.next_sequence - 1) {
        mr_lane_count(&lane->config.counters->handovers_lost, is_first);
        return;
    }
    if (!source->resume)
        source->resume = mr_resume_new(NULL);
    status = source->resume ? mr_handover_take(source->resume, bytes) : MR_ENOMEM;
    if (status == MR_EFORMAT)
        refuse(lane, connection, MR_WIRE_ERROR_FORMAT,
               "RESUME: what it tells of a stream is damaged; come again without");
    else if (status != MR_OK)
        refuse(lane, connection, MR_WIRE_ERROR_INTERNAL,
               "RESUME: no memory for it; come again without");
    else
        mr_lane_count(&lane->config.counters->handovers_taken, is_first);
}
