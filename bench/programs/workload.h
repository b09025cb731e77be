/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured: functions that a tracer is put into. workload.c alone is compiled with
 * a tracer's flags; the loops around it and the clock reads (subject.c) never are.
 */
#ifndef MR_BENCH_PROGRAMS_WORKLOAD_H
#define MR_BENCH_PROGRAMS_WORKLOAD_H

#include <stdint.h>

#define WORKLOAD_DEPTH 10 /* calls of one workload_rec10() */
#define WORKLOAD_STEPS 24 /* of workload_body(); 4 cycles each */

uint32_t workload_tiny(uint32_t x);                  /* returns x + 1: about 1 ns */
uint32_t workload_rec10(uint32_t x, uint32_t depth); /* calls itself down to depth 1 */
uint32_t workload_body(uint32_t x);                  /* a dependent chain: about 20 ns */

#endif
