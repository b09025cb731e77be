/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured: functions that a tracer is put into. workload.c alone is compiled with
 * a tracer's flags; the loops around it and the clock reads (subject.c) never are.
 */
#ifndef MR_BENCH_PROGRAMS_WORKLOAD_H
#define MR_BENCH_PROGRAMS_WORKLOAD_H

#include "base/compiler.h"

#include <stdint.h>

#define WORKLOAD_DEPTH 10 /* calls of one workload_rec10() */
#define WORKLOAD_STEPS 20 /* of workload_body() */

/*
 * A step of work that waits for the one before, about 5 cycles; compilers fold steps that
 * are linear into one.
 */
#define WORKLOAD_STEP(x) (((x) ^ ((x) >> 15)) * UINT32_C(0x2c1b3c6d) + 1u)

/* Never inlined, not even into itself: each call is a call, whatever the tracer. */
MR_NOINLINE uint32_t workload_tiny(uint32_t x);                  /* returns x + 1 */
MR_NOINLINE uint32_t workload_rec10(uint32_t x, uint32_t depth); /* down to depth 1 */
MR_NOINLINE uint32_t workload_body(uint32_t x);                  /* WORKLOAD_STEPS */

#endif
