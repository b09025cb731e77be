/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MR_LONG_CALLS    calls of the long trace, 4 M by default
 *
 * What a sender may try: memory stays where it is, and every event is accounted for. (Limits of single tables: the tests of
 * their modules, tests/unit/pipeline; ten thousand streams: tests/system/streams.)
 */
#include "../unit/unit_test.h"

#include <malloc.h>
#include <string.h>

#include "net/chunk.h"
#include "product.h"

#define MIB ((size_t)1 << 20)
#define FEED_WORDS 8192u
#define LONG_CALLS_DEFAULT UINT64_C(4000000)
#define NEW_TRACES 60000u
#define UNKNOWN_CALLS (8000000u / MR_TEST_FEWER)
#define NEW_CALLS 24u
#define DEEP UINT64_C(10000000)

/* One stream of a source whose deltas are forgotten. */
struct feed {
    struct product *product;
    uint64_t words[FEED_WORDS];
    uint32_t count;
    uint64_t ticks, chunk_ticks, events;
};

static const struct ref_options model = {
    .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
    .trace_children_max = MR_REDUCE_TRACE_CHILDREN_DEFAULT,
    .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
    .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT,
    .window_s = 1,
    .app = "app",
    .version = "1",
    .clock_mult = 1,
    .clock_realtime_ns = UINT64_C(1700000000) * MR_SECOND_NS};

/* A sanitizer's allocator says nothing here; then only the accounts are checked. */
static size_t memory(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void begin(struct feed *feed, const struct mr_reduce_config *reduce)
{
    const struct product_config config = {
        .model = model, .reduce = *reduce, .forgets = true};
    const struct op module = {.kind = OP_MODULE};

    *feed = (struct feed){.product = product_new(&config), .ticks = 1};
    product_op(feed->product, &module, NULL);
}

static void send(struct feed *feed)
{
    static uint8_t bytes[MR_CHUNK_HEADER_SIZE + FEED_WORDS * sizeof(uint64_t)];
    size_t size = feed->count * sizeof(uint64_t);
    const struct mr_chunk chunk = {.stream = 1,
                                   .epoch = SCRIPT_EPOCH,
                                   .first_event = feed->events,
                                   .events = feed->count,
                                   .ticks = feed->chunk_ticks,
                                   .records = feed->count,
                                   .body = mr_span_of(feed->words, size)};
    const struct op op = {
        .kind = OP_CHUNKS, .bytes = bytes, .size = MR_CHUNK_HEADER_SIZE + size};

    mr_chunk_put_header(&chunk, bytes);
    memcpy(bytes + MR_CHUNK_HEADER_SIZE, feed->words, size);
    product_op(feed->product, &op, NULL);
    feed->events += feed->count;
    feed->count = 0;
    feed->chunk_ticks = feed->ticks;
}

static void put(struct feed *feed, uint32_t function, bool is_exit)
{
    feed->ticks += 50;
    feed->words[feed->count++] =
        mr_word_event(script_modules[0].site_base + 16 * function,
                      is_exit ? MR_WORD_EXIT : 0, feed->ticks);
    if (feed->count == FEED_WORDS)
        send(feed);
}

static void call(struct feed *feed, uint32_t function)
{
    put(feed, function, false);
    put(feed, function, true);
}

/* What must be so at the end. */
static void check_account(struct feed *feed, uint64_t lost)
{
    send(feed);
    assert_int_equal(product_finish(feed->product), 0); /* nothing is held */
    assert_int_equal(product_counter(feed->product, "lost"), lost);
    assert_int_equal(product_counter(feed->product, "reduced"), feed->events - lost);
    product_end(feed->product, NULL);
}

static void a_trace_of_any_length_takes_constant_memory(void **state)
{
    const struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    static struct feed feed;
    const char *given = getenv("MR_LONG_CALLS");
    uint64_t calls = given ? strtoull(given, NULL, 0) : LONG_CALLS_DEFAULT;
    size_t before = 0;

    (void)state;
    begin(&feed, &reduce);
    put(&feed, 1, false);
    for (uint64_t i = 0; i < calls; i++) {
        call(&feed, 2 + (uint32_t)(i * i % 7));
        if (i == LONG_CALLS_DEFAULT / 8)
            before = memory();
    }
    print_message("%" PRIu64 " calls: %zu KiB, %zu KiB at the end\n", calls,
                  before / 1024, memory() / 1024);
    assert_true(memory() <= before + MIB);
    put(&feed, 1, true);
    check_account(&feed, 0);
}

/* Trace `number`: its bits say what it calls. */
static void put_new_trace(struct feed *feed, uint64_t number)
{
    put(feed, 1, false);
    for (uint32_t bit = 0; bit < NEW_CALLS; bit++) {
        call(feed, 2 + bit % 2);
        if (number >> bit & 1)
            call(feed, 4);
    }
    put(feed, 1, true);
}

static void shapes_that_never_come_back_take_constant_memory(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    static struct feed feed;
    size_t before = 0;

    (void)state;
    reduce.nodes_max = 8192;
    reduce.shapes_max = 1024;
    begin(&feed, &reduce);
    for (uint64_t i = 0; i < NEW_TRACES; i++) {
        put_new_trace(&feed, i);
        if (i == NEW_TRACES / 4)
            before = memory();
    }
    assert_true(memory() <= before + MIB);
    check_account(&feed, 0);
}

/* Past the limit each enter and exit is lost, counted; what is below goes on. */
static void a_depth_of_ten_million_is_bounded_and_accounted(void **state)
{
    const struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    static struct feed feed;
    size_t before = memory();

    (void)state;
    begin(&feed, &reduce);
    for (uint64_t i = 0; i < DEEP; i++)
        put(&feed, 1, false);
    assert_true(memory() <= before + 128 * MIB);
    for (uint64_t i = 0; i < DEEP; i++)
        put(&feed, 1, true);
    check_account(&feed, 2 * (DEEP - MR_RECONSTRUCT_DEPTH_DEFAULT));
}

static void exits_without_enters_are_accounted(void **state)
{
    const struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    static struct feed feed;

    (void)state;
    begin(&feed, &reduce);
    for (uint32_t i = 0; i < 1000000; i++)
        put(&feed, i % 60, true);
    check_account(&feed, 0);
}

/* Sites beyond every module, and named ones that nobody names: all are the unknown site. */
static void ids_that_are_never_announced_take_constant_memory(void **state)
{
    const struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    static struct feed feed;
    size_t before = 0;

    (void)state;
    begin(&feed, &reduce);
    for (uint32_t i = 0; i < UNKNOWN_CALLS; i++) {
        call(&feed, 100000 + i);
        if (i == UNKNOWN_CALLS / 2)
            before = memory();
    }
    assert_true(memory() <= before + MIB);
    check_account(&feed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_of_any_length_takes_constant_memory),
        cmocka_unit_test(shapes_that_never_come_back_take_constant_memory),
        cmocka_unit_test(a_depth_of_ten_million_is_bounded_and_accounted),
        cmocka_unit_test(exits_without_enters_are_accounted),
        cmocka_unit_test(ids_that_are_never_announced_take_constant_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
