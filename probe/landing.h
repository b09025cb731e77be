/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landings: where the program goes on after an exception, a thread's forced end or a longjmp() has
 * left functions that then give no exit event. A record (docs/FORMAT.md section 6.1,
 * landing) names the functions left, innermost first, and the one landed in, before the
 * first event that comes from there. Why so: docs/why/2026-11-20-landings.md.
 *
 *     mr_landing_pad(stack, &skip);       // the unwinder is about to go on in that frame
 *     mr_landing_jump(stack);             // longjmp() is about to
 *
 * Costs nothing until then, and a walk over the frames that are left then (probe/frames.h).
 * Nothing is told while recording is off, of a thread without events, or under a depth
 * limit, which keeps its own account (probe/depth.h).
 *
 * The thread itself, and signal handlers on it. errno stays as it is.
 */
#ifndef MR_PROBE_LANDING_H
#define MR_PROBE_LANDING_H

#include <stdbool.h>
#include <stdint.h>

struct mr_unwind_table;

/* Whether landings of this thread are told now. */
bool mr_landing_is_told(void);
/*
 * An unwinder goes on in the frame whose stack pointer (struct mr_frames) is `stack`. `unwinder`: an
 * address in it; its own frames, which are on top, are not named.
 */
void mr_landing_pad(uint64_t stack, uint64_t unwinder);
/* The same of a jump; nothing is told where it goes to another stack. */
void mr_landing_jump(uint64_t stack);

/*
 * The stack pointer that a jmp_buf of this libc holds, or 0: not known. `environment` was filled by
 * setjmp() or one of its kin.
 */
uint64_t mr_landing_target(const void *environment);

#endif
