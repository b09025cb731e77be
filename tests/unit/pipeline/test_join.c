/* SPDX-License-Identifier: Apache-2.0 */
/* The filter: parts in deltas are taken out, joined, or passed on after a period; all else goes through. */
#include "../unit_test.h"

#include <string.h>

#include "base/clock.h"
#include "net/delta.h"
#include "net/ids.h"
#include "pipeline/filters/join.h"
#include "pipeline/graph.h"

#define PERIOD_NS (100 * MR_MILLISECOND_NS)

struct seen {
    uint32_t payloads, parts, shapes, counters, others;
    uint64_t ok, failed, incomplete, edges, edge_ns, window;
    struct mr_id last_part;
};

static enum mr_status sink_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    (void)error;
    *(struct seen **)mr_filter_state(filter) = *(struct seen *const *)config;
    return MR_OK;
}

static void see_item(struct seen *seen, const struct mr_delta_item *item)
{
    switch (item->tag) {
    case MR_DELTA_PART:
        seen->parts++;
        seen->last_part = item->part->id;
        break;
    case MR_DELTA_JOINED:
        seen->shapes++;
        break;
    case MR_DELTA_JOINED_STAT:
        seen->ok += item->joined_stats->ok;
        seen->failed += item->joined_stats->failed;
        seen->incomplete += item->joined_stats->incomplete;
        seen->window = item->window;
        break;
    case MR_DELTA_JOINED_EDGE:
        seen->edges += item->edge_stats->count;
        seen->edge_ns += item->edge_stats->time.sum;
        break;
    case MR_DELTA_COUNTER:
        seen->counters += strncmp(item->name, "mine", 4) == 0;
        break;
    default:
        break;
    }
}

static enum mr_status sink_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct seen *seen = *(struct seen **)mr_filter_state(filter);
    struct mr_delta_reader reader;
    struct mr_delta_item item;
    enum mr_status status;

    if (batch->kind != MR_BATCH_DELTA) {
        seen->others++;
        mr_batch_free(batch);
        return MR_OK;
    }
    seen->payloads++;
    mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
    while ((status = mr_delta_next(&reader, &item)) == MR_OK)
        see_item(seen, &item);
    assert_int_equal(status, MR_END);
    mr_delta_reader_fini(&reader);
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind sink_kind = {.name = "sink",
                                                .state_size = sizeof(struct seen *),
                                                .open = sink_open,
                                                .process = sink_process};

struct rig {
    struct mr_join_config config;
    struct seen seen, *seen_pointer;
    struct mr_graph *graph;
    uint64_t now_ns;
};

static void start(struct rig *rig, uint32_t parts_max)
{
    struct mr_error error = MR_ERROR_NONE;

    memset(rig, 0, sizeof(*rig));
    rig->seen_pointer = &rig->seen;
    rig->now_ns = MR_HOUR_NS;
    rig->config = (struct mr_join_config){.level = 1,
                                          .period_ns = PERIOD_NS,
                                          .parts_max = parts_max,
                                          .delta_bytes_max = 4096,
                                          .window_s = 1};
    {
        const struct mr_graph_node nodes[] = {
            {&mr_join_filter, &rig->config, MR_PLACE_FUSED},
            {&sink_kind, &rig->seen_pointer, MR_PLACE_FUSED}};

        assert_int_equal(mr_graph_new(nodes, 2, "join", &rig->graph, &error), MR_OK);
    }
    assert_int_equal(mr_graph_start(rig->graph), MR_OK);
    assert_int_equal(mr_graph_tick(rig->graph, rig->now_ns), MR_OK);
}

static void pass(struct rig *rig, uint64_t ns)
{
    rig->now_ns += ns;
    assert_int_equal(mr_graph_tick(rig->graph, rig->now_ns), MR_OK);
}

static struct mr_id number_id(uint64_t number)
{
    return (struct mr_id){number, number + 1};
}

/* A root that sends message `number`, or who receives it 500 ns later. */
static void put_part(struct mr_delta_writer *w, uint64_t number, bool is_root)
{
    struct mr_part_edge edge = {number_id(number), 7 * MR_SECOND_NS, MR_EDGE_MESSAGE};
    struct mr_part part = {.id = number_id(2 * number + is_root),
                           .path = number_id(is_root),
                           .source = number_id(9),
                           .start_ns = 7 * MR_SECOND_NS,
                           .end_ns = 7 * MR_SECOND_NS + 900};

    if (is_root) {
        part.out = &edge;
        part.out_count = 1;
    } else {
        edge.ns += 500;
        part.in = edge;
    }
    mr_delta_part(w, &part);
}

/* A payload with counters around its parts: roots first .. first + roots - 1, then so many receivers. */
static void push(struct rig *rig, uint64_t first, uint64_t roots, uint64_t receivers)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);
    struct mr_delta_writer w;

    mr_delta_begin(&w, &batch->bytes);
    mr_delta_head(&w, 1, 1);
    mr_delta_counter(&w, "mine1", 1);
    for (uint64_t i = 0; i < roots; i++)
        put_part(&w, first + i, true);
    mr_delta_counter(&w, "mine2", 1);
    for (uint64_t i = 0; i < receivers; i++)
        put_part(&w, first + i, false);
    mr_delta_counter(&w, "mine3", 1);
    assert_int_equal(mr_delta_status(&w), MR_OK);
    assert_int_equal(mr_graph_push(rig->graph, batch), MR_OK);
}

static void end(struct rig *rig)
{
    assert_int_equal(mr_graph_drain(rig->graph), MR_OK);
    mr_graph_free(rig->graph);
}

static void whole_traces_become_rows_and_the_rest_of_a_payload_goes_through(void **state)
{
    struct rig rig;

    (void)state;
    start(&rig, 100);
    push(&rig, 1, 3, 3);
    assert_int_equal(rig.seen.counters, 3);
    assert_int_equal(rig.seen.parts, 0);
    pass(&rig, PERIOD_NS);
    assert_int_equal(rig.seen.ok, 3);
    assert_int_equal(rig.seen.shapes, 1); /* told once in a payload */
    assert_int_equal(rig.seen.edges, 3);
    assert_int_equal(rig.seen.edge_ns, 1500);
    assert_int_equal(rig.seen.window, 7);
    end(&rig);
    assert_int_equal(rig.seen.parts, 0);
    assert_int_equal(rig.seen.incomplete, 0);
}

static void what_waits_travels_on_after_a_period_as_it_came(void **state)
{
    struct rig rig;

    (void)state;
    start(&rig, 100);
    push(&rig, 1, 2, 1);
    pass(&rig, PERIOD_NS / 2);
    assert_int_equal(rig.seen.parts, 0);
    pass(&rig, PERIOD_NS);
    assert_int_equal(rig.seen.ok, 1);
    assert_int_equal(rig.seen.parts, 1);
    assert_true(mr_id_equal(rig.seen.last_part, number_id(5)));
    push(&rig, 2, 0, 1); /* too late here: above they meet */
    end(&rig);
    assert_int_equal(rig.seen.parts, 2);
    assert_int_equal(rig.seen.ok, 1);
    assert_int_equal(rig.seen.incomplete, 0);
}

static void past_the_limit_parts_travel_on_early_and_none_is_lost(void **state)
{
    struct rig rig;

    (void)state;
    start(&rig, 16);
    for (uint64_t i = 0; i < 10; i++)
        push(&rig, 1 + 100 * i, 20, 0);
    end(&rig);
    assert_int_equal(rig.seen.parts, 200);
    assert_int_equal(rig.seen.counters, 30);
}

static void other_batches_and_bytes_that_are_no_items_go_through(void **state)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DICT);
    struct rig rig;

    (void)state;
    start(&rig, 16);
    assert_int_equal(mr_graph_push(rig.graph, batch), MR_OK);
    assert_int_equal(rig.seen.others, 1);
    end(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_traces_become_rows_and_the_rest_of_a_payload_goes_through),
        cmocka_unit_test(what_waits_travels_on_after_a_period_as_it_came),
        cmocka_unit_test(past_the_limit_parts_travel_on_early_and_none_is_lost),
        cmocka_unit_test(other_batches_and_bytes_that_are_no_items_go_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
