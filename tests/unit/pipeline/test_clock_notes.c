/* SPDX-License-Identifier: Apache-2.0 */
/* How the wall clock goes against a source's own: what is told of it, and what follows it. */
#include "../unit_test.h"

#include <string.h>

#include "support_lane.h"
#include "support_model.h"

#define START_NS (TEST_START_S * MR_SECOND_NS)
#define SECOND MR_SECOND_NS

/* The source's clock tells `ns`, the wall clock `ahead_ns` more. */
static void sync_at(struct test_lane *lane, uint64_t ns, int64_t ahead_ns)
{
    const struct mr_dict_item item = {
        .kind = MR_DICT_SYNC,
        .sync = {.ticks = ns, .realtime_ns = START_NS + ns + (uint64_t)ahead_ns}};

    test_lane_item(lane, &item);
}

/* The value of the last note with this key, or "". */
static const char *last_note(const struct test_lane *lane, const char *key)
{
    static char value[128];

    value[0] = '\0';
    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next) {
        struct mr_error error = MR_ERROR_NONE;
        struct mr_dict_reader reader;
        struct mr_dict_item item;

        if (batch->kind != MR_BATCH_DICT)
            continue;
        assert_int_equal(mr_dict_open(&reader, mr_buffer_span(&batch->bytes), &error),
                         MR_OK);
        while (mr_dict_next(&reader, &item, &error) == MR_OK)
            if (item.kind == MR_DICT_NOTE && strcmp(item.note.key, key) == 0) {
                assert_true(mr_id_equal(item.note.about, lane->source->id));
                strncpy(value, item.note.value, sizeof(value) - 1);
            }
        mr_dict_close(&reader);
    }
    return value;
}

static void drift_is_told_of_sources_that_live_long(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, NULL);
    sync_at(&lane, 1 * SECOND, 20);
    sync_at(&lane, 9 * SECOND, -500);
    assert_string_equal(last_note(&lane, "clock_drift_ns"), "");
    sync_at(&lane, 11 * SECOND, 300);
    assert_string_equal(last_note(&lane, "clock_drift_ns"), "300");
    assert_string_equal(last_note(&lane, "clock_drift_max_ns"), "-500");
    sync_at(&lane, 12 * SECOND, 700); /* soon after: told at the end */
    assert_string_equal(last_note(&lane, "clock_drift_ns"), "300");
    test_lane_end(&lane);
    assert_string_equal(last_note(&lane, "clock_drift_ns"), "700");
    assert_string_equal(last_note(&lane, "clock_drift_max_ns"), "700");
    test_lane_fini(&lane);
}

static void a_sync_beyond_all_eras_is_left_alone(void **state)
{
    const struct mr_dict_item items[] = {
        {.kind = MR_DICT_SYNC, .sync = {.ticks = UINT64_MAX, .realtime_ns = START_NS}},
        {.kind = MR_DICT_SYNC, .sync = {.ticks = 5, .realtime_ns = 5}},
        {.kind = MR_DICT_SYNC, .sync = {.ticks = 5, .realtime_ns = UINT64_MAX}},
    };
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, NULL);
    for (size_t i = 0; i < MR_ARRAY_COUNT(items); i++)
        test_lane_item(&lane, &items[i]);
    assert_false(lane.source->drift.is_synced);
    assert_false(mr_source_is_broken(lane.source));
    test_lane_fini(&lane);
}

static void calls(struct test_lane *lane, uint64_t ns)
{
    test_lane_enter(lane, 1, 1, ns);
    test_lane_exit(lane, 1, 1, ns + 5);
    test_lane_send(lane, 1, 0);
}

/* The window is of the wall clock; the duration of 5 ns is the source's. */
static void a_clock_that_is_set_moves_windows_and_no_duration(void **state)
{
    struct test_text text = {0};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, NULL);
    calls(&lane, 100);
    sync_at(&lane, 200, 999999); /* less than a step */
    calls(&lane, 200);
    sync_at(&lane, 300, (int64_t)(3 * SECOND));
    calls(&lane, 300);
    sync_at(&lane, 400, -(int64_t)(2 * SECOND));
    calls(&lane, 400);
    test_lane_end(&lane);
    test_model(&lane, &text);
    assert_string_equal(test_text_find(&text, "path f1 @0 = "),
                        "2 0 0 self=10,5,5 total=10,5,5 hist=0;5;74;2");
    assert_string_equal(test_text_find(&text, "path f1 @3 = "),
                        "1 0 0 self=5,5,5 total=5,5,5 hist=0;5;74;1");
    /* two seconds before the first */
    assert_int_equal(test_text_count(&text, "path f1 @18446744073709551614 = 1"), 1);
    test_text_fini(&text);
    test_lane_fini(&lane);
}

static void times_that_run_back_are_counted_per_source(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, NULL);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_enter(&lane, 1, 2, 90);
    test_lane_exit(&lane, 1, 2, 95);
    test_lane_exit(&lane, 1, 1, 200);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    assert_string_equal(last_note(&lane, "times_clamped"), "2");
    test_lane_fini(&lane);
}

static void a_ticker_is_told_in_nanoseconds(void **state)
{
    const struct mr_dict_item item = {
        .kind = MR_DICT_TICKER,
        .ticker = {
            .ticks = 9, .gap_p99_ticks = 1100, .gap_max_ticks = 50000, .cpu_ns = 7}};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, NULL);
    test_lane_item(&lane, &item);
    assert_string_equal(last_note(&lane, "tick_gap_p99_ns"), "1100");
    assert_string_equal(last_note(&lane, "tick_gap_max_ns"), "50000");
    assert_string_equal(last_note(&lane, "ticker_cpu_ns"), "7");
    assert_string_equal(last_note(&lane, "tick_ns"), ""); /* the hello has none */
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drift_is_told_of_sources_that_live_long),
        cmocka_unit_test(a_sync_beyond_all_eras_is_left_alone),
        cmocka_unit_test(a_clock_that_is_set_moves_windows_and_no_duration),
        cmocka_unit_test(times_that_run_back_are_counted_per_source),
        cmocka_unit_test(a_ticker_is_told_in_nanoseconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
