/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "net/delta.h"

#include "tests/unit/net/net_test.h"

static const struct mr_id a = {UINT64_C(0x0102030405060708),
                               UINT64_C(0x090a0b0c0d0e0f10)};
#define A "0102030405060708090a0b0c0d0e0f10"

struct writing {
    struct mr_buffer buffer;
    struct mr_delta_writer w;
};

static void start(struct writing *writing)
{
    mr_buffer_init(&writing->buffer, 1 << 20);
    mr_delta_begin(&writing->w, &writing->buffer);
}

/* Two sites, a scope, two paths (the second below the first), a source, a shape. */
static void put_names(struct mr_delta_writer *w)
{
    assert_int_equal(mr_delta_site(w, a), 0);
    assert_int_equal(mr_delta_site(w, a), 1);
    assert_int_equal(mr_delta_scope(w, a), 0);
    assert_int_equal(mr_delta_path(w, MR_DELTA_NONE, 0, 0, 0), 0);
    assert_int_equal(mr_delta_path(w, 0, 0, 1, MR_DELTA_PATH_OUTER), 1);
    assert_int_equal(mr_delta_source(w, a), 0);
    assert_int_equal(mr_delta_shape(w, 0, 0, a), 0);
}

#define NAMES                                                                            \
    "0210" A "0210" A "0310" A "0404 00 00 00 00"                                        \
    "0404 01 00 01 01"                                                                   \
    "0610" A "0712 00 00" A

static void assert_payload(struct writing *writing, const char *hex)
{
    assert_int_equal(mr_delta_status(&writing->w), MR_OK);
    assert_hex(mr_buffer_span(&writing->buffer), hex);
    mr_buffer_fini(&writing->buffer);
}

static void head_and_names_have_their_bytes(void **state)
{
    struct writing writing;

    (void)state;
    start(&writing);
    mr_delta_head(&writing.w, 2, 300);
    put_names(&writing.w);
    assert_payload(&writing, "0103 02 ac02" NAMES);
}

static bool restamp(const char *hex, uint64_t created_ns, const char *then)
{
    struct mr_test_bytes bytes = mr_test_bytes(hex);
    bool is_done = mr_delta_restamp(bytes.data, bytes.size, created_ns);

    assert_hex(mr_test_span(&bytes), then);
    return is_done;
}

static void a_head_gets_another_time_of_its_size(void **state)
{
    (void)state;
    assert_true(restamp("0103 02 ac02" NAMES, 301, "0103 02 ad02" NAMES));
    assert_false(restamp("0103 02 ac02" NAMES, 127, "0103 02 ac02" NAMES));
    assert_false(restamp(NAMES, 300, NAMES));
    assert_false(restamp("0103 02 ac", 300, "0103 02 ac")); /* cut short */
    assert_false(restamp("0101 02", 300, "0101 02"));
}

static void path_stats_have_their_bytes(void **state)
{
    struct mr_path_stats stats = {.ok = 2,
                                  .failed = 1,
                                  .incomplete = 1,
                                  .self = {10, 3, 7},
                                  .total = {20, 4, 8},
                                  .histogram = MR_HISTOGRAM_EMPTY};
    struct writing writing;

    (void)state;
    assert_int_equal(mr_histogram_add(&stats.histogram, 8, 3), MR_OK); /* index 95 */
    start(&writing);
    put_names(&writing.w);
    mr_delta_path_stat(&writing.w, 1, 100, &stats);
    assert_payload(&writing,
                   NAMES "0511 01 64 02 01 01 0a 03 07 14 04 08 00 0a be01 01 03");
    mr_histogram_fini(&stats.histogram);
}

static void shape_stats_have_their_bytes(void **state)
{
    struct mr_shape_stats stats = {.ok = 1,
                                   .calls = 5,
                                   .folded = 1,
                                   .first_ns = 10,
                                   .last_ns = 11,
                                   .time = {7, 7, 7},
                                   .histogram = MR_HISTOGRAM_EMPTY};
    struct writing writing;

    (void)state;
    start(&writing);
    put_names(&writing.w);
    mr_delta_shape_stat(&writing.w, 0, 100, &stats);
    assert_payload(&writing, NAMES "080f 00 64 01 00 05 01 0a 0b 07 07 07 00 00 00 00");
}

static void the_small_items_have_their_bytes(void **state)
{
    const struct mr_entry_stats entry = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 300}};
    const struct mr_ledger_entry ledger = {
        .last = 10,
        .reduced = 8,
        .held = -1,
        .lost = {[MR_LOSS_RING_FULL] = 2, [MR_LOSS_EXIT] = 1}};
    const struct mr_open_stats open = {
        .count = 3, .ages = {1, 0, 2}, .oldest_ns = 128, .since_ns = 129};
    struct writing writing;

    (void)state;
    start(&writing);
    put_names(&writing.w);
    mr_delta_entry_stat(&writing.w, 0, 100, &entry);
    mr_delta_ledger(&writing.w, 0, 1, &ledger);
    mr_delta_open(&writing.w, 1, 0, &open);
    mr_delta_open(&writing.w, 0, MR_DELTA_NONE, &open);
    mr_delta_counter(&writing.w, "abc", 7);
    assert_payload(&writing,
                   NAMES "090f 00 64 01 05 09 02 06 0a 03 07 0b 04 08 ac02"
                         "0a0a 00 01 0a 08 01 02 01 02 09 01"
                         "0b0d 01 8001 03 01 8101 05 01 00 02 00 00"
                         "0b0d 00 8001 03 00 8101 05 01 00 02 00 00  0e05 03 616263 07");
}

static void open_reads_back_also_from_one_who_tells_less(void **state)
{
    const struct mr_open_stats open = {
        .count = 3, .ages = {1, 0, 2, 0, 4}, .oldest_ns = 128, .since_ns = 129};
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    struct writing writing;

    (void)state;
    start(&writing);
    put_names(&writing.w);
    mr_delta_open(&writing.w, 1, 0, &open);
    assert_int_equal(mr_buffer_append(&writing.buffer, "\x0b\x04\x01\x80\x01\x03", 6),
                     MR_OK);
    mr_delta_reader_init(&reader, mr_buffer_span(&writing.buffer));
    do
        assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    while (item.tag != MR_DELTA_OPEN);
    assert_int_equal(item.path, 1);
    assert_int_equal(item.stack, 0);
    assert_memory_equal(item.open, &open, sizeof(open));
    assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_int_equal(item.tag, MR_DELTA_OPEN);
    assert_int_equal(item.stack, MR_DELTA_NONE);
    assert_int_equal(item.open->count, 3);
    assert_int_equal(item.open->since_ns, 0);
    assert_int_equal(mr_delta_next(&reader, &item), MR_END);
    mr_delta_reader_fini(&reader);
    mr_buffer_fini(&writing.buffer);
}

static void of_open_traces_the_oldest_keeps_its_stack(void **state)
{
    struct mr_open_stats into = {0};
    const struct mr_open_stats young = {.count = 2, .ages = {2}, .oldest_ns = 50},
                               old = {.count = 1,
                                      .ages = {0, 1},
                                      .oldest_ns = 20,
                                      .since_ns = 30},
                               none = {0};

    (void)state;
    assert_true(mr_open_stats_merge(&into, &young));
    assert_false(mr_open_stats_merge(&into, &none));
    assert_true(mr_open_stats_merge(&into, &old));
    assert_false(mr_open_stats_merge(&into, &young));
    assert_int_equal(into.count, 5);
    assert_int_equal(into.ages[0], 4);
    assert_int_equal(into.ages[1], 1);
    assert_int_equal(into.oldest_ns, 20);
    assert_int_equal(into.since_ns, 30);
    assert_int_equal(mr_open_age(0), 0);
    assert_int_equal(mr_open_age(MR_SECOND_NS), 0);
    assert_int_equal(mr_open_age(MR_SECOND_NS + 1), 1);
    assert_int_equal(mr_open_age(UINT64_MAX), MR_OPEN_AGES - 1);
}

static void path_counters_have_their_bytes_and_read_back(void **state)
{
    const struct mr_counter_stats stats = {
        .calls = 2, .backward = 1, .self = {5, 2, 3}, .total = {300, 100, 200}};
    struct writing writing;
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    (void)state;
    start(&writing);
    put_names(&writing.w);
    assert_int_equal(mr_delta_span_counter(&writing.w, a), 0);
    mr_delta_path_counter(&writing.w, 1, 100, 0, &stats);
    mr_delta_reader_init(&reader, mr_buffer_span(&writing.buffer));
    for (int i = 0; i < 9; i++)
        assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_int_equal(item.tag, MR_DELTA_PATH_COUNTER);
    assert_int_equal(item.path, 1);
    assert_int_equal(item.window, 100);
    assert_int_equal(item.counter, 0);
    assert_memory_equal(item.counter_stats, &stats, sizeof(stats));
    mr_delta_reader_fini(&reader);
    assert_payload(&writing, NAMES "0f10" A "100d 01 64 00 02 01 05 02 03 ac02 64 c801");
}

static void an_item_longer_than_127_bytes_is_moved_for_its_size(void **state)
{
    struct mr_path_stats stats = {
        .ok = 2, .self = {2, 1, 1}, .total = {3, 1, 2}, .histogram = MR_HISTOGRAM_EMPTY};
    struct writing writing;
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    (void)state;
    assert_int_equal(mr_histogram_add(&stats.histogram, 2, 1), MR_OK);
    assert_int_equal(mr_histogram_add(&stats.histogram, 60000, 1), MR_OK);
    start(&writing);
    put_names(&writing.w);
    mr_delta_path_stat(&writing.w, 0, 100, &stats);
    mr_delta_reader_init(&reader, mr_buffer_span(&writing.buffer));
    for (int i = 0; i < 8; i++)
        assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_int_equal(item.tag, MR_DELTA_PATH_STAT);
    assert_int_equal(item.path_stats->histogram.count, stats.histogram.count);
    assert_int_equal(item.path_stats->total.sum, 3);
    assert_int_equal(mr_delta_next(&reader, &item), MR_END);
    mr_delta_reader_fini(&reader);
    mr_histogram_fini(&stats.histogram);
    mr_buffer_fini(&writing.buffer);
}

static void items_come_back_with_their_numbers(void **state)
{
    struct writing writing;
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    (void)state;
    start(&writing);
    put_names(&writing.w);
    mr_delta_reader_init(&reader, mr_buffer_span(&writing.buffer));
    assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_true(item.tag == MR_DELTA_SITE && item.index == 0 && mr_id_equal(item.id, a));
    assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_int_equal(item.index, 1);
    assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_true(item.tag == MR_DELTA_PATH && item.parent == MR_DELTA_NONE &&
                item.scope == 0);
    assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_true(item.index == 1 && item.parent == 0 && item.site == 1);
    assert_int_equal(item.flags, MR_DELTA_PATH_OUTER);
    mr_delta_reader_fini(&reader);
    mr_buffer_fini(&writing.buffer);
}

static void a_full_buffer_is_latched_and_what_is_there_stays_whole(void **state)
{
    struct writing writing;
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    (void)state;
    mr_buffer_init(&writing.buffer, 1000);
    mr_delta_begin(&writing.w, &writing.buffer);
    for (int i = 0; i < 100; i++)
        (void)mr_delta_site(&writing.w, a);
    assert_int_equal(mr_delta_status(&writing.w), MR_ELIMIT);
    mr_delta_reader_init(&reader, mr_buffer_span(&writing.buffer));
    while ((status = mr_delta_next(&reader, &item)) == MR_OK)
        ;
    assert_int_equal(status, MR_END);
    assert_true(reader.sites > 30);
    mr_delta_reader_fini(&reader);
    mr_buffer_fini(&writing.buffer);
}

/* The status after NAMES and these bytes, and how many items were unknown. */
static enum mr_status read_after_names(const char *hex, uint64_t *unknown)
{
    char text[2048];
    struct mr_test_bytes bytes;
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    (void)snprintf(text, sizeof(text), "%s %s", NAMES, hex);
    bytes = mr_test_bytes(text);
    mr_delta_reader_init(&reader, mr_test_span(&bytes));
    while ((status = mr_delta_next(&reader, &item)) == MR_OK)
        ;
    assert_int_equal(reader.error.status, status == MR_END ? MR_OK : status);
    *unknown = reader.unknown;
    mr_delta_reader_fini(&reader);
    return status;
}

static void check(const char *hex, enum mr_status status)
{
    uint64_t unknown;

    assert_int_equal(read_after_names(hex, &unknown), status);
}

static void unknown_tags_are_counted_and_more_fields_are_ignored(void **state)
{
    uint64_t unknown;

    (void)state;
    assert_int_equal(
        read_after_names("63 02 0102 6200 0b08 00 01 01 00 00 00 ffff", &unknown),
        MR_END);
    assert_int_equal(unknown, 2);
}

/* Of any tag that a varint holds: one whose low 16 or 32 bits are those of a known one, too. */
static void unknown_tags_may_be_as_large_as_a_varint(void **state)
{
    uint64_t unknown;

    (void)state;
    assert_int_equal(read_after_names("ffff03 00 808004 00 848004 02 ffff", &unknown),
                     MR_END); /* 65,535, 65,536, 65,540 */
    assert_int_equal(unknown, 3);
    assert_int_equal(read_after_names("8480808010 01 ff", &unknown), MR_END);
    assert_int_equal(unknown, 1);
    assert_int_equal(
        read_after_names("ffffffffffffffffff01 00 0b08 00 01 01 00 00 00 ffff", &unknown),
        MR_END);
    assert_int_equal(unknown, 1);
    check("848004", MR_EFORMAT);                  /* no size */
    check("848004 03 ffff", MR_EFORMAT);          /* longer than what is there */
    check("ffffffffffffffffff02 00", MR_EFORMAT); /* more than 64 bits */
}

static void items_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    check("", MR_END);
    check("0b", MR_EFORMAT);
    check("0b 04 00 01 01", MR_EFORMAT); /* longer than what is there */
    check("0b 02 00 01 01", MR_EFORMAT); /* fields cut */
    check("0b 03 02 01 01", MR_EFORMAT); /* path that did not come before */
    check("0b 03 01 01 01", MR_END);
    check("04 04 03 00 00 00", MR_EFORMAT); /* parent */
    check("04 04 00 01 00 00", MR_EFORMAT); /* scope */
    check("04 04 01 09 00 00", MR_END);     /* not read below a parent */
    check("04 04 00 00 02 00", MR_EFORMAT); /* site */
    check("07 12 01 00" A, MR_EFORMAT);     /* scope */
    check("07 12 00 02" A, MR_EFORMAT);     /* path */
    check("02 0f 0102030405060708090a0b0c0d0e0f", MR_EFORMAT);
    check("0a 08 01 01 0a 08 00 00 0000", MR_EFORMAT);           /* source */
    check("0a 08 00 01 0a 08 00 01 0001", MR_EFORMAT);           /* reason 0 */
    check("0a 08 00 01 0a 08 00 01 0a01", MR_EFORMAT);           /* reason 10 */
    check("0a 0a 00 01 0a 08 00 02 0101 0101", MR_EFORMAT);      /* a reason twice */
    check("10 0b 01 64 00 01 00 02 02 02 02 02 02", MR_EFORMAT); /* counter */
    check("0f10" A "10 0b 02 64 00 01 00 02 02 02 02 02 02", MR_EFORMAT); /* path */
    check("0f10" A "10 0b 01 64 00 01 00 02 03 02 02 02 02", MR_EFORMAT); /* min > max */
    check("0f10" A "10 0b 01 64 00 01 00 02 02 02 02 02 02", MR_END);
    check("0e 03 05 6162", MR_EFORMAT);    /* name cut */
    check("0e 04 02 6100 01", MR_EFORMAT); /* zero byte in it */
    check("0e 02 40 00", MR_EFORMAT);      /* too long */
    check("05 0f 00 64 01 00 00 02 03 01 02 02 02 00 00 00 00",
          MR_EFORMAT); /* min > max */
    check("05 0f 00 64 01 00 00 02 02 02 01 02 02 00 00 00 00",
          MR_EFORMAT); /* max > sum */
    check("05 0f 00 64 01 00 00 02 02 02 02 02 02 00 00 00 00", MR_END);
    check("05 0f 00 64 01 00 00 02 02 02 02 02 02 00 0a 00 00",
          MR_EFORMAT); /* histogram */
}

/* f0 { f1 } of stream 3: root 0 .. 9 ns, in it f1 2 .. 5 ns and 2 calls of 3 ns that are left out. */
static const struct mr_exemplar_call two_calls[] = {
    {.total_ns = 9, .elided_calls = 2, .elided_ns = 3},
    {.start_ns = 2, .total_ns = 3, .site = 1, .depth = 1, .flags = 1}};
static const struct mr_exemplar exemplar = {.why = MR_EXEMPLAR_ALL,
                                            .status = MR_EXEMPLAR_FAILED,
                                            .stream = 3,
                                            .before = 5,
                                            .start_ns = 300,
                                            .calls = 4,
                                            .call_count = 2,
                                            .items = two_calls};
#define EXEMPLAR                                                                         \
    "0c 19 00 01 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 00 00"

static void assert_same_call(const struct mr_exemplar_call *a_call,
                             const struct mr_exemplar_call *b_call)
{
    assert_int_equal(a_call->start_ns, b_call->start_ns);
    assert_int_equal(a_call->total_ns, b_call->total_ns);
    assert_int_equal(a_call->elided_calls, b_call->elided_calls);
    assert_int_equal(a_call->elided_ns, b_call->elided_ns);
    assert_int_equal(a_call->site, b_call->site);
    assert_int_equal(a_call->depth, b_call->depth);
    assert_int_equal(a_call->flags, b_call->flags);
}

static void exemplars_have_their_bytes_and_read_back(void **state)
{
    const struct mr_shape_path_stats stats = {1, 1, {5, 2, 3}, {300, 100, 200}};
    struct writing writing;
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    (void)state;
    start(&writing);
    put_names(&writing.w);
    mr_delta_exemplar(&writing.w, 0, 0, 0, &exemplar);
    mr_delta_shape_path(&writing.w, 0, 1, &stats);
    mr_delta_reader_init(&reader, mr_buffer_span(&writing.buffer));
    for (int i = 0; i < 8; i++)
        assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_int_equal(item.tag, MR_DELTA_EXEMPLAR);
    assert_true(item.path == 0 && item.shape == 0 && item.source == 0);
    assert_true(mr_exemplar_is_same(item.exemplar, &exemplar));
    assert_int_equal(item.exemplar->why, MR_EXEMPLAR_ALL);
    assert_int_equal(item.exemplar->status, MR_EXEMPLAR_FAILED);
    assert_int_equal(item.exemplar->calls, 4);
    assert_int_equal(item.exemplar->call_count, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_same_call(&item.exemplar->items[i], &two_calls[i]);
    assert_int_equal(mr_delta_next(&reader, &item), MR_OK);
    assert_int_equal(item.tag, MR_DELTA_SHAPE_PATH);
    assert_true(item.shape == 0 && item.path == 1);
    assert_memory_equal(item.shape_path_stats, &stats, sizeof(stats));
    mr_delta_reader_fini(&reader);
    assert_payload(&writing, NAMES EXEMPLAR "110c 00 01 01 01 05 02 03 ac02 64 c801");
}

static void exemplars_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    check(EXEMPLAR, MR_END);
    check("0c 19 02 01 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* path */
    check("0c 19 00 02 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* shape */
    check("0c 19 00 00 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_END); /* of none */
    check("0c 19 00 01 00 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* no reason */
    check("0c 19 00 01 04 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* reason */
    check("0c 19 00 01 03 03 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* status */
    check("0c 19 00 01 03 01 01 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* source */
    check("0c 19 00 01 03 01 00 03 05 ac02 05 02  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* calls do not add up */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 03  00 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT);                                          /* a call is missing */
    check("0c 0b 00 01 03 01 00 03 05 ac02 00 00", MR_EFORMAT); /* none */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 02  01 00 00 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* above the root */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 02  00 00 01 09 00 02 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* the root begins late */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  01 01 02 03 01 "
          "00 00",
          MR_EFORMAT); /* a second root */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 02 02 03 01 "
          "00 00",
          MR_EFORMAT); /* site */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 07 03 01 "
          "00 00",
          MR_EFORMAT); /* ends behind its caller */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 07 01 "
          "00 00",
          MR_EFORMAT); /* with what is left out, longer than its caller */
    check("0c 19 00 01 03 01 00 03 05 ac02 04 02  00 00 00 09 00 02 03  00 01 02 03 08 "
          "00 00",
          MR_EFORMAT); /* flags */
    check("0c 19 00 01 03 01 00 03 05 ac02 02 02  00 00 00 09 00 00 03  00 01 02 03 01 "
          "00 00",
          MR_EFORMAT);                                        /* time of nothing */
    check("11 0b 01 01 01 01 05 02 03 05 02 03", MR_EFORMAT); /* shape */
    check("11 0a 00 02 01 01 05 02 03 05 02 03", MR_EFORMAT); /* path */
    check("11 0a 00 01 01 01 05 04 03 05 02 03", MR_EFORMAT); /* min > max */
    check("11 0a 00 01 01 01 05 02 03 05 02 03", MR_END);
}

/* Every pair is in order, whichever stands first. */
static void check_order(const struct mr_exemplar *one, const struct mr_exemplar *two,
                        enum mr_exemplar_why why)
{
    assert_true(mr_exemplar_is_before(one, two, why));
    assert_false(mr_exemplar_is_before(two, one, why));
    assert_false(mr_exemplar_is_before(one, one, why));
}

static void exemplars_have_an_order_without_ties(void **state)
{
    const struct mr_exemplar_call slow_calls[] = {{.total_ns = 10}};
    struct mr_exemplar slow = exemplar, later = exemplar, source = exemplar,
                       stream = exemplar, event = exemplar;

    (void)state;
    slow.items = slow_calls;
    slow.start_ns = later.start_ns = 301;
    source.source.lo = 1;
    stream.stream = 4;
    event.before = 6;
    check_order(&slow, &exemplar, MR_EXEMPLAR_SLOWEST);
    check_order(&exemplar, &slow, MR_EXEMPLAR_FIRST);
    for (int why = 1; why <= 2; why++) {
        check_order(&exemplar, &later, (enum mr_exemplar_why)why);
        check_order(&exemplar, &source, (enum mr_exemplar_why)why);
        check_order(&exemplar, &stream, (enum mr_exemplar_why)why);
        check_order(&exemplar, &event, (enum mr_exemplar_why)why);
        check_order(&stream, &source, (enum mr_exemplar_why)why);
        check_order(&event, &stream, (enum mr_exemplar_why)why);
    }
}

static void times_keep_sum_least_and_greatest(void **state)
{
    struct mr_times times = {0, 0, 0}, other = {0, 0, 0}, none = {0, 0, 0};

    (void)state;
    mr_times_add(&times, 5, true);
    mr_times_add(&times, 3, false);
    assert_true(times.sum == 8 && times.min == 3 && times.max == 5);
    mr_times_merge(&other, &times, true, false);
    assert_true(other.sum == 8 && other.min == 3 && other.max == 5);
    mr_times_merge(&other, &none, false, true);
    assert_true(other.sum == 8 && other.min == 3);
    mr_times_merge(&other, &times, false, false);
    assert_true(other.sum == 16 && other.min == 3);
}

static struct mr_path_stats random_path_stats(struct mr_test_random *random)
{
    struct mr_path_stats stats = {.incomplete = mr_test_random_below(random, 3),
                                  .histogram = MR_HISTOGRAM_EMPTY};
    uint64_t calls = mr_test_random_below(random, 5);

    for (uint64_t i = 0; i < calls; i++) {
        uint64_t ns =
            mr_test_random_next(random) >> mr_test_random_below(random, 50) >> 8;

        mr_times_add(&stats.total, ns, i == 0);
        mr_times_add(&stats.self, ns / 2, i == 0);
        assert_int_equal(mr_histogram_add(&stats.histogram, ns, 1), MR_OK);
        stats.ok += i % 2;
        stats.failed += i % 2 == 0;
    }
    return stats;
}

static struct mr_span put_one(struct writing *writing, const struct mr_path_stats *stats)
{
    start(writing);
    put_names(&writing->w);
    mr_delta_path_stat(&writing->w, 0, 0, stats);
    return mr_buffer_span(&writing->buffer);
}

static void stats_merge_to_the_same_bytes_in_either_order(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct mr_path_stats parts[4], sums[2];
        struct writing writings[2];

        for (int i = 0; i < 4; i++)
            parts[i] = random_path_stats(&random);
        for (int s = 0; s < 2; s++) {
            sums[s] = (struct mr_path_stats){.histogram = MR_HISTOGRAM_EMPTY};
            for (int i = 0; i < 4; i++)
                assert_int_equal(mr_path_stats_merge(&sums[s], &parts[s ? 3 - i : i]),
                                 MR_OK);
        }
        assert_true(mr_span_equal(put_one(&writings[0], &sums[0]),
                                  put_one(&writings[1], &sums[1])));
        for (int i = 0; i < 4; i++)
            mr_histogram_fini(&parts[i].histogram);
        for (int s = 0; s < 2; s++) {
            mr_histogram_fini(&sums[s].histogram);
            mr_buffer_fini(&writings[s].buffer);
        }
    }
}

static void shape_entry_and_ledger_stats_add_up(void **state)
{
    struct mr_shape_stats shape = {.histogram = MR_HISTOGRAM_EMPTY};
    const struct mr_shape_stats one = {.ok = 1,
                                       .calls = 2,
                                       .folded = 1,
                                       .first_ns = 50,
                                       .last_ns = 60,
                                       .time = {4, 4, 4},
                                       .histogram = MR_HISTOGRAM_EMPTY};
    const struct mr_shape_stats two = {.failed = 1,
                                       .calls = 2,
                                       .first_ns = 40,
                                       .last_ns = 45,
                                       .time = {3, 3, 3},
                                       .histogram = MR_HISTOGRAM_EMPTY};
    struct mr_entry_stats entry = {{1}, {2}, {3}};
    struct mr_ledger_entry ledger = {.last = 5, .reduced = 2, .held = 3};
    const struct mr_ledger_entry more = {
        .last = 7, .reduced = 3, .held = -1, .lost = {[1] = 2}};

    (void)state;
    assert_int_equal(mr_shape_stats_merge(&shape, &one), MR_OK);
    assert_int_equal(mr_shape_stats_merge(&shape, &two), MR_OK);
    assert_true(shape.first_ns == 40 && shape.last_ns == 60 && shape.time.min == 3);
    assert_true(shape.ok == 1 && shape.failed == 1 && shape.calls == 4 &&
                shape.folded == 1);
    mr_entry_stats_merge(&entry, &entry);
    assert_true(entry.traces[0] == 2 && entry.calls[0] == 4 && entry.time_ns[0] == 6);
    mr_ledger_entry_merge(&ledger, &more);
    assert_true(ledger.last == 7 && ledger.reduced == 5 && ledger.held == 2);
    assert_int_equal(ledger.lost[1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_and_names_have_their_bytes),
        cmocka_unit_test(a_head_gets_another_time_of_its_size),
        cmocka_unit_test(path_stats_have_their_bytes),
        cmocka_unit_test(shape_stats_have_their_bytes),
        cmocka_unit_test(the_small_items_have_their_bytes),
        cmocka_unit_test(open_reads_back_also_from_one_who_tells_less),
        cmocka_unit_test(of_open_traces_the_oldest_keeps_its_stack),
        cmocka_unit_test(path_counters_have_their_bytes_and_read_back),
        cmocka_unit_test(an_item_longer_than_127_bytes_is_moved_for_its_size),
        cmocka_unit_test(items_come_back_with_their_numbers),
        cmocka_unit_test(a_full_buffer_is_latched_and_what_is_there_stays_whole),
        cmocka_unit_test(unknown_tags_are_counted_and_more_fields_are_ignored),
        cmocka_unit_test(unknown_tags_may_be_as_large_as_a_varint),
        cmocka_unit_test(items_that_break_a_rule_are_refused),
        cmocka_unit_test(exemplars_have_their_bytes_and_read_back),
        cmocka_unit_test(exemplars_that_break_a_rule_are_refused),
        cmocka_unit_test(exemplars_have_an_order_without_ties),
        cmocka_unit_test(times_keep_sum_least_and_greatest),
        cmocka_unit_test(stats_merge_to_the_same_bytes_in_either_order),
        cmocka_unit_test(shape_entry_and_ledger_stats_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
