/* SPDX-License-Identifier: Apache-2.0 */
/* One source, two workers, of which the first may be gone: what is missing, since when, and what is told as lost. */
#include "base/clock.h"
#include "master/summary_private.h"
#include "pipeline/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
/* after the four above */
#include <cmocka.h>

static const struct mr_id sender = {7, 7}, source_id = {1, 2}, worker = {3, 4};

struct fixture {
    struct mr_model *model;
    uint64_t gone_ns;
};

static int set_up_limited(void **state, const struct mr_model_limits *limits)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (!f || mr_model_new(limits, &f->model) != MR_OK)
        return -1;
    mr_model_thread_enter();
    f->gone_ns = MR_HOUR_NS;
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    return set_up_limited(state, &MR_MODEL_LIMITS_DEFAULT);
}

#define FEW_STREAMS 2

static int set_up_few_streams(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;

    limits.streams = FEW_STREAMS;
    return set_up_limited(state, &limits);
}

static int set_up_no_notes(void **state)
{
    struct mr_model_limits limits = MR_MODEL_LIMITS_DEFAULT;

    limits.notes = 0;
    return set_up_limited(state, &limits);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    mr_model_thread_leave();
    mr_model_free(f->model);
    free(f);
    return 0;
}

static void take(struct fixture *f, uint32_t stream, struct mr_ledger_entry entry)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_delta_writer writer;
    struct mr_buffer bytes;

    mr_buffer_init(&bytes, SIZE_MAX);
    mr_delta_begin(&writer, &bytes);
    mr_delta_head(&writer, 1, 1);
    mr_delta_ledger(&writer, mr_delta_source(&writer, source_id), stream, &entry);
    assert_int_equal(mr_delta_status(&writer), MR_OK);
    assert_int_equal(
        mr_model_apply_delta(f->model, sender, mr_buffer_span(&bytes), &error), MR_OK);
    mr_buffer_fini(&bytes);
}

static void take_item(struct fixture *f, const struct mr_dict_item *item)
{
    struct mr_error error = MR_ERROR_NONE;
    struct mr_dict_writer writer;
    uint8_t bytes[512];

    mr_dict_writer_init(&writer, bytes, sizeof(bytes));
    assert_int_equal(mr_dict_put(&writer, item), MR_OK);
    assert_int_equal(
        mr_model_apply_dict(f->model, mr_span_of(bytes, mr_dict_writer_finish(&writer)),
                            &error),
        MR_OK);
}

static void take_state(struct fixture *f, enum mr_source_state state)
{
    const struct mr_dict_item item = {.kind = MR_DICT_SOURCE,
                                      .source = {.id = source_id,
                                                 .worker = worker,
                                                 .host = "h",
                                                 .app = "a",
                                                 .version = "",
                                                 .exe = "",
                                                 .state = state}};

    take_item(f, &item);
}

static void take_account(struct fixture *f, uint64_t events)
{
    char text[24];
    const struct mr_dict_item item = {.kind = MR_DICT_NOTE,
                                      .note = {.about = source_id,
                                               .key = mr_note_name(MR_NOTE_SENT_EVENTS),
                                               .value = text,
                                               .version = events}};

    snprintf(text, sizeof(text), "%llu", (unsigned long long)events);
    take_item(f, &item);
}

/* The ledger `later_ns` from now; that of the one source, and that of all, which are the same. */
static struct mr_summary_ledger ledger_of(struct fixture *f, uint64_t later_ns)
{
    const struct mr_summary_time time = {mr_clock_realtime_ns() + later_ns, f->gone_ns};
    struct mr_summary_ledger one[2] = {{0}}, all = {0};

    assert_int_equal(mr_model_publish(f->model), MR_OK);
    const struct mr_model_root *root = mr_model_read_lock(f->model);
    assert_int_equal(mr_model_count(root, MR_MODEL_SOURCE), 1);
    mr_summary_make_ledgers(root, &time, one, &all);
    mr_model_read_unlock(f->model);
    assert_int_equal(all.missing, one[0].missing);
    assert_int_equal(all.host_gone, one[0].host_gone);
    assert_int_equal(all.excess, one[0].excess);
    assert_int_equal(all.sent, one[0].sent);
    assert_int_equal(all.since_ns, one[0].since_ns);
    assert_int_equal(all.is_balanced, one[0].is_balanced);
    assert_int_equal(all.sources, 1);
    return all;
}

static enum mr_source_state state_of(struct fixture *f)
{
    enum mr_source_state state;

    assert_int_equal(mr_model_publish(f->model), MR_OK);
    state = mr_model_source(mr_model_read_lock(f->model), 0)->state;
    mr_model_read_unlock(f->model);
    return state;
}

/* The first worker told of 620 events and has 380 more; the second goes on behind them. */
static void move(struct fixture *f)
{
    take_state(f, MR_SOURCE_LIVE);
    take(f, 1, (struct mr_ledger_entry){.last = 620, .reduced = 600, .held = 20});
    take(f, 1, (struct mr_ledger_entry){.last = 1500, .reduced = 500});
}

static void what_another_worker_has_is_missing_until_it_brings_it(void **state)
{
    struct fixture *f = *state;
    struct mr_summary_ledger ledger;

    move(f);
    ledger = ledger_of(f, 0);
    assert_int_equal(ledger.missing, 380);
    assert_int_equal(ledger.host_gone, 0);
    assert_true(ledger.since_ns > 0 && !ledger.is_balanced);
    take(f, 1, (struct mr_ledger_entry){.last = 1000, .reduced = 400, .held = -20});
    ledger = ledger_of(f, MR_HOUR_NS);
    assert_int_equal(ledger.missing, 0);
    assert_int_equal(ledger.since_ns, 0);
    assert_true(ledger.is_balanced && ledger.excess == 0);
}

static void what_stays_missing_was_on_a_host_that_is_gone(void **state)
{
    struct fixture *f = *state;
    struct mr_summary_ledger ledger;

    move(f);
    assert_int_equal(ledger_of(f, MR_HOUR_NS - MR_MINUTE_NS).host_gone, 0);
    assert_int_equal(ledger_of(f, MR_HOUR_NS).host_gone, 380);
    take(f, 1, (struct mr_ledger_entry){.last = 1700, .reduced = 200}); /* it goes on */
    assert_int_equal(ledger_of(f, MR_HOUR_NS).missing, 380);
    f->gone_ns = 0; /* a store that nobody serves: it may come yet */
    assert_int_equal(ledger_of(f, 1000 * MR_HOUR_NS).host_gone, 0);
    f->gone_ns = MR_HOUR_NS;
    take(f, 1, (struct mr_ledger_entry){.last = 1000, .reduced = 400, .held = -20});
    ledger = ledger_of(f, 2 * MR_HOUR_NS); /* it came back */
    assert_int_equal(ledger.missing + ledger.host_gone, 0);
}

static void what_is_held_when_its_source_is_over_is_missing_too(void **state)
{
    struct fixture *f = *state;

    move(f);
    take_state(f, MR_SOURCE_FINISHED);
    assert_int_equal(ledger_of(f, 0).missing, 400);
    assert_int_equal(ledger_of(f, MR_HOUR_NS).host_gone, 400);
}

static void what_was_taken_for_dead_and_finished_elsewhere_has_finished(void **state)
{
    struct fixture *f = *state;

    take_state(f, MR_SOURCE_LIVE);
    take_state(f, MR_SOURCE_DIED);
    assert_int_equal(state_of(f), MR_SOURCE_DIED);
    take_state(f, MR_SOURCE_LIVE);
    assert_int_equal(state_of(f), MR_SOURCE_DIED);
    take_state(f, MR_SOURCE_FINISHED);
    assert_int_equal(state_of(f), MR_SOURCE_FINISHED);
    take_state(f, MR_SOURCE_DIED); /* told late */
    assert_int_equal(state_of(f), MR_SOURCE_FINISHED);
}

static void an_account_tells_of_streams_that_nobody_brought(void **state)
{
    struct fixture *f = *state;
    struct mr_summary_ledger ledger;

    take_state(f, MR_SOURCE_LIVE);
    take(f, 1, (struct mr_ledger_entry){.last = 100, .reduced = 100});
    take(f, MR_STREAM_NONE, (struct mr_ledger_entry){.last = 7, .lost = {[1] = 7}});
    ledger = ledger_of(f, 0);
    assert_int_equal(ledger.sources_told, 0); /* absent, not 0 */
    assert_true(ledger.is_balanced);
    take_account(f, 60); /* as it connected: it has gone on since */
    assert_true(ledger_of(f, 0).is_balanced);
    take_account(f, 350);
    take_account(f, 60); /* an older one, late */
    ledger = ledger_of(f, 0);
    assert_int_equal(ledger.sources_told, 1);
    assert_int_equal(ledger.sent, 350);
    assert_int_equal(ledger.missing, 250); /* what had no stream is in no frame */
    assert_false(ledger.is_balanced);
    assert_int_equal(ledger_of(f, MR_HOUR_NS).host_gone, 250);
    take(f, 2, (struct mr_ledger_entry){.last = 250, .reduced = 250});
    assert_true(ledger_of(f, 0).is_balanced);
}

/* Sums of such numbers would wrap, and what is missing with them. */
static void an_account_of_more_events_than_there_can_be_is_missing_all_the_same(
    void **state)
{
    struct fixture *f = *state;

    take_state(f, MR_SOURCE_LIVE);
    take(f, 1, (struct mr_ledger_entry){.last = 5, .reduced = 5});
    take_account(f, UINT64_MAX);
    struct mr_summary_ledger ledger = ledger_of(f, 0);
    assert_int_equal(ledger.sent, MR_EVENTS_LIMIT);
    assert_int_equal(ledger.missing, MR_EVENTS_LIMIT - 5);
    assert_false(ledger.is_balanced);
}

static void what_is_counted_twice_is_told_and_hides_nothing(void **state)
{
    struct fixture *f = *state;
    struct mr_summary_ledger ledger;

    move(f);
    take(f, 2, (struct mr_ledger_entry){.last = 10, .reduced = 25});
    ledger = ledger_of(f, 0);
    assert_int_equal(ledger.excess, 15);
    assert_int_equal(ledger.missing, 380);
    assert_false(ledger.is_balanced);
}

static void a_live_source_that_is_not_heard_of_is_silent(void **state)
{
    struct fixture *f = *state;

    take_state(f, MR_SOURCE_LIVE);
    take(f, 1, (struct mr_ledger_entry){.last = 4, .reduced = 4});
    assert_int_equal(ledger_of(f, 0).sources_silent, 0);
    assert_int_equal(ledger_of(f, MR_MINUTE_NS).sources_silent, 1);
    assert_true(ledger_of(f, MR_MINUTE_NS).silent_since_ns > 0);
    take_state(f, MR_SOURCE_FINISHED);
    assert_int_equal(ledger_of(f, MR_MINUTE_NS).sources_silent, 0);
}

static void a_source_that_left_without_a_goodbye_is_told(void **state)
{
    struct fixture *f = *state;

    take_state(f, MR_SOURCE_LIVE);
    take(f, 1, (struct mr_ledger_entry){.last = 4, .reduced = 4});
    assert_int_equal(ledger_of(f, 0).sources_died, 0);
    take_state(f, MR_SOURCE_DIED);
    assert_int_equal(ledger_of(f, 0).sources_died, 1);
    assert_true(ledger_of(f, 0).is_balanced); /* of what came */
    take_state(f, MR_SOURCE_FINISHED);        /* it was at another worker */
    assert_int_equal(ledger_of(f, 0).sources_died, 0);
}

static void streams_past_the_limit_are_in_the_sums_and_not_missing(void **state)
{
    struct fixture *f = *state;
    struct mr_summary_ledger ledger;

    take_state(f, MR_SOURCE_LIVE);
    for (uint32_t stream = 1; stream <= 5; stream++)
        take(f, stream,
             (struct mr_ledger_entry){
                 .last = 20, .reduced = 12, .held = 3, .lost = {[MR_LOSS_BUDGET] = 5}});
    take(f, MR_STREAM_NONE, (struct mr_ledger_entry){.last = 7, .lost = {[1] = 7}});
    take_account(f, 100);
    ledger = ledger_of(f, 24 * MR_HOUR_NS);
    assert_int_equal(ledger.streams, FEW_STREAMS + 1);
    assert_int_equal(ledger.streams_balanced, FEW_STREAMS + 1);
    assert_int_equal(ledger.last, 100 + 7);
    assert_int_equal(ledger.reduced, 60);
    assert_int_equal(ledger.held, 15);
    assert_int_equal(ledger.lost[MR_LOSS_BUDGET], 25);
    assert_int_equal(ledger.past_limit, 60);
    assert_int_equal(ledger.missing, 0);
    assert_true(ledger.is_balanced);
    take_account(f, 110); /* by it alone what is missing of them is seen */
    assert_int_equal(ledger_of(f, 0).missing, 10);
    assert_int_equal(ledger_of(f, 24 * MR_HOUR_NS).host_gone, 10);
    take(f, 5, (struct mr_ledger_entry){.last = 30, .reduced = 13, .held = -3});
    ledger = ledger_of(f, 24 * MR_HOUR_NS);
    assert_int_equal(ledger.past_limit, 70);
    assert_true(ledger.is_balanced);
    take_state(f, MR_SOURCE_FINISHED); /* what is held waits for exits that do not come */
    assert_int_equal(ledger_of(f, 0).missing, 12);
}

static void an_account_has_its_room_with_its_source(void **state)
{
    struct fixture *f = *state;

    take_account(f, 7); /* of whom nothing is known yet */
    take_state(f, MR_SOURCE_LIVE);
    assert_int_equal(ledger_of(f, 0).sources_told, 0);
    take_account(f, 60);
    assert_int_equal(ledger_of(f, 0).sent, 60);
    const struct mr_model_root *root = mr_model_read_lock(f->model);
    struct mr_summary_past_limit past_limit;
    mr_summary_make_past_limit(root, &past_limit);
    assert_int_equal(past_limit.notes, 1);
    mr_model_read_unlock(f->model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            what_another_worker_has_is_missing_until_it_brings_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_stays_missing_was_on_a_host_that_is_gone,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_held_when_its_source_is_over_is_missing_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_was_taken_for_dead_and_finished_elsewhere_has_finished, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(an_account_tells_of_streams_that_nobody_brought,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_account_of_more_events_than_there_can_be_is_missing_all_the_same, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(what_is_counted_twice_is_told_and_hides_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            streams_past_the_limit_are_in_the_sums_and_not_missing, set_up_few_streams,
            tear_down),
        cmocka_unit_test_setup_teardown(an_account_has_its_room_with_its_source,
                                        set_up_no_notes, tear_down),
        cmocka_unit_test_setup_teardown(a_source_that_left_without_a_goodbye_is_told,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_live_source_that_is_not_heard_of_is_silent,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
