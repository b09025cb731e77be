/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline/filters/forward.h against a receiver made of net/conn.h on this thread. */
#include "pipeline/filters/forward.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "net/conn.h"
#include "net/control.h"
#include "pipeline/graph.h"
#include "tests/unit/unit_test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_NS                                                                          \
    (10 * MR_SECOND_NS) /* for what must come; a failure, not a time that is measured */
#define GIVE_UP_NS (200 * MR_MILLISECOND_NS)
#define CREDIT (UINT64_C(1) << 20)

struct fixture {
    struct mr_forward_link link;
    struct mr_forward_config config;
    struct mr_graph *graph;
    struct mr_inlet *inlet;
    int listen_fd;
    struct mr_conn conn;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct mr_endpoint any = {.host = "127.0.0.1", .port = "0"};
    const struct mr_graph_node nodes[] = {
        {&mr_forward_filter, &f->config, MR_PLACE_THREAD}};
    struct sockaddr_in to = {.sin_family = AF_INET};
    uint16_t port;

    mr_log_init("test", MR_LOG_ERROR);
    assert_int_equal(mr_listen(&any, false, false, &f->listen_fd, &port, NULL), MR_OK);
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f->config = (struct mr_forward_config){.address_count = 1,
                                           .target = "here",
                                           .incarnation = {5, 6},
                                           .level = 3,
                                           .token = "word",
                                           .outbox_bytes = 2 * MR_WIRE_MAX_FRAME_MIN,
                                           .max_frame = MR_WIRE_MAX_FRAME_MIN,
                                           .give_up_ns = GIVE_UP_NS,
                                           .link = &f->link};
    memcpy(&f->config.addresses[0].address, &to, sizeof(to));
    f->config.addresses[0].size = sizeof(to);
    assert_int_equal(mr_graph_new(nodes, 1, "forward", &f->graph, NULL), MR_OK);
    assert_int_equal(mr_graph_inlet(f->graph, &f->inlet), MR_OK);
    assert_int_equal(mr_graph_start(f->graph), MR_OK);
    f->conn.fd = -1;
    *state = f;
    return 0;
}

static void hang_up(struct fixture *f)
{
    if (f->conn.fd >= 0)
        mr_conn_fini(&f->conn);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mr_graph_free(f->graph);
    hang_up(f);
    (void)close(f->listen_fd);
    free(f);
    return 0;
}

static void push(struct fixture *f, enum mr_batch_kind kind, const void *data,
                 size_t size)
{
    struct mr_batch *batch = mr_batch_new(kind);

    assert_non_null(batch);
    assert_int_equal(mr_buffer_append(&batch->bytes, data, size), MR_OK);
    assert_int_equal(mr_inlet_push(f->inlet, batch), MR_OK);
}

static void wait_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&poll_fd, 1, (int)(WAIT_NS / MR_MILLISECOND_NS)), 1);
}

/* The next frame; MR_END after a BYE. */
static enum mr_status next_frame(struct fixture *f, struct mr_frame *frame)
{
    enum mr_status status;

    while ((status = mr_conn_next(&f->conn, frame)) == MR_AGAIN) {
        wait_readable(f->conn.fd);
        status = mr_conn_read(&f->conn);
        assert_true(status == MR_OK || status == MR_AGAIN);
    }
    return status;
}

/* Accepts, checks the HELLO, welcomes; what the sender says it still holds. */
static uint64_t receive(struct fixture *f, uint64_t next_sequence)
{
    struct mr_hello_message message = {0};
    struct mr_frame frame;
    uint64_t oldest;

    wait_readable(f->listen_fd);
    assert_int_equal(mr_conn_init(&f->conn, accept(f->listen_fd, NULL, NULL), "peer",
                                  MR_WIRE_MAX_FRAME_MIN),
                     MR_OK);
    assert_int_equal(next_frame(f, &frame), MR_OK);
    assert_int_equal(frame.type, MR_FRAME_HELLO);
    assert_int_equal(mr_hello_get(frame.payload, &message, NULL), MR_OK);
    assert_true(mr_id_equal(message.hello.sender, f->config.incarnation));
    assert_int_equal(message.hello.role, MR_ROLE_WORKER);
    assert_int_equal(message.hello.level, 3);
    assert_string_equal(message.hello.token, "word");
    oldest = message.hello.oldest;
    mr_hello_free(&message);
    assert_int_equal(mr_conn_welcome(&f->conn, next_sequence, CREDIT), MR_OK);
    if (f->conn.next_sequence < oldest)
        f->conn.next_sequence = oldest;
    return oldest;
}

static void expect_frame(struct fixture *f, uint8_t type, uint64_t sequence,
                         const char *payload)
{
    struct mr_frame frame;

    assert_int_equal(next_frame(f, &frame), MR_OK);
    assert_int_equal(frame.type, type);
    assert_int_equal(frame.sequence, sequence);
    assert_true(mr_span_equal(frame.payload, mr_span_of_text(payload)));
}

static void acknowledge(struct fixture *f, uint64_t sequence)
{
    uint64_t start_ns = mr_clock_monotonic_ns();

    assert_int_equal(mr_conn_ack(&f->conn, sequence, CREDIT), MR_OK);
    while (mr_load_relaxed(&f->link.frames_acked) <
           sequence) /* polled in the test alone */
        assert_true(mr_clock_monotonic_ns() - start_ns < WAIT_NS);
}

static void stop(struct fixture *f)
{
    mr_inlet_close(f->inlet);
    mr_store_release(&f->link.stopping, true);
    assert_int_equal(mr_graph_drain(f->graph), MR_OK);
}

static void batches_go_up_in_order_and_are_kept_until_acknowledged(void **state)
{
    struct fixture *f = *state;

    push(f, MR_BATCH_DICT, "names", 5);
    push(f, MR_BATCH_DELTA, "numbers", 7);
    push(f, MR_BATCH_DELTA, "", 0); /* says nothing, so is not sent */
    push(f, MR_BATCH_DELTA, "more", 4);
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DICT, 1, "names");
    expect_frame(f, MR_FRAME_DELTA, 2, "numbers");
    expect_frame(f, MR_FRAME_DELTA, 3, "more");
    acknowledge(f, 2);
    assert_int_equal(mr_load_relaxed(&f->link.frames_held), 1);
    acknowledge(f, 3);
    stop(f);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 0);
    assert_int_equal(mr_load_relaxed(&f->link.reannounce), 0);
}

static void what_was_not_acknowledged_is_sent_again(void **state)
{
    struct fixture *f = *state;

    push(f, MR_BATCH_DELTA, "one", 3);
    push(f, MR_BATCH_DELTA, "two", 3);
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DELTA, 1, "one");
    expect_frame(f, MR_FRAME_DELTA, 2, "two");
    acknowledge(f, 1);
    hang_up(f);
    assert_int_equal(receive(f, 2), 2); /* the same receiver */
    expect_frame(f, MR_FRAME_DELTA, 2, "two");
    assert_int_equal(mr_load_relaxed(&f->link.reannounce), 0);
    acknowledge(f, 2);
    stop(f);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 0);
}

static void a_receiver_that_misses_frames_makes_the_dictionary_be_sent_again(void **state)
{
    struct fixture *f = *state;

    push(f, MR_BATCH_DICT, "names", 5);
    push(f, MR_BATCH_DELTA, "two", 3);
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DICT, 1, "names");
    expect_frame(f, MR_FRAME_DELTA, 2, "two");
    acknowledge(f, 1);
    hang_up(f);
    assert_int_equal(receive(f, 1), 2); /* it knows nothing: another one, or restarted */
    expect_frame(f, MR_FRAME_DELTA, 2, "two");
    acknowledge(f, 2);
    assert_int_equal(mr_load_relaxed(&f->link.reannounce), 1);
    stop(f);
}

/* A connection that breaks before anything passes must not make more of what does not pass. */
static void the_dictionary_is_not_sent_again_before_the_last_time_was_acknowledged(
    void **state)
{
    struct fixture *f = *state;

    push(f, MR_BATCH_DELTA, "one", 3);
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DELTA, 1, "one");
    acknowledge(f, 1);
    hang_up(f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(receive(f, 1), 2); /* it lacks frame 1, and hears no other */
        while (mr_load_relaxed(&f->link.reannounce) == 0)
            continue; /* until it is asked; CTest ends it where it never is */
        hang_up(f);
    }
    push(f, MR_BATCH_DICT, "names", 5); /* as merge has them now */
    assert_int_equal(receive(f, 1), 2);
    expect_frame(f, MR_FRAME_DICT, 2, "names");
    assert_int_equal(mr_load_relaxed(&f->link.reannounce), 1);
    acknowledge(f, 2);
    hang_up(f);
    push(f, MR_BATCH_DELTA, "three", 5);
    assert_int_equal(receive(f, 1), 3); /* again another one */
    expect_frame(f, MR_FRAME_DELTA, 3, "three");
    assert_int_equal(mr_load_relaxed(&f->link.reannounce), 2);
    acknowledge(f, 3);
    stop(f);
}

static void without_a_receiver_the_end_gives_up_and_counts(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 5; i++)
        push(f, MR_BATCH_DELTA, "lost", 4);
    stop(f);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 5);
    assert_int_equal(mr_load_relaxed(&f->link.frames_acked), 0);
}

static void *stop_on_thread(void *fixture)
{
    stop(fixture);
    return NULL;
}

/* Says that it lives, and nothing else, until the sender hangs up or `end_ns`. */
static void be_busy(struct fixture *f, uint64_t end_ns)
{
    struct mr_frame frame;

    while (mr_clock_monotonic_ns() < end_ns) {
        uint64_t due_ns = mr_clock_monotonic_ns() + MR_WIRE_HEARTBEAT_NS;

        if (mr_conn_tick(&f->conn, due_ns) != MR_OK || mr_conn_read(&f->conn) == MR_END)
            return;
        while (mr_conn_next(&f->conn, &frame) == MR_OK)
            ;
        (void)usleep(10000);
    }
}

static void a_receiver_that_lives_is_waited_for_longer(void **state)
{
    struct fixture *f = *state;
    uint64_t give_up_ns = 2 * MR_SECOND_NS;
    pthread_t thread;

    f->config.give_up_ns = give_up_ns;
    push(f, MR_BATCH_DELTA, "slow", 4);
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DELTA, 1, "slow");
    assert_int_equal(pthread_create(&thread, NULL, stop_on_thread, f), 0);
    be_busy(f, mr_clock_monotonic_ns() + give_up_ns * 5 / 2);
    hang_up(f); /* as after a silence */
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DELTA, 1, "slow");
    acknowledge(f, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 0);
}

static void a_receiver_that_lives_and_takes_nothing_is_given_up_in_the_end(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;

    push(f, MR_BATCH_DELTA, "never", 5);
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DELTA, 1, "never");
    assert_int_equal(pthread_create(&thread, NULL, stop_on_thread, f), 0);
    be_busy(f, mr_clock_monotonic_ns() + 2 * MR_FORWARD_PATIENCE * GIVE_UP_NS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 1);
}

/* 40,000 bytes: the outbox of the fixture takes three. */
static void a_full_outbox_holds_the_pipe_back_and_then_goes_on(void **state)
{
    static char payload[40000];
    struct fixture *f = *state;
    uint64_t taken = 0;
    struct mr_frame frame;

    memset(payload, 'x', sizeof(payload));
    while (mr_inlet_has_room(f->inlet)) /* nobody receives yet */
        push(f, MR_BATCH_DELTA, payload, sizeof(payload)), taken++;
    assert_int_equal(receive(f, 1), 1);
    for (uint64_t i = 1; i <= taken; i++) {
        assert_int_equal(next_frame(f, &frame), MR_OK);
        assert_int_equal(frame.sequence, i);
        assert_int_equal(frame.payload.size, sizeof(payload));
        acknowledge(f, i);
    }
    stop(f);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 0);
    assert_int_equal(mr_load_relaxed(&f->link.frames_acked), taken);
}

static void a_batch_larger_than_a_frame_is_counted_and_harms_no_other(void **state)
{
    static char payload[MR_WIRE_MAX_FRAME_MIN + 1];
    struct fixture *f = *state;
    struct mr_filter_stats stats;

    push(f, MR_BATCH_DELTA, payload, sizeof(payload));
    push(f, MR_BATCH_DELTA, "next", 4);
    assert_int_equal(receive(f, 1), 1);
    expect_frame(f, MR_FRAME_DELTA, 1, "next");
    acknowledge(f, 1);
    stop(f);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 1);
    assert_int_equal(mr_graph_stats(f->graph, &stats, 1), 1);
    assert_string_equal(stats.counter_names[6], "forward_too_large");
    assert_int_equal(stats.counters[6], 1);
}

static void batches_of_other_kinds_end_here(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mr_inlet_push(f->inlet, mr_batch_new(MR_BATCH_EVENTS)), MR_OK);
    assert_int_equal(mr_inlet_push(f->inlet, mr_batch_new(MR_BATCH_END)), MR_OK);
    stop(f);
    assert_int_equal(mr_load_relaxed(&f->link.frames_given_up), 0);
}

/* Of a frame of `size` bytes in the outbox of an earlier process. */
static struct mr_spool *spool_with_frame(const char *folder, size_t size)
{
    const struct mr_spool_config config = {.folder = folder,
                                           .bytes_max = UINT64_C(8) << 20};
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    struct mr_error error = MR_ERROR_NONE;
    struct mr_spool *spool;
    uint8_t *at;

    if (mr_spool_open(&config, &spool, &error) != MR_OK)
        fail_msg("%s", error.text);
    assert_non_null(batch);
    assert_int_equal(mr_buffer_reserve(&batch->bytes, size, &at), MR_OK);
    memset(at, 0, size);
    batch->bytes.size = size;
    if (mr_spool_commit(spool, 1, batch, (struct mr_span){0}, &error) != MR_OK)
        fail_msg("%s", error.text);
    mr_batch_free(batch);
    return spool;
}

static void what_was_kept_under_a_larger_limit_is_taken(void **state)
{
    struct fixture *f = *state;
    char folder[] = "/tmp/millrace-forward-XXXXXX", command[64];
    struct mr_forward_link link = {0};
    struct mr_forward_config config = f->config;
    const struct mr_graph_node nodes[] = {{&mr_forward_filter, &config, MR_PLACE_THREAD}};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_graph *graph;
    struct mr_spool *spool;

    assert_non_null(mkdtemp(folder));
    spool = spool_with_frame(folder, 2 * (size_t)f->config.max_frame);
    config.spool = spool;
    config.link = &link;
    if (mr_graph_new(nodes, 1, "second", &graph, &error) != MR_OK)
        fail_msg("%s", error.text);
    mr_graph_free(graph);
    mr_spool_close(spool);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): of a name made here */
}

#define MR_FORWARD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MR_FORWARD_TEST(batches_go_up_in_order_and_are_kept_until_acknowledged),
        MR_FORWARD_TEST(what_was_not_acknowledged_is_sent_again),
        MR_FORWARD_TEST(a_receiver_that_misses_frames_makes_the_dictionary_be_sent_again),
        MR_FORWARD_TEST(
            the_dictionary_is_not_sent_again_before_the_last_time_was_acknowledged),
        MR_FORWARD_TEST(without_a_receiver_the_end_gives_up_and_counts),
        MR_FORWARD_TEST(a_receiver_that_lives_is_waited_for_longer),
        MR_FORWARD_TEST(a_receiver_that_lives_and_takes_nothing_is_given_up_in_the_end),
        MR_FORWARD_TEST(a_full_outbox_holds_the_pipe_back_and_then_goes_on),
        MR_FORWARD_TEST(a_batch_larger_than_a_frame_is_counted_and_harms_no_other),
        MR_FORWARD_TEST(batches_of_other_kinds_end_here),
        MR_FORWARD_TEST(what_was_kept_under_a_larger_limit_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
