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
                                  .kind = (uint32_t)(1 + below(3))};
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

/* Siblings like the one before are a run. */
struct siblings {
    char *text; /* of those before the last */
    char last[TEXT_SIZE];
    bool is_run;
};

static void put_last(struct siblings *siblings)
{
    size_t size = strlen(siblings->text);

    (void)snprintf(siblings->text + size, TEXT_SIZE - size, "%s%s", siblings->last,
                   siblings->is_run ? "*" : "");
    siblings->is_run = false;
}

static void describe(const struct trace *trace, uint32_t at, char *text);

/* The edge of kind next that what followed it hangs on; as many as there are kids: none. */
static uint32_t edge_beside(const struct tree *tree)
{
    uint32_t edge = 0;

    while (edge < tree->kid_count && tree->out[edge].kind != MR_EDGE_NEXT)
        edge++;
    return edge;
}

/* A child, and those that followed it, beside it. */
static void put_siblings(const struct trace *trace, uint32_t at, uint32_t kind,
                         struct siblings *siblings)
{
    const struct tree *tree = &trace->trees[at];
    uint32_t beside = edge_beside(tree);
    char one[TEXT_SIZE];

    (void)snprintf(one, sizeof(one), "%u:", kind);
    if (tree->is_lost) {
        put_part_text(&(struct mr_id){0, 0}, &(struct mr_id){0, 0}, MR_JOINED_MISSING,
                      one);
        (void)strcat(one, ")");
    } else {
        describe(trace, at, one);
    }
    if (strcmp(one, siblings->last) == 0) {
        siblings->is_run = true;
    } else {
        put_last(siblings);
        (void)strcpy(siblings->last, one);
    }
    if (!tree->is_lost && beside < tree->kid_count)
        put_siblings(trace, tree->kids[beside], MR_EDGE_NEXT, siblings);
}

/* What the tree below `at` comes to. Nothing stands beside the root. */
static void describe(const struct trace *trace, uint32_t at, char *text)
{
    const struct tree *tree = &trace->trees[at];
    uint32_t beside = at == 0 ? tree->kid_count : edge_beside(tree);
    struct siblings siblings = {.text = text};

    put_part_text(&tree->part.path, &tree->part.node,
                  tree->part.flags & MR_PART_STUB ? MR_JOINED_STUB : 0, text);
    for (uint32_t i = 0; i < tree->kid_count; i++)
        if (i != beside)
            put_siblings(trace, tree->kids[i], tree->out[i].kind, &siblings);
    put_last(&siblings);
    (void)strcat(text, ")");
}

/* Of a trace without its root: all that is below what is missing. */
static void describe_trace(const struct trace *trace, uint32_t at, char *text)
{
    struct siblings siblings = {.text = text};

    if (at == 0) {
        describe(trace, at, text);
        return;
    }
    put_siblings(trace, at, trace->trees[at].part.in.kind, &siblings);
    put_last(&siblings);
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
        describe_trace(trace, i, text);
        measure(trace, i, &sum, &end, &clamped, &is_whole);
        (void)snprintf(results[count++].text, TEXT_SIZE,
                       "%.6000s status %u took %" PRIu64 " edges %" PRIu64 " clamped %u",
                       text, is_whole ? tree->part.status : MR_PART_INCOMPLETE,
                       end - wall(&tree->part, tree->part.start_ns), sum, clamped);
    }
    return count;
}

static uint32_t read_nodes(const struct mr_joined_node *nodes, uint32_t at, char *text);

static uint32_t read_children(const struct mr_joined_node *nodes, uint32_t at, char *text)
{
    uint32_t next = at + 1;

    for (uint32_t i = 0; i < nodes[at].children; i++) {
        bool is_run = nodes[next].flags & MR_JOINED_RUN;

        (void)snprintf(text + strlen(text), TEXT_SIZE - strlen(text),
                       "%u:", nodes[next].kind);
        next = read_nodes(nodes, next, text);
        (void)strcat(text, is_run ? "*" : "");
    }
    return next;
}

/* The nodes of a joined shape as the naive model tells them. */
static uint32_t read_nodes(const struct mr_joined_node *nodes, uint32_t at, char *text)
{
    uint32_t next;

    put_part_text(&nodes[at].path, &nodes[at].node, nodes[at].flags, text);
    next = read_children(nodes, at, text);
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
    assert_int_equal(has_no_root ? read_children(joined->nodes, 0, text)
                                 : read_nodes(joined->nodes, 0, text),
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_and_place_gives_what_the_trees_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
