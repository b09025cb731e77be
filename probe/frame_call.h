/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function a frame's caller called, by the call instruction before the place where the caller
 * goes on: a direct call, or one through the global offset table or the procedure linkage table.
 * It tells the function of a frame that goes on in a part of it which stands elsewhere
 * (.cold), and has unwind information of its own.
 *
 *     called = mr_frame_call(&frames);     // frames: the caller
 *
 * Not what a function called last that jumped to another (tail call): who needs to know
 * that the frame is of that function must look. x86-64; elsewhere nothing is known. Any
 * thread and signal handlers.
 */
#ifndef MR_PROBE_FRAME_CALL_H
#define MR_PROBE_FRAME_CALL_H

#include "probe/frames.h"

/* 0: not known, as of an indirect call. */
uint64_t mr_frame_call(const struct mr_frames *caller);

#endif
