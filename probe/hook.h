/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hooks read at every call, in one cache line, one load away: mr_probe_active of
 * the public header is reached through the global offset table, being exported.
 *
 *     mr_hook_state.windows = probe->windows;          // before
 *     mr_store_release(&mr_hook_state.clock, mode);    // [P] of probe/probe.c
 *
 * Written by the constructor, fork's handler and the destructor; read by any thread.
 */
#ifndef MR_PROBE_HOOK_H
#define MR_PROBE_HOOK_H

#include "base/atomics.h"
#include "base/compiler.h"
#include "probe/modules.h"

struct mr_hook_state {
    /* enum mr_clock_mode while calls are recorded, else 0. */
    MR_ALIGNED(MR_CACHE_LINE) _Atomic uint32_t clock;
    /* The same for the hooks of -finstrument-functions, which may be off while others
       are on. */
    _Atomic uint32_t hook_clock;
    uint32_t counted;          /* enum mr_counted: whose counters are read */
    struct mr_windows windows; /* of mr_probe */
};

MR_HIDDEN extern struct mr_hook_state mr_hook_state;

#endif
