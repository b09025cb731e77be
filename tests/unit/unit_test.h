/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test needs: cmocka with the headers it wants before it, and random
 * numbers whose seed is printed, so that a failure can be run again with MR_TEST_SEED.
 *
 * Use:
 *     static void a_buffer_keeps_what_was_appended(void **state)
 *     {
 *         struct mr_test_random random = mr_test_random_new();
 *         uint64_t size = mr_test_random_below(&random, 100);
 *         ...
 *     }
 *     int main(void)
 *     {
 *         const struct CMUnitTest tests[] = {
 *             cmocka_unit_test(a_buffer_keeps_what_was_appended),
 *         };
 *         return cmocka_run_group_tests(tests, NULL, NULL);
 *     }
 */
#ifndef MR_TESTS_UNIT_UNIT_TEST_H
#define MR_TESTS_UNIT_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct mr_test_random {
    uint64_t state;
};

/* Seeded from MR_TEST_SEED, else from the clock; says which. */
static inline struct mr_test_random mr_test_random_new(void)
{
    const char *given = getenv("MR_TEST_SEED");
    struct timespec now = {0, 0};
    uint64_t seed;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    seed = given ? strtoull(given, NULL, 0)
                 : (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30;
    print_message("MR_TEST_SEED=0x%" PRIx64 "\n", seed);
    return (struct mr_test_random){seed};
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators). */
static inline uint64_t mr_test_random_next(struct mr_test_random *random)
{
    uint64_t mix = random->state += UINT64_C(0x9e3779b97f4a7c15);

    mix = (mix ^ mix >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mix = (mix ^ mix >> 27) * UINT64_C(0x94d049bb133111eb);
    return mix ^ mix >> 31;
}

/* How many times fewer of what is done at random, again and again, a sanitizer's build does: each takes it ten times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MR_TEST_FEWER 4u
#else
#define MR_TEST_FEWER 1u
#endif

/* From 0 to limit - 1; limit > 0. */
static inline uint64_t mr_test_random_below(struct mr_test_random *random, uint64_t limit)
{
    return mr_test_random_next(random) % limit;
}

#endif
