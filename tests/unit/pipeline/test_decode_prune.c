/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <stdio.h>
#include <string.h>

#include "support_lane.h"

#define NS_0 (TEST_START_S * MR_SECOND_NS)

static const struct test_options decode_only = {.stages = 1};

/* Event number `index`, all in one batch. */
static const struct mr_event *event_at(const struct test_lane *lane, uint32_t index)
{
    const struct mr_batch *batch = lane->out->first;

    while (batch && batch->kind != MR_BATCH_EVENTS)
        batch = batch->next;
    assert_true(batch && index < batch->event_count);
    return &batch->events[index];
}

static void expect_event(const struct test_lane *lane, uint32_t index,
                         enum mr_event_kind kind, uint64_t ns)
{
    assert_int_equal(event_at(lane, index)->kind, kind);
    assert_int_equal(event_at(lane, index)->ns, NS_0 + ns);
}

static void a_pruned_site_is_told_in_its_place_and_is_no_event(void **state)
{
    struct test_lane lane;

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_prune(&lane, 1, 1, 110, 0);
    test_lane_exit(&lane, 1, 1, 120);
    test_lane_prune(&lane, 1, 1, 130, MR_PRUNE_SETTLED | MR_PRUNE_ON_AGAIN);
    test_lane_send(&lane, 1, 0);
    assert_false(mr_source_is_broken(lane.source));
    expect_event(&lane, 0, MR_EVENT_ENTER, 100);
    expect_event(&lane, 1, MR_EVENT_PRUNE, 110);
    assert_int_equal(event_at(&lane, 1)->flags, 0);
    assert_int_equal(event_at(&lane, 1)->site, event_at(&lane, 0)->site);
    expect_event(&lane, 2, MR_EVENT_EXIT, 120);
    assert_int_equal(event_at(&lane, 3)->flags,
                     MR_EVENT_PRUNE_ON_AGAIN | MR_EVENT_PRUNE_SETTLED);
    test_lane_fini(&lane);
}

/* The value of a note about function 1 of the source, or "-". */
static void note_of(struct test_lane *lane, const char *key, char value[64])
{
    (void)strcpy(value, "-");
    for (const struct mr_batch *batch = lane->out->first; batch; batch = batch->next) {
        struct mr_error error = MR_ERROR_NONE;
        struct mr_dict_reader reader;
        struct mr_dict_item item;

        if (batch->kind != MR_BATCH_DICT)
            continue;
        assert_int_equal(mr_dict_open(&reader,
                                      mr_span_of(batch->bytes.data, batch->bytes.size),
                                      &error),
                         MR_OK);
        while (mr_dict_next(&reader, &item, &error) == MR_OK)
            if (item.kind == MR_DICT_NOTE && strcmp(item.note.key, key) == 0) {
                assert_true(mr_id_equal(item.note.about, lane->source->id));
                assert_true(mr_id_equal(item.note.site, mr_sites_at(lane->sites, 1)->id));
                (void)snprintf(value, 64, "%s", item.note.value);
            }
        mr_dict_close(&reader);
    }
}

static void expect_notes(struct test_lane *lane, const char *since, const char *until,
                         const char *calls)
{
    char value[64];

    note_of(lane, "pruned_since_ns", value);
    assert_string_equal(value, since);
    note_of(lane, "pruned_until_ns", value);
    assert_string_equal(value, until);
    note_of(lane, "pruned_calls", value);
    assert_string_equal(value, calls);
}

static void a_pruned_site_is_told_upward_as_notes_about_it(void **state)
{
    struct test_lane lane;
    struct mr_dict_item item = {.kind = MR_DICT_PRUNED,
                                .pruned = {.site = MR_SITE_FIRST_MODULE + 16,
                                           .flags = MR_PRUNED_NOW,
                                           .limit_ns = 50}};
    struct mr_dict_item unknown = item;
    char since[64], value[64];

    (void)state;
    test_lane_init(&lane, &decode_only);
    test_lane_enter(&lane, 1, 1, 100);
    test_lane_send(&lane, 1, 0);
    unknown.pruned.site = MR_SITE_LIMIT - 1;
    test_lane_item(&lane, &unknown);
    expect_notes(&lane, "-", "-", "-");
    item.pruned.ticks = 100;
    test_lane_item(&lane, &item);
    (void)snprintf(since, sizeof(since), "%" PRIu64,
                   mr_ticks_ns(&lane.source->ticks, 100));
    expect_notes(&lane, since, "0", "-"); /* nobody counts: absent, not 0 */
    note_of(&lane, "pruned_below_ns", value);
    assert_string_equal(value, "50");
    item.pruned.flags = MR_PRUNED_COUNTED;
    item.pruned.calls = 12345678901234567890u;
    test_lane_item(&lane, &item);
    expect_notes(&lane, since, since, "12345678901234567890");
    assert_false(mr_source_is_broken(lane.source));
    test_lane_fini(&lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pruned_site_is_told_in_its_place_and_is_no_event),
        cmocka_unit_test(a_pruned_site_is_told_upward_as_notes_about_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
