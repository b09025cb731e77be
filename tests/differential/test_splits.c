/* SPDX-License-Identifier: Apache-2.0 */
/*
 * However streams are cut into chunks and frames, spread over lanes and workers, run on threads, and merged over levels: what comes
 * out at the top is the same, to the last digit, and what the reference says.
 *
 *     MR_DIFFERENTIAL_SECONDS    how long, 3 by default
 */
#include "../unit/unit_test.h"

#include <string.h>

#include "base/clock.h"
#include "product.h"
#include "streams.h"

#define SECONDS_DEFAULT 3
#define START_NS (UINT64_C(1700000000) * MR_SECOND_NS)
#define WINDOW_S 1u
#define LANES_MAX 5u
#define WORKERS_MAX 3u
#define LEVELS_MAX 3u
#define SPLITS 4 /* of each set of streams */

static uint32_t below(struct mr_test_random *random, uint32_t limit)
{
    return (uint32_t)mr_test_random_below(random, limit);
}

/* What a split must not touch: nothing is told late. */
static void make_mood(struct mr_test_random *random, struct mood *mood)
{
    bool is_wild = below(random, 2);

    *mood = (struct mood){.streams = 1 + below(random, 30),
                          .events = 1 + below(random, 150),
                          .functions = 1 + below(random, 8),
                          .depth = 2 + below(random, 30),
                          .opens = 50,
                          .step = 1 + below(random, 1000000),
                          .leap = UINT64_C(20) * MR_SECOND_NS,
                          .leaps = below(random, 30),
                          .equal = below(random, 3000),
                          .statuses = 50,
                          .others = 50,
                          .wides = 200,
                          .repeats = below(random, 2) * below(random, 50),
                          .links = below(random, 2) * below(random, 1000),
                          .tokens = 1 + below(random, 500),
                          .wrappers = below(random, 2) * below(random, 20),
                          .has_spans = below(random, 2),
                          .has_roots = below(random, 2),
                          .has_outers = below(random, 2)};
    if (!is_wild)
        return;
    mood->losses = below(random, 200);
    mood->gaps = below(random, 100);
    mood->cuts = below(random, 100);
    mood->unwinds = below(random, 200);
    mood->strays = below(random, 200);
    mood->backward = below(random, 300);
}

static void make_model(struct mr_test_random *random, struct ref_options *model)
{
    *model = (struct ref_options){.exactness = (uint8_t)below(random, 3),
                                  .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
                                  .trace_children_max = MR_REDUCE_TRACE_CHILDREN_DEFAULT,
                                  .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
                                  .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT,
                                  .window_s = WINDOW_S,
                                  .exemplar_calls = MR_REDUCE_EXEMPLAR_CALLS_DEFAULT,
                                  .app = "app",
                                  .version = "1",
                                  .clock_mult = 1,
                                  .clock_realtime_ns = START_NS};
    model->learns = below(random, 2);
    if (below(random, 2)) {
        model->learn_ns = below(random, 100000);
        model->learn_children = 1 + below(random, 3);
    }
}

static void make_cut(struct mr_test_random *random, struct cut *cut)
{
    *cut = (struct cut){.chunk_max = 1 + below(random, below(random, 2) ? 5 : 1000),
                        .frame_chunks = 1 + below(random, 10),
                        .compact = below(random, 101),
                        .idle = below(random, 30),
                        .ticks = below(random, 20),
                        .in_order = below(random, 3) == 0,
                        .keeps_header_time = true};
}

/* Where parts meet; and why a site is an outer frame, as whichever stream tells it first. */
static void drop_what_differs(const struct ref_options *model, struct test_text *text)
{
    test_text_drop(text, "part ");
    if (model->learns)
        test_text_drop(text, "outer ");
}

static void run_lane(struct mr_test_random *random, const struct streams *streams,
                     const struct ref_options *model, const uint8_t *lanes, uint8_t lane,
                     struct product_batches *batches)
{
    struct product_config config = {.model = *model,
                                    .reduce = MR_REDUCE_CONFIG_DEFAULT,
                                    .source = 0, /* an exemplar's source is part of it */
                                    .place = below(random, 4) ? MR_PLACE_FUSED
                                                              : MR_PLACE_THREAD};
    struct script script = {0};
    struct product *product = product_new(&config);
    struct cut cut;

    make_cut(random, &cut);
    cut.lanes = lanes;
    cut.lane = lane;
    streams_write(random, streams, &cut, &script);
    for (size_t i = 0; i < script.count; i++)
        product_op(product, &script.ops[i], NULL);
    product_end(product, batches);
    script_clear(&script);
}

static enum mr_place some_place(struct mr_test_random *random)
{
    return below(random, 4) ? MR_PLACE_FUSED : MR_PLACE_THREAD;
}

/* Lanes to workers, workers to those of the next level, all at last to one. */
static void merge_up(struct mr_test_random *random, struct product_batches *lower,
                     uint32_t count)
{
    uint32_t levels = 1 + below(random, LEVELS_MAX);

    for (uint32_t level = 1; level <= levels; level++) {
        uint32_t workers = level == levels ? 1 : 1 + below(random, WORKERS_MAX);
        struct product_batches upper[WORKERS_MAX] = {{NULL, NULL}};

        for (uint32_t i = 0; i < count; i++)
            product_append(&upper[below(random, workers)], &lower[i]);
        for (uint32_t i = 0; i < workers; i++) {
            product_join(&upper[i], level,
                         1 + below(random, below(random, 2) ? 10 : 10000), WINDOW_S,
                         some_place(random));
            lower[i] = upper[i];
            if (!lower[i].first)
                lower[i].end = NULL;
        }
        count = workers;
    }
}

static void run_split(struct mr_test_random *random, const struct streams *streams,
                      const struct ref_options *model, struct test_text *text)
{
    struct product_batches batches[LANES_MAX + WORKERS_MAX] = {{NULL, NULL}};
    uint32_t lane_count = 1 + below(random, LANES_MAX);
    uint8_t lanes[STREAMS_MAX];

    for (uint32_t i = 0; i < streams->count; i++)
        lanes[i] = (uint8_t)below(random, lane_count);
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        struct product_batches one;

        run_lane(random, streams, model, lanes, (uint8_t)lane, &one);
        product_append(&batches[lane], &one);
    }
    merge_up(random, batches, lane_count);
    product_end_traces(&batches[0], WINDOW_S);
    product_lines(&batches[0], text);
    drop_what_differs(model, text);
    product_free(&batches[0]);
}

static void run_reference(struct mr_test_random *random, const struct streams *streams,
                          const struct ref_options *model, struct test_text *text)
{
    struct script script = {0};
    struct cut cut;

    make_cut(random, &cut);
    streams_write(random, streams, &cut, &script);
    script_to_reference(&script, model, text);
    drop_what_differs(model, text);
    script_clear(&script);
}

static void check(uint64_t seed)
{
    struct mr_test_random random = {seed};
    static struct streams streams;
    struct test_text expected = {0};
    struct ref_options model;
    struct mood mood;

    make_mood(&random, &mood);
    make_model(&random, &model);
    streams_make(&random, &mood, &streams);
    run_reference(&random, &streams, &model, &expected);
    for (int i = 0; i < SPLITS; i++) {
        struct test_text actual = {0};

        run_split(&random, &streams, &model, &actual);
        test_text_compare(&expected, &actual);
        test_text_fini(&actual);
    }
    test_text_fini(&expected);
    streams_clear(&streams);
}

static void every_split_says_the_same(void **state)
{
    const char *given = getenv("MR_DIFFERENTIAL_SECONDS");
    uint64_t duration_s = given ? strtoull(given, NULL, 0) : SECONDS_DEFAULT;
    uint64_t end_ns = mr_clock_monotonic_ns() + duration_s * MR_SECOND_NS;
    uint64_t seed = mr_test_random_new().state, first = seed;

    (void)state;
    do {
        if (getenv("MR_DIFFERENTIAL_TELL"))
            print_message("scenario 0x%" PRIx64 "\n", seed);
        check(seed++);
    } while (mr_clock_monotonic_ns() < end_ns);
    print_message("%" PRIu64 " sets of streams, %d splits of each\n", seed - first,
                  SPLITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split_says_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
