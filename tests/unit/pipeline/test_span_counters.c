/* SPDX-License-Identifier: Apache-2.0 */
/* Counters on spans through decode, reconstruct and reduce. */
#include "../unit_test.h"

#include <stdlib.h>
#include <string.h>

#include "net/delta.h"
#include "support_lane.h"
#include "support_model.h"

static void announce(struct test_lane *lane, uint32_t place, const char *name,
                     const char *absent)
{
    struct mr_dict_item item = {
        .kind = MR_DICT_COUNTER,
        .counter = {.counter = place, .name = name, .unit = "1", .absent = absent}};

    test_lane_item(lane, &item);
}

/*
 * "+1" enters f1, "-1" exits it, "=5" and "=5,7" are values at the event before, "l4,2,1" loses 4 events with 2 pops and
 * 1 push, "/" ends a chunk, "w" goes to the next second.
 */
static void write_text(struct test_lane *lane, const char *text)
{
    unsigned a, b, c;

    for (; *text; text += strcspn(text, " "), text += *text == ' ') {
        uint64_t ns = lane->streams[1].time;
        unsigned long long values[2];
        int count = sscanf(text, "=%llu,%llu", &values[0], &values[1]);

        if (count > 0)
            test_lane_record(lane, 1, MR_RECORD_COUNTER, ns,
                             (const uint64_t[]){values[0], count > 1 ? values[1] : 0},
                             (uint32_t)count);
        else if (sscanf(text, "+%u", &a) == 1)
            test_lane_enter(lane, 1, a, ns);
        else if (sscanf(text, "-%u", &a) == 1)
            test_lane_exit(lane, 1, a, ns);
        else if (sscanf(text, "l%u,%u,%u", &a, &b, &c) == 3)
            test_lane_loss(lane, 1, ns, a, MR_LOSS_RING_FULL, b, c);
        else if (*text == '/')
            test_lane_send(lane, 1, 0);
        else if (*text == 'w')
            lane->streams[1].time = (ns / MR_SECOND_NS + 1) * MR_SECOND_NS;
        else
            fail_msg("what is %s", text);
    }
}

static void run_with(const struct test_options *options, const char *events,
                     struct test_text *text)
{
    struct test_lane lane;

    test_lane_init(&lane, options);
    announce(&lane, 0, "a", "");
    announce(&lane, 1, "b", "");
    announce(&lane, 2, "c", "the kernel says no");
    test_lane_announce(&lane, 1, 0);
    write_text(&lane, events);
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    *text = (struct test_text){0};
    test_model(&lane, text);
    test_lane_fini(&lane);
}

static void run(const char *events, struct test_text *text)
{
    run_with(NULL, events, text);
}

static void expect(struct test_text *text, const char *prefix, const char *rest)
{
    assert_string_equal(test_text_find(text, prefix), rest);
}

static void totals_and_what_is_their_own_are_kept_per_path(void **state)
{
    struct test_text text;

    (void)state;
    run("+1 =10,100 +2 =11,100 -2 =14,105 +2 =20,105 -2 =21,105 -1 =30,200", &text);
    expect(&text, "count f1 @0 a = ", "1 back=0 self=16,16,16 total=20,20,20");
    expect(&text, "count f1/f2 @0 a = ", "2 back=0 self=4,1,3 total=4,1,3");
    expect(&text, "count f1 @0 b = ", "1 back=0 self=95,95,95 total=100,100,100");
    expect(&text, "count f1/f2 @0 b = ", "2 back=0 self=5,0,5 total=5,0,5");
    assert_int_equal(test_text_count(&text, "count "), 4);
    expect(&text, "path f1/f2 @0 = ", "2 0 0 self=0,0,0 total=0,0,0 hist=2");
    test_text_fini(&text);
}

static void names_and_reasons_are_told_upward(void **state)
{
    struct test_text text;

    (void)state;
    run("+1 =1,1 -1 =2,2", &text);
    expect(&text, "told counter a ", "unit=1 absent=");
    expect(&text, "told counter c ", "unit=1 absent=the kernel says no");
    assert_int_equal(test_text_count(&text, "told counter "), 3);
    assert_int_equal(test_text_count(&text, "count f1 @0 c"), 0); /* absent, not 0 */
    test_text_fini(&text);
}

static void calls_without_values_hand_on_what_their_children_gained(void **state)
{
    struct test_text text;

    (void)state;
    run("+1 =10 +2 +3 =12 -3 =15 +3 -3 -2 -1 =20", &text);
    expect(&text, "count f1 @0 a = ", "1 back=0 self=7,7,7 total=10,10,10");
    expect(&text, "count f1/f2/f3 @0 a = ", "1 back=0 self=3,3,3 total=3,3,3");
    assert_int_equal(test_text_count(&text, "count "), 2);
    test_text_fini(&text);
}

static void counters_that_run_backwards_are_counted_as_that(void **state)
{
    struct test_text text;

    (void)state;
    /* f2 ends below where it began; then f3's gain is more than all of f1's. */
    run("+1 =10 +2 =20 -2 =19 -1 =30 +1 =0 +3 =1 -3 =9 -1 =5", &text);
    expect(&text, "count f1/f2 @0 a = ", "0 back=1 self=0,0,0 total=0,0,0");
    expect(&text, "count f1/f3 @0 a = ", "1 back=0 self=8,8,8 total=8,8,8");
    expect(&text, "count f1 @0 a = ", "1 back=1 self=20,20,20 total=20,20,20");
    test_text_fini(&text);
}

static void values_near_2_to_the_63_are_exact(void **state)
{
    struct test_text text;

    (void)state;
    run("+1 =1 -1 =9223372036854775807", &text);
    expect(&text, "count f1 @0 a = ",
           "1 back=0 self=9223372036854775806,9223372036854775806,9223372036854775806 "
           "total=9223372036854775806,9223372036854775806,9223372036854775806");
    test_text_fini(&text);
}

static void unwound_and_lost_calls_are_not_counted(void **state)
{
    struct test_text text;

    (void)state;
    /* f3 is left without an exit; f4 is entered in a loss; the exit of f9 matches nothing. */
    run("+1 =10 +2 =11 +3 =12 +4 =13 -4 =15 -2 =20 -9 =21 -1 =30", &text);
    expect(&text, "count f1/f2 @0 a = ", "1 back=0 self=7,7,7 total=9,9,9");
    expect(&text, "count f1/f2/f3/f4 @0 a = ", "1 back=0 self=2,2,2 total=2,2,2");
    expect(&text, "count f1 @0 a = ", "1 back=0 self=11,11,11 total=20,20,20");
    assert_int_equal(test_text_count(&text, "count "), 3);
    test_text_fini(&text);
    run("+1 =10 +2 =11 l3,1,1 -4 =15 -1 =30", &text);
    expect(&text, "count f1 @0 a = ", "1 back=0 self=20,20,20 total=20,20,20");
    assert_int_equal(test_text_count(&text, "count "), 1);
    test_text_fini(&text);
}

static void values_may_come_with_the_next_chunk(void **state)
{
    struct test_text text;

    (void)state;
    run("+1 / =10 +2 =11 -2 / =14 / -1 / =30", &text);
    expect(&text, "count f1 @0 a = ", "1 back=0 self=17,17,17 total=20,20,20");
    expect(&text, "count f1/f2 @0 a = ", "1 back=0 self=3,3,3 total=3,3,3");
    test_text_fini(&text);
}

static void values_behind_a_loss_belong_to_nothing(void **state)
{
    struct test_text text;

    (void)state;
    run("+1 =10 +2 l1,0,0 =3 -2 =14 -1 =20", &text);
    expect(&text, "count f1 @0 a = ", "1 back=0 self=10,10,10 total=10,10,10");
    assert_int_equal(test_text_count(&text, "count "), 1);
    expect(&text, "counter reduce_values_without_call = ", "1");
    test_text_fini(&text);
}

static void a_call_counts_in_the_window_in_which_it_ends(void **state)
{
    struct test_text text;

    (void)state;
    run("+1 =10 +2 =11 -2 =14 w +2 =14 -2 =16 -1 =30", &text);
    expect(&text, "count f1/f2 @0 a = ", "1 back=0 self=3,3,3 total=3,3,3");
    expect(&text, "count f1/f2 @1 a = ", "1 back=0 self=2,2,2 total=2,2,2");
    expect(&text, "count f1 @1 a = ", "1 back=0 self=15,15,15 total=20,20,20");
    test_text_fini(&text);
}

static void values_of_counters_that_nobody_told_are_counted(void **state)
{
    struct test_lane lane;
    struct test_text text = {0};

    (void)state;
    test_lane_init(&lane, NULL);
    test_lane_announce(&lane, 1, 0);
    write_text(&lane, "+1 =1,2 -1 =3,4");
    test_lane_send(&lane, 1, 0);
    test_lane_end(&lane);
    test_model(&lane, &text);
    expect(&text, "counter decode_values_of_unknown_counters = ", "4");
    expect(&text, "path f1 @0 = ", "1 0 0 self=0,0,0 total=0,0,0 hist=1");
    expect(&text, "ledger 1 = ", "2 2 0");
    test_text_fini(&text);
    test_lane_fini(&lane);
}

static void shapes_times_and_the_ledger_are_those_without_counters(void **state)
{
    struct test_text with, without;
    const char *events = "+1 =1 +2 =2 -2 =3 +2 =3 -2 =4 +3 =5 -3 =6 -1 =9 ";
    char plain[] = "+1 +2 -2 +2 -2 +3 -3 -1 ";
    static const char *const kinds[] = {"path ", "shape ", "entry ", "ledger "};

    (void)state;
    run(events, &with);
    run(plain, &without);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(test_text_count(&with, kinds[i]),
                         test_text_count(&without, kinds[i]));
    assert_string_equal(test_text_find(&with, "shape f1 @0 "),
                        test_text_find(&without, "shape f1 @0 "));
    assert_string_equal(test_text_find(&with, "ledger "),
                        test_text_find(&without, "ledger "));
    test_text_fini(&with);
    test_text_fini(&without);
}

/* Small tables, so that they are forgotten all the time, against large ones. */
static void forgetting_loses_no_count(void **state)
{
    struct mr_reduce_config small = MR_REDUCE_CONFIG_DEFAULT;
    struct test_options options = {.reduce = &small};
    struct test_text few, many;
    size_t size = 0;
    char *events = malloc(1 << 20);
    unsigned value = 0;

    (void)state;
    small.paths_max = 24;
    small.nodes_max = 24;
    for (unsigned round = 0; round < 300; round++) {
        unsigned root = 1 + round % 7, child = 20 + round % 53;

        size += (size_t)sprintf(events + size, "+%u =%u ", root, value);
        for (unsigned i = 0; i < 3; i++, value += 5)
            size += (size_t)sprintf(events + size, "+%u =%u -%u =%u ", child + i,
                                    value + 1, child + i, value + 3);
        size += (size_t)sprintf(events + size, "-%u =%u ", root, value + 2);
        value += 7;
    }
    run_with(&options, events, &few);
    run(events, &many);
    assert_true(test_text_count(&many, "count ") > 200);
    assert_int_equal(test_text_count(&few, "count "), test_text_count(&many, "count "));
    for (unsigned root = 1; root <= 7; root++) {
        char key[32];

        (void)snprintf(key, sizeof(key), "count f%u @0 a = ", root);
        assert_string_equal(test_text_find(&few, key), test_text_find(&many, key));
    }
    free(events);
    test_text_fini(&few);
    test_text_fini(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_and_what_is_their_own_are_kept_per_path),
        cmocka_unit_test(names_and_reasons_are_told_upward),
        cmocka_unit_test(calls_without_values_hand_on_what_their_children_gained),
        cmocka_unit_test(counters_that_run_backwards_are_counted_as_that),
        cmocka_unit_test(values_near_2_to_the_63_are_exact),
        cmocka_unit_test(unwound_and_lost_calls_are_not_counted),
        cmocka_unit_test(values_may_come_with_the_next_chunk),
        cmocka_unit_test(values_behind_a_loss_belong_to_nothing),
        cmocka_unit_test(a_call_counts_in_the_window_in_which_it_ends),
        cmocka_unit_test(values_of_counters_that_nobody_told_are_counted),
        cmocka_unit_test(shapes_times_and_the_ledger_are_those_without_counters),
        cmocka_unit_test(forgetting_loses_no_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
