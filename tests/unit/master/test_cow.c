/* SPDX-License-Identifier: Apache-2.0 */
#include "master/cow.h"

#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the four above */
#include <cmocka.h>

struct record {
    struct mr_cow_head head;
    uint64_t value;
};

static int64_t alive; /* records allocated and not freed */

static struct mr_cow_head *clone_record(const struct mr_cow_head *record)
{
    struct record *copy = malloc(sizeof(*copy));

    assert_non_null(copy);
    memcpy(copy, record, sizeof(*copy));
    alive++;
    return &copy->head;
}

static void free_record(struct mr_cow_head *record)
{
    alive--;
    free(record);
}

static const struct mr_cow_type type = {clone_record, free_record};

static struct mr_cow_head *new_record(uint64_t value)
{
    struct record *record = calloc(1, sizeof(*record));

    assert_non_null(record);
    record->value = value;
    alive++;
    return &record->head;
}

static uint64_t value_at(const struct mr_cow_array *array, uint32_t index)
{
    const struct record *record = mr_cow_get(array, index);

    return record ? record->value : UINT64_MAX;
}

static void versions_are_independent(void **state)
{
    enum { VERSIONS = 40, SIZE = 3000 };
    static uint64_t expected[VERSIONS][SIZE];
    struct mr_cow_array versions[VERSIONS];
    struct mr_cow_garbage *garbage[VERSIONS];
    struct mr_cow cow;
    struct mr_cow_array array = {NULL, 0, 0};
    unsigned random = 1;

    (void)state;
    mr_cow_init(&cow, &type);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(mr_cow_put(&cow, &array, i, new_record(0)), MR_OK);
    for (int v = 0; v < VERSIONS; v++) {
        if (v)
            memcpy(expected[v], expected[v - 1], sizeof(expected[v]));
        for (int change = 0; change < 200; change++) {
            uint32_t at = (random = random * 1103515245 + 12345) >> 8;

            at %= SIZE;
            struct record *record = mr_cow_edit(&cow, &array, at);
            expected[v][at] = record->value = random;
        }
        versions[v] = array;
        garbage[v] = mr_cow_publish(&cow);
    }
    for (int v = 0; v < VERSIONS; v++)
        for (uint32_t i = 0; i < SIZE; i++)
            assert_int_equal(value_at(&versions[v], i), expected[v][i]);
    for (int v = 0; v < VERSIONS; v++)
        mr_cow_garbage_free(garbage[v]);
    mr_cow_array_fini(&cow, &array);
    mr_cow_fini(&cow);
    assert_int_equal(alive, 0);
}

static enum mr_status note(void *context, uint32_t index, const void *record)
{
    bool *seen = context;

    MR_UNUSED(record);
    seen[index] = true;
    return MR_OK;
}

static void a_walk_sees_what_changed_since(void **state)
{
    enum { SIZE = 2000 };
    bool seen[SIZE] = {false};
    struct mr_cow cow;
    struct mr_cow_array array = {NULL, 0, 0};

    (void)state;
    mr_cow_init(&cow, &type);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(mr_cow_put(&cow, &array, i, new_record(i)), MR_OK);
    uint64_t since = cow.generation;
    mr_cow_garbage_free(mr_cow_publish(&cow));
    for (uint32_t i = 5; i < SIZE; i += 97)
        ((struct record *)mr_cow_edit(&cow, &array, i))->value = 0;
    mr_cow_garbage_free(mr_cow_publish(&cow));
    assert_int_equal(mr_cow_walk(&array, since, note, seen), MR_OK);
    for (uint32_t i = 0; i < SIZE; i++)
        assert_int_equal(seen[i], i >= 5 && (i - 5) % 97 == 0);
    mr_cow_array_fini(&cow, &array);
    mr_cow_fini(&cow);
    assert_int_equal(alive, 0);
}

static void a_sparse_array_holds_what_was_put_and_drops_all(void **state)
{
    static const uint32_t at[] = {0, 31, 32, 1023, 1024, 70000, 1u << 20, UINT32_MAX - 1};
    struct mr_cow cow;
    struct mr_cow_array array = {NULL, 0, 0};

    (void)state;
    mr_cow_init(&cow, &type);
    for (size_t i = 0; i < MR_ARRAY_COUNT(at); i++)
        assert_int_equal(mr_cow_put(&cow, &array, at[i], new_record(at[i])), MR_OK);
    for (size_t i = 0; i < MR_ARRAY_COUNT(at); i++)
        assert_int_equal(value_at(&array, at[i]), at[i]);
    assert_null(mr_cow_get(&array, 33));
    assert_null(mr_cow_get(&array, 4000000));
    mr_cow_garbage_free(mr_cow_publish(&cow));
    assert_int_equal(mr_cow_drop(&cow, &array), MR_OK);
    assert_null(mr_cow_get(&array, 0));
    assert_int_equal(alive, (int64_t)MR_ARRAY_COUNT(at)); /* until no reader is left */
    mr_cow_garbage_free(mr_cow_publish(&cow));
    assert_int_equal(alive, 0);
    mr_cow_fini(&cow);
}

static void a_map_finds_each_id_in_each_version(void **state)
{
    enum { IDS = 20000 };
    struct mr_cow cow;
    struct mr_cow_map map = {.root = NULL}, half;

    (void)state;
    mr_cow_init(&cow, &type);
    for (uint32_t i = 0; i < IDS; i++) {
        if (i == IDS / 2) {
            half = map;
        }
        if (i % 1000 == 0 && i < IDS / 2)
            mr_cow_garbage_free(mr_cow_publish(&cow));
        else if (i == IDS / 2)
            cow.generation++; /* garbage of `half` is kept */
        struct mr_id id = {i / 7, i};
        assert_int_equal(mr_cow_map_add(&cow, &map, id, i), MR_OK);
    }
    assert_int_equal(map.count, IDS);
    for (uint32_t i = 0; i < IDS; i++) {
        struct mr_id id = {i / 7, i};

        assert_int_equal(mr_cow_map_find(&map, id), i);
        assert_int_equal(mr_cow_map_find(&half, id), i < IDS / 2 ? i : MR_COW_NONE);
    }
    assert_int_equal(mr_cow_map_find(&map, (struct mr_id){1, 1}), MR_COW_NONE);
    mr_cow_map_fini(&map);
    mr_cow_fini(&cow);
}

static void ids_of_one_hash_are_told_apart(void **state)
{
    struct mr_cow cow;
    struct mr_cow_map map = {.root = NULL};

    (void)state;
    mr_cow_init(&cow, &type);
    for (uint32_t i = 0; i < 50; i++) {
        struct mr_id id = {1000 + i, map.key}; /* mr_id_hash() multiplies lo ^ key */

        if (i > 1)
            assert_int_equal(mr_id_hash(id, map.key),
                             mr_id_hash((struct mr_id){0, map.key}, map.key));
        assert_int_equal(mr_cow_map_add(&cow, &map, id, i), MR_OK);
        if (i % 10 == 0)
            mr_cow_garbage_free(mr_cow_publish(&cow));
    }
    for (uint32_t i = 0; i < 50; i++) {
        struct mr_id id = {1000 + i, i == 0 ? 0 : map.key};

        assert_int_equal(mr_cow_map_find(&map, id), i);
    }
    mr_cow_map_fini(&map);
    mr_cow_fini(&cow);
}

/* Ids come off the wire: whoever knows how they are hashed could choose those that end in one chain. */
static void ids_that_a_stranger_chose_to_meet_do_not(void **state)
{
    struct mr_cow cow;
    struct mr_cow_map map = {.root = NULL};
    const struct top {
        struct mr_cow_head head;
        void *slots[MR_COW_MAP_FANOUT];
    } * top;

    (void)state;
    mr_cow_init(&cow, &type);
    for (uint32_t i = 0; i < 4096; i++) {
        uint64_t hi = i + 1;
        struct mr_id id = {hi, (hi << 32 | hi >> 32) * UINT64_C(0x9e3779b97f4a7c15)};

        assert_int_equal(mr_cow_map_add(&cow, &map, id, i), MR_OK);
    }
    top = map.root;
    for (uint32_t i = 0; i < MR_COW_MAP_FANOUT; i++)
        assert_non_null(top->slots[i]);
    mr_cow_map_fini(&map);
    mr_cow_fini(&cow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_independent),
        cmocka_unit_test(a_walk_sees_what_changed_since),
        cmocka_unit_test(a_sparse_array_holds_what_was_put_and_drops_all),
        cmocka_unit_test(a_map_finds_each_id_in_each_version),
        cmocka_unit_test(ids_of_one_hash_are_told_apart),
        cmocka_unit_test(ids_that_a_stranger_chose_to_meet_do_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
