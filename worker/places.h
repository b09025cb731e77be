/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lane of a new sender: of the driver with the fewest senders, the lane that has had its application before, else the
 * one with the fewest senders. So each lane's tables stand for other applications than its neighbours', and many lanes
 * cost no more than one: what two lanes know of one application is told, sent up and merged twice
 * (docs/why/2026-11-23-lanes.md). By sender it is the lane with the fewest senders alone: finer to move, and dearer.
 *
 *     mr_places_init(&places, by_sender);
 *     lane = mr_places_choose(&places, application, lanes, lane_count);
 *
 * What is remembered of applications is bounded as homes are (worker/homes.h). One thread.
 */
#ifndef MR_WORKER_PLACES_H
#define MR_WORKER_PLACES_H

#include "worker/homes.h"

struct mr_place_lane {
    uint32_t
        driver; /* that has the lane; UINT32_MAX: it is on its way, and chosen last */
    uint32_t senders;
};

struct mr_places {
    struct mr_homes applications; /* by application and lane */
    bool by_sender;
};

void mr_places_init(struct mr_places *places, bool by_sender);
void mr_places_fini(struct mr_places *places);
/* `application`: the scope of a probe; the id of a sender that has none. At least one lane. */
uint32_t mr_places_choose(struct mr_places *places, struct mr_id application,
                          const struct mr_place_lane *lanes, uint32_t lane_count);

#endif
