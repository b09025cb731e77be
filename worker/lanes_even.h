/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks once a second at how busy the lanes of a worker keep their drivers, and has one passed on where that evens them out
 * (worker/spread.h). What a lane spends waiting for the trunk to take its deltas does not count: it would wait elsewhere too.
 *
 *     mr_lanes_even_open(&even, &parts, hot_percent);
 *     mr_lanes_even_turn(&even, now_ns);                  // each turn of the main thread
 *
 * The main thread's; also what tells of it (`drivers`, `passed`).
 */
#ifndef MR_WORKER_LANES_EVEN_H
#define MR_WORKER_LANES_EVEN_H

#include "worker/lane.h"
#include "worker/spread.h"

/* All borrowed, and running. */
struct mr_lanes_even_parts {
    struct mr_lane *lanes;
    uint32_t lane_count;
    struct mr_driver *drivers;
    uint32_t driver_count;
};

struct mr_lanes_even {
    struct mr_lanes_even_parts parts;
    struct mr_spread spread;
    bool is_on;
    uint64_t sampled_ns;                   /* 0: never */
    uint64_t busy_ns[MR_SPREAD_LANES_MAX]; /* of each lane at that time */
    double drivers
        [MR_SPREAD_LANES_MAX]; /* part of the last second that each was busy, at most 1 */
    uint64_t passed;           /* lanes, so far */
};

/* `hot_percent`: of a second, from which on a driver is hot; 0: nothing is ever passed on. */
void mr_lanes_even_open(struct mr_lanes_even *even,
                        const struct mr_lanes_even_parts *parts, uint64_t hot_percent);
void mr_lanes_even_turn(struct mr_lanes_even *even, uint64_t now_ns);
/* Which of the drivers has a lane; driver_count: none, it has ended or is on its way. */
uint32_t mr_lanes_even_driver(const struct mr_lanes_even *even, uint32_t lane);

#endif
