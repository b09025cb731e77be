/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing into code that other threads run. docs/why/2026-11-20-live-patching.md argues
 * why it is sound; in short: a site is one instruction of five bytes in both states, and
 * the states differ in the first byte alone.
 *
 *     off  a9 d0 d1 d2 d3   test $imm32, %eax       on  e8 d0 d1 d2 d3   call d
 *     off  c3 d0 d1 d2 d3   ret (XRay's exits)      on  e9 d0 d1 d2 d3   jmp d
 *
 *     struct mr_patch patch;
 *     mr_patch_open(&patch, module);
 *     if (!mr_patch_swap(&patch, address, 0xa9, 0xe8)) ...
 *     status = mr_patch_close(&patch);
 *
 * Pages stay executable all the time. They are made writable in windows while they are
 * written to; where the system refuses that (SELinux, MemoryDenyWriteExecute), bytes go
 * through /proc/thread-self/mem. One thread at a time; not async-signal-safe.
 */
#ifndef MR_PROBE_PATCH_H
#define MR_PROBE_PATCH_H

#include "base/status.h"
#include "probe/modules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_patch {
    const struct mr_module *module;
    uint64_t window_start, window_end; /* writable now; equal: nothing is */
    int memory_fd;                     /* /proc/thread-self/mem, or -1 */
    bool is_refused;                   /* neither way works */
};

void mr_patch_open(struct mr_patch *patch, const struct mr_module *module);

/*
 * Writes bytes that no thread runs yet: the first form of a site, before its module's
 * first instruction. False: the system refuses.
 */
bool mr_patch_write(struct mr_patch *patch, uint64_t address, const uint8_t *bytes,
                    size_t size);

/*
 * One byte, in code that may be running. False: the byte was not `from` (nothing is
 * written), or the system refuses (is_refused).
 */
bool mr_patch_swap(struct mr_patch *patch, uint64_t address, uint8_t from, uint8_t to);

/*
 * Takes the write access back, and has every thread of the process see what was written:
 * after it, none executes an instruction that it fetched before. MR_OK; MR_EIO: the
 * system refused to let anybody write.
 */
enum mr_status mr_patch_close(struct mr_patch *patch);

#endif
