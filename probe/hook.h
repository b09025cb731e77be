/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hooks read at every call, in one cache line, one load away: mr_probe_active of
 * the public header is reached through the global offset table, being exported.
 *
 *     mr_hook_state.windows = probe->windows;          // before
 *     mr_hook_set_clock(mode);                         // [P] of probe/probe.c
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
    /*
     * The same for the hooks of -finstrument-functions: 0 while none records, and with
     * MR_HOOK_FILTERED while some do, MR_HOOK_COUNTED where they take the long way.
     */
    _Atomic uint32_t hook_clock;
    uint32_t counted;          /* enum mr_counted: who takes the long way */
    struct mr_windows windows; /* of mr_probe */
    /* A bit per site, set where the function is not as is_default_on says. */
    _Atomic uint8_t *_Atomic exceptions;
    _Atomic uint32_t is_default_on;
};

/* probe/hook_filter.h */
#define MR_HOOK_FILTERED UINT32_C(0x100)
/* MR_COUNTED_FUNCTIONS is in `counted`: one word tells a hook all that it has to know. */
#define MR_HOOK_COUNTED UINT32_C(0x200)

MR_HIDDEN extern struct mr_hook_state mr_hook_state;

#endif
