/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lane should go from one driver to another, so that no thread is full while another has time: pure arithmetic over how
 * busy each lane was in the period that has passed (a second or so).
 *
 *     mr_spread_init(&spread, &rules, lane_count, driver_count);
 *     if (mr_spread_look(&spread, lanes, &move))      // each period
 *         pass(move.lane, move.to);
 *
 * A lane of a hot driver goes to the least busy one when in each of `periods` in a row the busier of the two would have had
 * less to do by `gain` at least had a lane been there already: the one that gains the most. One that has just gone rests. So a driver with a single lane keeps it, however hot: it would be as hot
 * elsewhere. A full driver's lanes have more to do than one can see; then it takes a few moves.
 *
 * One thread. No memory.
 */
#ifndef MR_WORKER_SPREAD_H
#define MR_WORKER_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#define MR_SPREAD_LANES_MAX 256u

struct mr_spread_rules {
    double hot;       /* part of a period from which on a driver is, above 0; up to 1 */
    double gain;      /* part of a period */
    uint32_t periods; /* in a row, at least 1 */
    uint32_t rest;    /* periods */
};

struct mr_spread_lane {
    uint32_t driver; /* that has it; UINT32_MAX: none, it does not count */
    double busy;     /* part of the period */
};

struct mr_spread_move {
    uint32_t lane, from, to;
    double before, after; /* of the busier of the two drivers, as measured */
};

struct mr_spread {
    struct mr_spread_rules rules;
    uint32_t lane_count, driver_count;
    uint32_t hot_periods;                /* in a row, with a move that gains enough */
    uint32_t rests[MR_SPREAD_LANES_MAX]; /* periods left */
};

/* Up to MR_SPREAD_LANES_MAX lanes and drivers, at least one each. */
void mr_spread_init(struct mr_spread *spread, const struct mr_spread_rules *rules,
                    uint32_t lane_count, uint32_t driver_count);
/* Takes one period in. True: *move is to be made now. */
bool mr_spread_look(struct mr_spread *spread, const struct mr_spread_lane *lanes,
                    struct mr_spread_move *move);

#endif
