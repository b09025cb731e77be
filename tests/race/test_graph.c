/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two lanes, each driven by a thread of its own, and an inlet, all into one trunk of
 * three threads; another thread reads statistics and status all the while; at the end one
 * filter fails. Batches are recycled between threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "pipeline/graph.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define ROUNDS 4
#define BATCHES 3000u
#define EVENTS 16u
#define SOURCES 3u

static enum mr_status pass(struct mr_filter *filter, struct mr_batch *batch)
{
    for (uint32_t i = 0; i < batch->event_count; i++)
        batch->events[i].ns++;
    return mr_filter_emit(filter, batch);
}

static const struct mr_filter_kind pass_kind = {.name = "pass", .process = pass};

/* Each source's batches come in order, and every filter has touched every event once. */
struct check_state {
    uint32_t next[SOURCES];
    uint64_t fail_at, seen;
};

static enum mr_status check_open(struct mr_filter *filter, const void *config,
                                 struct mr_error *error)
{
    struct check_state *state = mr_filter_state(filter);

    (void)error;
    state->fail_at = *(const uint64_t *)config;
    mr_filter_name_counter(filter, 0, "wrong");
    return MR_OK;
}

static enum mr_status check(struct mr_filter *filter, struct mr_batch *batch)
{
    struct check_state *state = mr_filter_state(filter);
    uint32_t source = batch->events[0].site, number = batch->events[0].kind;

    if (number != (state->next[source]++ & UINT16_MAX) || batch->event_count != EVENTS)
        mr_filter_count(filter, 0, 1);
    for (uint32_t i = 1; i < batch->event_count; i++) {
        if (batch->events[i].ns != batch->events[0].ns)
            mr_filter_count(filter, 0, 1);
    }
    mr_batch_free(batch);
    return ++state->seen == state->fail_at ? MR_EIO : MR_OK;
}

static const struct mr_filter_kind check_kind = {.name = "check",
                                                 .state_size = sizeof(struct check_state),
                                                 .open = check_open,
                                                 .process = check};

struct driver {
    struct mr_graph *lane;  /* or */
    struct mr_inlet *inlet; /* this */
    uint32_t source;
    unsigned seed;
};

static struct mr_batch *make(uint32_t source, uint32_t number)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_EVENTS);

    if (!batch)
        abort();
    for (uint32_t i = 0; i < EVENTS; i++)
        batch->events[i] = (struct mr_event){.site = source, .kind = (uint16_t)number};
    batch->event_count = EVENTS;
    return batch;
}

static void *drive(void *argument)
{
    struct driver *driver = argument;

    for (uint32_t i = 0; i < BATCHES; i++) {
        struct mr_batch *batch = make(driver->source, i);

        if (driver->inlet)
            (void)mr_inlet_push(driver->inlet, batch);
        else
            (void)mr_graph_push(driver->lane, batch);
        if (rand_r(&driver->seed) % 50 == 0)
            (void)sched_yield();
        if (driver->lane && i % 100 == 0)
            (void)mr_graph_tick(driver->lane, mr_clock_monotonic_ns());
    }
    if (driver->inlet)
        mr_inlet_close(driver->inlet);
    else
        (void)mr_graph_drain(driver->lane);
    return NULL;
}

struct watcher {
    struct mr_graph *trunk;
    _Atomic bool stop;
};

static void *watch(void *argument)
{
    struct watcher *watcher = argument;

    while (!mr_load_acquire(&watcher->stop)) {
        struct mr_filter_stats stats[MR_GRAPH_NODES_MAX];
        struct mr_error error = MR_ERROR_NONE;

        (void)mr_graph_stats(watcher->trunk, stats, MR_GRAPH_NODES_MAX);
        (void)mr_graph_status(watcher->trunk, &error);
        (void)sched_yield();
    }
    return NULL;
}

static struct mr_graph *new_graph(const struct mr_graph_node *nodes, uint32_t count,
                                  const char *name)
{
    struct mr_graph *graph = NULL;

    assert_int_equal(mr_graph_new(nodes, count, name, &graph, NULL), MR_OK);
    return graph;
}

static void run_round(unsigned seed, uint64_t fail_at)
{
    const struct mr_graph_node lane_nodes[] = {{&pass_kind, NULL, MR_PLACE_FUSED},
                                               {&pass_kind, NULL, MR_PLACE_THREAD}};
    const struct mr_graph_node trunk_nodes[] = {{&pass_kind, NULL, MR_PLACE_THREAD},
                                                {&pass_kind, NULL, MR_PLACE_THREAD},
                                                {&pass_kind, NULL, MR_PLACE_FUSED},
                                                {&check_kind, &fail_at, MR_PLACE_THREAD}};
    struct driver drivers[SOURCES];
    pthread_t threads[SOURCES], watching;
    struct watcher watcher = {.trunk = new_graph(trunk_nodes, 4, "trunk")};
    struct mr_filter_stats stats[4];

    for (uint32_t i = 0; i < SOURCES; i++) {
        drivers[i] = (struct driver){.source = i, .seed = seed + i};
        if (i == 0) {
            assert_int_equal(mr_graph_inlet(watcher.trunk, &drivers[i].inlet), MR_OK);
            continue;
        }
        drivers[i].lane = new_graph(lane_nodes, 2, "lane");
        assert_int_equal(mr_graph_join(drivers[i].lane, watcher.trunk), MR_OK);
    }
    assert_int_equal(mr_graph_start(watcher.trunk), MR_OK);
    assert_int_equal(pthread_create(&watching, NULL, watch, &watcher), 0);
    for (uint32_t i = 0; i < SOURCES; i++) {
        if (drivers[i].lane)
            assert_int_equal(mr_graph_start(drivers[i].lane), MR_OK);
        assert_int_equal(pthread_create(&threads[i], NULL, drive, &drivers[i]), 0);
    }
    for (uint32_t i = 0; i < SOURCES; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(mr_graph_drain(watcher.trunk), fail_at ? MR_EIO : MR_OK);
    mr_store_release(&watcher.stop, true);
    assert_int_equal(pthread_join(watching, NULL), 0);
    assert_int_equal(mr_graph_stats(watcher.trunk, stats, 4), 4);
    assert_int_equal(stats[3].batches_in, SOURCES * BATCHES);
    assert_int_equal(stats[3].discarded, fail_at ? SOURCES * BATCHES - fail_at : 0);
    assert_int_equal(stats[3].counters[0], 0);
    for (uint32_t i = 0; i < SOURCES; i++)
        mr_graph_free(drivers[i].lane);
    mr_graph_free(watcher.trunk);
}

static void batches_of_many_threads_cross_a_trunk_in_order(void **state)
{
    unsigned seed = (unsigned)mr_clock_realtime_ns();

    (void)state;
    print_message("seed %u\n", seed);
    for (unsigned round = 0; round < ROUNDS; round++)
        run_round(seed + round * SOURCES, round % 2 ? SOURCES * BATCHES / 2 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_of_many_threads_cross_a_trunk_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
