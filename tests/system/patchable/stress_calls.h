/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stress test calls: functions with patchable sites. firm_... are small and stay
 * on; loose_... have more than LOOSE_BYTES of code each, and are switched all the time.
 * Each returns what its arguments say, whatever is recorded: a register or a flag that a
 * stub changed would show.
 */
#ifndef MR_TESTS_SYSTEM_PATCHABLE_STRESS_CALLS_H
#define MR_TESTS_SYSTEM_PATCHABLE_STRESS_CALLS_H

#include <stdint.h>

#define LOOSE_BYTES 1024

/* Calls of each firm function by one round of each kind. */
#define FIRM_LEAF_PER_ROUND 5
#define FIRM_NODE_PER_ROUND 2

/* The sums are known: see round_expected(). */
uint64_t firm_round(uint64_t seed);
uint64_t round_expected(uint64_t seed);
uint64_t firm_leaf(uint64_t value);
uint64_t firm_signal(uint64_t value);
uint64_t loose_signal(uint64_t value);

#endif
