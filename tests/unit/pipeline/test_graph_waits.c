/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline/graph.h: who waits is told while it waits, not when it is over. */
#include "../unit_test.h"

#include "base/clock.h"
#include "pipeline/graph.h"

#include <pthread.h>
#include <stdatomic.h>

#define NAP_NS 1000000
#define PATIENCE_NS (60 * MR_SECOND_NS)

static void nap(void)
{
    const struct timespec time = {.tv_nsec = NAP_NS};

    (void)nanosleep(&time, NULL);
}

static enum mr_status pass_process(struct mr_filter *filter, struct mr_batch *batch)
{
    return mr_filter_emit(filter, batch);
}

/* Its config: a gate, at which it waits as forward does at a full outbox. */
static enum mr_status gate_open(struct mr_filter *filter, const void *config,
                                struct mr_error *error)
{
    (void)error;
    *(const atomic_bool **)mr_filter_state(filter) = config;
    return MR_OK;
}

static enum mr_status gate_process(struct mr_filter *filter, struct mr_batch *batch)
{
    const atomic_bool *is_open = *(const atomic_bool **)mr_filter_state(filter);

    while (!atomic_load(is_open)) {
        nap();
        mr_filter_goes_on(filter);
    }
    return mr_filter_emit(filter, batch);
}

static const struct mr_filter_kind pass_kind = {.name = "pass", .process = pass_process};
static const struct mr_filter_kind gate_kind = {.name = "gate",
                                                .state_size = sizeof(const atomic_bool *),
                                                .open = gate_open,
                                                .process = gate_process};

/* More than the pipe in front of the gate holds, so that the last of them has to wait. */
static void *push_all(void *argument)
{
    struct mr_graph *graph = argument;
    struct mr_filter_stats stats[2];

    (void)mr_graph_stats(graph, stats, 2);
    for (uint32_t i = 0; i < stats[1].pipe_capacity + 2; i++)
        assert_int_equal(mr_graph_push(graph, mr_batch_new(MR_BATCH_DELTA)), MR_OK);
    return NULL;
}

static void wait_for(const struct mr_graph *graph, uint64_t busy_ns, uint64_t wait_ns,
                     struct mr_filter_stats stats[2])
{
    uint64_t until_ns = mr_clock_monotonic_ns() + PATIENCE_NS;

    do {
        nap();
        (void)mr_graph_stats(graph, stats, 2);
    } while ((stats[1].busy_ns <= busy_ns || stats[0].emit_wait_ns <= wait_ns) &&
             mr_clock_monotonic_ns() < until_ns);
    assert_true(stats[1].busy_ns > busy_ns);
    assert_true(stats[0].emit_wait_ns > wait_ns);
}

static void busy_and_waiting_grow_while_a_filter_waits(void **state)
{
    atomic_bool is_open = false;
    const struct mr_graph_node nodes[] = {{&pass_kind, NULL, MR_PLACE_FUSED},
                                          {&gate_kind, &is_open, MR_PLACE_THREAD}};
    uint64_t start_ns = mr_clock_monotonic_ns(), all_ns;
    struct mr_error error = MR_ERROR_NONE;
    struct mr_filter_stats stats[2];
    struct mr_graph *graph;
    pthread_t pusher;

    (void)state;
    assert_int_equal(mr_graph_new(nodes, 2, "waits", &graph, &error), MR_OK);
    assert_int_equal(mr_graph_start(graph), MR_OK);
    assert_int_equal(pthread_create(&pusher, NULL, push_all, graph), 0);
    wait_for(graph, 0, 0, stats);
    wait_for(graph, stats[1].busy_ns, stats[0].emit_wait_ns, stats);
    assert_int_equal(stats[1].batches_in, 1); /* still the first of them */
    assert_int_equal(stats[1].batches_out, 0);
    atomic_store(&is_open, true);
    assert_int_equal(pthread_join(pusher, NULL), 0);
    assert_int_equal(mr_graph_drain(graph), MR_OK);
    all_ns = mr_clock_monotonic_ns() - start_ns;
    (void)mr_graph_stats(graph, stats, 2);
    assert_true(stats[1].busy_ns <= all_ns); /* and no part of it twice */
    assert_true(stats[0].busy_ns + stats[0].emit_wait_ns <= all_ns);
    assert_int_equal(stats[1].batches_out, stats[0].batches_in);
    mr_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_and_waiting_grow_while_a_filter_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
