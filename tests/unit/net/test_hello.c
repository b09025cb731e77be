/* SPDX-License-Identifier: Apache-2.0 */
#include "net/control.h"

#include <msgpack.h>

#include "net/frame.h"
#include "tests/unit/net/net_test.h"

static const struct mr_id sender = {UINT64_C(0x0001020304050607),
                                    UINT64_C(0x08090a0b0c0d0e0f)};

static const struct mr_hello probe = {
    .sender = {UINT64_C(0x0001020304050607), UINT64_C(0x08090a0b0c0d0e0f)},
    .role = MR_ROLE_PROBE,
    .oldest = 1,
    .token = "",
    .source =
        {
            .host = "web1",
            .app = "shop",
            .version = "1.2",
            .exe = "/bin/shop",
            .pid = 4711,
            .start_ns = UINT64_C(1700000000000000000),
            .clock = {MR_CLOCK_TSC, 1431655765, 32, 1000, UINT64_C(1700000000000000001)},
            .policy = MR_POLICY_BLOCK,
            .attribute_count = 1,
            .attributes = {{"zone", "a"}},
        },
};

static struct mr_hello_message read_back(const uint8_t *bytes, size_t size)
{
    struct mr_hello_message message;
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_hello_get(mr_span_of(bytes, size), &message, &error), MR_OK);
    return message;
}

static void a_worker_says_hello(void **state)
{
    const struct mr_hello hello = {.sender = sender,
                                   .role = MR_ROLE_WORKER,
                                   .level = 2,
                                   .oldest = 300,
                                   .token = "s3cret"};
    struct mr_hello_message message;
    uint8_t bytes[256];
    size_t size = mr_hello_put(&hello, bytes, sizeof(bytes));

    (void)state;
    assert_hex(mr_span_of(bytes, size),
               "85 a6 73656e646572 c410 000102030405060708090a0b0c0d0e0f"
               "a4 726f6c65 a6 776f726b6572  a5 6c6576656c 02  a6 6f6c64657374 cd012c"
               "a5 746f6b656e a6 733363726574");
    message = read_back(bytes, size);
    assert_true(mr_id_equal(message.hello.sender, sender));
    assert_int_equal(message.hello.role, MR_ROLE_WORKER);
    assert_int_equal(message.hello.level, 2);
    assert_int_equal(message.hello.oldest, 300);
    assert_string_equal(message.hello.token, "s3cret");
    mr_hello_free(&message);
}

static void assert_same_source(const struct mr_source_info *x,
                               const struct mr_source_info *y)
{
    assert_string_equal(x->host, y->host);
    assert_string_equal(x->app, y->app);
    assert_string_equal(x->version, y->version);
    assert_string_equal(x->exe, y->exe);
    assert_int_equal(x->pid, y->pid);
    assert_int_equal(x->start_ns, y->start_ns);
    assert_int_equal(x->policy, y->policy);
    assert_int_equal(x->clock.kind, y->clock.kind);
    assert_int_equal(x->clock.mult, y->clock.mult);
    assert_int_equal(x->clock.shift, y->clock.shift);
    assert_int_equal(x->clock.ticks, y->clock.ticks);
    assert_int_equal(x->clock.realtime_ns, y->clock.realtime_ns);
    assert_int_equal(x->attribute_count, y->attribute_count);
    for (uint32_t i = 0; i < x->attribute_count; i++) {
        assert_string_equal(x->attributes[i].key, y->attributes[i].key);
        assert_string_equal(x->attributes[i].value, y->attributes[i].value);
    }
}

static void a_probe_says_what_its_source_is(void **state)
{
    struct mr_hello_message message;
    uint8_t bytes[512];
    size_t size = mr_hello_put(&probe, bytes, sizeof(bytes));

    (void)state;
    assert_hex(
        mr_span_of(bytes, size),
        "85 a6 73656e646572 c410 000102030405060708090a0b0c0d0e0f"
        "a4 726f6c65 a5 70726f6265  a5 6c6576656c 00  a6 6f6c64657374 01"
        "a6 736f75726365 89"
        "a4 686f7374 a4 77656231  a3 706964 cd1267  a3 617070 a4 73686f70"
        "a7 76657273696f6e a3 312e32  a3 657865 a9 2f62696e2f73686f70"
        "a8 73746172745f6e73 cf 17979cfe362a0000"
        "a5 636c6f636b 85 a4 6b696e64 a3 747363 a4 6d756c74 ce55555555"
        "a5 7368696674 20 a5 7469636b73 cd03e8 ab 7265616c74696d655f6e73 "
        "cf17979cfe362a0001"
        "a6 706f6c696379 a5 626c6f636b  aa 61747472696275746573 81 a4 7a6f6e65 a1 61");
    message = read_back(bytes, size);
    assert_same_source(&message.hello.source, &probe.source);
    mr_hello_free(&message);
}

static void a_clock_that_is_not_plain_tells_why_and_how(void **state)
{
    struct mr_hello hello = probe;
    struct mr_hello_message message;
    uint8_t bytes[512];
    size_t size;

    (void)state;
    message = read_back(bytes, mr_hello_put(&probe, bytes, sizeof(bytes)));
    assert_string_equal(message.hello.source.clock_warning, "");
    assert_int_equal(message.hello.source.tick_ns, 0);
    mr_hello_free(&message);
    hello.source.clock_warning = "no counter";
    hello.source.tick_ns = 1000;
    hello.source.tick_events = 32;
    size = mr_hello_put(&hello, bytes, sizeof(bytes));
    message = read_back(bytes, size);
    assert_same_source(&message.hello.source, &hello.source);
    assert_string_equal(message.hello.source.clock_warning, "no counter");
    assert_int_equal(message.hello.source.tick_ns, 1000);
    assert_int_equal(message.hello.source.tick_events, 32);
    mr_hello_free(&message);
}

static void how_much_is_kept_for_the_next_receiver_is_told_unless_it_is_nothing(
    void **state)
{
    struct mr_hello hello = probe;
    struct mr_hello_message message;
    uint8_t bytes[512];
    size_t size = mr_hello_put(&probe, bytes, sizeof(bytes)), size_with;

    (void)state;
    message = read_back(bytes, size);
    assert_int_equal(message.hello.resume_max, 0);
    mr_hello_free(&message);
    hello.resume_max = 256 << 10;
    size_with = mr_hello_put(&hello, bytes, sizeof(bytes));
    assert_hex(mr_span_of(bytes + size, size_with - size), "a6 6f6666657273 ce 00040000");
    message = read_back(bytes, size_with);
    assert_int_equal(message.hello.resume_max, 256 << 10);
    mr_hello_free(&message);
    memcpy(bytes + size + 7, "\xcf\0\0\0\1\0\0\0\5", 9); /* 4 GiB and 5 */
    message = read_back(bytes, size + 7 + 9);
    assert_int_equal(message.hello.resume_max, UINT32_MAX);
    mr_hello_free(&message);
}

static void a_hello_that_does_not_fit_is_not_written(void **state)
{
    uint8_t bytes[512];
    size_t size = mr_hello_put(&probe, bytes, sizeof(bytes));

    (void)state;
    for (size_t capacity = 0; capacity < size; capacity++)
        assert_int_equal(mr_hello_put(&probe, bytes, capacity), 0);
}

static void a_hello_that_is_cut_or_too_long_is_refused(void **state)
{
    struct mr_hello_message message;
    uint8_t bytes[512] = {0};
    size_t size = mr_hello_put(&probe, bytes, sizeof(bytes));

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(mr_hello_get(mr_span_of(bytes, cut), &message, NULL),
                         MR_EFORMAT);
    assert_int_equal(mr_hello_get(mr_span_of(bytes, size + 1), &message, NULL),
                     MR_EFORMAT);
}

static void texts_are_cut_between_characters(void **state)
{
    static char text[MR_TEXT_MAX + 3];
    struct mr_hello hello = probe;
    struct mr_hello_message message;
    static uint8_t bytes[2 * MR_TEXT_MAX];
    size_t size;

    (void)state;
    memset(text, 'x', MR_TEXT_MAX - 1);
    text[MR_TEXT_MAX - 1] = (char)0xc3; /* an e with an accent, half in and half out */
    text[MR_TEXT_MAX] = (char)0xa9;
    hello.source.exe = text;
    size = mr_hello_put(&hello, bytes, sizeof(bytes));
    message = read_back(bytes, size);
    assert_int_equal(strlen(message.hello.source.exe), MR_TEXT_MAX - 1);
    mr_hello_free(&message);
}

/* A map of pairs, packed by msgpack-c. */
static enum mr_status get_with(const char *key, void (*put)(msgpack_packer *),
                               const char *wrong)
{
    uint8_t bytes[600];
    size_t size = mr_hello_put(&probe, bytes, sizeof(bytes));
    struct mr_hello_message message;
    struct mr_error error = MR_ERROR_NONE;
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    enum mr_status status;

    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    msgpack_pack_str(&packer, strlen(key));
    msgpack_pack_str_body(&packer, key, strlen(key));
    put(&packer);
    bytes[0]++; /* one pair more: the last one counts */
    memcpy(bytes + size, buffer.data, buffer.size);
    status = mr_hello_get(mr_span_of(bytes, size + buffer.size), &message, &error);
    if (status == MR_OK)
        mr_hello_free(&message);
    else
        assert_non_null(strstr(error.text, wrong));
    msgpack_sbuffer_destroy(&buffer);
    return status;
}

static void put_uint(msgpack_packer *packer)
{
    msgpack_pack_int(packer, 5);
}

static void put_negative(msgpack_packer *packer)
{
    msgpack_pack_int(packer, -5);
}

static void put_zero(msgpack_packer *packer)
{
    msgpack_pack_int(packer, 0);
}

static void put_zero_byte(msgpack_packer *packer)
{
    msgpack_pack_str(packer, 3);
    msgpack_pack_str_body(packer, "a\0b", 3);
}

static void put_short_id(msgpack_packer *packer)
{
    msgpack_pack_bin(packer, 15);
    msgpack_pack_bin_body(packer, "123456789012345", 15);
}

static void put_deep(msgpack_packer *packer)
{
    for (int i = 0; i < 8; i++)
        msgpack_pack_array(packer, 1);
    msgpack_pack_nil(packer);
}

static void put_nested(msgpack_packer *packer)
{
    msgpack_pack_map(packer, 1);
    msgpack_pack_double(packer, 1.5);
    msgpack_pack_array(packer, 2);
    msgpack_pack_true(packer);
    msgpack_pack_ext(packer, 4, 7);
    msgpack_pack_ext_body(packer, "abcd", 4);
}

static void a_value_of_the_wrong_kind_is_refused_by_its_key(void **state)
{
    (void)state;
    assert_int_equal(get_with("level", put_zero, ""), MR_OK);
    assert_int_equal(get_with("level", put_negative, "level"), MR_EFORMAT);
    assert_int_equal(get_with("level", put_uint, "level"), MR_EFORMAT); /* of a probe */
    assert_int_equal(get_with("oldest", put_zero, "oldest"), MR_EFORMAT);
    assert_int_equal(get_with("role", put_uint, "role"), MR_EFORMAT);
    assert_int_equal(get_with("role", put_zero_byte, "role"), MR_EFORMAT);
    assert_int_equal(get_with("token", put_zero_byte, "token"), MR_EFORMAT);
    assert_int_equal(get_with("sender", put_short_id, "sender"), MR_EFORMAT);
    assert_int_equal(get_with("offers", put_negative, "offers"), MR_EFORMAT);
    assert_int_equal(get_with("source", put_uint, "source"), MR_EFORMAT);
    assert_int_equal(get_with("source", put_nested, "source"), MR_EFORMAT);
}

/* Who begins next to 2^64 would have its receiver count past it. */
static void numbers_of_frames_that_would_run_over_are_refused(void **state)
{
    const uint64_t numbers[] = {MR_WIRE_SEQUENCE_MAX, MR_WIRE_SEQUENCE_MAX + 1,
                                UINT64_MAX - 1, UINT64_MAX};

    (void)state;
    for (uint32_t i = 0; i < MR_ARRAY_COUNT(numbers); i++) {
        struct mr_hello hello = {
            .sender = {1, 2}, .role = MR_ROLE_WORKER, .level = 1, .oldest = numbers[i]};
        struct mr_hello_message message;
        struct mr_error error = MR_ERROR_NONE;
        uint8_t bytes[256];
        size_t size = mr_hello_put(&hello, bytes, sizeof(bytes));
        bool is_fine = numbers[i] <= MR_WIRE_SEQUENCE_MAX;

        assert_int_equal(mr_hello_get(mr_span_of(bytes, size), &message, &error),
                         is_fine ? MR_OK : MR_EFORMAT);
        if (is_fine)
            mr_hello_free(&message);
        else
            assert_non_null(strstr(error.text, "oldest"));
        hello.oldest = 8;
        hello.custody = (struct mr_custody_hello){
            .is_told = true, .epoch = 3, .acked = 7, .sent = numbers[i], .attempt = 4};
        size = mr_hello_put(&hello, bytes, sizeof(bytes));
        assert_int_equal(mr_hello_get(mr_span_of(bytes, size), &message, &error),
                         is_fine ? MR_OK : MR_EFORMAT);
        if (is_fine)
            mr_hello_free(&message);
    }
}

static void custody_is_told_and_must_be_sound(void **state)
{
    struct mr_hello hello = {
        .sender = {1, 2}, .role = MR_ROLE_WORKER, .level = 1, .oldest = 8};
    const struct mr_custody_hello custody = {.is_told = true,
                                             .custodian = {5, 6},
                                             .epoch = 3,
                                             .acked = 7,
                                             .sent = 9,
                                             .attempt = 4,
                                             .was_shown = true};
    struct mr_hello_message message;
    struct mr_error error = MR_ERROR_NONE;
    uint8_t bytes[256];

    (void)state;
    hello.custody = custody;
    message = read_back(bytes, mr_hello_put(&hello, bytes, sizeof(bytes)));
    assert_true(message.hello.custody.is_told);
    assert_true(mr_id_equal(message.hello.custody.custodian, custody.custodian));
    assert_int_equal(message.hello.custody.epoch, 3);
    assert_int_equal(message.hello.custody.acked, 7);
    assert_int_equal(message.hello.custody.sent, 9);
    assert_int_equal(message.hello.custody.attempt, 4);
    assert_true(message.hello.custody.was_shown);
    mr_hello_free(&message);
    hello.custody.sent = 6; /* less than acknowledged */
    assert_int_equal(
        mr_hello_get(mr_span_of(bytes, mr_hello_put(&hello, bytes, sizeof(bytes))),
                     &message, &error),
        MR_EFORMAT);
    assert_non_null(strstr(error.text, "custody"));
    hello.custody.sent = 9;
    hello.oldest = 9; /* acked is 7 */
    assert_int_equal(
        mr_hello_get(mr_span_of(bytes, mr_hello_put(&hello, bytes, sizeof(bytes))),
                     &message, &error),
        MR_EFORMAT);
}

static void unknown_keys_are_ignored_but_not_too_deep_ones(void **state)
{
    (void)state;
    assert_int_equal(get_with("later", put_nested, ""), MR_OK);
    assert_int_equal(get_with("later", put_deep, "HELLO"), MR_EFORMAT);
}

static void a_key_that_must_be_there_is_missed(void **state)
{
    struct mr_hello_message message;
    struct mr_error error = MR_ERROR_NONE;
    uint8_t bytes[512];
    size_t size = mr_hello_put(&probe, bytes, sizeof(bytes));

    (void)state;
    memcpy(bytes + 2, "Xender", 6); /* the first key */
    assert_int_equal(mr_hello_get(mr_span_of(bytes, size), &message, &error), MR_EFORMAT);
    assert_non_null(strstr(error.text, "sender"));
}

static void msgpack_c_reads_what_we_write(void **state)
{
    msgpack_unpacked unpacked;
    uint8_t bytes[512];
    size_t size = mr_hello_put(&probe, bytes, sizeof(bytes)), offset = 0;

    (void)state;
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (const char *)bytes, size, &offset),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(offset, size);
    assert_int_equal(unpacked.data.type, MSGPACK_OBJECT_MAP);
    assert_int_equal(unpacked.data.via.map.size, 5);
    msgpack_unpacked_destroy(&unpacked);
}

static void a_clock_turns_ticks_into_unix_time(void **state)
{
    struct mr_clock_info clock = {MR_CLOCK_TSC, 3, 1, 1000,
                                  1000000}; /* 1.5 ns per tick */

    (void)state;
    assert_int_equal(mr_clock_info_ns(&clock, 1000), 1000000);
    assert_int_equal(mr_clock_info_ns(&clock, 1003), 1000004);
    assert_int_equal(mr_clock_info_ns(&clock, 997), 999995); /* the shift rounds down */
    clock.mult = UINT32_MAX;
    clock.shift = 0;
    assert_int_equal(mr_clock_info_ns(&clock, UINT64_MAX), UINT64_MAX);
    assert_int_equal(mr_clock_info_ns(&clock, 0), 0);
    clock.shift = 63;
    assert_int_equal(mr_clock_info_ns(&clock, 0), 999999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_says_hello),
        cmocka_unit_test(a_probe_says_what_its_source_is),
        cmocka_unit_test(a_clock_that_is_not_plain_tells_why_and_how),
        cmocka_unit_test(
            how_much_is_kept_for_the_next_receiver_is_told_unless_it_is_nothing),
        cmocka_unit_test(a_hello_that_does_not_fit_is_not_written),
        cmocka_unit_test(a_hello_that_is_cut_or_too_long_is_refused),
        cmocka_unit_test(texts_are_cut_between_characters),
        cmocka_unit_test(a_value_of_the_wrong_kind_is_refused_by_its_key),
        cmocka_unit_test(numbers_of_frames_that_would_run_over_are_refused),
        cmocka_unit_test(custody_is_told_and_must_be_sound),
        cmocka_unit_test(unknown_keys_are_ignored_but_not_too_deep_ones),
        cmocka_unit_test(a_key_that_must_be_there_is_missed),
        cmocka_unit_test(msgpack_c_reads_what_we_write),
        cmocka_unit_test(a_clock_turns_ticks_into_unix_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
