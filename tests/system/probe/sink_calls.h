/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the calls of a stream are well nested (sink --calls SITES): a stack per stream.
 * An exit closes the call on top. Only sites that were named as loose, because the program
 * switches them while it runs, may lack an exit (their call is taken off when an outer one
 * ends) or an enter; for all others each such case is printed and counted.
 *
 *     call site=0x1000040 loose=1 enters=10 exits=9 open=0 no_exit=1 no_enter=0
 */
#ifndef MR_TESTS_SYSTEM_PROBE_SINK_CALLS_H
#define MR_TESTS_SYSTEM_PROBE_SINK_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define SINK_STREAMS_MAX 256

/* Site numbers with commas between them. */
void sink_calls_start(const char *loose);
bool sink_calls_are_wanted(void);
void sink_calls_take(uint32_t stream, uint32_t site, bool is_exit);
void sink_calls_print(void);

#endif
