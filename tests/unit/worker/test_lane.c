/* SPDX-License-Identifier: Apache-2.0 */
/* worker/lane.h: senders that come, are refused, and come again. The test is the sender, over a pair of sockets. */
#include "worker/lane.h"

#include "base/clock.h"
#include "pipeline/mark.h"
#include "pipeline/source.h"
#include "tests/unit/unit_test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_FRAME (1u << 20)
#define CREDIT_FIRST (512u << 10) /* worker/lane_credit.c */
#define SPOOL_BYTES (UINT64_C(4) << 20)
#define ANSWER_SIZE 4096

/* A graph of one filter, which counts what comes and what ends. */
struct counting {
    _Atomic uint32_t frames, ends;
    uint32_t frame_us; /* that a frame takes; set before the first comes */
    bool passes_on; /* likewise: to a filter on a thread, which takes none until it may */
    _Atomic bool may_take;
};

static enum mr_status counting_open(struct mr_filter *filter, const void *config,
                                    struct mr_error *error)
{
    MR_UNUSED(error);
    memcpy(mr_filter_state(filter), config, sizeof(struct counting *));
    return MR_OK;
}

static enum mr_status counting_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct counting **counting = mr_filter_state(filter);

    if (batch->kind == MR_BATCH_FRAME) {
        (void)usleep((*counting)->frame_us);
        mr_add_relaxed(&(*counting)->frames, 1);
    }
    if (batch->kind == MR_BATCH_END) {
        mr_add_relaxed(&(*counting)->ends, 1);
        mr_store_release(&batch->source->is_done, true);
    } else if ((*counting)->passes_on) {
        return mr_filter_emit(filter, batch);
    }
    mr_batch_free(batch);
    return MR_OK;
}

static enum mr_status waiting_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct counting **counting = mr_filter_state(filter);

    while (!mr_load_acquire(&(*counting)->may_take))
        (void)usleep(1000);
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind counting_filter = {
    .name = "counting",
    .state_size = sizeof(struct counting *),
    .open = counting_open,
    .process = counting_process,
};

static const struct mr_filter_kind waiting_filter = {
    .name = "waiting",
    .state_size = sizeof(struct counting *),
    .open = counting_open,
    .process = waiting_process,
};

struct rig {
    char folder[64];
    struct counting counting, *counting_config;
    struct mr_graph *graph;
    struct mr_asks asks;
    struct mr_spool *spool;
    struct mr_worker_counters counters;
    struct mr_driver driver;
    struct mr_lane lane;
    int fd; /* the sender's end of its last connection; -1 */
};

static struct mr_spool *open_spool(const char *folder)
{
    const struct mr_spool_config config = {.folder = folder, .bytes_max = SPOOL_BYTES};
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

/* On the spool in `folder`, or on a new one. */
static void start_on(struct rig *rig, const char *folder, uint64_t grace_ns)
{
    struct mr_error error = MR_ERROR_NONE;
    const struct mr_graph_node nodes[] = {
        {&counting_filter, &rig->counting_config, MR_PLACE_FUSED},
        {&waiting_filter, &rig->counting_config, MR_PLACE_THREAD}};
    struct mr_lane_config config = {.name = "lane",
                                    .credit = MAX_FRAME,
                                    .source_grace_ns = grace_ns,
                                    .max_senders = 2,
                                    .max_frame = MAX_FRAME,
                                    .counters = &rig->counters,
                                    .has_custody = true,
                                    .asks = &rig->asks,
                                    .driver = &rig->driver};

    *rig = (struct rig){.fd = -1};
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

static void start(struct rig *rig)
{
    char folder[] = "/tmp/millrace-lane-XXXXXX";

    assert_non_null(mkdtemp(folder));
    start_on(rig, folder, MR_MINUTE_NS);
}

/* The spool stays. */
static void leave(struct rig *rig)
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

static void remove_spool(const struct rig *rig)
{
    char command[96];

    (void)snprintf(command, sizeof(command), "rm -r %s", rig->folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): of a name made here */
}

static void stop(struct rig *rig)
{
    leave(rig);
    remove_spool(rig);
}

/* What the greeter does with a new connection. */
static void give(struct rig *rig, int fd)
{
    struct mr_connection *connection =
        mr_connection_new(fd, "sender", MAX_FRAME, mr_clock_monotonic_ns());
    struct mr_frame frame;

    assert_non_null(connection);
    assert_int_equal(mr_conn_read(&connection->conn), MR_OK);
    assert_int_equal(mr_conn_next(&connection->conn, &frame), MR_OK);
    assert_int_equal(mr_hello_get(frame.payload, &connection->hello, NULL), MR_OK);
    mr_lane_give(&rig->lane, connection);
}

/* A new connection; the one before is left. */
static void connect_as(struct rig *rig, const struct mr_hello *hello)
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
    assert_int_equal(send(rig->fd, bytes, size, 0), (ssize_t)size);
    give(rig, pair[1]);
}

/* Into `bytes` of ANSWER_SIZE, which the frame borrows. */
static void take_answer(struct rig *rig, uint8_t *bytes, struct mr_frame *frame)
{
    size_t size = 0, need = 1;
    struct mr_span rest;
    enum mr_status status = MR_AGAIN;

    while (status == MR_AGAIN) {
        ssize_t got = recv(rig->fd, bytes + size, ANSWER_SIZE - size, 0);

        assert_true(got > 0);
        size += (size_t)got;
        rest = mr_span_of(bytes, size);
        status = mr_frame_take(&rest, MAX_FRAME, frame, &need, NULL);
    }
    assert_int_equal(status, MR_OK);
}

/* The type of the answer, which is WELCOME or ERROR. */
static enum mr_frame_type answer(struct rig *rig)
{
    uint8_t bytes[ANSWER_SIZE];
    struct mr_frame frame;

    take_answer(rig, bytes, &frame);
    return (enum mr_frame_type)frame.type;
}

/* The answer is WELCOME, and the sender is to repeat its dictionary. */
static bool is_welcome_that_lacks(struct rig *rig)
{
    uint8_t bytes[ANSWER_SIZE];
    struct mr_frame frame;
    struct mr_welcome welcome;

    take_answer(rig, bytes, &frame);
    assert_int_equal(frame.type, MR_FRAME_WELCOME);
    assert_int_equal(mr_welcome_get(frame.payload, &welcome), MR_OK);
    return (welcome.flags & MR_WELCOME_WANTS_DICTIONARY) != 0;
}

/* As the sender shows it after `attempt` connections, with nothing in doubt. */
static struct mr_hello hello_of(struct rig *rig, uint64_t attempt)
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

/* Until not one page is left; with streams of another sender, at the end of whose source they are released. */
static void fill(struct rig *rig)
{
    static const uint8_t state[1000]; /* longer ones have a part of it alone */
    struct mr_mark mark = {.kind = MR_MARK_STREAM,
                           .id = {8, 8},
                           .serial = 1,
                           .bytes = mr_span_of(state, sizeof(state))};
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = MR_OK;

    for (; status == MR_OK && mark.stream < SPOOL_BYTES / sizeof(state); mark.stream++) {
        struct mr_buffer marks;

        mr_buffer_init(&marks, SIZE_MAX);
        assert_int_equal(mr_mark_put(&marks, &mark), MR_OK);
        status = mr_spool_commit(rig->spool, 1, NULL, mr_buffer_span(&marks), &error);
        mr_buffer_fini(&marks);
    }
    assert_int_equal(status, MR_ELIMIT);
}

/* What forward keeps with its frame `sequence`: the first source of `id` is over, and its frames up to `covered` are in it. */
static void commit_end(struct rig *rig, uint64_t sequence, struct mr_id id,
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

static void make_room(struct rig *rig)
{
    commit_end(rig, 1, (struct mr_id){8, 8}, 0);
}

static void one_that_was_refused_for_room_goes_on_with_its_source(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    char long_name[MR_TEXT_MAX];

    MR_UNUSED(state);
    assert_non_null(rig);
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    start(rig);
    hello = hello_of(rig, 1);
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    fill(rig);
    hello = hello_of(rig, 2);
    hello.source.exe = hello.source.host = long_name; /* so that it needs more pages */
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_ERROR);
    make_room(rig);
    hello = hello_of(rig, 3);
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    assert_int_equal(mr_load_relaxed(&rig->counting.ends), 0); /* of before the WELCOME */
    stop(rig);
    free(rig);
}

static void send_frame(struct rig *rig, enum mr_frame_type type, uint64_t sequence,
                       struct mr_span payload)
{
    uint8_t bytes[64];

    mr_frame_put_header((uint8_t)type, 0, sequence, payload, bytes);
    memcpy(bytes + MR_WIRE_HEADER_SIZE, payload.data, payload.size);
    assert_int_equal(send(rig->fd, bytes, MR_WIRE_HEADER_SIZE + payload.size, 0),
                     (ssize_t)(MR_WIRE_HEADER_SIZE + payload.size));
}

/* The next acknowledgement. */
static struct mr_ack next_ack(struct rig *rig)
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
        if (mr_frame_take(&rest, MAX_FRAME, &frame, &need, NULL) == MR_AGAIN) {
            need -= MR_WIRE_HEADER_SIZE;
            assert_int_equal(
                recv(rig->fd, bytes + MR_WIRE_HEADER_SIZE, need, MSG_WAITALL),
                (ssize_t)need);
            rest = mr_span_of(bytes, MR_WIRE_HEADER_SIZE + need);
            assert_int_equal(mr_frame_take(&rest, MAX_FRAME, &frame, &need, NULL), MR_OK);
        }
    }
    assert_int_equal(mr_ack_get(frame.payload, &ack), MR_OK);
    return ack;
}

static void send_settle(struct rig *rig, uint64_t sequence)
{
    uint8_t settle[MR_SETTLE_SIZE];

    mr_settle_put(sequence, settle);
    send_frame(rig, MR_FRAME_SETTLE, 0, mr_span_of(settle, sizeof(settle)));
}

#define MANY 200u

static void who_has_settled_much_does_not_hold_up_others(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    int first;

    MR_UNUSED(state);
    assert_non_null(rig);
    start(rig);
    rig->counting.frame_us = 5000;
    hello = hello_of(rig, 1);
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    for (uint64_t i = 1; i <= MANY; i++)
        send_frame(rig, MR_FRAME_CHUNKS, i, mr_span_of_text("not looked at"));
    while (next_ack(rig).sequence < MANY)
        continue;
    send_settle(rig, MANY);
    while (mr_load_relaxed(&rig->counting.frames) == 0)
        (void)usleep(100);
    assert_true(next_ack(rig).credit <
                CREDIT_FIRST); /* and it is to send less at a time */
    first = rig->fd;
    rig->fd = -1;
    hello.sender.lo++;
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    assert_true(mr_load_relaxed(&rig->counting.frames) < MANY);
    (void)close(first);
    leave(rig);
    assert_int_equal(mr_load_relaxed(&rig->counting.frames),
                     MANY); /* all, all the same */
    remove_spool(rig);
    free(rig);
}

/* A program takes a receiver that it does not hear of for 5 s as gone, and connects again: for nothing, where it only has to wait. */
static void senders_hear_of_a_lane_that_waits_for_room(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    int first;

    MR_UNUSED(state);
    assert_non_null(rig);
    start(rig);
    rig->counting.passes_on = true;
    hello = hello_of(rig, 1);
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    first = rig->fd; /* of one that has nothing to say */
    rig->fd = -1;
    hello.sender.lo++;
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    for (uint64_t i = 1; i <= MANY; i++)
        send_frame(rig, MR_FRAME_CHUNKS, i, mr_span_of_text("not looked at"));
    while (next_ack(rig).sequence < MANY)
        continue;
    send_settle(rig, MANY);
    while (mr_load_relaxed(&rig->counting.frames) <= MR_GRAPH_PIPE_BATCHES)
        (void)usleep(100);
    for (uint32_t beats = 0; beats < 3;) /* CTest ends it where they never come */
        beats += answer(rig) == MR_FRAME_HEARTBEAT;
    (void)close(rig->fd);
    rig->fd = first;
    for (uint32_t beats = 0; beats < 2;)
        beats += answer(rig) == MR_FRAME_HEARTBEAT;
    assert_true(mr_load_relaxed(&rig->counting.frames) < MANY); /* it waits still */
    mr_store_release(&rig->counting.may_take, true);
    stop(rig);
    free(rig);
}

static void send_chunks(struct rig *rig, uint64_t sequence)
{
    send_frame(rig, MR_FRAME_CHUNKS, sequence, mr_span_of_text("not looked at"));
    while (next_ack(rig).sequence < sequence)
        continue;
}

/* CTest ends it where they never come. */
static void wait_for_frames(struct rig *rig, uint32_t count)
{
    while (mr_load_relaxed(&rig->counting.frames) < count)
        (void)usleep(1000);
}

static void start_with_sender(struct rig *rig)
{
    struct mr_hello hello;

    start(rig);
    hello = hello_of(rig, 1);
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
}

/* The same epoch again, with all that was sent acknowledged. */
static void return_with(struct rig *rig, uint64_t attempt, uint64_t acked)
{
    struct mr_hello hello = hello_of(rig, attempt);

    hello.custody.was_shown = false;
    hello.custody.acked = hello.custody.sent = acked;
    hello.oldest = acked + 1;
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
}

/* Twice in one epoch the connection breaks with a frame held; behind the first lies a SETTLE, and a frame between them was never held. */
static void what_is_held_again_is_found(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));

    MR_UNUSED(state);
    assert_non_null(rig);
    start_with_sender(rig);
    send_chunks(rig, 1);
    send_chunks(rig, 2);
    send_settle(rig, 1);
    wait_for_frames(rig, 1);
    return_with(rig, 2, 2);
    send_settle(rig, 2);
    wait_for_frames(rig, 2);
    send_chunks(rig, 3);
    send_settle(rig, 3);
    wait_for_frames(rig, 3);
    send_chunks(rig, 4);
    return_with(rig, 3, 4);
    send_settle(rig, 4);
    wait_for_frames(rig, 4);
    stop(rig);
    free(rig);
}

/* What lies behind the last frame held, a SETTLE here, is not mixed up with what is held in a later epoch. */
static void what_is_held_in_another_epoch_is_found(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;

    MR_UNUSED(state);
    assert_non_null(rig);
    start_with_sender(rig);
    send_chunks(rig, 1);
    send_chunks(rig, 2);
    send_settle(rig, 1);
    wait_for_frames(rig, 1);
    return_with(rig, 2, 2);
    send_settle(rig, 2);
    wait_for_frames(rig, 2);
    hello = hello_of(rig, 3); /* it was elsewhere, with three frames */
    hello.custody.custodian = (struct mr_id){7, 7};
    hello.custody.epoch = 5;
    hello.custody.acked = hello.custody.sent = 5;
    hello.oldest = 6;
    connect_as(rig, &hello);
    while (mr_load_relaxed(&rig->counting.ends) < 1)
        (void)usleep(1000);
    commit_end(rig, 1, hello.sender, 2);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    send_chunks(rig, 6);
    hello = hello_of(rig, 4);
    hello.custody.epoch = 6;
    hello.custody.was_shown = false;
    hello.custody.acked = hello.custody.sent = 6;
    hello.oldest = 7;
    connect_as(rig, &hello);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    send_settle(rig, 6);
    wait_for_frames(rig, 3);
    stop(rig);
    free(rig);
}

/* The question about this epoch, once it is asked. */
static struct mr_custody_ask wait_for_ask(struct rig *rig, uint64_t epoch)
{
    struct mr_custody_ask ask = {.epoch = 0};

    while (!mr_asks_next(&rig->asks, &ask) || ask.epoch != epoch)
        (void)usleep(1000);
    return ask;
}

/* SIGTERM: a sender leaves without having settled all; the lane stays until the register has said whose its frames are. */
static void who_stops_claims_what_is_left_behind(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_custody_ask ask;

    MR_UNUSED(state);
    assert_non_null(rig);
    start_with_sender(rig);
    for (uint64_t i = 1; i <= 3; i++)
        send_chunks(rig, i);
    mr_lane_stop(&rig->lane, mr_clock_monotonic_ns() + MR_MINUTE_NS);
    (void)usleep(50000); /* some ticks, with nothing in doubt */
    (void)close(rig->fd);
    rig->fd = -1;
    ask = wait_for_ask(rig, 1);
    assert_true(ask.is_claim);
    mr_asks_answer(&rig->asks, &ask);
    wait_for_frames(rig, 3);
    stop(rig);
    free(rig);
}

/* The register never answers: what is in doubt stays in the spool, and the worker can tell how much that is. */
static void what_stays_in_doubt_at_the_end_is_told(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));

    MR_UNUSED(state);
    assert_non_null(rig);
    start_with_sender(rig);
    for (uint64_t i = 1; i <= 3; i++)
        send_chunks(rig, i);
    send_settle(rig, 1);
    wait_for_frames(rig, 1);
    leave(rig);
    assert_int_equal(rig->lane.left_kept, 2);
    assert_int_equal(rig->lane.left_in_doubt, 0);
    remove_spool(rig);
    free(rig);
}

/* A sender comes with frames in doubt, goes, and comes again with others before the register has answered about the first. */
static void who_waits_is_asked_about_after_an_answer_about_another(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;
    struct mr_custody_ask ask;

    MR_UNUSED(state);
    assert_non_null(rig);
    start(rig);
    hello = hello_of(rig, 2);
    hello.custody.custodian = (struct mr_id){7, 7};
    hello.custody.epoch = 5;
    hello.custody.acked = 1;
    hello.custody.sent = 3;
    hello.oldest = 2;
    connect_as(rig, &hello);
    ask = wait_for_ask(rig, 5);
    hello.custody.attempt = 4;
    hello.custody.epoch = 6;
    hello.custody.acked = 4;
    hello.custody.sent = 6;
    hello.oldest = 5;
    connect_as(rig, &hello);
    (void)usleep(50000); /* so that it waits when the answer comes */
    ask.position = 2;
    mr_asks_answer(&rig->asks, &ask);
    ask = wait_for_ask(rig, 6);
    ask.position = 5;
    mr_asks_answer(&rig->asks, &ask);
    assert_int_equal(answer(rig), MR_FRAME_WELCOME);
    stop(rig);
    free(rig);
}

/* It comes from another receiver, and the connection breaks before it may have heard that its dictionary is lacking. */
static void who_lacks_a_dictionary_asks_until_it_is_told(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;

    MR_UNUSED(state);
    assert_non_null(rig);
    start(rig);
    hello = hello_of(rig, 2);
    hello.custody.custodian = (struct mr_id){7, 7};
    hello.custody.epoch = 5;
    hello.custody.acked = hello.custody.sent = 3;
    hello.oldest = 4;
    connect_as(rig, &hello);
    assert_true(is_welcome_that_lacks(rig));
    hello.custody.attempt++;
    hello.custody.was_shown = true;
    connect_as(rig, &hello);
    assert_true(is_welcome_that_lacks(rig));
    hello.custody = (struct mr_custody_hello){.custodian = mr_spool_self(rig->spool),
                                              .epoch = 6,
                                              .acked = 3,
                                              .sent = 3,
                                              .attempt = hello.custody.attempt + 1,
                                              .is_told = true};
    connect_as(rig, &hello);
    assert_true(is_welcome_that_lacks(rig));
    send_chunks(rig, 4);
    hello.custody.attempt++;
    hello.custody.acked = hello.custody.sent = 4;
    hello.oldest = 5;
    connect_as(rig, &hello);
    assert_false(is_welcome_that_lacks(rig));
    stop(rig);
    free(rig);
}

/* Three senders, one more than --max-senders, as an earlier process left them. */
static void put_three(struct rig *rig)
{
    uint8_t bytes[MR_WIRE_MAX_CONTROL];
    struct mr_error error = MR_ERROR_NONE;

    for (uint64_t i = 1; i <= 3; i++) {
        struct mr_hello hello = hello_of(rig, 1);
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

static void start_again(struct rig *rig, uint64_t grace_ns)
{
    char folder[sizeof(rig->folder)];

    memcpy(folder, rig->folder, sizeof(folder));
    leave(rig);
    start_on(rig, folder, grace_ns);
}

/* CTest ends it where it never comes. */
static void wait_until_left(struct rig *rig, uint64_t count)
{
    while (mr_load_relaxed(&rig->counters.senders_left) != count)
        (void)usleep(1000);
}

static void senders_of_the_spool_without_room_are_counted_and_wait(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    uint32_t refused = 0;

    MR_UNUSED(state);
    assert_non_null(rig);
    start(rig);
    put_three(rig);
    start_again(rig, MR_MINUTE_NS);
    wait_until_left(rig, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        struct mr_hello hello = hello_of(rig, 2);

        hello.sender.lo = i;
        connect_as(rig, &hello);
        refused += answer(rig) == MR_FRAME_ERROR;
    }
    assert_int_equal(refused, 1); /* which one the order of the spool decides */
    stop(rig);
    free(rig);
}

static void senders_that_wait_are_taken_up_when_there_is_room(void **state)
{
    struct rig *rig = malloc(sizeof(*rig));
    struct mr_hello hello;

    MR_UNUSED(state);
    assert_non_null(rig);
    start(rig);
    put_three(rig);
    start_again(rig, MR_MILLISECOND_NS); /* those that are away are soon forgotten */
    wait_until_left(rig, 1);
    hello = hello_of(rig, 2);
    hello.sender.lo = 1; /* the last of the spool's, as they are added in front */
    do                   /* CTest ends it where its turn never comes */
        connect_as(rig, &hello);
    while (answer(rig) == MR_FRAME_ERROR);
    stop(rig);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_was_refused_for_room_goes_on_with_its_source),
        cmocka_unit_test(who_has_settled_much_does_not_hold_up_others),
        cmocka_unit_test(senders_hear_of_a_lane_that_waits_for_room),
        cmocka_unit_test(what_is_held_again_is_found),
        cmocka_unit_test(what_is_held_in_another_epoch_is_found),
        cmocka_unit_test(who_stops_claims_what_is_left_behind),
        cmocka_unit_test(what_stays_in_doubt_at_the_end_is_told),
        cmocka_unit_test(who_waits_is_asked_about_after_an_answer_about_another),
        cmocka_unit_test(who_lacks_a_dictionary_asks_until_it_is_told),
        cmocka_unit_test(senders_of_the_spool_without_room_are_counted_and_wait),
        cmocka_unit_test(senders_that_wait_are_taken_up_when_there_is_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
