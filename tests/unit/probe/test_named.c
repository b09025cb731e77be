/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit_test.h"

#include "probe/named.h"

#include "base/atomics.h"
#include "net/wire.h"

static void a_name_has_a_number_of_its_own(void **state)
{
    struct mr_named named;

    (void)state;
    assert_int_equal(mr_named_init(&named), MR_OK);
    assert_true(mr_named_add(&named, "a", "f.c", 1, 0) == MR_SITE_FIRST_NAMED + 1);
    assert_true(mr_named_add(&named, "b", "f.c", 2, 3) == MR_SITE_FIRST_NAMED + 2);
    assert_true(mr_named_count(&named) == 3);
    assert_string_equal(mr_named_at(&named, 2)->name, "b");
    assert_int_equal(mr_named_at(&named, 2)->flags, 3);
    mr_named_fini(&named);
}

/* Else the child would take its dictionary for stale for ever, and send nothing. */
static void a_fork_in_the_middle_of_adding_leaves_a_true_count(void **state)
{
    struct mr_named named;

    (void)state;
    assert_int_equal(mr_named_init(&named), MR_OK);
    (void)mr_named_add(&named, "a", "f.c", 1, 0);
    named.entries[1].is_announced = 1;
    mr_store_relaxed(&named.next, 4);                /* two threads are adding: */
    mr_store_relaxed(&named.entries[2].is_ready, 1); /* not counted yet */
    mr_named_after_fork(&named);
    assert_true(mr_load_relaxed(&named.ready_count) == 3);
    assert_null(mr_named_at(&named, 3));
    assert_int_equal(mr_named_at(&named, 1)->is_announced, 0);
    mr_named_fini(&named);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_a_number_of_its_own),
        cmocka_unit_test(a_fork_in_the_middle_of_adding_leaves_a_true_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
