/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/delta.h"
#include "net/ids.h"
#include "pipeline/accumulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAYLOADS 40
#define PATHS 30 /* per payload */
#define BUFFER_LIMIT (16u << 20)

static struct mr_id number_id(uint64_t number)
{
    return (struct mr_id){number * 0x9e3779b97f4a7c15u, number};
}

static struct mr_accumulator *new_accumulator(const struct mr_accumulator_limits *limits)
{
    struct mr_accumulator *acc = NULL;

    assert_int_equal(mr_accumulator_new(limits, &acc), MR_OK);
    return acc;
}

static void time_one(struct mr_times *times, uint64_t ns)
{
    *times = (struct mr_times){ns, ns, ns};
}

static struct mr_path_stats one_call(uint64_t total_ns)
{
    struct mr_path_stats stats = {.ok = 1, .histogram = MR_HISTOGRAM_EMPTY};

    time_one(&stats.total, total_ns);
    time_one(&stats.self, total_ns / 2);
    assert_int_equal(mr_histogram_add(&stats.histogram, total_ns, 1), MR_OK);
    return stats;
}

static void put_path_stat(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                          uint64_t ns)
{
    struct mr_path_stats stats = one_call(ns);

    mr_delta_path_stat(w, path, window, &stats);
    mr_histogram_fini(&stats.histogram);
}

static void put_shape_stat(struct mr_delta_writer *w, uint32_t shape, uint64_t window,
                           uint64_t ns)
{
    struct mr_shape_stats stats = {.ok = 1,
                                   .calls = 3,
                                   .first_ns = window * 7,
                                   .last_ns = window * 7 + ns,
                                   .histogram = MR_HISTOGRAM_EMPTY};

    time_one(&stats.time, ns);
    assert_int_equal(mr_histogram_add(&stats.histogram, ns, 1), MR_OK);
    mr_delta_shape_stat(w, shape, window, &stats);
    mr_histogram_fini(&stats.histogram);
}

static uint64_t random_ns(unsigned *seed)
{
    return (uint64_t)rand_r(seed) >> (rand_r(seed) % 31);
}

static void put_path_counter(struct mr_delta_writer *w, uint32_t path, uint64_t window,
                             unsigned *seed)
{
    const uint32_t counter =
        mr_delta_span_counter(w, number_id(500 + (uint64_t)rand_r(seed) % 3));
    struct mr_counter_stats stats = {.calls = (uint64_t)rand_r(seed) % 2,
                                     .backward = (uint64_t)rand_r(seed) % 2};

    if (stats.calls) {
        time_one(&stats.total, random_ns(seed));
        time_one(&stats.self, stats.total.sum / 3);
    }
    mr_delta_path_counter(w, path, window, counter, &stats);
}

/* Few lengths and starts, so that later fields of the order decide. */
static void put_exemplar(struct mr_delta_writer *w, uint32_t path, uint32_t shape,
                         uint32_t source, unsigned *seed)
{
    uint64_t ns = 10 + (uint64_t)rand_r(seed) % 3;
    const struct mr_exemplar_call calls[] = {
        {.total_ns = ns, .elided_calls = 3, .elided_ns = 2},
        {.start_ns = 1, .total_ns = ns - 4, .site = 1, .depth = 1}};
    const struct mr_exemplar exemplar = {
        .why = 1 + (uint32_t)rand_r(seed) % MR_EXEMPLAR_ALL,
        .status = (enum mr_exemplar_status)(rand_r(seed) % MR_EXEMPLAR_STATUS_COUNT),
        .stream = (uint32_t)rand_r(seed) % 2,
        .before = (uint64_t)rand_r(seed) << 31 | (uint64_t)rand_r(seed),
        .start_ns = 100 + (uint64_t)rand_r(seed) % 3,
        .calls = 5,
        .call_count = 2,
        .items = calls};

    mr_delta_exemplar(w, path, rand_r(seed) % 3 ? shape : MR_DELTA_NONE, source,
                      &exemplar);
    mr_delta_asked(w, number_id(900 + (uint64_t)rand_r(seed) % 3), 3, path,
                   rand_r(seed) % 3 ? shape : MR_DELTA_NONE, source, &exemplar);
}

static void put_shape_path(struct mr_delta_writer *w, uint32_t shape, uint32_t path,
                           unsigned *seed)
{
    struct mr_shape_path_stats stats = {.ok = 1};

    time_one(&stats.total, random_ns(seed));
    time_one(&stats.self, stats.total.sum / 3);
    mr_delta_shape_path(w, shape, path, &stats);
}

static void put_joined_rows(struct mr_delta_writer *w, unsigned *seed, uint32_t joined,
                            uint64_t window)
{
    uint64_t ns = random_ns(seed);
    bool is_timed = rand_r(seed) % 4 != 0;
    struct mr_joined_stats stats = {.ok = is_timed,
                                    .incomplete = !is_timed,
                                    .first_ns = 1000 + ns,
                                    .last_ns = 1000 + ns,
                                    .histogram = MR_HISTOGRAM_EMPTY};
    struct mr_edge_stats edge = {.count = 1,
                                 .clamped = (uint64_t)rand_r(seed) % 2,
                                 .histogram = MR_HISTOGRAM_EMPTY};

    if (is_timed) {
        time_one(&stats.time, ns);
        stats.slowest = number_id((uint64_t)rand_r(seed) % 50);
        assert_int_equal(mr_histogram_add(&stats.histogram, ns, 1), MR_OK);
    }
    mr_delta_joined_stat(w, joined, window, &stats);
    time_one(&edge.time, ns / 3);
    assert_int_equal(mr_histogram_add(&edge.histogram, ns / 3, 1), MR_OK);
    mr_delta_joined_edge(w, joined, window, 1 + (uint32_t)rand_r(seed) % 2, &edge);
    mr_histogram_fini(&stats.histogram);
    mr_histogram_fini(&edge.histogram);
}

/* A joined shape of a root and two parts, of few. */
static uint32_t put_joined(struct mr_delta_writer *w, unsigned *seed)
{
    struct mr_joined_node nodes[3] = {
        {.path = number_id(7),
         .node = number_id((uint64_t)rand_r(seed) % 4),
         .children = 2},
        {.path = number_id(8), .kind = MR_EDGE_MESSAGE},
        {.path = number_id(9), .kind = MR_EDGE_HAND_OFF, .flags = MR_JOINED_RUN}};

    return mr_delta_joined(w, mr_joined_id(nodes, 3), nodes, 3);
}

/* Parts of few ids: one that comes again is the same. */
static void put_part(struct mr_delta_writer *w, unsigned *seed)
{
    uint64_t number = (uint64_t)rand_r(seed) % 100;
    const struct mr_part_edge out[] = {
        {number_id(number), 2000 + number, MR_EDGE_MESSAGE},
        {number_id(number + 1), 1, MR_EDGE_NEXT}};
    const struct mr_part part = {.id = number_id(number),
                                 .trace = number_id(3),
                                 .source = number_id(4),
                                 .start_ns = 1000,
                                 .end_ns = 1000 + number,
                                 .shift_ns = (int64_t)number - 50,
                                 .status = (uint32_t)(number % MR_PART_STATUSES),
                                 .out = out,
                                 .out_count = (uint32_t)(number % 3)};

    mr_delta_part(w, &part);
}

static void put_rows(struct mr_delta_writer *w, unsigned *seed, const uint32_t *paths,
                     uint32_t shape, uint32_t source)
{
    const struct mr_entry_stats entry = {
        {1, 2, 0, 4}, {5, 6, 7, 8}, {9, 10, 11, random_ns(seed)}};
    struct mr_ledger_entry ledger = {
        .last = random_ns(seed), .reduced = 7, .held = rand_r(seed) % 9 - 4};
    uint64_t window = 1000 + (uint64_t)rand_r(seed) % 4;
    const struct mr_open_stats open = {.count = 2, .ages = {1, 1}, .oldest_ns = window};

    for (int i = 0; i < PATHS; i++) {
        if (rand_r(seed) % 3)
            put_path_stat(w, paths[i], window + (uint64_t)(rand_r(seed) % 2),
                          random_ns(seed));
        if (rand_r(seed) % 3 == 0)
            put_path_counter(w, paths[i], window, seed);
    }
    put_shape_stat(w, shape, window, random_ns(seed));
    for (int i = 0; i < 3; i++) {
        put_exemplar(w, paths[0], shape, source, seed);
        put_shape_path(w, shape, paths[rand_r(seed) % PATHS], seed);
    }
    mr_delta_entry_stat(w, paths[0], window, &entry);
    ledger.lost[MR_LOSS_FORMAT] = (uint64_t)rand_r(seed) % 3;
    mr_delta_ledger(w, source, (uint32_t)rand_r(seed) % 3, &ledger);
    mr_delta_open(w, paths[0], paths[1], &open);
    mr_delta_counter(w, rand_r(seed) % 2 ? "this" : "that", random_ns(seed));
    put_joined_rows(w, seed, put_joined(w, seed), window);
    put_joined_rows(w, seed, put_joined(w, seed), window);
    put_part(w, seed);
    put_part(w, seed);
}

/* A payload over a small world, so that payloads have much in common. */
static void put_payload(struct mr_buffer *out, unsigned *seed)
{
    struct mr_delta_writer w;
    uint32_t sites[6], scope, paths[PATHS], source, shape;

    mr_buffer_init(out, BUFFER_LIMIT);
    mr_delta_begin(&w, out);
    mr_delta_head(&w, 1, random_ns(seed));
    for (uint32_t i = 0; i < 6; i++)
        sites[i] = mr_delta_site(&w, number_id(100 + (uint64_t)rand_r(seed) % 12));
    scope = mr_delta_scope(&w, number_id((uint64_t)rand_r(seed) % 3));
    source = mr_delta_source(&w, number_id((uint64_t)rand_r(seed) % 4));
    for (uint32_t i = 0; i < PATHS; i++) {
        uint32_t parent = i == 0 || rand_r(seed) % 8 == 0
                              ? MR_DELTA_NONE
                              : paths[(uint32_t)rand_r(seed) % i];

        paths[i] = mr_delta_path(&w, parent, scope, sites[rand_r(seed) % 6],
                                 rand_r(seed) % 9 == 0 ? MR_DELTA_PATH_OUTER : 0);
    }
    shape = mr_delta_shape(&w, scope, paths[0], number_id((uint64_t)rand_r(seed) % 5));
    put_rows(&w, seed, paths, shape, source);
    assert_int_equal(mr_delta_status(&w), MR_OK);
}

static void merge_into(struct mr_accumulator *acc, const struct mr_buffer *payload)
{
    struct mr_error error = MR_ERROR_NONE;

    mr_accumulator_open(acc, mr_buffer_span(payload));
    assert_int_equal(mr_accumulator_merge(acc, &error), MR_OK);
}

/* Everything as one payload. */
static void write_whole(struct mr_accumulator *acc, struct mr_buffer *out)
{
    struct mr_buffer end;

    mr_buffer_init(out, BUFFER_LIMIT);
    mr_buffer_init(&end, BUFFER_LIMIT);
    assert_int_equal(mr_accumulator_write_begin(acc), MR_OK);
    assert_int_equal(mr_accumulator_write(acc, 1, 42, out), MR_OK);
    assert_int_equal(mr_accumulator_write(acc, 1, 42, &end), MR_END);
    assert_int_equal(end.size, 0);
    mr_buffer_fini(&end);
}

static void assert_same_bytes(const struct mr_buffer *a, const struct mr_buffer *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

static void shuffle(struct mr_buffer *payloads, uint32_t count, unsigned *seed)
{
    for (uint32_t i = count; i-- > 1;) {
        uint32_t other = (uint32_t)rand_r(seed) % (i + 1);
        struct mr_buffer swap = payloads[i];

        payloads[i] = payloads[other];
        payloads[other] = swap;
    }
}

/* Level 1: groups of random size, written in small parts; level 2: the parts, merged. */
static void merge_in_groups(struct mr_accumulator *top, const struct mr_buffer *payloads,
                            unsigned *seed)
{
    const struct mr_accumulator_limits small_parts = {.part_bytes = 600};
    struct mr_accumulator *acc = new_accumulator(&small_parts);
    struct mr_buffer part;

    mr_buffer_init(&part, BUFFER_LIMIT);
    for (int i = 0; i < PAYLOADS; i++) {
        merge_into(acc, &payloads[i]);
        if (rand_r(seed) % 4 && i + 1 < PAYLOADS)
            continue;
        assert_int_equal(mr_accumulator_write_begin(acc), MR_OK);
        while (mr_accumulator_write(acc, 1, 7, &part) == MR_OK) {
            merge_into(top, &part);
            mr_buffer_clear(&part);
        }
        mr_accumulator_reset(acc);
        assert_true(mr_accumulator_is_empty(acc));
    }
    mr_buffer_fini(&part);
    mr_accumulator_free(acc);
}

static void the_result_is_the_same_for_every_order_and_grouping(void **state)
{
    const struct mr_accumulator_limits one_part = {.part_bytes = BUFFER_LIMIT};
    unsigned seed = (unsigned)mr_clock_realtime_ns();
    struct mr_buffer payloads[PAYLOADS], plain;
    struct mr_accumulator *acc = new_accumulator(&one_part);

    (void)state;
    print_message("seed %u\n", seed);
    for (int i = 0; i < PAYLOADS; i++) {
        put_payload(&payloads[i], &seed);
        merge_into(acc, &payloads[i]);
    }
    write_whole(acc, &plain);
    for (int round = 0; round < 20; round++) {
        struct mr_buffer other;

        shuffle(payloads, PAYLOADS, &seed);
        mr_accumulator_reset(acc);
        if (round % 3 == 0)
            mr_accumulator_release(acc);
        if (round % 2) {
            merge_in_groups(acc, payloads, &seed);
        } else {
            for (int i = 0; i < PAYLOADS; i++)
                merge_into(acc, &payloads[i]);
        }
        write_whole(acc, &other);
        assert_same_bytes(&plain, &other);
        mr_buffer_fini(&other);
    }
    for (int i = 0; i < PAYLOADS; i++)
        mr_buffer_fini(&payloads[i]);
    mr_buffer_fini(&plain);
    mr_accumulator_free(acc);
}

/* The naive model: sums over all items, by what they are. */
struct totals {
    uint64_t path_calls, path_self, path_timed, shape_traces, entry_traces, reduced, lost,
        counted, counter_calls, counter_self, counter_backward;
    int64_t held;
};

static void add_totals(struct totals *totals, const struct mr_buffer *payload)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    mr_delta_reader_init(&reader, mr_buffer_span(payload));
    while (mr_delta_next(&reader, &item) == MR_OK) {
        if (item.tag == MR_DELTA_PATH_STAT) {
            totals->path_calls += item.path_stats->ok;
            totals->path_self += item.path_stats->self.sum;
            totals->path_timed += mr_histogram_total(&item.path_stats->histogram);
        } else if (item.tag == MR_DELTA_SHAPE_STAT) {
            totals->shape_traces += item.shape_stats->ok;
        } else if (item.tag == MR_DELTA_ENTRY_STAT) {
            totals->entry_traces += item.entry_stats->traces[MR_COVERAGE_INCOMPLETE];
        } else if (item.tag == MR_DELTA_LEDGER) {
            totals->reduced += item.ledger->reduced;
            totals->held += item.ledger->held;
            totals->lost += item.ledger->lost[MR_LOSS_FORMAT];
        } else if (item.tag == MR_DELTA_COUNTER) {
            totals->counted += item.value;
        } else if (item.tag == MR_DELTA_PATH_COUNTER) {
            totals->counter_calls += item.counter_stats->calls;
            totals->counter_self += item.counter_stats->self.sum;
            totals->counter_backward += item.counter_stats->backward;
        }
    }
    mr_delta_reader_fini(&reader);
}

static void nothing_is_gained_or_lost(void **state)
{
    const struct mr_accumulator_limits one_part = {.part_bytes = BUFFER_LIMIT};
    unsigned seed = (unsigned)mr_clock_realtime_ns();
    struct totals in = {0}, out = {0};
    struct mr_accumulator *acc = new_accumulator(&one_part);
    struct mr_accumulator_stats stats;
    struct mr_buffer whole;

    (void)state;
    print_message("seed %u\n", seed);
    for (int i = 0; i < PAYLOADS; i++) {
        struct mr_buffer payload;

        put_payload(&payload, &seed);
        add_totals(&in, &payload);
        merge_into(acc, &payload);
        mr_buffer_fini(&payload);
    }
    write_whole(acc, &whole);
    add_totals(&out, &whole);
    assert_memory_equal(&in, &out, sizeof(in));
    assert_true(in.path_calls > 0 && in.counter_self > 0 && in.counter_backward > 0);
    mr_accumulator_stats(acc, &stats);
    assert_int_equal(stats.payloads, PAYLOADS);
    assert_int_equal(stats.over_limit + stats.unknown + stats.unwritten, 0);
    mr_buffer_fini(&whole);
    mr_accumulator_free(acc);
}

/* A chain of `depth` paths, a stat on the last. */
static void put_chain(struct mr_buffer *out, uint32_t depth, uint64_t window)
{
    struct mr_delta_writer w;
    uint32_t site, scope, path = MR_DELTA_NONE;

    mr_buffer_init(out, BUFFER_LIMIT);
    mr_delta_begin(&w, out);
    site = mr_delta_site(&w, number_id(1));
    scope = mr_delta_scope(&w, number_id(2));
    for (uint32_t i = 0; i < depth; i++)
        path = mr_delta_path(&w, path, scope, site, 0);
    put_path_stat(&w, path, window, 10);
    assert_int_equal(mr_delta_status(&w), MR_OK);
}

/* Merges with small limits, writing whenever it is full. Returns how often it was. */
static uint32_t merge_through(struct mr_accumulator *acc, const struct mr_buffer *payload,
                              struct totals *totals)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_buffer part;
    uint32_t full = 0;
    enum mr_status status;

    mr_buffer_init(&part, BUFFER_LIMIT);
    mr_accumulator_open(acc, mr_buffer_span(payload));
    do {
        status = mr_accumulator_merge(acc, &error);
        full += status == MR_AGAIN;
        assert_int_equal(mr_accumulator_write_begin(acc), MR_OK);
        while (mr_accumulator_write(acc, 1, 7, &part) == MR_OK) {
            add_totals(totals, &part);
            mr_buffer_clear(&part);
        }
        mr_accumulator_reset(acc);
    } while (status == MR_AGAIN);
    assert_int_equal(status, MR_OK);
    mr_buffer_fini(&part);
    return full;
}

static void a_full_accumulator_asks_to_be_written_and_goes_on(void **state)
{
    static const struct mr_accumulator_limits limits[] = {
        {.rows_max = 3}, {.paths_max = 32}, {.windows_max = 1}};
    unsigned seed = (unsigned)mr_clock_realtime_ns();

    (void)state;
    print_message("seed %u\n", seed);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct mr_accumulator *acc = new_accumulator(&limits[i]);
        struct totals in = {0}, out = {0};
        struct mr_accumulator_stats stats;
        uint32_t full = 0;

        for (int n = 0; n < PAYLOADS; n++) {
            struct mr_buffer payload;

            put_payload(&payload, &seed);
            add_totals(&in, &payload);
            full += merge_through(acc, &payload, &out);
            mr_buffer_fini(&payload);
        }
        assert_memory_equal(&in, &out, sizeof(in));
        assert_true(i == 1 || full > 0);
        mr_accumulator_stats(acc, &stats);
        assert_int_equal(stats.over_limit, 0);
        mr_accumulator_free(acc);
    }
}

static void an_item_that_alone_passes_a_limit_is_counted(void **state)
{
    const struct mr_accumulator_limits limits = {.paths_max = 8};
    struct mr_accumulator *acc = new_accumulator(&limits);
    struct mr_accumulator_stats stats;
    struct mr_buffer payload;

    (void)state;
    put_chain(&payload, 9, 1);
    merge_into(acc, &payload);
    mr_accumulator_stats(acc, &stats);
    assert_int_equal(stats.over_limit, 1);
    assert_true(mr_accumulator_is_empty(acc));
    mr_buffer_fini(&payload);
    put_chain(&payload, 8, 1);
    merge_into(acc, &payload);
    assert_false(mr_accumulator_is_empty(acc));
    mr_buffer_fini(&payload);
    mr_accumulator_free(acc);
}

static void a_very_deep_path_is_taken_up_to_the_limit(void **state)
{
    struct mr_accumulator *acc = new_accumulator(NULL);
    struct mr_accumulator_stats stats;
    struct mr_buffer payload, out;

    (void)state;
    put_chain(&payload, MR_ACCUMULATOR_DEPTH_MAX, 1);
    merge_into(acc, &payload);
    write_whole(acc, &out);
    mr_buffer_fini(&out);
    mr_buffer_fini(&payload);
    mr_accumulator_reset(acc);
    put_chain(&payload, MR_ACCUMULATOR_DEPTH_MAX + 1, 1);
    merge_into(acc, &payload);
    mr_accumulator_stats(acc, &stats);
    assert_int_equal(stats.over_limit, 1);
    mr_buffer_fini(&payload);
    mr_accumulator_free(acc);
}

static void a_row_that_no_buffer_holds_is_counted_and_the_rest_written(void **state)
{
    struct mr_accumulator *acc = new_accumulator(NULL);
    struct mr_accumulator_stats stats;
    struct mr_buffer payload, out;
    struct totals totals = {0};

    (void)state;
    put_chain(&payload, 1000, 1);
    merge_into(acc, &payload);
    mr_buffer_fini(&payload);
    put_chain(&payload, 1, 1);
    merge_into(acc, &payload);
    mr_buffer_fini(&payload);
    mr_buffer_init(&out, 1000);
    assert_int_equal(mr_accumulator_write_begin(acc), MR_OK);
    while (mr_accumulator_write(acc, 1, 1, &out) == MR_OK) {
        add_totals(&totals, &out);
        mr_buffer_clear(&out);
    }
    mr_accumulator_stats(acc, &stats);
    assert_int_equal(stats.unwritten, 1);
    assert_int_equal(totals.path_calls, 1);
    mr_buffer_fini(&out);
    mr_accumulator_free(acc);
}

static void a_broken_payload_says_where_and_later_ones_go_on(void **state)
{
    struct mr_accumulator *acc = new_accumulator(NULL);
    struct mr_error error = MR_ERROR_NONE;
    struct mr_accumulator_stats stats;
    struct mr_buffer payload;

    (void)state;
    put_chain(&payload, 3, 1);
    mr_accumulator_open(acc, mr_span_of(payload.data, payload.size - 1));
    assert_int_equal(mr_accumulator_merge(acc, &error), MR_EFORMAT);
    assert_non_null(strstr(error.text, "byte"));
    merge_into(acc, &payload);
    mr_accumulator_stats(acc, &stats);
    assert_int_equal(stats.payloads, 1);
    assert_int_equal(stats.rows, 1);
    mr_buffer_fini(&payload);
    mr_accumulator_free(acc);
}

static void random_bytes_do_no_harm(void **state)
{
    struct mr_accumulator *acc = new_accumulator(NULL);
    unsigned seed = (unsigned)mr_clock_realtime_ns();

    (void)state;
    print_message("seed %u\n", seed);
    for (int i = 0; i < 2000; i++) {
        struct mr_error error = MR_ERROR_NONE;
        struct mr_buffer payload;

        put_payload(&payload, &seed);
        for (int n = 0; n < 1 + i % 5; n++)
            payload.data[(size_t)rand_r(&seed) % payload.size] = (uint8_t)rand_r(&seed);
        mr_accumulator_open(acc, mr_buffer_span(&payload));
        if (mr_accumulator_merge(acc, &error) == MR_AGAIN)
            mr_accumulator_reset(acc);
        mr_buffer_fini(&payload);
    }
    mr_accumulator_free(acc);
}

static void after_a_burst_it_is_as_good_as_new(void **state)
{
    struct mr_accumulator *acc = new_accumulator(NULL), *fresh = new_accumulator(NULL);
    unsigned seed = 7;
    struct mr_buffer payload, a, b;

    (void)state;
    put_chain(&payload, 20000, 1);
    merge_into(acc, &payload);
    mr_buffer_fini(&payload);
    mr_accumulator_reset(acc);
    put_payload(&payload, &seed);
    for (int i = 0; i < 3; i++) { /* the sparse tables of the burst, then small ones */
        mr_accumulator_reset(acc);
        merge_into(acc, &payload);
    }
    merge_into(fresh, &payload);
    write_whole(acc, &a);
    write_whole(fresh, &b);
    assert_same_bytes(&a, &b);
    mr_buffer_fini(&a);
    mr_buffer_fini(&b);
    mr_buffer_fini(&payload);
    mr_accumulator_free(acc);
    mr_accumulator_free(fresh);
}

/* How many open traces, and other rows, come of the payload. */
static void count_chosen(const struct mr_buffer *payload,
                         enum mr_accumulator_choice choice, uint32_t *opens,
                         uint32_t *others)
{
    struct mr_accumulator *acc = new_accumulator(NULL);
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    struct mr_buffer out;

    *opens = *others = 0;
    mr_accumulator_open(acc, mr_buffer_span(payload));
    mr_accumulator_choose(acc, choice);
    assert_int_equal(mr_accumulator_merge(acc, NULL), MR_OK);
    write_whole(acc, &out);
    mr_delta_reader_init(&reader, mr_buffer_span(&out));
    while (mr_delta_next(&reader, &item) == MR_OK) {
        *opens += item.tag == MR_DELTA_OPEN;
        *others += item.tag == MR_DELTA_PATH_STAT || item.tag == MR_DELTA_SHAPE_STAT ||
                   item.tag == MR_DELTA_ENTRY_STAT || item.tag == MR_DELTA_LEDGER;
    }
    mr_delta_reader_fini(&reader);
    mr_buffer_fini(&out);
    mr_accumulator_free(acc);
}

static void open_traces_or_other_rows_can_be_chosen(void **state)
{
    unsigned seed = 1;
    struct mr_buffer payload;
    uint32_t opens, others, some_opens, some_others;

    (void)state;
    put_payload(&payload, &seed);
    count_chosen(&payload, MR_ACCUMULATE_ALL, &opens, &others);
    assert_true(opens > 0 && others > 0);
    count_chosen(&payload, MR_ACCUMULATE_OPEN, &some_opens, &some_others);
    assert_int_equal(some_opens, opens);
    assert_int_equal(some_others, 0);
    count_chosen(&payload, MR_ACCUMULATE_NOT_OPEN, &some_opens, &some_others);
    assert_int_equal(some_opens, 0);
    assert_int_equal(some_others, others);
    mr_buffer_fini(&payload);
    mr_accumulator_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_result_is_the_same_for_every_order_and_grouping),
        cmocka_unit_test(nothing_is_gained_or_lost),
        cmocka_unit_test(a_full_accumulator_asks_to_be_written_and_goes_on),
        cmocka_unit_test(an_item_that_alone_passes_a_limit_is_counted),
        cmocka_unit_test(a_very_deep_path_is_taken_up_to_the_limit),
        cmocka_unit_test(a_row_that_no_buffer_holds_is_counted_and_the_rest_written),
        cmocka_unit_test(a_broken_payload_says_where_and_later_ones_go_on),
        cmocka_unit_test(random_bytes_do_no_harm),
        cmocka_unit_test(after_a_burst_it_is_as_good_as_new),
        cmocka_unit_test(open_traces_or_other_rows_can_be_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
