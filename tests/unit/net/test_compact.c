/* SPDX-License-Identifier: Apache-2.0 */
#include "net/chunk.h"

#include "tests/unit/net/net_test.h"

enum { WORDS_MAX = 20000, OUT_MAX = 1 << 20 };

static struct mr_compact_workspace workspace;
static uint8_t out[OUT_MAX];

struct words {
    uint64_t at[WORDS_MAX];
    uint32_t count;
};

static void add(struct words *words, uint64_t word)
{
    words->at[words->count++] = word;
}

static struct mr_chunk chunk_of(const struct words *words, uint64_t ticks)
{
    return (struct mr_chunk){
        .stream = 1,
        .ticks = ticks,
        .records = words->count,
        .body = mr_span_of(words->at, words->count * sizeof(words->at[0])),
    };
}

/* The chunk re-encoded; its body lies in `out`. */
static struct mr_chunk compact(const struct mr_chunk *words)
{
    struct mr_chunk chunk = *words;
    size_t size = mr_chunk_compact(words, &workspace, out, sizeof(out), &chunk.records);

    assert_true(size > 0);
    chunk.encoding = MR_CHUNK_COMPACT;
    chunk.body = mr_span_of(out, size);
    return chunk;
}

static void a_compact_chunk_is_about_two_bytes_per_event(void **state)
{
    struct words words = {.count = 0};
    struct mr_chunk chunk;

    (void)state;
    add(&words, mr_word_event(0x1000001, 0, 101));            /* +1, enter, new site */
    add(&words, mr_word_event(0x10002, 0, 103));              /* +2, enter, new site */
    add(&words, mr_word_event(0x10002, MR_WORD_EXIT, 104));   /* +1, exit of the top */
    add(&words, mr_word_event(0x10002, 0, 204));              /* +100, enter, number 2 */
    add(&words, mr_word_event(0x1000001, MR_WORD_EXIT, 205)); /* +1, exit of number 1 */
    add(&words, mr_word_event(0x10003, MR_WORD_EXIT, 205));   /* +0, exit, new site */
    add(&words, mr_word_record(MR_RECORD_MARK, 1, MR_WORD_EXIT, 206)); /* +1, other */
    add(&words, 0x55 | MR_WORD_LAP);
    chunk = chunk_of(&words, 100);
    chunk = compact(&chunk);
    assert_int_equal(chunk.records, 7);
    assert_hex(chunk.body,
               "04 00 81808008  08 00 828004  05  9003 02  06 01  02 00 838004"
               "07 832c 5500000000000000");
}

static void a_sync_is_written_with_step_0(void **state)
{
    struct words words = {.count = 0};
    struct mr_chunk chunk;

    (void)state;
    add(&words, mr_word_record(MR_RECORD_SYNC, 1, 0, 7));
    add(&words, UINT64_C(0x100000007));
    add(&words, mr_word_event(0x10002, 0, 8));
    chunk = chunk_of(&words, 100);
    chunk = compact(&chunk);
    assert_hex(chunk.body, "03 8204 0700000001000000 04 00 828004");
}

static void same(const struct mr_record *a, const struct mr_record *b)
{
    bool is_sync = a->kind == MR_RECORD_SYNC;

    assert_int_equal(a->site, b->site);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->is_exit, b->is_exit);
    assert_int_equal(a->words, b->words);
    assert_int_equal(a->ticks, b->ticks);
    assert_false(b->is_inversion && !is_sync);
    for (uint32_t i = 0; i < a->words; i++)
        assert_int_equal(a->payload[i], b->payload[i]);
}

static void assert_reads_the_same(const struct mr_chunk *words,
                                  const struct mr_chunk *compacted)
{
    static struct mr_record_reader a, b;
    static struct mr_record record_a, record_b;
    enum mr_status status;

    mr_record_reader_init(&a, words);
    mr_record_reader_init(&b, compacted);
    do {
        status = mr_record_next(&a, &record_a);
        assert_int_equal(mr_record_next(&b, &record_b), status);
        if (status == MR_OK)
            same(&record_a, &record_b);
    } while (status == MR_OK);
    assert_int_equal(status, MR_END);
}

static void add_other(struct words *words, struct mr_test_random *random, uint64_t ticks)
{
    static const uint8_t counts[] = {0, 1, 2, 1, 4, 4, 1, 1, 1,
                                     1, 2, 1, 2, 1, 3, 1, 1, 1};
    uint32_t kind = 1 + (uint32_t)mr_test_random_below(random, 20);
    /* A landing has up to 16 words; kinds 19 and 20 are unknown. */
    uint32_t count = kind < sizeof(counts)       ? counts[kind]
                     : kind == MR_RECORD_LANDING ? MR_LANDING_WORDS_MAX
                                                 : kind;
    uint64_t dir = mr_test_random_next(random) & MR_WORD_EXIT;

    add(words, mr_word_event(kind | count << 8, dir, ticks));
    while (count-- > 0)
        add(words, kind == MR_RECORD_SYNC ? ticks + mr_test_random_below(random, 1 << 20)
                                          : mr_test_random_next(random));
}

/* The next record in the way of the hot path: runs of `capacity`, and mr_record_next() between them. */
static enum mr_status next_of_runs(struct mr_record_reader *reader, uint32_t capacity,
                                   struct mr_record *record)
{
    static struct mr_record_event events[64];
    static uint32_t at, count;

    if (at == count) {
        at = 0;
        count = mr_record_next_run(reader, events, capacity);
        assert_true(count <= capacity);
    }
    if (count == 0)
        return mr_record_next(reader, record);
    *record = (struct mr_record){.site = events[at].site,
                                 .is_exit = events[at].is_exit,
                                 .ticks = events[at].ticks};
    at++;
    return MR_OK;
}

static void assert_runs_are_the_same(const struct mr_chunk *chunk, uint32_t capacity)
{
    static struct mr_record_reader a, b;
    static struct mr_record record_a, record_b;
    enum mr_status status;

    mr_record_reader_init(&a, chunk);
    mr_record_reader_init(&b, chunk);
    do {
        status = mr_record_next(&a, &record_a);
        assert_int_equal(next_of_runs(&b, capacity, &record_b), status);
        if (status == MR_OK)
            same(&record_a, &record_b);
    } while (status == MR_OK);
    assert_int_equal(status, MR_END);
}

/* Calls that mostly match, some exits that do not, inversions, other records. */
static void add_random(struct words *words, struct mr_test_random *random, uint32_t sites,
                       uint32_t count)
{
    static uint32_t stack[WORDS_MAX];
    uint32_t depth = 0;
    uint64_t ticks = 1000;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t choice = mr_test_random_below(random, 100);
        uint32_t site =
            MR_SITE_FIRST_NAMED + (uint32_t)mr_test_random_below(random, sites);

        ticks += mr_test_random_below(random, choice == 1 ? 1u << 30 : 200);
        if (choice == 0)
            ticks -= 100;
        if (choice < 5)
            add_other(words, random, ticks);
        else if (choice < 10 || depth == 0)
            add(words,
                mr_word_event(site, mr_test_random_next(random) & MR_WORD_EXIT, ticks));
        else if (choice < 55)
            add(words, mr_word_event(stack[depth++] = site, 0, ticks));
        else
            add(words, mr_word_event(stack[--depth], MR_WORD_EXIT, ticks));
        if (choice >= 5 && choice < 10)
            stack[depth++] = site;
    }
}

static void random_streams_read_the_same_in_both_encodings(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    static struct words words;

    (void)state;
    for (int round = 0; round < 300; round++) {
        struct mr_chunk chunk, compacted;

        words.count = 0;
        add_random(&words, &random, 1 + (uint32_t)mr_test_random_below(&random, 1000),
                   1 + (uint32_t)mr_test_random_below(&random, 600));
        chunk = chunk_of(&words, mr_test_random_below(&random, 1000));
        compacted = compact(&chunk);
        assert_reads_the_same(&chunk, &compacted);
        assert_runs_are_the_same(&compacted,
                                 1 + (uint32_t)mr_test_random_below(&random, 64));
    }
}

static void words_have_no_runs(void **state)
{
    struct words words = {.count = 0};
    struct mr_record_reader reader;
    struct mr_record_event event;
    struct mr_chunk chunk;

    (void)state;
    add(&words, mr_word_event(0x10002, 0, 8));
    add(&words, mr_word_event(0x10002, 0, 9));
    chunk = chunk_of(&words, 0);
    mr_record_reader_init(&reader, &chunk);
    assert_int_equal(mr_record_next_run(&reader, &event, 1), 0);
}

static void a_stack_deeper_than_4096_reads_the_same(void **state)
{
    static struct words words;
    struct mr_chunk chunk, compacted;

    (void)state;
    words.count = 0;
    for (uint32_t i = 0; i < 6000; i++)
        add(&words, mr_word_event(MR_SITE_FIRST_NAMED + i % 100, 0, i));
    for (uint32_t i = 6000; i-- > 0;)
        add(&words,
            mr_word_event(MR_SITE_FIRST_NAMED + i % 100, MR_WORD_EXIT, 12000 - i));
    chunk = chunk_of(&words, 0);
    compacted = compact(&chunk);
    assert_reads_the_same(&chunk, &compacted);
}

static size_t compact_sites(uint32_t sites)
{
    static struct words words;
    struct mr_chunk chunk;
    uint32_t records;

    words.count = 0;
    for (uint32_t i = 0; i < sites; i++)
        add(&words, mr_word_event(MR_SITE_FIRST_NAMED + i * 4096, 0, i));
    chunk = chunk_of(&words, 0);
    return mr_chunk_compact(&chunk, &workspace, out, sizeof(out), &records);
}

/* Steps and numbers of one, two and more bytes, as short chunks end in all ways. */
static void lengths_of_varints_read_the_same(void **state)
{
    static struct words words;
    uint64_t ticks = 0;

    (void)state;
    words.count = 0;
    for (uint32_t i = 0; i < 300; i++) { /* numbers up to 300 */
        add(&words, mr_word_event(MR_SITE_FIRST_NAMED + i, 0, ticks += 31));
        add(&words, mr_word_event(MR_SITE_FIRST_NAMED + i, MR_WORD_EXIT, ticks += 32));
    }
    for (uint32_t bit = 0; bit < 31; bit++)
        for (uint32_t more = 0; more < 2; more++) {
            uint32_t site = MR_SITE_FIRST_NAMED + bit * 9;

            ticks += (UINT64_C(1) << bit) - more;
            add(&words, mr_word_event(site, more ? MR_WORD_EXIT : 0, ticks));
        }
    for (uint32_t count = 1; count <= words.count; count++) {
        struct mr_chunk chunk = chunk_of(&words, 0), compacted;

        chunk.records = count;
        chunk.body.size = count * sizeof(words.at[0]);
        compacted = compact(&chunk);
        assert_reads_the_same(&chunk, &compacted);
        assert_runs_are_the_same(&compacted, 64);
    }
}

static void a_chunk_of_more_than_4096_sites_stays_words(void **state)
{
    (void)state;
    assert_true(compact_sites(4096) > 0);
    assert_int_equal(compact_sites(4097), 0);
}

static void what_does_not_fit_stays_words(void **state)
{
    static struct words words;
    struct mr_chunk chunk;
    uint32_t records;
    size_t size;

    (void)state;
    words.count = 0;
    for (uint32_t i = 0; i < 100; i++)
        add(&words, mr_word_event(MR_SITE_FIRST_NAMED + i, 0, i));
    chunk = chunk_of(&words, 0);
    size = mr_chunk_compact(&chunk, &workspace, out, sizeof(out), &records);
    for (size_t capacity = 0; capacity < size; capacity++)
        assert_int_equal(mr_chunk_compact(&chunk, &workspace, out, capacity, &records),
                         0);
}

static enum mr_status read_hex(const char *hex, uint32_t records)
{
    static struct mr_record_reader reader;
    struct mr_test_bytes bytes = mr_test_bytes(hex);
    struct mr_chunk chunk = {.encoding = MR_CHUNK_COMPACT,
                             .stream = 1,
                             .records = records,
                             .body = mr_test_span(&bytes)};
    struct mr_record record;
    struct mr_record_event events[4];
    enum mr_status status, status_of_runs;

    mr_record_reader_init(&reader, &chunk);
    while ((status = mr_record_next(&reader, &record)) == MR_OK)
        ;
    mr_record_reader_init(&reader, &chunk);
    do {
        while (mr_record_next_run(&reader, events, 4) > 0)
            ;
    } while ((status_of_runs = mr_record_next(&reader, &record)) == MR_OK);
    assert_int_equal(status_of_runs, status);
    return status;
}

static void compact_bytes_that_break_a_rule_are_refused(void **state)
{
    (void)state;
    assert_int_equal(read_hex("00 00 808004", 1), MR_END);
    assert_int_equal(read_hex("00 00 808004 00", 1), MR_EFORMAT);  /* a byte too many */
    assert_int_equal(read_hex("00 00 808004", 2), MR_EFORMAT);     /* a record too few */
    assert_int_equal(read_hex("00 00 8080", 1), MR_EFORMAT);       /* cut */
    assert_int_equal(read_hex("00 00 ffff03", 1), MR_EFORMAT);     /* no site */
    assert_int_equal(read_hex("00 00 8080808004", 1), MR_EFORMAT); /* site 2^30 */
    assert_int_equal(read_hex("00 01", 1), MR_EFORMAT);     /* number not given out */
    assert_int_equal(read_hex("01", 1), MR_EFORMAT);        /* exit of an empty stack */
    assert_int_equal(read_hex("03 00", 1), MR_EFORMAT);     /* kind 0 */
    assert_int_equal(read_hex("03 808008", 1), MR_EFORMAT); /* kind 256 */
    assert_int_equal(read_hex("03 8204 00000000000000", 1), MR_EFORMAT); /* payload cut */
    assert_int_equal(read_hex("fcffffffffffffffff01 00 808004 fdffffffffffffffff01", 2),
                     MR_END);
    assert_int_equal(read_hex("fcffffffffffffffff01 00 808004 fdffffffffffffffff01"
                              "fcffffffffffffffff01 01",
                              3),
                     MR_EFORMAT); /* times past 2^63 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compact_chunk_is_about_two_bytes_per_event),
        cmocka_unit_test(a_sync_is_written_with_step_0),
        cmocka_unit_test(random_streams_read_the_same_in_both_encodings),
        cmocka_unit_test(a_stack_deeper_than_4096_reads_the_same),
        cmocka_unit_test(words_have_no_runs),
        cmocka_unit_test(lengths_of_varints_read_the_same),
        cmocka_unit_test(a_chunk_of_more_than_4096_sites_stays_words),
        cmocka_unit_test(what_does_not_fit_stays_words),
        cmocka_unit_test(compact_bytes_that_break_a_rule_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
