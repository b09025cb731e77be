/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include "probe/epochs.h"

#define SITE MR_SITE_FIRST_MODULE
#define PLUGIN (MR_SITE_LIMIT - 0x100000)
#define FAR UINT64_C(0x7e0000000010) /* in neither window */
#define WORDS MR_RING_WORDS_MIN

/* A ring, and the writer's view of modules. */
struct setting {
    struct rig *rig;
    struct mr_changes *changes;
    struct mr_epochs *epochs;
};

static struct setting setting_new(void)
{
    struct setting setting = {.rig = rig_new(WORDS, MR_POLICY_DROP),
                              .changes = calloc(1, sizeof(*setting.changes)),
                              .epochs = calloc(1, sizeof(*setting.epochs))};

    assert_non_null(setting.changes);
    assert_non_null(setting.epochs);
    setting.epochs->newest = 1;
    setting.epochs->changes = setting.changes;
    return setting;
}

static void setting_free(struct setting *setting)
{
    rig_free(setting->rig);
    free(setting->epochs);
    free(setting->changes);
}

/* One frame. False: nothing was taken. */
static bool drain(struct setting *setting, uint64_t now_ns)
{
    struct rig *rig = setting->rig;
    bool is_taken;

    mr_drain_begin(&rig->frame, rig->out, RIG_FRAME_SIZE);
    rig->frame.epochs = setting->epochs;
    is_taken = mr_drain_ring(&rig->frame, rig->ring, setting->epochs->newest, now_ns);
    mr_drain_commit(&rig->frame, &rig->pool);
    rig->payload = mr_span_of(rig->out, rig->frame.size);
    rig->reader.left = 0;
    return is_taken;
}

static void expect_epoch(struct setting *setting, uint32_t site, uint64_t ticks,
                         uint32_t epoch)
{
    rig_expect_event(setting->rig, site, false, ticks);
    assert_int_equal(setting->rig->chunk.epoch, epoch);
}

/* What whoever looks at modules puts into the queue. */
static void put_change(struct setting *setting, uint64_t ticks)
{
    uint32_t head = mr_load_relaxed(&setting->changes->head);

    setting->changes->queue[head % MR_CHANGES_MAX].ticks = ticks;
    mr_store_release(&setting->changes->head, head + 1);
}

static void each_event_has_the_epoch_of_its_time(void **state)
{
    struct setting setting = setting_new();

    (void)state;
    mr_epochs_add(setting.epochs, RIG_TICKS + 15);
    mr_epochs_add(setting.epochs, RIG_TICKS + 16);
    mr_epochs_add(setting.epochs, RIG_TICKS + 25);
    for (uint32_t i = 0; i < 3; i++)
        rig_enter(setting.rig, SITE + i, RIG_TICKS + 10 * (i + 1));
    assert_true(drain(&setting, 0));
    rig_expect_kind(setting.rig, MR_RECORD_SYNC);
    expect_epoch(&setting, SITE, RIG_TICKS + 10, 1);
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, SITE + 1, RIG_TICKS + 20, 3);
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, SITE + 2, RIG_TICKS + 30, 4);
    assert_false(drain(&setting, 0));
    setting_free(&setting);
}

static void events_after_a_change_wait_until_it_is_taken(void **state)
{
    struct setting setting = setting_new();

    (void)state;
    rig_enter(setting.rig, SITE, RIG_TICKS + 10);
    rig_enter(setting.rig, SITE + 1, RIG_TICKS + 20);
    put_change(&setting, RIG_TICKS + 15);
    assert_true(drain(&setting, 0));
    rig_expect_kind(setting.rig, MR_RECORD_SYNC);
    expect_epoch(&setting, SITE, RIG_TICKS + 10, 1);
    assert_false(rig_next(setting.rig));
    /* However long: a hole would be given up by now. */
    for (uint64_t i = 1; i < 3 * MR_DRAIN_HOLE_POLLS; i++)
        assert_false(drain(&setting, i * MR_DRAIN_HOLE_NS));
    mr_epochs_add(setting.epochs, RIG_TICKS + 15);
    mr_changes_taken(setting.changes);
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, SITE + 1, RIG_TICKS + 20, 2);
    setting_free(&setting);
}

/* Else the change that they wait for finds no room, and both wait for each other. */
static void held_events_keep_no_older_epoch_than_their_own(void **state)
{
    struct setting setting = setting_new();
    const uint64_t late = RIG_TICKS + 1000, change = late - 1;
    uint32_t newest;

    (void)state;
    rig_enter(setting.rig, SITE, RIG_TICKS + 10);
    rig_enter(setting.rig, SITE + 1, late);
    for (uint32_t i = 1; mr_epochs_has_room(setting.epochs, 1); i++)
        mr_epochs_add(setting.epochs, RIG_TICKS + 10 + i);
    newest = setting.epochs->newest;
    put_change(&setting, change);
    assert_true(drain(&setting, 0));
    rig_expect_kind(setting.rig, MR_RECORD_SYNC);
    expect_epoch(&setting, SITE, RIG_TICKS + 10, 1);
    assert_int_equal(setting.rig->ring->done.epoch, 1);
    assert_false(drain(&setting, 0));
    assert_int_equal(setting.rig->ring->done.epoch, newest);
    assert_true(mr_epochs_has_room(setting.epochs, setting.rig->ring->done.epoch));
    mr_epochs_add(setting.epochs, change);
    mr_changes_taken(setting.changes);
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, SITE + 1, late, newest + 1);
    setting_free(&setting);
}

static void an_empty_ring_keeps_no_old_epoch(void **state)
{
    struct setting setting = setting_new();
    struct mr_ring *ring = setting.rig->ring;

    (void)state;
    rig_enter(setting.rig, SITE, RIG_TICKS + 10);
    assert_true(drain(&setting, 0));
    assert_int_equal(ring->done.epoch, 1);
    for (uint32_t i = 0; i < 2 * MR_EPOCHS_KEPT; i++) {
        assert_true(mr_epochs_has_room(setting.epochs, ring->done.epoch));
        mr_epochs_add(setting.epochs, RIG_TICKS + 100 + i);
        assert_false(drain(&setting, 0));
        assert_int_equal(ring->done.epoch, setting.epochs->newest);
    }
    setting_free(&setting);
}

static void a_ring_that_is_behind_keeps_epochs_from_being_given_up(void **state)
{
    struct setting setting = setting_new();
    uint32_t added = 0;

    (void)state;
    rig_enter(setting.rig, SITE, RIG_TICKS + 10);
    assert_true(drain(&setting, 0));
    while (mr_epochs_has_room(setting.epochs, setting.rig->ring->done.epoch)) {
        mr_epochs_add(setting.epochs, RIG_TICKS + 100 + 10 * added);
        rig_enter(setting.rig, SITE, RIG_TICKS + 100 + 10 * added);
        added++;
    }
    assert_int_equal(added, MR_EPOCHS_KEPT - 1);
    for (uint32_t i = 0; i < added; i++) {
        assert_true(drain(&setting, 0));
        expect_epoch(&setting, SITE, RIG_TICKS + 100 + 10 * i, 2 + i);
        assert_false(rig_next(setting.rig));
    }
    setting_free(&setting);
}

static void know(struct setting *setting, uint32_t site)
{
    static struct mr_module_table table;

    table.count = 1;
    table.items[0].site_base = site & ~UINT32_C(0xfff);
    table.items[0].sites = 0x1000;
    mr_epochs_learn(setting->epochs, &table);
}

static void after_dlopen_events_of_nobody_wait_for_a_look(void **state)
{
    struct setting setting = setting_new();

    (void)state;
    rig_enter(setting.rig, SITE, RIG_TICKS + 10);
    rig_enter(setting.rig, PLUGIN, RIG_TICKS + 20);
    mr_store_relaxed(&setting.changes->opened_ns, 1);
    assert_true(drain(&setting, 0));
    rig_expect_kind(setting.rig, MR_RECORD_SYNC);
    expect_epoch(&setting, SITE, RIG_TICKS + 10, 1);
    assert_false(rig_next(setting.rig));
    assert_false(drain(&setting, 0));
    assert_true(setting.epochs->is_look_wanted);
    know(&setting, PLUGIN);
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, PLUGIN, RIG_TICKS + 20, 1);
    setting_free(&setting);
}

static void what_a_look_did_not_find_goes_and_what_came_later_waits_anew(void **state)
{
    struct setting setting = setting_new();

    (void)state;
    mr_store_relaxed(&setting.changes->opened_ns, 1);
    mr_store_relaxed(&setting.changes->begun, 7);
    rig_enter(setting.rig, PLUGIN, RIG_TICKS + 10);
    assert_true(drain(&setting, 0)); /* the sync record alone */
    assert_false(drain(&setting, 0));
    setting.epochs->looks_done = 7; /* began before */
    assert_false(drain(&setting, 0));
    rig_enter(setting.rig, PLUGIN + 1, RIG_TICKS + 20);
    setting.epochs->looks_done = 8;
    mr_store_relaxed(&setting.changes->begun, 8);
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, PLUGIN, RIG_TICKS + 10, 1);
    assert_false(rig_next(setting.rig));
    assert_false(drain(&setting, 0));
    setting.epochs->looks_done = 9;
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, PLUGIN + 1, RIG_TICKS + 20, 1);
    setting_free(&setting);
}

static void no_event_is_lost_for_a_name(void **state)
{
    struct setting setting = setting_new();

    (void)state;
    mr_store_relaxed(&setting.changes->opened_ns, 1);
    for (uint32_t i = 0; i < WORDS / 2 - 2; i++)
        rig_enter(setting.rig, PLUGIN, RIG_TICKS + 10);
    assert_true(drain(&setting, 0)); /* the sync record alone */
    assert_false(drain(&setting, 0));
    for (uint32_t i = 0; i < 4; i++)
        rig_enter(setting.rig, PLUGIN, RIG_TICKS + 10);
    assert_true(drain(&setting, 0));
    expect_epoch(&setting, PLUGIN, RIG_TICKS + 10, 1);
    setting_free(&setting);
}

static void calls_in_a_module_far_away_wait_for_a_look_too(void **state)
{
    static struct mr_module_table table;
    struct setting setting = setting_new();

    (void)state;
    mr_epochs_learn(setting.epochs, &table);
    mr_store_relaxed(&setting.changes->opened_ns, 1);
    mr_ring_wide(&setting.rig->thread, 0, FAR, RIG_TICKS + 10);
    assert_true(drain(&setting, 0)); /* the sync record alone */
    assert_false(drain(&setting, 0));
    assert_true(setting.epochs->is_look_wanted);
    table.count = 1;
    table.items[0] = (struct mr_module){
        .address = FAR - 16, .size = 17, .site_base = MR_SITE_LIMIT, .sites = 17};
    mr_epochs_learn(setting.epochs, &table);
    assert_true(drain(&setting, 0));
    setting_free(&setting);
}

static void a_ring_that_is_used_again_remembers_no_look(void **state)
{
    struct setting setting = setting_new();

    (void)state;
    mr_store_relaxed(&setting.changes->opened_ns, 1);
    rig_enter(setting.rig, PLUGIN, RIG_TICKS + 10);
    assert_true(drain(&setting, 0)); /* the sync record alone */
    assert_false(drain(&setting, 0));
    assert_true(setting.rig->ring->hold.has_look);
    mr_ring_reset(setting.rig->ring);
    assert_false(setting.rig->ring->hold.has_look);
    setting_free(&setting);
}

static void nobody_waits_for_a_look_for_ever(void **state)
{
    struct setting setting = setting_new();

    (void)state;
    mr_store_relaxed(&setting.changes->opened_ns, 1);
    rig_enter(setting.rig, PLUGIN, RIG_TICKS + 10);
    assert_true(drain(&setting, MR_SECOND_NS));
    assert_false(drain(&setting, MR_SECOND_NS));
    assert_false(drain(&setting, 2 * MR_SECOND_NS));
    assert_true(drain(&setting, 60 * MR_SECOND_NS));
    expect_epoch(&setting, PLUGIN, RIG_TICKS + 10, 1);
    setting_free(&setting);
}

static void modules_are_known_to_their_last_page(void **state)
{
    struct mr_epochs *epochs = calloc(1, sizeof(*epochs));
    struct mr_module_table *table = calloc(1, sizeof(*table));

    (void)state;
    assert_non_null(epochs);
    assert_non_null(table);
    table->count = 3;
    table->items[0] =
        (struct mr_module){.site_base = MR_SITE_FIRST_MODULE, .sites = 4096};
    table->items[1] = (struct mr_module){.site_base = PLUGIN, .sites = 3 * 4096};
    table->items[2] = (struct mr_module){.site_base = MR_SITE_LIMIT, .sites = 4096};
    mr_epochs_learn(epochs, table);
    assert_false(mr_epochs_knows(epochs, PLUGIN - 1));
    assert_true(mr_epochs_knows(epochs, PLUGIN));
    assert_true(mr_epochs_knows(epochs, PLUGIN + 3 * 4096 - 1));
    assert_false(mr_epochs_knows(epochs, PLUGIN + 3 * 4096));
    assert_false(mr_epochs_knows(epochs, MR_SITE_LIMIT - 1));
    free(table);
    free(epochs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_has_the_epoch_of_its_time),
        cmocka_unit_test(events_after_a_change_wait_until_it_is_taken),
        cmocka_unit_test(held_events_keep_no_older_epoch_than_their_own),
        cmocka_unit_test(an_empty_ring_keeps_no_old_epoch),
        cmocka_unit_test(a_ring_that_is_behind_keeps_epochs_from_being_given_up),
        cmocka_unit_test(after_dlopen_events_of_nobody_wait_for_a_look),
        cmocka_unit_test(what_a_look_did_not_find_goes_and_what_came_later_waits_anew),
        cmocka_unit_test(no_event_is_lost_for_a_name),
        cmocka_unit_test(calls_in_a_module_far_away_wait_for_a_look_too),
        cmocka_unit_test(a_ring_that_is_used_again_remembers_no_look),
        cmocka_unit_test(nobody_waits_for_a_look_for_ever),
        cmocka_unit_test(modules_are_known_to_their_last_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
