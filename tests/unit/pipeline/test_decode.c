/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <string.h>

#include "net/ids.h"
#include "support_lane.h"

#define NS_0 (TEST_START_S * MR_SECOND_NS)

static const struct test_options decode_only = {.stages = 1};

/* Event number `index` of all EVENTS batches. */
static const struct mr_event *event_at(const struct test_lane *lane, uint32_t index,
                                       const struct mr_loss **loss)
{
    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next) {
        if (batch->kind != MR_BATCH_EVENTS)
            continue;
        if (index < batch->event_count) {
            if (loss)
                *loss = &batch->losses[batch->events[index].site];
            return &batch->events[index];
        }
        index -= batch->event_count;
    }
    fail_msg("no such event");
    return NULL;
}

static uint32_t event_count(const struct test_lane *lane)
{
    uint32_t count = 0;

    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next)
        count += batch->event_count;
    return count;
}

static void expect_event(const struct test_lane *lane, uint32_t index,
                         enum mr_event_kind kind, uint64_t ns)
{
    const struct mr_event *event = event_at(lane, index, NULL);

    assert_int_equal(event->kind, kind);
    assert_int_equal(event->ns, NS_0 + ns);
}

static uint32_t function_at(const struct test_lane *lane, uint32_t index)
{
    return (uint32_t)mr_sites_at(lane->sites, event_at(lane, index, NULL)->site)->offset /
           16;
}

static void expect_loss(const struct test_lane *lane, uint32_t index, uint64_t events,
                        uint8_t reason, uint32_t pops, uint32_t pushes)
{
    const struct mr_loss *loss;

    assert_int_equal(event_at(lane, index, &loss)->kind, MR_EVENT_LOSS);
    assert_int_equal(loss->events, events);
    assert_int_equal(loss->reason, reason);
    assert_int_equal(loss->pops, pops);
    assert_int_equal(loss->pushes, pushes);
}

static void words_become_events_in_unix_ns(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_enter(&lane, 1, 2, 150);
    test_lane_exit(&lane, 1, 2, 150);
    test_lane_send(&lane, 1, 0);
    expect_event(&lane, 0, MR_EVENT_ENTER, 100);
    expect_event(&lane, 1, MR_EVENT_ENTER, 150);
    expect_event(&lane, 2, MR_EVENT_EXIT, 150);
    assert_int_equal(function_at(&lane, 0), 1);
    assert_int_equal(function_at(&lane, 1), 2);
    test_lane_fini(&lane);
}

static void the_compact_encoding_says_the_same(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_exit(&lane, 1, 1, 5000);
    test_lane_send_compact(&lane, 1, 0);
    expect_event(&lane, 0, MR_EVENT_ENTER, 100);
    expect_event(&lane, 1, MR_EVENT_EXIT, 5000);
    test_lane_fini(&lane);
}

static void sites_are_told_before_the_events_that_use_them(void **state)
{
    struct test_lane lane;
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;
    const struct mr_batch *batch;
    bool found = false;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, 0);
    for (batch = lane.out->first; batch && batch->kind == MR_BATCH_DICT;
         batch = batch->next) {
        assert_int_equal(mr_dict_open(&reader, mr_buffer_span(&batch->bytes), &error),
                         MR_OK);
        while (mr_dict_next(&reader, &item, &error) == MR_OK)
            if (item.kind == MR_DICT_SITE && mr_id_equal(item.site.id, test_site_id(1))) {
                found = true;
                assert_int_equal(item.site.type, MR_SITE_FUNCTION);
                assert_int_equal(item.site.quality, MR_QUALITY_OFFSET);
                assert_int_equal(item.site.offset, 16);
                assert_string_equal(item.site.module, "/lib/test.so");
                assert_int_equal(item.site.build_id.size, 10);
            }
        mr_dict_close(&reader);
    }
    assert_true(found);
    assert_non_null(batch);
    assert_int_equal(batch->kind, MR_BATCH_EVENTS);
    test_lane_fini(&lane);
}

static void a_source_and_its_scope_are_told_at_its_first_frame_and_its_end(void **state)
{
    struct test_lane lane;
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;
    int live = 0, finished = 0, scopes = 0;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    for (const struct mr_batch *batch = lane.out->first; batch; batch = batch->next) {
        if (batch->kind != MR_BATCH_DICT)
            continue;
        assert_int_equal(mr_dict_open(&reader, mr_buffer_span(&batch->bytes), &error),
                         MR_OK);
        while (mr_dict_next(&reader, &item, &error) == MR_OK) {
            if (item.kind == MR_DICT_SCOPE) {
                scopes++;
                assert_true(mr_id_equal(item.scope.id, test_scope_id()));
                assert_string_equal(item.scope.host, "");
            }
            if (item.kind != MR_DICT_SOURCE)
                continue;
            live += item.source.state == MR_SOURCE_LIVE;
            finished += item.source.state == MR_SOURCE_FINISHED;
            if (item.source.state == MR_SOURCE_FINISHED)
                assert_int_equal(item.source.end_ns, NS_0 + 100);
            assert_string_equal(item.source.host, "host");
            assert_int_equal(item.source.pid, 7);
            assert_int_equal(item.source.worker.hi, 3);
        }
        mr_dict_close(&reader);
    }
    assert_int_equal(live, 1);
    assert_int_equal(finished, 1);
    assert_true(scopes >= 1);
    test_lane_fini(&lane);
}

static void a_time_that_goes_back_is_clamped_and_counted(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_exit(&lane, 1, 1, 40);
    test_lane_send(&lane, 1, 0);
    lane.streams[1].chunk_time = 7; /* and so is one between chunks */
    test_lane_enter(&lane, 1, 1, 101);
    test_lane_send(&lane, 1, 0);
    expect_event(&lane, 1, MR_EVENT_EXIT, 100);
    expect_event(&lane, 2, MR_EVENT_ENTER, 101);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_times_clamped"), 2);
    test_lane_fini(&lane);
}

static void a_sync_record_sets_the_time(void **state)
{
    struct test_lane lane;
    uint64_t later = 20 * MR_SECOND_NS;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_exit(&lane, 1, 1, later); /* step_to() writes the record */
    assert_int_equal(lane.streams[1].count, 4);
    test_lane_send(&lane, 1, 0);
    assert_int_equal(event_count(&lane), 2);
    expect_event(&lane, 1, MR_EVENT_EXIT, later);
    test_lane_fini(&lane);
}

static void a_loss_record_tells_events_reason_and_nesting(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_loss(&lane, 1, 200, 12345, MR_LOSS_BLOCK_TIMEOUT, 3, 2);
    test_lane_loss(&lane, 1, 300, 1, 200, 0, 0); /* a reason of a later version */
    test_lane_send(&lane, 1, 0);
    expect_loss(&lane, 1, 12345, MR_LOSS_BLOCK_TIMEOUT, 3, 2);
    expect_event(&lane, 1, MR_EVENT_LOSS, 200);
    expect_loss(&lane, 2, 1, MR_LOSS_FORMAT, 0, 0);
    test_lane_fini(&lane);
}

static void events_missing_between_chunks_are_lost_with_unknown_nesting(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, 0);
    test_lane_gap(&lane, 1, 17);
    test_lane_exit(&lane, 1, 1, 200);
    test_lane_send(&lane, 1, 0);
    expect_loss(&lane, 1, 17, MR_LOSS_FORMAT, MR_LOSS_NESTING_UNKNOWN,
                MR_LOSS_NESTING_UNKNOWN);
    expect_event(&lane, 2, MR_EVENT_EXIT, 200);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_gaps"), 1);
    test_lane_fini(&lane);
}

static void a_stream_that_another_receiver_began_has_no_gap(void **state)
{
    struct test_options options = {.stages = 1, .oldest = 9};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options);
    test_lane_gap(&lane, 1, 1000);
    test_lane_exit(&lane, 1, 1, 200);
    test_lane_send(&lane, 1, 0);
    expect_loss(&lane, 0, 0, MR_LOSS_FORMAT, MR_LOSS_NESTING_UNKNOWN,
                MR_LOSS_NESTING_UNKNOWN);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_gaps"), 0);
    test_lane_fini(&lane);
}

static void events_that_come_again_break_the_source(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, 0);
    lane.streams[1].next_event = 0;
    test_lane_exit(&lane, 1, 1, 200);
    test_lane_send(&lane, 1, 0);
    assert_true(mr_source_is_broken(lane.source));
    assert_non_null(strstr(mr_source_error(lane.source), "which came already"));
    assert_int_equal(event_count(&lane), 1);
    test_lane_fini(&lane);
}

static void a_chunk_after_the_last_one_breaks_the_source(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, MR_CHUNK_LAST);
    expect_event(&lane, 1, MR_EVENT_STREAM_END, 100);
    test_lane_exit(&lane, 1, 1, 200);
    test_lane_send(&lane, 1, 0);
    assert_true(mr_source_is_broken(lane.source));
    test_lane_fini(&lane);
}

static void what_was_decoded_before_a_fault_counts_and_the_rest_is_lost(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_word(&lane, 1,
                   mr_word_record(MR_RECORD_LOSS, 9, 0, 100)); /* a loss has 2 words */
    for (int i = 0; i < 9; i++)
        test_lane_exit(&lane, 1, 1, 200);
    test_lane_send(&lane, 1, 0);
    assert_true(mr_source_is_broken(lane.source));
    assert_non_null(
        strstr(mr_source_error(lane.source), "stream 1: a record breaks the format"));
    expect_event(&lane, 0, MR_EVENT_ENTER, 100);
    expect_loss(&lane, 1, 9, MR_LOSS_FORMAT, MR_LOSS_NESTING_UNKNOWN,
                MR_LOSS_NESTING_UNKNOWN);
    assert_int_equal(event_count(&lane), 2);
    test_lane_enter(&lane, 1, 1, 300); /* later frames are dropped */
    test_lane_send(&lane, 1, 0);
    assert_int_equal(event_count(&lane), 2);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_frames_discarded"), 1);
    test_lane_fini(&lane);
}

static void a_chunk_with_fewer_events_than_it_tells_breaks_the_source(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    lane.streams[1].events = 3;
    test_lane_send(&lane, 1, 0);
    assert_true(mr_source_is_broken(lane.source));
    expect_loss(&lane, 1, 2, MR_LOSS_FORMAT, MR_LOSS_NESTING_UNKNOWN,
                MR_LOSS_NESTING_UNKNOWN);
    test_lane_fini(&lane);
}

static void a_chunk_with_more_events_than_it_tells_breaks_the_source(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_exit(&lane, 1, 1, 100);
    lane.streams[1].events = 1;
    test_lane_send(&lane, 1, 0);
    assert_true(mr_source_is_broken(lane.source));
    test_lane_fini(&lane);
}

static void random_bytes_break_the_source_and_nothing_else(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    uint8_t bytes[300];

    (void)state;
    for (uint32_t i = 0; i < 300 / MR_TEST_FEWER; i++) {
        struct test_lane lane;
        size_t size = 1 + mr_test_random_below(&random, sizeof(bytes));
        static const enum mr_frame_type types[] = {MR_FRAME_DICT, MR_FRAME_CHUNKS,
                                                   MR_FRAME_DELTA};

        for (size_t j = 0; j < size; j++)
            bytes[j] = (uint8_t)mr_test_random_next(&random);
        test_lane_init(&lane, NULL);
        test_lane_push(&lane, types[i % 3], bytes, size);
        if (i % 3 != 0) /* random bytes may be a DICT of no known items */
            assert_true(mr_source_is_broken(lane.source));
        test_lane_end(&lane);
        assert_true(mr_source_is_done(lane.source));
        test_lane_fini(&lane);
    }
}

static void damaged_words_never_do_harm(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (uint32_t i = 0; i < 300 / MR_TEST_FEWER; i++) {
        struct test_lane lane;

        test_lane_init(&lane, NULL);
        for (int j = 0; j < 200; j++) {
            uint64_t word = mr_test_random_next(&random);

            if (mr_test_random_below(&random, 4))
                word = mr_word_event(MR_SITE_FIRST_MODULE + 16 * (uint32_t)(word % 5),
                                     word & MR_WORD_EXIT, (uint32_t)j);
            else if (mr_test_random_below(&random, 2))
                word &= ~((uint64_t)(MR_WORD_SITE_MASK & ~UINT32_C(0x31f))
                          << MR_WORD_SITE_SHIFT);
            test_lane_word(&lane, 1, word);
            lane.streams[1].events += mr_test_random_below(&random, 8) > 0;
        }
        test_lane_send(&lane, 1, 0);
        test_lane_end(&lane);
        assert_true(mr_source_is_done(lane.source));
        test_lane_fini(&lane);
    }
}

static void records_that_nothing_uses_yet_count_as_reduced(void **state)
{
    struct test_lane lane;
    const uint64_t words[4] = {1, 2, 3, 4};

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_record(&lane, 1, MR_RECORD_PLOT, 10, words, 2);
    test_lane_record(&lane, 1, MR_RECORD_COUNTER, 10, words, 3); /* no event */
    test_lane_record(&lane, 1, MR_RECORD_MARK, 10, words, 1);
    test_lane_record(&lane, 1, MR_RECORD_PRUNE, 10, words, 1); /* of no site; no event */
    test_lane_record(&lane, 1, (enum mr_record_kind)77, 10, words,
                     2); /* of a later version: one event or none */
    lane.streams[1].events = 3;
    test_lane_send(&lane, 1, 0);
    assert_false(mr_source_is_broken(lane.source));
    assert_int_equal(event_count(&lane), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(event_at(&lane, i, NULL)->kind, MR_EVENT_COUNTED);
        assert_int_equal(event_at(&lane, i, NULL)->ns, 1);
        assert_int_equal(event_at(&lane, i, NULL)->flags, 0);
    }
    assert_int_equal(test_lane_decode_counter(&lane, "decode_records_unknown"), 1);
    test_lane_fini(&lane);
}

/* Recording was switched: nobody lost an event, and nobody knows what is open. */
static void a_cut_is_a_loss_of_the_nesting_alone(void **state)
{
    struct test_lane lane;
    const uint64_t number = 2;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_record(&lane, 1, MR_RECORD_CUT, 110, &number, 1);
    test_lane_exit(&lane, 1, 2, 120);
    test_lane_send(&lane, 1, 0);
    assert_false(mr_source_is_broken(lane.source));
    expect_event(&lane, 0, MR_EVENT_ENTER, 100);
    expect_loss(&lane, 1, 0, MR_LOSS_FORMAT, MR_LOSS_NESTING_UNKNOWN,
                MR_LOSS_NESTING_UNKNOWN);
    expect_event(&lane, 2, MR_EVENT_EXIT, 120);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_streams_cut"), 1);
    test_lane_fini(&lane);
}

static void a_wide_record_is_a_call_of_an_address(void **state)
{
    struct test_lane lane;
    uint64_t address = 0x400000 + 16 * 3, nowhere = 5;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_record(&lane, 1, MR_RECORD_WIDE, 10, &address, 1);
    test_lane_record(&lane, 1, MR_RECORD_WIDE, 10, &nowhere, 1);
    lane.streams[1].events = 2;
    test_lane_send(&lane, 1, 0);
    expect_event(&lane, 0, MR_EVENT_ENTER, 10);
    assert_int_equal(function_at(&lane, 0), 3);
    assert_int_equal(event_at(&lane, 1, NULL)->site, MR_SITE_UNKNOWN);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_events_of_unknown_sites"),
                     1);
    test_lane_fini(&lane);
}

static void a_site_that_nobody_told_is_unknown_until_somebody_does(void **state)
{
    struct test_lane lane;
    struct mr_dict_item item = {.kind = MR_DICT_MODULE,
                                .module = {.module = 1,
                                           .site_base = MR_SITE_FIRST_MODULE + (1 << 20),
                                           .size = 4096,
                                           .path = "/lib/late.so"}};
    uint64_t word = mr_word_event(MR_SITE_FIRST_MODULE + (1 << 20) + 64, 0, 1);

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_word(&lane, 1, word);
    lane.streams[1].events = 1;
    test_lane_send(&lane, 1, 0);
    test_lane_item(&lane, &item);
    test_lane_word(&lane, 1, word);
    lane.streams[1].events = 1;
    test_lane_send(&lane, 1, 0);
    assert_int_equal(event_at(&lane, 0, NULL)->site, MR_SITE_UNKNOWN);
    assert_int_equal(function_at(&lane, 1), 4);
    test_lane_fini(&lane);
}

static void a_site_means_what_its_epoch_says(void **state)
{
    struct test_lane lane;
    struct mr_dict_item gone = {.kind = MR_DICT_MODULE_GONE,
                                .module_gone = {.epoch = 2, .module = 0}};
    struct mr_dict_item other = {.kind = MR_DICT_MODULE,
                                 .module = {.epoch = 3,
                                            .module = 1,
                                            .site_base = MR_SITE_FIRST_MODULE,
                                            .size = 4096,
                                            .path = "/lib/other.so"}};
    static const uint32_t epochs[] = {1, 3, 1, 2};

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_item(&lane, &gone);
    test_lane_item(&lane, &other);
    for (uint32_t i = 0; i < 4; i++) {
        lane.epoch = epochs[i];
        test_lane_enter(&lane, 1, 1, 1);
        test_lane_send(&lane, 1, 0);
    }
    assert_string_equal(
        mr_sites_at(lane.sites, event_at(&lane, 0, NULL)->site)->module->path,
        "/lib/test.so");
    assert_string_equal(
        mr_sites_at(lane.sites, event_at(&lane, 1, NULL)->site)->module->path,
        "/lib/other.so");
    assert_int_equal(event_at(&lane, 2, NULL)->site, event_at(&lane, 0, NULL)->site);
    /* In epoch 2 nothing is there: the next epoch that has something tells. */
    assert_int_equal(event_at(&lane, 3, NULL)->site, event_at(&lane, 1, NULL)->site);
    test_lane_fini(&lane);
}

static void losses_before_there_was_a_stream_are_told_once(void **state)
{
    struct test_lane lane;
    struct mr_dict_item item = {.kind = MR_DICT_SOURCE_LOSS,
                                .source_loss = {.reason = MR_LOSS_NESTED, .events = 10}};

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_item(&lane, &item);
    test_lane_item(&lane, &item); /* cumulative: the same again is nothing new */
    item.source_loss.events = 12;
    test_lane_item(&lane, &item);
    assert_int_equal(event_count(&lane), 2);
    assert_int_equal(event_at(&lane, 0, NULL)->ns, 10);
    assert_int_equal(event_at(&lane, 1, NULL)->ns, 2);
    assert_int_equal(event_at(&lane, 1, NULL)->flags, MR_LOSS_NESTED);
    assert_int_equal(lane.out->first->next ? 1 : 0, 1);
    test_lane_fini(&lane);
}

static void tell_all_of_a_probe(struct test_lane *lane)
{
    const struct mr_dict_item items[] = {
        {.kind = MR_DICT_MODULE,
         .module = {.epoch = 1,
                    .module = 4,
                    .site_base = MR_SITE_FIRST_MODULE + (1 << 20),
                    .size = 4096,
                    .address = 0x900000,
                    .bias = 0x900000,
                    .build_id = mr_span_of("b", 1),
                    .path = "/lib/b.so"}},
        {.kind = MR_DICT_NAMED_SITE,
         .named_site =
             {.site = MR_SITE_FIRST_NAMED, .name = "span", .file = "", .line = 3}},
        {.kind = MR_DICT_SOURCE_LOSS,
         .source_loss = {.reason = MR_LOSS_NESTED, .events = 10}},
        {.kind = MR_DICT_SYNC, .sync = {.ticks = 5, .realtime_ns = NS_0 + 5}},
    };

    for (size_t i = 0; i < MR_ARRAY_COUNT(items); i++)
        test_lane_item(lane, &items[i]);
    test_lane_announce(lane, 1, 2);
}

static void a_dictionary_that_is_repeated_changes_nothing(void **state)
{
    struct test_options options = {.stages = 1, .oldest = 9};
    struct test_lane lane;
    uint32_t sites, modules;

    (void)state;
    test_lane_init(&lane, &options);
    lane.is_repeating = true;
    tell_all_of_a_probe(&lane);
    sites = lane.sites->count;
    modules = lane.source->modules.count;
    test_lane_gap(&lane, 1, 1000);
    test_lane_exit(&lane, 1, 1, 200);
    test_lane_send(&lane, 1, 0);
    tell_all_of_a_probe(&lane);
    tell_all_of_a_probe(&lane);
    lane.is_repeating = false;
    tell_all_of_a_probe(&lane); /* what was not acknowledged comes again, too */
    assert_int_equal(lane.source->modules.count, modules);
    assert_int_equal(lane.sites->count, sites + 2); /* f1, and the start of stream 1 */
    test_lane_enter(&lane, 1, 1, 300);
    test_lane_send(&lane, 1, 0);
    assert_false(mr_source_is_broken(lane.source));
    assert_int_equal(event_count(&lane), 3); /* the break, f1, f1; and no losses */
    assert_int_equal(function_at(&lane, 1), 1);
    assert_int_equal(function_at(&lane, 2), 1);
    assert_int_equal(test_lane_decode_counter(&lane, "decode_events_of_unknown_sites"),
                     0);
    test_lane_fini(&lane);
}

static void repeated_losses_are_where_the_counting_goes_on(void **state)
{
    struct test_options options = {.stages = 1, .oldest = 9};
    struct test_lane lane;
    struct mr_dict_item item = {.kind = MR_DICT_SOURCE_LOSS,
                                .source_loss = {.reason = MR_LOSS_NESTED, .events = 10}};

    (void)state;
    test_lane_init(&lane, &options);
    lane.is_repeating = true;
    test_lane_item(&lane, &item);
    assert_int_equal(event_count(&lane), 0);
    lane.is_repeating = false;
    item.source_loss.events = 13;
    test_lane_item(&lane, &item);
    assert_int_equal(event_count(&lane), 1);
    assert_int_equal(event_at(&lane, 0, NULL)->ns, 3);
    test_lane_fini(&lane);
}

static void times_far_from_now_are_lost_for_the_clock(void **state)
{
    struct test_options options = {.stages = 1,
                                   .clock_limit_ns = MR_DECODE_CLOCK_LIMIT_DEFAULT};
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &options); /* TEST_START_S is long ago */
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, 0);
    expect_loss(&lane, 0, 1, MR_LOSS_CLOCK, MR_LOSS_NESTING_UNKNOWN,
                MR_LOSS_NESTING_UNKNOWN);
    assert_false(mr_source_is_broken(lane.source));
    test_lane_fini(&lane);
}

static void times_past_all_calendars_are_lost_for_the_clock(void **state)
{
    struct test_lane lane;
    uint64_t late = MR_TICKS_LIMIT - 1;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_record(&lane, 1, MR_RECORD_SYNC, 100, &late, 1);
    test_lane_exit(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, 0);
    expect_event(&lane, 0, MR_EVENT_ENTER, 100);
    expect_loss(&lane, 1, 1, MR_LOSS_CLOCK, MR_LOSS_NESTING_UNKNOWN,
                MR_LOSS_NESTING_UNKNOWN);
    test_lane_enter(&lane, 1, 1, 200); /* what follows in time is as good as before */
    test_lane_send(&lane, 1, 0);
    expect_event(&lane, 2, MR_EVENT_ENTER, 200);
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_events_in_unix_ns),
        cmocka_unit_test(the_compact_encoding_says_the_same),
        cmocka_unit_test(sites_are_told_before_the_events_that_use_them),
        cmocka_unit_test(a_source_and_its_scope_are_told_at_its_first_frame_and_its_end),
        cmocka_unit_test(a_time_that_goes_back_is_clamped_and_counted),
        cmocka_unit_test(a_sync_record_sets_the_time),
        cmocka_unit_test(a_loss_record_tells_events_reason_and_nesting),
        cmocka_unit_test(events_missing_between_chunks_are_lost_with_unknown_nesting),
        cmocka_unit_test(a_stream_that_another_receiver_began_has_no_gap),
        cmocka_unit_test(events_that_come_again_break_the_source),
        cmocka_unit_test(a_chunk_after_the_last_one_breaks_the_source),
        cmocka_unit_test(what_was_decoded_before_a_fault_counts_and_the_rest_is_lost),
        cmocka_unit_test(a_chunk_with_fewer_events_than_it_tells_breaks_the_source),
        cmocka_unit_test(a_chunk_with_more_events_than_it_tells_breaks_the_source),
        cmocka_unit_test(random_bytes_break_the_source_and_nothing_else),
        cmocka_unit_test(damaged_words_never_do_harm),
        cmocka_unit_test(records_that_nothing_uses_yet_count_as_reduced),
        cmocka_unit_test(a_cut_is_a_loss_of_the_nesting_alone),
        cmocka_unit_test(a_wide_record_is_a_call_of_an_address),
        cmocka_unit_test(a_site_that_nobody_told_is_unknown_until_somebody_does),
        cmocka_unit_test(a_site_means_what_its_epoch_says),
        cmocka_unit_test(losses_before_there_was_a_stream_are_told_once),
        cmocka_unit_test(a_dictionary_that_is_repeated_changes_nothing),
        cmocka_unit_test(repeated_losses_are_where_the_counting_goes_on),
        cmocka_unit_test(times_far_from_now_are_lost_for_the_clock),
        cmocka_unit_test(times_past_all_calendars_are_lost_for_the_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
