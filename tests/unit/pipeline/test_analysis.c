/* SPDX-License-Identifier: Apache-2.0 */
/* decode, reconstruct and reduce together against the naive reference, on random streams. */
#include "../unit_test.h"

#include <string.h>

#include "pipeline/bins.h"
#include "support_lane.h"
#include "support_model.h"
#include "support_reference.h"

#define EVENTS_MAX 6000
#define STREAM_COUNT 3
#define FUNCTIONS 6
#define OPEN_MAX 40

struct scenario {
    struct test_event events[STREAM_COUNT + 1][EVENTS_MAX];
    uint32_t counts[STREAM_COUNT + 1];
    uint32_t starts[STREAM_COUNT + 1];
};

/* How wild the streams are. */
struct mood {
    uint32_t losses, gaps, unwinds, strays, clock_steps; /* per 1000 events */
    uint64_t step_ns;                                    /* up to */
    uint32_t leaps; /* per 1000: a step of up to 20 s */
};

static uint64_t next_time(struct mr_test_random *random, const struct mood *mood,
                          uint64_t ns)
{
    if (mr_test_random_below(random, 1000) < mood->clock_steps)
        return ns > 1000 ? ns - mr_test_random_below(random, 1000) : ns;
    if (mr_test_random_below(random, 1000) < mood->leaps)
        return ns + mr_test_random_below(random, 20 * MR_SECOND_NS);
    return ns + mr_test_random_below(random, mood->step_ns);
}

/* Follows what is open roughly, so that most exits match. */
struct walker {
    uint32_t open[OPEN_MAX + 8], depth;
};

static void make_call(struct mr_test_random *random, struct walker *walker,
                      struct test_event *event)
{
    bool opens = walker->depth == 0 ||
                 (walker->depth < OPEN_MAX && mr_test_random_below(random, 100) < 48);

    if (opens) {
        event->kind = TEST_ENTER;
        event->function = 1 + (uint32_t)mr_test_random_below(random, FUNCTIONS);
        walker->open[walker->depth++] = event->function;
        return;
    }
    event->kind = TEST_EXIT;
    event->function = walker->open[--walker->depth];
}

static void make_loss(struct mr_test_random *random, struct walker *walker,
                      struct test_event *event)
{
    event->kind = TEST_LOSS;
    event->reason = 1 + (uint32_t)mr_test_random_below(random, 2);
    event->pops = (uint32_t)mr_test_random_below(random, walker->depth + 1);
    event->pushes = (uint32_t)mr_test_random_below(random, 4);
    event->events = event->pops + event->pushes + 2 * mr_test_random_below(random, 10);
    walker->depth -= event->pops;
    for (uint32_t i = 0; i < event->pushes && walker->depth < OPEN_MAX; i++)
        walker->open[walker->depth++] =
            1 + (uint32_t)mr_test_random_below(random, FUNCTIONS);
}

static void make_unwind(struct mr_test_random *random, struct walker *walker,
                        struct test_event *event)
{
    uint32_t remains = (uint32_t)mr_test_random_below(random, walker->depth + 1);

    walker->depth = remains;
    event->kind = TEST_UNWIND;
    event->value = remains;
    if (mr_test_random_below(random, 2) &&
        remains) { /* told by nobody: the catcher exits */
        event->kind = TEST_EXIT;
        event->function = walker->open[--walker->depth];
    }
}

static void make_event(struct mr_test_random *random, const struct mood *mood,
                       struct walker *walker, struct test_event *event)
{
    uint64_t dice = mr_test_random_below(random, 1000), at = mood->losses;

    if (dice < at)
        make_loss(random, walker, event);
    else if (dice < (at += mood->gaps))
        *event = (struct test_event){.kind = TEST_GAP,
                                     .ns = event->ns,
                                     .events = 1 + mr_test_random_below(random, 50)};
    else if (dice < (at += mood->unwinds))
        make_unwind(random, walker, event);
    else if (dice < (at += mood->strays)) {
        event->kind = TEST_EXIT;
        event->function = 1 + (uint32_t)mr_test_random_below(random, FUNCTIONS + 1);
    } else if (dice < (at += 10)) {
        event->kind = mr_test_random_below(random, 2) ? TEST_STATUS : TEST_OTHER;
        event->value = mr_test_random_below(random, 3) > 0;
    } else {
        make_call(random, walker, event);
    }
}

static void make_scenario(struct mr_test_random *random, const struct mood *mood,
                          uint32_t count, struct scenario *scenario)
{
    for (uint32_t stream = 1; stream <= STREAM_COUNT; stream++) {
        struct walker walker = {.depth = 0};
        uint64_t ns = 1 + mr_test_random_below(random, 2 * MR_SECOND_NS);

        scenario->counts[stream] = count;
        scenario->starts[stream] = mr_test_random_below(random, 2) ? 1 : 0;
        for (uint32_t i = 0; i < count; i++) {
            struct test_event *event = &scenario->events[stream][i];

            *event = (struct test_event){.ns = ns};
            make_event(random, mood, &walker, event);
            /* A gap has no time of its own: it is noticed at the chunk that follows. */
            ns = event->kind == TEST_GAP ? ns : next_time(random, mood, ns);
        }
    }
}

static void write_event(struct test_lane *lane, uint32_t stream,
                        const struct test_event *event)
{
    static const uint64_t label[2] = {1, 2};

    switch (event->kind) {
    case TEST_ENTER:
        test_lane_enter(lane, stream, event->function, event->ns);
        break;
    case TEST_EXIT:
        test_lane_exit(lane, stream, event->function, event->ns);
        break;
    case TEST_LOSS:
        test_lane_loss(lane, stream, event->ns, event->events, event->reason, event->pops,
                       event->pushes);
        break;
    case TEST_STATUS:
        test_lane_status(lane, stream, event->ns, event->value);
        break;
    case TEST_UNWIND:
        test_lane_unwind(lane, stream, event->ns, event->value);
        break;
    case TEST_OTHER:
        test_lane_record(lane, stream, MR_RECORD_LABEL, event->ns, label, 2);
        lane->streams[stream].events++;
        break;
    case TEST_GAP:
        break;
    }
}

static void send_some(struct mr_test_random *random, struct test_lane *lane,
                      uint32_t stream)
{
    if (mr_test_random_below(random, 3) == 0)
        test_lane_send_compact(lane, stream, 0);
    else
        test_lane_send(lane, stream, 0);
    if (mr_test_random_below(random, 8) == 0)
        test_lane_tick(lane, mr_test_random_below(random, 400) * MR_MILLISECOND_NS);
}

/* What one stream learns holds for the others from then on, so it would depend on how they are interleaved. */
static const struct mr_reconstruct_config reconstruct = {
    .level = 1,
    .depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
    .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
    .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT,
    .learns_nothing = true};

/* The scenario through a lane, cut into chunks of up to `chunk_max` events, the streams interleaved at random. */
static void run_lane(struct mr_test_random *random, const struct scenario *scenario,
                     uint32_t chunk_max, const struct test_options *options,
                     struct test_text *text)
{
    struct test_options all = options ? *options : (struct test_options){0};
    struct test_lane lane;
    uint32_t at[STREAM_COUNT + 1] = {0}, left = STREAM_COUNT;

    all.reconstruct = &reconstruct;
    test_lane_init(&lane, &all);
    for (uint32_t stream = 1; stream <= STREAM_COUNT; stream++)
        test_lane_announce(&lane, stream, scenario->starts[stream]);
    while (left) {
        uint32_t stream = 1 + (uint32_t)mr_test_random_below(random, STREAM_COUNT);
        uint64_t chunk = 1 + mr_test_random_below(random, chunk_max);

        if (at[stream] == scenario->counts[stream])
            continue;
        for (; chunk && at[stream] < scenario->counts[stream]; chunk--) {
            const struct test_event *event = &scenario->events[stream][at[stream]++];

            if (event->kind != TEST_GAP) {
                write_event(&lane, stream, event);
                continue;
            }
            if (lane.streams[stream].count)
                send_some(random, &lane, stream);
            test_lane_gap(&lane, stream, event->events);
        }
        if (lane.streams[stream].count)
            send_some(random, &lane, stream);
        left -= at[stream] == scenario->counts[stream];
    }
    for (uint32_t stream = 1; stream <= STREAM_COUNT; stream++)
        test_lane_send(&lane, stream,
                       mr_test_random_below(random, 2) ? MR_CHUNK_LAST : 0);
    test_lane_end(&lane);
    assert_false(mr_source_is_broken(lane.source));
    assert_true(mr_source_is_done(lane.source));
    test_model(&lane, text);
    test_lane_fini(&lane);
    test_text_drop(text, "open ");
    test_text_drop(text, "outer ");
    test_text_drop(text, "source ");
    test_text_drop(text, "counter ");
}

static void run_reference(const struct scenario *scenario, enum test_exactness exactness,
                          struct test_text *text)
{
    struct test_reference *reference = test_reference_new(exactness);

    for (uint32_t stream = 1; stream <= STREAM_COUNT; stream++) {
        test_reference_start(reference, stream, scenario->starts[stream]);
        for (uint32_t i = 0; i < scenario->counts[stream]; i++)
            test_reference_event(reference, stream, &scenario->events[stream][i]);
    }
    test_reference_end(reference, text);
    test_text_sort(text);
}

static void check(struct mr_test_random *random, const struct mood *mood, uint32_t count,
                  const struct test_options *options)
{
    static const enum test_exactness exactness_of[] = {[MR_EXACTNESS_FOLDED] =
                                                           TEST_FOLDED,
                                                       [MR_EXACTNESS_EXACT] = TEST_EXACT,
                                                       [MR_EXACTNESS_SET] = TEST_SET};
    static const uint32_t chunk_max[] = {1, 7, 300, 5000};
    enum mr_exactness exactness =
        options && options->reduce ? options->reduce->exactness : MR_EXACTNESS_FOLDED;
    struct scenario *scenario = malloc(sizeof(*scenario));
    struct test_text expected = {0};

    assert_non_null(scenario);
    make_scenario(random, mood, count, scenario);
    run_reference(scenario, exactness_of[exactness], &expected);
    assert_true(expected.count > STREAM_COUNT);
    for (size_t i = 0; i < sizeof(chunk_max) / sizeof(chunk_max[0]); i++) {
        struct test_text actual = {0};

        run_lane(random, scenario, chunk_max[i], options, &actual);
        test_text_compare(&expected, &actual);
        test_text_fini(&actual);
    }
    test_text_fini(&expected);
    free(scenario);
}

static const struct mood calm = {.step_ns = 3000, .leaps = 1};
static const struct mood slow = {.step_ns = 40000000, .leaps = 5, .clock_steps = 50};
static const struct mood wild = {.losses = 5,
                                 .gaps = 2,
                                 .unwinds = 10,
                                 .strays = 10,
                                 .clock_steps = 20,
                                 .step_ns = 50000,
                                 .leaps = 3};
static const struct mood gappy = {
    .gaps = 3, .strays = 1, .step_ns = 100000000, .leaps = 1};

static void calm_streams_give_what_the_reference_says(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int i = 0; i < 4; i++)
        check(&random, &calm, 3000, NULL);
}

static void windows_and_clock_steps_give_what_the_reference_says(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int i = 0; i < 4; i++)
        check(&random, &slow, 1500, NULL);
}

static void losses_unwinds_and_strays_give_what_the_reference_says(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int i = 0; i < 8; i++)
        check(&random, &wild, 2000, NULL);
}

static void gaps_are_found_again_as_the_reference_says(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int i = 0; i < 4; i++)
        check(&random, &gappy, 3000, NULL);
}

static void exact_and_set_shapes_are_those_of_the_reference(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};

    (void)state;
    for (int i = 0; i < 4; i++) {
        reduce.exactness = i % 2 ? MR_EXACTNESS_EXACT : MR_EXACTNESS_SET;
        check(&random, &calm, 1500, &options);
        check(&random, &wild, 1500, &options);
    }
}

static void small_tables_and_deltas_change_nothing(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_reduce_config reduce = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &reduce};

    (void)state;
    reduce.paths_max = 400; /* 3 streams x 42 open calls always fit */
    reduce.nodes_max = 4000;
    reduce.shapes_max = 20;
    reduce.bins_max = 2 * MR_BINS_COUNT;
    reduce.delta_bytes_max = 2000;
    for (int i = 0; i < 4; i++)
        check(&random, i % 2 ? &wild : &calm, 2000, &options);
}

static void filters_in_threads_of_their_own_say_the_same(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct test_options options = {.place = MR_PLACE_THREAD};

    (void)state;
    for (int i = 0; i < 3; i++)
        check(&random, &wild, 2000, &options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calm_streams_give_what_the_reference_says),
        cmocka_unit_test(windows_and_clock_steps_give_what_the_reference_says),
        cmocka_unit_test(losses_unwinds_and_strays_give_what_the_reference_says),
        cmocka_unit_test(gaps_are_found_again_as_the_reference_says),
        cmocka_unit_test(exact_and_set_shapes_are_those_of_the_reference),
        cmocka_unit_test(small_tables_and_deltas_change_nothing),
        cmocka_unit_test(filters_in_threads_of_their_own_say_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
