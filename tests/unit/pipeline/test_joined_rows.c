/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline/joined_rows.h: what is summed up merges to what one row for each trace comes to; its limits hold. */
#include "pipeline/joined_rows.h"

#include <string.h>

#include "base/clock.h"
#include "tests/unit/unit_test.h"

#define TRACES 12000u
#define SHAPES 700u /* three windows of each: more than there are rows */
#define WINDOW_S 10u

static uint64_t random_state = 7;

static uint64_t pick(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1;
    return (random_state >> 33) % below;
}

/* A trace with a shape of `places`, the first of which has an edge, the last one two. */
struct trace {
    struct mr_joined joined;
    struct mr_joined_node nodes[MR_JOINED_NODES_MAX];
    struct mr_joined_edge edges[3];
};

static void make_trace(struct trace *trace, uint32_t shape, uint32_t places)
{
    *trace = (struct trace){.joined = {.id = {shape + 1, UINT64_C(0x9e3779b9) * shape},
                                       .trace = {pick(3), pick(1000) + 1},
                                       .status = (uint32_t)pick(MR_PART_STATUSES),
                                       .took_ns = pick(50),
                                       .end_ns = MR_SECOND_NS * (100 + pick(30)),
                                       .node_count = places,
                                       .edge_count = places > 1 ? 3 : 0}};
    trace->joined.nodes = trace->nodes;
    trace->joined.edges = trace->edges;
    for (uint32_t i = 0; i < 3; i++)
        trace->edges[i] = (struct mr_joined_edge){.place = i ? places - 1 : 1,
                                                  .ns = pick(4) ? pick(1 << 20) : 0,
                                                  .is_clamped = pick(5) == 0};
    if (places < 2)
        trace->joined.edge_count = 0;
}

/* All that was told of one shape, window and place, merged. */
struct told {
    struct mr_joined_stats stats;
    struct mr_edge_stats edges[4];
};

static struct told told[2][SHAPES][3];

static void read_payload(struct mr_buffer *payload, struct told (*into)[3])
{
    static uint32_t shapes[MR_JOINED_ROWS_MAX];
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    uint32_t count = 0;

    mr_delta_reader_init(&reader, mr_buffer_span(payload));
    while (mr_delta_next(&reader, &item) == MR_OK) {
        struct told *at = NULL;

        if (item.tag == MR_DELTA_JOINED)
            shapes[count++] = (uint32_t)item.id.hi - 1;
        if (item.tag == MR_DELTA_JOINED_STAT || item.tag == MR_DELTA_JOINED_EDGE)
            at = &into[shapes[item.joined]][item.window / WINDOW_S - 10];
        if (item.tag == MR_DELTA_JOINED_STAT)
            assert_int_equal(mr_joined_stats_merge(&at->stats, item.joined_stats), MR_OK);
        if (item.tag == MR_DELTA_JOINED_EDGE)
            assert_int_equal(mr_edge_stats_merge(&at->edges[item.place], item.edge_stats),
                             MR_OK);
    }
    mr_delta_reader_fini(&reader);
    mr_buffer_clear(payload);
}

static void write_all(struct mr_joined_rows *rows, struct told (*into)[3])
{
    struct mr_delta_writer writer;
    struct mr_buffer payload;

    mr_buffer_init(&payload, 1 << 24);
    mr_delta_begin(&writer, &payload);
    mr_delta_head(&writer, 1, 1);
    for (uint32_t i = 0; i < rows->count; i++)
        mr_joined_rows_write(rows, i, &writer);
    assert_int_equal(mr_delta_status(&writer), MR_OK);
    mr_joined_rows_clear(rows);
    read_payload(&payload, into);
    mr_buffer_fini(&payload);
}

static void add(struct mr_joined_rows *rows, const struct trace *trace,
                struct told (*into)[3], uint32_t *full)
{
    enum mr_status status = mr_joined_rows_add(rows, &trace->joined, WINDOW_S);

    if (status == MR_ELIMIT) {
        assert_int_equal(rows->count, MR_JOINED_ROWS_MAX);
        ++*full;
        write_all(rows, into);
        status = mr_joined_rows_add(rows, &trace->joined, WINDOW_S);
    }
    assert_int_equal(status, MR_OK);
}

static void assert_same_histogram(const struct mr_histogram *a,
                                  const struct mr_histogram *b)
{
    assert_int_equal(a->zero, b->zero);
    assert_int_equal(a->scale, b->scale);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->first, b->first);
    if (a->count)
        assert_memory_equal(a->counts, b->counts, a->count * sizeof(*a->counts));
}

/* Field by field: histograms lie elsewhere. */
static void assert_same(struct told *a, struct told *b)
{
    assert_same_histogram(&a->stats.histogram, &b->stats.histogram);
    assert_memory_equal(&a->stats, &b->stats,
                        offsetof(struct mr_joined_stats, histogram));
    for (uint32_t i = 0; i < 4; i++) {
        assert_same_histogram(&a->edges[i].histogram, &b->edges[i].histogram);
        assert_memory_equal(&a->edges[i], &b->edges[i],
                            offsetof(struct mr_edge_stats, histogram));
        mr_histogram_fini(&a->edges[i].histogram);
        mr_histogram_fini(&b->edges[i].histogram);
    }
    mr_histogram_fini(&a->stats.histogram);
    mr_histogram_fini(&b->stats.histogram);
}

static void sums_merge_to_what_single_rows_come_to(void **state)
{
    static struct mr_joined_rows together, alone;
    static struct trace trace;
    uint32_t full = 0, never = 0;

    (void)state;
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t i = 0; i < SHAPES * 3; i++) {
            struct told *at = &told[side][i / 3][i % 3];

            at->stats.histogram = MR_HISTOGRAM_EMPTY;
            for (uint32_t place = 0; place < 4; place++)
                at->edges[place].histogram = MR_HISTOGRAM_EMPTY;
        }
    mr_joined_rows_init(&together);
    mr_joined_rows_init(&alone);
    for (uint32_t i = 0; i < TRACES; i++) {
        uint32_t shape = (uint32_t)pick(i % 2 ? 5 : SHAPES);

        make_trace(&trace, shape, 1 + shape % 4);
        add(&together, &trace, told[0], &full);
        add(&alone, &trace, told[1], &never);
        write_all(&alone, told[1]);
    }
    assert_true(full > 2);
    assert_int_equal(never, 0);
    write_all(&together, told[0]);
    mr_joined_rows_fini(&together);
    mr_joined_rows_fini(&alone);
    for (uint32_t i = 0; i < SHAPES * 3; i++)
        assert_same(&told[0][i / 3][i % 3], &told[1][i / 3][i % 3]);
}

static void large_shapes_fill_the_places_before_the_rows(void **state)
{
    static struct mr_joined_rows rows;
    static struct trace trace;
    enum mr_status status = MR_OK;
    uint32_t taken = 0;

    (void)state;
    mr_joined_rows_init(&rows);
    while (status == MR_OK) {
        make_trace(&trace, taken, MR_JOINED_NODES_MAX);
        status = mr_joined_rows_add(&rows, &trace.joined, WINDOW_S);
        taken += status == MR_OK;
    }
    assert_int_equal(status, MR_ELIMIT);
    assert_int_equal(taken, MR_JOINED_PLACES_MAX / MR_JOINED_NODES_MAX);
    assert_int_equal(rows.count, taken);
    mr_joined_rows_clear(&rows);
    assert_null(rows.rows[0].edges); /* what is large is not kept */
    assert_int_equal(mr_joined_rows_add(&rows, &trace.joined, WINDOW_S), MR_OK);
    mr_joined_rows_fini(&rows);
}

static uint32_t kept_places(const struct mr_joined_rows *rows)
{
    uint32_t places = 0;

    for (uint32_t i = 0; i < MR_JOINED_ROWS_MAX; i++)
        places += rows->rows[i].capacity;
    return places;
}

/* A few rows of many places, then many of few: each row might keep what it had the most of. */
static void what_is_kept_between_deltas_is_bounded(void **state)
{
    static struct mr_joined_rows rows;
    static struct trace trace;
    uint32_t places = 32;

    (void)state;
    mr_joined_rows_init(&rows);
    for (uint32_t round = 0; round < 2; round++, places = 8) {
        for (uint32_t i = 0; i < MR_JOINED_PLACES_MAX / places; i++) {
            make_trace(&trace, i, places);
            assert_int_equal(mr_joined_rows_add(&rows, &trace.joined, WINDOW_S), MR_OK);
        }
        assert_true(kept_places(&rows) <= 2 * MR_JOINED_PLACES_MAX);
        assert_true(round == 0 || kept_places(&rows) > MR_JOINED_PLACES_MAX);
        mr_joined_rows_clear(&rows);
        assert_true(kept_places(&rows) <= MR_JOINED_PLACES_MAX);
        assert_true(kept_places(&rows) > MR_JOINED_PLACES_MAX / 2);
    }
    mr_joined_rows_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_merge_to_what_single_rows_come_to),
        cmocka_unit_test(large_shapes_fill_the_places_before_the_rows),
        cmocka_unit_test(what_is_kept_between_deltas_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
