/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender that moves takes along where the analysis of its streams stands (pipeline/handover.h), so that its call trees survive
 * the change of worker. The bytes go to it behind its BYE, when all that it sent has passed the lane's filters, and come
 * with it to the next worker, before its first frame there.
 */
#include "base/log.h"
#include "pipeline/source.h"
#include "worker/lane_private.h"

bool mr_lane_is_handing_over(const struct mr_connection *connection)
{
    return connection->leaving || connection->has_handed_over;
}

static bool may_hand_over(const struct mr_lane *lane,
                          const struct mr_connection *connection)
{
    const struct mr_source *source = connection->sender->source;

    return lane->config.hands_over && connection->conn.bye_reason == MR_BYE_MOVING &&
           source && source->role == MR_ROLE_PROBE && source->handover.bytes_max > 0 &&
           !mr_source_is_broken(source);
}

/* False: it is not there any more, and who knows what it has got. */
static bool give(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_source *source = connection->leaving;
    struct mr_conn *conn = &connection->conn;
    struct mr_span rest = mr_buffer_span(&source->handover.bytes), payload;
    enum mr_status status = MR_OK;

    while (!mr_status_is_error(status) && mr_handover_next(&rest, &payload))
        status = mr_conn_resume(conn, conn->next_sequence - 1, payload);
    connection->leaving = NULL;
    mr_source_free(source);
    mr_lane_count(mr_status_is_error(status) ? &lane->config.counters->handovers_lost
                                             : &lane->config.counters->handovers_given,
                  1);
    return !mr_status_is_error(status);
}

void mr_lane_give_up_handover(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_source *again = NULL;

    mr_log_info("%s: it left before it was told where its open calls stand: they end "
                "incomplete",
                connection->conn.peer);
    mr_lane_count(&lane->config.counters->handovers_late, 1);
    if (mr_source_new(&connection->hello.hello, lane->config.group_by_host, &again) ==
        MR_OK) {
        again->is_continuation = true;
        again->serial = connection->leaving->serial;
    }
    mr_lane_let_source(lane, connection->leaving, again);
    connection->leaving = NULL;
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

bool mr_lane_hand_over(struct mr_lane *lane, struct mr_connection *connection)
{
    if (!mr_lane_is_handing_over(connection)) {
        if (!may_hand_over(lane, connection))
            return false;
        connection->leaving = mr_lane_hand_source_over(lane, connection->sender);
        connection->has_handed_over = true;
    }
    if (connection->leaving) {
        /* Who goes on from the spool must not have its streams, too. */
        if (!mr_source_is_done(connection->leaving) ||
            !mr_lane_is_covered(connection->sender))
            return lane->status == MR_OK;
        if (!give(lane, connection))
            return false;
    }
    return mr_conn_flush(&connection->conn) == MR_AGAIN;
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
    bool is_first = !source->resume;
    struct mr_span bytes;
    uint64_t sequence;
    enum mr_status status = mr_resume_frame_get(frame->payload, &sequence, &bytes);

    if (status != MR_OK) {
        refuse(lane, connection, MR_WIRE_ERROR_FORMAT, "bad RESUME");
        return;
    }
    if (sequence != connection->conn.next_sequence - 1) {
        mr_lane_count(&lane->config.counters->handovers_lost, 1);
        return;
    }
    connection->resume_bytes += bytes.size;
    if (connection->resume_bytes > MR_HANDOVER_BYTES_MAX) {
        refuse(lane, connection, MR_WIRE_ERROR_LIMIT, "RESUME: more than 512 KiB");
        return;
    }
    if (is_first)
        source->resume = mr_resume_new(NULL);
    status = source->resume ? mr_handover_take(source->resume, bytes) : MR_ENOMEM;
    if (status != MR_OK)
        refuse(lane, connection, MR_WIRE_ERROR_FORMAT,
               "RESUME: what it tells of a stream is damaged; come again without");
    else
        mr_lane_count(&lane->config.counters->handovers_taken, is_first);
}
