/* SPDX-License-Identifier: Apache-2.0 */
#include "../unit_test.h"

#include <string.h>

#include "pipeline/shapes.h"
#include "pipeline/shapes_set.h"

static struct mr_sites *make_sites(void)
{
    struct mr_sites *sites;
    const struct mr_site_module *module;

    assert_int_equal(mr_sites_new(100, &sites), MR_OK);
    module = mr_sites_module(sites, "/a", mr_span_of("x", 1));
    for (uint32_t i = 1; i < 50; i++)
        assert_int_equal(mr_sites_add_function(sites, module, i), i);
    return sites;
}

static void equal_structures_are_one_node_with_the_id_of_the_format(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;
    uint64_t children[3];
    uint32_t leaf, node;
    struct mr_node_child wire[2];
    struct mr_buffer scratch;
    struct mr_id id;

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_FOLDED, 1000, 1000),
                     MR_OK);
    leaf = mr_nodes_intern(&nodes, 1, NULL, 0);
    assert_int_equal(mr_nodes_intern(&nodes, 1, NULL, 0), leaf);
    children[0] = leaf;
    children[1] = mr_nodes_intern(&nodes, 2, NULL, 0);
    node = mr_nodes_intern(&nodes, 3, children, 2);
    assert_int_equal(mr_nodes_intern(&nodes, 3, children, 2), node);
    assert_int_not_equal(mr_nodes_intern(&nodes, 3, children, 1), node);
    assert_int_not_equal(mr_nodes_intern(&nodes, 4, children, 2), node);
    mr_buffer_init(&scratch, 1000);
    wire[0] = (struct mr_node_child){nodes.items[children[0]].id, 0};
    wire[1] = (struct mr_node_child){nodes.items[children[1]].id, 0};
    assert_int_equal(mr_id_node(MR_EXACTNESS_FOLDED, mr_sites_at(sites, 3)->id, wire, 2,
                                &scratch, &id),
                     MR_OK);
    assert_true(mr_id_equal(nodes.items[node].id, id));
    mr_buffer_fini(&scratch);
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

static void a_set_has_neither_order_nor_doubles(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;
    uint64_t a[4], b[2];
    uint32_t x, y;

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_SET, 1000, 1000), MR_OK);
    x = mr_nodes_intern(&nodes, 1, NULL, 0);
    y = mr_nodes_intern(&nodes, 2, NULL, 0);
    memcpy(a, (uint64_t[]){x, y, x, x}, sizeof(a));
    memcpy(b, (uint64_t[]){y, x}, sizeof(b));
    assert_int_equal(mr_nodes_intern(&nodes, 3, a, 4), mr_nodes_intern(&nodes, 3, b, 2));
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

/* f(a(x) a(y)), f(a(x y)), f(a(x) a(y) a(x)): of each, the paths a, a/x and a/y were touched. */
static void a_set_has_one_child_of_a_site_that_was_wherever_they_were(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;
    uint32_t x, y, of_x, of_y, of_both, of_none, set;

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_SET, 1000, 1000), MR_OK);
    x = mr_nodes_intern(&nodes, 1, NULL, 0);
    y = mr_nodes_intern(&nodes, 2, NULL, 0);
    of_none = mr_nodes_intern(&nodes, 4, NULL, 0);
    of_x = mr_nodes_intern(&nodes, 4, (uint64_t[]){x}, 1);
    of_y = mr_nodes_intern(&nodes, 4, (uint64_t[]){y}, 1);
    of_both = mr_nodes_intern(&nodes, 4, (uint64_t[]){y, x}, 2);
    set = mr_nodes_intern(&nodes, 5, (uint64_t[]){of_both}, 1);
    assert_int_equal(mr_nodes_intern(&nodes, 5, (uint64_t[]){of_x, of_y}, 2), set);
    assert_int_equal(mr_nodes_intern(&nodes, 5, (uint64_t[]){of_y, of_x, of_y}, 3), set);
    assert_int_equal(mr_nodes_intern(&nodes, 5, (uint64_t[]){of_none, of_both, of_x}, 3),
                     set);
    assert_int_not_equal(mr_nodes_intern(&nodes, 5, (uint64_t[]){of_x, of_none}, 2), set);
    assert_int_equal(nodes.items[set].count, 1);
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

/* Two recursions, of DEPTH and DEPTH + 1 levels: the shorter one is within the longer one, as far down as is looked. */
static void sets_are_united_to_a_bound_of_levels(void **state)
{
    enum { DEPTH = 3 * MR_SET_DEPTH_MAX };
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;
    uint32_t level[DEPTH + 1], set, other;

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_SET, 4 * DEPTH, 8 * DEPTH),
                     MR_OK);
    level[0] = mr_nodes_intern(&nodes, 1, NULL, 0);
    for (uint32_t i = 1; i <= DEPTH; i++)
        level[i] = mr_nodes_intern(&nodes, 1, (uint64_t[]){level[i - 1]}, 1);
    set = mr_nodes_intern(&nodes, 2, (uint64_t[]){level[MR_SET_DEPTH_MAX - 1]}, 1);
    assert_int_equal(mr_nodes_intern(&nodes, 2,
                                     (uint64_t[]){level[MR_SET_DEPTH_MAX - 2],
                                                  level[MR_SET_DEPTH_MAX - 1]},
                                     2),
                     set);
    set = mr_nodes_intern(&nodes, 2, (uint64_t[]){level[DEPTH], level[DEPTH - 1]}, 2);
    other = mr_nodes_intern(&nodes, 2, (uint64_t[]){level[DEPTH - 1], level[DEPTH]}, 2);
    assert_int_not_equal(set, MR_NODE_NONE);
    assert_int_equal(set, other);
    assert_int_equal(nodes.items[set].count, 1);
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

/* Without room the list stays as it was, so that it can be tried again. */
static void a_set_without_room_is_left_as_it_was(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;
    uint64_t list[3], before[3];
    uint32_t leaf[14], number = 0;

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_SET, 16, 1000), MR_OK);
    for (uint32_t i = 0; i < 12; i++)
        leaf[i] = mr_nodes_intern(&nodes, 1 + i, NULL, 0);
    for (uint32_t i = 0; i < 3; i++)
        list[i] = before[i] = mr_nodes_intern(&nodes, 20, (uint64_t[]){leaf[i]}, 1);
    number = mr_nodes_intern(&nodes, 21, list, 3);
    assert_int_equal(number, MR_NODE_NONE);
    assert_false(nodes.is_refused);
    assert_memory_equal(list, before, sizeof(list));
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

static void a_full_table_gives_none_and_still_finds(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_FOLDED, 16, 1000), MR_OK);
    for (uint32_t i = 1; i < 30; i++)
        assert_int_equal(mr_nodes_intern(&nodes, i, NULL, 0), i < 16 ? i : MR_NODE_NONE);
    assert_int_equal(mr_nodes_intern(&nodes, 7, NULL, 0), 7);
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

static void what_is_kept_survives_with_everything_below_it(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;
    uint32_t map[16], leaf, other, middle, top;
    uint64_t child;
    struct mr_id id;

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_EXACT, 1000, 1000), MR_OK);
    other = mr_nodes_intern(&nodes, 9, NULL, 0);
    leaf = mr_nodes_intern(&nodes, 1, NULL, 0);
    child = UINT64_C(5) << 32 | leaf;
    middle = mr_nodes_intern(&nodes, 2, &child, 1);
    child = UINT64_C(1) << 32 | middle;
    top = mr_nodes_intern(&nodes, 3, &child, 1);
    id = nodes.items[top].id;
    mr_nodes_keep(&nodes, top);
    mr_nodes_forget(&nodes, map);
    assert_int_equal(nodes.count, 4);
    assert_int_equal(map[other], MR_NODE_NONE);
    assert_true(mr_id_equal(nodes.items[map[top]].id, id));
    child = UINT64_C(5) << 32 | map[leaf];
    assert_int_equal(mr_nodes_intern(&nodes, 2, &child, 1), map[middle]);
    child = UINT64_C(1) << 32 | map[middle];
    assert_int_equal(mr_nodes_intern(&nodes, 3, &child, 1), map[top]);
    mr_nodes_forget(&nodes, map);
    assert_int_equal(nodes.count, 1);
    assert_int_equal(nodes.child_count, 0);
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

static void past_the_budget_a_new_node_is_refused_until_it_is_met_again(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_node_budget budget;
    struct mr_nodes nodes;

    (void)state;
    mr_node_budget_init(&budget, 0, 2);
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_FOLDED, 64, 64), MR_OK);
    nodes.budget = &budget;
    assert_int_equal(mr_nodes_intern(&nodes, 1, NULL, 0), 1);
    assert_int_equal(mr_nodes_intern(&nodes, 2, NULL, 0), MR_NODE_NONE);
    assert_true(nodes.is_refused);
    assert_int_equal(mr_nodes_intern(&nodes, 1, NULL, 0), 1); /* known */
    assert_int_equal(mr_nodes_intern(&nodes, 2, NULL, 0), 2);
    assert_int_equal(mr_nodes_intern(&nodes, 3, NULL, 0), MR_NODE_NONE);
    assert_int_equal(mr_nodes_intern(&nodes, 3, NULL, 0), MR_NODE_NONE);
    assert_true(nodes.is_refused);
    mr_nodes_fini(&nodes);
    mr_node_budget_fini(&budget);
    mr_sites_free(sites);
}

#define FLOOD_LEAVES 40u
#define FLOOD_LISTS (FLOOD_LEAVES * FLOOD_LEAVES * FLOOD_LEAVES * FLOOD_LEAVES)
#define FLOOD_BITS 0xfffu
#define FLOOD_NODES 3000u
#define FLOOD_RUN 100u /* of slots that are taken; chance makes some ten */

/* List `number` of four leaves. */
static void make_list(const uint64_t *leaves, uint32_t number, uint64_t list[4])
{
    for (uint32_t i = 0; i < 4; i++, number /= FLOOD_LEAVES)
        list[i] = leaves[number % FLOOD_LEAVES];
}

static uint32_t longest_run(const struct mr_nodes *nodes)
{
    uint32_t run = 0, longest = 0;

    for (uint32_t i = 0; i <= nodes->slot_mask; i++) {
        run = nodes->slots[i] == MR_NODE_NONE ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Lists whose hashes end alike, as a sender would choose them that wants every search to be long. */
static void shapes_whose_hashes_end_alike_do_not_meet(void **state)
{
    struct mr_sites *sites = make_sites();
    struct mr_nodes nodes;
    uint64_t leaves[FLOOD_LEAVES], list[4];

    (void)state;
    assert_int_equal(mr_nodes_init(&nodes, sites, MR_EXACTNESS_FOLDED, 4096, 16384),
                     MR_OK);
    for (uint32_t i = 0; i < FLOOD_LEAVES; i++)
        leaves[i] = mr_nodes_intern(&nodes, 1 + i, NULL, 0);
    for (uint32_t i = 0; i < 9 * FLOOD_LISTS && nodes.count < FLOOD_NODES; i++) {
        make_list(leaves, i / 9, list);
        if ((mr_node_hash(&nodes, 1 + i % 9, list, 4) & FLOOD_BITS) == 0)
            assert_int_not_equal(mr_nodes_intern(&nodes, 1 + i % 9, list, 4),
                                 MR_NODE_NONE);
    }
    assert_int_equal(nodes.count, FLOOD_NODES);
    assert_true(longest_run(&nodes) < FLOOD_RUN);
    mr_nodes_fini(&nodes);
    mr_sites_free(sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_structures_are_one_node_with_the_id_of_the_format),
        cmocka_unit_test(a_set_has_neither_order_nor_doubles),
        cmocka_unit_test(a_set_has_one_child_of_a_site_that_was_wherever_they_were),
        cmocka_unit_test(sets_are_united_to_a_bound_of_levels),
        cmocka_unit_test(a_set_without_room_is_left_as_it_was),
        cmocka_unit_test(a_full_table_gives_none_and_still_finds),
        cmocka_unit_test(past_the_budget_a_new_node_is_refused_until_it_is_met_again),
        cmocka_unit_test(shapes_whose_hashes_end_alike_do_not_meet),
        cmocka_unit_test(what_is_kept_survives_with_everything_below_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
