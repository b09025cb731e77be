/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sender that moves takes along where the analysis of its streams stands (pipeline/handover.h), so that its call trees survive
 * the change of worker. The bytes go to it behind its BYE, when all that it sent has passed the lane's filters, and come
 * with it to the next worker, before its first frame there.
 */
#include "base/assert.h"
#include "base/log.h"
#include "pipeline/source.h"
#include "worker/lane_private.h"

static bool may_hand_over(const struct mr_lane *lane,
                          const struct mr_connection *connection)
{
    const struct mr_source *source = connection->sender->source;

    return lane->config.hands_over && connection->conn.bye_reason == MR_BYE_MOVING &&
           source && source->role == MR_ROLE_PROBE && source->handover.bytes_max > 0 &&
           !mr_source_is_broken(source);
}

/* What of it comes to the sender, if the connection breaks now, nobody knows. */
static void count_given(struct mr_lane *lane, struct mr_connection *connection,
                        bool is_given)
{
    connection->handing = MR_HANDING_OVER;
    mr_lane_count(is_given ? &lane->config.counters->handovers_given
                           : &lane->config.counters->handovers_lost,
                  1);
}

static void give(struct mr_lane *lane, struct mr_connection *connection)
{
    struct mr_source *source = connection->leaving;
    struct mr_conn *conn = &connection->conn;
    struct mr_span rest = mr_buffer_span(&source->handover.bytes), payload;
    enum mr_status status = MR_OK;

    while (!mr_status_is_error(status) && mr_handover_next(&rest, &payload))
        status = mr_conn_resume(conn, conn->next_sequence - 1, payload);
    connection->leaving = NULL;
    connection->handing = MR_HANDING_GIVING;
    mr_source_free(source);
    if (mr_status_is_error(status))
        count_given(lane, connection, false);
}

/* It was told nothing yet: its streams end here. */
static void end_here(struct mr_lane *lane, struct mr_connection *connection)
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

void mr_lane_give_up_handover(struct mr_lane *lane, struct mr_connection *connection)
{
    if (connection->handing == MR_HANDING_ENDING)
        end_here(lane, connection);
    else if (connection->handing == MR_HANDING_GIVING)
        count_given(lane, connection, false);
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
    enum mr_status status;

    if (connection->handing == MR_HANDING_NOT) {
        if (!may_hand_over(lane, connection))
            return false;
        connection->leaving = mr_lane_hand_source_over(lane, connection->sender);
        connection->handing = MR_HANDING_ENDING;
    }
    if (connection->handing == MR_HANDING_ENDING) {
        /* Who goes on from the spool must not have its streams, too. */
        if (!mr_source_is_done(connection->leaving) ||
            !mr_lane_is_covered(connection->sender))
            return lane->status == MR_OK;
        give(lane, connection);
    }
    if (connection->handing == MR_HANDING_OVER)
        return false;
    status = mr_conn_flush(&connection->conn);
    if (status != MR_AGAIN)
        count_given(lane, connection, status == MR_OK);
    return status == MR_AGAIN;
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
