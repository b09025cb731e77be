/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that find no room (--max-streams). */
#include "../unit_test.h"

#include <stdio.h>

#include "net/delta.h"
#include "support_lane.h"

static uint32_t event_count(const struct test_lane *lane)
{
    uint32_t count = 0;

    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next)
        count += batch->event_count;
    return count;
}

/* What all ledger rows of a stream add up to; 0: of all streams. */
static struct mr_ledger_entry ledger_of(const struct test_lane *lane, uint32_t stream)
{
    struct mr_ledger_entry sum = {0};

    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next) {
        struct mr_delta_reader reader;
        struct mr_delta_item item;

        if (batch->kind != MR_BATCH_DELTA)
            continue;
        mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
        while (mr_delta_next(&reader, &item) == MR_OK)
            if (item.tag == MR_DELTA_LEDGER && (stream == 0 || item.stream == stream))
                mr_ledger_entry_merge(&sum, item.ledger);
        mr_delta_reader_fini(&reader);
    }
    return sum;
}

static void expect_ledger(const struct test_lane *lane, uint32_t stream, uint64_t last,
                          uint64_t budget)
{
    struct mr_ledger_entry row = ledger_of(lane, stream);

    assert_int_equal(row.last, last);
    assert_int_equal(row.held, 0);
    assert_int_equal(row.lost[MR_LOSS_BUDGET], budget);
    assert_int_equal(row.lost[MR_LOSS_FORMAT], 0);
    assert_int_equal(row.reduced, last - budget);
}

static void send_pair(struct test_lane *lane, uint32_t stream, uint64_t ns, uint8_t flags)
{
    test_lane_enter(lane, stream, 1, ns);
    test_lane_exit(lane, stream, 1, ns + 1);
    test_lane_send(lane, stream, flags);
}

static void streams_past_the_limit_are_lost_for_budget(void **state)
{
    struct test_options options = {.stages = 1, .streams_max = 2};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options);
    for (uint32_t stream = 1; stream <= 3; stream++)
        send_pair(&lane, stream, 10, 0);
    assert_int_equal(event_count(&lane), 4);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_streams_refused"), 1);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_words_events"), 6);
    assert_int_equal(test_lane_decode_counter(&lane, "lost"), 2);
    expect_ledger(&lane, 3, 2, 2); /* its own row: what it sent is known by that */
    test_lane_fini(&lane);
}

static void a_refused_stream_that_finds_room_has_lost_what_was_refused_once(void **state)
{
    struct test_options options = {.streams_max = 2};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options);
    for (uint32_t stream = 1; stream <= 3; stream++)
        send_pair(&lane, stream, 10, 0);
    send_pair(&lane, 2, 20, MR_CHUNK_LAST);
    send_pair(&lane, 3, 30, 0);
    send_pair(&lane, 4, 30, MR_CHUNK_LAST); /* both places are taken */
    test_lane_end(&lane);
    expect_ledger(&lane, 1, 2, 0);
    expect_ledger(&lane, 2, 4, 0);
    expect_ledger(&lane, 3, 4, 2);
    expect_ledger(&lane, 4, 2, 2);
    test_lane_fini(&lane);
}

static void losses_without_a_stream_take_no_place_of_one(void **state)
{
    struct test_options options = {.stages = 1, .streams_max = 1};
    struct mr_dict_item item = {.kind = MR_DICT_SOURCE_LOSS,
                                .source_loss = {.reason = MR_LOSS_NESTED, .events = 10}};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options);
    test_lane_item(&lane, &item);
    send_pair(&lane, 1, 10, 0);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_streams_refused"), 0);
    test_lane_fini(&lane);
}

static void streams_that_ended_make_room_for_others(void **state)
{
    struct test_options options = {.streams_max = 2};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options);
    for (uint32_t i = 0; i < 1000; i++) {
        struct mr_chunk chunk = {.stream = i + 1, .flags = MR_CHUNK_LAST, .ticks = 5};
        uint8_t header[MR_CHUNK_HEADER_SIZE];

        mr_chunk_put_header(&chunk, header);
        test_lane_push(&lane, MR_FRAME_CHUNKS, header, sizeof(header));
    }
    assert_false(mr_source_is_broken(lane.source));
    assert_int_equal(test_lane_decode_counter(&lane, "decode_streams_refused"), 0);
    test_lane_end(&lane);
    test_lane_fini(&lane);
}

static void a_span_that_finds_no_room_is_counted_once(void **state)
{
    struct test_options options = {.stages = 1, .streams_max = 1, .sites_max = 3};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options);
    for (uint32_t i = 0; i < 10; i++) {
        char name[16];
        struct mr_dict_item item = {
            .kind = MR_DICT_NAMED_SITE,
            .named_site = {.site = MR_SITE_FIRST_NAMED + i, .name = name, .file = ""}};

        (void)snprintf(name, sizeof(name), "span %u", i);
        test_lane_item(&lane, &item);
    }
    send_pair(&lane, 1, 10, 0); /* of one function more */
    assert_int_equal(lane.sites->count, options.sites_max);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_sites_refused"),
                     10 + 1 - (options.sites_max - 1));
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_past_the_limit_are_lost_for_budget),
        cmocka_unit_test(a_refused_stream_that_finds_room_has_lost_what_was_refused_once),
        cmocka_unit_test(losses_without_a_stream_take_no_place_of_one),
        cmocka_unit_test(streams_that_ended_make_room_for_others),
        cmocka_unit_test(a_span_that_finds_no_room_is_counted_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
