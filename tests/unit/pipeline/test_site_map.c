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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_is_an_array),
        cmocka_unit_test(a_full_map_says_so_and_still_replaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
