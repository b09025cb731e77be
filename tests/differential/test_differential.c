/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode, reconstruct, reduce and the merging of deltas against the naive reference, on random streams until the time is over.
 *
 *     MR_DIFFERENTIAL_SECONDS    how long of the processor's time, 3 by default
 *     MR_TEST_SEED               begins with this scenario instead of a new one
 *
 * Built with MR_PLANTED, some source of the product has a fault (faults.py): the test passes if it is found, in so many scenarios,
 * the same each time.
 */
#include "../unit/unit_test.h"

#include <string.h>

#include "base/clock.h"
#include "pipeline/bins.h"
#include "planted.h"
#include "product.h"
#include "streams.h"

#include <time.h>

#define SECONDS_DEFAULT 3
/* At most, as the first difference ends it; no time, so that what finds a fault finds it on any machine. */
#define PLANTED_SCENARIOS 8000
#define EXEMPLARS_MAX 8192u /* more than there are shapes */
#define START_NS (UINT64_C(1700000000) * MR_SECOND_NS)

struct scenario {
    struct mood mood;
    struct cut cut;
    struct product_config config;
    uint32_t join_parts; /* 0: no worker joins */
};

struct totals {
    uint64_t scenarios, streams, reduced;
    uint64_t bulk, repeats; /* calls that were counted in bulk; that were no events */
    uint64_t parts, joined, exemplars;
};

static uint32_t one_of(struct mr_test_random *random, const uint32_t *values,
                       size_t count)
{
    return values[mr_test_random_below(random, count)];
}
#define ONE_OF(random, ...)                                                              \
    one_of(random, (const uint32_t[]){__VA_ARGS__},                                      \
           sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static bool chance(struct mr_test_random *random, uint32_t of)
{
    return mr_test_random_below(random, of) == 0;
}

static void make_mood(struct mr_test_random *random, struct mood *mood)
{
    static const struct mood calm = {0};

    *mood = calm;
    mood->streams = 1 + (uint32_t)mr_test_random_below(random, STREAMS_MAX);
    mood->events = ONE_OF(random, 5, 20, 50, 100);
    mood->functions = ONE_OF(random, 1, 2, 3, 6, 40);
    mood->depth = ONE_OF(random, 2, 6, 12, 40);
    mood->opens = ONE_OF(random, 45, 50, 55, 70);
    mood->step = ONE_OF(random, 1, 3, 1000, 50000, 40000000);
    mood->leap = UINT64_C(20) * MR_SECOND_NS;
    mood->repeats = ONE_OF(random, 0, 3, 3, 40);
    mood->links = ONE_OF(random, 0, 0, 100, 1500);
    mood->tokens = ONE_OF(random, 20, 200, STREAMS_TOKENS);
    mood->statuses = ONE_OF(random, 0, 100);
    mood->others = ONE_OF(random, 0, 200);
    mood->wides = ONE_OF(random, 0, 500);
    mood->equal = ONE_OF(random, 0, 3000);
    mood->leaps = ONE_OF(random, 0, 10, 50);
    mood->has_spans = chance(random, 2);
    mood->has_roots = chance(random, 3);
    mood->has_outers = chance(random, 3);
    if (chance(random, 3))
        return;
    mood->losses = ONE_OF(random, 0, 0, 50, 300);
    mood->gaps = ONE_OF(random, 0, 0, 30, 200);
    mood->cuts = ONE_OF(random, 0, 0, 30, 200);
    mood->unwinds = ONE_OF(random, 0, 100, 500);
    mood->landings = ONE_OF(random, 0, 100, 600);
    mood->strays = ONE_OF(random, 0, 100, 500);
    mood->unknowns = ONE_OF(random, 0, 0, 500);
    mood->backward = ONE_OF(random, 0, 300);
    mood->has_late = chance(random, 4);
}

/* Now and then what is rare: a long stream, one that goes very deep. */
static void make_rare(struct mr_test_random *random, struct mood *mood)
{
    if (chance(random, 40)) {
        mood->streams = 2;
        mood->events = 5000;
        mood->repeats = ONE_OF(random, 0, 3, 200);
    } else if (chance(random, 60)) {
        mood->streams = 1;
        mood->functions = ONE_OF(random, 1, 3);
        mood->events = 12000;
        mood->depth = 6000;
        mood->opens = 75;
    }
}

static void make_cut(struct mr_test_random *random, struct cut *cut)
{
    *cut = (struct cut){.chunk_max = ONE_OF(random, 1, 2, 7, 60, 5000),
                        .frame_chunks = ONE_OF(random, 1, 3, 20),
                        .compact = ONE_OF(random, 0, 30, 100),
                        .idle = ONE_OF(random, 0, 20),
                        .ticks = ONE_OF(random, 0, 10),
                        .opens = ONE_OF(random, 0, 0, 4),
                        .in_order = chance(random, 4)};
}

static void make_config(struct mr_test_random *random, const struct mood *mood,
                        struct product_config *config)
{
    struct ref_options *model = &config->model;

    *config = (struct product_config){.reduce = MR_REDUCE_CONFIG_DEFAULT};
    config->reduce.exemplars_max = EXEMPLARS_MAX;
    *model = (struct ref_options){
        .exactness = (uint8_t)mr_test_random_below(random, 3),
        .depth_max = ONE_OF(random, 3, 10, 100, MR_RECONSTRUCT_DEPTH_DEFAULT),
        .trace_children_max = MR_REDUCE_TRACE_CHILDREN_DEFAULT,
        .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
        .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT,
        .learns = chance(random, 2),
        .window_s = ONE_OF(random, 1, 1, 7),
        .exemplar_calls = ONE_OF(random, 1, 3, 20, MR_REDUCE_EXEMPLAR_CALLS_DEFAULT),
        .app = "app",
        .version = "1",
        .clock_mult = ONE_OF(random, 1, 1717986918),
        .clock_ticks = 500,
        .clock_realtime_ns = START_NS};
    model->clock_shift = model->clock_mult == 1 ? 0 : 32;
    if (model->exactness != 2 && chance(random, 4))
        model->trace_children_max = ONE_OF(random, 1, 3, 10);
    if (chance(random, 3)) {
        model->learn_ns = ONE_OF(random, 0, 2000, 100000);
        model->learn_children = ONE_OF(random, 1, 3);
    }
    config->reduce.exemplar_log = ONE_OF(random, 0, 20, 100, 400);
    config->reduce.exemplar_guess_ns = ONE_OF(random, 0, 1, 300, 10000);
    config->reduce.bins_words = ONE_OF(random, 0, 16384, MR_REDUCE_BINS_WORDS_DEFAULT);
    if (mood->streams <= 3 && mood->depth <= 40 && chance(random, 2)) {
        config->reduce.paths_max = 400; /* 3 streams x 42 open calls always fit */
        config->reduce.nodes_max = 4000;
        config->reduce.shapes_max = 20;
        config->reduce.bins_max = 2 * MR_BINS_COUNT;
        config->reduce.delta_bytes_max = 2000;
    }
}

/* Calls that come back as they were, many times: what is counted in bulk, and where that has to stop. */
static void make_alike(struct mr_test_random *random, struct scenario *scenario)
{
    struct mood *mood = &scenario->mood;

    *mood = (struct mood){.streams = 1 + (uint32_t)mr_test_random_below(random, 3),
                          .events = 1500,
                          .functions = ONE_OF(random, 1, 2, 6),
                          .depth = ONE_OF(random, 2, 5, 12),
                          .opens = ONE_OF(random, 45, 50),
                          .step = ONE_OF(random, 2, 30, 1000, 200000, 3000000),
                          .repeats = ONE_OF(random, 20, 200),
                          .statuses = ONE_OF(random, 0, 20),
                          .equal = ONE_OF(random, 0, 3000),
                          .leaps = ONE_OF(random, 0, 30),
                          .leap = MR_SECOND_NS,
                          .unwinds = ONE_OF(random, 0, 0, 20),
                          .links = ONE_OF(random, 0, 0, 20),
                          .tokens = 40,
                          .losses = ONE_OF(random, 0, 0, 20),
                          .backward = ONE_OF(random, 0, 100),
                          .has_spans = chance(random, 2),
                          .has_roots = chance(random, 3),
                          .has_outers = chance(random, 3)};
    scenario->cut.chunk_max = ONE_OF(random, 60, 5000, 5000);
    scenario->config.model.exactness = 0;
}

/* The same trees in a row, which the lane finds in the words themselves; and what ends such a row. */
static void make_again(struct mr_test_random *random, struct scenario *scenario)
{
    struct mood *mood = &scenario->mood;

    *mood = (struct mood){.streams = 1 + (uint32_t)mr_test_random_below(random, 2),
                          .events = 4000,
                          .functions = ONE_OF(random, 1, 2, 6),
                          .depth = ONE_OF(random, 2, 5, 12),
                          .opens = ONE_OF(random, 40, 50),
                          .step = ONE_OF(random, 2, 30, 1000, 200000),
                          .repeats = ONE_OF(random, 400, 2000),
                          .statuses = ONE_OF(random, 0, 0, 3),
                          .equal = ONE_OF(random, 0, 3000),
                          .leaps = ONE_OF(random, 0, 3),
                          .leap = ONE_OF(random, 1000, 10) * MR_SECOND_NS / 1000,
                          .losses = ONE_OF(random, 0, 0, 3),
                          .backward = ONE_OF(random, 0, 3),
                          .has_spans = chance(random, 2),
                          .has_roots = chance(random, 4),
                          .has_outers = chance(random, 4),
                          .repeats_roots = chance(random, 2),
                          .says_roots_inside = chance(random, 3)};
    scenario->cut.chunk_max = ONE_OF(random, 20000, 20000, 700);
    scenario->cut.compact = ONE_OF(random, 0, 0, 20);
    scenario->cut.ticks = ONE_OF(random, 0, 2);
    scenario->config.model.exactness = 0;
    scenario->config.reduce.shape_calls_s = ONE_OF(random, 0, 0, 1000);
}

/* Loops below wrappers, which return now and then. */
static void make_wrapped(struct mr_test_random *random, struct scenario *scenario)
{
    struct ref_options *model = &scenario->config.model;

    scenario->mood.wrappers = ONE_OF(random, 1, 3, 6, 20);
    scenario->mood.events = ONE_OF(random, 50, 200, 1000);
    scenario->mood.streams = 1 + (uint32_t)mr_test_random_below(random, 8);
    if (scenario->mood.step > 1000 && chance(random, 2))
        scenario->mood.step = 1000;
    model->learns = true;
    model->learn_ns = ONE_OF(random, 100, 2000, 100000, 10000000);
    model->learn_children = ONE_OF(random, 1, 2, 3, 8);
}

static void make_scenario(struct mr_test_random *random, struct scenario *scenario)
{
    make_mood(random, &scenario->mood);
    make_rare(random, &scenario->mood);
    make_cut(random, &scenario->cut);
    make_config(random, &scenario->mood, &scenario->config);
    scenario->join_parts = ONE_OF(random, 0, 1, 5, 1000);
    if (chance(random, 5))
        make_alike(random, scenario);
    else if (chance(random, 3))
        make_again(random, scenario);
    if (chance(random, 4))
        make_wrapped(random, scenario);
    /* The filters' threads look at what is open when they will. */
    if (chance(random, 25)) {
        scenario->config.place = MR_PLACE_THREAD;
        scenario->cut.opens = 0;
    }
}

/* For whoever looks for the cause. */
static void tell(const struct scenario *scenario)
{
    const struct mood *mood = &scenario->mood;
    const struct ref_options *model = &scenario->config.model;

    print_message("streams %" PRIu32 " events %" PRIu32 " functions %" PRIu32
                  " depth %" PRIu32 " step %" PRIu64 " losses %" PRIu32 " gaps %" PRIu32
                  " cuts %" PRIu32 " unwinds %" PRIu32 " strays %" PRIu32 " late %d\n",
                  mood->streams, mood->events, mood->functions, mood->depth, mood->step,
                  mood->losses, mood->gaps, mood->cuts, mood->unwinds, mood->strays,
                  mood->has_late);
    print_message("exactness %d depth_max %" PRIu32 " children %" PRIu32
                  " learns %d %" PRIu64 " %" PRIu32 " paths %" PRIu32 " place %d\n",
                  model->exactness, model->depth_max, model->trace_children_max,
                  model->learns, model->learn_ns, model->learn_children,
                  scenario->config.reduce.paths_max, (int)scenario->config.place);
}

/* The parts that are told, joined at a worker as far as it has room, and at last. */
static void run_join(const struct scenario *scenario, struct product_batches *batches,
                     struct test_text *text)
{
    uint32_t window_s = (uint32_t)scenario->config.model.window_s;
    struct test_text joined = {0};

    if (scenario->join_parts)
        product_join(batches, 1, scenario->join_parts, window_s, MR_PLACE_FUSED);
    product_end_traces(batches, window_s);
    product_rows(batches, &joined);
    test_text_move(&joined, "joined ", text);
    test_text_move(&joined, "edge ", text);
    test_text_fini(&joined);
}

static void run_product(const struct scenario *scenario, const struct script *script,
                        struct totals *totals, struct test_text *text)
{
    struct product *product = product_new(&scenario->config);
    struct product_batches batches;

    for (size_t i = 0; i < script->count; i++)
        product_op(product, &script->ops[i], text);
    (void)product_finish(product);
    totals->reduced += product_counter(product, "reduced");
    totals->bulk += product_counter(product, "in_bulk");
    totals->repeats += product_counter(product, "in_repeats");
    product_end(product, &batches);
    product_lines(&batches, text);
    if (test_text_count(text, "part "))
        run_join(scenario, &batches, text);
    product_free(&batches);
}

static void check(uint64_t seed, struct totals *totals)
{
    struct mr_test_random random = {seed};
    static struct streams streams;
    struct scenario scenario;
    struct script script = {0};
    struct test_text expected = {0}, actual = {0};

    make_scenario(&random, &scenario);
    if (getenv("MR_DIFFERENTIAL_TELL"))
        tell(&scenario);
    streams_make(&random, &scenario.mood, &streams);
    streams_write(&random, &streams, &scenario.cut, &script);
    script_to_reference(&script, &scenario.config.model, &expected);
    run_product(&scenario, &script, totals, &actual);
    totals->scenarios++;
    totals->streams += streams.count;
    totals->parts += test_text_count(&expected, "part ");
    totals->joined += test_text_count(&expected, "joined ");
    totals->exemplars += test_text_count(&expected, "exemplar ");
    test_text_compare(&expected, &actual);
    test_text_fini(&expected);
    test_text_fini(&actual);
    streams_clear(&streams);
    script_clear(&script);
}

#ifdef MR_PLANTED
static bool is_sound; /* the fault that is none */
/* The scenario to begin with, the same each time: what finds a fault finds it always. */
static uint64_t first;
#endif

static uint64_t seconds(void)
{
    const char *given = getenv("MR_DIFFERENTIAL_SECONDS");

    return given ? strtoull(given, NULL, 0) : SECONDS_DEFAULT;
}

static uint64_t first_seed(void)
{
#ifdef MR_PLANTED
    return first;
#else
    return mr_test_random_new().state;
#endif
}

/* Of the processor: what else the machine does takes no scenarios away. */
static uint64_t spent_ns(void)
{
    struct timespec spent = {0, 0};

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent), 0);
    return (uint64_t)spent.tv_sec * MR_SECOND_NS + (uint64_t)spent.tv_nsec;
}

static bool is_enough(const struct totals *totals, uint64_t end_ns)
{
#ifdef MR_PLANTED
    if (!is_sound)
        return totals->scenarios == PLANTED_SCENARIOS;
#else
    MR_UNUSED(totals);
#endif
    return spent_ns() >= end_ns;
}

static void the_product_says_what_the_reference_says(void **state)
{
    uint64_t end_ns = spent_ns() + seconds() * MR_SECOND_NS;
    uint64_t seed = first_seed();
    struct totals totals = {0};

    (void)state;
    do {
        /* A failure is run again with MR_TEST_SEED of this number. */
        if (getenv("MR_DIFFERENTIAL_TELL"))
            print_message("scenario 0x%" PRIx64 "\n", seed);
        check(seed++, &totals);
    } while (!is_enough(&totals, end_ns));
    print_message("%" PRIu64 " scenarios, %" PRIu64 " streams, %" PRIu64
                  " events, %" PRIu64 " calls in bulk, %" PRIu64
                  " of them in repeats, %" PRIu64 " parts in %" PRIu64
                  " joined shapes, %" PRIu64 " exemplars\n",
                  totals.scenarios, totals.streams, totals.reduced, totals.bulk,
                  totals.repeats, totals.parts, totals.joined, totals.exemplars);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_product_says_what_the_reference_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#ifdef MR_PLANTED
int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    is_sound = strcmp(argv[1], "none") == 0;
    first = strtoull(argv[2], NULL, 0);
    return planted_run(argv[1], run_all);
}
#else
int main(void)
{
    return run_all();
}
#endif
