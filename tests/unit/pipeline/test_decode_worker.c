/* SPDX-License-Identifier: Apache-2.0 */
/* filters/decode.h: what a worker below sends, and that it ends. */
#include "../unit_test.h"

#include <string.h>

#include "net/delta.h"
#include "support_lane.h"

static const struct test_options decode_only = {.stages = 1};

/* A lane whose source is a worker. */
static void make_worker(struct test_lane *lane)
{
    struct mr_hello hello = {
        .sender = {8, 9}, .role = MR_ROLE_WORKER, .level = 1, .oldest = 1, .token = ""};

    test_lane_init(lane, &decode_only);
    mr_source_free(lane->source);
    assert_int_equal(mr_source_new(&hello, false, &lane->source), MR_OK);
}

static void deltas_of_a_worker_go_on_as_they_came(void **state)
{
    struct test_lane lane;
    struct mr_buffer payload;
    struct mr_delta_writer writer;
    const struct mr_batch *last = NULL;

    (void)state;
    mr_buffer_init(&payload, 1 << 16);
    mr_delta_begin(&writer, &payload);
    mr_delta_head(&writer, 1, 5);
    mr_delta_counter(&writer, "counter", 3);
    assert_int_equal(mr_delta_status(&writer), MR_OK);
    make_worker(&lane);
    test_lane_push(&lane, MR_FRAME_DELTA, payload.data, payload.size);
    for (const struct mr_batch *batch = lane.out->first; batch; batch = batch->next)
        last = batch;
    assert_non_null(last);
    assert_int_equal(last->kind, MR_BATCH_DELTA);
    assert_int_equal(last->bytes.size, payload.size);
    assert_memory_equal(last->bytes.data, payload.data, payload.size);
    assert_false(mr_source_is_broken(lane.source));
    payload.data[payload.size - 1] = 0xff; /* a cut varint */
    test_lane_push(&lane, MR_FRAME_DELTA, payload.data, payload.size);
    assert_true(mr_source_is_broken(lane.source));
    mr_buffer_fini(&payload);
    test_lane_fini(&lane);
}

/* What it told as open is closed where it was told: by a delta of its own, which tells none. */
static void a_worker_that_ends_has_nothing_open(void **state)
{
    struct test_lane lane;
    const struct mr_batch *told = NULL;
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    (void)state;
    make_worker(&lane);
    test_lane_end(&lane);
    for (const struct mr_batch *batch = lane.out->first; batch; batch = batch->next)
        if (batch->kind == MR_BATCH_DELTA)
            told = batch;
    assert_non_null(told);
    assert_true(mr_id_equal(told->teller, (struct mr_id){8, 9}));
    assert_int_equal(told->telling, 0);
    mr_delta_reader_init(&reader, mr_buffer_span(&told->bytes));
    while ((status = mr_delta_next(&reader, &item)) == MR_OK)
        assert_int_not_equal(item.tag, MR_DELTA_OPEN);
    assert_int_equal(status, MR_END);
    mr_delta_reader_fini(&reader);
    test_lane_fini(&lane);
}

static void a_worker_may_not_send_chunks_nor_a_probe_deltas(void **state)
{
    struct test_lane lane;

    (void)state;
    make_worker(&lane);
    test_lane_push(&lane, MR_FRAME_CHUNKS, "", 0);
    assert_true(mr_source_is_broken(lane.source));
    assert_non_null(strstr(mr_source_error(lane.source), "a worker sent a"));
    test_lane_fini(&lane);
    test_lane_init(&lane, &decode_only);
    test_lane_push(&lane, MR_FRAME_DELTA, "", 0);
    assert_true(mr_source_is_broken(lane.source));
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deltas_of_a_worker_go_on_as_they_came),
        cmocka_unit_test(a_worker_that_ends_has_nothing_open),
        cmocka_unit_test(a_worker_may_not_send_chunks_nor_a_probe_deltas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
