/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static void an_empty_table_finds_nothing(void **state)
{
    struct mr_table table;

    (void)state;
    mr_table_init(&table, 10);
    assert_int_equal(mr_table_find(&table, (struct mr_id){0, 0}), MR_TABLE_NONE);
    assert_int_equal(mr_table_bytes(&table), 0);
    mr_table_clear(&table);
    mr_table_fini(&table);
    mr_table_fini(&table);
}

static void an_id_keeps_its_first_index(void **state)
{
    struct mr_table table;
    uint32_t index;

    (void)state;
    mr_table_init(&table, 10);
    assert_int_equal(mr_table_find_or_add(&table, (struct mr_id){1, 2}, 7, &index),
                     MR_OK);
    assert_int_equal(index, 7);
    assert_int_equal(mr_table_find_or_add(&table, (struct mr_id){1, 2}, 8, &index),
                     MR_OK);
    assert_int_equal(index, 7);
    assert_int_equal(table.count, 1);
    mr_table_fini(&table);
}

static void put_replaces(void **state)
{
    struct mr_table table;

    (void)state;
    mr_table_init(&table, 1);
    assert_int_equal(mr_table_put(&table, (struct mr_id){1, 2}, 7), MR_OK);
    assert_int_equal(mr_table_put(&table, (struct mr_id){1, 2}, 8), MR_OK);
    assert_int_equal(mr_table_find(&table, (struct mr_id){1, 2}), 8);
    assert_int_equal(table.count, 1);
    mr_table_fini(&table);
}

static void the_zero_id_is_an_id_like_others(void **state)
{
    struct mr_table table;

    (void)state;
    mr_table_init(&table, 10);
    assert_int_equal(mr_table_put(&table, (struct mr_id){0, 0}, 3), MR_OK);
    assert_int_equal(mr_table_find(&table, (struct mr_id){0, 0}), 3);
    assert_int_equal(mr_table_find(&table, (struct mr_id){0, 1}), MR_TABLE_NONE);
    mr_table_fini(&table);
}

static void a_full_table_refuses_new_ids_and_keeps_the_old(void **state)
{
    struct mr_table table;
    uint32_t index;

    (void)state;
    mr_table_init(&table, 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(mr_table_put(&table, (struct mr_id){i, i}, i), MR_OK);
    assert_int_equal(mr_table_put(&table, (struct mr_id){7, 8}, 100), MR_ELIMIT);
    assert_int_equal(mr_table_find_or_add(&table, (struct mr_id){7, 8}, 1, &index),
                     MR_ELIMIT);
    assert_int_equal(mr_table_find_or_add(&table, (struct mr_id){9, 9}, 1, &index),
                     MR_OK);
    assert_int_equal(index, 9);
    assert_true(mr_table_bytes(&table) <= 64 * 100);
    mr_table_fini(&table);
}

static void clearing_forgets_all_and_keeps_the_memory(void **state)
{
    struct mr_table table;
    size_t bytes;

    (void)state;
    mr_table_init(&table, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(mr_table_put(&table, (struct mr_id){i, 0}, i), MR_OK);
    bytes = mr_table_bytes(&table);
    mr_table_clear(&table);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(mr_table_find(&table, (struct mr_id){i, 0}), MR_TABLE_NONE);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(mr_table_put(&table, (struct mr_id){0, i}, i), MR_OK);
    assert_int_equal(mr_table_bytes(&table), bytes);
    mr_table_fini(&table);
}

enum { KEYS = 1000, LIMIT = 700 };

/* Ids from few values, so that many collide in part. */
static struct mr_id key_of(uint64_t number)
{
    return (struct mr_id){number / 32, number % 32};
}

/* The model is an array with one index per possible key. */
static void random_operations_agree_with_a_plain_array(void **state)
{
    struct mr_test_random random = mr_test_random_new();
    static uint32_t model[KEYS];
    uint32_t count = 0;
    struct mr_table table;

    (void)state;
    memset(model, 0xff, sizeof(model));
    mr_table_init(&table, LIMIT);
    for (int step = 0; step < 200000; step++) {
        uint64_t number = mr_test_random_below(&random, KEYS);
        uint32_t index = (uint32_t)mr_test_random_below(&random, 1000000);
        uint32_t *known = &model[number];
        bool fits = *known != MR_TABLE_NONE || count < LIMIT;
        enum mr_status status = mr_table_put(&table, key_of(number), index);

        assert_int_equal(status, fits ? MR_OK : MR_ELIMIT);
        if (fits) {
            count += *known == MR_TABLE_NONE;
            *known = index;
        }
        number = mr_test_random_below(&random, KEYS);
        assert_int_equal(mr_table_find(&table, key_of(number)), model[number]);
        assert_int_equal(table.count, count);
        if (mr_test_random_below(&random, 3) == 0) {
            number = mr_test_random_below(&random, KEYS);
            assert_int_equal(mr_table_remove(&table, key_of(number)),
                             model[number] != MR_TABLE_NONE);
            count -= model[number] != MR_TABLE_NONE;
            model[number] = MR_TABLE_NONE;
        }
        if (mr_test_random_below(&random, 20000) == 0) {
            mr_table_clear(&table);
            memset(model, 0xff, sizeof(model));
            count = 0;
        }
    }
    mr_table_fini(&table);
}

/* Slots in use one behind the other: as many as a search may have to look at. */
static size_t longest_run(const struct mr_table *table)
{
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < 2 * table->capacity; i++) {
        run = table->slots[i % table->capacity].entry ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Ids come off the wire: whoever knows how they are hashed could choose those that meet in one slot. */
static void ids_that_a_stranger_chose_to_meet_do_not(void **state)
{
    struct mr_table table;
    uint32_t index;

    (void)state;
    mr_table_init(&table, 4096);
    for (uint32_t i = 0; i < 4096; i++) {
        uint64_t hi = i + 1;
        struct mr_id id = {hi, (hi << 32 | hi >> 32) * UINT64_C(0x9e3779b97f4a7c15)};

        assert_int_equal(mr_table_find_or_add(&table, id, i, &index), MR_OK);
        assert_int_equal(index, i);
    }
    assert_in_range(longest_run(&table), 1, 512);
    mr_table_fini(&table);
}

static void no_two_tables_hash_alike(void **state)
{
    struct mr_table tables[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        mr_table_init(&tables[i], 10);
        assert_int_equal(mr_table_put(&tables[i], (struct mr_id){1, 2}, 7), MR_OK);
    }
    assert_true(tables[0].key != tables[1].key);
    for (int i = 0; i < 2; i++)
        mr_table_fini(&tables[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_finds_nothing),
        cmocka_unit_test(an_id_keeps_its_first_index),
        cmocka_unit_test(put_replaces),
        cmocka_unit_test(the_zero_id_is_an_id_like_others),
        cmocka_unit_test(a_full_table_refuses_new_ids_and_keeps_the_old),
        cmocka_unit_test(clearing_forgets_all_and_keeps_the_memory),
        cmocka_unit_test(random_operations_agree_with_a_plain_array),
        cmocka_unit_test(ids_that_a_stranger_chose_to_meet_do_not),
        cmocka_unit_test(no_two_tables_hash_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
