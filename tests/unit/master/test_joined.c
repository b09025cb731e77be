/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of traces at the last level: joined, or ended by the time-out, within the limits. */
#include "../unit_test.h"

#include <string.h>

#include "base/clock.h"
#include "master/model.h"
#include "master/summary.h"
#include "net/ids.h"

static const struct mr_id sender = {1, 2};

static struct mr_id number_id(uint64_t number)
{
    return (struct mr_id){number, number + 1};
}

static struct mr_model *new_model(uint32_t parts, uint32_t joined)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;
    struct mr_model *model = NULL;

    limits.parts = parts;
    limits.joined = joined;
    assert_int_equal(mr_model_new(&limits, &model), MR_OK);
    return model;
}

/* A root of path `path` that sends message `number` at 100, or its receiver at 100 + `took_ns`. */
static void apply_part(struct mr_model *model, uint64_t number, bool is_root,
                       uint64_t path, int64_t took_ns)
{
    struct mr_part_edge edge = {number_id(number), 100, MR_EDGE_MESSAGE};
    struct mr_part part = {.id = number_id(2 * number + is_root),
                           .trace = number_id(number),
                           .path = number_id(path),
                           .node = number_id(5),
                           .source = number_id(is_root),
                           .start_ns = 100,
                           .end_ns = 5000};
    struct mr_delta_writer w;
    struct mr_buffer bytes;

    mr_buffer_init(&bytes, 1 << 16);
    mr_delta_begin(&w, &bytes);
    mr_delta_head(&w, 1, 1);
    if (is_root) {
        part.out = &edge;
        part.out_count = 1;
    } else {
        edge.ns += (uint64_t)took_ns;
        part.in = edge;
    }
    mr_delta_part(&w, &part);
    assert_int_equal(mr_model_apply_delta(model, sender, mr_buffer_span(&bytes), NULL),
                     MR_OK);
    mr_buffer_fini(&bytes);
}

static const struct mr_model_root *root_of(struct mr_model *model)
{
    assert_int_equal(mr_model_publish(model), MR_OK);
    return mr_model_read_lock(model);
}

static uint64_t counter(const struct mr_model_root *root, const char *name)
{
    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_COUNTER); i++)
        if (strcmp(mr_model_counter(root, i)->name, name) == 0)
            return mr_model_counter(root, i)->value;
    return 0;
}

static uint32_t parts_kept(const struct mr_model_root *root)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < mr_model_count(root, MR_MODEL_PART); i++)
        kept += mr_model_part(root, i)->size > 0;
    return kept;
}

/* The account of parts: what came, and where it is; the rest waits. */
static void check_parts(const struct mr_model_root *root, uint64_t came, uint64_t joined,
                        uint64_t ended_limit, uint64_t ended_time)
{
    struct mr_summary_parts parts;

    mr_summary_make_parts(root, &parts);
    assert_int_equal(parts.of[MR_PARTS_CAME], came);
    assert_int_equal(parts.of[MR_PARTS_JOINED], joined);
    assert_int_equal(parts.of[MR_PARTS_LIMIT], ended_limit);
    assert_int_equal(parts.of[MR_PARTS_TIMEOUT], ended_time);
    assert_int_equal(parts.incomplete, ended_limit + ended_time);
    assert_int_equal(parts.waiting, came - joined - ended_limit - ended_time);
    assert_true(parts.is_balanced);
}

static void parts_that_meet_are_one_trace_and_leave_their_places(void **state)
{
    struct mr_model *model = new_model(100, 100);
    const struct mr_model_root *root;

    (void)state;
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 10; i++)
            apply_part(model, 10 * round + i, i % 2, 7 + i % 2, 30);
        root = root_of(model);
        assert_int_equal(parts_kept(root), 10);
        assert_int_equal(root->parts_waiting, 10);
        mr_model_read_unlock(model);
        for (uint64_t i = 0; i < 10; i++)
            apply_part(model, 10 * round + i, !(i % 2), 7 + !(i % 2), 30);
    }
    root = root_of(model);
    assert_int_equal(parts_kept(root), 0);
    assert_int_equal(root->parts_waiting, 0);
    assert_true(mr_model_count(root, MR_MODEL_PART) <= 11);
    assert_int_equal(mr_model_count(root, MR_MODEL_JOINED), 1);
    assert_int_equal(mr_model_joined_stat(root, 0)->stats.ok, 30);
    assert_int_equal(mr_model_joined_stat(root, 0)->stats.incomplete, 0);
    assert_int_equal(mr_model_edge_of(root, 0, 1)->count, 30);
    assert_int_equal(mr_model_edge_of(root, 0, 1)->time.sum, 900);
    assert_null(mr_model_edge_of(root, 0, 2));
    check_parts(root, 60, 60, 0, 0);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

static void a_receive_before_its_send_took_no_time_and_is_counted(void **state)
{
    struct mr_model *model = new_model(100, 100);
    const struct mr_model_root *root;

    (void)state;
    apply_part(model, 1, true, 8, 0);
    apply_part(model, 1, false, 7, -20);
    root = root_of(model);
    assert_int_equal(mr_model_edge_of(root, 0, 1)->clamped, 1);
    assert_int_equal(mr_model_edge_of(root, 0, 1)->time.max, 0);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

static void what_misses_parts_for_too_long_is_incomplete(void **state)
{
    struct mr_model *model = new_model(100, 100);
    const struct mr_model_root *root;
    uint64_t before_ns = mr_clock_monotonic_ns();
    uint32_t ended;

    (void)state;
    apply_part(model, 1, true, 8, 0);
    apply_part(model, 2, false, 7, 0);
    assert_int_equal(mr_model_end_traces(model, before_ns, &ended), MR_OK);
    assert_int_equal(ended, 0);
    assert_int_equal(mr_model_end_traces(model, before_ns + MR_HOUR_NS, &ended), MR_OK);
    assert_int_equal(ended, 2);
    apply_part(model, 1, false, 7, 0); /* too late: a trace of its own */
    root = root_of(model);
    assert_int_equal(mr_model_count(root, MR_MODEL_JOINED), 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(mr_model_joined_stat(root, i)->stats.incomplete, 1);
        assert_int_equal(mr_model_joined_stat(root, i)->stats.ok, 0);
        assert_int_equal(
            mr_histogram_total(&mr_model_joined_stat(root, i)->stats.histogram), 0);
    }
    assert_int_equal(counter(root, "join_timed_out"), 2);
    assert_int_equal(root->parts_waiting, 1);
    check_parts(root, 3, 0, 0, 2);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

static void no_more_parts_wait_and_no_more_shapes_are_kept_than_the_limits(void **state)
{
    struct mr_model *model = new_model(16, 16);
    const struct mr_model_root *root;

    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        apply_part(model, i, false, 100 + i, 0); /* each a shape of its own, in the end */
    root = root_of(model);
    assert_int_equal(root->parts_waiting, 16);
    assert_int_equal(counter(root, "join_parts_past_limit"), 84);
    assert_int_equal(mr_model_count(root, MR_MODEL_JOINED), 16);
    assert_int_equal(root->refused[MR_MODEL_JOINED], 84 - 16);
    assert_int_equal(mr_summary_traces_past_limit(root), 84 - 16);
    check_parts(root, 100, 0, 84, 0);
    assert_true(mr_model_count(root, MR_MODEL_PART) <= 17);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

/* A row of `traces` traces, as a worker tells that had all their parts. */
static void apply_row(struct mr_model *model, uint64_t path, uint64_t traces)
{
    const struct mr_joined_node node = {.path = number_id(path), .node = number_id(5)};
    const struct mr_joined_stats stats = {
        .ok = traces, .incomplete = 1, .histogram = MR_HISTOGRAM_EMPTY};
    struct mr_delta_writer w;
    struct mr_buffer bytes;

    mr_buffer_init(&bytes, 1 << 16);
    mr_delta_begin(&w, &bytes);
    mr_delta_head(&w, 1, 1);
    mr_delta_joined_stat(&w, mr_delta_joined(&w, mr_joined_id(&node, 1), &node, 1), 0,
                         &stats);
    assert_int_equal(mr_model_apply_delta(model, sender, mr_buffer_span(&bytes), NULL),
                     MR_OK);
    mr_buffer_fini(&bytes);
}

static void traces_of_joined_shapes_past_the_limit_are_counted(void **state)
{
    struct mr_model *model = new_model(100, 2);
    const struct mr_model_root *root;

    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        apply_row(model, 100 + i % 4, 10);
    root = root_of(model);
    assert_int_equal(mr_model_joined_stat(root, 0)->stats.ok, 20);
    assert_int_equal(mr_model_joined_stat(root, 1)->stats.ok, 10);
    assert_int_equal(mr_summary_traces_past_limit(root), 2 * 11);
    mr_model_read_unlock(model);
    mr_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_meet_are_one_trace_and_leave_their_places),
        cmocka_unit_test(a_receive_before_its_send_took_no_time_and_is_counted),
        cmocka_unit_test(what_misses_parts_for_too_long_is_incomplete),
        cmocka_unit_test(no_more_parts_wait_and_no_more_shapes_are_kept_than_the_limits),
        cmocka_unit_test(traces_of_joined_shapes_past_the_limit_are_counted),
    };
    int failed;

    mr_model_thread_enter();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    mr_model_thread_leave();
    return failed;
}
