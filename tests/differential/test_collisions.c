/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two shapes of one id are found where their dictionaries meet, and cost nothing but the one shape. Built with the fault
 * ids-of-12-bits (faults.py), and told so by an argument, ids of nodes collide; else none may.
 */
#include "../unit/unit_test.h"

#include "product.h"
#include "streams.h"

static const struct mood mood = {.streams = 30,
                                 .events = 2000,
                                 .functions = 40,
                                 .depth = 12,
                                 .opens = 50,
                                 .step = 100};
static const struct cut cut = {.chunk_max = 500, .frame_chunks = 3, .ticks = 10};

static void run(struct mr_test_random *random, struct product_batches *batches,
                struct test_text *expected)
{
    struct product_config config = {
        .model = {.depth_max = MR_RECONSTRUCT_DEPTH_DEFAULT,
                  .trace_children_max = MR_REDUCE_TRACE_CHILDREN_DEFAULT,
                  .learn_ns = MR_RECONSTRUCT_LEARN_NS_DEFAULT,
                  .learn_children = MR_RECONSTRUCT_LEARN_CHILDREN_DEFAULT,
                  .window_s = 1,
                  .app = "app",
                  .version = "1",
                  .clock_mult = 1,
                  .clock_realtime_ns = UINT64_C(1700000000) * MR_SECOND_NS},
        .reduce = MR_REDUCE_CONFIG_DEFAULT};
    struct product *product = product_new(&config);
    struct streams streams;
    struct script script = {0};

    streams_make(random, &mood, &streams);
    streams_write(random, &streams, &cut, &script);
    script_to_reference(&script, &config.model, expected);
    for (size_t i = 0; i < script.count; i++)
        product_op(product, &script.ops[i], NULL);
    product_end(product, batches);
    streams_clear(&streams);
    script_clear(&script);
}

static void no_two_shapes_have_one_id(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct test_text expected = {0}, actual = {0};
    struct product_batches batches;

    (void)state;
    run(&random, &batches, &expected);
    assert_true(test_text_count(&expected, "shape ") > 500); /* 1,000 to 1,700 */
    assert_int_equal(product_merge_collisions(&batches), 0);
    product_lines(&batches, &actual);
    test_text_drop(&actual, "exemplar ");
    test_text_compare(&expected, &actual);
    product_free(&batches);
    test_text_fini(&expected);
    test_text_fini(&actual);
}

/* Of what does not hang on the shape's id nothing is touched: paths, entry points, ledger. */
static void colliding_ids_are_counted(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct test_text expected = {0}, actual = {0};
    struct product_batches batches;

    (void)state;
    run(&random, &batches, &expected);
    assert_true(product_merge_collisions(&batches) > 100);
    product_rows(&batches, &actual);
    test_text_drop(&actual, "exemplar ");
    test_text_drop(&expected, "shape ");
    test_text_drop(&expected, "outer ");
    test_text_drop(&actual, "shape ");
    test_text_compare(&expected, &actual);
    product_free(&batches);
    test_text_fini(&expected);
    test_text_fini(&actual);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest sound[] = {cmocka_unit_test(no_two_shapes_have_one_id)};
    const struct CMUnitTest faulty[] = {cmocka_unit_test(colliding_ids_are_counted)};

    (void)argv;
    return argc > 1 ? cmocka_run_group_tests(faulty, NULL, NULL)
                    : cmocka_run_group_tests(sound, NULL, NULL);
}
