/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker/support_lane.h"

#include "base/clock.h"
#include "pipeline/mark.h"
#include "pipeline/source.h"
#include "tests/unit/unit_test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static enum mr_status counting_open(struct mr_filter *filter, const void *config,
                                    struct mr_error *error)
{
    MR_UNUSED(error);
    memcpy(mr_filter_state(filter), config, sizeof(struct lane_counting *));
    return MR_OK;
}

void lane_rig_put_streams(struct mr_handover *handover, uint32_t count)
{
    struct mr_resume_stream stream = {.last = 10, .reduced = 10, .last_ns = MR_SECOND_NS};
    enum mr_handover_told told;

    for (stream.id = 1; stream.id <= count; stream.id++) {
        assert_int_equal(mr_handover_put(handover, NULL, &stream, &told), MR_OK);
        assert_int_equal(told, MR_HANDOVER_WHOLE);
    }
}

static enum mr_status counting_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct lane_counting **counting = mr_filter_state(filter);

    if (batch->kind == MR_BATCH_FRAME) {
        (void)usleep((*counting)->frame_us);
        mr_add_relaxed(&(*counting)->frames, 1);
    }
    if (batch->kind == MR_BATCH_END) {
        if (batch->is_handed_over)
            lane_rig_put_streams(&batch->source->handover, 1 + (*counting)->more_streams);
        else if (batch->source->resume)
            mr_add_relaxed(&(*counting)->ended_again,
                           batch->source->resume->stream_count);
        mr_add_relaxed(&(*counting)->ends, 1);
        if (!(*counting)->passes_on)
            mr_store_release(&batch->source->is_done, true);
    }
    if ((*counting)->passes_on)
        return mr_filter_emit(filter, batch);
    mr_batch_free(batch);
    return MR_OK;
}

static enum mr_status waiting_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct lane_counting **counting = mr_filter_state(filter);

    while (!mr_load_acquire(&(*counting)->may_take))
        (void)usleep(1000);
    if (batch->kind == MR_BATCH_END)
        mr_store_release(&batch->source->is_done, true);
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind counting_filter = {
    .name = "counting",
    .state_size = sizeof(struct lane_counting *),
    .open = counting_open,
    .process = counting_process,
};

static const struct mr_filter_kind waiting_filter = {
    .name = "waiting",
    .state_size = sizeof(struct lane_counting *),
    .open = counting_open,
    .process = waiting_process,
};

static struct mr_spool *open_spool(const char *folder)
{
    const struct mr_spool_config config = {.folder = folder,
                                           .bytes_max = LANE_SPOOL_BYTES};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_spool *spool;

    if (mr_spool_open(&config, &spool, &error) != MR_OK)
        fail_msg("%s", error.text);
    return spool;
}

static enum mr_status add_recovered(void *context, struct mr_spool_found *found)
{
    struct mr_lane_recovered **first = context, *one;

    assert_int_equal(mr_lane_recovered_new(found, &one), MR_OK);
    one->next = *first;
    *first = one;
    return MR_OK;
}

void lane_rig_start_on(struct lane_rig *rig, const char *folder, uint64_t grace_ns)
{
    struct mr_error error = MR_ERROR_NONE;
    const struct mr_graph_node nodes[] = {
        {&counting_filter, &rig->counting_config, MR_PLACE_FUSED},
        {&waiting_filter, &rig->counting_config, MR_PLACE_THREAD}};
    struct mr_lane_config config = {.name = "lane",
                                    .credit = LANE_MAX_FRAME,
                                    .source_grace_ns = grace_ns,
                                    .hands_over = true,
                                    .max_senders = 2,
                                    .max_frame = LANE_MAX_FRAME,
                                    .counters = &rig->counters,
                                    .has_custody = true,
                                    .asks = &rig->asks,
                                    .driver = &rig->driver};

    *rig = (struct lane_rig){.fd = -1};
    rig->counting_config = &rig->counting;
    (void)snprintf(rig->folder, sizeof(rig->folder), "%s", folder);
    rig->spool = open_spool(rig->folder);
    mr_asks_init(&rig->asks, NULL, NULL);
    assert_int_equal(mr_graph_new(nodes, 2, "lane", &rig->graph, &error), MR_OK);
    assert_int_equal(mr_graph_start(rig->graph), MR_OK);
    config.graph = rig->graph;
    config.self = mr_spool_self(rig->spool);
    config.spool = rig->spool;
    config.log = mr_spool_log_new(rig->spool);
    assert_non_null(config.log);
    assert_int_equal(
        mr_spool_recover(rig->spool, add_recovered, &config.recovered, &error), MR_OK);
    assert_int_equal(mr_driver_start(&rig->driver, "driver", &error), MR_OK);
    assert_int_equal(mr_lane_start(&rig->lane, &config, &error), MR_OK);
}

void lane_rig_start(struct lane_rig *rig)
{
    char folder[] = "/tmp/millrace-lane-XXXXXX";

    assert_non_null(mkdtemp(folder));
    lane_rig_start_on(rig, folder, MR_MINUTE_NS);
}

void lane_rig_leave(struct lane_rig *rig)
{
    if (rig->fd >= 0)
        (void)close(rig->fd);
    mr_lane_stop(&rig->lane, 1);
    mr_driver_stop(&rig->driver);
    mr_lane_join(&rig->lane);
    mr_graph_free(rig->graph);
    mr_lane_fini(&rig->lane);
    mr_asks_fini(&rig->asks);
    mr_spool_close(rig->spool);
}

void lane_rig_remove_spool(const struct lane_rig *rig)
{
    char command[96];

    (void)snprintf(command, sizeof(command), "rm -r %s", rig->folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): of a name made here */
}

void lane_rig_stop(struct lane_rig *rig)
{
    lane_rig_leave(rig);
    lane_rig_remove_spool(rig);
}

/* What the greeter does with a new connection. */
static void give(struct lane_rig *rig, int fd)
{
    struct mr_connection *connection =
        mr_connection_new(fd, "sender", LANE_MAX_FRAME, mr_clock_monotonic_ns());
    struct mr_frame frame;

    assert_non_null(connection);
    assert_int_equal(mr_conn_read(&connection->conn), MR_OK);
    assert_int_equal(mr_conn_next(&connection->conn, &frame), MR_OK);
    assert_int_equal(mr_hello_get(frame.payload, &connection->hello, NULL), MR_OK);
    mr_lane_give(&rig->lane, connection);
}

void lane_rig_connect(struct lane_rig *rig, const struct mr_hello *hello)
{
    lane_rig_connect_with(rig, hello, mr_span_of(NULL, 0));
}

void lane_rig_connect_with(struct lane_rig *rig, const struct mr_hello *hello,
                           struct mr_span behind)
{
    static uint8_t bytes[MR_WIRE_HEADER_SIZE + MR_WIRE_MAX_CONTROL];
    size_t size = mr_hello_put(hello, bytes + MR_WIRE_HEADER_SIZE, MR_WIRE_MAX_CONTROL);
    int pair[2];

    assert_true(size > 0);
    if (rig->fd >= 0)
        (void)close(rig->fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    rig->fd = pair[0];
    mr_frame_put_header(MR_FRAME_HELLO, 0, 0,
                        mr_span_of(bytes + MR_WIRE_HEADER_SIZE, size), bytes);
    size += MR_WIRE_HEADER_SIZE;
    assert_true(behind.size <= sizeof(bytes) - size);
    if (behind.size)
        memcpy(bytes + size, behind.data, behind.size);
    size += behind.size;
    assert_int_equal(send(rig->fd, bytes, size, 0), (ssize_t)size);
    give(rig, pair[1]);
}

/* Just that, so that what comes behind it is not lost. */
void lane_rig_take_answer(struct lane_rig *rig, uint8_t *bytes, struct mr_frame *frame)
{
    size_t size = 0, need = MR_WIRE_HEADER_SIZE;
    struct mr_span rest;
    enum mr_status status = MR_AGAIN;

    while (status == MR_AGAIN) {
        assert_true(need <= LANE_ANSWER_SIZE);
        assert_int_equal(recv(rig->fd, bytes + size, need - size, MSG_WAITALL),
                         need - size);
        size = need;
        rest = mr_span_of(bytes, size);
        status = mr_frame_take(&rest, LANE_MAX_FRAME, frame, &need, NULL);
    }
    assert_int_equal(status, MR_OK);
}

enum mr_frame_type lane_rig_answer(struct lane_rig *rig)
{
    uint8_t bytes[LANE_ANSWER_SIZE];
    struct mr_frame frame;

    lane_rig_take_answer(rig, bytes, &frame);
    return (enum mr_frame_type)frame.type;
}

uint16_t lane_rig_welcome(struct lane_rig *rig)
{
    uint8_t bytes[LANE_ANSWER_SIZE];
    struct mr_frame frame;
    struct mr_welcome welcome;

    lane_rig_take_answer(rig, bytes, &frame);
    assert_int_equal(frame.type, MR_FRAME_WELCOME);
    assert_int_equal(mr_welcome_get(frame.payload, &welcome), MR_OK);
    return welcome.flags;
}

bool lane_rig_lacks_dictionary(struct lane_rig *rig)
{
    return (lane_rig_welcome(rig) & MR_WELCOME_WANTS_DICTIONARY) != 0;
}

struct mr_hello lane_rig_hello(struct lane_rig *rig, uint64_t attempt)
{
    return (struct mr_hello){.sender = {9, 9},
                             .oldest = 1,
                             .token = "",
                             .source = {.host = "host",
                                        .app = "app",
                                        .version = "1",
                                        .exe = "exe",
                                        .clock_warning = "",
                                        .clock = {.kind = MR_CLOCK_MONOTONIC, .mult = 1}},
                             .custody = {.custodian = attempt > 1
                                                          ? mr_spool_self(rig->spool)
                                                          : (struct mr_id){0, 0},
                                         .epoch = attempt > 1,
                                         .attempt = attempt,
                                         .was_shown = attempt > 2,
                                         .is_told = true}};
}

void lane_rig_send(struct lane_rig *rig, enum mr_frame_type type, uint64_t sequence,
                   struct mr_span payload)
{
    uint8_t bytes[256];

    assert_true(payload.size <= sizeof(bytes) - MR_WIRE_HEADER_SIZE);
    mr_frame_put_header((uint8_t)type, 0, sequence, payload, bytes);
    if (payload.size != 0)
        memcpy(bytes + MR_WIRE_HEADER_SIZE, payload.data, payload.size);
    assert_int_equal(send(rig->fd, bytes, MR_WIRE_HEADER_SIZE + payload.size, 0),
                     (ssize_t)(MR_WIRE_HEADER_SIZE + payload.size));
}

struct mr_ack lane_rig_next_ack(struct lane_rig *rig)
{
    uint8_t bytes[MR_WIRE_HEADER_SIZE + MR_WIRE_MAX_CONTROL];
    struct mr_ack ack = {.sequence = 0};
    struct mr_frame frame = {.type = MR_FRAME_HEARTBEAT};

    while (frame.type != MR_FRAME_ACK) {
        struct mr_span rest = mr_span_of(bytes, sizeof(bytes));
        size_t need;

        assert_int_equal(recv(rig->fd, bytes, MR_WIRE_HEADER_SIZE, MSG_WAITALL),
                         MR_WIRE_HEADER_SIZE);
        rest.size = MR_WIRE_HEADER_SIZE;
        if (mr_frame_take(&rest, LANE_MAX_FRAME, &frame, &need, NULL) == MR_AGAIN) {
            need -= MR_WIRE_HEADER_SIZE;
            assert_int_equal(
                recv(rig->fd, bytes + MR_WIRE_HEADER_SIZE, need, MSG_WAITALL),
                (ssize_t)need);
            rest = mr_span_of(bytes, MR_WIRE_HEADER_SIZE + need);
            assert_int_equal(mr_frame_take(&rest, LANE_MAX_FRAME, &frame, &need, NULL),
                             MR_OK);
        }
    }
    assert_int_equal(mr_ack_get(frame.payload, &ack), MR_OK);
    return ack;
}

void lane_rig_settle(struct lane_rig *rig, uint64_t sequence)
{
    uint8_t settle[MR_SETTLE_SIZE];

    mr_settle_put(sequence, settle);
    lane_rig_send(rig, MR_FRAME_SETTLE, 0, mr_span_of(settle, sizeof(settle)));
}

void lane_rig_send_chunks(struct lane_rig *rig, uint64_t sequence)
{
    lane_rig_send(rig, MR_FRAME_CHUNKS, sequence, mr_span_of_text("not looked at"));
    while (lane_rig_next_ack(rig).sequence < sequence)
        continue;
}

void lane_rig_wait_for_frames(struct lane_rig *rig, uint32_t count)
{
    while (mr_load_relaxed(&rig->counting.frames) < count)
        (void)usleep(1000);
}

void lane_rig_start_with_sender(struct lane_rig *rig)
{
    struct mr_hello hello;

    lane_rig_start(rig);
    hello = lane_rig_hello(rig, 1);
    lane_rig_connect(rig, &hello);
    assert_int_equal(lane_rig_answer(rig), MR_FRAME_WELCOME);
}

void lane_rig_commit_end(struct lane_rig *rig, uint64_t sequence, struct mr_id id,
                         uint64_t covered)
{
    const struct mr_mark cover = {.kind = MR_MARK_COVER, .id = id, .sequence = covered};
    const struct mr_mark end = {.kind = MR_MARK_SOURCE_END, .id = id, .serial = 1};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_buffer marks;

    mr_buffer_init(&marks, SIZE_MAX);
    assert_int_equal(mr_mark_put(&marks, &cover), MR_OK);
    assert_int_equal(mr_mark_put(&marks, &end), MR_OK);
    assert_int_equal(
        mr_spool_commit(rig->spool, sequence, NULL, mr_buffer_span(&marks), &error),
        MR_OK);
    mr_buffer_fini(&marks);
}
