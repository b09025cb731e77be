/* SPDX-License-Identifier: Apache-2.0 */
#include "net/frame.h"

#include "net/bytes.h"
#include "tests/unit/net/net_test.h"

#define MAX_FRAME MR_WIRE_MAX_FRAME_MIN

/* Header and payload of one frame. */
static struct mr_test_bytes make_frame(uint8_t type, uint16_t flags, uint64_t sequence,
                                       struct mr_span payload)
{
    struct mr_test_bytes bytes = {.size = MR_WIRE_HEADER_SIZE + payload.size};

    if (payload.size)
        memcpy(bytes.data + MR_WIRE_HEADER_SIZE, payload.data, payload.size);
    mr_frame_put_header(type, flags, sequence, payload, bytes.data);
    return bytes;
}

static enum mr_status take(const struct mr_test_bytes *bytes, struct mr_frame *frame)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_span span = mr_test_span(bytes);
    size_t need;
    enum mr_status status = mr_frame_take(&span, MAX_FRAME, frame, &need, &error);

    assert_int_equal(error.status, mr_status_is_error(status) ? status : MR_OK);
    assert_int_equal(span.size, status == MR_OK ? 0 : bytes->size);
    return status;
}

static void a_header_is_24_bytes_as_the_format_has_them(void **state)
{
    struct mr_test_bytes empty =
        make_frame(MR_FRAME_HEARTBEAT, 0, 0, mr_span_of(NULL, 0));
    struct mr_test_bytes data =
        make_frame(MR_FRAME_CHUNKS, 0, 0x0102, mr_span_of("abc", 3));
    struct mr_test_bytes packed =
        make_frame(MR_FRAME_DELTA, MR_WIRE_FLAG_ZSTD, 1, mr_span_of("\0", 1));

    (void)state;
    assert_hex(mr_test_span(&empty),
               "4d4c5243 01 05 0000 00000000 7fa8c307 0000000000000000");
    assert_hex(mr_test_span(&data),
               "4d4c5243 01 11 0000 03000000 4f18803e 0201000000000000 616263");
    assert_hex(mr_test_span(&packed),
               "4d4c5243 01 12 0100 01000000 a3d6895a 0100000000000000 00");
}

static void a_frame_comes_back(void **state)
{
    struct mr_test_bytes bytes =
        make_frame(MR_FRAME_DICT, 0, 77, mr_span_of("payload", 7));
    struct mr_frame frame;

    (void)state;
    assert_int_equal(take(&bytes, &frame), MR_OK);
    assert_int_equal(frame.type, MR_FRAME_DICT);
    assert_int_equal(frame.sequence, 77);
    assert_true(mr_span_equal(frame.payload, mr_span_of("payload", 7)));
}

static void a_frame_that_is_cut_anywhere_says_how_much_it_needs(void **state)
{
    struct mr_test_bytes bytes =
        make_frame(MR_FRAME_DICT, 0, 1, mr_span_of("payload", 7));

    (void)state;
    for (size_t size = 0; size < bytes.size; size++) {
        struct mr_span span = mr_span_of(bytes.data, size);
        struct mr_frame frame;
        size_t need;

        assert_int_equal(mr_frame_take(&span, MAX_FRAME, &frame, &need, NULL), MR_AGAIN);
        assert_int_equal(need,
                         size < MR_WIRE_HEADER_SIZE ? MR_WIRE_HEADER_SIZE : bytes.size);
    }
}

static void one_wrong_bit_anywhere_is_seen(void **state)
{
    struct mr_test_bytes bytes =
        make_frame(MR_FRAME_DICT, 0, 1, mr_span_of("payload", 7));
    struct mr_frame frame;

    (void)state;
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        struct mr_test_bytes broken = bytes;

        broken.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_not_equal(take(&broken, &frame), MR_OK);
    }
}

static enum mr_status take_with(size_t offset, uint8_t value)
{
    struct mr_test_bytes bytes =
        make_frame(MR_FRAME_DICT, 0, 1, mr_span_of("payload", 7));
    struct mr_frame frame;

    bytes.data[offset] = value;
    return take(&bytes, &frame);
}

static void each_broken_rule_has_its_status(void **state)
{
    (void)state;
    assert_int_equal(take_with(0, 'X'), MR_EFORMAT);
    assert_int_equal(take_with(4, 2), MR_EVERSION);
    assert_int_equal(take_with(5, 8), MR_EFORMAT);
    assert_int_equal(take_with(6, 2), MR_EFORMAT);
    assert_int_equal(take_with(11, 1), MR_ELIMIT);
    assert_int_equal(take_with(12, 0), MR_ECHECKSUM);
    assert_int_equal(take_with(24, 'q'), MR_ECHECKSUM);
    assert_int_equal(take_with(5, MR_FRAME_HELLO), MR_EFORMAT); /* control with one */
}

static enum mr_status take_unnumbered(uint8_t type, uint16_t flags, size_t size)
{
    static uint8_t payload[MR_WIRE_MAX_CONTROL + 1], bytes[sizeof(payload) + 24];
    struct mr_span span;
    struct mr_frame frame;
    size_t need;

    mr_frame_put_header(type, flags, 0, mr_span_of(payload, size), bytes);
    memcpy(bytes + MR_WIRE_HEADER_SIZE, payload, size);
    span = mr_span_of(bytes, MR_WIRE_HEADER_SIZE + size);
    return mr_frame_take(&span, 2 * MR_WIRE_MAX_CONTROL, &frame, &need, NULL);
}

static void of_data_frames_dict_alone_may_go_without_a_number(void **state)
{
    struct mr_test_bytes dict = make_frame(MR_FRAME_DICT, 0, 0, mr_span_of("\x90", 1));

    (void)state;
    assert_hex(mr_test_span(&dict),
               "4d4c5243 01 10 0000 01000000 59e257ef 0000000000000000 90");
    assert_int_equal(take_unnumbered(MR_FRAME_DICT, 0, 7), MR_OK);
    assert_int_equal(take_unnumbered(MR_FRAME_DICT, 0, MR_WIRE_MAX_CONTROL), MR_OK);
    assert_int_equal(take_unnumbered(MR_FRAME_DICT, 0, MR_WIRE_MAX_CONTROL + 1),
                     MR_ELIMIT);
    assert_int_equal(take_unnumbered(MR_FRAME_DICT, MR_WIRE_FLAG_ZSTD, 7), MR_EFORMAT);
    assert_int_equal(take_unnumbered(MR_FRAME_CHUNKS, 0, 7), MR_EFORMAT);
    assert_int_equal(take_unnumbered(MR_FRAME_DELTA, 0, 7), MR_EFORMAT);
}

static void control_frames_are_never_compressed(void **state)
{
    struct mr_test_bytes bytes =
        make_frame(MR_FRAME_HELLO, MR_WIRE_FLAG_ZSTD, 0, mr_span_of("payload", 7));
    struct mr_frame frame;

    (void)state;
    assert_int_equal(take(&bytes, &frame), MR_EFORMAT);
}

static void types_have_names_and_are_data_from_16_on(void **state)
{
    (void)state;
    assert_string_equal(mr_frame_type_name(MR_FRAME_WELCOME), "WELCOME");
    assert_string_equal(mr_frame_type_name(99), "?");
    assert_string_equal(mr_frame_type_name(MR_FRAME_RESUME), "RESUME");
    assert_string_equal(mr_frame_type_name(MR_FRAME_OFFER), "OFFER");
    assert_false(mr_frame_is_data(MR_FRAME_BYE));
    assert_false(mr_frame_is_data(MR_FRAME_RESUME));
    assert_false(mr_frame_is_data(MR_FRAME_OFFER));
    assert_true(mr_frame_is_data(MR_FRAME_DICT));
    assert_false(mr_frame_is_data(99));
}

static void a_welcome_tells_the_epoch_unless_it_is_older(void **state)
{
    struct mr_welcome in = {1, 0x400000, 5, 1 << 20, 1, 7, {0x1122, 0x33}}, out;
    uint8_t bytes[MR_WELCOME_SIZE];

    (void)state;
    mr_welcome_put(&in, bytes);
    assert_hex(mr_span_of(bytes, sizeof(bytes)),
               "0100 0100 00004000 0500000000000000 0000100000000000 0700000000000000"
               "00000000000011220000000000000033");
    assert_int_equal(mr_welcome_get(mr_span_of(bytes, sizeof(bytes)), &out), MR_OK);
    assert_int_equal(out.max_frame, in.max_frame);
    assert_int_equal(out.next_sequence, 5);
    assert_int_equal(out.flags, MR_WELCOME_WANTS_DICTIONARY);
    assert_int_equal(out.credit, 1 << 20);
    assert_int_equal(out.epoch, 7);
    assert_true(mr_id_equal(out.receiver, in.receiver));
    assert_int_equal(mr_welcome_get(mr_span_of(bytes, MR_WELCOME_SIZE_MIN), &out), MR_OK);
    assert_int_equal(out.epoch, 0);
    assert_true(mr_id_is_zero(out.receiver));
    assert_int_equal(mr_welcome_get(mr_span_of(bytes, MR_WELCOME_SIZE_MIN - 1), &out),
                     MR_EFORMAT);
    bytes[8] = 0;
    assert_int_equal(mr_welcome_get(mr_span_of(bytes, sizeof(bytes)), &out), MR_EFORMAT);
    in.epoch = MR_WIRE_SEQUENCE_MAX;
    mr_welcome_put(&in, bytes);
    assert_int_equal(mr_welcome_get(mr_span_of(bytes, sizeof(bytes)), &out), MR_OK);
    in.epoch++;
    mr_welcome_put(&in, bytes);
    assert_int_equal(mr_welcome_get(mr_span_of(bytes, sizeof(bytes)), &out), MR_EFORMAT);
}

static void an_ack_is_24_bytes_and_what_is_behind_them_is_passed_over(void **state)
{
    uint8_t bytes[MR_ACK_SIZE + 1] = {0};
    struct mr_ack ack;

    (void)state;
    mr_ack_put(0x0102030405060708, 4096, bytes);
    assert_hex(mr_span_of(bytes, MR_ACK_SIZE),
               "0807060504030201 0010000000000000 0000000000000000");
    memset(bytes + 16, 0xff, sizeof(bytes) - 16);
    assert_int_equal(mr_ack_get(mr_span_of(bytes, sizeof(bytes)), &ack), MR_OK);
    assert_int_equal(ack.sequence, 0x0102030405060708);
    assert_int_equal(ack.credit, 4096);
    for (size_t cut = 0; cut < MR_ACK_SIZE; cut++)
        assert_int_equal(mr_ack_get(mr_span_of(bytes, cut), &ack), MR_EFORMAT);
}

static void a_resume_is_a_sequence_and_bytes_that_nobody_reads_here(void **state)
{
    uint8_t bytes[MR_RESUME_HEAD_SIZE + 3] = {0};
    uint64_t sequence = 0;
    struct mr_span rest;

    (void)state;
    assert_int_equal(MR_FRAME_RESUME, 12);
    assert_int_equal(take_unnumbered(MR_FRAME_RESUME, 0, MR_WIRE_MAX_CONTROL), MR_OK);
    assert_int_equal(take_unnumbered(MR_FRAME_RESUME, 0, MR_WIRE_MAX_CONTROL + 1),
                     MR_ELIMIT);
    mr_resume_frame_put_head(0x0102030405060708, bytes);
    memcpy(bytes + MR_RESUME_HEAD_SIZE, "abc", 3);
    assert_hex(mr_span_of(bytes, sizeof(bytes)), "0807060504030201 616263");
    assert_int_equal(
        mr_resume_frame_get(mr_span_of(bytes, sizeof(bytes)), &sequence, &rest), MR_OK);
    assert_int_equal(sequence, 0x0102030405060708);
    assert_true(mr_span_equal(rest, mr_span_of("abc", 3)));
    for (size_t cut = 0; cut <= MR_RESUME_HEAD_SIZE; cut++)
        assert_int_equal(mr_resume_frame_get(mr_span_of(bytes, cut), &sequence, &rest),
                         MR_EFORMAT);
}

static void an_offer_is_a_step_and_what_is_behind_it_is_passed_over(void **state)
{
    uint8_t bytes[MR_OFFER_SIZE + 1] = {0};
    enum mr_offer_step step;

    (void)state;
    assert_int_equal(MR_FRAME_OFFER, 13);
    mr_offer_put(MR_OFFER_GRANTED, bytes);
    assert_hex(mr_span_of(bytes, MR_OFFER_SIZE), "03000000 00000000");
    bytes[4] = bytes[MR_OFFER_SIZE] = 0xff;
    assert_int_equal(mr_offer_get(mr_span_of(bytes, sizeof(bytes)), &step), MR_OK);
    assert_int_equal(step, MR_OFFER_GRANTED);
    for (size_t cut = 0; cut < MR_OFFER_SIZE; cut++)
        assert_int_equal(mr_offer_get(mr_span_of(bytes, cut), &step), MR_EFORMAT);
    bytes[0] = MR_OFFER_GRANTED + 1;
    assert_int_equal(mr_offer_get(mr_span_of(bytes, sizeof(bytes)), &step), MR_EFORMAT);
    bytes[0] = 0;
    assert_int_equal(mr_offer_get(mr_span_of(bytes, sizeof(bytes)), &step), MR_EFORMAT);
}

static void an_error_carries_its_reason_in_words(void **state)
{
    uint8_t bytes[16];
    struct mr_wire_error_text error;
    size_t size = mr_error_put(MR_WIRE_ERROR_TOKEN, "no token", bytes, sizeof(bytes));

    (void)state;
    assert_hex(mr_span_of(bytes, size), "0500 0800 6e6f20746f6b656e");
    assert_int_equal(mr_error_get(mr_span_of(bytes, size), &error), MR_OK);
    assert_int_equal(error.code, MR_WIRE_ERROR_TOKEN);
    assert_true(mr_span_equal(error.text, mr_span_of("no token", 8)));
    assert_int_equal(mr_error_get(mr_span_of(bytes, size - 1), &error), MR_EFORMAT);
    assert_int_equal(
        mr_error_put(MR_WIRE_ERROR_TOKEN, "a text that is too long", bytes, 16), 16);
    assert_int_equal(mr_error_get(mr_span_of(bytes, 16), &error), MR_OK);
    assert_int_equal(error.text.size, 12);
}

static void bye_and_move_are_small(void **state)
{
    uint8_t bye[MR_BYE_SIZE], move[MR_MOVE_SIZE], reason;
    uint32_t jitter_ms;

    (void)state;
    mr_bye_put(MR_BYE_DRAINING, bye);
    mr_move_put(1500, move);
    assert_hex(mr_span_of(bye, sizeof(bye)), "02 00000000000000");
    assert_hex(mr_span_of(move, sizeof(move)), "dc050000");
    assert_int_equal(mr_bye_get(mr_span_of(bye, sizeof(bye)), &reason), MR_OK);
    assert_int_equal(reason, MR_BYE_DRAINING);
    assert_int_equal(mr_move_get(mr_span_of(move, sizeof(move)), &jitter_ms), MR_OK);
    assert_int_equal(jitter_ms, 1500);
    assert_int_equal(mr_bye_get(mr_span_of(bye, 7), &reason), MR_EFORMAT);
    assert_int_equal(mr_move_get(mr_span_of(move, 3), &jitter_ms), MR_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_24_bytes_as_the_format_has_them),
        cmocka_unit_test(a_frame_comes_back),
        cmocka_unit_test(a_frame_that_is_cut_anywhere_says_how_much_it_needs),
        cmocka_unit_test(one_wrong_bit_anywhere_is_seen),
        cmocka_unit_test(each_broken_rule_has_its_status),
        cmocka_unit_test(of_data_frames_dict_alone_may_go_without_a_number),
        cmocka_unit_test(control_frames_are_never_compressed),
        cmocka_unit_test(types_have_names_and_are_data_from_16_on),
        cmocka_unit_test(a_welcome_tells_the_epoch_unless_it_is_older),
        cmocka_unit_test(an_ack_is_24_bytes_and_what_is_behind_them_is_passed_over),
        cmocka_unit_test(a_resume_is_a_sequence_and_bytes_that_nobody_reads_here),
        cmocka_unit_test(an_offer_is_a_step_and_what_is_behind_it_is_passed_over),
        cmocka_unit_test(an_error_carries_its_reason_in_words),
        cmocka_unit_test(bye_and_move_are_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
