/* SPDX-License-Identifier: Apache-2.0 */
#include "net/control.h"

#include <msgpack.h>

#include "tests/unit/net/net_test.h"

#define A "c4100102030405060708090a0b0c0d0e0f10"
#define B "c410f1f2f3f4f5f6f7f8f9fafbfcfdfeff00"

struct sample {
    struct mr_dict_item item;
    const char *hex;
};

/* One of each kind; the bytes are those of the item in an array of one. */
static const struct sample samples[] = {
    {{.kind = MR_DICT_MODULE,
      .module = {2,
                 0,
                 0x1000000,
                 4096,
                 1,
                 0x400000,
                 0x1000,
                 {(const uint8_t *)"\xab\xcd", 2},
                 "/a"}},
     "9a 01 02 00 ce01000000 ce00400000 cd1000 cd1000 c402abcd a22f61 01"},
    {{.kind = MR_DICT_MODULE_GONE, .module_gone = {3, 1}}, "93 02 03 01"},
    {{.kind = MR_DICT_NAMED_SITE, .named_site = {0x10000, 12, 3, "span", "f.c"}},
     "96 03 ce00010000 a47370616e a3662e63 0c 03"},
    {{.kind = MR_DICT_STREAM, .stream = {1, 4711, 0, 1, "io"}},
     "96 04 01 cd1267 a2696f 00 01"},
    {{.kind = MR_DICT_LABEL_KEY, .label_key = {1, 2, "user"}}, "94 05 01 a475736572 02"},
    {{.kind = MR_DICT_COUNTER, .counter = {1, 0, "cycles", "1", "no"}},
     "96 06 01 a66379636c6573 a131 00 a26e6f"},
    {{.kind = MR_DICT_SYNC, .sync = {1, 1000, 300}}, "94 07 01 cd03e8 cd012c"},
    {{.kind = MR_DICT_STRING, .string = {5, "text"}}, "93 08 05 a474657874"},
    {{.kind = MR_DICT_SOURCE_LOSS, .source_loss = {4, 100}}, "93 09 04 64"},
    {{.kind = MR_DICT_SITE,
      .site = {{1, 2},
               MR_SITE_FUNCTION,
               "app",
               {(const uint8_t *)"\xab", 1},
               64,
               "main",
               "m.c",
               7,
               MR_QUALITY_DEBUG}},
     "9a 10 c41000000000000000010000000000000002 00 a3617070 c401ab 40 a46d61696e "
     "a36d2e63 07 02"},
    {{.kind = MR_DICT_SCOPE, .scope = {{1, 2}, "shop", "1", ""}},
     "95 11 c41000000000000000010000000000000002 a473686f70 a131 a0"},
    {{.kind = MR_DICT_SOURCE,
      .source = {{1, 2},
                 {3, 4},
                 {5, 6},
                 "h",
                 "a",
                 "v",
                 "e",
                 9,
                 10,
                 11,
                 MR_CLOCK_MONOTONIC,
                 MR_SOURCE_DIED,
                 MR_POLICY_OVERWRITE}},
     "9e 12 c41000000000000000010000000000000002 c41000000000000000030000000000000004"
     "a168 09 a161 a176 a165 0a 02 c41000000000000000050000000000000006 02 0b 02"},
    {{.kind = MR_DICT_OUTER, .outer = {{1, 2}, {3, 4}, 2}},
     "94 13 c41000000000000000010000000000000002 c41000000000000000030000000000000004 "
     "02"},
    {{.kind = MR_DICT_NODE,
      .node = {{1, 2},
               {3, 4},
               MR_EXACTNESS_EXACT,
               {(const uint8_t *)"0123456789abcdef\x05", 17}}},
     "95 14 c41000000000000000010000000000000002 c41000000000000000030000000000000004 01"
     "c411 30313233343536373839616263646566 05"},
    {{.kind = MR_DICT_SPAN_COUNTER, .span_counter = {{1, 2}, {3, 4}, "cycles", "1", ""}},
     "96 15 c41000000000000000010000000000000002 c41000000000000000030000000000000004"
     "a66379636c6573 a131 a0"},
    {{.kind = MR_DICT_TICKER, .ticker = {1, 2, 300, 4}}, "95 0b 01 02 cd012c 04"},
    {{.kind = MR_DICT_PRUNED, .pruned = {0x01000010, 2, 3, 1024, 5, 50}},
     "97 0c ce01000010 02 03 cd0400 05 32"},
    {{.kind = MR_DICT_NOTE, .note = {{1, 2}, {3, 4}, "tick_ns", "1000", 9}},
     "96 16 c41000000000000000010000000000000002 c41000000000000000030000000000000004"
     "a77469636b5f6e73 a431303030 09"},
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static size_t write_one(const struct mr_dict_item *item, uint8_t *out, size_t capacity)
{
    struct mr_dict_writer writer;

    mr_dict_writer_init(&writer, out, capacity);
    assert_int_equal(mr_dict_put(&writer, item), MR_OK);
    return mr_dict_writer_finish(&writer);
}

static void each_kind_of_item_has_its_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        uint8_t bytes[512];
        size_t size = write_one(&samples[i].item, bytes, sizeof(bytes));

        assert_hex(mr_span_of(bytes, 5), "dd 00000001");
        assert_hex(mr_span_of(bytes + 5, size - 5), samples[i].hex);
    }
}

/* What the writer makes of an item that was read says all that the reader read. */
static void assert_writes_the_same(const struct mr_dict_item *item, const char *hex)
{
    uint8_t bytes[512];
    size_t size = write_one(item, bytes, sizeof(bytes));

    assert_hex(mr_span_of(bytes + 5, size - 5), hex);
}

static void all_kinds_come_back_from_one_payload(void **state)
{
    struct mr_dict_writer writer;
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;
    uint8_t bytes[4096];
    size_t size;

    (void)state;
    mr_dict_writer_init(&writer, bytes, sizeof(bytes));
    for (int i = 0; i < SAMPLES; i++)
        assert_int_equal(mr_dict_put(&writer, &samples[i].item), MR_OK);
    size = mr_dict_writer_finish(&writer);
    assert_int_equal(mr_dict_open(&reader, mr_span_of(bytes, size), &error), MR_OK);
    for (int i = 0; i < SAMPLES; i++) {
        assert_int_equal(mr_dict_next(&reader, &item, &error), MR_OK);
        assert_int_equal(item.kind, samples[i].item.kind);
        assert_writes_the_same(&item, samples[i].hex);
    }
    assert_int_equal(mr_dict_next(&reader, &item, &error), MR_END);
    assert_int_equal(reader.unknown, 0);
    mr_dict_close(&reader);
}

static void items_are_as_they_were_written(void **state)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    uint8_t bytes[512];
    size_t size = write_one(&samples[9].item, bytes, sizeof(bytes));

    (void)state;
    assert_int_equal(mr_dict_open(&reader, mr_span_of(bytes, size), NULL), MR_OK);
    assert_int_equal(mr_dict_next(&reader, &item, NULL), MR_OK);
    memset(bytes, 0xff, sizeof(bytes)); /* the item does not need the payload any more */
    assert_string_equal(item.site.module, "app");
    assert_string_equal(item.site.name, "main");
    assert_string_equal(item.site.file, "m.c");
    assert_int_equal(item.site.line, 7);
    assert_int_equal(item.site.quality, MR_QUALITY_DEBUG);
    assert_true(mr_span_equal(item.site.build_id, mr_span_of("\xab", 1)));
    mr_dict_close(&reader);
}

static void a_full_writer_says_so_and_keeps_what_it_has(void **state)
{
    struct mr_dict_writer writer;
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    uint8_t bytes[64];
    uint32_t count = 0;

    (void)state;
    mr_dict_writer_init(&writer, bytes, sizeof(bytes));
    assert_int_equal(mr_dict_writer_finish(&writer), 0);
    while (mr_dict_put(&writer, &samples[7].item) == MR_OK)
        count++;
    assert_int_equal(count, (sizeof(bytes) - 5) / 8);
    assert_int_equal(
        mr_dict_open(&reader, mr_span_of(bytes, mr_dict_writer_finish(&writer)), NULL),
        MR_OK);
    while (mr_dict_next(&reader, &item, NULL) == MR_OK)
        count--;
    assert_int_equal(count, 0);
    mr_dict_close(&reader);
    mr_dict_writer_init(&writer, bytes, 3);
    assert_int_equal(mr_dict_put(&writer, &samples[7].item), MR_AGAIN);
}

static enum mr_status read_hex(const char *hex, uint64_t *unknown)
{
    struct mr_test_bytes bytes = mr_test_bytes(hex);
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status = mr_dict_open(&reader, mr_test_span(&bytes), &error);

    while (status == MR_OK)
        status = mr_dict_next(&reader, &item, &error);
    assert_int_equal(error.status, mr_status_is_error(status) ? status : MR_OK);
    *unknown = reader.unknown;
    mr_dict_close(&reader);
    return status;
}

static void check(const char *hex, enum mr_status status)
{
    uint64_t unknown;

    assert_int_equal(read_hex(hex, &unknown), status);
}

static void unknown_kinds_are_counted_and_more_elements_are_ignored(void **state)
{
    uint64_t unknown;

    (void)state;
    assert_int_equal(read_hex("93  92 60 81a161c0  95 02 03 01 92c0c2 cb3ff8000000000000"
                              "92 ccff c0",
                              &unknown),
                     MR_END);
    assert_int_equal(unknown, 2);
}

static void items_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    check("90", MR_END);
    check("91 93 02 03 01", MR_END);
    check("", MR_EFORMAT);
    check("80", MR_EFORMAT);                             /* no array */
    check("91 93 02 03 01 00", MR_EFORMAT);              /* a byte too many */
    check("92 93 02 03 01", MR_EFORMAT);                 /* an item too few */
    check("91 02", MR_EFORMAT);                          /* item is no array */
    check("91 90", MR_EFORMAT);                          /* without a kind */
    check("91 92 a0 01", MR_EFORMAT);                    /* kind is no number */
    check("91 92 02 03", MR_EFORMAT);                    /* too few elements */
    check("91 93 02 a0 01", MR_EFORMAT);                 /* wrong type */
    check("91 93 02 cf0000000100000000 01", MR_EFORMAT); /* more than 32 bits */
    check("91 93 08 01 a3610062", MR_EFORMAT);           /* zero byte in a text */
    check("91 94 05 01 a475736572 02", MR_END);
    check("91 96 06 00 a0 a131 00 a0", MR_EFORMAT); /* a counter without a name */
    check("91 95 06 00 a161 a131 00", MR_EFORMAT);  /* nor with nothing on absence */
    check("91 96 06 00 a161 a131 00 a0", MR_END);
    check("91 96 04 00 01 a0 00 00", MR_EFORMAT); /* stream 0 */
    check("91 93 09 00 64", MR_EFORMAT);          /* reasons are 1 to 9 */
    check("91 93 09 0a 64", MR_EFORMAT);
    check("91 93 09 04 cf0100000000000001", MR_EFORMAT); /* more than 2^56 events */
    check("91 95 0a 00 00 cf0100000000000001 00", MR_EFORMAT);
    check("91 96 03 cdffff a0 a0 00 00", MR_EFORMAT);  /* no named site */
    check("91 94 13 c403616263 " A " 02", MR_EFORMAT); /* id of 3 bytes */
    check("91 95 14 " A B " 03 c400", MR_EFORMAT);     /* exactness */
    check("91 95 14 " A B " 00 c400", MR_END);
    check("91 95 14 " A B " 00 c40130", MR_EFORMAT); /* no child list */
    check("91 9a 01 00 00 ce00ffffff 00 01 00 c400 a0 00",
          MR_EFORMAT); /* no site of a module */
    check("91 9a 01 00 00 ce3fffffff 00 02 00 c400 a0 00",
          MR_EFORMAT); /* past the last site */
    check("91 9a 01 00 00 ce3fffffff 00 01 00 c400 a0 00", MR_END);
    check("91 9a 01 00 00 ce40000000 00 ce20000000 00 c400 a0 00",
          MR_END); /* beyond the last site: a library far from the others */
    check("91 9a 01 00 00 cefffffffe 00 01 00 c400 a0 00", MR_END);
    check("91 9a 01 00 00 cefffffffe 00 02 00 c400 a0 00", MR_EFORMAT);
}

static void msgpack_that_promises_more_than_there_is_is_refused(void **state)
{
    (void)state;
    check("ddffffffff", MR_EFORMAT);
    check("91 dfffffffff", MR_EFORMAT);
    check("91 93 08 01 dbffffffff61", MR_EFORMAT);
    check("91 91 91 91 91 91 91 91 90", MR_EFORMAT); /* 9 levels */
    check("91 92 60 91 91 91 91 91 91 c0", MR_END);  /* 8 levels */
    check("91 92 60 c1", MR_EFORMAT);                /* a byte that msgpack never uses */
}

static void a_payload_that_is_cut_anywhere_is_refused(void **state)
{
    struct mr_dict_reader reader;
    uint8_t bytes[512];

    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        size_t size = write_one(&samples[i].item, bytes, sizeof(bytes));

        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(mr_dict_open(&reader, mr_span_of(bytes, cut), NULL),
                             MR_EFORMAT);
    }
}

/* msgpack-c asks for 128 GiB when five bytes say so: it gets only what we have taken. */
static void assert_is_one_object(struct mr_span bytes)
{
    msgpack_unpacked unpacked;
    size_t offset = 0;

    msgpack_unpacked_init(&unpacked);
    assert_int_equal(
        msgpack_unpack_next(&unpacked, (const char *)bytes.data, bytes.size, &offset),
        MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(offset, bytes.size);
    msgpack_unpacked_destroy(&unpacked);
}

static void msgpack_c_takes_what_we_take(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    uint64_t count = 0;

    (void)state;
    for (int round = 0; round < 200000; round++) {
        uint8_t bytes[12] = {0x91};
        struct mr_dict_reader reader;
        size_t size = 2 + mr_test_random_below(&random, 10);

        for (size_t i = 1; i < size; i++)
            bytes[i] = (uint8_t)(0x80 + mr_test_random_below(&random, 128));
        if (mr_dict_open(&reader, mr_span_of(bytes, size), NULL) != MR_OK)
            continue;
        assert_is_one_object(mr_span_of(bytes, size));
        mr_dict_close(&reader);
        count++;
    }
    assert_true(count > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_item_has_its_bytes),
        cmocka_unit_test(all_kinds_come_back_from_one_payload),
        cmocka_unit_test(items_are_as_they_were_written),
        cmocka_unit_test(a_full_writer_says_so_and_keeps_what_it_has),
        cmocka_unit_test(unknown_kinds_are_counted_and_more_elements_are_ignored),
        cmocka_unit_test(items_that_break_a_rule_are_refused),
        cmocka_unit_test(msgpack_that_promises_more_than_there_is_is_refused),
        cmocka_unit_test(a_payload_that_is_cut_anywhere_is_refused),
        cmocka_unit_test(msgpack_c_takes_what_we_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
