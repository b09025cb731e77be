/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process takes of its machine, and may take. Any thread, no memory.
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
/* How many files and connections it may have open at a time; 0 where that is not told. */
uint64_t mr_process_files_max(void);
/* Takes as many as its hard limit allows. Not for who calls select(). */
void mr_process_take_files(void);
/* Tells the log how many that is, with a warning where so many connections, and others (all else that is open), are more. */
void mr_process_tell_files(uint64_t connections, uint64_t others);

#endif
