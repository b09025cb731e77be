/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctrl-C (SIGINT), SIGTERM and the end of the terminal (SIGHUP) of a benchmark: what was measured so far is kept and told.
 * One thread; the flag is the process' own.
 */
#ifndef MR_BENCH_INTERRUPT_H
#define MR_BENCH_INTERRUPT_H

#include <stdbool.h>

/* From now on they only set a flag; but one that is ignored, as by nohup, stays so. */
void mr_interrupt_catch(void);
bool mr_interrupt_seen(void);

#endif
