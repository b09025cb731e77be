/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes that are passed between drivers all the while, each feeding a graph of its own into one trunk from what comes
 * through a descriptor. Nothing is lost, nothing out of order, no two threads are in one at a time; then all end, some of
 * them on their way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "pipeline/graph.h"
#include "worker/driver.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUNDS 3
#define DRIVERS 3u
#define LANES 5u
#define BATCHES 2000u
#define MOVES 10 /* of each lane, at least */
#define TICK_NS MR_MILLISECOND_NS

struct check_state {
    uint32_t next[LANES];
};

static enum mr_status check_open(struct mr_filter *filter, const void *config,
                                 struct mr_error *error)
{
    (void)config;
    (void)error;
    mr_filter_name_counter(filter, 0, "wrong");
    return MR_OK;
}

static enum mr_status check(struct mr_filter *filter, struct mr_batch *batch)
{
    struct check_state *state = mr_filter_state(filter);

    if (batch->events[0].ns != state->next[batch->events[0].site]++)
        mr_filter_count(filter, 0, 1);
    mr_batch_free(batch);
    return MR_OK;
}

static const struct mr_filter_kind check_kind = {.name = "check",
                                                 .state_size = sizeof(struct check_state),
                                                 .open = check_open,
                                                 .process = check};

static enum mr_status pass(struct mr_filter *filter, struct mr_batch *batch)
{
    return mr_filter_emit(filter, batch);
}

static const struct mr_filter_kind pass_kind = {.name = "pass", .process = pass};

/* Its fields are plain on purpose: two threads in it would be seen by ThreadSanitizer. */
struct lane {
    struct mr_driven driven;
    struct mr_graph *graph;
    uint32_t index;
    uint64_t pushed, begun, wrong;
    uint64_t begun_ns, waited_ns;
    const struct mr_driver *driver; /* of the last turn */
    _Atomic uint32_t moves;
    _Atomic bool has_ended;
};

static void begin(void *context)
{
    struct lane *lane = context;

    lane->begun++;
    lane->begun_ns = mr_clock_monotonic_ns();
}

static void push(struct lane *lane)
{
    struct mr_batch *batch = mr_batch_new(MR_BATCH_EVENTS);

    if (!batch)
        abort();
    batch->events[0] = (struct mr_event){.ns = lane->pushed++, .site = lane->index};
    batch->event_count = 1;
    (void)mr_graph_push(lane->graph, batch);
}

static uint64_t turn(void *context)
{
    struct lane *lane = context;
    uint64_t wanted = 0, now_ns = mr_clock_monotonic_ns();
    ssize_t size = read(lane->driven.fd, &wanted, sizeof(wanted));
    uint64_t waited_ns = mr_driven_waited_ns(&lane->driven);

    lane->wrong += lane->begun != 1;
    lane->wrong += waited_ns < lane->waited_ns || waited_ns > now_ns - lane->begun_ns;
    lane->waited_ns = waited_ns;
    if (lane->driver && lane->driver != mr_load_relaxed(&lane->driven.driver))
        mr_add_relaxed(&lane->moves, 1);                  /* a count */
    lane->driver = mr_load_relaxed(&lane->driven.driver); /* this thread's own */
    for (uint64_t i = 0; size == sizeof(wanted) && i < wanted; i++)
        push(lane);
    (void)mr_graph_tick(lane->graph, now_ns);
    return lane->pushed == BATCHES ? MR_DRIVEN_OVER : now_ns + TICK_NS;
}

static void end(void *context)
{
    struct lane *lane = context;

    (void)mr_graph_drain(lane->graph);
    mr_store_release(&lane->has_ended, true); /* pairs with the test's load */
}

static const struct mr_driven_kind kind = {.begin = begin, .turn = turn, .end = end};

static void start_lane(struct lane *lane, uint32_t index, struct mr_graph *trunk)
{
    const struct mr_graph_node node = {&pass_kind, NULL, MR_PLACE_FUSED};
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    assert_true(fd >= 0);
    *lane = (struct lane){.driven = {.kind = &kind, .context = lane, .fd = fd},
                          .index = index};
    assert_int_equal(mr_graph_new(&node, 1, "lane", &lane->graph, NULL), MR_OK);
    assert_int_equal(mr_graph_join(lane->graph, trunk), MR_OK);
}

/* Any lane to any driver, whether or not the lane is where it is thought to be. */
static uint64_t pass_some(struct mr_driver *drivers, struct lane *lanes, unsigned *seed)
{
    struct lane *lane = &lanes[(uint32_t)rand_r(seed) % LANES];
    uint32_t from = (uint32_t)rand_r(seed) % DRIVERS;
    struct mr_driver *has = mr_load_relaxed(&lane->driven.driver); /* a hint */

    if (rand_r(seed) % 4 && has)
        from = (uint32_t)(has - drivers);
    return mr_driver_pass(&drivers[from], &lane->driven, &drivers[(from + 1) % DRIVERS]);
}

static void send_all(struct mr_driver *drivers, struct lane *lanes, unsigned *seed)
{
    uint32_t left[LANES], lanes_left = LANES;
    uint64_t asked = 0;

    for (uint32_t i = 0; i < LANES; i++)
        left[i] = BATCHES;
    while (lanes_left > 0) {
        uint32_t i = (uint32_t)rand_r(seed) % LANES;
        uint64_t count = (uint64_t)rand_r(seed) % 20 + 1;

        asked += pass_some(drivers, lanes, seed);
        /* The last one comes when it has been here and there: no lane is done before. */
        if (left[i] == 0 || (left[i] == 1 && mr_load_relaxed(&lanes[i].moves) < MOVES))
            continue;
        count = left[i] == 1 ? 1 : count < left[i] ? count : left[i] - 1;
        assert_int_equal(write(lanes[i].driven.fd, &count, sizeof(count)), sizeof(count));
        left[i] -= (uint32_t)count;
        lanes_left -= left[i] == 0;
    }
    assert_true(asked > 0);
}

static void wait_for_end(struct mr_driver *drivers, struct lane *lanes, unsigned *seed)
{
    for (uint32_t i = 0; i < LANES; i++) {
        while (!mr_load_acquire(&lanes[i].has_ended)) {
            (void)pass_some(drivers, lanes, seed);
            (void)usleep(100);
        }
    }
}

static void run_round(unsigned seed)
{
    const struct mr_graph_node node = {&check_kind, NULL, MR_PLACE_THREAD};
    struct mr_driver drivers[DRIVERS];
    struct lane lanes[LANES];
    struct mr_graph *trunk;
    struct mr_filter_stats stats;

    assert_int_equal(mr_graph_new(&node, 1, "trunk", &trunk, NULL), MR_OK);
    for (uint32_t i = 0; i < LANES; i++)
        start_lane(&lanes[i], i, trunk);
    assert_int_equal(mr_graph_start(trunk), MR_OK);
    for (uint32_t i = 0; i < DRIVERS; i++)
        assert_int_equal(mr_driver_start(&drivers[i], "driver", NULL), MR_OK);
    for (uint32_t i = 0; i < LANES; i++) {
        assert_int_equal(mr_graph_start(lanes[i].graph), MR_OK);
        mr_driver_give(&drivers[i % DRIVERS], &lanes[i].driven);
    }
    send_all(drivers, lanes, &seed);
    wait_for_end(drivers, lanes, &seed);
    for (uint32_t i = 0; i < DRIVERS; i++)
        mr_driver_stop(&drivers[i]);
    assert_int_equal(mr_graph_drain(trunk), MR_OK);
    assert_int_equal(mr_graph_stats(trunk, &stats, 1), 1);
    assert_int_equal(stats.batches_in, LANES * BATCHES);
    assert_int_equal(stats.counters[0], 0);
    for (uint32_t i = 0; i < LANES; i++) {
        assert_int_equal(lanes[i].begun, 1);
        assert_int_equal(lanes[i].wrong, 0);
        assert_true(mr_load_relaxed(&lanes[i].driven.busy_ns) > 0);
        assert_true(lanes[i].waited_ns > 0);
        assert_null(mr_load_relaxed(&lanes[i].driven.driver));
        (void)close(lanes[i].driven.fd);
        mr_graph_free(lanes[i].graph);
    }
    mr_graph_free(trunk);
}

static void lanes_are_passed_whole_while_they_run(void **state)
{
    unsigned seed = (unsigned)mr_clock_realtime_ns();

    (void)state;
    print_message("seed %u\n", seed);
    for (unsigned round = 0; round < ROUNDS; round++)
        run_round(seed + round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_are_passed_whole_while_they_run)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
