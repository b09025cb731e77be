/* SPDX-License-Identifier: Apache-2.0 */
/* worker/senders.h: the table of the senders that a lane knows. */
#include "worker/senders.h"

#include "base/compiler.h"
#include "tests/unit/unit_test.h"

#include <string.h>

static void an_added_sender_is_found_and_starts_at_sequence_1(void **state)
{
    struct mr_senders senders;
    struct mr_id id = {1, 2};
    struct mr_lane_sender *sender;

    MR_UNUSED(state);
    mr_senders_init(&senders, 10);
    assert_null(mr_senders_find(&senders, id));
    sender = mr_senders_add(&senders, id);
    assert_non_null(sender);
    assert_int_equal(sender->next_sequence, 1);
    assert_null(sender->connection);
    assert_ptr_equal(mr_senders_find(&senders, id), sender);
    mr_senders_fini(&senders);
}

static void a_full_table_takes_no_more(void **state)
{
    struct mr_senders senders;

    MR_UNUSED(state);
    mr_senders_init(&senders, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_non_null(mr_senders_add(&senders, (struct mr_id){0, i}));
    assert_null(mr_senders_add(&senders, (struct mr_id){0, 3}));
    assert_non_null(mr_senders_find(&senders, (struct mr_id){0, 2}));
    mr_senders_fini(&senders);
}

static bool keep_odd(void *context, struct mr_lane_sender *sender)
{
    ++*(uint32_t *)context;
    return sender->id.lo % 2 == 1;
}

static void a_sweep_visits_all_and_forgets_what_it_is_told_to(void **state)
{
    struct mr_senders senders;
    uint32_t visited = 0;

    MR_UNUSED(state);
    mr_senders_init(&senders, 5000);
    for (uint64_t i = 0; i < 5000; i++) /* several in each bucket */
        assert_non_null(mr_senders_add(&senders, (struct mr_id){7, i}));
    mr_senders_sweep(&senders, keep_odd, &visited);
    assert_int_equal(visited, 5000);
    assert_int_equal(senders.count, 2500);
    for (uint64_t i = 0; i < 5000; i++) {
        struct mr_lane_sender *sender = mr_senders_find(&senders, (struct mr_id){7, i});

        assert_true(i % 2 == 1 ? sender != NULL : sender == NULL);
    }
    mr_senders_fini(&senders);
}

#define IDS 64

/* Against a plain array of flags. */
static void random_additions_and_sweeps_agree_with_a_model(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    struct mr_senders senders;
    bool is_there[IDS] = {false};

    MR_UNUSED(state);
    mr_senders_init(&senders, IDS);
    for (int step = 0; step < 20000; step++) {
        uint64_t lo = mr_test_random_below(&random, IDS);
        struct mr_id id = {3, lo};
        uint32_t ignored = 0;

        assert_true((mr_senders_find(&senders, id) != NULL) == is_there[lo]);
        if (!is_there[lo]) {
            assert_non_null(mr_senders_add(&senders, id));
            is_there[lo] = true;
        } else if (mr_test_random_below(&random, 100) == 0) {
            mr_senders_sweep(&senders, keep_odd, &ignored);
            for (uint64_t i = 0; i < IDS; i += 2)
                is_there[i] = false;
        }
    }
    mr_senders_fini(&senders);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_added_sender_is_found_and_starts_at_sequence_1),
        cmocka_unit_test(a_full_table_takes_no_more),
        cmocka_unit_test(a_sweep_visits_all_and_forgets_what_it_is_told_to),
        cmocka_unit_test(random_additions_and_sweeps_agree_with_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
