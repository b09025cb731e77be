/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <stdlib.h>

#include "pipeline/site_map.h"

#define WIRES 20000u

static void a_map_is_an_array(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    uint32_t *expected = calloc(WIRES, sizeof(*expected));
    struct mr_site_map map;

    (void)state;
    assert_non_null(expected);
    mr_site_map_init(&map, WIRES);
    assert_int_equal(mr_site_map_find(&map, 5), MR_SITE_MAP_NONE);
    for (uint32_t i = 0; i < 60000; i++) {
        uint32_t wire = (uint32_t)mr_test_random_below(&random, WIRES);

        expected[wire] = 1 + (uint32_t)mr_test_random_below(&random, 1000);
        assert_int_equal(mr_site_map_put(&map, wire << 14, expected[wire]), MR_OK);
    }
    for (uint32_t wire = 0; wire < WIRES; wire++) {
        uint64_t slot = mr_site_map_find(&map, wire << 14);

        if (expected[wire])
            assert_int_equal((uint32_t)slot, expected[wire]);
        else
            assert_int_equal(slot, MR_SITE_MAP_NONE);
    }
    mr_site_map_clear(&map);
    assert_int_equal(mr_site_map_find(&map, 1 << 14), MR_SITE_MAP_NONE);
    mr_site_map_fini(&map);
    free(expected);
}

static void a_full_map_says_so_and_still_replaces(void **state)
{
    struct mr_site_map map;

    (void)state;
    mr_site_map_init(&map, 2);
    assert_int_equal(mr_site_map_put(&map, 1, 10), MR_OK);
    assert_int_equal(mr_site_map_put(&map, 2, 20), MR_OK);
    assert_int_equal(mr_site_map_put(&map, 3, 30), MR_ELIMIT);
    assert_int_equal(mr_site_map_put(&map, 2, 21), MR_OK);
    assert_int_equal((uint32_t)mr_site_map_find(&map, 2), 21);
    assert_int_equal(mr_site_map_find(&map, 3), MR_SITE_MAP_NONE);
    mr_site_map_fini(&map);
}

/* At most `count` wire sites with the same two places where maps shift by `shift`; how many. */
static uint32_t find_meeting(uint32_t shift, uint32_t *wires, uint32_t count)
{
    uint32_t found = 1;

    wires[0] = 0x1000010;
    for (uint32_t wire = wires[0] + 1; wire < 1u << 30 && found < count; wire++)
        if (mr_site_map_place(wire, shift) == mr_site_map_place(wires[0], shift) &&
            mr_site_map_other_place(wire, shift) ==
                mr_site_map_other_place(wires[0], shift))
            wires[found++] = wire;
    return found;
}

static void sites_that_meet_in_both_places_make_a_map_grow(void **state)
{
    uint32_t wires[40], count = find_meeting(22, wires, MR_ARRAY_COUNT(wires));
    struct mr_site_map map;

    (void)state;
    assert_int_equal(count, MR_ARRAY_COUNT(wires));
    mr_site_map_init(&map, WIRES);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(mr_site_map_put(&map, wires[i], i), MR_OK);
        for (uint32_t j = 0; j < count; j++)
            assert_int_equal(mr_site_map_find(&map, wires[j]),
                             j <= i ? (uint64_t)wires[j] << 32 | j : MR_SITE_MAP_NONE);
    }
    assert_true(map.mask > 1023);
    mr_site_map_fini(&map);
}

/* In 2^16 slots no three sites have both places in common: differences were tried one by one. */
static void sites_that_meet_in_large_maps_have_places_too(void **state)
{
    uint32_t wires[4], count = find_meeting(32 - 14, wires, MR_ARRAY_COUNT(wires));
    struct mr_site_map map;

    (void)state;
    assert_int_equal(count, MR_ARRAY_COUNT(wires));
    mr_site_map_init(&map, WIRES);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(mr_site_map_put(&map, 0x2000000 + i, i), MR_OK);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(mr_site_map_put(&map, wires[i], i), MR_OK);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal((uint32_t)mr_site_map_find(&map, wires[i]), i);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal((uint32_t)mr_site_map_find(&map, 0x2000000 + i), i);
    assert_in_range(map.mask, 1u << 14, (1u << 16) - 1);
    mr_site_map_fini(&map);
}

/* A source may have its map cleared at each chunk, and have grown it before: that must not take time by its largest size. */
static void clearing_a_map_that_is_almost_empty_makes_it_small(void **state)
{
    struct mr_site_map map;

    (void)state;
    mr_site_map_init(&map, WIRES);
    for (uint32_t i = 0; i < WIRES; i++)
        assert_int_equal(mr_site_map_put(&map, 0x2000000 + i, i), MR_OK);
    assert_true(map.mask > WIRES);
    mr_site_map_clear(&map); /* it is in use: what comes now will need as much */
    assert_true(map.mask > WIRES);
    assert_int_equal(mr_site_map_put(&map, 0x2000000, 7), MR_OK);
    assert_int_equal((uint32_t)mr_site_map_find(&map, 0x2000000), 7);
    mr_site_map_clear(&map);
    assert_int_equal(mr_site_map_find(&map, 0x2000000), MR_SITE_MAP_NONE);
    assert_int_equal(mr_site_map_put(&map, 0x2000000, 8), MR_OK);
    assert_true(map.mask < WIRES);
    assert_int_equal((uint32_t)mr_site_map_find(&map, 0x2000000), 8);
    mr_site_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_is_an_array),
        cmocka_unit_test(a_full_map_says_so_and_still_replaces),
        cmocka_unit_test(sites_that_meet_in_both_places_make_a_map_grow),
        cmocka_unit_test(sites_that_meet_in_large_maps_have_places_too),
        cmocka_unit_test(clearing_a_map_that_is_almost_empty_makes_it_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
