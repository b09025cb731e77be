/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/lanes_even.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"

#include <inttypes.h>
#include <string.h>

/* What a move must gain, of what is hot: less is noise, and each costs the caches of a processor. */
#define GAIN_SHARE 0.1
#define HOT_PERIODS 2
#define REST_PERIODS 10

void mr_lanes_even_open(struct mr_lanes_even *even,
                        const struct mr_lanes_even_parts *parts, uint64_t hot_percent)
{
    double hot = (double)hot_percent / 100;
    const struct mr_spread_rules rules = {.hot = hot,
                                          .gain = hot * GAIN_SHARE,
                                          .periods = HOT_PERIODS,
                                          .rest = REST_PERIODS};

    MR_ASSERT(hot_percent <= 100 && parts->driver_count > 0);
    memset(even, 0, sizeof(*even));
    even->parts = *parts;
    even->sampled_ns = mr_clock_monotonic_ns();
    even->is_on = hot_percent > 0 && parts->driver_count > 1;
    if (even->is_on)
        mr_spread_init(&even->spread, &rules, parts->lane_count, parts->driver_count);
}

uint32_t mr_lanes_even_driver(const struct mr_lanes_even *even, uint32_t lane)
{
    /* Relaxed: what is asked of a driver that has it no more is not done. */
    const struct mr_driver *driver =
        mr_load_relaxed(&even->parts.lanes[lane].driven.driver);

    return driver ? (uint32_t)(driver - even->parts.drivers) : even->parts.driver_count;
}

/* Of the thread that turns the lane, for the next level or for the filters behind. */
static uint64_t waited_ns(const struct mr_graph *graph)
{
    struct mr_filter_stats stats[MR_GRAPH_NODES_MAX];
    uint32_t count = mr_graph_stats(graph, stats, MR_GRAPH_NODES_MAX);
    uint64_t waited_ns = 0;

    for (uint32_t i = 0; i < count && (i == 0 || stats[i].pipe_capacity == 0); i++)
        waited_ns += stats[i].emit_wait_ns;
    return waited_ns;
}

/* Part of the period since the last look. */
static double gain(struct mr_lanes_even *even, uint32_t i, uint64_t since_ns)
{
    const struct mr_lane *lane = &even->parts.lanes[i];
    /* In this order: a turn that ends between them makes it too small, not negative. */
    uint64_t waited = waited_ns(lane->config.graph);
    uint64_t turned = mr_load_relaxed(&lane->driven.busy_ns); /* a measure */
    uint64_t busy = turned > waited ? turned - waited : 0;
    uint64_t gained = busy > even->busy_ns[i] ? busy - even->busy_ns[i] : 0;

    even->busy_ns[i] = busy;
    return gained < since_ns ? (double)gained / (double)since_ns : 1;
}

static void sample(struct mr_lanes_even *even, struct mr_spread_lane *lanes,
                   uint64_t since_ns)
{
    memset(even->drivers, 0, sizeof(even->drivers));
    for (uint32_t i = 0; i < even->parts.lane_count; i++) {
        lanes[i] = (struct mr_spread_lane){mr_lanes_even_driver(even, i),
                                           gain(even, i, since_ns)};
        if (lanes[i].driver < even->parts.driver_count)
            even->drivers[lanes[i].driver] += lanes[i].busy;
    }
    /* A turn counts where it ends, and a lane that has come brings along what it did elsewhere. */
    for (uint32_t i = 0; i < even->parts.driver_count; i++)
        if (even->drivers[i] > 1)
            even->drivers[i] = 1;
}

static void pass(struct mr_lanes_even *even, const struct mr_spread_move *move)
{
    struct mr_lanes_even_parts *parts = &even->parts;
    struct mr_lane *lane = &parts->lanes[move->lane];

    if (!mr_driver_pass(&parts->drivers[move->from], &lane->driven,
                        &parts->drivers[move->to]))
        return;
    even->passed++;
    mr_log_info("%s with %" PRIu32 " senders goes from driver %" PRIu32 ", which was "
                "%.0f %% busy, to driver %" PRIu32 ": %.0f %% then",
                lane->config.name, mr_lane_load(lane), move->from, 100 * move->before,
                move->to, 100 * move->after);
}

void mr_lanes_even_turn(struct mr_lanes_even *even, uint64_t now_ns)
{
    struct mr_spread_lane lanes[MR_SPREAD_LANES_MAX];
    struct mr_spread_move move;
    uint64_t since_ns = now_ns - even->sampled_ns;

    if (since_ns < MR_SECOND_NS)
        return;
    sample(even, lanes, since_ns);
    even->sampled_ns = now_ns;
    if (even->is_on && mr_spread_look(&even->spread, lanes, &move))
        pass(even, &move);
}
