/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/delta.h"
#include "pipeline/accumulate.h"
#include "pipeline/batch.h"
#include "pipeline/open_traces.h"
#include "tests/unit/pipeline/support_lane.h"

#define NOW_NS 1000

/* What `teller` says of the entry point `site`, with `stats` rows that are of no concern here. */
static enum mr_status tell(struct mr_open_traces *open, uint64_t teller, uint64_t telling,
                           uint64_t site, uint64_t count, uint32_t stats, uint64_t now_ns)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    const struct mr_entry_stats entry = {{1}, {1}, {1}};
    const struct mr_open_stats one = {.count = count, .ages = {count}, .oldest_ns = site};
    struct mr_delta_writer w;
    enum mr_status status;
    uint32_t path;

    assert_non_null(batch);
    batch->teller = (struct mr_id){1, teller};
    batch->telling = telling;
    batch->has_open = count > 0;
    mr_delta_begin(&w, &batch->bytes);
    mr_delta_head(&w, 1, 1);
    (void)mr_delta_source(&w, (struct mr_id){5, 5});
    path = mr_delta_path(&w, MR_DELTA_NONE, mr_delta_scope(&w, (struct mr_id){2, 2}),
                         mr_delta_site(&w, (struct mr_id){3, site}), 0);
    if (count)
        mr_delta_open(&w, path, path, &one);
    for (uint32_t i = 0; i < stats; i++)
        mr_delta_entry_stat(&w, path, i, &entry);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    status = mr_open_traces_take(open, batch, now_ns);
    mr_batch_free(batch);
    return status;
}

/* How many traces are open, on how many paths; nothing else is there. */
static void check(const struct mr_open_traces *open, uint64_t traces, uint32_t paths)
{
    struct mr_accumulator *acc;
    struct mr_buffer out;
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    uint64_t count = 0;
    uint32_t rows = 0;
    enum mr_status status;

    assert_int_equal(mr_accumulator_new(NULL, &acc), MR_OK);
    assert_int_equal(mr_open_traces_merge(open, acc), MR_OK);
    mr_buffer_init(&out, MR_BATCH_BYTES_MAX);
    assert_int_equal(mr_accumulator_write_begin(acc), MR_OK);
    status = mr_accumulator_write(acc, 1, 1, &out);
    assert_int_equal(status, paths ? MR_OK : MR_END);
    mr_delta_reader_init(&reader, mr_buffer_span(&out));
    while (mr_delta_next(&reader, &item) == MR_OK) {
        assert_true(item.tag <= MR_DELTA_PATH || item.tag == MR_DELTA_OPEN);
        if (item.tag == MR_DELTA_OPEN) {
            count += item.open->count;
            rows++;
        }
    }
    mr_delta_reader_fini(&reader);
    assert_int_equal(count, traces);
    assert_int_equal(rows, paths);
    mr_buffer_fini(&out);
    mr_accumulator_free(acc);
}

static void a_telling_replaces_the_one_before(void **state)
{
    struct mr_open_traces open = {0};

    (void)state;
    assert_int_equal(tell(&open, 1, 1, 7, 2, 3, NOW_NS), MR_OK);
    assert_int_equal(tell(&open, 1, 1, 8, 1, 0, NOW_NS), MR_OK); /* its second payload */
    assert_int_equal(tell(&open, 2, 1, 7, 4, 0, NOW_NS), MR_OK);
    check(&open, 7, 2);
    assert_int_equal(tell(&open, 1, 2, 7, 1, 0, NOW_NS), MR_OK);
    check(&open, 5, 1);
    assert_int_equal(tell(&open, 2, 2, 7, 0, 5, NOW_NS), MR_OK);
    check(&open, 1, 1);
    assert_int_equal(tell(&open, 1, 3, 7, 0, 0, NOW_NS), MR_OK);
    check(&open, 0, 0);
    assert_int_equal(open.bytes, 0);
    mr_open_traces_fini(&open);
}

static void it_is_known_whether_others_have_some(void **state)
{
    struct mr_open_traces open = {0};

    (void)state;
    assert_false(mr_open_traces_has_others(&open, (struct mr_id){1, 1}));
    assert_int_equal(tell(&open, 1, 1, 7, 2, 0, NOW_NS), MR_OK);
    assert_false(mr_open_traces_has_others(&open, (struct mr_id){1, 1}));
    assert_true(mr_open_traces_has_others(&open, (struct mr_id){1, 2}));
    mr_open_traces_fini(&open);
}

static void who_is_silent_is_forgotten(void **state)
{
    struct mr_open_traces open = {0};

    (void)state;
    assert_int_equal(tell(&open, 1, 1, 7, 2, 0, NOW_NS), MR_OK);
    assert_int_equal(tell(&open, 2, 1, 7, 1, 0, NOW_NS + 1), MR_OK);
    mr_open_traces_expire(&open, NOW_NS + MR_OPEN_TOLD_FOR_NS);
    check(&open, 3, 1);
    mr_open_traces_expire(&open, NOW_NS + MR_OPEN_TOLD_FOR_NS + 1);
    check(&open, 1, 1);
    mr_open_traces_fini(&open);
}

static void only_what_is_needed_is_kept_and_no_more_than_the_limit(void **state)
{
    struct mr_open_traces open = {0};
    size_t bytes;

    (void)state;
    assert_int_equal(tell(&open, 1, 1, 7, 2, 0, NOW_NS), MR_OK);
    bytes = open.bytes;
    assert_int_equal(tell(&open, 1, 2, 7, 2, 1000, NOW_NS), MR_OK);
    assert_int_equal(open.bytes, bytes);
    for (uint64_t i = 2; i <= MR_OPEN_TRACES_PAYLOADS_MAX; i++)
        assert_int_equal(tell(&open, i, 1, 7, 1, 0, NOW_NS), MR_OK);
    assert_int_equal(tell(&open, 1, 3, 7, 1, 0, NOW_NS), MR_OK); /* in its own place */
    assert_int_equal(tell(&open, 0, 1, 7, 1, 0, NOW_NS), MR_ELIMIT);
    check(&open, MR_OPEN_TRACES_PAYLOADS_MAX, 1);
    mr_open_traces_fini(&open);
}

static void a_full_accumulator_says_so_and_can_be_used_on(void **state)
{
    const struct mr_accumulator_limits limits = {.rows_max = 1};
    struct mr_open_traces open = {0};
    struct mr_accumulator *acc;

    (void)state;
    assert_int_equal(mr_accumulator_new(&limits, &acc), MR_OK);
    assert_int_equal(tell(&open, 1, 1, 7, 1, 0, NOW_NS), MR_OK);
    assert_int_equal(tell(&open, 2, 1, 8, 1, 0, NOW_NS), MR_OK);
    assert_int_equal(mr_open_traces_merge(&open, acc), MR_AGAIN);
    mr_accumulator_reset(acc);
    mr_accumulator_release(acc);
    mr_accumulator_free(acc);
    mr_open_traces_fini(&open);
}

#define CALLED 40u

/* Some calls that each call of f1, which is open, makes; every one ends in the second. */
static void call_all(struct test_lane *lane, uint64_t second)
{
    for (uint32_t i = 0; i < CALLED; i++) {
        uint64_t ns = second * MR_SECOND_NS + 10 * i + 1;

        test_lane_enter(lane, 1, 2 + i, ns);
        test_lane_exit(lane, 1, 2 + i, ns + 5);
    }
    test_lane_send(lane, 1, 0);
}

/* Payloads of full windows leave between two deltas: none of them says that nothing is open any more. */
static void a_lane_says_what_is_open_first_and_takes_it_back_with_the_next_delta(
    void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    const struct test_options options = {.reduce = &reduce};
    struct mr_open_traces open = {0};
    struct test_lane lane;
    uint32_t between = 0;
    bool is_told = false;

    (void)state;
    reduce.delta_bytes_max = 256;
    test_lane_init(&lane, &options);
    test_lane_enter(&lane, 1, 1, 0);
    call_all(&lane, 0);
    test_lane_tick(&lane, MR_SECOND_NS);
    for (uint64_t second = 1; second < 5; second++)
        call_all(&lane, second);
    test_lane_tick(&lane, MR_SECOND_NS);
    for (const struct mr_batch *batch = lane.out->first; batch; batch = batch->next) {
        if (batch->kind != MR_BATCH_DELTA || !batch->group)
            continue;
        assert_int_equal(mr_open_traces_take(&open, batch, NOW_NS), MR_OK);
        is_told |= batch->has_open;
        between += !batch->has_open;
        check(&open, is_told, is_told);
    }
    assert_true(is_told);
    assert_true(between > 10);
    mr_open_traces_fini(&open);
    test_lane_end(&lane);
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_telling_replaces_the_one_before),
        cmocka_unit_test(it_is_known_whether_others_have_some),
        cmocka_unit_test(who_is_silent_is_forgotten),
        cmocka_unit_test(only_what_is_needed_is_kept_and_no_more_than_the_limit),
        cmocka_unit_test(a_full_accumulator_says_so_and_can_be_used_on),
        cmocka_unit_test(
            a_lane_says_what_is_open_first_and_takes_it_back_with_the_next_delta),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
