/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <stdio.h>

#include "net/delta.h"
#include "support_lane.h"

/* A program of another name: one stream with one call, and its end. */
static void run_application(struct test_lane *lane, uint32_t number)
{
    char app[32];
    const struct mr_hello hello = {.sender = {9, number},
                                   .role = MR_ROLE_PROBE,
                                   .oldest = 1,
                                   .token = "",
                                   .source = {.host = "host",
                                              .app = app,
                                              .version = "1",
                                              .exe = "/bin/app",
                                              .clock = lane->source->info.clock}};
    struct mr_source *before = lane->source;
    struct mr_batch *end = mr_batch_new(MR_BATCH_END);

    (void)snprintf(app, sizeof(app), "app%u", number);
    assert_int_equal(mr_source_new(&hello, false, &lane->source), MR_OK);
    lane->streams[2].next_event = 0;
    test_lane_enter(lane, 2, 1, 100);
    test_lane_exit(lane, 2, 1, 200);
    test_lane_send(lane, 2, MR_CHUNK_LAST);
    assert_non_null(end);
    end->source = lane->source;
    end->end_state = MR_SOURCE_FINISHED;
    assert_int_equal(mr_graph_push(lane->graph, end), MR_OK);
    assert_true(mr_source_is_done(lane->source));
    mr_source_free(lane->source);
    lane->source = before;
}

/* What all deltas say of calls, of traces that were whole, and of the ledger. */
static void add_up(const struct test_lane *lane, uint64_t *ok, uint64_t *whole,
                   struct mr_ledger_entry *ledger)
{
    *ok = *whole = 0;
    *ledger = (struct mr_ledger_entry){0};
    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next) {
        struct mr_delta_reader reader;
        struct mr_delta_item item;

        if (batch->kind != MR_BATCH_DELTA)
            continue;
        mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
        while (mr_delta_next(&reader, &item) == MR_OK) {
            if (item.tag == MR_DELTA_PATH_STAT)
                *ok += item.path_stats->ok;
            else if (item.tag == MR_DELTA_ENTRY_STAT)
                *whole += item.entry_stats->traces[MR_COVERAGE_WHOLE];
            else if (item.tag == MR_DELTA_LEDGER)
                mr_ledger_entry_merge(ledger, item.ledger);
        }
        mr_delta_reader_fini(&reader);
    }
}

static void any_number_of_applications_may_come_and_go(void **state)
{
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    const struct test_options options = {.reduce = &reduce};
    const uint32_t count = 1000;
    struct mr_ledger_entry ledger;
    struct test_lane lane;
    uint64_t ok, whole;

    (void)state;
    reduce.scopes_max = 64;
    test_lane_init(&lane, &options);
    test_lane_enter(&lane, 1, 1, 10); /* of one that stays */
    test_lane_enter(&lane, 1, 2, 15);
    test_lane_send(&lane, 1, 0);
    for (uint32_t i = 0; i < count; i++)
        run_application(&lane, i);
    test_lane_exit(&lane, 1, 2, 20);
    test_lane_exit(&lane, 1, 1, 25);
    test_lane_send(&lane, 1, 0);
    assert_true(test_lane_counter(&lane, "reduce_tables_forgotten") > 0);
    test_lane_end(&lane);
    add_up(&lane, &ok, &whole, &ledger);
    assert_int_equal(ok, count + 2);
    assert_int_equal(whole, count + 1);
    assert_int_equal(ledger.reduced, 2 * (uint64_t)count + 4);
    assert_int_equal(ledger.held, 0);
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_applications_may_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
