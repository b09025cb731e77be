/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static const struct mr_id sample = {UINT64_C(0x0123456789abcdef),
                                    UINT64_C(0xfedcba98765432)};

static void the_text_is_hi_then_lo_in_lower_case(void **state)
{
    char text[MR_ID_TEXT_SIZE];

    (void)state;
    assert_string_equal(mr_id_format(sample, text), "0123456789abcdef00fedcba98765432");
}

static void either_case_is_read(void **state)
{
    struct mr_id id;

    (void)state;
    assert_int_equal(mr_id_parse("0123456789ABCDEF00fedcba98765432", 32, &id), MR_OK);
    assert_true(mr_id_equal(id, sample));
}

static void anything_else_is_refused_and_changes_nothing(void **state)
{
    static const char *const bad[] = {"",
                                      "0123",
                                      "0123456789abcdef00fedcba9876543g",
                                      " 123456789abcdef00fedcba98765432",
                                      "0x23456789abcdef00fedcba98765432",
                                      "0123456789abcdef00fedcba987654321"};
    struct mr_id id = sample;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(mr_id_parse(bad[i], strlen(bad[i]), &id), MR_EFORMAT);
    assert_true(mr_id_equal(id, sample));
}

static void random_ids_differ_and_are_not_zero(void **state)
{
    struct mr_id ids[100];

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(mr_id_random(&ids[i]), MR_OK);
        assert_false(mr_id_is_zero(ids[i]));
        for (int j = 0; j < i; j++)
            assert_false(mr_id_equal(ids[i], ids[j]));
    }
}

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void ids_sort_as_their_texts_and_survive_the_text(void **state)
{
    struct mr_test_random random = mr_test_random_new();

    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct mr_id a = {mr_test_random_below(&random, 3), mr_test_random_next(&random)};
        struct mr_id b = {
            mr_test_random_below(&random, 3),
            mr_test_random_below(&random, 2) ? a.lo : mr_test_random_next(&random)};
        char a_text[MR_ID_TEXT_SIZE];
        char b_text[MR_ID_TEXT_SIZE];
        struct mr_id again;

        assert_int_equal(sign(mr_id_compare(a, b)),
                         sign(strcmp(mr_id_format(a, a_text), mr_id_format(b, b_text))));
        assert_int_equal(mr_id_compare(a, a), 0);
        assert_int_equal(mr_id_parse(a_text, MR_ID_HEX_COUNT, &again), MR_OK);
        assert_true(mr_id_equal(a, again));
    }
}

/* 4096 consecutive ids into 4096 places: at random, about 63 % of the places are hit. */
static void the_table_hash_spreads_ids_that_count_up(void **state)
{
    static bool hit[2][4096];
    unsigned hits[2] = {0, 0};
    const uint64_t key = UINT64_C(0x6a09e667f3bcc909);

    (void)state;
    for (uint64_t i = 0; i < 4096; i++) {
        bool *by_lo = &hit[0][mr_id_hash((struct mr_id){0, i}, key) & 4095];
        bool *by_hi = &hit[1][mr_id_hash((struct mr_id){i << 48, 7}, key) & 4095];

        hits[0] += !*by_lo;
        hits[1] += !*by_hi;
        *by_lo = true;
        *by_hi = true;
    }
    assert_in_range(hits[0], 2300, 4096);
    assert_in_range(hits[1], 2300, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_hi_then_lo_in_lower_case),
        cmocka_unit_test(either_case_is_read),
        cmocka_unit_test(anything_else_is_refused_and_changes_nothing),
        cmocka_unit_test(random_ids_differ_and_are_not_zero),
        cmocka_unit_test(ids_sort_as_their_texts_and_survive_the_text),
        cmocka_unit_test(the_table_hash_spreads_ids_that_count_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
