/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctrl-C (SIGINT) and SIGTERM of a benchmark: what was measured so far is kept and told.
 * One thread; the flag is the process' own.
 */
#ifndef MR_BENCH_INTERRUPT_H
#define MR_BENCH_INTERRUPT_H

#include <stdbool.h>

/* From now on both signals only set a flag. */
void mr_interrupt_catch(void);
bool mr_interrupt_seen(void);

#endif
