/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of small filters that write down what happens to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pipeline/graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_SIZE 16384

/* What the sink saw and which callbacks ran, in order. Written by one section's thread, read after the drain. */
struct journal {
    char text[TEXT_SIZE];
    size_t size;
};

static void note(struct journal *journal, const char *text, size_t size)
{
    assert_true(journal->size + size + 1 < sizeof(journal->text));
    if (size)
        memcpy(journal->text + journal->size, text, size);
    journal->size += size;
    journal->text[journal->size++] = ' ';
    journal->text[journal->size] = '\0';
}

/* How a worker filter behaves. */
struct work {
    char letter;         /* put behind each payload */
    uint32_t drop_every; /* frees each n-th batch; 0: none */
    uint32_t copy_every; /* emits each n-th batch twice */
    uint32_t fail_at;    /* fails at the n-th batch */
    enum mr_status open_status;
    struct journal *journal;
    atomic_uint *ticks;
};

struct work_state {
    struct work work;
    uint32_t seen;
};

static struct mr_batch *text_batch(const char *text)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_DELTA);

    assert_non_null(batch);
    assert_int_equal(mr_buffer_append_text(&batch->bytes, text), MR_OK);
    return batch;
}

static enum mr_status work_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    struct work_state *state = mr_filter_state(filter);

    state->work = *(const struct work *)config;
    mr_filter_name_counter(filter, 0, "seen");
    if (state->work.open_status != MR_OK)
        return mr_error_set(error, state->work.open_status, "no %c today",
                            state->work.letter);
    return MR_OK;
}

static enum mr_status work_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct work_state *state = mr_filter_state(filter);
    const struct work *work = &state->work;

    state->seen++;
    mr_filter_count(filter, 0, 1);
    if (work->fail_at && state->seen == work->fail_at) {
        mr_batch_free(batch);
        return MR_EFORMAT;
    }
    if (work->drop_every && state->seen % work->drop_every == 0) {
        mr_batch_free(batch);
        return MR_OK;
    }
    assert_int_equal(mr_buffer_append_byte(&batch->bytes, (uint8_t)work->letter), MR_OK);
    if (work->copy_every && state->seen % work->copy_every == 0) {
        struct mr_batch *copy = text_batch("");

        assert_int_equal(
            mr_buffer_append(&copy->bytes, batch->bytes.data, batch->bytes.size), MR_OK);
        assert_int_equal(mr_filter_emit(filter, copy), MR_OK);
    }
    return mr_filter_emit(filter, batch);
}

static enum mr_status work_tick(struct mr_filter *filter, uint64_t now_ns)
{
    struct work_state *state = mr_filter_state(filter);

    assert_true(now_ns > 0);
    if (state->work.ticks)
        atomic_fetch_add(state->work.ticks, 1);
    return MR_OK;
}

static enum mr_status work_drain(struct mr_filter *filter)
{
    struct work_state *state = mr_filter_state(filter);
    char text[] = "drain-?";

    text[6] = state->work.letter;
    return mr_filter_emit(filter, text_batch(text));
}

static void work_close(struct mr_filter *filter)
{
    struct work_state *state = mr_filter_state(filter);
    char text[] = "close-?";

    text[6] = state->work.letter;
    if (state->work.journal)
        note(state->work.journal, text, 7);
}

static const struct mr_filter_kind work_kind = {"work",     sizeof(struct work_state),
                                                work_open,  work_process,
                                                work_tick,  work_drain,
                                                work_close, NULL};

struct sink_config {
    struct journal *journal;
    atomic_bool *has_room; /* NULL: always */
};

static enum mr_status sink_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    (void)error;
    *(struct sink_config *)mr_filter_state(filter) = *(const struct sink_config *)config;
    return MR_OK;
}

static enum mr_status sink_process(struct mr_filter *filter, struct mr_batch *batch)
{
    struct sink_config *state = mr_filter_state(filter);
    struct mr_span bytes = batch->kind == MR_BATCH_FRAME ? batch->frame.payload
                                                         : mr_buffer_span(&batch->bytes);

    note(state->journal, (const char *)bytes.data, bytes.size);
    return mr_filter_emit(filter, batch);
}

static bool sink_can_take(const struct mr_filter *filter)
{
    const struct sink_config *state = mr_filter_state_const(filter);

    return !state->has_room || atomic_load(state->has_room);
}

static const struct mr_filter_kind sink_kind = {
    "sink",       sizeof(struct sink_config), sink_open, sink_process, NULL, NULL, NULL,
    sink_can_take};

static struct mr_graph *make(const struct mr_graph_node *nodes, uint32_t count,
                             const char *name)
{
    struct mr_graph *graph = NULL;
    struct mr_error error = MR_ERROR_NONE;

    assert_int_equal(mr_graph_new(nodes, count, name, &graph, &error), MR_OK);
    assert_non_null(graph);
    return graph;
}

/* a -> b -> c -> sink over 500 batches; bit i of `places` puts filter i on a thread of its own. */
static void run_chain(unsigned places, struct journal *journal)
{
    const struct work a = {.letter = 'a', .copy_every = 7},
                      b = {.letter = 'b', .drop_every = 5},
                      c = {.letter = 'c', .copy_every = 3};
    const struct sink_config sink = {journal, NULL};
    struct mr_graph_node nodes[] = {{&work_kind, &a, MR_PLACE_FUSED},
                                    {&work_kind, &b, MR_PLACE_FUSED},
                                    {&work_kind, &c, MR_PLACE_FUSED},
                                    {&sink_kind, &sink, MR_PLACE_FUSED}};
    struct mr_inlet *inlet = NULL;
    struct mr_graph *graph;

    for (unsigned i = 0; i < 4; i++)
        nodes[i].place = places >> i & 1 ? MR_PLACE_THREAD : MR_PLACE_FUSED;
    graph = make(nodes, 4, "chain");
    if (places & 1)
        assert_int_equal(mr_graph_inlet(graph, &inlet), MR_OK);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    for (int i = 0; i < 500; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "%d", i);
        assert_int_equal(inlet ? mr_inlet_push(inlet, text_batch(text))
                               : mr_graph_push(graph, text_batch(text)),
                         MR_OK);
    }
    if (inlet)
        mr_inlet_close(inlet);
    assert_int_equal(mr_graph_drain(graph), MR_OK);
    mr_graph_free(graph);
}

static void fused_and_threaded_give_identical_output(void **state)
{
    static struct journal fused, threaded;

    (void)state;
    fused.size = 0;
    run_chain(0, &fused);
    assert_non_null(strstr(fused.text, "6abc 6abc "));
    for (unsigned places = 1; places < 16; places++) {
        threaded.size = 0;
        run_chain(places, &threaded);
        assert_string_equal(threaded.text, fused.text);
    }
}

static void drain_runs_in_flow_order_and_what_it_emits_flows_on(void **state)
{
    static struct journal journal;
    const struct work a = {.letter = 'a'}, b = {.letter = 'b'}, c = {.letter = 'c'};
    const struct sink_config sink = {&journal, NULL};
    const struct mr_graph_node nodes[] = {{&work_kind, &a, MR_PLACE_FUSED},
                                          {&work_kind, &b, MR_PLACE_THREAD},
                                          {&work_kind, &c, MR_PLACE_FUSED},
                                          {&sink_kind, &sink, MR_PLACE_THREAD}};
    struct mr_graph *graph = make(nodes, 4, "drained");

    (void)state;
    journal.size = 0;
    assert_int_equal(mr_graph_start(graph), MR_OK);
    assert_int_equal(mr_graph_push(graph, text_batch("last")), MR_OK);
    assert_int_equal(mr_graph_drain(graph), MR_OK);
    mr_graph_free(graph);
    assert_string_equal(journal.text, "lastabc drain-abc drain-bc drain-c ");
}

static void an_empty_graph_end_frees_what_comes(void **state)
{
    const struct work a = {.letter = 'a'};
    const struct mr_graph_node nodes[] = {{&work_kind, &a, MR_PLACE_FUSED}};
    struct mr_graph *graph = make(nodes, 1, "end");
    struct mr_filter_stats stats[2];

    (void)state;
    assert_int_equal(mr_graph_start(graph), MR_OK);
    assert_int_equal(mr_graph_push(graph, text_batch("12345")), MR_OK);
    assert_int_equal(mr_graph_tick(graph, mr_clock_monotonic_ns()), MR_OK);
    assert_int_equal(mr_graph_stats(graph, stats, 2), 1);
    assert_string_equal(stats[0].graph, "end");
    assert_string_equal(stats[0].filter, "work");
    assert_int_equal(stats[0].batches_in, 1);
    assert_int_equal(stats[0].batches_out, 1);
    assert_int_equal(stats[0].bytes_in, 5);
    assert_int_equal(stats[0].discarded, 0);
    assert_int_equal(stats[0].pipe_capacity, 0);
    assert_string_equal(stats[0].counter_names[0], "seen");
    assert_null(stats[0].counter_names[1]);
    assert_int_equal(stats[0].counters[0], 1);
    assert_true(stats[0].progress_ns > 0);
    mr_graph_free(graph);
}

static void events_are_counted_per_filter(void **state)
{
    static struct journal journal;
    const struct sink_config sink = {&journal, NULL};
    const struct mr_graph_node nodes[] = {{&sink_kind, &sink, MR_PLACE_FUSED}};
    struct mr_graph *graph = make(nodes, 1, "events");
    struct mr_batch *batch = mr_batch_new(MR_BATCH_EVENTS);
    struct mr_filter_stats stats;

    (void)state;
    journal.size = 0;
    assert_int_equal(mr_graph_start(graph), MR_OK);
    batch->event_count = 4000;
    assert_int_equal(mr_graph_push(graph, batch), MR_OK);
    assert_int_equal(mr_graph_stats(graph, &stats, 1), 1);
    assert_int_equal(stats.events_in, 4000);
    mr_graph_free(graph);
}

static void several_graphs_and_inlets_feed_one_trunk(void **state)
{
    static struct journal journal;
    const struct sink_config sink = {&journal, NULL};
    const struct work a = {.letter = 'a'}, b = {.letter = 'b'};
    const struct mr_graph_node lane0_nodes[] = {{&work_kind, &a, MR_PLACE_FUSED}};
    const struct mr_graph_node lane1_nodes[] = {{&work_kind, &b, MR_PLACE_FUSED}};
    const struct mr_graph_node trunk_nodes[] = {{&sink_kind, &sink, MR_PLACE_THREAD}};
    struct mr_graph *lane0 = make(lane0_nodes, 1, "lane0"),
                    *lane1 = make(lane1_nodes, 1, "lane1");
    struct mr_graph *trunk = make(trunk_nodes, 1, "trunk");
    struct mr_inlet *inlet;
    struct mr_filter_stats stats;

    (void)state;
    journal.size = 0;
    assert_int_equal(mr_graph_join(lane0, trunk), MR_OK);
    assert_int_equal(mr_graph_join(lane1, trunk), MR_OK);
    assert_int_equal(mr_graph_inlet(trunk, &inlet), MR_OK);
    assert_int_equal(mr_graph_join(lane0, trunk), MR_ESTATE); /* once */
    assert_int_equal(mr_graph_start(trunk), MR_OK);
    assert_int_equal(mr_graph_start(lane0), MR_OK);
    assert_int_equal(mr_graph_start(lane1), MR_OK);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(mr_graph_push(lane0, text_batch("x")), MR_OK);
        assert_int_equal(mr_graph_push(lane1, text_batch("y")), MR_OK);
        assert_int_equal(mr_inlet_push(inlet, text_batch("z")), MR_OK);
    }
    mr_inlet_close(inlet);
    assert_int_equal(mr_graph_drain(lane0), MR_OK);
    assert_int_equal(mr_graph_drain(lane1), MR_OK);
    assert_int_equal(mr_graph_drain(trunk), MR_OK);
    (void)mr_graph_stats(trunk, &stats, 1);
    assert_int_equal(stats.batches_in, 602); /* with a drain batch of each lane */
    assert_int_equal(stats.pipe_capacity, 3 * (MR_GRAPH_PIPE_BATCHES - 1));
    assert_int_equal(stats.pipe_fill, 0);
    mr_graph_free(lane0);
    mr_graph_free(lane1);
    mr_graph_free(trunk);
}

static void a_failed_filter_is_latched_and_only_closed(void **state)
{
    static struct journal journal;
    const struct work a = {.letter = 'a', .journal = &journal},
                      b = {.letter = 'b', .fail_at = 3, .journal = &journal};
    const struct sink_config sink = {&journal, NULL};

    (void)state;
    for (int place = MR_PLACE_FUSED; place <= MR_PLACE_THREAD; place++) {
        const struct mr_graph_node nodes[] = {{&work_kind, &a, MR_PLACE_FUSED},
                                              {&work_kind, &b, (enum mr_place)place},
                                              {&sink_kind, &sink, MR_PLACE_FUSED}};
        struct mr_graph *graph = make(nodes, 3, "failing");
        struct mr_filter_stats stats[3];
        struct mr_error error = MR_ERROR_NONE;

        journal.size = 0;
        assert_int_equal(mr_graph_start(graph), MR_OK);
        assert_int_equal(mr_graph_status(graph, &error), MR_OK);
        for (int i = 0; i < 10; i++)
            (void)mr_graph_push(graph, text_batch("t"));
        assert_int_equal(mr_graph_drain(graph), MR_EFORMAT);
        assert_int_equal(mr_graph_status(graph, &error), MR_EFORMAT);
        assert_non_null(strstr(error.text, "graph failing: filter work: process failed"));
        (void)mr_graph_stats(graph, stats, 3);
        assert_int_equal(stats[0].discarded, 0);
        assert_int_equal(
            stats[0].batches_out,
            11); /* the filter before goes on: a pipe could not tell it either */
        assert_int_equal(stats[1].batches_in, 11);
        assert_int_equal(stats[1].discarded, 8);
        assert_int_equal(stats[2].batches_in, 2);
        mr_graph_free(graph);
        assert_string_equal(journal.text, "tab tab close-a close-b "); /* no drain-b */
    }
}

static void a_failed_open_closes_what_was_open(void **state)
{
    static struct journal journal;
    const struct work a = {.letter = 'a', .journal = &journal},
                      b = {.letter = 'b', .journal = &journal},
                      c = {.letter = 'c', .open_status = MR_EUSAGE, .journal = &journal};
    const struct mr_graph_node nodes[] = {{&work_kind, &a, MR_PLACE_THREAD},
                                          {&work_kind, &c, MR_PLACE_FUSED},
                                          {&work_kind, &b, MR_PLACE_THREAD}};
    struct mr_graph *graph = NULL;
    struct mr_error error = MR_ERROR_NONE;

    (void)state;
    journal.size = 0;
    assert_int_equal(mr_graph_new(nodes, 3, "unopened", &graph, &error), MR_EUSAGE);
    assert_null(graph);
    assert_string_equal(error.text, "no c today");
    assert_string_equal(journal.text, "close-a ");
}

static void calls_out_of_order_say_so(void **state)
{
    const struct work a = {.letter = 'a'};
    const struct mr_graph_node fused[] = {{&work_kind, &a, MR_PLACE_FUSED}};
    const struct mr_graph_node threaded[] = {{&work_kind, &a, MR_PLACE_THREAD}};
    struct mr_graph *graph = make(fused, 1, "fused"),
                    *other = make(threaded, 1, "threaded");
    struct mr_inlet *inlet;

    (void)state;
    assert_int_equal(mr_graph_push(graph, text_batch("early")), MR_ESTATE);
    assert_int_equal(mr_graph_tick(graph, 1), MR_ESTATE);
    assert_int_equal(mr_graph_drain(graph), MR_ESTATE);
    assert_int_equal(mr_graph_inlet(graph, &inlet),
                     MR_ESTATE); /* its head is the caller's thread */
    for (int i = 0; i < MR_GRAPH_INPUTS_MAX; i++)
        assert_int_equal(mr_graph_inlet(other, &inlet), MR_OK);
    assert_int_equal(mr_graph_inlet(other, &inlet), MR_ELIMIT);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    assert_int_equal(mr_graph_start(graph), MR_ESTATE);
    assert_int_equal(mr_graph_join(graph, other), MR_ESTATE);
    assert_int_equal(mr_graph_drain(graph), MR_OK);
    assert_int_equal(mr_graph_drain(graph), MR_ESTATE);
    assert_int_equal(mr_graph_push(graph, text_batch("late")), MR_ESTATE);
    mr_graph_free(graph);
    mr_graph_free(other); /* never started */
    mr_graph_free(NULL);
}

static void a_thread_ticks_its_filters_by_itself(void **state)
{
    static atomic_uint ticks;
    const struct work a = {.letter = 'a', .ticks = &ticks},
                      b = {.letter = 'b', .ticks = &ticks};
    const struct mr_graph_node nodes[] = {{&work_kind, &a, MR_PLACE_THREAD},
                                          {&work_kind, &b, MR_PLACE_FUSED}};
    struct mr_graph *graph = make(nodes, 2, "ticking");
    const struct timespec pause = {0, 1000000};

    (void)state;
    atomic_store(&ticks, 0);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    while (atomic_load(&ticks) < 6) /* ends, or the test times out */
        (void)nanosleep(&pause, NULL);
    assert_int_equal(mr_graph_drain(graph), MR_OK); /* with no input at all */
    mr_graph_free(graph);
}

static void frames_are_owned_when_they_cross_threads(void **state)
{
    static struct journal journal;
    const struct sink_config sink = {&journal, NULL};
    const struct mr_graph_node nodes[] = {{&sink_kind, &sink, MR_PLACE_THREAD}};
    struct mr_graph *graph = make(nodes, 1, "frames");
    struct mr_inlet *inlet;
    char payload[] = "frame";

    (void)state;
    journal.size = 0;
    assert_int_equal(mr_graph_inlet(graph, &inlet), MR_OK);
    for (int i = 0; i < 3;
         i++) { /* before the start, so that the buffer is surely used again in between */
        struct mr_batch *batch = mr_batch_new(MR_BATCH_FRAME);

        payload[0] = (char)('a' + i);
        batch->frame.payload = mr_span_of(payload, 5);
        assert_true(mr_inlet_has_room(inlet));
        assert_int_equal(mr_inlet_push(inlet, batch), MR_OK);
    }
    memset(payload, '?', 5);
    mr_inlet_close(inlet);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    assert_int_equal(mr_graph_drain(graph), MR_OK);
    assert_string_equal(journal.text, "arame brame crame ");
    mr_graph_free(graph);
}

/* Emits only when it may, counts the batches it merged instead. */
static enum mr_status polite_process(struct mr_filter *filter, struct mr_batch *batch)
{
    if (mr_filter_can_emit(filter))
        return mr_filter_emit(filter, batch);
    mr_filter_count(filter, 0, 1);
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind polite_kind = {"polite", 0,    NULL, polite_process,
                                                  NULL,     NULL, NULL, NULL};

static void a_filter_that_cannot_take_holds_back_a_fused_one(void **state)
{
    static struct journal journal;
    static atomic_bool has_room;
    const struct sink_config sink = {&journal, &has_room};
    const struct mr_graph_node nodes[] = {{&polite_kind, NULL, MR_PLACE_FUSED},
                                          {&sink_kind, &sink, MR_PLACE_FUSED}};
    struct mr_graph *graph = make(nodes, 2, "polite");

    (void)state;
    journal.size = 0;
    atomic_store(&has_room, false);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    assert_int_equal(mr_graph_push(graph, text_batch("no")), MR_OK);
    atomic_store(&has_room, true);
    assert_int_equal(mr_graph_push(graph, text_batch("yes")), MR_OK);
    mr_graph_free(graph);
    assert_string_equal(journal.text, "yes ");
}

static void a_filter_that_cannot_take_fills_the_pipe_in_front(void **state)
{
    static struct journal journal;
    static atomic_bool has_room;
    const struct sink_config sink = {&journal, &has_room};
    const struct mr_graph_node nodes[] = {{&polite_kind, NULL, MR_PLACE_FUSED},
                                          {&sink_kind, &sink, MR_PLACE_THREAD}};
    struct mr_graph *graph = make(nodes, 2, "pressed");
    struct mr_filter_stats stats[2];

    (void)state;
    journal.size = 0;
    atomic_store(&has_room, false);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    for (int i = 0; i < 2 * MR_GRAPH_PIPE_BATCHES; i++)
        assert_int_equal(mr_graph_push(graph, text_batch("b")), MR_OK);
    (void)mr_graph_stats(graph, stats, 2);
    assert_int_equal(stats[1].batches_in, 0);
    assert_int_equal(stats[1].pipe_fill, stats[1].pipe_capacity);
    assert_int_equal(stats[0].counters[0], MR_GRAPH_PIPE_BATCHES + 1);
    assert_int_equal(mr_graph_drain(graph), MR_OK); /* draining overrules */
    (void)mr_graph_stats(graph, stats, 2);
    assert_int_equal(stats[1].batches_in, MR_GRAPH_PIPE_BATCHES - 1);
    mr_graph_free(graph);
}

static void a_graph_freed_without_drain_discards_and_ends(void **state)
{
    static struct journal journal;
    const struct work a = {.letter = 'a', .journal = &journal};
    const struct mr_graph_node nodes[] = {{&work_kind, &a, MR_PLACE_THREAD},
                                          {&work_kind, &a, MR_PLACE_THREAD}};
    struct mr_graph *graph = make(nodes, 2, "dropped");
    struct mr_inlet *inlet;

    (void)state;
    journal.size = 0;
    assert_int_equal(mr_graph_inlet(graph, &inlet), MR_OK);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(mr_inlet_push(inlet, text_batch("gone")), MR_OK);
    mr_graph_free(graph); /* the inlet still open */
    assert_string_equal(journal.text, "close-a close-a ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_and_threaded_give_identical_output),
        cmocka_unit_test(drain_runs_in_flow_order_and_what_it_emits_flows_on),
        cmocka_unit_test(an_empty_graph_end_frees_what_comes),
        cmocka_unit_test(events_are_counted_per_filter),
        cmocka_unit_test(several_graphs_and_inlets_feed_one_trunk),
        cmocka_unit_test(a_failed_filter_is_latched_and_only_closed),
        cmocka_unit_test(a_failed_open_closes_what_was_open),
        cmocka_unit_test(calls_out_of_order_say_so),
        cmocka_unit_test(a_thread_ticks_its_filters_by_itself),
        cmocka_unit_test(frames_are_owned_when_they_cross_threads),
        cmocka_unit_test(a_filter_that_cannot_take_holds_back_a_fused_one),
        cmocka_unit_test(a_filter_that_cannot_take_fills_the_pipe_in_front),
        cmocka_unit_test(a_graph_freed_without_drain_discards_and_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
