/* SPDX-License-Identifier: Apache-2.0 */
/* A sender and receivers in two threads, over connections that break at random. */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/net/hop.h"

enum { FRAMES = 3000, SIZE_MAX_OF_FRAME = 30000 };

/*
 * field   written by  read by  access
 * done    sender      receiver atomic, sequentially consistent: after join the rest may be read
 * others  receiver    sender, after pthread_join()
 */
struct receiver {
    struct mr_test_hop *hop;
    struct mr_test_random random;
    atomic_bool done;
    uint64_t faults, breaks, frames;
};

/* What frame n holds: its size and bytes are functions of n. */
static size_t size_of(uint64_t sequence)
{
    struct mr_test_random random = {sequence};

    return mr_test_random_below(&random, sequence % 10 ? 2000 : SIZE_MAX_OF_FRAME);
}

static void fill(uint64_t sequence, uint8_t *payload, size_t size)
{
    for (size_t i = 0; i < size; i++)
        payload[i] = (uint8_t)(sequence * 31 + i);
}

static bool is_right(const struct mr_frame *frame, uint64_t sequence)
{
    static uint8_t expected[SIZE_MAX_OF_FRAME];
    size_t size = size_of(sequence);

    fill(sequence, expected, size);
    return frame->sequence == sequence &&
           mr_span_equal(frame->payload, mr_span_of(expected, size));
}

/* Takes what is there; breaks the connection now and then, wherever it stands. */
static void serve(struct receiver *receiver)
{
    struct mr_test_hop *hop = receiver->hop;
    struct pollfd poll_fd = {.fd = hop->conn.fd, .events = POLLIN};
    struct mr_frame frame;
    enum mr_status status;

    (void)poll(&poll_fd, 1, 5);
    while ((status = mr_test_hop_receive(hop, &frame)) == MR_OK) {
        receiver->faults += !is_right(&frame, hop->next_sequence);
        hop->next_sequence++; /* in custody from here on */
        receiver->frames++;
        if (mr_test_random_below(&receiver->random, 5) == 0)
            (void)mr_conn_ack(&hop->conn, hop->next_sequence - 1, hop->credit);
        if (mr_test_random_below(&receiver->random, 60) == 0)
            break;
    }
    if (status == MR_AGAIN && hop->conn.greeted)
        (void)mr_conn_ack(&hop->conn, hop->next_sequence - 1, hop->credit);
    if (status == MR_AGAIN)
        return;
    receiver->faults += status != MR_OK && status != MR_END && status != MR_EIO;
    receiver->breaks += status == MR_OK;
    mr_test_hop_hang_up(hop);
}

static void *receive_all(void *context)
{
    struct receiver *receiver = context;
    struct mr_test_hop *hop = receiver->hop;

    while (!atomic_load(&receiver->done)) {
        hop->credit = mr_test_random_below(&receiver->random, 2)
                          ? 0
                          : mr_test_random_below(&receiver->random, 100000);
        if (hop->has_conn || mr_test_hop_accept(hop, 5))
            serve(receiver);
    }
    return NULL;
}

/* `windows`: or NULL. */
static void send_all(struct mr_test_hop *hop, struct mr_test_random *windows)
{
    for (uint64_t sequence = 1; sequence <= FRAMES; sequence++) {
        size_t size = size_of(sequence);
        uint8_t *payload;

        if (windows && mr_test_random_below(windows, 20) == 0)
            hop->sender.window = mr_test_random_below(windows, 3) * 20000;
        while (!(payload = mr_sender_reserve(&hop->sender, size)))
            (void)mr_sender_poll(&hop->sender, 10 * MR_MILLISECOND_NS);
        fill(sequence, payload, size);
        assert_int_equal(mr_sender_commit(&hop->sender, MR_FRAME_CHUNKS, 0, size),
                         sequence);
        if (sequence % 7 == 0)
            (void)mr_sender_poll(&hop->sender, 0);
    }
}

static void check(struct mr_test_random *windows)
{
    struct mr_test_hop *hop = mr_test_hop_new();
    struct receiver receiver = {.hop = hop, .random = mr_test_random_new()};
    pthread_t thread;

    mr_test_hop_start(hop);
    assert_int_equal(pthread_create(&thread, NULL, receive_all, &receiver), 0);
    send_all(hop, windows);
    assert_int_equal(mr_sender_finish(&hop->sender, MR_BYE_FINISHED,
                                      mr_clock_monotonic_ns() + 60 * MR_SECOND_NS),
                     MR_OK);
    atomic_store(&receiver.done, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(receiver.faults, 0);
    assert_int_equal(receiver.frames, FRAMES);
    assert_int_equal(hop->next_sequence, FRAMES + 1);
    assert_true(receiver.breaks > 5);
    assert_true(hop->sender.stats.connects > receiver.breaks / 2);
    print_message("%llu connections, %llu frames sent again\n",
                  (unsigned long long)hop->sender.stats.connects,
                  (unsigned long long)hop->sender.stats.resends);
    mr_test_hop_free(hop);
}

static void every_frame_arrives_once_and_in_order_whatever_breaks(void **state)
{
    (void)state;
    check(NULL);
}

static void so_it_does_with_windows_that_come_and_go(void **state)
{
    struct mr_test_random windows = mr_test_random_new();

    (void)state;
    check(&windows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_arrives_once_and_in_order_whatever_breaks),
        cmocka_unit_test(so_it_does_with_windows_that_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
