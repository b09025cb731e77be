/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit_test.h"

#include "probe/pool.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define RING_BYTES (UINT64_C(64) << 10)
#define RINGS_MAX 4096

static uint64_t bytes_of(const struct mr_ring *ring)
{
    return ring->capacity * sizeof(uint64_t);
}

/* Pages of the ring that are there. */
static uint64_t pages_of(const struct mr_ring *ring)
{
    unsigned char resident[RING_BYTES / PAGE];
    uint64_t count = 0;

    assert_int_equal(mincore((void *)(uintptr_t)ring->words, bytes_of(ring), resident),
                     0);
    for (uint64_t i = 0; i < bytes_of(ring) / PAGE; i++)
        count += resident[i] & 1;
    return count;
}

static void rings_become_smaller_as_the_ceiling_comes_near(void **state)
{
    struct mr_pool pool;
    struct mr_ring *ring;
    uint64_t count = 0, whole = 0, sum = 0, last = RING_BYTES;

    (void)state;
    mr_pool_init(&pool, RING_BYTES, 64 * (RING_BYTES + PAGE));
    while ((ring = mr_pool_take(&pool)) && count < RINGS_MAX) {
        assert_true(bytes_of(ring) <= last);
        last = bytes_of(ring);
        sum += last + PAGE;
        whole += last == RING_BYTES;
        count++;
    }
    assert_null(ring);
    assert_int_equal(last, PAGE);
    assert_true(whole == 32);
    assert_true(count > 120);
    assert_true(sum <= pool.ceiling_bytes && pool.ceiling_bytes - sum < 2 * PAGE);
    mr_pool_fini(&pool);
}

static void a_ring_that_is_given_has_all_its_pages(void **state)
{
    struct mr_ring *rings[2 * MR_POOL_WARM_COUNT];
    struct mr_pool pool;
    uint64_t cold = 0;

    (void)state;
    mr_pool_init(&pool, RING_BYTES, 4 * MR_POOL_WARM_COUNT * (RING_BYTES + PAGE));
    for (size_t i = 0; i < MR_ARRAY_COUNT(rings); i++) {
        rings[i] = mr_pool_take(&pool);
        assert_int_equal(pages_of(rings[i]), RING_BYTES / PAGE);
    }
    for (size_t i = 0; i < MR_ARRAY_COUNT(rings); i++)
        mr_pool_give(&pool, rings[i]);
    for (size_t i = 0; i < MR_ARRAY_COUNT(rings); i++)
        cold += pages_of(rings[i]) == 0;
    assert_int_equal(cold, MR_ARRAY_COUNT(rings) - MR_POOL_WARM_COUNT);
    for (size_t i = 0; i < MR_ARRAY_COUNT(rings); i++)
        assert_int_equal(pages_of(mr_pool_take(&pool)), RING_BYTES / PAGE);
    mr_pool_fini(&pool);
}

static void a_warm_ring_and_a_large_one_go_first(void **state)
{
    struct mr_ring *rings[MR_POOL_WARM_COUNT + 1];
    struct mr_pool pool;

    (void)state;
    mr_pool_init(&pool, RING_BYTES, 4 * MR_POOL_WARM_COUNT * (RING_BYTES + PAGE));
    for (size_t i = 0; i < MR_ARRAY_COUNT(rings); i++)
        rings[i] = mr_pool_take(&pool);
    for (size_t i = 0; i < MR_ARRAY_COUNT(rings); i++)
        mr_pool_give(&pool, rings[i]); /* the last has no pages */
    for (size_t i = 0; i + 1 < MR_ARRAY_COUNT(rings); i++)
        assert_ptr_not_equal(mr_pool_take(&pool), rings[MR_POOL_WARM_COUNT]);
    assert_ptr_equal(mr_pool_take(&pool), rings[MR_POOL_WARM_COUNT]);
    mr_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_become_smaller_as_the_ceiling_comes_near),
        cmocka_unit_test(a_ring_that_is_given_has_all_its_pages),
        cmocka_unit_test(a_warm_ring_and_a_large_one_go_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
