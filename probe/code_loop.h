/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a function loop? Size alone does not tell whether a function is cheap: what is
 * small and has a loop may run for a second. As XRay has it, whose threshold spares what
 * loops; there the compiler knows, here the instructions are followed: a way through them
 * that comes back to one on it is a loop. A branch backward alone is none: compilers put
 * what is rarely done behind the end, from where it jumps back.
 *
 *     if (size < rule->min_size && !mr_code_has_loop(address, size)) ...
 *
 * Not seen: a loop that jumps through a table, or in a part that stands elsewhere. Any
 * thread, no memory but 3 KiB of stack; the code must be readable and stay loaded.
 */
#ifndef MR_PROBE_CODE_LOOP_H
#define MR_PROBE_CODE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* Of larger functions a branch backward is taken for a loop. */
#define MR_CODE_LOOP_EXACT 1024

/* True also where the code cannot be decoded: nobody knows that it has none. */
bool mr_code_has_loop(uint64_t address, uint64_t size);

#endif
