/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spread.h"

#include "base/assert.h"

#include <string.h>

void mr_spread_init(struct mr_spread *spread, const struct mr_spread_rules *rules,
                    uint32_t lane_count, uint32_t driver_count)
{
    MR_ASSERT(lane_count > 0 && lane_count <= MR_SPREAD_LANES_MAX);
    MR_ASSERT(driver_count > 0 && driver_count <= MR_SPREAD_LANES_MAX);
    MR_ASSERT(rules->hot > 0 && rules->gain > 0 && rules->periods > 0);
    memset(spread, 0, sizeof(*spread));
    spread->rules = *rules;
    spread->lane_count = lane_count;
    spread->driver_count = driver_count;
}

static void rest(struct mr_spread *spread)
{
    for (uint32_t i = 0; i < spread->lane_count; i++)
        spread->rests[i] -= spread->rests[i] > 0;
}

static void add_up(const struct mr_spread *spread, const struct mr_spread_lane *lanes,
                   double *loads)
{
    memset(loads, 0, spread->driver_count * sizeof(*loads));
    for (uint32_t i = 0; i < spread->lane_count; i++)
        if (lanes[i].driver < spread->driver_count)
            loads[lanes[i].driver] += lanes[i].busy;
}

static uint32_t least_busy(const struct mr_spread *spread, const double *loads)
{
    uint32_t least = 0;

    for (uint32_t i = 1; i < spread->driver_count; i++)
        if (loads[i] < loads[least])
            least = i;
    return least;
}

/* If the lane went to `to`. */
static struct mr_spread_move suppose(const struct mr_spread_lane *lanes,
                                     const double *loads, uint32_t lane, uint32_t to)
{
    uint32_t from = lanes[lane].driver;
    double left = loads[from] - lanes[lane].busy, there = loads[to] + lanes[lane].busy;

    return (struct mr_spread_move){.lane = lane,
                                   .from = from,
                                   .to = to,
                                   .before = loads[from],
                                   .after = left > there ? left : there};
}

/* The move off a hot driver that gains the most. False: none gains enough. */
static bool find_best(const struct mr_spread *spread, const struct mr_spread_lane *lanes,
                      struct mr_spread_move *best)
{
    double loads[MR_SPREAD_LANES_MAX], most = 0;
    uint32_t to;

    add_up(spread, lanes, loads);
    to = least_busy(spread, loads);
    for (uint32_t i = 0; i < spread->lane_count; i++) {
        struct mr_spread_move move;

        if (lanes[i].driver >= spread->driver_count || lanes[i].driver == to ||
            spread->rests[i] > 0 || loads[lanes[i].driver] < spread->rules.hot)
            continue;
        move = suppose(lanes, loads, i, to);
        if (move.before - move.after <= most)
            continue;
        most = move.before - move.after;
        *best = move;
    }
    return most >= spread->rules.gain;
}

bool mr_spread_look(struct mr_spread *spread, const struct mr_spread_lane *lanes,
                    struct mr_spread_move *move)
{
    rest(spread);
    if (!find_best(spread, lanes, move)) {
        spread->hot_periods = 0;
        return false;
    }
    if (++spread->hot_periods < spread->rules.periods)
        return false;
    spread->hot_periods = 0;
    spread->rests[move->lane] = spread->rules.rest;
    return true;
}
