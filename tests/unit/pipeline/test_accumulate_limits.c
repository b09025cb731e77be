/* SPDX-License-Identifier: Apache-2.0 */
/* What a payload may hold that no accumulator does: it is left out, whatever the sender meant by it. */
#include "../unit_test.h"

#include "net/delta.h"
#include "pipeline/accumulate.h"

#define BUFFER_LIMIT (64u << 20) /* as large as --max-frame of a worker */

static const struct mr_id site_id = {1, 2}, scope_id = {3, 4};

static struct mr_accumulator *new_accumulator(void)
{
    struct mr_accumulator *acc;

    assert_int_equal(mr_accumulator_new(NULL, &acc), MR_OK);
    return acc;
}

static void begin(struct mr_delta_writer *w, struct mr_buffer *bytes)
{
    mr_buffer_init(bytes, BUFFER_LIMIT);
    mr_delta_begin(w, bytes);
}

static enum mr_status merge(struct mr_accumulator *acc, struct mr_buffer *payload)
{
    struct mr_error error = MR_ERROR_NONE;

    mr_accumulator_open(acc, mr_buffer_span(payload));
    return mr_accumulator_merge(acc, &error);
}

static void put_entry(struct mr_delta_writer *w, uint32_t path)
{
    const struct mr_entry_stats stats = {.traces = {1}, .calls = {1}, .time_ns = {5}};

    mr_delta_entry_stat(w, path, 1, &stats);
}

static struct mr_accumulator_stats stats_of(const struct mr_accumulator *acc)
{
    struct mr_accumulator_stats stats;

    mr_accumulator_stats(acc, &stats);
    return stats;
}

static void joined_shapes_of_a_payload_are_more_than_an_accumulator_holds(void **state)
{
    struct mr_accumulator *acc = new_accumulator();
    struct mr_joined_node nodes[MR_JOINED_NODES_MAX] = {{.children = 255}};
    const struct mr_joined_stats stats = {.incomplete = 1,
                                          .histogram = MR_HISTOGRAM_EMPTY};
    struct mr_delta_writer w;
    struct mr_buffer payload;
    uint32_t last = 0;

    (void)state;
    begin(&w, &payload);
    for (uint32_t i = 1; i < MR_JOINED_NODES_MAX; i++)
        nodes[i].kind = MR_EDGE_MESSAGE;
    for (uint32_t i = 0; i <= MR_ACCUMULATOR_NODES_MAX / MR_JOINED_NODES_MAX; i++) {
        nodes[0].path.lo = i;
        last = mr_delta_joined(&w, mr_joined_id(nodes, MR_JOINED_NODES_MAX), nodes,
                               MR_JOINED_NODES_MAX);
    }
    mr_delta_joined_stat(&w, last, 1, &stats);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    assert_int_equal(merge(acc, &payload), MR_OK);
    assert_int_equal(stats_of(acc).rows, 1);
    assert_int_equal(stats_of(acc).over_limit, 0);
    mr_buffer_fini(&payload);
    mr_accumulator_free(acc);
}

/* To be written for it would cost as much as all that is held, and it would not fit then, either. */
static void a_path_that_is_too_deep_is_left_out_at_once(void **state)
{
    struct mr_accumulator *acc = new_accumulator();
    const struct mr_open_stats open = {.count = 1, .oldest_ns = 1, .since_ns = 1};
    struct mr_delta_writer w;
    struct mr_buffer payload;
    uint32_t path = MR_DELTA_NONE, first, site, scope, shape;
    struct mr_shape_stats stats = {.ok = 1, .histogram = MR_HISTOGRAM_EMPTY};

    (void)state;
    begin(&w, &payload);
    site = mr_delta_site(&w, site_id);
    scope = mr_delta_scope(&w, scope_id);
    first = mr_delta_path(&w, path, scope, site, 0);
    path = first;
    for (uint32_t depth = 1; depth <= MR_ACCUMULATOR_DEPTH_MAX; depth++)
        path = mr_delta_path(&w, path, scope, site, 0);
    shape = mr_delta_shape(&w, scope, path, (struct mr_id){5, 6});
    put_entry(&w, first);
    put_entry(&w, path);
    mr_delta_open(&w, first, path, &open);
    mr_delta_shape_stat(&w, shape, 1, &stats);
    put_entry(&w, first);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    assert_int_equal(merge(acc, &payload), MR_OK);
    assert_int_equal(stats_of(acc).rows, 1);
    assert_int_equal(stats_of(acc).over_limit, 3);
    mr_buffer_fini(&payload);
    mr_accumulator_free(acc);
}

/* The bytes of both payloads, one merged after the other. */
static void write_both(struct mr_buffer *a, struct mr_buffer *b, struct mr_buffer *out)
{
    struct mr_accumulator *acc = new_accumulator();

    mr_buffer_init(out, BUFFER_LIMIT);
    assert_int_equal(merge(acc, a), MR_OK);
    assert_int_equal(merge(acc, b), MR_OK);
    assert_int_equal(mr_accumulator_write_begin(acc), MR_OK);
    assert_int_equal(mr_accumulator_write(acc, 1, 7, out), MR_OK);
    mr_accumulator_free(acc);
}

static void put_open(struct mr_buffer *bytes, uint64_t count, struct mr_id below)
{
    const struct mr_open_stats stats = {.count = count, .oldest_ns = 9, .since_ns = 9};
    struct mr_delta_writer w;
    uint32_t path, stack;

    begin(&w, bytes);
    path = mr_delta_path(&w, MR_DELTA_NONE, mr_delta_scope(&w, scope_id),
                         mr_delta_site(&w, site_id), 0);
    stack = mr_delta_path(&w, path, 0, mr_delta_site(&w, below), 0);
    mr_delta_open(&w, path, stack, &stats);
    assert_int_equal(mr_delta_status(&w), MR_OK);
}

static void an_open_row_of_no_trace_has_no_say_in_the_stack(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 8; i++) { /* whichever path comes first in the order */
        struct mr_buffer none, some, one, other;

        put_open(&none, 0, (struct mr_id){8, i});
        put_open(&some, 1, (struct mr_id){9, i});
        write_both(&none, &some, &one);
        write_both(&some, &none, &other);
        assert_int_equal(one.size, other.size);
        assert_memory_equal(one.data, other.data, one.size);
        mr_buffer_fini(&none);
        mr_buffer_fini(&some);
        mr_buffer_fini(&one);
        mr_buffer_fini(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_shapes_of_a_payload_are_more_than_an_accumulator_holds),
        cmocka_unit_test(a_path_that_is_too_deep_is_left_out_at_once),
        cmocka_unit_test(an_open_row_of_no_trace_has_no_say_in_the_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
