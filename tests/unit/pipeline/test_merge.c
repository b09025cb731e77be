/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "net/delta.h"
#include "pipeline/filters/merge.h"
#include "pipeline/graph.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What came out of merge. */
struct seen {
    uint32_t dicts, deltas, others, items, opens;
    uint64_t calls, level, open_count, created_ns;
    bool has_other_time; /* heads of one period differ */
    bool dict_after_delta;
    uint64_t too_large;
    size_t largest; /* payload of a delta */
    _Atomic bool has_room;
    char names[256];
};

static enum mr_status sink_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    (void)error;
    *(struct seen **)mr_filter_state(filter) = *(struct seen *const *)config;
    return MR_OK;
}

static void see_delta(struct seen *seen, struct mr_span payload)
{
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    if (payload.size > seen->largest)
        seen->largest = payload.size;
    mr_delta_reader_init(&reader, payload);
    while (mr_delta_next(&reader, &item) == MR_OK) {
        if (item.tag == MR_DELTA_HEAD) {
            seen->level = item.level;
            seen->has_other_time |=
                seen->created_ns && seen->created_ns != item.created_ns;
            seen->created_ns = item.created_ns;
        }
        if (item.tag == MR_DELTA_ENTRY_STAT)
            seen->calls += item.entry_stats->calls[0];
        if (item.tag == MR_DELTA_COUNTER &&
            strcmp(item.name, "level4_rows_too_large") == 0)
            seen->too_large += item.value;
        if (item.tag == MR_DELTA_OPEN) {
            seen->opens++;
            seen->open_count = item.open->count;
        }
    }
    mr_delta_reader_fini(&reader);
}

static void see_dict(struct seen *seen, struct mr_span payload)
{
    struct mr_dict_reader reader;
    struct mr_dict_item item;

    assert_int_equal(mr_dict_open(&reader, payload, NULL), MR_OK);
    while (mr_dict_next(&reader, &item, NULL) == MR_OK) {
        assert_int_equal(item.kind, MR_DICT_SITE);
        (void)snprintf(seen->names + strlen(seen->names),
                       sizeof(seen->names) - strlen(seen->names), "%s ", item.site.name);
        seen->items++;
    }
    mr_dict_close(&reader);
}

static enum mr_status sink_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct seen *seen = *(struct seen **)mr_filter_state(filter);

    if (batch->kind == MR_BATCH_DELTA) {
        seen->deltas++;
        see_delta(seen, mr_buffer_span(&batch->bytes));
    } else if (batch->kind == MR_BATCH_DICT) {
        seen->dicts++;
        seen->dict_after_delta |= seen->deltas > 0;
        see_dict(seen, mr_buffer_span(&batch->bytes));
    } else {
        seen->others++;
    }
    mr_batch_free(batch);
    return MR_OK;
}

static bool sink_can_take(const struct mr_filter *filter)
{
    return mr_load_acquire(
        &(*(struct seen *const *)mr_filter_state_const(filter))->has_room);
}

static const struct mr_filter_kind sink_kind = {.name = "sink",
                                                .state_size = sizeof(struct seen *),
                                                .open = sink_open,
                                                .process = sink_process,
                                                .can_take = sink_can_take};

struct rig {
    struct seen seen;
    struct seen *seen_pointer;
    struct mr_graph *graph;
    uint64_t now_ns;
    uint64_t tellings;
};

static void start(struct rig *rig, const struct mr_merge_config *config)
{
    struct mr_error error = MR_ERROR_NONE;

    memset(rig, 0, sizeof(*rig));
    atomic_init(&rig->seen.has_room, true);
    rig->seen_pointer = &rig->seen;
    rig->now_ns = MR_HOUR_NS;
    {
        const struct mr_graph_node nodes[] = {
            {&mr_merge_filter, config, MR_PLACE_FUSED},
            {&sink_kind, &rig->seen_pointer, MR_PLACE_FUSED}};

        assert_int_equal(mr_graph_new(nodes, 2, "merge", &rig->graph, &error), MR_OK);
    }
    assert_int_equal(mr_graph_start(rig->graph), MR_OK);
    assert_int_equal(mr_graph_tick(rig->graph, rig->now_ns), MR_OK);
}

static void pass(struct rig *rig, uint64_t ns)
{
    rig->now_ns += ns;
    assert_int_equal(mr_graph_tick(rig->graph, rig->now_ns), MR_OK);
}

static uint64_t counter(const struct rig *rig, enum mr_merge_counter which)
{
    struct mr_filter_stats stats[2];

    assert_int_equal(mr_graph_stats(rig->graph, stats, 2), 2);
    assert_non_null(stats[0].counter_names[which]);
    return stats[0].counters[which];
}

#define CREATED_NS UINT64_C(1700000000000000000)

/* Payload of a lane's group, or (0) of a worker below. `open` traces are open on its path. */
struct told {
    uint64_t teller, group, telling;
    uint64_t site, window, calls, open;
};

static void push_told(struct rig *rig, const struct told *told)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    const struct mr_entry_stats stats = {{1}, {told->calls}, {10}};
    const struct mr_open_stats open = {
        .count = told->open, .ages = {told->open}, .oldest_ns = 5};
    struct mr_delta_writer w;
    uint32_t path;

    assert_non_null(batch);
    batch->group = told->group;
    batch->teller = (struct mr_id){3, told->teller};
    batch->telling = told->telling;
    batch->has_open = told->open > 0;
    mr_delta_begin(&w, &batch->bytes);
    mr_delta_head(&w, 9, CREATED_NS);
    path = mr_delta_path(&w, MR_DELTA_NONE, mr_delta_scope(&w, (struct mr_id){1, 1}),
                         mr_delta_site(&w, (struct mr_id){2, told->site}), 0);
    if (told->open)
        mr_delta_open(&w, path, path, &open);
    if (told->calls)
        mr_delta_entry_stat(&w, path, told->window, &stats);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    assert_int_equal(mr_graph_push(rig->graph, batch), MR_OK);
}

static void push_group(struct rig *rig, uint64_t lane, uint64_t group, uint64_t site,
                       uint64_t calls)
{
    push_told(rig, &(struct told){lane, group, group, site, 100, calls, 0});
}

static void push_delta(struct rig *rig, uint64_t site, uint64_t window, uint64_t calls)
{
    push_told(rig, &(struct told){9, 0, ++rig->tellings, site, window, calls, 0});
}

/* Lane or worker `teller` tells that so many traces are open, and counts a call. */
static void push_open(struct rig *rig, uint64_t teller, bool is_lane, uint64_t open)
{
    uint64_t telling = ++rig->tellings;

    push_told(rig,
              &(struct told){teller, is_lane ? telling : 0, telling, 1, 100, 1, open});
}

static void push_counter(struct rig *rig)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    struct mr_delta_writer w;

    assert_non_null(batch);
    mr_delta_begin(&w, &batch->bytes);
    mr_delta_head(&w, 9, CREATED_NS);
    mr_delta_counter(&w, "some", 1);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    assert_int_equal(mr_graph_push(rig->graph, batch), MR_OK);
}

static void push_site(struct rig *rig, uint64_t number, enum mr_site_quality quality,
                      const char *name)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DICT);
    const struct mr_dict_item item = {.kind = MR_DICT_SITE,
                                      .site = {.id = {2, number},
                                               .module = "/m",
                                               .name = name,
                                               .file = "",
                                               .quality = quality}};
    struct mr_dict_writer writer;
    uint8_t *at;

    assert_int_equal(mr_buffer_reserve(&batch->bytes, 1000, &at), MR_OK);
    mr_dict_writer_init(&writer, at, 1000);
    assert_int_equal(mr_dict_put(&writer, &item), MR_OK);
    mr_buffer_commit(&batch->bytes, mr_dict_writer_finish(&writer));
    assert_int_equal(mr_graph_push(rig->graph, batch), MR_OK);
}

static void push_bytes(struct rig *rig, enum mr_batch_kind kind, const char *text)
{
    struct mr_batch *batch = mr_batch_new(kind);

    assert_int_equal(mr_buffer_append_text(&batch->bytes, text), MR_OK);
    assert_int_equal(mr_graph_push(rig->graph, batch), MR_OK);
}

static void one_delta_leaves_per_period(void **state)
{
    const struct mr_merge_config config = {.level = 3};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    for (uint64_t i = 0; i < 50; i++)
        push_delta(&rig, i % 5, 100 + i % 2, 2);
    pass(&rig, MR_MERGE_PERIOD_NS - 1);
    assert_int_equal(rig.seen.deltas, 0);
    pass(&rig, 1);
    assert_int_equal(rig.seen.deltas, 1);
    assert_int_equal(rig.seen.calls, 100);
    assert_int_equal(rig.seen.level, 3);
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_int_equal(rig.seen.deltas, 1); /* nothing new, nothing sent */
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    mr_graph_free(rig.graph);
}

/* Many rows, and a mark: nothing is left of them when the next tick comes. */
static void push_burst(struct rig *rig)
{
    struct mr_batch *mark = mr_batch_new(MR_BATCH_MARK);

    assert_non_null(mark);
    for (uint64_t i = 0; i < 5000; i++)
        push_delta(rig, i, 100, 1);
    assert_int_equal(mr_graph_push(rig->graph, mark), MR_OK);
}

static void each_burst_gives_its_memory_back(void **state)
{
    const struct mr_merge_config config = {.level = 3, .by_marks = true};
    struct rig rig;
    size_t full, quiet, before;

    (void)state;
    if (mallinfo2().uordblks == 0) /* a sanitizer's allocator, which does not tell */
        skip();
    start(&rig, &config);
    before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < 3; i++) {
        push_burst(&rig);
        full = mallinfo2().uordblks + mallinfo2().hblkhd;
        pass(&rig, MR_MERGE_PERIOD_NS);
        pass(&rig, MR_FILTER_QUIET_NS);
        quiet = mallinfo2().uordblks + mallinfo2().hblkhd;
        assert_true(full - quiet > (full - before) / 2);
    }
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    mr_graph_free(rig.graph);
}

static void without_room_it_merges_longer(void **state)
{
    const struct mr_merge_config config = {.level = 1, .period_ns = 10};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    mr_store_release(&rig.seen.has_room, false);
    for (int i = 0; i < 20; i++) {
        push_open(&rig, 1, false, 1);
        push_site(&rig, 1, MR_QUALITY_OFFSET, "one");
        pass(&rig, 10);
    }
    assert_int_equal(rig.seen.deltas + rig.seen.dicts, 0);
    mr_store_release(&rig.seen.has_room, true);
    push_open(&rig, 1, false, 1);
    pass(&rig, 10);
    assert_int_equal(rig.seen.deltas, 2);
    assert_int_equal(rig.seen.calls, 21);
    assert_int_equal(rig.seen.open_count, 1); /* not 21 times the same one */
    assert_int_equal(rig.seen.items, 1);
    assert_false(rig.seen.dict_after_delta);
    mr_graph_free(rig.graph);
}

static void who_ends_knows_of_no_open_trace(void **state)
{
    const struct mr_merge_config config = {.level = 1};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    push_open(&rig, 1, false, 1);
    push_open(&rig, 2, true, 1);
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_int_equal(rig.seen.calls, 2);
    assert_int_equal(rig.seen.opens, 0);
    mr_graph_free(rig.graph);
}

static void too_many_windows_or_rows_leave_early(void **state)
{
    const struct mr_merge_config configs[] = {
        {.level = 1, .accumulator = {.rows_max = 10}}, {.level = 1}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig rig;

        start(&rig, &configs[i]);
        for (uint64_t n = 0; n < MR_ACCUMULATOR_WINDOWS_MAX + 1; n++)
            push_delta(&rig, n, i ? n : 0, 1);
        assert_true(rig.seen.deltas > 0);
        assert_true(counter(&rig, MR_MERGE_EARLY) > 0);
        assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
        assert_int_equal(rig.seen.calls, MR_ACCUMULATOR_WINDOWS_MAX + 1);
        mr_graph_free(rig.graph);
    }
}

static void dictionary_items_leave_once_before_the_deltas_and_when_better(void **state)
{
    const struct mr_merge_config config = {.level = 1};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    push_delta(&rig, 1, 1, 1);
    for (int i = 0; i < 5; i++) {
        push_site(&rig, 1, MR_QUALITY_OFFSET, "a");
        push_site(&rig, 2, MR_QUALITY_OFFSET, "b");
    }
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_string_equal(rig.seen.names, "a b ");
    assert_int_equal(rig.seen.deltas, 1);
    assert_false(rig.seen.dict_after_delta);
    push_site(&rig, 1, MR_QUALITY_DEBUG, "better");
    push_site(&rig, 2, MR_QUALITY_OFFSET, "b");
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_string_equal(rig.seen.names, "a b better ");
    mr_graph_free(rig.graph);
}

static void a_new_receiver_gets_the_whole_dictionary(void **state)
{
    static _Atomic uint64_t reannounce = 4;
    const struct mr_merge_config config = {.level = 1, .reannounce = &reannounce};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    push_site(&rig, 1, MR_QUALITY_OFFSET, "a");
    push_site(&rig, 2, MR_QUALITY_OFFSET, "b");
    pass(&rig, MR_MERGE_PERIOD_NS);
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_string_equal(rig.seen.names, "a b ");
    (void)mr_add_acq_rel(&reannounce, 1);
    pass(&rig, MR_MERGE_PERIOD_NS);
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_string_equal(rig.seen.names, "a b a b ");
    assert_int_equal(counter(&rig, MR_MERGE_REANNOUNCED), 1);
    mr_graph_free(rig.graph);
}

static void what_the_dictionary_cannot_keep_passes_every_time(void **state)
{
    const struct mr_merge_config config = {.level = 1, .dictionary = {.items_max = 1}};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    for (int i = 0; i < 3; i++) {
        push_site(&rig, 1, MR_QUALITY_OFFSET, "kept");
        push_site(&rig, 2, MR_QUALITY_OFFSET, "beyond");
        pass(&rig, MR_MERGE_PERIOD_NS);
    }
    assert_string_equal(rig.seen.names, "beyond kept beyond beyond ");
    assert_int_equal(counter(&rig, MR_MERGE_DICTIONARY_BEYOND), 3);
    mr_graph_free(rig.graph);
}

static void bad_payloads_are_counted_and_harm_nothing(void **state)
{
    const struct mr_merge_config config = {.level = 1};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    push_bytes(&rig, MR_BATCH_DELTA, "\5\1\177");
    push_bytes(&rig, MR_BATCH_DICT, "not msgpack");
    push_bytes(&rig, MR_BATCH_END, "");
    push_delta(&rig, 1, 1, 1);
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_int_equal(rig.seen.calls, 1);
    assert_int_equal(rig.seen.others, 1); /* of no concern to merge: passed on */
    assert_int_equal(counter(&rig, MR_MERGE_BAD_DELTA), 1);
    assert_int_equal(counter(&rig, MR_MERGE_BAD_DICT), 1);
    mr_graph_free(rig.graph);
}

static void what_one_lane_told_leaves_as_it_came(void **state)
{
    const struct mr_merge_config config = {.level = 3};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    push_told(&rig, &(struct told){1, 7, 7, 1, 100, 2, 4});
    push_group(&rig, 1, 7, 2, 3);
    push_counter(&rig); /* is no reason to merge them */
    push_site(&rig, 1, MR_QUALITY_OFFSET, "a");
    pass(&rig, MR_MERGE_PERIOD_NS - 1);
    assert_int_equal(rig.seen.deltas, 0);
    pass(&rig, 1);
    assert_int_equal(rig.seen.deltas, 3);
    assert_int_equal(rig.seen.calls, 5);
    assert_int_equal(rig.seen.opens, 1);
    assert_int_equal(counter(&rig, MR_MERGE_PASSED), 2);
    assert_false(rig.seen.dict_after_delta);
    assert_false(rig.seen.has_other_time); /* or what is open would be taken for old */
    assert_true(rig.seen.created_ns > CREATED_NS);
    push_group(&rig, 1, 8, 1, 2);
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_int_equal(counter(&rig, MR_MERGE_PASSED), 3);
    assert_int_equal(rig.seen.opens, 1); /* it has none any more */
    assert_int_equal(rig.seen.level, 9);
    mr_graph_free(rig.graph);
}

static void what_two_lanes_told_is_merged(void **state)
{
    const struct mr_merge_config config = {.level = 3};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    for (uint64_t period = 1; period <= 2; period++) {
        push_group(&rig, 1, 2 * period, 1, 2);
        push_group(&rig, 2, 2 * period + 1, 1, 3);
        push_group(&rig, 2, 2 * period + 1, 2, 4);
        pass(&rig, MR_MERGE_PERIOD_NS);
        assert_int_equal(rig.seen.deltas, period);
        assert_int_equal(rig.seen.calls, 9 * period);
        assert_int_equal(rig.seen.level, 3);
    }
    assert_int_equal(counter(&rig, MR_MERGE_PASSED), 0);
    mr_graph_free(rig.graph);
}

/* A worker's own traces, and those of workers below, on one path: a gauge whose last word counts. */
static void open_traces_of_others_add_up(void **state)
{
    const struct mr_merge_config config = {.level = 3};

    (void)state;
    for (int is_last = 0; is_last < 2; is_last++) {
        struct rig rig;

        start(&rig, &config);
        push_open(&rig, 1, !is_last, 2);
        push_open(&rig, 2, is_last, 3);
        pass(&rig, MR_MERGE_PERIOD_NS);
        assert_int_equal(rig.seen.opens, 1);
        assert_int_equal(rig.seen.open_count, 5);
        assert_int_equal(rig.seen.calls, 2);
        assert_int_equal(counter(&rig, MR_MERGE_PASSED), 0);
        mr_graph_free(rig.graph);
    }
}

/* In each delta there is what all have open, whoever tells anything in the period, and however often. */
static void open_traces_hold_until_they_are_told_anew(void **state)
{
    const struct mr_merge_config config = {.level = 3};

    (void)state;
    for (int is_lane = 0; is_lane < 2; is_lane++) {
        struct rig rig;

        start(&rig, &config);
        push_open(&rig, 1, is_lane, 2);
        for (uint32_t period = 1; period <= 3; period++) {
            push_open(&rig, 2, is_lane, 1);
            push_open(&rig, 2, is_lane, 3); /* a table was full */
            pass(&rig, MR_MERGE_PERIOD_NS);
            assert_int_equal(rig.seen.opens, period);
            assert_int_equal(rig.seen.open_count, 5);
        }
        push_open(&rig, 2, is_lane, 0);
        pass(&rig, MR_MERGE_PERIOD_NS);
        assert_int_equal(rig.seen.opens, 4);
        assert_int_equal(rig.seen.open_count, 2);
        push_open(&rig, 1, is_lane, 0);
        pass(&rig, MR_MERGE_PERIOD_NS);
        assert_int_equal(rig.seen.opens, 4);
        assert_int_equal(rig.seen.calls, 9);
        pass(&rig, MR_MERGE_PERIOD_NS);
        assert_int_equal(rig.seen.opens, 4); /* nothing is told, nothing is repeated */
        mr_graph_free(rig.graph);
    }
}

static void who_tells_nothing_for_long_has_no_open_trace(void **state)
{
    const struct mr_merge_config config = {.level = 3};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    push_open(&rig, 1, false, 2);
    pass(&rig, MR_OPEN_TOLD_FOR_NS);
    push_open(&rig, 2, false, 1);
    pass(&rig, MR_MERGE_PERIOD_NS - 1);
    assert_int_equal(rig.seen.open_count, 2);
    pass(&rig, 1);
    assert_int_equal(rig.seen.open_count, 1);
    mr_graph_free(rig.graph);
}

static void without_room_what_is_held_is_merged(void **state)
{
    const struct mr_merge_config config = {.level = 1, .period_ns = 10};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    mr_store_release(&rig.seen.has_room, false);
    for (uint64_t i = 1; i <= 20; i++) {
        push_open(&rig, 1, true, 1);
        pass(&rig, 10);
    }
    assert_int_equal(rig.seen.deltas, 0);
    mr_store_release(&rig.seen.has_room, true);
    push_open(&rig, 1, true, 1);
    pass(&rig, 10);
    assert_int_equal(rig.seen.calls, 21);
    assert_int_equal(rig.seen.opens, 1);
    assert_int_equal(rig.seen.open_count, 1);
    push_open(&rig, 1, true, 1);
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_int_equal(rig.seen.calls, 22);
    assert_int_equal(rig.seen.opens, 1); /* who ends knows of none */
    mr_graph_free(rig.graph);
}

/* One is held, one is being merged, a third begins: nothing of them is lost, or told twice, where the accumulator is full. */
static void many_lanes_leave_early(void **state)
{
    const struct mr_merge_config config = {.level = 1, .accumulator = {.rows_max = 3}};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    for (uint64_t group = 1; group <= 20; group++)
        for (uint64_t site = 0; site < 5; site++)
            push_group(&rig, group, group, site, 1);
    assert_true(counter(&rig, MR_MERGE_EARLY) > 0);
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_int_equal(rig.seen.calls, 100);
    mr_graph_free(rig.graph);
}

#define DEEP 40u

/* A lane told of a path that is DEEP calls deep, once of its entry point and once of the deepest. */
static void push_deep(struct rig *rig)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    const struct mr_entry_stats entry = {{1}, {7}, {10}};
    const struct mr_path_stats stats = {.ok = 1, .histogram = MR_HISTOGRAM_EMPTY};
    uint32_t entry_path, path = MR_DELTA_NONE;
    struct mr_delta_writer w;

    assert_non_null(batch);
    batch->group = 1;
    mr_delta_begin(&w, &batch->bytes);
    mr_delta_head(&w, 9, CREATED_NS);
    uint32_t scope = mr_delta_scope(&w, (struct mr_id){1, 1});
    entry_path = path = mr_delta_path(&w, MR_DELTA_NONE, scope,
                                      mr_delta_site(&w, (struct mr_id){2, 0}), 0);
    for (uint64_t depth = 2; depth <= DEEP; depth++)
        path = mr_delta_path(&w, path, 0, mr_delta_site(&w, (struct mr_id){2, depth}), 0);
    mr_delta_path_stat(&w, path, 100, &stats);
    mr_delta_entry_stat(&w, entry_path, 100, &entry);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    assert_int_equal(mr_graph_push(rig->graph, batch), MR_OK);
}

static void a_row_too_large_for_the_receiver_is_left_out_alone_and_told(void **state)
{
    _Atomic uint32_t max_frame = 0;
    const struct mr_merge_config config = {.level = 4, .max_frame = &max_frame};
    struct rig rig;

    (void)state;
    start(&rig, &config);
    push_deep(&rig); /* whole, as nobody has said what he takes */
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_true(rig.seen.largest > DEEP * 18);
    assert_int_equal(rig.seen.calls, 7);
    rig.seen.largest = 0;
    atomic_store(&max_frame, DEEP * 18);
    push_deep(&rig);
    for (uint64_t site = 100; site < 130; site++)
        push_delta(&rig, site, 100, 1);
    pass(&rig, MR_MERGE_PERIOD_NS);
    assert_int_equal(rig.seen.calls, 7 + 7 + 30);
    assert_true(rig.seen.largest <= DEEP * 18);
    assert_int_equal(rig.seen.too_large, 1);
    assert_int_equal(counter(&rig, MR_MERGE_UNWRITTEN), 1);
    push_deep(&rig); /* alone: it would leave as it came */
    assert_int_equal(mr_graph_drain(rig.graph), MR_OK);
    assert_int_equal(rig.seen.calls, 7 + 7 + 30 + 7);
    assert_int_equal(rig.seen.too_large, 2);
    mr_graph_free(rig.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_delta_leaves_per_period),
        cmocka_unit_test(each_burst_gives_its_memory_back),
        cmocka_unit_test(without_room_it_merges_longer),
        cmocka_unit_test(who_ends_knows_of_no_open_trace),
        cmocka_unit_test(too_many_windows_or_rows_leave_early),
        cmocka_unit_test(dictionary_items_leave_once_before_the_deltas_and_when_better),
        cmocka_unit_test(a_new_receiver_gets_the_whole_dictionary),
        cmocka_unit_test(what_the_dictionary_cannot_keep_passes_every_time),
        cmocka_unit_test(bad_payloads_are_counted_and_harm_nothing),
        cmocka_unit_test(what_one_lane_told_leaves_as_it_came),
        cmocka_unit_test(what_two_lanes_told_is_merged),
        cmocka_unit_test(open_traces_of_others_add_up),
        cmocka_unit_test(open_traces_hold_until_they_are_told_anew),
        cmocka_unit_test(who_tells_nothing_for_long_has_no_open_trace),
        cmocka_unit_test(without_room_what_is_held_is_merged),
        cmocka_unit_test(many_lanes_leave_early),
        cmocka_unit_test(a_row_too_large_for_the_receiver_is_left_out_alone_and_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
