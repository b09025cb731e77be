/* SPDX-License-Identifier: Apache-2.0 */
/* Joining, case by case: doubles, circles, call trees of one attach, limits. */
#include "pipeline/joiner.h"

#include <string.h>

#include "tests/unit/unit_test.h"

static struct mr_id id_of(uint64_t a, uint64_t b)
{
    return (struct mr_id){a + 1, b + 1};
}

static struct mr_part leaf(uint64_t number, uint64_t key)
{
    return (struct mr_part){.id = id_of(number, 1),
                            .path = id_of(number, 2),
                            .start_ns = 100,
                            .end_ns = 200,
                            .in = {id_of(key, 3), 100, MR_EDGE_MESSAGE}};
}

static struct mr_part sender(uint64_t number, const struct mr_part_edge *out,
                             uint32_t count)
{
    return (struct mr_part){.id = id_of(number, 1),
                            .path = id_of(number, 2),
                            .start_ns = 10,
                            .end_ns = 20,
                            .out = out,
                            .out_count = count};
}

static struct mr_part_edge edge(uint64_t key)
{
    return (struct mr_part_edge){id_of(key, 3), 15, MR_EDGE_MESSAGE};
}

static void test_a_part_that_comes_again_is_dropped(void **state)
{
    struct mr_joiner *joiner;
    struct mr_joiner_stats stats;
    struct mr_part part = leaf(1, 1);
    uint32_t slot;

    (void)state;
    assert_int_equal(mr_joiner_new(8, &joiner), MR_OK);
    assert_int_equal(mr_joiner_add(joiner, &part, 1, &slot), MR_OK);
    assert_int_not_equal(slot, MR_JOINER_NONE);
    assert_int_equal(mr_joiner_add(joiner, &part, 2, &slot), MR_OK);
    assert_int_equal(slot, MR_JOINER_NONE);
    mr_joiner_stats(joiner, &stats);
    assert_int_equal(stats.again, 1);
    assert_int_equal(stats.waiting, 1);
    mr_joiner_free(joiner);
}

/* Ends all that waits; how many traces there are of each status. */
static void end_all(struct mr_joiner *joiner, uint32_t statuses[MR_PART_STATUSES])
{
    struct mr_joined joined;

    while (mr_joiner_take(joiner, &joined))
        statuses[joined.status]++;
    (void)mr_joiner_end(joiner, UINT64_MAX);
    while (mr_joiner_take(joiner, &joined))
        statuses[joined.status]++;
}

/* Three parts, in any order, are one whole trace and an incomplete one. */
static void check_orders(const struct mr_part parts[3])
{
    static const int orders[][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}};

    for (size_t i = 0; i < 3; i++) {
        uint32_t statuses[MR_PART_STATUSES] = {0};
        struct mr_joiner *joiner;
        struct mr_joined joined;

        assert_int_equal(mr_joiner_new(8, &joiner), MR_OK);
        for (size_t j = 0; j < 3; j++) {
            assert_int_equal(mr_joiner_add(joiner, &parts[orders[i][j]], j, NULL), MR_OK);
            while (mr_joiner_take(joiner, &joined))
                statuses[joined.status]++;
        }
        end_all(joiner, statuses);
        assert_int_equal(statuses[MR_PART_OK], 1);
        assert_int_equal(statuses[MR_PART_INCOMPLETE], 1);
        mr_joiner_free(joiner);
    }
}

static void test_a_token_attached_twice_is_one_whole_trace_and_an_incomplete_one(
    void **state)
{
    const struct mr_part_edge out = edge(1);
    const struct mr_part parts[] = {sender(1, &out, 1), leaf(2, 1), leaf(3, 1)};

    (void)state;
    check_orders(parts);
}

static void test_a_send_told_by_two_parts_is_a_whole_trace_and_an_incomplete_one(
    void **state)
{
    const struct mr_part_edge out = edge(1);
    const struct mr_part parts[] = {sender(1, &out, 1), sender(2, &out, 1), leaf(3, 1)};

    (void)state;
    /* The edge of the second is gone with the whole one. */
    check_orders(parts);
}

static void test_a_double_counts_where_the_trace_ends(void **state)
{
    struct mr_part parts[] = {leaf(1, 1), leaf(2, 1), leaf(3, 1)}, given;
    uint32_t statuses[MR_PART_STATUSES] = {0};
    struct mr_joiner *below, *above;
    struct mr_joiner_stats stats;

    (void)state;
    assert_int_equal(mr_joiner_new(8, &below), MR_OK);
    assert_int_equal(mr_joiner_new(8, &above), MR_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mr_joiner_add(below, &parts[i], 1, NULL), MR_OK);
    while (mr_joiner_give(below, UINT64_MAX, &given))
        assert_int_equal(mr_joiner_add(above, &given, 1, NULL), MR_OK);
    mr_joiner_stats(below, &stats);
    assert_int_equal(stats.doubles, 0);
    end_all(above, statuses);
    assert_int_equal(statuses[MR_PART_INCOMPLETE], 3);
    mr_joiner_stats(above, &stats);
    assert_int_equal(stats.doubles, 2);
    mr_joiner_free(below);
    mr_joiner_free(above);
}

/* One below the other, each with every edge told as often as a part may. */
static void test_a_send_told_twice_by_a_part_leads_to_one_part(void **state)
{
    enum { DEEP = 4 };
    struct mr_part_edge out[DEEP][MR_PART_EDGES_MAX];
    struct mr_joiner *joiner;
    struct mr_joined joined;
    struct mr_joiner_stats stats;

    (void)state;
    assert_int_equal(mr_joiner_new(8, &joiner), MR_OK);
    for (uint64_t i = 0; i < DEEP; i++) {
        struct mr_part part = leaf(i + 1, i);

        for (uint32_t j = 0; j < MR_PART_EDGES_MAX; j++)
            out[i][j] = edge(i + 1);
        if (i == 0)
            part.in.kind = MR_EDGE_NONE;
        part.out = out[i];
        part.out_count = MR_PART_EDGES_MAX;
        assert_int_equal(mr_joiner_add(joiner, &part, 1, NULL), MR_OK);
    }
    assert_int_equal(mr_joiner_end(joiner, UINT64_MAX), 1);
    assert_true(mr_joiner_take(joiner, &joined));
    assert_int_equal(joined.status, MR_PART_INCOMPLETE);
    assert_int_equal(joined.part_count, DEEP);
    assert_int_equal(joined.edge_count, DEEP - 1);
    assert_int_equal(
        joined.node_count,
        2 * DEEP); /* beside each part, one that is missing; below the last, too */
    assert_false(mr_joiner_take(joiner, &joined));
    mr_joiner_stats(joiner, &stats);
    assert_int_equal(stats.doubles, DEEP * (MR_PART_EDGES_MAX - 1));
    assert_int_equal(stats.waiting, 0);
    mr_joiner_free(joiner);
}

static void test_parts_in_a_circle_are_incomplete_at_once(void **state)
{
    const struct mr_part_edge to_b = edge(1), to_a = edge(2), to_self = edge(3);
    struct mr_part a = leaf(1, 2), b = leaf(2, 1), alone = leaf(3, 3);
    struct mr_joiner *joiner;
    struct mr_joiner_stats stats;
    struct mr_joined joined;

    (void)state;
    a.out = &to_b;
    b.out = &to_a;
    alone.out = &to_self;
    a.out_count = b.out_count = alone.out_count = 1;
    assert_int_equal(mr_joiner_new(8, &joiner), MR_OK);
    assert_int_equal(mr_joiner_add(joiner, &b, 1, NULL), MR_OK);
    assert_int_equal(mr_joiner_add(joiner, &a, 1, NULL), MR_OK);
    assert_true(mr_joiner_take(joiner, &joined));
    assert_int_equal(joined.status, MR_PART_INCOMPLETE);
    assert_int_equal(joined.node_count,
                     4); /* no root, a, b, and a that is not repeated */
    assert_false(mr_joiner_take(joiner, &joined));
    assert_int_equal(mr_joiner_add(joiner, &alone, 1, NULL), MR_OK);
    assert_true(mr_joiner_take(joiner, &joined));
    assert_int_equal(joined.status, MR_PART_INCOMPLETE);
    assert_false(mr_joiner_take(joiner, &joined));
    mr_joiner_stats(joiner, &stats);
    assert_int_equal(stats.circles, 2);
    assert_int_equal(stats.waiting, 0);
    mr_joiner_free(joiner);
}

/* `count` call trees under one attach, each two nodes: itself and one that it sent to. */
static struct mr_id join_attached(uint64_t count, struct mr_joined_node nodes[8],
                                  struct mr_joined *joined)
{
    const struct mr_part_edge token = {id_of(1, 3), 15, MR_EDGE_HAND_OFF};
    struct mr_part root = sender(1, &token, 1);
    struct mr_joiner *joiner;

    assert_int_equal(mr_joiner_new(1024, &joiner), MR_OK);
    assert_int_equal(mr_joiner_add(joiner, &root, 1, NULL), MR_OK);
    for (uint64_t i = 0; i < count; i++) {
        struct mr_part_edge out[] = {edge(1000 + i), {id_of(2 + i, 3), 30, MR_EDGE_NEXT}};
        struct mr_part part = leaf(100 + i, 1 + i), sent = leaf(5000 + i, 1000 + i);

        part.path = id_of(100, 2);
        sent.path = id_of(5000, 2);
        part.in = (struct mr_part_edge){id_of(1 + i, 3), 40,
                                        i ? MR_EDGE_NEXT : MR_EDGE_HAND_OFF};
        part.out = out;
        part.out_count = i + 1 < count ? 2 : 1;
        assert_int_equal(mr_joiner_add(joiner, &sent, 1, NULL), MR_OK);
        assert_false(mr_joiner_take(joiner, joined));
        assert_int_equal(mr_joiner_add(joiner, &part, 1, NULL), MR_OK);
    }
    assert_true(mr_joiner_take(joiner, joined));
    assert_int_equal(joined->status, MR_PART_OK);
    assert_int_equal(joined->edge_count, 2 * count);
    for (uint32_t i = 0; i < joined->edge_count; i++) /* each from where it began */
        assert_int_equal(joined->edges[i].ns, joined->edges[i].place == 1   ? 25
                                              : joined->edges[i].place == 3 ? 10
                                                                            : 85);
    assert_true(joined->node_count <= 8);
    memcpy(nodes, joined->nodes, joined->node_count * sizeof(*nodes));
    mr_joiner_free(joiner);
    return joined->id;
}

static void test_call_trees_of_one_attach_stand_beside_each_other(void **state)
{
    static const uint32_t children[] = {2, 1, 0, 1, 0};
    struct mr_joined_node nodes[8];
    struct mr_joined joined;
    struct mr_id three = join_attached(3, nodes, &joined);

    (void)state;
    assert_int_equal(joined.node_count, 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(nodes[i].children, children[i]);
    assert_int_equal(nodes[1].kind, MR_EDGE_HAND_OFF);
    assert_int_equal(nodes[3].kind, MR_EDGE_NEXT);
    assert_true(nodes[3].flags & MR_JOINED_RUN);
    assert_true(mr_id_equal(join_attached(200, nodes, &joined), three));
    assert_int_equal(joined.node_count, 5);
}

/* As no worker makes them: a root that was followed, a part that was followed twice, a circle. */
static void test_edges_of_kind_next_that_are_forged_lose_nothing(void **state)
{
    const struct mr_part_edge out[] = {{id_of(1, 3), 15, MR_EDGE_NEXT},
                                       {id_of(2, 3), 15, MR_EDGE_NEXT}};
    const struct mr_part_edge more[] = {{id_of(3, 3), 15, MR_EDGE_NEXT},
                                        {id_of(4, 3), 15, MR_EDGE_NEXT}};
    const struct mr_part_edge round = {id_of(5, 3), 15, MR_EDGE_NEXT};
    struct mr_part root = sender(1, out, 2), twice = leaf(2, 1), self = leaf(9, 5);
    struct mr_joiner *joiner;
    struct mr_joined joined;

    (void)state;
    twice.out = more;
    twice.out_count = 2;
    self.out = &round;
    self.out_count = 1;
    assert_int_equal(mr_joiner_new(8, &joiner), MR_OK);
    assert_int_equal(mr_joiner_add(joiner, &root, 1, NULL), MR_OK);
    assert_int_equal(mr_joiner_add(joiner, &twice, 1, NULL), MR_OK);
    for (uint64_t key = 2; key <= 4; key++) {
        struct mr_part part = leaf(10 + key, key);

        assert_false(mr_joiner_take(joiner, &joined));
        assert_int_equal(mr_joiner_add(joiner, &part, 1, NULL), MR_OK);
    }
    assert_true(mr_joiner_take(joiner, &joined));
    assert_int_equal(joined.status, MR_PART_OK);
    assert_int_equal(joined.node_count, 5);
    assert_int_equal(joined.edge_count, 4);
    assert_int_equal(joined.nodes[0].children, 3);
    assert_false(mr_joiner_take(joiner, &joined));
    assert_int_equal(mr_joiner_add(joiner, &self, 1, NULL), MR_OK);
    assert_true(mr_joiner_take(joiner, &joined));
    assert_true(joined.is_circle);
    assert_int_equal(joined.node_count,
                     3); /* no root, itself, and beside it itself again */
    mr_joiner_free(joiner);
}

static void test_no_more_parts_than_the_limit(void **state)
{
    struct mr_joiner *joiner;
    struct mr_joined joined;
    struct mr_part part, given;

    (void)state;
    assert_int_equal(mr_joiner_new(4, &joiner), MR_OK);
    for (uint64_t i = 0; i < 4; i++) {
        part = leaf(i, i);
        assert_int_equal(mr_joiner_add(joiner, &part, i, NULL), MR_OK);
    }
    part = leaf(9, 9);
    assert_int_equal(mr_joiner_add(joiner, &part, 9, NULL), MR_ELIMIT);
    assert_true(mr_joiner_end_oldest(joiner));
    assert_true(mr_joiner_take(joiner, &joined));
    assert_true(mr_id_equal(joined.nodes[1].path, id_of(0, 2)));
    assert_false(mr_joiner_take(joiner, &joined));
    assert_int_equal(mr_joiner_add(joiner, &part, 9, NULL), MR_OK);
    assert_true(mr_joiner_give(joiner, 2, &given));
    assert_true(mr_id_equal(given.path, id_of(1, 2)));
    assert_false(mr_joiner_give(joiner, 2, &given));
    mr_joiner_free(joiner);
}

static void test_a_trace_too_large_for_a_shape_says_so(void **state)
{
    struct mr_part_edge out[MR_PART_EDGES_MAX];
    struct mr_joiner *joiner;
    struct mr_joined joined = {.status = MR_PART_INCOMPLETE};
    uint32_t taken = 0;
    uint64_t number = 1;
    struct mr_part root, part;

    (void)state;
    assert_int_equal(mr_joiner_new(8192, &joiner), MR_OK);
    for (uint64_t i = 0; i < MR_PART_EDGES_MAX; i++)
        out[i] = edge(i);
    root = sender(100000, out, MR_PART_EDGES_MAX);
    assert_int_equal(mr_joiner_add(joiner, &root, 1, NULL), MR_OK);
    for (uint64_t i = 0; i < MR_PART_EDGES_MAX; i++) {
        struct mr_part_edge more[8];

        for (uint64_t j = 0; j < 8; j++)
            more[j] = edge(1000 + i * 8 + j);
        part = leaf(number++, i);
        part.out = more;
        part.out_count = 8;
        assert_int_equal(mr_joiner_add(joiner, &part, 1, NULL), MR_OK);
    }
    for (uint64_t i = 0; i < MR_PART_EDGES_MAX * 8; i++) {
        part = leaf(number++, 1000 + i);
        assert_int_equal(mr_joiner_add(joiner, &part, 1, NULL), MR_OK);
        while (mr_joiner_take(joiner, &joined))
            taken++;
    }
    assert_int_equal(taken, 1);
    assert_int_equal(joined.status, MR_PART_OK);
    assert_int_equal(joined.node_count, 1);
    assert_true(joined.nodes[0].flags & MR_JOINED_LARGE);
    mr_joiner_free(joiner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_part_that_comes_again_is_dropped),
        cmocka_unit_test(
            test_a_token_attached_twice_is_one_whole_trace_and_an_incomplete_one),
        cmocka_unit_test(
            test_a_send_told_by_two_parts_is_a_whole_trace_and_an_incomplete_one),
        cmocka_unit_test(test_a_double_counts_where_the_trace_ends),
        cmocka_unit_test(test_a_send_told_twice_by_a_part_leads_to_one_part),
        cmocka_unit_test(test_parts_in_a_circle_are_incomplete_at_once),
        cmocka_unit_test(test_call_trees_of_one_attach_stand_beside_each_other),
        cmocka_unit_test(test_edges_of_kind_next_that_are_forged_lose_nothing),
        cmocka_unit_test(test_no_more_parts_than_the_limit),
        cmocka_unit_test(test_a_trace_too_large_for_a_shape_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
