/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "tests/unit/unit_test.h"

#include <string.h>

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    struct mr_arena arena;
    uint8_t *previous = NULL;
    size_t previous_size = 0;

    (void)state;
    mr_arena_init(&arena, 4096, 1 << 20);
    for (size_t size = 0; size < 200; size++) {
        uint8_t *piece = mr_arena_take(&arena, size);

        assert_non_null(piece);
        assert_int_equal((uintptr_t)piece % MR_ARENA_ALIGN, 0);
        memset(piece, (int)size, size);
        if (previous && previous_size)
            assert_int_equal(previous[previous_size - 1], previous_size);
        previous = piece;
        previous_size = size;
    }
    mr_arena_fini(&arena);
}

static void the_limit_holds_and_what_was_taken_stays(void **state)
{
    struct mr_arena arena;
    char *kept;
    size_t count = 0;

    (void)state;
    mr_arena_init(&arena, 1024, 10000);
    kept = mr_arena_copy(&arena, mr_span_of_text("kept"));
    while (mr_arena_take(&arena, 100))
        count++;
    assert_true(count > 70 && count < 10000 / 100);
    assert_true(arena.allocated_bytes <= 10000);
    assert_null(mr_arena_take(&arena, 10000));
    assert_null(mr_arena_take(&arena, SIZE_MAX));
    assert_string_equal(kept, "kept");
    mr_arena_fini(&arena);
}

static void a_piece_larger_than_a_chunk_gets_its_own(void **state)
{
    struct mr_arena arena;
    void *piece;

    (void)state;
    mr_arena_init(&arena, 64, 1 << 20);
    piece = mr_arena_take(&arena, 100000);
    assert_non_null(piece);
    memset(piece, 1, 100000);
    assert_non_null(mr_arena_take(&arena, 1));
    mr_arena_fini(&arena);
}

static void after_a_reset_the_same_work_needs_no_new_memory(void **state)
{
    struct mr_arena arena;
    size_t allocated = 0;

    (void)state;
    mr_arena_init(&arena, 1024, 1 << 20);
    for (int round = 0; round < 5; round++) {
        for (size_t size = 1; size < 500; size++)
            assert_non_null(mr_arena_take(&arena, size));
        if (round == 0)
            allocated = arena.allocated_bytes;
        assert_int_equal(arena.allocated_bytes, allocated);
        mr_arena_reset(&arena);
        assert_int_equal(arena.taken_bytes, 0);
    }
    mr_arena_fini(&arena);
    assert_int_equal(arena.allocated_bytes, 0);
    mr_arena_fini(&arena);
}

static void zeroed_memory_is_zero_also_when_reused(void **state)
{
    static const uint8_t zeros[4 * 100];
    struct mr_arena arena;

    (void)state;
    mr_arena_init(&arena, 1024, 1 << 20);
    memset(mr_arena_take(&arena, 500), 0xff, 500);
    mr_arena_reset(&arena);
    assert_memory_equal(mr_arena_take_zeroed(&arena, 4, 100), zeros, sizeof(zeros));
    assert_null(mr_arena_take_zeroed(&arena, SIZE_MAX / 2, 3));
    assert_non_null(mr_arena_take_zeroed(&arena, 0, 0));
    mr_arena_fini(&arena);
}

static void a_copy_ends_with_a_zero(void **state)
{
    struct mr_arena arena;

    (void)state;
    mr_arena_init(&arena, 1024, 1 << 20);
    assert_string_equal(mr_arena_copy(&arena, mr_span_of("abcdef", 3)), "abc");
    assert_string_equal(mr_arena_copy(&arena, mr_span_of(NULL, 0)), "");
    mr_arena_fini(&arena);
}

/* The model: every piece keeps the byte that was written to all of it. */
static void random_pieces_keep_their_contents(void **state)
{
    enum { PIECES_MAX = 400 };
    struct mr_test_random random = mr_test_random_new();
    struct mr_arena arena;
    struct {
        uint8_t *data;
        size_t size;
    } pieces[PIECES_MAX];

    (void)state;
    mr_arena_init(&arena, 2000, 1 << 20);
    for (int round = 0; round < 30; round++) {
        size_t count = (size_t)mr_test_random_below(&random, PIECES_MAX);

        for (size_t i = 0; i < count; i++) {
            pieces[i].size = (size_t)mr_test_random_below(
                &random, mr_test_random_below(&random, 20) ? 200 : 5000);
            pieces[i].data = mr_arena_take(&arena, pieces[i].size);
            assert_non_null(pieces[i].data);
            memset(pieces[i].data, (int)(i & 0xff), pieces[i].size);
        }
        for (size_t i = 0; i < count; i++) {
            for (size_t j = 0; j < pieces[i].size; j++)
                assert_true(pieces[i].data[j] == (i & 0xff));
        }
        mr_arena_reset(&arena);
    }
    mr_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
        cmocka_unit_test(the_limit_holds_and_what_was_taken_stays),
        cmocka_unit_test(a_piece_larger_than_a_chunk_gets_its_own),
        cmocka_unit_test(after_a_reset_the_same_work_needs_no_new_memory),
        cmocka_unit_test(zeroed_memory_is_zero_also_when_reused),
        cmocka_unit_test(a_copy_ends_with_a_zero),
        cmocka_unit_test(random_pieces_keep_their_contents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
