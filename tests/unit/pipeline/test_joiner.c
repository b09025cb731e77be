/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joining against a naive model: random traces as trees, cut into parts, spread over random
 * joiners of two levels in random order, must come out as what the trees say.
 */
#include "pipeline/joiner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/ids.h"
#include "tests/unit/unit_test.h"

#define TEXT_SIZE 8192
#define PARTS_MAX 24
#define TRACES 40
#define ROUNDS 300
#define LANES 3

static uint64_t seed;

static uint64_t next_random(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> 33;
}

static uint64_t below(uint64_t limit)
{
    return next_random() % limit;
}

/* The naive model: a tree of parts, some of which are never sent. */
struct tree {
    struct mr_part part;
    struct mr_part_edge out[MR_PART_EDGES_MAX];
    uint32_t kids[8], kid_count; /* in the trace's array */
    bool is_lost;
};

struct trace {
    struct tree trees[PARTS_MAX];
    uint32_t count;
};

static struct mr_id id_of(uint64_t a, uint64_t b)
{
    return (struct mr_id){a + 1, b + 1};
}

static uint32_t grow(struct trace *trace, uint64_t number, uint32_t depth)
{
    uint32_t at = trace->count++;
    struct tree *tree = &trace->trees[at];
    uint64_t source = below(3);

    *tree = (struct tree){0};
    tree->part = (struct mr_part){.id = id_of(number << 8 | at, 7),
                                  .trace = id_of(number, 3),
                                  .path = id_of(below(3), 100),
                                  .node = id_of(below(2), 200),
                                  .source = id_of(source, 5),
                                  .start_ns = 1000000 + below(1000),
                                  .shift_ns = (int64_t)source * 100 - 100,
                                  .status = below(8) == 0 ? MR_PART_FAILED : MR_PART_OK,
                                  .flags = below(6) == 0 ? MR_PART_STUB : 0};
    tree->part.end_ns = tree->part.start_ns + below(5000);
    while (depth < 5 && tree->kid_count < 8 && trace->count < PARTS_MAX &&
           below(3) != 0) {
        uint32_t kid = grow(trace, number, depth + 1), edge = tree->kid_count;
        struct mr_part *below_it = &trace->trees[kid].part;

        tree->kids[tree->kid_count++] = kid;
        tree->out[edge] =
            (struct mr_part_edge){.key = mr_id_message(id_of(number, 9), kid + 1),
                                  .ns = tree->part.start_ns + below(100),
                                  .kind = (uint32_t)(1 + below(2))};
        below_it->in = tree->out[edge];
        below_it->in.ns = below_it->start_ns;
    }
    tree->part.out_count = tree->kid_count;
    return at;
}

static void put_part_text(const struct mr_id *path, const struct mr_id *node,
                          uint32_t flags, char *text)
{
    (void)snprintf(text + strlen(text), TEXT_SIZE - strlen(text),
                   "%" PRIu64 ".%" PRIu64 "%s%s(", path->hi, node->hi,
                   flags & MR_JOINED_STUB ? "s" : "",
                   flags & MR_JOINED_MISSING ? "?" : "");
}

/* What the tree below `at` comes to; siblings like the one before are a run. */
static void describe(const struct trace *trace, uint32_t at, char *text)
{
    const struct tree *tree = &trace->trees[at];
    char last[TEXT_SIZE] = "", one[TEXT_SIZE];
    bool is_run = false;

    put_part_text(&tree->part.path, &tree->part.node,
                  tree->part.flags & MR_PART_STUB ? MR_JOINED_STUB : 0, text);
    for (uint32_t i = 0; i < tree->kid_count; i++) {
        (void)snprintf(one, sizeof(one), "%u:", tree->out[i].kind);
        if (trace->trees[tree->kids[i]].is_lost)
            put_part_text(&(struct mr_id){0, 0}, &(struct mr_id){0, 0}, MR_JOINED_MISSING,
                          one);
        else
            describe(trace, tree->kids[i], one);
        if (trace->trees[tree->kids[i]].is_lost)
            strcat(one, ")");
        if (strcmp(one, last) == 0) {
            is_run = true;
            continue;
        }
        (void)strncat(text, last, TEXT_SIZE - strlen(text) - 4);
        (void)strcat(text, is_run ? "*" : "");
        (void)strcpy(last, one);
        is_run = false;
    }
    (void)strncat(text, last, TEXT_SIZE - strlen(text) - 4);
    (void)strcat(text, is_run ? "*)" : ")");
}

struct result {
    char text[TEXT_SIZE];
};

static uint64_t wall(const struct mr_part *part, uint64_t ns)
{
    return ns + (uint64_t)part->shift_ns;
}

/* Sum of edges, clamped ones, end and status of the component that begins at `at`. */
static void measure(const struct trace *trace, uint32_t at, uint64_t *sum, uint64_t *end,
                    uint32_t *clamped, bool *is_whole)
{
    const struct tree *tree = &trace->trees[at];

    if (wall(&tree->part, tree->part.end_ns) > *end)
        *end = wall(&tree->part, tree->part.end_ns);
    for (uint32_t i = 0; i < tree->kid_count; i++) {
        const struct tree *kid = &trace->trees[tree->kids[i]];
        bool is_one = mr_id_equal(kid->part.source, tree->part.source);
        uint64_t from = is_one ? tree->out[i].ns : wall(&tree->part, tree->out[i].ns);
        uint64_t to = is_one ? kid->part.in.ns : wall(&kid->part, kid->part.in.ns);

        if (kid->is_lost) {
            *is_whole = false;
            continue;
        }
        *sum += to > from ? to - from : 0;
        *clamped += to < from;
        measure(trace, tree->kids[i], sum, end, clamped, is_whole);
    }
}

/* Each part that is there, and whose parent is not, is the top of a trace of its own. */
static uint32_t expect(const struct trace *trace, struct result *results)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < trace->count; i++) {
        const struct tree *tree = &trace->trees[i];
        uint64_t sum = 0, end = 0;
        uint32_t clamped = 0, parent = UINT32_MAX;
        bool is_whole = i == 0;
        char text[TEXT_SIZE] = "";

        for (uint32_t j = 0; j < trace->count; j++)
            for (uint32_t k = 0; k < trace->trees[j].kid_count; k++)
                if (trace->trees[j].kids[k] == i)
                    parent = j;
        if (tree->is_lost || (parent != UINT32_MAX && !trace->trees[parent].is_lost))
            continue;
        describe(trace, i, text);
        measure(trace, i, &sum, &end, &clamped, &is_whole);
        (void)snprintf(results[count++].text, TEXT_SIZE,
                       "%.6000s status %u took %" PRIu64 " edges %" PRIu64 " clamped %u",
                       text, is_whole ? tree->part.status : MR_PART_INCOMPLETE,
                       end - wall(&tree->part, tree->part.start_ns), sum, clamped);
    }
    return count;
}

/* The nodes of a joined shape as the naive model tells them. */
static uint32_t read_nodes(const struct mr_joined_node *nodes, uint32_t at, char *text)
{
    uint32_t next = at + 1;

    put_part_text(&nodes[at].path, &nodes[at].node, nodes[at].flags, text);
    for (uint32_t i = 0; i < nodes[at].children; i++) {
        bool is_run = nodes[next].flags & MR_JOINED_RUN;

        (void)snprintf(text + strlen(text), TEXT_SIZE - strlen(text),
                       "%u:", nodes[next].kind);
        next = read_nodes(nodes, next, text);
        (void)strcat(text, is_run ? "*" : "");
    }
    (void)strcat(text, ")");
    return next;
}

static void read_joined(const struct mr_joined *joined, struct result *result)
{
    bool has_no_root = joined->nodes[0].flags & MR_JOINED_MISSING;
    uint64_t sum = 0;
    uint32_t clamped = 0;
    char text[TEXT_SIZE] = "";

    assert_true(mr_id_equal(mr_joined_id(joined->nodes, joined->node_count), joined->id));
    assert_int_equal(read_nodes(joined->nodes, has_no_root ? 1 : 0, text),
                     joined->node_count);
    for (uint32_t i = 0; i < joined->edge_count; i++) {
        assert_true(joined->edges[i].place > 0 &&
                    joined->edges[i].place < joined->node_count);
        sum += joined->edges[i].ns;
        clamped += joined->edges[i].is_clamped;
    }
    (void)snprintf(result->text, TEXT_SIZE,
                   "%.6000s status %u took %" PRIu64 " edges %" PRIu64 " clamped %u",
                   text, joined->status, joined->took_ns, sum, clamped);
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct result *)a)->text, ((const struct result *)b)->text);
}

struct outcome {
    struct result *results;
    uint32_t count;
};

static void take_all(struct mr_joiner *joiner, struct outcome *outcome)
{
    struct mr_joined joined;

    while (mr_joiner_take(joiner, &joined)) {
        assert_true(outcome->count < TRACES * PARTS_MAX);
        read_joined(&joined, &outcome->results[outcome->count++]);
    }
}

static void add(struct mr_joiner *joiner, const struct mr_part *part, uint64_t now_ns,
                struct outcome *outcome)
{
    assert_int_equal(mr_joiner_add(joiner, part, now_ns, NULL), MR_OK);
    take_all(joiner, outcome);
}

/* What waits below goes up. */
static void pass_on(struct mr_joiner *from, struct mr_joiner *to, uint64_t before_ns,
                    struct outcome *outcome)
{
    struct mr_part part;

    while (mr_joiner_give(from, before_ns, &part))
        add(to, &part, before_ns - 1, outcome);
}

static void shuffle(const struct mr_part **parts, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = (uint32_t)below(i);
        const struct mr_part *kept = parts[i - 1];

        parts[i - 1] = parts[j];
        parts[j] = kept;
    }
}

static void one_round(struct trace *traces, struct outcome *wanted, struct outcome *got)
{
    const struct mr_part *parts[TRACES * PARTS_MAX];
    struct mr_joiner *lanes[LANES], *top;
    uint32_t count = 0;

    wanted->count = got->count = 0;
    for (uint32_t i = 0; i < TRACES; i++) {
        traces[i].count = 0;
        (void)grow(&traces[i], i, 0);
        for (uint32_t j = 0; j < traces[i].count; j++) {
            traces[i].trees[j].is_lost = below(12) == 0;
            traces[i].trees[j].part.out = traces[i].trees[j].out;
            /* A part alone, without an edge, is none. */
            if (traces[i].count == 1)
                traces[i].trees[j].is_lost = false;
            if (!traces[i].trees[j].is_lost)
                parts[count++] = &traces[i].trees[j].part;
        }
        wanted->count += expect(&traces[i], wanted->results + wanted->count);
    }
    shuffle(parts, count);
    for (uint32_t i = 0; i < LANES; i++)
        assert_int_equal(mr_joiner_new(4096, &lanes[i]), MR_OK);
    assert_int_equal(mr_joiner_new(4096, &top), MR_OK);
    for (uint32_t i = 0; i < count; i++) {
        add(lanes[below(LANES)], parts[i], i, got);
        if (below(20) == 0)
            pass_on(lanes[below(LANES)], top, i > 10 ? i - below(10) : i, got);
    }
    for (uint32_t i = 0; i < LANES; i++)
        pass_on(lanes[i], top, UINT64_MAX, got);
    (void)mr_joiner_end(top, UINT64_MAX);
    take_all(top, got);
    for (uint32_t i = 0; i < LANES; i++)
        mr_joiner_free(lanes[i]);
    mr_joiner_free(top);
}

static void test_any_order_and_place_gives_what_the_trees_say(void **state)
{
    struct trace *traces = calloc(TRACES, sizeof(*traces));
    struct outcome wanted = {calloc(TRACES * PARTS_MAX, sizeof(struct result)), 0};
    struct outcome got = {calloc(TRACES * PARTS_MAX, sizeof(struct result)), 0};

    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        seed = round * 977 + 5;
        one_round(traces, &wanted, &got);
        qsort(wanted.results, wanted.count, sizeof(struct result), compare);
        qsort(got.results, got.count, sizeof(struct result), compare);
        if (got.count != wanted.count)
            fail_msg("round %" PRIu64 ": %u traces, not %u", round, got.count,
                     wanted.count);
        for (uint32_t i = 0; i < got.count; i++)
            if (strcmp(got.results[i].text, wanted.results[i].text) != 0)
                fail_msg("round %" PRIu64 ":\n  got    %s\n  wanted %s", round,
                         got.results[i].text, wanted.results[i].text);
    }
    free(traces);
    free(wanted.results);
    free(got.results);
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

static void test_a_token_attached_twice_is_one_whole_trace_and_an_incomplete_one(
    void **state)
{
    const struct mr_part_edge out = edge(1);
    struct mr_part parts[] = {sender(1, &out, 1), leaf(2, 1), leaf(3, 1)};
    int orders[][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}};

    (void)state;
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
        (void)mr_joiner_end(joiner, UINT64_MAX);
        while (mr_joiner_take(joiner, &joined))
            statuses[joined.status]++;
        assert_int_equal(statuses[MR_PART_OK], 1);
        assert_int_equal(statuses[MR_PART_INCOMPLETE], 1);
        mr_joiner_free(joiner);
    }
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

static void test_a_send_told_by_two_parts_is_a_whole_trace_and_an_incomplete_one(
    void **state)
{
    const struct mr_part_edge out = edge(1);
    struct mr_part parts[] = {sender(1, &out, 1), sender(2, &out, 1), leaf(3, 1)};
    int orders[][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}};

    (void)state;
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
        end_all(joiner, statuses); /* the edge of the second is gone with the whole one */
        assert_int_equal(statuses[MR_PART_OK], 1);
        assert_int_equal(statuses[MR_PART_INCOMPLETE], 1);
        mr_joiner_free(joiner);
    }
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
        cmocka_unit_test(test_any_order_and_place_gives_what_the_trees_say),
        cmocka_unit_test(test_a_part_that_comes_again_is_dropped),
        cmocka_unit_test(
            test_a_token_attached_twice_is_one_whole_trace_and_an_incomplete_one),
        cmocka_unit_test(
            test_a_send_told_by_two_parts_is_a_whole_trace_and_an_incomplete_one),
        cmocka_unit_test(test_a_send_told_twice_by_a_part_leads_to_one_part),
        cmocka_unit_test(test_parts_in_a_circle_are_incomplete_at_once),
        cmocka_unit_test(test_no_more_parts_than_the_limit),
        cmocka_unit_test(test_a_trace_too_large_for_a_shape_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
