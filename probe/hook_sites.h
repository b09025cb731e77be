/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of -finstrument-functions hooks, while none of them records: an instruction
 * that does nothing stands in their place. A hook that returns at once still costs its
 * function two calls, 2 ns here; without them it costs nothing that can be measured
 * (docs/why/2026-11-20-hooks-off.md).
 *
 *     mr_hook_sites_switch(false);     // nothing records from here on
 *     mr_hook_sites_switch(true);      // before the first hook is to record
 *
 * Which calls: those through the global offset table (-fno-plt, as all recipes have it),
 * and what the linker makes of them where the hooks are linked in. Both are one
 * instruction of six bytes in either state, and the states differ in one byte:
 *
 *     on  ff 15 d0 d1 d2 d3   call *d(%rip)    off  85 15 d0 d1 d2 d3   test %edx, d(%rip)
 *     on  67 e8 d0 d1 d2 d3   call d           off  67 a9 d0 d1 d2 d3   test $imm32, %eax
 *
 * Flags and what a call may change are free there. No compiler writes the off forms with
 * these operands, so the code itself says in which state it is, and nothing else keeps it:
 * a module that is closed and opened again begins as it was compiled. That bytes are an
 * instruction is walked from the function's first one (probe/x86_decode.h); where the walk
 * fails, and for calls of other forms, the hook is called and returns at once.
 *
 * Switching is a courtesy to the program: whether a hook records is for hook_clock of
 * probe/hook.h to say. Turn on before it becomes other than 0, and off behind.
 *
 * Under the lock of probe/sites.c, or before the program's first thread; takes the loader's
 * lock, under which no module comes or goes. Elsewhere than on x86-64 nothing is done.
 */
#ifndef MR_PROBE_HOOK_SITES_H
#define MR_PROBE_HOOK_SITES_H

#include "base/compiler.h"

#include <stdbool.h>

MR_HIDDEN void mr_hook_sites_switch(bool is_on);

#endif
