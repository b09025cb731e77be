/* SPDX-License-Identifier: Apache-2.0 */
/* The repetition of the dictionary, with a writer whose state is set by hand. */
#include "tests/unit/unit_test.h"

#include "net/control.h"
#include "probe/writer.h"

#include <stdlib.h>
#include <string.h>

/* Of interpose.c, which belongs to the libraries. */
void mr_interpose_after_fork(void)
{
}

enum { PAGES_MAX = 200, RINGS = 4 };

struct rig {
    struct mr_probe *probe;
    struct mr_writer *writer;
    struct mr_ring *rings;
    uint32_t pages, items[16]; /* by kind */
    struct mr_dict_item last[16];
    uint64_t module_epochs, streams, losses; /* sums */
};

static struct rig *rig_new(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_non_null(rig);
    rig->probe = calloc(1, sizeof(*rig->probe));
    rig->writer = calloc(1, sizeof(*rig->writer));
    rig->rings = calloc(RINGS, sizeof(*rig->rings));
    assert_non_null(rig->probe);
    assert_non_null(rig->writer);
    assert_non_null(rig->rings);
    assert_int_equal(mr_named_init(&rig->probe->named), MR_OK);
    rig->probe->writer = rig->writer;
    rig->writer->probe = rig->probe;
    rig->writer->has_sender = true;
    rig->writer->sender.oldest_sequence = 100;
    rig->writer->sender.next_sequence = 120;
    return rig;
}

static void rig_free(struct rig *rig)
{
    mr_named_fini(&rig->probe->named);
    free(rig->rings);
    free(rig->writer);
    free(rig->probe);
    free(rig);
}

static void add_ring(struct rig *rig, uint32_t index, enum mr_ring_state state,
                     bool is_announced)
{
    struct mr_ring *ring = &rig->rings[index];

    ring->stream = 10 + index;
    ring->tid = 1;
    ring->is_announced = is_announced;
    mr_store_relaxed(&ring->state, state);
    ring->next = mr_load_relaxed(&rig->probe->pool.rings);
    mr_store_relaxed(&rig->probe->pool.rings, ring);
}

static void set_modules(struct rig *rig, uint32_t count)
{
    struct mr_module_table *table = &rig->writer->modules;

    table->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct mr_module *module = &table->items[i];

        module->number = i;
        module->epoch = 1 + i;
        module->site_base = MR_SITE_FIRST_MODULE + 16 * i;
        module->sites = 16;
        memset(module->path, 'a', sizeof(module->path) - 1);
    }
}

static void take(struct rig *rig, const uint8_t *payload, size_t size)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;
    struct mr_error error = MR_ERROR_NONE;
    enum mr_status status;

    assert_int_equal(mr_dict_open(&reader, mr_span_of(payload, size), NULL), MR_OK);
    while ((status = mr_dict_next(&reader, &item, &error)) == MR_OK) {
        assert_true(item.kind < 16);
        rig->items[item.kind]++;
        rig->last[item.kind] = item;
        rig->module_epochs += item.kind == MR_DICT_MODULE ? item.module.epoch : 0;
        rig->streams += item.kind == MR_DICT_STREAM ? item.stream.stream : 0;
        rig->losses += item.kind == MR_DICT_SOURCE_LOSS ? item.source_loss.events : 0;
    }
    assert_string_equal(error.text, "");
    assert_int_equal(status, MR_END);
    mr_dict_close(&reader);
}

static void repeat(struct rig *rig, size_t capacity)
{
    static uint8_t payload[MR_SENDER_ANNOUNCE_SIZE];
    uint64_t cursor = 0;
    size_t size;

    while ((size = mr_repeat(rig->writer, &cursor, payload, capacity)) > 0) {
        assert_true(size <= capacity);
        assert_true(rig->pages++ < PAGES_MAX);
        take(rig, payload, size);
    }
    assert_int_equal(mr_repeat(rig->writer, &cursor, payload, capacity), 0);
}

static void all_is_told_in_one_page_or_in_many(void **state)
{
    static const size_t capacities[] = {MR_SENDER_ANNOUNCE_SIZE, 4000, 1300};

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(capacities); i++) {
        struct rig *rig = rig_new();

        set_modules(rig, 30);
        for (uint32_t name = 0; name < 50; name++) {
            (void)mr_named_add(&rig->probe->named, "name", "file", name, 0);
            rig->probe->named.entries[name].is_announced = name != 7;
        }
        add_ring(rig, 0, MR_RING_OWNED, true);
        add_ring(rig, 1, MR_RING_FREE, true);
        add_ring(rig, 2, MR_RING_CLOSED, true);
        add_ring(rig, 3, MR_RING_OWNED, false); /* will be told by a numbered frame */
        repeat(rig, capacities[i]);
        assert_int_equal(rig->items[MR_DICT_MODULE], 30);
        assert_int_equal(rig->module_epochs, 30 * 31 / 2);
        assert_int_equal(rig->items[MR_DICT_NAMED_SITE], 49);
        assert_int_equal(rig->items[MR_DICT_STREAM], 2);
        assert_int_equal(rig->streams, 10 + 12);
        assert_int_equal(rig->items[MR_DICT_SOURCE_LOSS], 0);
        assert_int_equal(rig->items[MR_DICT_SYNC], 1);
        assert_true(i == 0 ? rig->pages == 1 : rig->pages >= 10);
        rig_free(rig);
    }
}

static void what_is_gone_is_told_while_a_held_frame_may_need_it(void **state)
{
    struct rig *rig = rig_new();
    struct mr_module module = {
        .number = 3, .epoch = 7, .site_base = MR_SITE_FIRST_MODULE, .sites = 1};

    (void)state;
    rig->writer->sender.next_sequence = 100;
    mr_repeat_note_gone(rig->writer, &module, 9);
    mr_repeat_note_epoch(rig->writer, 9); /* all frames before are acknowledged */
    module.epoch = 8;
    rig->writer->sender.next_sequence = 101;
    mr_repeat_note_gone(rig->writer, &module, 9);
    mr_repeat_note_epoch(rig->writer, 9); /* frame 100 is not */
    repeat(rig, MR_SENDER_ANNOUNCE_SIZE);
    assert_int_equal(rig->items[MR_DICT_MODULE], 1);
    assert_int_equal(rig->module_epochs, 8);
    rig_free(rig);
}

static void ended_streams_are_told_while_their_last_frame_is_held(void **state)
{
    struct rig *rig = rig_new();

    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        add_ring(rig, i, MR_RING_FREE, false);
    rig->rings[0].staged.is_last = true;
    rig->rings[1].staged_next = &rig->rings[2]; /* 1 has not ended */
    rig->rings[2].staged.is_last = true;
    rig->writer->frame.staged = &rig->rings[0];
    rig->writer->sender.next_sequence = 100;
    mr_repeat_note_ended(rig->writer); /* in frame 99, acknowledged */
    rig->writer->frame.staged = &rig->rings[1];
    rig->writer->sender.next_sequence = 101;
    mr_repeat_note_ended(rig->writer); /* in frame 100 */
    repeat(rig, MR_SENDER_ANNOUNCE_SIZE);
    assert_int_equal(rig->items[MR_DICT_STREAM], 1);
    assert_int_equal(rig->streams, 12);
    rig_free(rig);
}

static void losses_are_told_as_far_as_they_were_acknowledged(void **state)
{
    struct rig *rig = rig_new();

    (void)state;
    rig->writer->source_lost_acked[MR_LOSS_NESTED] = 5;
    rig->writer->source_lost[MR_LOSS_NESTED] = 9;
    rig->writer->source_lost_sequence = 100; /* not acknowledged yet */
    repeat(rig, MR_SENDER_ANNOUNCE_SIZE);
    assert_int_equal(rig->items[MR_DICT_SOURCE_LOSS], 1);
    assert_int_equal(rig->losses, 5);
    assert_int_equal(rig->last[MR_DICT_SOURCE_LOSS].source_loss.reason, MR_LOSS_NESTED);
    rig->writer->sender.oldest_sequence = 101;
    repeat(rig, MR_SENDER_ANNOUNCE_SIZE);
    assert_int_equal(rig->losses, 5 + 9);
    rig_free(rig);
}

static void counters_come_with_why_they_are_absent(void **state)
{
    struct rig *rig = rig_new();
    struct mr_counters *counters = &rig->probe->counters;

    (void)state;
    counters->count = 2;
    counters->present = 1;
    (void)strcpy(counters->items[0].event.name, "a");
    (void)strcpy(counters->items[1].event.name, "b");
    (void)strcpy(counters->items[1].absent, "no");
    counters->items[0].event.unit = counters->items[1].event.unit = "1";
    repeat(rig, MR_SENDER_ANNOUNCE_SIZE);
    assert_int_equal(rig->items[MR_DICT_COUNTER], 2);
    rig->items[MR_DICT_COUNTER] = 0;
    mr_store_relaxed(&counters->refused[0], 24); /* EMFILE, on some thread */
    repeat(rig, MR_SENDER_ANNOUNCE_SIZE);
    assert_int_equal(rig->items[MR_DICT_COUNTER], 3);
    rig_free(rig);
}

static void what_is_gone_is_told_while_a_ring_may_need_it(void **state)
{
    struct rig *rig = rig_new();
    struct mr_module module = {
        .number = 3, .epoch = 7, .site_base = MR_SITE_FIRST_MODULE, .sites = 1};

    (void)state;
    rig->writer->sender.oldest_sequence = rig->writer->sender.next_sequence;
    mr_repeat_note_gone(rig->writer, &module, 9);
    mr_repeat_note_epoch(rig->writer, 8); /* some ring has words of epoch 8 */
    assert_int_equal(rig->writer->gone_open, 1);
    repeat(rig, 4096);
    assert_int_equal(rig->module_epochs, 7);
    rig->module_epochs = 0;
    mr_repeat_note_epoch(rig->writer, 9);
    assert_int_equal(rig->writer->gone_open, 0);
    repeat(rig, 4096);
    assert_int_equal(rig->module_epochs, 0);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_told_in_one_page_or_in_many),
        cmocka_unit_test(what_is_gone_is_told_while_a_held_frame_may_need_it),
        cmocka_unit_test(what_is_gone_is_told_while_a_ring_may_need_it),
        cmocka_unit_test(ended_streams_are_told_while_their_last_frame_is_held),
        cmocka_unit_test(losses_are_told_as_far_as_they_were_acknowledged),
        cmocka_unit_test(counters_come_with_why_they_are_absent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
