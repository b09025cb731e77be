/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "net/delta.h"
#include "pipeline/counters.h"
#include "pipeline/filters/account.h"
#include "pipeline/graph.h"

#include <string.h>

struct seen {
    uint64_t frames, duplicates, level;
    uint32_t deltas, dicts;
};

static enum mr_status sink_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    (void)error;
    *(struct seen **)mr_filter_state(filter) = *(struct seen *const *)config;
    return MR_OK;
}

static enum mr_status sink_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct seen *seen = *(struct seen **)mr_filter_state(filter);
    struct mr_delta_reader reader;
    struct mr_delta_item item;

    seen->dicts += batch->kind == MR_BATCH_DICT;
    seen->deltas += batch->kind == MR_BATCH_DELTA;
    mr_delta_reader_init(&reader, mr_buffer_span(&batch->bytes));
    while (batch->kind == MR_BATCH_DELTA && mr_delta_next(&reader, &item) == MR_OK) {
        if (item.tag == MR_DELTA_HEAD)
            seen->level = item.level;
        if (item.tag == MR_DELTA_COUNTER)
            *(strcmp(item.name, "level2_frames") == 0 ? &seen->frames
                                                      : &seen->duplicates) += item.value;
    }
    mr_delta_reader_fini(&reader);
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind sink_kind = {.name = "sink",
                                                .state_size = sizeof(struct seen *),
                                                .open = sink_open,
                                                .process = sink_process};

static void what_was_gained_is_told_once(void **state)
{
    static const char *const names[] = {"level2_frames", "level2_duplicates"};
    _Atomic uint64_t frames = 5, duplicates = 0;
    const _Atomic uint64_t *const values[] = {&frames, &duplicates};
    const struct mr_account_config config = {names, values, 2, 2};
    struct seen seen = {0}, *pointer = &seen;
    const struct mr_graph_node nodes[] = {
        {&mr_account_filter, &config, MR_PLACE_FUSED},
        {&sink_kind, &pointer, MR_PLACE_FUSED},
    };
    struct mr_error error = MR_ERROR_NONE;
    struct mr_graph *graph;
    uint64_t now_ns = 10 * MR_SECOND_NS;

    (void)state;
    assert_int_equal(mr_graph_new(nodes, 2, "test", &graph, &error), MR_OK);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    assert_int_equal(mr_graph_push(graph, mr_batch_new(MR_BATCH_DICT)), MR_OK);
    assert_int_equal(seen.dicts, 1);
    assert_int_equal(mr_graph_tick(graph, now_ns), MR_OK);
    assert_int_equal(seen.frames, 5);
    assert_int_equal(seen.level, 2);
    mr_add_relaxed(&frames, 2);
    assert_int_equal(mr_graph_tick(graph, now_ns + MR_MILLISECOND_NS), MR_OK);
    assert_int_equal(seen.frames, 5); /* not before its time */
    now_ns += MR_COUNTERS_PERIOD_NS;
    assert_int_equal(mr_graph_tick(graph, now_ns), MR_OK);
    assert_int_equal(seen.frames, 7);
    assert_int_equal(mr_graph_tick(graph, now_ns + MR_COUNTERS_PERIOD_NS), MR_OK);
    assert_int_equal(seen.deltas, 2); /* nothing was gained: nothing is told */
    mr_add_relaxed(&duplicates, 3);
    assert_int_equal(mr_graph_drain(graph), MR_OK);
    assert_int_equal(seen.frames, 7);
    assert_int_equal(seen.duplicates, 3);
    mr_graph_free(graph);
}

static void more_than_a_filter_can_have_is_refused(void **state)
{
    const struct mr_account_config config = {NULL, NULL, MR_FILTER_COUNTERS + 1, 1};
    const struct mr_graph_node node = {&mr_account_filter, &config, MR_PLACE_FUSED};
    struct mr_error error = MR_ERROR_NONE;
    struct mr_graph *graph = NULL;

    (void)state;
    assert_int_equal(mr_graph_new(&node, 1, "test", &graph, &error), MR_EUSAGE);
    assert_non_null(strstr(error.text, "account"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_gained_is_told_once),
        cmocka_unit_test(more_than_a_filter_can_have_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
