/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured: functions that a tracer is put into. workload.c alone is compiled with
 * a tracer's flags; the loops around it and the clock reads (subject.c) never are.
 */
#ifndef MR_BENCH_PROGRAMS_WORKLOAD_H
#define MR_BENCH_PROGRAMS_WORKLOAD_H

#include "base/compiler.h"

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#endif

#define WORKLOAD_DEPTH 10 /* calls of one workload_rec10() */
#define WORKLOAD_STEPS 16 /* of workload_body() */

/*
 * A step of work that waits for the one before, about 5 cycles; compilers fold steps that
 * are linear into one.
 */
#define WORKLOAD_STEP(x) (((x) ^ ((x) >> 15)) * UINT32_C(0x2c1b3c6d) + 1u)

/* Never inlined, not even into itself: each call is a call, whatever the tracer. */
MR_NOINLINE uint32_t workload_tiny(uint32_t x);                  /* returns x + 1 */
MR_NOINLINE uint32_t workload_rec10(uint32_t x, uint32_t depth); /* down to depth 1 */
MR_NOINLINE uint32_t workload_body(uint32_t x);                  /* WORKLOAD_STEPS */
/*
 * The method that MooBench monitors: it recurses, and the innermost call waits until `wait` ticks have passed, reading the
 * clock before and at least once after.
 */
MR_NOINLINE uint32_t workload_trace(uint32_t x, uint32_t depth, uint64_t wait);

/* The processor's counter, else CLOCK_MONOTONIC_RAW's ns; never traced. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t workload_ticks(void)
{
#if MR_COMPILER_HAS_TICKS
    return MR_COMPILER_TICKS();
#else
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
#endif
}

/* What stands before it has been executed before what follows is: around a read that times a few instructions. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void workload_fence(void)
{
#if defined(__x86_64__)
    _mm_lfence();
#elif defined(__aarch64__)
    __isb(15);
#endif
}

#endif
