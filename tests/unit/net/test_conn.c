/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"
#include "net/frame_compress.h"

#include "tests/unit/net/conn_pair.h"

static void a_max_frame_below_64_kib_is_refused(void **state)
{
    struct mr_conn conn;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(mr_conn_init(&conn, fds[0], "test", 1000), MR_EUSAGE);
    mr_conn_fini(&conn);
    assert_int_equal(close(fds[1]), 0);
}

static void frames_come_out_though_bytes_drip_in(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    uint8_t bytes[MR_WIRE_HEADER_SIZE + 3] = {[MR_WIRE_HEADER_SIZE] = 'a', 'b', 'c'};

    (void)state;
    greet(&pair);
    mr_frame_put_header(MR_FRAME_DICT, 0, 1, mr_span_of(bytes + MR_WIRE_HEADER_SIZE, 3),
                        bytes);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        assert_int_equal(next(&pair, &frame), MR_AGAIN);
        assert_int_equal(send(pair.peer, bytes + i, 1, MSG_NOSIGNAL), 1);
    }
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_true(mr_span_equal(frame.payload, mr_span_of("abc", 3)));
    assert_int_equal(pair.conn.next_sequence, 2);
    pair_close(&pair);
}

static void small_frames_that_came_together_take_one_read(void **state)
{
    enum { COUNT = 1000 };
    struct mr_buffer output;
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet(&pair);
    mr_buffer_init(&output, 1 << 20);
    for (uint64_t sequence = 1; sequence <= COUNT; sequence++)
        put_frame(&output, MR_FRAME_CHUNKS, sequence, mr_span_of("abcdefgh", 8));
    assert_int_equal(send(pair.peer, output.data, output.size, MSG_NOSIGNAL),
                     output.size);
    assert_int_equal(mr_conn_read(&pair.conn), MR_OK);
    for (uint64_t sequence = 1; sequence <= COUNT; sequence++) {
        assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_OK);
        assert_int_equal(frame.sequence, sequence);
    }
    assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_AGAIN);
    mr_buffer_fini(&output);
    pair_close(&pair);
}

/* So many bytes that the peer sends, and what of them the conn's buffer has room for. */
static void fill(struct pair *pair, struct mr_buffer *output)
{
    ssize_t size;

    while (output->size > 0) {
        size = send(pair->peer, output->data, output->size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size > 0)
            mr_buffer_consume(output, (size_t)size);
        assert_int_equal(mr_conn_read(&pair->conn), MR_OK);
    }
    while (mr_conn_read(&pair->conn) == MR_OK &&
           pair->conn.input_end < pair->conn.input_capacity)
        ;
}

static void a_frame_may_end_where_the_buffer_does(void **state)
{
    enum { COUNT = 8 };
    static uint8_t payload[MR_WIRE_MAX_FRAME_MIN - MR_WIRE_HEADER_SIZE];
    struct mr_buffer output;
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet(&pair);
    mr_buffer_init(&output, 1 << 20);
    for (int round = 0; round < 2; round++) {
        uint64_t before = (uint64_t)round * COUNT;

        for (uint64_t i = 1; i <= COUNT; i++)
            put_frame(&output, MR_FRAME_CHUNKS, before + i,
                      mr_span_of(payload, sizeof(payload)));
        fill(&pair, &output);
        assert_int_equal(pair.conn.input_end, COUNT * MR_WIRE_MAX_FRAME_MIN);
        assert_int_equal(pair.conn.input_end, pair.conn.input_capacity);
        assert_int_equal(mr_conn_read(&pair.conn), MR_OK); /* there is no room: nothing */
        for (uint64_t i = 1; i <= COUNT; i++) {
            assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_OK);
            assert_int_equal(frame.sequence, before + i);
            assert_int_equal(frame.payload.size, sizeof(payload));
        }
        assert_int_equal(mr_conn_next(&pair.conn, &frame), MR_AGAIN);
    }
    mr_buffer_fini(&output);
    pair_close(&pair);
}

static void a_frame_larger_than_the_buffer_makes_it_grow_up_to_max_frame(void **state)
{
    static uint8_t payload[3u << 20];
    struct pair pair;
    struct mr_frame frame;
    uint8_t header[MR_WIRE_HEADER_SIZE];
    size_t sent = 0;

    (void)state;
    pair_open(&pair, sizeof(payload));
    say_hello(&pair);
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(mr_conn_welcome(&pair.conn, 1, 0), MR_OK);
    memset(payload, 7, sizeof(payload));
    mr_frame_put_header(MR_FRAME_DICT, 0, 1, mr_span_of(payload, sizeof(payload)),
                        header);
    assert_int_equal(send(pair.peer, header, sizeof(header), MSG_NOSIGNAL),
                     sizeof(header));
    while (sent < sizeof(payload)) {
        ssize_t size = send(pair.peer, payload + sent, sizeof(payload) - sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);

        sent += size > 0 ? (size_t)size : 0;
        if (sent < sizeof(payload))
            assert_int_equal(next(&pair, &frame), MR_AGAIN);
    }
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_true(mr_span_equal(frame.payload, mr_span_of(payload, sizeof(payload))));
    assert_true(pair.conn.input_capacity <= sizeof(payload) + MR_WIRE_HEADER_SIZE);
    pair_close(&pair);
}

static void what_we_have_already_is_dropped_and_counted(void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    greet(&pair);
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    say(&pair, MR_FRAME_DICT, 0, 2, mr_span_of("b", 1));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.sequence, 2);
    assert_int_equal(pair.conn.stats.duplicates, 1);
    pair_close(&pair);
}

static void a_dict_frame_without_a_number_is_handed_out_and_not_acknowledged(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    uint8_t bytes[1024];

    (void)state;
    greet(&pair);
    for (uint64_t i = 1; i <= 2; i++) {
        say(&pair, MR_FRAME_DICT, 0, 0, mr_span_of("a", 1));
        assert_int_equal(next(&pair, &frame), MR_OK);
        assert_int_equal(frame.sequence, 0);
        assert_int_equal(pair.conn.next_sequence, i);
        assert_int_equal(mr_conn_ack(&pair.conn, i - 1, 77), MR_OK);
        assert_int_equal(heard(&pair, bytes).type, i == 1 ? 0 : MR_FRAME_ACK);
        say(&pair, MR_FRAME_CHUNKS, 0, i, mr_span_of("b", 1));
        assert_int_equal(next(&pair, &frame), MR_OK);
        assert_int_equal(frame.sequence, i);
    }
    assert_int_equal(pair.conn.stats.duplicates, 0);
    pair_close(&pair);
}

/* The status after a greeting and this frame; it must be latched. */
static enum mr_status status_of(uint8_t type, uint16_t flags, uint64_t sequence,
                                struct mr_span payload, const char *text)
{
    struct pair pair;
    struct mr_frame frame;
    enum mr_status status;

    greet(&pair);
    say(&pair, type, flags, sequence, payload);
    status = next(&pair, &frame);
    assert_int_equal(mr_conn_next(&pair.conn, &frame), status);
    assert_non_null(strstr(pair.conn.error.text, text));
    pair_close(&pair);
    return status;
}

static void a_frame_out_of_order_is_refused(void **state)
{
    const struct mr_span a = mr_span_of("a", 1);

    (void)state;
    assert_int_equal(status_of(MR_FRAME_DICT, 0, 2, a, "missing"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_HELLO, 0, 0, a, "second HELLO"), MR_ESTATE);
    assert_int_equal(status_of(MR_FRAME_WELCOME, 0, 0, a, "no sender sends"), MR_ESTATE);
    assert_int_equal(status_of(MR_FRAME_WANTED, 0, 0, a, "no sender sends"), MR_ESTATE);
    assert_int_equal(status_of(MR_FRAME_BYE, 0, 0, a, "bad BYE"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_ERROR, 0, 0, a, "bad ERROR"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_ERROR, 0, 0, mr_span_of("\1\0\3\0why", 7), "why"),
                     MR_EREFUSED);
    assert_int_equal(status_of(99, 0, 0, a, "unknown type"), MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_DICT, MR_WIRE_FLAG_ZSTD, 1, a, "size"),
                     MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_DICT, MR_WIRE_FLAG_ZSTD, 1,
                               mr_span_of("\4\0\0\0xxxx", 8), "expand"),
                     MR_EFORMAT);
    assert_int_equal(status_of(MR_FRAME_DICT, MR_WIRE_FLAG_ZSTD, 1,
                               mr_span_of("\0\0\1\1", 4), "limit"),
                     MR_ELIMIT);
}

static void nothing_comes_before_hello_and_no_data_before_welcome(void **state)
{
    struct pair pair;
    struct mr_frame frame;

    (void)state;
    pair_open(&pair, MR_WIRE_MAX_FRAME_MIN);
    say(&pair, MR_FRAME_HEARTBEAT, 0, 0, mr_span_of("", 0));
    assert_int_equal(next(&pair, &frame), MR_ESTATE);
    pair_close(&pair);
    pair_open(&pair, MR_WIRE_MAX_FRAME_MIN);
    say_hello(&pair);
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(next(&pair, &frame), MR_ESTATE);
    pair_close(&pair);
}

static void another_version_is_told_in_an_error_frame(void **state)
{
    struct pair pair;
    struct mr_test_bytes hello =
        mr_test_bytes("4d4c5243 02 01 0000 00000000 00000000 0000000000000000");
    struct mr_wire_error_text error;
    struct mr_frame frame;
    enum mr_status status;
    uint8_t bytes[1024];

    (void)state;
    pair_open(&pair, MR_WIRE_MAX_FRAME_MIN);
    assert_int_equal(send(pair.peer, hello.data, hello.size, MSG_NOSIGNAL), hello.size);
    status = next(&pair, &frame);
    assert_int_equal(status, MR_EVERSION);
    mr_conn_refuse(&pair.conn, mr_conn_wire_code(status), pair.conn.error.text);
    frame = heard(&pair, bytes);
    assert_int_equal(frame.type, MR_FRAME_ERROR);
    assert_int_equal(mr_error_get(frame.payload, &error), MR_OK);
    assert_int_equal(error.code, MR_WIRE_ERROR_VERSION);
    assert_int_equal(recv(pair.peer, bytes, sizeof(bytes), 0), 0); /* and no more */
    pair_close(&pair);
}

static void compressed_frames_come_out_expanded(void **state)
{
    static uint8_t payload[50000], packed[60000];
    struct mr_frame_compressor compressor;
    struct pair pair;
    struct mr_frame frame;
    void *memory;
    size_t size;

    (void)state;
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (uint8_t)(i / 100);
    memory = malloc(mr_frame_compressor_size(1));
    assert_int_equal(
        mr_frame_compressor_init(&compressor, 1, memory, mr_frame_compressor_size(1)),
        MR_OK);
    size = mr_frame_compress(&compressor, mr_span_of(payload, sizeof(payload)), packed,
                             sizeof(packed));
    assert_true(size > 0 && size < sizeof(payload) / 10);
    assert_int_equal(
        mr_frame_compress(&compressor, mr_span_of("abc", 3), packed + size, 100), 0);
    greet(&pair);
    say(&pair, MR_FRAME_DELTA, MR_WIRE_FLAG_ZSTD, 1, mr_span_of(packed, size));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(frame.flags, 0);
    assert_true(mr_span_equal(frame.payload, mr_span_of(payload, sizeof(payload))));
    free(memory);
    pair_close(&pair);
}

static void an_ack_is_sent_when_it_is_news(void **state)
{
    struct pair pair;
    struct mr_frame frame;
    struct mr_ack ack;
    uint8_t bytes[1024];

    (void)state;
    greet(&pair);
    say(&pair, MR_FRAME_DICT, 0, 1, mr_span_of("a", 1));
    assert_int_equal(next(&pair, &frame), MR_OK);
    assert_int_equal(mr_conn_ack(&pair.conn, 1, 77), MR_OK);
    frame = heard(&pair, bytes);
    assert_int_equal(frame.type, MR_FRAME_ACK);
    assert_int_equal(mr_ack_get(frame.payload, &ack), MR_OK);
    assert_int_equal(ack.sequence, 1);
    assert_int_equal(mr_conn_ack(&pair.conn, 1, 77), MR_OK);
    assert_int_equal(heard(&pair, bytes).type, 0);
    assert_int_equal(mr_conn_ack(&pair.conn, 1, 78), MR_OK); /* new credit */
    assert_int_equal(heard(&pair, bytes).type, MR_FRAME_ACK);
    pair_close(&pair);
}

static void a_silent_receiver_beats_its_heart_and_a_silent_peer_times_out(void **state)
{
    struct pair pair;
    uint8_t bytes[1024];
    uint64_t now_ns;

    (void)state;
    greet(&pair);
    now_ns = pair.conn.said_ns;
    assert_int_equal(mr_conn_tick(&pair.conn, now_ns), MR_OK);
    assert_int_equal(heard(&pair, bytes).type, 0);
    assert_int_equal(mr_conn_tick(&pair.conn, now_ns + MR_WIRE_HEARTBEAT_NS), MR_OK);
    assert_int_equal(heard(&pair, bytes).type, MR_FRAME_HEARTBEAT);
    now_ns = pair.conn.heard_ns;
    assert_int_equal(mr_conn_tick(&pair.conn, now_ns + MR_WIRE_SILENCE_NS), MR_ETIMEOUT);
    pair_close(&pair);
}

static void a_peer_that_does_not_read_its_answers_is_cut_off_in_the_end(void **state)
{
    struct pair pair;
    enum mr_status status = MR_OK;
    uint64_t count = 0;

    (void)state;
    greet(&pair);
    while (status == MR_OK && count < 1000000)
        status = mr_conn_ack(&pair.conn, 0, ++count + 1000);
    assert_int_equal(status, MR_ELIMIT);
    assert_int_equal(mr_conn_flush(&pair.conn), MR_AGAIN);
    pair_close(&pair);
}

static void a_peer_that_closes_is_the_end(void **state)
{
    struct pair pair;

    (void)state;
    greet(&pair);
    assert_int_equal(mr_conn_read(&pair.conn), MR_AGAIN);
    assert_int_equal(shutdown(pair.peer, SHUT_WR), 0);
    assert_int_equal(mr_conn_read(&pair.conn), MR_END);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_max_frame_below_64_kib_is_refused),
        cmocka_unit_test(frames_come_out_though_bytes_drip_in),
        cmocka_unit_test(small_frames_that_came_together_take_one_read),
        cmocka_unit_test(a_frame_may_end_where_the_buffer_does),
        cmocka_unit_test(a_frame_larger_than_the_buffer_makes_it_grow_up_to_max_frame),
        cmocka_unit_test(what_we_have_already_is_dropped_and_counted),
        cmocka_unit_test(
            a_dict_frame_without_a_number_is_handed_out_and_not_acknowledged),
        cmocka_unit_test(a_frame_out_of_order_is_refused),
        cmocka_unit_test(nothing_comes_before_hello_and_no_data_before_welcome),
        cmocka_unit_test(another_version_is_told_in_an_error_frame),
        cmocka_unit_test(compressed_frames_come_out_expanded),
        cmocka_unit_test(an_ack_is_sent_when_it_is_news),
        cmocka_unit_test(a_silent_receiver_beats_its_heart_and_a_silent_peer_times_out),
        cmocka_unit_test(a_peer_that_does_not_read_its_answers_is_cut_off_in_the_end),
        cmocka_unit_test(a_peer_that_closes_is_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
