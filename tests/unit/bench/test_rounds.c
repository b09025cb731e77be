/* SPDX-License-Identifier: Apache-2.0 */
/* bench/rounds.h: every loop measures every case once, in changing order. */
#include "bench/rounds.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <string.h>

#define CASES 5
#define LOOPS 20

struct seen {
    uint32_t counts[LOOPS][CASES];
    size_t order[LOOPS][CASES];
    uint32_t calls, end_after;
};

static enum mr_status measure(void *context, size_t index, uint32_t loop)
{
    struct seen *seen = context;
    uint32_t before = 0;

    if (seen->end_after > 0 && seen->calls == seen->end_after)
        return MR_END;
    for (int i = 0; i < CASES; i++)
        before += seen->counts[loop][i];
    seen->order[loop][before % CASES] = index;
    seen->counts[loop][index]++;
    seen->calls++;
    return MR_OK;
}

static struct mr_rounds rounds_of(struct seen *seen)
{
    return (struct mr_rounds){.loops = LOOPS,
                              .steal_percent = 100,
                              .case_count = CASES,
                              .measure = measure,
                              .context = seen};
}

static void each_loop_measures_each_case(void **state)
{
    static struct seen seen;
    struct mr_rounds rounds = rounds_of(&seen);
    int changed = 0;

    MR_UNUSED(state);
    mr_rounds_run(&rounds);
    assert_int_equal(rounds.kept, LOOPS); /* all, whatever is stolen here */
    assert_int_equal(rounds.discarded, 0);
    assert_false(rounds.is_partial);
    assert_int_equal(seen.calls, (rounds.kept + rounds.discarded) * CASES);
    for (uint32_t i = 0; i < rounds.kept; i++)
        for (int j = 0; j < CASES; j++)
            assert_true(seen.counts[i][j] > 0);
    for (uint32_t i = 1; i < rounds.kept; i++)
        changed += memcmp(seen.order[i], seen.order[0], sizeof(seen.order[0])) != 0;
    assert_true(rounds.kept < 2 || changed > 0);
}

static void ctrl_c_ends_with_what_there_is(void **state)
{
    static struct seen seen;
    struct mr_rounds rounds = rounds_of(&seen);

    MR_UNUSED(state);
    seen.end_after = 3 * CASES + 2;
    mr_rounds_run(&rounds);
    assert_true(rounds.is_partial);
    assert_int_equal(rounds.kept + rounds.discarded, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_loop_measures_each_case),
        cmocka_unit_test(ctrl_c_ends_with_what_there_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
