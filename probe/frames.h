/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the frames of the calling thread's stack outward, by the unwind information of the
 * modules (probe/unwind_row.h). What the C++ runtime's _Unwind_Backtrace() does, but with
 * no library that a C program may not have, no lock and no allocation: also in a signal
 * handler, and out of it through the frame that the kernel made.
 *
 *     struct mr_frames frames;
 *     mr_frames_here(&frames);
 *     while (mr_frames_next(&frames))
 *         use(frames.function, frames.stack, frames.address);
 *
 * A frame is told with `stack`, the stack pointer where it goes on (at its call), and `base`, the one
 * that its caller has then: they are addresses of one frame as long as it lives, `base` at any of its
 * calls. The walk ends at the bottom of the stack, or where nothing is known of the code:
 * made at run time, or without unwind information. Needs glibc 2.35 (_dl_find_object);
 * with an older one it ends at once.
 *
 * Cost: 0.1 to 0.2 us a frame (docs/why/2026-11-20-landings.md). About 2 KiB of stack.
 */
#ifndef MR_PROBE_FRAMES_H
#define MR_PROBE_FRAMES_H

#include "base/compiler.h"
#include "probe/arch.h"
#include "probe/unwind_row.h"

struct mr_frames {
    struct mr_unwind_registers registers; /* of the frame */
    uint64_t address;                     /* where it goes on */
    uint64_t function;                    /* where the code of its function begins */
    uint64_t stack, base;
    /* What was looked up last: the module's table, the entry of the function. */
    struct mr_unwind_table table;
    struct mr_unwind_entry entry;
    struct mr_unwind_row row;
    bool is_interrupted; /* it goes on at `address`, which no call is before */
};

/* Begins in the caller, which must not return as long as the walk lasts. */
static MR_ALWAYS_INLINE void mr_frames_here(struct mr_frames *frames)
{
    frames->table.count = 0;
    frames->function = 0;
    frames->is_interrupted = true;
    frames->registers.known =
        mr_arch_registers(frames->registers.values, &frames->address);
}

/* On to the first frame, the caller's own, or to the caller of the one before. False: no more. */
bool mr_frames_next(struct mr_frames *frames);

#endif
