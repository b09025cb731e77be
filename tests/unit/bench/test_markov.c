/* SPDX-License-Identifier: Apache-2.0 */
/* bench/markov.h: what is made nests, is never the same again, and takes the ways of the recording as often as that. */
#include "bench/markov.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "net/wire.h"
#include "tests/unit/unit_test.h"

#define FUNCTIONS 8u
#define TREES 2000
#define CALLS 12 /* below a root, on average */

#define ENTER(site) ((uint64_t)(site) << MR_WORD_SITE_SHIFT)
#define EXIT(site) (MR_WORD_EXIT | ENTER(site))

/* Of a recording, functions are numbered as they come. */
enum { ROOT, OFTEN, SELDOM, BELOW, OTHER };
static const uint64_t often[] = {ENTER(20), EXIT(20)};
static const uint64_t seldom[] = {ENTER(30), ENTER(40), EXIT(40), EXIT(30)};
static const uint64_t other[] = {ENTER(50), EXIT(50)};

/* ROOT calls OFTEN half of the time, else SELDOM, which calls BELOW once, or OTHER; it ends after one in CALLS of its children. */
static struct mr_markov *learn(struct mr_test_random *random, uint32_t stack)
{
    const uint64_t enter = ENTER(10), exit = EXIT(10);
    struct mr_markov *markov = mr_markov_new();

    for (int tree = 0; tree < TREES; tree++) {
        mr_markov_learn(markov, stack, &enter, 1);
        mr_markov_learn(markov, stack, often, MR_ARRAY_COUNT(often));
        for (int call = 1; call == 1 || mr_test_random_below(random, CALLS) > 0; call++)
            if (call > 1 && mr_test_random_below(random, 2) > 0)
                mr_markov_learn(markov, stack, often, MR_ARRAY_COUNT(often));
            else if (call == 1 || mr_test_random_below(random, 2) > 0)
                mr_markov_learn(markov, stack, seldom, MR_ARRAY_COUNT(seldom));
            else
                mr_markov_learn(markov, stack, other, MR_ARRAY_COUNT(other));
        mr_markov_learn(markov, stack, &exit, 1);
    }
    return markov;
}

struct tree {
    uint32_t calls[FUNCTIONS], below[FUNCTIONS][FUNCTIONS];
    uint64_t hash;
};

static void look_at(struct tree *tree, const struct mr_markov_step *steps, uint32_t count)
{
    uint32_t stack[FUNCTIONS], depth = 0;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t function = steps[i].function;

        assert_true(function < FUNCTIONS);
        assert_true(i == 0 || depth > 0); /* one tree, which ends with its last event */
        tree->hash = (tree->hash ^ (2 * function + steps[i].is_exit)) * 1099511628211u;
        if (steps[i].is_exit) {
            assert_int_equal(stack[--depth], function);
            continue;
        }
        assert_true(depth < 3);
        tree->calls[function]++;
        if (depth > 0)
            tree->below[stack[depth - 1]][function]++;
        stack[depth++] = function;
    }
    assert_int_equal(depth, 0);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void what_is_made_is_new_and_as_frequent_as_what_was_recorded(void **state)
{
    static uint64_t hashes[TREES];
    struct mr_test_random random = mr_test_random_new();
    struct mr_markov *markov = learn(&random, MR_MARKOV_STACKS - 1);
    struct tree all = {{0}, {{0}}, 0};
    uint64_t seed = 1;

    MR_UNUSED(state);
    assert_int_equal(mr_markov_seal(markov, 5), MR_OK);
    assert_int_equal(mr_markov_paths(markov), 5);
    for (int i = 0; i < TREES; i++) {
        const struct mr_markov_step *steps;
        uint32_t count = mr_markov_make(markov, &seed, &steps);

        all.hash = 0;
        look_at(&all, steps, count);
        hashes[i] = all.hash;
    }
    qsort(hashes, TREES, sizeof(*hashes), compare);
    for (int i = 1; i < TREES; i++)
        assert_true(hashes[i] != hashes[i - 1]);
    assert_int_equal(all.calls[ROOT], TREES);
    assert_int_equal(all.below[ROOT][OFTEN], all.calls[OFTEN]);
    assert_int_equal(all.below[ROOT][SELDOM], all.calls[SELDOM]);
    assert_int_equal(all.below[SELDOM][BELOW], all.calls[BELOW]);
    assert_int_equal(all.calls[BELOW], all.calls[SELDOM]);
    /* Small ones came before and are left out, so there are more calls than recorded; of each kind as many to one of another. */
    assert_true(all.calls[OFTEN] + all.calls[SELDOM] + all.calls[OTHER] > TREES * CALLS);
    assert_true(all.calls[OFTEN] * 10 > all.calls[OTHER] * 18);
    assert_true(all.calls[OFTEN] * 10 < all.calls[OTHER] * 32);
    assert_true(all.calls[SELDOM] * 10 > all.calls[OTHER] * 9);
    assert_true(all.calls[SELDOM] * 10 < all.calls[OTHER] * 19);
    mr_markov_free(markov);
}

static void a_recording_of_nothing_or_too_many_functions_is_refused(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_markov *markov = mr_markov_new();

    MR_UNUSED(state);
    assert_int_equal(mr_markov_seal(markov, 5), MR_ENOTFOUND);
    mr_markov_free(markov);
    markov = learn(&random, 0);
    assert_int_equal(mr_markov_seal(markov, 4), MR_ELIMIT);
    mr_markov_free(markov);
    mr_markov_free(NULL);
}

/* One function that calls itself, ever deeper: nothing else is in sight when the calls are as many as may be. */
static void a_tree_without_end_is_ended(void **state)
{
    const uint64_t down[] = {ENTER(1), ENTER(2)}, again[] = {EXIT(2), ENTER(2)};
    struct mr_markov *markov = mr_markov_new();
    const struct mr_markov_step *steps;
    uint64_t seed = 1;
    uint32_t count;

    MR_UNUSED(state);
    mr_markov_learn(markov, 0, down, MR_ARRAY_COUNT(down));
    for (int i = 0; i < 10; i++)
        mr_markov_learn(markov, 0, again, MR_ARRAY_COUNT(again));
    assert_int_equal(mr_markov_seal(markov, 2), MR_OK);
    count = mr_markov_make(markov, &seed, &steps);
    assert_int_equal(count, 2 * MR_MARKOV_CALLS_MAX);
    assert_true(steps[count - 1].is_exit && steps[count - 1].function == 0);
    mr_markov_free(markov);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_made_is_new_and_as_frequent_as_what_was_recorded),
        cmocka_unit_test(a_recording_of_nothing_or_too_many_functions_is_refused),
        cmocka_unit_test(a_tree_without_end_is_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
