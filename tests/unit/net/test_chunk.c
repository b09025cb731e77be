/* SPDX-License-Identifier: Apache-2.0 */
#include "net/chunk.h"

#include "net/bytes.h"
#include "tests/unit/net/net_test.h"

enum { WORDS_MAX = 6000 };

/* A words chunk under construction. */
struct words {
    uint64_t at[WORDS_MAX];
    uint32_t count;
};

static void add(struct words *words, uint64_t word)
{
    assert_true(words->count < WORDS_MAX);
    words->at[words->count++] = word;
}

static struct mr_chunk chunk_of(const struct words *words, uint64_t ticks)
{
    return (struct mr_chunk){
        .encoding = MR_CHUNK_WORDS,
        .stream = 1,
        .ticks = ticks,
        .records = words->count,
        .body = mr_span_of(words->at, words->count * sizeof(words->at[0])),
    };
}

static void a_chunk_header_is_56_bytes(void **state)
{
    struct words words = {.count = 0};
    struct mr_chunk chunk, read;
    uint8_t bytes[MR_CHUNK_HEADER_SIZE + 8];
    struct mr_span span = mr_span_of(bytes, sizeof(bytes));

    (void)state;
    add(&words, mr_word_event(0x1000002, MR_WORD_EXIT, 0x11));
    chunk = chunk_of(&words, 0x10);
    chunk.flags = MR_CHUNK_FIRST | MR_CHUNK_LAST;
    chunk.stream = 7;
    chunk.epoch = 3;
    chunk.first_event = 1000;
    chunk.events = 1;
    chunk.lost = 9;
    mr_chunk_put_header(&chunk, bytes);
    memcpy(bytes + MR_CHUNK_HEADER_SIZE, words.at, 8);
    assert_hex(span,
               "40000000 00 03 3800 07000000 03000000 e803000000000000 0100000000000000"
               "0900000000000000 1000000000000000 01000000 00000000 11000000 02000041");
    assert_int_equal(mr_chunk_next(&span, &read), MR_OK);
    assert_int_equal(read.stream, 7);
    assert_int_equal(read.epoch, 3);
    assert_int_equal(read.first_event, 1000);
    assert_int_equal(read.lost, 9);
    assert_int_equal(read.flags, 3);
    assert_int_equal(read.body.size, 8);
    assert_int_equal(mr_chunk_next(&span, &read), MR_END);
}

/* A chunk with one byte of its header changed, and what is said of it. */
static enum mr_status next_with(size_t offset, uint8_t value)
{
    enum mr_status status;
    static const uint64_t word = UINT64_C(0x0100000200000011);
    uint8_t bytes[MR_CHUNK_HEADER_SIZE + 8];
    struct mr_span span = mr_span_of(bytes, sizeof(bytes));
    struct mr_chunk chunk = {.stream = 1, .records = 1, .body = mr_span_of(&word, 8)},
                    read;

    mr_chunk_put_header(&chunk, bytes);
    memcpy(bytes + MR_CHUNK_HEADER_SIZE, &word, 8);
    bytes[offset] = value;
    status = mr_chunk_next(&span, &read);
    assert_int_equal(
        strcmp(mr_chunk_fault(mr_span_of(bytes, sizeof(bytes))), "it is sound") == 0,
        status == MR_OK);
    return status;
}

static void a_header_that_breaks_a_rule_is_refused(void **state)
{
    (void)state;
    assert_int_equal(next_with(4, 0), MR_OK);
    assert_int_equal(next_with(0, 65), MR_EFORMAT); /* more than is there */
    assert_int_equal(next_with(0, 63), MR_EFORMAT); /* no whole word */
    assert_int_equal(next_with(0, 0), MR_EFORMAT);  /* less than its header */
    assert_int_equal(next_with(4, 2), MR_EFORMAT);  /* encoding */
    assert_int_equal(next_with(5, 8), MR_EFORMAT);  /* flag */
    assert_int_equal(next_with(6, 55), MR_EFORMAT); /* header size */
    assert_int_equal(next_with(6, 65), MR_EFORMAT);
    assert_int_equal(next_with(8, 0), MR_EFORMAT); /* stream 0 */
    assert_int_equal(next_with(22, 1), MR_OK);     /* first event 2^48 */
    assert_int_equal(next_with(23, 1), MR_OK);
    assert_int_equal(next_with(23, 2), MR_EFORMAT); /* past 2^56 */
    assert_int_equal(next_with(31, 1), MR_OK);
    assert_int_equal(next_with(31, 2), MR_EFORMAT);
    assert_int_equal(next_with(32, 1), MR_EFORMAT); /* more lost than there were events */
    assert_int_equal(next_with(47, 64), MR_EFORMAT); /* time past 2^62 */
    assert_int_equal(next_with(48, 2), MR_EFORMAT);  /* records */
    assert_int_equal(next_with(48, 0), MR_EFORMAT);
}

static void numbers_of_streams_and_events_have_an_end(void **state)
{
    const struct mr_chunk last = {.stream = MR_STREAM_LAST,
                                  .first_event = MR_EVENTS_LIMIT - 5,
                                  .events = 5,
                                  .lost = 3};
    struct mr_chunk beyond = last, read;
    uint8_t bytes[MR_CHUNK_HEADER_SIZE];
    struct mr_span span = mr_span_of(bytes, sizeof(bytes));

    (void)state;
    mr_chunk_put_header(&last, bytes);
    assert_int_equal(mr_chunk_next(&span, &read), MR_OK);
    span = mr_span_of(bytes, sizeof(bytes));
    beyond.events++;
    mr_chunk_put_header(&beyond, bytes);
    assert_int_equal(mr_chunk_next(&span, &read), MR_EFORMAT);
    beyond = last;
    beyond.stream++;
    mr_chunk_put_header(&beyond, bytes);
    assert_int_equal(mr_chunk_next(&span, &read), MR_EFORMAT);
}

static void a_chunk_that_is_cut_is_refused(void **state)
{
    uint8_t bytes[MR_CHUNK_HEADER_SIZE];
    struct mr_chunk chunk = {.stream = 1}, read;

    (void)state;
    mr_chunk_put_header(&chunk, bytes);
    for (size_t size = 1; size <= sizeof(bytes); size++) {
        struct mr_span span = mr_span_of(bytes, size);

        assert_int_equal(mr_chunk_next(&span, &read),
                         size < sizeof(bytes) ? MR_EFORMAT : MR_OK);
    }
}

static void a_longer_header_is_skipped(void **state)
{
    uint8_t bytes[MR_CHUNK_HEADER_SIZE + 16] = {0};
    struct mr_span span = mr_span_of(bytes, sizeof(bytes));
    struct mr_chunk chunk = {.stream = 1, .records = 1, .body = mr_span_of(bytes, 8)},
                    read;

    (void)state;
    mr_chunk_put_header(&chunk, bytes);
    mr_put_u32(bytes, sizeof(bytes));
    mr_put_u16(bytes + 6, MR_CHUNK_HEADER_SIZE + 8);
    mr_put_u64(bytes + MR_CHUNK_HEADER_SIZE + 8, mr_word_event(0x10000, 0, 5));
    assert_int_equal(mr_chunk_next(&span, &read), MR_OK);
    assert_ptr_equal(read.body.data, bytes + MR_CHUNK_HEADER_SIZE + 8);
    assert_int_equal(read.body.size, 8);
}

static struct mr_record next_of(struct mr_record_reader *reader)
{
    struct mr_record record;

    assert_int_equal(mr_record_next(reader, &record), MR_OK);
    return record;
}

static void times_run_on_from_the_chunk_over_the_wrap_of_32_bits(void **state)
{
    struct words words = {.count = 0};
    struct mr_record_reader reader;
    struct mr_record record;
    struct mr_chunk chunk;

    (void)state;
    add(&words, mr_word_event(0x10000, 0, 0xfffffffe));
    add(&words, mr_word_event(0x10000, MR_WORD_EXIT, 2) | MR_WORD_LAP);
    chunk = chunk_of(&words, UINT64_C(0x7fffffff0));
    chunk.ticks = UINT64_C(0x7fffffff0);
    mr_record_reader_init(&reader, &chunk);
    record = next_of(&reader);
    assert_int_equal(record.ticks, UINT64_C(0x7fffffffe));
    assert_int_equal(record.kind, 0);
    assert_false(record.is_exit);
    record = next_of(&reader);
    assert_int_equal(record.ticks, UINT64_C(0x800000002));
    assert_int_equal(record.site, 0x10000);
    assert_true(record.is_exit);
    assert_false(record.is_inversion);
    assert_int_equal(mr_record_next(&reader, &record), MR_END);
}

static void an_inversion_is_clamped_and_marked(void **state)
{
    struct words words = {.count = 0};
    struct mr_record_reader reader;
    struct mr_record record;
    struct mr_chunk chunk;

    (void)state;
    add(&words, mr_word_event(0x10000, 0, 100));
    add(&words, mr_word_event(0x10001, 0, 90));
    add(&words, mr_word_record(MR_RECORD_MARK, 1, 0, 80));
    add(&words, 7);
    add(&words, mr_word_event(0x10001, MR_WORD_EXIT, 101));
    chunk = chunk_of(&words, 10);
    mr_record_reader_init(&reader, &chunk);
    (void)next_of(&reader);
    record = next_of(&reader);
    assert_true(record.is_inversion);
    assert_int_equal(record.ticks, 100);
    record = next_of(&reader);
    assert_true(record.is_inversion);
    assert_int_equal(record.ticks, 100);
    assert_int_equal(record.payload[0], 7);
    record = next_of(&reader);
    assert_false(record.is_inversion);
    assert_int_equal(record.ticks, 101);
}

static void a_time_before_the_first_tick_is_an_inversion_too(void **state)
{
    struct words words = {.count = 0};
    struct mr_record_reader reader;
    struct mr_record record;
    struct mr_chunk chunk;

    (void)state;
    add(&words, mr_word_record(MR_RECORD_MARK, 1, 0, 0xffffffff));
    add(&words, 7);
    chunk = chunk_of(&words, 10);
    mr_record_reader_init(&reader, &chunk);
    record = next_of(&reader);
    assert_true(record.is_inversion);
    assert_int_equal(record.ticks, 10);
}

static void a_sync_sets_the_time_but_never_back(void **state)
{
    struct words words = {.count = 0};
    struct mr_record_reader reader;
    struct mr_record record;
    struct mr_chunk chunk;

    (void)state;
    add(&words, mr_word_record(MR_RECORD_SYNC, 1, 0, 5));
    add(&words, UINT64_C(0x5000000005) | MR_WORD_LAP);
    add(&words, mr_word_event(0x10000, 0, 6));
    add(&words, mr_word_record(MR_RECORD_SYNC, 1, 0, 5));
    add(&words, 5);
    chunk = chunk_of(&words, 10);
    mr_record_reader_init(&reader, &chunk);
    record = next_of(&reader);
    assert_int_equal(record.kind, MR_RECORD_SYNC);
    assert_int_equal(record.ticks, UINT64_C(0x5000000005));
    assert_int_equal(next_of(&reader).ticks, UINT64_C(0x5000000006));
    record = next_of(&reader);
    assert_true(record.is_inversion);
    assert_int_equal(record.ticks, UINT64_C(0x5000000006));
}

static enum mr_status read_all(const struct words *words)
{
    struct mr_chunk chunk = chunk_of(words, 0);
    struct mr_record_reader reader;
    struct mr_record record;
    enum mr_status status;

    mr_record_reader_init(&reader, &chunk);
    while ((status = mr_record_next(&reader, &record)) == MR_OK)
        ;
    return status;
}

static enum mr_status read_record(uint64_t head, uint32_t payload)
{
    struct words words = {.count = 0};

    add(&words, head);
    while (payload-- > 0)
        add(&words, 1);
    return read_all(&words);
}

static void a_record_of_the_wrong_size_is_refused(void **state)
{
    (void)state;
    assert_int_equal(read_record(mr_word_record(MR_RECORD_LOSS, 2, 0, 0), 2), MR_END);
    assert_int_equal(read_record(mr_word_record(MR_RECORD_LOSS, 2, 0, 0), 1), MR_EFORMAT);
    assert_int_equal(read_record(mr_word_record(MR_RECORD_LOSS, 1, 0, 0), 1), MR_EFORMAT);
    assert_int_equal(read_record(mr_word_record(MR_RECORD_COUNTER, 16, 0, 0), 16),
                     MR_END);
    assert_int_equal(read_record(mr_word_record(MR_RECORD_COUNTER, 17, 0, 0), 17),
                     MR_EFORMAT);
    assert_int_equal(read_record(mr_word_record(MR_RECORD_LANDING, 16, 0, 0), 16),
                     MR_END);
    assert_int_equal(read_record(mr_word_record(MR_RECORD_LANDING, 17, 0, 0), 17),
                     MR_EFORMAT);
    assert_int_equal(read_record(0, 0), MR_EFORMAT); /* kind 0 */
}

static void an_unknown_kind_is_handed_on(void **state)
{
    (void)state;
    assert_int_equal(read_record(mr_word_event(200 | 255 << 8, 0, 0), 255), MR_END);
    assert_int_equal(read_record(mr_word_event(200, 0, 0), 0), MR_END);
    assert_int_equal(read_record(mr_word_event(200 | 2 << 8, 0, 0), 1), MR_EFORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_header_is_56_bytes),
        cmocka_unit_test(a_header_that_breaks_a_rule_is_refused),
        cmocka_unit_test(numbers_of_streams_and_events_have_an_end),
        cmocka_unit_test(a_chunk_that_is_cut_is_refused),
        cmocka_unit_test(a_longer_header_is_skipped),
        cmocka_unit_test(times_run_on_from_the_chunk_over_the_wrap_of_32_bits),
        cmocka_unit_test(an_inversion_is_clamped_and_marked),
        cmocka_unit_test(a_time_before_the_first_tick_is_an_inversion_too),
        cmocka_unit_test(a_sync_sets_the_time_but_never_back),
        cmocka_unit_test(a_record_of_the_wrong_size_is_refused),
        cmocka_unit_test(an_unknown_kind_is_handed_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
