/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a random program knows of its own calls: how often each call path was taken, and how the calls ended. parts.h calls
 * this at the begin and the end of every traced function; at the end of the process it is written to the folder TRUTH_FOLDER,
 * a file for each process, for compare.py to read:
 *
 *     tree DEPTH NAME OK FAILED INCOMPLETE
 *
 * a line for each path, below a path of DEPTH - 1 before it. `tree` is
 *
 *     root      calls that begin call trees of their own, and all below
 *     outer     main() and start functions of threads, whose calls are roots
 *     floating  calls of handlers that come at any time: nobody knows inside which call
 *
 * Each thread has its own; its handlers have another, so that one may come in the middle of all this. Nothing here is traced.
 */
#ifndef MR_TESTS_SYSTEM_TRUTH_H
#define MR_TESTS_SYSTEM_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum truth_end { TRUTH_OK, TRUTH_FAILED, TRUTH_INCOMPLETE, TRUTH_ENDS };

void truth_enter(const char *name);
void truth_enter_outer(const char *name);
void truth_leave(enum truth_end end);

/* The innermost open call ends as failed; or does not, after all. */
void truth_fail(bool is_failed);

/* Open calls of this thread. */
unsigned truth_depth(void);

/* Jumped into the call that was the innermost when there were `depth`: what is above it has failed. */
void truth_land(unsigned depth);

/* A handler that comes at any time begins, and ends; truth_is_floating(): in one. */
void truth_float_begin(void);
void truth_float_end(void);
bool truth_is_floating(void);

/* Random numbers of this thread: below `count`; begun anew, with calls that the thread may make. */
uint32_t truth_random(uint32_t count);
void truth_seed(uint64_t seed, uint64_t calls);

/* Whether another call may be made, which is counted then; whether any is left. */
bool truth_may_call(int depth);
bool truth_has_calls(void);

#ifdef __cplusplus
}
#endif

#endif
