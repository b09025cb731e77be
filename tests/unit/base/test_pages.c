/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include "tests/unit/unit_test.h"

#include <stdlib.h>
#include <string.h>

static void memory_can_be_written_to_its_end(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 4 * MR_PAGES_LARGE; size = 3 * size + 1) {
        uint8_t *memory = mr_pages_alloc(size);

        assert_non_null(memory);
        memset(memory, 0x5a, size);
        assert_int_equal(memory[0], 0x5a);
        assert_int_equal(memory[size - 1], 0x5a);
        mr_pages_free(memory, size);
    }
}

static void small_memory_begins_on_a_cache_line_and_large_on_a_large_page(void **state)
{
    static const size_t sizes[] = {1, MR_CACHE_LINE + 1, MR_PAGES_LARGE - 1,
                                   MR_PAGES_LARGE, 2 * MR_PAGES_LARGE + 1};

    (void)state;
    for (size_t i = 0; i < MR_ARRAY_COUNT(sizes); i++) {
        size_t align = sizes[i] < MR_PAGES_LARGE ? MR_CACHE_LINE : MR_PAGES_LARGE;
        void *memory = mr_pages_alloc(sizes[i]);

        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % align, 0);
        mr_pages_free(memory, sizes[i]);
    }
}

static void more_than_there_is_gives_nothing(void **state)
{
    (void)state;
    assert_null(mr_pages_alloc(SIZE_MAX));
    assert_null(mr_pages_alloc(SIZE_MAX - MR_PAGES_LARGE + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_can_be_written_to_its_end),
        cmocka_unit_test(small_memory_begins_on_a_cache_line_and_large_on_a_large_page),
        cmocka_unit_test(more_than_there_is_gives_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
