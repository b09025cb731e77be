/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <stdio.h>

#include "support_reduce.h"

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
    test_reduce_add_up(&lane, &ok, &whole, &ledger);
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
