/* SPDX-License-Identifier: Apache-2.0 */
/* Templates have room for more by growing, up to a limit (filters/reduce_templates_memory.c). */
#include "../unit_test.h"

#include "pipeline/filters/reduce_private.h"

#define CALLS 4u /* of each: both pools are full together */

/* The next template, which can be told from all others. */
static void put_template(struct mr_templates *templates)
{
    const uint32_t number = templates->count++;

    templates->items[number] = (struct mr_template){.hash = number,
                                                    .calls = CALLS,
                                                    .first_call = templates->call_count,
                                                    .first_code = templates->code_count};
    for (uint32_t i = 0; i < CALLS; i++)
        templates->calls[templates->call_count++] =
            (struct mr_template_call){.low = number, .width = i};
    for (uint32_t i = 0; i < 2 * CALLS; i++)
        templates->codes[templates->code_count++] = 2 * CALLS * number + i;
}

static void check_template(const struct mr_templates *templates, uint32_t number)
{
    const struct mr_template *template = &templates->items[number];

    assert_int_equal(template->hash, number);
    for (uint32_t i = 0; i < CALLS; i++) {
        const struct mr_template_call *call = &templates->calls[template->first_call + i];

        assert_int_equal(call->low, number);
        assert_int_equal(call->width, i);
    }
    for (uint32_t i = 0; i < 2 * CALLS; i++)
        assert_int_equal(templates->codes[template->first_code + i],
                         2 * CALLS * number + i);
}

static void fill(struct mr_templates *templates)
{
    while (mr_templates_have_room(templates, CALLS))
        put_template(templates);
}

static void all_that_was_there_is_there_when_they_have_grown(void **state)
{
    struct mr_templates templates;
    uint32_t grown = 0, before;

    (void)state;
    assert_int_equal(mr_templates_init(&templates, 64, NULL), MR_OK);
    before = templates.capacity;
    while (mr_templates_have_room(&templates, CALLS)) {
        if (templates.capacity != before)
            for (uint32_t i = 1; i < templates.count; i++)
                check_template(&templates, i);
        grown += templates.capacity != before;
        before = templates.capacity;
        put_template(&templates);
    }
    assert_int_equal(templates.count, MR_TEMPLATES_MAX);
    assert_in_range(grown, 2, 16);
    for (uint32_t i = 1; i < templates.count; i++)
        check_template(&templates, i);
    mr_templates_fini(&templates);
}

/* Calls are used up long before templates. */
static void calls_have_a_limit_of_their_own(void **state)
{
    struct mr_templates templates;
    uint32_t count = 0;

    (void)state;
    assert_int_equal(mr_templates_init(&templates, 64, NULL), MR_OK);
    for (; mr_templates_have_room(&templates, MR_TEMPLATE_CALLS_MAX); count++)
        templates.call_count += MR_TEMPLATE_CALLS_MAX;
    assert_int_equal(count, MR_TEMPLATES_CALLS_MAX / MR_TEMPLATE_CALLS_MAX);
    templates.call_count--;
    assert_true(mr_templates_have_room(&templates, 1));
    assert_false(mr_templates_have_room(&templates, 2));
    mr_templates_fini(&templates);
}

static void cleared_they_have_room_again_and_released_they_are_small(void **state)
{
    struct mr_templates templates;

    (void)state;
    assert_int_equal(mr_templates_init(&templates, 64, NULL), MR_OK);
    fill(&templates);
    mr_templates_clear(&templates);
    assert_int_equal(templates.count, 1);
    assert_int_equal(templates.capacity, MR_TEMPLATES_MAX);
    fill(&templates);
    assert_int_equal(templates.count, MR_TEMPLATES_MAX);
    mr_templates_release(&templates);
    assert_int_equal(templates.capacity, MR_TEMPLATES_FIRST);
    fill(&templates);
    assert_int_equal(templates.count, MR_TEMPLATES_MAX);
    check_template(&templates, 1);
    check_template(&templates, MR_TEMPLATES_MAX - 1);
    mr_templates_fini(&templates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_was_there_is_there_when_they_have_grown),
        cmocka_unit_test(calls_have_a_limit_of_their_own),
        cmocka_unit_test(cleared_they_have_room_again_and_released_they_are_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
