/* SPDX-License-Identifier: Apache-2.0 */
/* A master's door with a worker at it, over loopback. */
#include "tests/unit/unit_test.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "master/ingest_private.h"
#include "net/endpoint.h"
#include "net/sender.h"

#define MAX_FRAME (16u << 20) /* the most that --max-frame allows */
#define WAIT_NS (60 * MR_SECOND_NS)

struct fixture {
    char folder[64];
    struct mr_model *model;
    struct mr_store *store;
    struct mr_ingest *ingest;
    struct mr_sender sender;
    uint8_t *outbox;
};

static const struct mr_id worker = {7, 8};

static size_t write_hello(void *context, const struct mr_custody_hello *custody,
                          uint8_t *out, size_t capacity)
{
    const struct mr_hello hello = {.sender = worker,
                                   .role = MR_ROLE_WORKER,
                                   .level = 1,
                                   .oldest = custody->acked + 1,
                                   .custody = *custody,
                                   .token = ""};

    (void)context;
    return mr_hello_put(&hello, out, capacity);
}

static void open_sender(struct fixture *f, uint16_t port)
{
    struct mr_endpoints endpoints = {.count = 1};
    struct mr_sender_config config = {.incarnation = worker,
                                      .outbox_size = (size_t)3 * MAX_FRAME,
                                      .max_frame = MAX_FRAME,
                                      .hello = write_hello};

    (void)snprintf(endpoints.items[0].host, sizeof(endpoints.items[0].host), "127.0.0.1");
    (void)snprintf(endpoints.items[0].port, sizeof(endpoints.items[0].port), "%u", port);
    assert_int_equal(
        mr_endpoints_numeric(&endpoints, config.addresses, &config.address_count, NULL),
        MR_OK);
    config.outbox = f->outbox = malloc(config.outbox_size);
    assert_non_null(f->outbox);
    assert_int_equal(mr_sender_init(&f->sender, &config), MR_OK);
}

static int set_up(void **state)
{
    const struct mr_endpoint any = {.host = "127.0.0.1", .port = "0"};
    struct fixture *f = calloc(1, sizeof(*f));
    struct mr_error error = MR_ERROR_NONE;
    uint16_t port;

    assert_non_null(f);
    (void)snprintf(f->folder, sizeof(f->folder), "/tmp/mr-ingest-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    assert_int_equal(mr_model_new(&MR_MODEL_LIMITS_DEFAULT, &f->model), MR_OK);
    const struct mr_store_config store = {.directory = f->folder,
                                          .sync = MR_STORE_SYNC_NORMAL,
                                          .commit_interval_ns = MR_MILLISECOND_NS,
                                          .checkpoint_interval_ns = MR_HOUR_NS,
                                          .checkpoint_bytes = 1 << 30};
    assert_int_equal(mr_store_open(&store, f->model, &f->store, &error), MR_OK);
    assert_int_equal(mr_store_start(f->store, &error), MR_OK);
    struct mr_ingest_config config = {.token = "",
                                      .max_frame = MAX_FRAME,
                                      .max_connections = 4,
                                      .credit = 1 << 20,
                                      .join_timeout_ns = MR_MINUTE_NS,
                                      .model = f->model,
                                      .store = f->store};
    assert_int_equal(mr_listen(&any, false, false, &config.listen_fd, &port, &error),
                     MR_OK);
    assert_int_equal(mr_ingest_start(&config, &f->ingest, &error), MR_OK);
    open_sender(f, port);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];

    mr_sender_fini(&f->sender);
    mr_ingest_stop(f->ingest);
    (void)mr_store_stop(f->store);
    mr_ingest_free(f->ingest);
    mr_store_close(f->store);
    mr_model_free(f->model);
    free(f->outbox);
    (void)snprintf(command, sizeof(command), "rm -r %s", f->folder);
    free(f);
    return system(command); /* NOLINT(cert-env33-c): of a name made here */
}

/* A payload of at least `size` bytes, of sites that nobody names. */
static void send_delta(struct fixture *f, size_t size)
{
    struct mr_delta_writer writer;
    struct mr_buffer bytes;
    uint8_t *payload;

    mr_buffer_init(&bytes, (size_t)2 * MAX_FRAME);
    mr_delta_begin(&writer, &bytes);
    mr_delta_head(&writer, 1, mr_clock_realtime_ns());
    while (bytes.size < size && mr_delta_status(&writer) == MR_OK)
        (void)mr_delta_site(&writer, (struct mr_id){9, writer.sites});
    assert_int_equal(mr_delta_status(&writer), MR_OK);
    payload = mr_sender_reserve(&f->sender, bytes.size);
    assert_non_null(payload);
    memcpy(payload, bytes.data, bytes.size);
    (void)mr_sender_commit(&f->sender, MR_FRAME_DELTA, 0, bytes.size);
    mr_buffer_fini(&bytes);
}

static void wait_for_acknowledgement(struct fixture *f)
{
    uint64_t until_ns = mr_clock_monotonic_ns() + WAIT_NS;

    while (!mr_sender_is_drained(&f->sender) && mr_ingest_is_alive(f->ingest) &&
           mr_clock_monotonic_ns() < until_ns)
        (void)mr_sender_poll(&f->sender, 10 * MR_MILLISECOND_NS);
    assert_true(mr_ingest_is_alive(f->ingest));
    assert_true(mr_sender_is_drained(&f->sender));
}

static void a_frame_as_large_as_max_frame_is_taken(void **state)
{
    struct fixture *f = *state;

    send_delta(f, 100);
    wait_for_acknowledgement(f);
    send_delta(f, MAX_FRAME - 64);
    wait_for_acknowledgement(f);
    assert_int_equal(mr_store_position(f->store, worker), 2);
}

static int connect_to(int listener)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, size), 0);
    return fd;
}

/* As much as the two ends of a connection take without anybody reading. */
static void fill(int fd)
{
    static const uint8_t nothing[256 << 10];

    while (send(fd, nothing, sizeof(nothing), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        continue;
}

static int waiting(int fd)
{
    int size = 0;

    assert_int_equal(ioctl(fd, FIONREAD, &size), 0);
    return size;
}

/* Else one that goes on sending would have the thread for itself. */
static void of_who_was_refused_a_part_is_read_at_a_time(void **state)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
    struct mr_peer peer = {.linger_until_ns = UINT64_MAX};

    (void)state;
    assert_int_equal(listen(listener, 1), 0); /* at any port of this host */
    fd = connect_to(listener);
    peer.conn.fd = accept(listener, NULL, NULL);
    assert_true(peer.conn.fd >= 0);
    fill(fd);
    assert_true(mr_peer_linger(&peer, 1));
    assert_true(waiting(peer.conn.fd) > 0);
    (void)close(fd);
    (void)close(peer.conn.fd);
    (void)close(listener);
}

/* Each turn, and each event in it, takes as long with thousands of workers as with one: the others are not looked at. */
static void connections_that_have_nothing_to_be_told_are_not_looked_at(void **state)
{
    struct fixture *f = *state;
    const struct mr_ingest_counters *counters = mr_ingest_counters(f->ingest);
    const uint64_t frames = 100;
    int idle[3];

    for (size_t i = 0; i < MR_ARRAY_COUNT(idle); i++)
        idle[i] = connect_to(f->ingest->config.listen_fd);
    for (uint64_t i = 0; i < frames; i++) {
        send_delta(f, 100);
        wait_for_acknowledgement(f);
    }
    assert_int_equal(mr_load_relaxed(&counters->frames), frames); /* numbers alone */
    assert_true(mr_load_relaxed(&counters->looks) < frames);
    for (size_t i = 0; i < MR_ARRAY_COUNT(idle); i++)
        (void)close(idle[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_frame_as_large_as_max_frame_is_taken, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            connections_that_have_nothing_to_be_told_are_not_looked_at, set_up,
            tear_down),
        cmocka_unit_test(of_who_was_refused_a_part_is_read_at_a_time),
    };
    int status;

    mr_model_thread_enter();
    status = cmocka_run_group_tests(tests, NULL, NULL);
    mr_model_thread_leave();
    return status;
}
