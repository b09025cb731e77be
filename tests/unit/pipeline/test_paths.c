/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/paths.h"

static void children_are_merged_by_site(void **state)
{
    struct mr_paths paths;
    uint32_t base, outer, root, child;

    (void)state;
    assert_int_equal(mr_paths_init(&paths, 1000, MR_PATHS_DEPTH_MAX), MR_OK);
    base = mr_paths_base(&paths, 3, 0);
    outer = mr_paths_base(&paths, 3, MR_PATH_OUTER);
    assert_int_not_equal(base, outer);
    root = mr_paths_root(&paths, base, 7);
    child = mr_paths_child(&paths, root,
                           7); /* its own site again: recursion is a path of its own */
    assert_int_not_equal(root, child);
    assert_int_equal(mr_paths_child(&paths, root, 7), child);
    assert_int_not_equal(mr_paths_child(&paths, root, 8), child);
    assert_int_equal(mr_paths_child(&paths, root, 7), child);
    assert_int_equal(mr_paths_root(&paths, base, 7), root);
    assert_int_equal(mr_paths_base(&paths, 3, 0), base);
    assert_true(paths.nodes[root].flags & MR_PATH_ROOT);
    assert_false(paths.nodes[child].flags & MR_PATH_ROOT);
    assert_true(paths.nodes[mr_paths_find(&paths, outer, 7, 0)].flags & MR_PATH_OUTER);
    mr_paths_fini(&paths);
}

static void a_full_tree_gives_none_and_still_finds(void **state)
{
    struct mr_paths paths;
    uint32_t base, first = 0;

    (void)state;
    assert_int_equal(mr_paths_init(&paths, 5000, MR_PATHS_DEPTH_MAX), MR_OK);
    base = mr_paths_base(&paths, 0, 0);
    for (uint32_t i = 0; i < 6000; i++) {
        uint32_t path = mr_paths_child(&paths, base, i);

        first = i ? first : path;
        assert_int_equal(path == MR_PATH_NONE, i >= 4998);
    }
    assert_int_equal(mr_paths_child(&paths, base, 0), first);
    assert_int_equal(mr_paths_child(&paths, MR_PATH_NONE, 1), MR_PATH_NONE);
    mr_paths_fini(&paths);
}

static void what_is_kept_survives_with_everything_above_it(void **state)
{
    struct mr_paths paths;
    uint32_t map[64], base, a, b, c, other;

    (void)state;
    assert_int_equal(mr_paths_init(&paths, 1000, MR_PATHS_DEPTH_MAX), MR_OK);
    base = mr_paths_base(&paths, 0, 0);
    other = mr_paths_root(&paths, base, 9);
    a = mr_paths_root(&paths, base, 1);
    b = mr_paths_child(&paths, a, 2);
    (void)mr_paths_child(&paths, a, 4);
    c = mr_paths_child(&paths, b, 3);
    mr_paths_begin(&paths, c, 17);
    mr_paths_end(&paths, c);
    mr_paths_clear_touched(&paths);
    mr_paths_keep(&paths, c);
    mr_paths_forget(&paths, map);
    assert_int_equal(paths.count, 5);
    assert_int_equal(map[other], MR_PATH_NONE);
    assert_int_equal(mr_paths_base(&paths, 0, 0), map[base]);
    assert_int_equal(mr_paths_root(&paths, map[base], 1), map[a]);
    assert_int_equal(mr_paths_child(&paths, map[a], 2), map[b]);
    assert_int_equal(mr_paths_child(&paths, map[b], 3), map[c]);
    assert_int_equal(paths.count, 5);
    mr_paths_forget(&paths, map); /* marks were taken off: nothing is kept now */
    assert_int_equal(paths.count, 1);
    mr_paths_fini(&paths);
}

static void check_deepest(uint32_t depth_max)
{
    struct mr_paths paths;
    uint32_t base, path, above = 0;

    assert_int_equal(mr_paths_init(&paths, 100000, depth_max), MR_OK);
    base = mr_paths_base(&paths, 0, 0);
    path = mr_paths_root(&paths, base, 7);
    for (uint32_t depth = 2; depth <= depth_max; depth++) {
        above = path;
        path = mr_paths_child(&paths, above, 7);
        assert_int_not_equal(path, above);
    }
    assert_int_equal(paths.count, depth_max + 2);
    assert_int_equal(mr_paths_child(&paths, path, 7), path);
    assert_int_equal(mr_paths_child(&paths, path, 8), mr_paths_child(&paths, above, 8));
    assert_int_equal(paths.nodes[mr_paths_child(&paths, path, 8)].parent, above);
    assert_int_equal(paths.count, depth_max + 3);
    mr_paths_fini(&paths);
}

static void a_recursion_ends_in_one_path_beside_the_deepest(void **state)
{
    (void)state;
    check_deepest(MR_PATHS_DEPTH_MAX);
    check_deepest(1000);
    check_deepest(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_are_merged_by_site),
        cmocka_unit_test(a_full_tree_gives_none_and_still_finds),
        cmocka_unit_test(what_is_kept_survives_with_everything_above_it),
        cmocka_unit_test(a_recursion_ends_in_one_path_beside_the_deepest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
