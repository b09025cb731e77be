/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process takes of its machine. Any thread, no memory.
 *
 *     share = (double)(mr_process_cpu_ns() - before_ns) / (double)(since_ns * mr_process_processors());
 */
#ifndef MR_BASE_PROCESS_H
#define MR_BASE_PROCESS_H

#include <stdint.h>

/* CPU time of all its threads, those that have ended included; 0 where it is not told. */
uint64_t mr_process_cpu_ns(void);
/* How many processors it may use, by its affinity; 1 where that is not told. */
uint32_t mr_process_processors(void);

#endif
