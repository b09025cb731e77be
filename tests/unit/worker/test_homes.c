/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/homes.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

static struct mr_id id_of(uint32_t number)
{
    return (struct mr_id){number, ~(uint64_t)number};
}

static void who_returns_finds_its_lane(void **state)
{
    struct mr_homes homes;
    uint32_t lane = 9;

    MR_UNUSED(state);
    mr_homes_init(&homes);
    assert_false(mr_homes_find(&homes, id_of(1), &lane));
    mr_homes_put(&homes, id_of(1), 0);
    mr_homes_put(&homes, id_of(2), 3);
    assert_true(mr_homes_find(&homes, id_of(1), &lane));
    assert_int_equal(lane, 0);
    assert_true(mr_homes_find(&homes, id_of(2), &lane));
    assert_int_equal(lane, 3);
    mr_homes_fini(&homes);
}

/* Three generations of senders pass; one of the first returns now and then, another does not. */
static void the_oldest_are_forgotten_unless_they_return(void **state)
{
    struct mr_homes homes;
    uint32_t lane;

    MR_UNUSED(state);
    mr_homes_init(&homes);
    mr_homes_put(&homes, id_of(1), 5);
    mr_homes_put(&homes, id_of(2), 6);
    for (uint32_t i = 3; i < 3 * MR_HOMES_MAX; i++) {
        mr_homes_put(&homes, id_of(i), i % 4);
        if (i % 1000 == 0)
            assert_true(mr_homes_find(&homes, id_of(1), &lane) && lane == 5);
    }
    assert_true(mr_homes_find(&homes, id_of(1), &lane));
    assert_int_equal(lane, 5);
    assert_false(mr_homes_find(&homes, id_of(2), &lane));
    assert_true(mr_homes_find(&homes, id_of(3 * MR_HOMES_MAX - 1), &lane));
    assert_true(homes.young.count <= MR_HOMES_MAX && homes.old.count <= MR_HOMES_MAX);
    mr_homes_fini(&homes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_returns_finds_its_lane),
        cmocka_unit_test(the_oldest_are_forgotten_unless_they_return),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
