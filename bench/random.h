/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that look random and are the same each time: splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
 *
 *     uint64_t state = 1;
 *     value = mr_random_next(&state);       // again and again
 */
#ifndef MR_BENCH_RANDOM_H
#define MR_BENCH_RANDOM_H

#include <stdint.h>

static inline uint64_t mr_random_next(uint64_t *state)
{
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);

    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* The number behind a seed. */
static inline uint64_t mr_random_of(uint64_t seed)
{
    return mr_random_next(&seed);
}

#endif
