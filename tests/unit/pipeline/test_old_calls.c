/* SPDX-License-Identifier: Apache-2.0 */
/* How old an open call is, in events that come round after 2^32 of them (filters/reduce_calls.c). */
#include "../unit_test.h"

#include <stdlib.h>

#include "pipeline/filters/reduce_private.h"

#define BATCH 4096u
#define CALLS 5u

static uint32_t age_of(const struct mr_reduce *reduce, const struct mr_open_call *call)
{
    return reduce->taken - call->opened;
}

/* 2^34 events, in steps of as many as may come between two looks. */
static void a_call_never_gets_young_again(void **state)
{
    struct mr_open_call calls[CALLS] = {{0}}, other = {0};
    struct mr_reduce_stream second = {.frames = &other, .depth = 1};
    struct mr_reduce_stream first = {.frames = calls, .next = &second};
    struct mr_reduce *reduce = calloc(1, sizeof(*reduce));
    uint64_t events = 0, opened[CALLS] = {0};

    (void)state;
    assert_non_null(reduce);
    reduce->streams = &first;
    other.opened = (uint32_t)0 - 1;
    while (events < UINT64_C(1) << 34) {
        if (first.depth < CALLS && events >= ((uint64_t)first.depth << 30)) {
            opened[first.depth] = events;
            calls[first.depth++].opened = reduce->taken;
        }
        events += 16 * BATCH;
        reduce->taken += 16 * BATCH;
        mr_reduce_age_calls(reduce);
        for (uint32_t i = 0; i < first.depth; i++) {
            uint64_t age = events - opened[i];

            if (age <= MR_REDUCE_OLD)
                assert_int_equal(age_of(reduce, &calls[i]), age);
            else
                assert_true(age_of(reduce, &calls[i]) >= MR_REDUCE_OLD);
        }
        assert_true(age_of(reduce, &other) > BATCH);
    }
    assert_int_equal(first.depth, CALLS);
    free(reduce);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_never_gets_young_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
