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

/* `count` wire sites that have both places in common where keys and size are those of `map`. */
static void find_meeting(const struct mr_site_map *map, uint32_t *wires, uint32_t count)
{
    const uint32_t first = 0x1000010;
    uint32_t found = 1;

    wires[0] = first;
    for (uint32_t wire = first + 1; wire < 1u << 30 && found < count; wire++)
        if (mr_site_map_place(wire, map->key, map->shift) ==
                mr_site_map_place(first, map->key, map->shift) &&
            mr_site_map_place(wire, map->other_key, map->shift) ==
                mr_site_map_place(first, map->other_key, map->shift))
            wires[found++] = wire;
    assert_int_equal(found, count);
}

static void put_and_find(struct mr_site_map *map, const uint32_t *wires, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(mr_site_map_put(map, wires[i], i), MR_OK);
        for (uint32_t j = 0; j < count; j++)
            assert_int_equal(mr_site_map_find(map, wires[j]),
                             j <= i ? (uint64_t)wires[j] << 32 | j : MR_SITE_MAP_NONE);
    }
}

/* A map whose keys are known: it has slots, and nothing but the site 1. */
static void begin(struct mr_site_map *map)
{
    mr_site_map_init(map, WIRES);
    assert_int_equal(mr_site_map_put(map, 1, 1), MR_OK);
    assert_int_equal(map->mask, 1023);
}

static void sites_that_meet_in_both_places_get_other_keys(void **state)
{
    struct mr_site_map map;
    uint32_t wires[40], key, other_key;

    (void)state;
    begin(&map);
    key = map.key;
    other_key = map.other_key;
    find_meeting(&map, wires, MR_ARRAY_COUNT(wires));
    put_and_find(&map, wires, MR_ARRAY_COUNT(wires));
    assert_true(map.key != key || map.other_key != other_key);
    assert_int_equal(map.mask, 1023); /* and no more room than any others */
    assert_int_equal((uint32_t)mr_site_map_find(&map, 1), 1);
    mr_site_map_fini(&map);
}

/* Keys are a map's own: what was made for one is nothing special to another. */
static void sites_that_meet_in_one_map_do_not_in_another(void **state)
{
    struct mr_site_map one, other;
    uint32_t wires[40];

    (void)state;
    begin(&one);
    begin(&other);
    assert_true(one.key != other.key || one.other_key != other.other_key);
    find_meeting(&one, wires, MR_ARRAY_COUNT(wires));
    put_and_find(&other, wires, MR_ARRAY_COUNT(wires));
    assert_int_equal(other.mask, 1023);
    mr_site_map_fini(&one);
    mr_site_map_fini(&other);
}

/* Addresses of functions go in steps; half of the slots are enough for them, whatever the keys. */
static void sites_in_steps_need_no_more_room_than_others(void **state)
{
    (void)state;
    for (uint32_t step = 1; step <= 64; step++) {
        struct mr_site_map map;

        mr_site_map_init(&map, 1u << 20);
        for (uint32_t i = 0; i < 16384; i++)
            assert_int_equal(mr_site_map_put(&map, (1u << 24) + i * step, i), MR_OK);
        for (uint32_t i = 0; i < 16384; i++)
            assert_int_equal((uint32_t)mr_site_map_find(&map, (1u << 24) + i * step), i);
        assert_in_range(map.mask, 32767, 65535);
        mr_site_map_fini(&map);
    }
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
        cmocka_unit_test(sites_that_meet_in_both_places_get_other_keys),
        cmocka_unit_test(sites_that_meet_in_one_map_do_not_in_another),
        cmocka_unit_test(sites_in_steps_need_no_more_room_than_others),
        cmocka_unit_test(clearing_a_map_that_is_almost_empty_makes_it_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
