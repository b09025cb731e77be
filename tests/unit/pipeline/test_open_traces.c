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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_telling_replaces_the_one_before),
        cmocka_unit_test(it_is_known_whether_others_have_some),
        cmocka_unit_test(who_is_silent_is_forgotten),
        cmocka_unit_test(only_what_is_needed_is_kept_and_no_more_than_the_limit),
        cmocka_unit_test(a_full_accumulator_says_so_and_can_be_used_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
