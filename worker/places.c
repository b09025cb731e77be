/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/places.h"

#include "base/assert.h"

void mr_places_init(struct mr_places *places, bool by_sender)
{
    mr_homes_init(&places->applications);
    places->by_sender = by_sender;
}

void mr_places_fini(struct mr_places *places)
{
    mr_homes_fini(&places->applications);
}

static struct mr_id key_of(struct mr_id application, uint32_t lane)
{
    return (struct mr_id){application.hi, application.lo ^ lane};
}

static uint64_t senders_beside(const struct mr_place_lane *lanes, uint32_t lane_count,
                               uint32_t driver)
{
    uint64_t senders = 0;

    if (driver == UINT32_MAX)
        return UINT64_MAX;
    for (uint32_t i = 0; i < lane_count; i++)
        if (lanes[i].driver == driver)
            senders += lanes[i].senders;
    return senders;
}

static uint32_t idlest_driver(const struct mr_place_lane *lanes, uint32_t lane_count)
{
    uint32_t driver = lanes[0].driver;
    uint64_t least = senders_beside(lanes, lane_count, driver);

    for (uint32_t i = 1; i < lane_count; i++) {
        uint64_t senders = senders_beside(lanes, lane_count, lanes[i].driver);

        if (senders < least) {
            least = senders;
            driver = lanes[i].driver;
        }
    }
    return driver;
}

static bool knows(struct mr_places *places, struct mr_id application, uint32_t lane)
{
    uint32_t ignored;

    return !places->by_sender &&
           mr_homes_find(&places->applications, key_of(application, lane), &ignored);
}

uint32_t mr_places_choose(struct mr_places *places, struct mr_id application,
                          const struct mr_place_lane *lanes, uint32_t lane_count)
{
    uint32_t driver, chosen = UINT32_MAX;
    bool is_known = false;

    MR_ASSERT(lane_count > 0);
    driver = idlest_driver(lanes, lane_count);
    for (uint32_t i = 0; i < lane_count; i++) {
        bool is_known_here = knows(places, application, i);

        if (lanes[i].driver != driver || is_known > is_known_here)
            continue;
        if (chosen == UINT32_MAX || is_known_here > is_known ||
            lanes[i].senders < lanes[chosen].senders) {
            chosen = i;
            is_known = is_known_here;
        }
    }
    if (!places->by_sender)
        mr_homes_put(&places->applications, key_of(application, chosen), chosen);
    return chosen;
}
