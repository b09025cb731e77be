/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in bulk (filters/reduce_templates.h) against the same calls one by one: the same comes out, whatever the stream. */
#include "../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/bins.h"
#include "pipeline/filters/reduce_private.h"
#include "support_lane.h"
#include "support_model.h"
#include "support_text.h"
#include "support_vectors.h"

#define STREAMS 3u
#define FUNCTIONS 9u
#define TREES 12u
#define TREE_CALLS_MAX 80u
#define OPEN_MAX 64u
#define FORCED "f9"

/* A tree as functions: more than 0 is entered, 0 ends the innermost call. */
struct tree {
    uint8_t steps[2 * TREE_CALLS_MAX];
    uint32_t count;
};

/* How wild a stream is: per 1000 traces, or calls where that is said. */
struct mood {
    uint32_t changed;                                 /* trees with a call more or less */
    uint32_t losses, strays, failures, gaps, unwinds; /* calls */
    uint32_t zeros; /* steps that take no time, of 1000 */
    uint32_t slow;  /* steps of up to 20 s, of 1,000,000 */
    uint32_t wraps; /* steps of 2^32 ns and little more, of the same */
    uint32_t cut;   /* traces that a chunk's end cuts, of 100 */
    uint32_t
        again; /* a stream goes on with the same tree for so many traces at most; 0: one */
    uint32_t inversions; /* steps back, of 100,000 */
    uint32_t
        traces; /* 0: 8000 where streams go on with a tree, else 1500; of either MR_TEST_FEWER times fewer */
    bool
        are_alone; /* trees of one call; chunks and deltas are longer, to hold repeats of them */
    bool has_forced, learns;
};

struct plan {
    struct mr_test_random random;
    struct tree trees[TREES];
    const struct mood *mood;
    uint64_t ns[STREAMS + 1];
};

static uint32_t below(struct plan *plan, uint32_t limit)
{
    return (uint32_t)mr_test_random_below(&plan->random, limit);
}

static void make_tree(struct plan *plan, struct tree *tree)
{
    uint32_t calls = 1 + below(plan, plan->mood->are_alone ? 1 : TREE_CALLS_MAX);
    uint32_t depth = 0;

    tree->count = 0;
    for (uint32_t i = 0; i < calls; i++) {
        while (depth > 1 && (depth == OPEN_MAX || below(plan, 5) < 2)) {
            tree->steps[tree->count++] = 0;
            depth--;
        }
        tree->steps[tree->count++] = (uint8_t)(1 + below(plan, FUNCTIONS - 1));
        depth++;
    }
    while (depth-- > 0)
        tree->steps[tree->count++] = 0;
}

static uint64_t next_ns(struct plan *plan, uint32_t stream)
{
    const struct mood *mood = plan->mood;

    if (mood->inversions && below(plan, 100000) < mood->inversions)
        return plan->ns[stream] - 1 - below(plan, 100);
    if (below(plan, 1000000) < mood->slow)
        plan->ns[stream] += mr_test_random_below(&plan->random, 20 * MR_SECOND_NS);
    else if (below(plan, 1000000) < mood->wraps)
        plan->ns[stream] += (UINT64_C(1) << 32) + 1 + below(plan, 200);
    else if (below(plan, 1000) >= mood->zeros)
        plan->ns[stream] += 1 + below(plan, below(plan, 50) ? 200 : 2000000);
    return plan->ns[stream];
}

/* Something else than a call. */
static void disturb(struct plan *plan, struct test_lane *lane, uint32_t stream)
{
    const struct mood *mood = plan->mood;
    uint32_t dice = below(plan, 1000), at = mood->losses;

    if (dice < at)
        test_lane_loss(lane, stream, next_ns(plan, stream), 1 + below(plan, 9),
                       MR_LOSS_RING_FULL, below(plan, 3), below(plan, 3));
    else if (dice < (at += mood->strays))
        test_lane_exit(lane, stream, 1 + below(plan, FUNCTIONS), next_ns(plan, stream));
    else if (dice < (at += mood->failures))
        test_lane_status(lane, stream, next_ns(plan, stream), true);
    else if (dice < at + mood->unwinds)
        test_lane_unwind(lane, stream, next_ns(plan, stream), below(plan, 3));
}

static void write_tree(struct plan *plan, struct test_lane *lane, uint32_t stream,
                       const struct tree *tree)
{
    uint32_t open[OPEN_MAX + 2], depth = 0, changed = UINT32_MAX;

    if (below(plan, 1000) < plan->mood->changed)
        changed = below(plan, tree->count);
    for (uint32_t i = 0; i < tree->count; i++) {
        uint32_t function = tree->steps[i];

        disturb(plan, lane, stream);
        if (i == changed && depth &&
            depth < OPEN_MAX) { /* a call that is not in the tree */
            uint32_t more = plan->mood->has_forced ? FUNCTIONS : 1 + below(plan, 3);

            test_lane_enter(lane, stream, more, next_ns(plan, stream));
            test_lane_exit(lane, stream, more, next_ns(plan, stream));
        }
        if (function) {
            open[depth++] = function;
            test_lane_enter(lane, stream, function, next_ns(plan, stream));
        } else {
            test_lane_exit(lane, stream, open[--depth], next_ns(plan, stream));
        }
        if (below(plan, 100 * tree->count) < plan->mood->cut &&
            lane->streams[stream].count)
            test_lane_send(lane, stream, 0);
    }
}

static void run_stream(struct plan *plan, struct test_lane *lane, uint32_t traces)
{
    uint32_t last = 0, stream = 1, again = 0;

    for (uint32_t i = 0; i < traces; i++) {
        if (again == 0) {
            stream = 1 + below(plan, STREAMS);
            last = below(plan, 3) ? last : below(plan, TREES);
            again = plan->mood->again ? below(plan, plan->mood->again) : 0;
        } else {
            again--;
        }
        write_tree(plan, lane, stream, &plan->trees[last]);
        if (lane->streams[stream].count &&
            below(plan, plan->mood->are_alone ? 1000 : 20) == 0)
            test_lane_send(lane, stream, 0);
        if (below(plan, 1000) < plan->mood->gaps && lane->streams[stream].count == 0)
            test_lane_gap(lane, stream, 1 + below(plan, 5));
        if (below(plan, plan->mood->are_alone ? 4000 : 200) == 0)
            test_lane_tick(lane, MR_HOUR_NS); /* a delta */
    }
    for (stream = 1; stream <= STREAMS; stream++)
        test_lane_send(lane, stream, 0);
}

static const char *name_of(void *context, const struct mr_site *site)
{
    static char name[16];

    (void)context;
    (void)snprintf(name, sizeof(name), "f%u", (unsigned)(site->offset / 16));
    return name;
}

struct result {
    struct test_text text; /* all that came out, merged */
    uint64_t deltas, bulk; /* calls counted in bulk */
    uint64_t repeated;     /* of them such as were no events */
};

static void run(uint64_t seed, const struct mood *mood, struct mr_reduce_config reduce,
                struct result *result)
{
    static const char *const roots[] = {FORCED};
    struct plan *plan = calloc(1, sizeof(*plan));
    struct mr_reconstruct_config reconstruct = {
        .outer = {.root_globs = roots,
                  .root_glob_count = mood->has_forced,
                  .resolve = name_of},
        .level = 1,
        .depth_max = 40,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = 8,
        .learns_nothing = !mood->learns};
    struct test_options options = {.reduce = &reduce, .reconstruct = &reconstruct};
    struct test_lane lane;

    assert_non_null(plan);
    plan->random.state = seed;
    plan->mood = mood;
    for (uint32_t i = 0; i < TREES; i++)
        make_tree(plan, &plan->trees[i]);
    for (uint32_t stream = 1; stream <= STREAMS; stream++)
        plan->ns[stream] = mr_test_random_below(&plan->random, MR_SECOND_NS);
    test_lane_init(&lane, &options);
    for (uint32_t stream = 1; stream <= STREAMS; stream++)
        test_lane_announce(&lane, stream, 0);
    run_stream(plan, &lane,
               (mood->traces  ? mood->traces
                : mood->again ? 8000
                              : 1500) /
                   MR_TEST_FEWER);
    test_lane_end(&lane);
    assert_false(mr_source_is_broken(lane.source));
    result->bulk = test_lane_counter(&lane, "in_bulk");
    result->repeated = test_lane_counter(&lane, "in_repeats");
    result->deltas = lane.out->deltas;
    test_model(&lane, &result->text);
    test_text_drop(&result->text, "open "); /* with an age by the clock of this machine */
    test_lane_fini(&lane);
    free(plan);
}

static void check(const struct mood *mood, struct mr_reduce_config reduce,
                  bool expects_bulk)
{
    struct mr_test_random seeds = mr_test_random_new();
    uint64_t bulk = 0,
             repeated = 0; /* of all seeds: for one, by chance, it may be none */

    reduce.shape_calls_s = 0; /* how many traces are counted by path, the clock decides */
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t seed = mr_test_random_below(&seeds, UINT32_MAX);
        struct result in_bulk = {.bulk = 0}, narrow = {.bulk = 0},
                      one_by_one = {.bulk = 0};

        reduce.is_one_by_one = false;
        reduce.has_repeats = true;
        reduce.vectors = MR_VECTORS_WIDER;
        run(seed, mood, reduce, &in_bulk);
        reduce.vectors = i ? MR_VECTORS_WIDE : MR_VECTORS_NONE;
        if (i < 2) {
            run(seed, mood, reduce, &narrow);
            /* Not equal: which roots are remembered hangs on random keys. */
            assert_in_range(narrow.bulk, in_bulk.bulk / 2, 2 * in_bulk.bulk);
        }
        reduce.is_one_by_one = true;
        reduce.has_repeats = false;
        run(seed, mood, reduce, &one_by_one);
        assert_int_equal(one_by_one.bulk + one_by_one.repeated, 0);
        bulk += in_bulk.bulk;
        repeated += in_bulk.repeated;
        assert_int_equal(in_bulk.deltas, one_by_one.deltas);
        test_text_compare(&one_by_one.text, &in_bulk.text);
        if (i < 2) {
            test_text_compare(&one_by_one.text, &narrow.text);
            test_text_fini(&narrow.text);
        }
        test_text_fini(&in_bulk.text);
        test_text_fini(&one_by_one.text);
    }
    if (expects_bulk)
        assert_true(bulk > 1000 / MR_TEST_FEWER);
    if (expects_bulk && mood->again)
        assert_true(repeated > 1000 / MR_TEST_FEWER);
}

static void traces_that_return_give_the_same(void **state)
{
    static const struct mood mood = {.cut = 5};

    (void)state;
    check(&mood, MR_REDUCE_CONFIG_DEFAULT, true);
}

static void calls_of_no_time_and_of_many_seconds_give_the_same(void **state)
{
    static const struct mood mood = {.zeros = 300, .slow = 300, .cut = 5};

    (void)state;
    check(&mood, MR_REDUCE_CONFIG_DEFAULT, true);
}

static void traces_that_differ_give_the_same(void **state)
{
    static const struct mood mood = {.changed = 300, .cut = 20, .slow = 20};

    (void)state;
    check(&mood, MR_REDUCE_CONFIG_DEFAULT, true);
}

static void broken_and_failed_traces_give_the_same(void **state)
{
    static const struct mood mood = {.losses = 2,
                                     .strays = 2,
                                     .failures = 3,
                                     .gaps = 10,
                                     .unwinds = 1,
                                     .changed = 50,
                                     .cut = 5,
                                     .slow = 20};

    (void)state;
    check(&mood, MR_REDUCE_CONFIG_DEFAULT, true);
}

static void forced_roots_and_learned_frames_give_the_same(void **state)
{
    static const struct mood forced = {.has_forced = true, .changed = 200, .cut = 5};
    static const struct mood learned = {
        .learns = true, .slow = 3000, .changed = 50, .cut = 5};

    (void)state;
    check(&forced, MR_REDUCE_CONFIG_DEFAULT, true);
    check(&learned, MR_REDUCE_CONFIG_DEFAULT, false);
}

static void full_tables_give_the_same(void **state)
{
    /* Each trace may be told by itself: that takes long. */
    static const struct mood mood = {
        .changed = 100, .cut = 5, .losses = 1, .traces = 500};
    struct mr_reduce_config paths = MR_REDUCE_CONFIG_DEFAULT,
                            nodes = MR_REDUCE_CONFIG_DEFAULT,
                            bins = MR_REDUCE_CONFIG_DEFAULT,
                            traces = MR_REDUCE_CONFIG_DEFAULT;

    (void)state;
    paths.paths_max = 200;
    check(&mood, paths, false);
    nodes.nodes_max = 100;
    check(&mood, nodes, false);
    bins.bins_max = 8 * MR_BINS_COUNT;
    check(&mood, bins, false);
    traces.trace_children_max = 7;
    check(&mood, traces, false);
}

static void streams_that_repeat_a_tree_give_the_same(void **state)
{
    static const struct mood again = {.again = 400, .cut = 5};
    static const struct mood slow = {
        .again = 400, .zeros = 300, .slow = 30, .inversions = 10};
    static const struct mood broken = {
        .again = 400, .changed = 20, .cut = 2, .gaps = 2, .slow = 5, .inversions = 5};
    static const struct mood forced = {.again = 400, .has_forced = true, .changed = 10};

    (void)state;
    check(&again, MR_REDUCE_CONFIG_DEFAULT, true);
    check(&slow, MR_REDUCE_CONFIG_DEFAULT, true);
    check(&broken, MR_REDUCE_CONFIG_DEFAULT, true);
    check(&forced, MR_REDUCE_CONFIG_DEFAULT, false);
}

/* Traces of one call: a root that calls nothing. */
static void calls_alone_give_the_same(void **state)
{
    static const struct mood often = {.again = 4000, .are_alone = true, .traces = 40000};
    static const struct mood mixed = {.cut = 5, .changed = 20, .are_alone = true};

    (void)state;
    check(&often, MR_REDUCE_CONFIG_DEFAULT, true);
    check(&mixed, MR_REDUCE_CONFIG_DEFAULT, true);
}

/* The lower halves of these are like those of other calls. */
static void times_of_more_than_32_bits_give_the_same(void **state)
{
    static const struct mood mood = {.changed = 20, .cut = 5, .wraps = 5000};
    static const struct mood again = {.again = 400, .cut = 5, .wraps = 5000};
    struct mr_reduce_config config = MR_REDUCE_CONFIG_DEFAULT;

    (void)state;
    config.window_s = 3600; /* else such a call begins in one, and ends in another */
    check(&mood, config, true);
    check(&again, config, true);
}

static void streams_that_repeat_a_tree_with_full_tables_give_the_same(void **state)
{
    static const struct mood mood = {
        .again = 300, .changed = 20, .cut = 5, .traces = 3000};
    struct mr_reduce_config paths = MR_REDUCE_CONFIG_DEFAULT,
                            bins = MR_REDUCE_CONFIG_DEFAULT,
                            traces = MR_REDUCE_CONFIG_DEFAULT;

    (void)state;
    paths.paths_max = 200;
    check(&mood, paths, false);
    bins.bins_max = 8 * MR_BINS_COUNT;
    check(&mood, bins, false);
    traces.trace_children_max = 7;
    check(&mood, traces, false);
}

/* So many paths that none has tries enough to rest by itself. */
#define RESTING_PATHS 4096u

/* Calls on all paths in turn, whose templates do not fit: how many of `calls` were looked at. */
static uint32_t look_in_vain(struct mr_reduce *reduce, uint32_t calls)
{
    const uint32_t code = 1;
    uint32_t looks = 0;

    for (uint32_t i = 0; i < calls; i++) {
        uint32_t path = 1 + i % (RESTING_PATHS - 1);

        if (!mr_templates_try(&reduce->templates, path))
            continue;
        looks++;
        assert_null(mr_templates_find_part(reduce, path, &code, 1));
    }
    return looks;
}

static void where_no_template_fits_all_paths_rest_and_are_tried_again(void **state)
{
    struct mr_reduce *reduce = calloc(1, sizeof(*reduce));
    struct mr_templates *templates = &reduce->templates;
    uint32_t first, later;

    (void)state;
    assert_int_equal(mr_templates_init(templates, RESTING_PATHS, false), MR_OK);
    templates->items[templates->count] = (struct mr_template){.calls = 2};
    for (uint32_t i = 1; i < RESTING_PATHS; i++)
        templates->paths[i].first = templates->count;
    templates->count++;
    first = look_in_vain(reduce, 4 * RESTING_PATHS);
    assert_true(templates->rest > 0);
    assert_in_range(first, 100, RESTING_PATHS);
    later = look_in_vain(reduce, 64 * RESTING_PATHS);
    assert_in_range(later, 10, RESTING_PATHS);
    mr_templates_fini(templates);
    free(reduce);
}

#define BINS_CALLS 2u

/* Eight totals of a call and of one that it calls, counted with vectors: their bins and sums. */
static void check_eight(struct mr_reduce *reduce, uint32_t path,
                        const uint32_t totals[MR_TEMPLATE_WAITING])
{
    const struct mr_path *node = &reduce->paths.nodes[path];
    const struct mr_path before = *node;
    struct mr_template_call calls[BINS_CALLS] = {
        {.path = path & MR_TEMPLATE_PATH_MASK, .parent = 1},
        {.path = path & MR_TEMPLATE_PATH_MASK, .parent = 2}};
    mr_template_below child[BINS_CALLS + 1] = {{0}};
    mr_template_places places[BINS_CALLS + 1];
    uint64_t sum = 0, self = 0;
    uint32_t zeros = 0;

    for (uint32_t i = 0; i < MR_TEMPLATE_WAITING; i++) {
        calls[0].totals[i] = (int32_t)totals[i];
        calls[1].totals[i] = (int32_t)totals[i] + 7;
        sum += 2 * (uint64_t)totals[i] + 7;
        self += totals[i] + 7;
        zeros += totals[i] == 0;
    }
    assert_int_equal(
        reduce->templates.vectors->gain(reduce, calls, BINS_CALLS, child, places),
        zeros == MR_TEMPLATE_WAITING ? 1 : 2);
    assert_int_equal(node->ok, before.ok + 2 * MR_TEMPLATE_WAITING);
    assert_int_equal(node->zeros, before.zeros + zeros);
    assert_int_equal(node->total_sum, before.total_sum + sum);
    assert_int_equal(node->self_sum, before.self_sum + self);
    for (uint32_t i = 0; i < MR_TEMPLATE_WAITING; i++) {
        uint32_t bin = totals[i] ? mr_bin_of(&reduce->bin_index, totals[i]) : 0;

        assert_true(mr_known_has(node->total, totals[i]));
        assert_true(mr_known_has(node->self, 7));
        if (zeros < MR_TEMPLATE_WAITING && totals[i])
            assert_int_equal(places[0][i], node->bins.offset + bin - node->bins.first);
        else if (zeros < MR_TEMPLATE_WAITING)
            assert_true(places[0][i] < MR_BINS_NOWHERE);
    }
}

static void check_bins(const struct mr_template_vectors *vectors)
{
    struct mr_reduce *reduce = calloc(1, sizeof(*reduce));
    uint32_t path;

    assert_non_null(reduce);
    mr_bin_index_init(&reduce->bin_index);
    mr_bin_pool_init(&reduce->bins, 4 * MR_BINS_COUNT, UINT32_MAX);
    assert_int_equal(mr_paths_init(&reduce->paths, 64, MR_PATHS_DEPTH_MAX), MR_OK);
    assert_int_equal(mr_templates_init(&reduce->templates, 64, vectors), MR_OK);
    path = mr_paths_find(&reduce->paths, mr_paths_base(&reduce->paths, 0, 0), 1, 0);
    mr_paths_begin(&reduce->paths, path, 1);
    assert_true(mr_bins_grow(&reduce->paths.nodes[path].bins, &reduce->bins, 0));
    assert_true(
        mr_bins_grow(&reduce->paths.nodes[path].bins, &reduce->bins, MR_TEMPLATE_BINS));
    for (uint32_t bin = 1; bin <= MR_TEMPLATE_BINS; bin++) {
        uint32_t low = reduce->templates.lows[bin],
                 high = reduce->templates.lows[bin + 1];
        const uint32_t totals[] = {low - 1,  low, low + (high - low) / 2, high - 1,
                                   low % 64, 0,   (low + 1) / 2,          1};

        check_eight(reduce, path, totals);
    }
    check_eight(reduce, path, (const uint32_t[MR_TEMPLATE_WAITING]){0});
    mr_templates_fini(&reduce->templates);
    mr_paths_fini(&reduce->paths);
    mr_bin_pool_fini(&reduce->bins);
    free(reduce);
}

/* Skipped where there are none. */
static void check_all(void (*check_one)(const struct mr_template_vectors *vectors))
{
    int checked = 0;

    for (int which = 0; which < TEST_VECTORS; which++) {
        const struct mr_template_vectors *vectors = test_vectors(which);

        if (vectors)
            check_one(vectors);
        checked += vectors != NULL;
    }
    if (checked == 0)
        skip();
}

static void vectors_find_the_bins_of_all_bounds(void **state)
{
    (void)state;
    check_all(check_bins);
}

#define FILLED_EVENTS (2 * MR_TEMPLATE_CALLS_MAX)

/* Calls whose events are any pairs of `size` in a row, of traces whose times are any. Some totals are at what a call takes, some 0. */
static void make_calls(struct mr_test_random *random, struct mr_template_call *calls,
                       uint32_t *times, uint32_t size)
{
    for (uint32_t i = 0; i < MR_TEMPLATE_WAITING * size; i++)
        times[i] = (uint32_t)mr_test_random_below(random, 4) << 4;
    for (uint32_t i = 0; i < size / 2; i++)
        calls[i] = (struct mr_template_call){
            .enter =
                (uint16_t)(mr_test_random_below(random, size) * sizeof(struct mr_event)),
            .exit =
                (uint16_t)(mr_test_random_below(random, size) * sizeof(struct mr_event)),
            .low = (uint32_t)0 - 48, /* -48 .. 48 */
            .width = 97};
    if (mr_test_random_below(random, 2)) { /* one that is too narrow, at an end */
        struct mr_template_call *call = &calls[mr_test_random_below(random, size / 2)];

        call->width = 96 - 16 * (uint32_t)mr_test_random_below(random, 6);
        call->low += (uint32_t)mr_test_random_below(random, 2) * (97 - call->width);
    }
}

static bool fill_naively(struct mr_template_call *calls, const uint32_t *times,
                         uint32_t size)
{
    bool is_good = true;

    for (uint32_t i = 0; i < size / 2; i++)
        for (uint32_t j = 0; j < MR_TEMPLATE_WAITING; j++) {
            uint32_t total = times[j * size + mr_template_place(calls[i].exit)] -
                             times[j * size + mr_template_place(calls[i].enter)];

            is_good &= total == 0 || total - calls[i].low < calls[i].width;
            calls[i].totals[j] = (int32_t)total;
        }
    return is_good;
}

static void check_fill(const struct mr_template_vectors *vectors)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_template_call calls[MR_TEMPLATE_CALLS_MAX], expected[MR_TEMPLATE_CALLS_MAX];
    uint32_t times[MR_TEMPLATE_WAITING * (FILLED_EVENTS + 1)] = {0}, good = 0;

    for (uint32_t i = 0; i < 64 * MR_TEMPLATE_CALLS_MAX; i++) {
        uint32_t count = 1 + i % MR_TEMPLATE_CALLS_MAX;
        bool is_good;

        make_calls(&random, calls, times, 2 * count);
        memcpy(expected, calls, sizeof(expected));
        is_good = fill_naively(expected, times, 2 * count);
        assert_int_equal(vectors->fill(calls, count, times), is_good);
        assert_memory_equal(calls, expected, count * sizeof(*calls));
        good += is_good;
    }
    assert_in_range(good, 64, 63 * MR_TEMPLATE_CALLS_MAX);
}

static void vectors_fill_in_what_calls_take(void **state)
{
    (void)state;
    check_all(check_fill);
}

static void exact_and_set_shapes_are_counted_one_by_one(void **state)
{
    static const struct mood mood = {.changed = 100, .cut = 5, .losses = 1};
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;

    (void)state;
    reduce.exactness = MR_EXACTNESS_EXACT;
    check(&mood, reduce, false);
    reduce.exactness = MR_EXACTNESS_SET;
    check(&mood, reduce, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_that_return_give_the_same),
        cmocka_unit_test(calls_of_no_time_and_of_many_seconds_give_the_same),
        cmocka_unit_test(traces_that_differ_give_the_same),
        cmocka_unit_test(broken_and_failed_traces_give_the_same),
        cmocka_unit_test(forced_roots_and_learned_frames_give_the_same),
        cmocka_unit_test(full_tables_give_the_same),
        cmocka_unit_test(streams_that_repeat_a_tree_give_the_same),
        cmocka_unit_test(calls_alone_give_the_same),
        cmocka_unit_test(times_of_more_than_32_bits_give_the_same),
        cmocka_unit_test(streams_that_repeat_a_tree_with_full_tables_give_the_same),
        cmocka_unit_test(where_no_template_fits_all_paths_rest_and_are_tried_again),
        cmocka_unit_test(exact_and_set_shapes_are_counted_one_by_one),
        cmocka_unit_test(vectors_find_the_bins_of_all_bounds),
        cmocka_unit_test(vectors_fill_in_what_calls_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
