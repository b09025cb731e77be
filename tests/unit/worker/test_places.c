/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/places.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#define LANES 4u

static const struct mr_id shop = {1, 2}, bank = {3, 4}, farm = {5, 6};

/* Lanes 0 and 2 are driver 0's, the others driver 1's. */
static void begin(struct mr_places *places, struct mr_place_lane *lanes, bool by_sender)
{
    mr_places_init(places, by_sender);
    for (uint32_t i = 0; i < LANES; i++)
        lanes[i] = (struct mr_place_lane){i % 2, 0};
}

static uint32_t come(struct mr_places *places, struct mr_place_lane *lanes,
                     struct mr_id app)
{
    uint32_t lane = mr_places_choose(places, app, lanes, LANES);

    assert_true(lane < LANES);
    lanes[lane].senders++;
    return lane;
}

static void one_application_has_a_lane_of_each_driver(void **state)
{
    struct mr_places places;
    struct mr_place_lane lanes[LANES];

    MR_UNUSED(state);
    begin(&places, lanes, false);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(come(&places, lanes, shop), i % 2);
    mr_places_fini(&places);
}

static void another_application_has_another_lane(void **state)
{
    struct mr_places places;
    struct mr_place_lane lanes[LANES];

    MR_UNUSED(state);
    begin(&places, lanes, false);
    assert_int_equal(come(&places, lanes, shop), 0);
    assert_int_equal(come(&places, lanes, shop), 1);
    assert_int_equal(come(&places, lanes, bank), 2);
    assert_int_equal(come(&places, lanes, bank), 3);
    assert_int_equal(come(&places, lanes, farm), 0); /* no lane is left for it */
    assert_int_equal(come(&places, lanes, shop), 1);
    assert_int_equal(come(&places, lanes, bank), 2);
    mr_places_fini(&places);
}

static void a_lane_that_goes_takes_its_applications_along(void **state)
{
    struct mr_places places;
    struct mr_place_lane lanes[LANES];

    MR_UNUSED(state);
    begin(&places, lanes, false);
    assert_int_equal(come(&places, lanes, shop), 0);
    lanes[0] = (struct mr_place_lane){1, 0}; /* its sender has ended, too */
    lanes[2].senders = 1;
    assert_int_equal(come(&places, lanes, shop), 0);
    assert_int_equal(come(&places, lanes, shop), 0);
    assert_int_equal(come(&places, lanes, shop), 2); /* of driver 0, which knows it not */
    mr_places_fini(&places);
}

static void by_sender_each_has_a_lane_while_there_are_any(void **state)
{
    struct mr_places places;
    struct mr_place_lane lanes[LANES];

    MR_UNUSED(state);
    begin(&places, lanes, true);
    for (uint32_t i = 0; i < 2 * LANES; i++)
        assert_int_equal(come(&places, lanes, shop), i % LANES);
    mr_places_fini(&places);
}

static void a_lane_on_its_way_is_chosen_last(void **state)
{
    struct mr_places places;
    struct mr_place_lane lanes[LANES];

    MR_UNUSED(state);
    begin(&places, lanes, true);
    lanes[0].driver = UINT32_MAX;
    lanes[1].senders = lanes[2].senders = lanes[3].senders = 5;
    assert_int_not_equal(come(&places, lanes, shop), 0);
    for (uint32_t i = 0; i < LANES; i++)
        lanes[i].driver = UINT32_MAX;
    assert_int_equal(come(&places, lanes, shop), 0);
    mr_places_fini(&places);
}

/* Random senders of random applications, coming and going: drivers stay even, and an application has a lane of each at most. */
static void drivers_have_equally_many_and_lanes_few_applications(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_places places;
    struct mr_place_lane lanes[LANES];
    bool has[LANES][2] = {{false}};

    MR_UNUSED(state);
    begin(&places, lanes, false);
    for (int i = 0; i < 1000; i++) {
        uint32_t app = (uint32_t)mr_test_random_below(&random, 2);

        has[come(&places, lanes, app ? shop : bank)][app] = true;
        assert_in_range(lanes[0].senders + lanes[2].senders + 1 - lanes[1].senders -
                            lanes[3].senders,
                        0, 2);
    }
    for (uint32_t app = 0; app < 2; app++) {
        assert_false(has[0][app] && has[2][app]);
        assert_false(has[1][app] && has[3][app]);
    }
    mr_places_fini(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_application_has_a_lane_of_each_driver),
        cmocka_unit_test(another_application_has_another_lane),
        cmocka_unit_test(a_lane_that_goes_takes_its_applications_along),
        cmocka_unit_test(by_sender_each_has_a_lane_while_there_are_any),
        cmocka_unit_test(a_lane_on_its_way_is_chosen_last),
        cmocka_unit_test(drivers_have_equally_many_and_lanes_few_applications)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
