/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In front of libc's and the unwinder's, to tell landings (probe/landing.h):
 *
 *     longjmp() and its kin
 *     _Unwind_SetIP()        by which a personality routine, of whatever language, makes
 *                            the unwinder go on in a landing pad of the frame at hand
 *
 * Everything is passed through. Where another definition comes first in the program (a
 * static libgcc or libc), landings are not told. In the static library there is none:
 * see interpose_none.c.
 *
 * field         written by              read by     access
 * jumps[],      constructor, first use  any thread  relaxed: always the same value
 * are_jumps_    constructor             any thread  relaxed: told or not
 *  known
 * unwinder      constructor             any thread  release store [F], acquire load [U]
 * others[]      a thread that lands     any thread  count: release [P], acquire [G]; one
 *                                                   writer at a time (is_adding)
 * Pairs: [F]-[U], [P]-[G] the functions before the pointer, the count.
 * Checked by: tests/race/test_unwind.c, tests/system/safety
 */
#include "probe/landing.h"

#include "base/atomics.h"
#include "base/compiler.h"
#include "probe/frames.h"
#include "probe/hook.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct _Unwind_Context;

typedef void set_address_function(struct _Unwind_Context *, uintptr_t);
typedef uintptr_t get_stack_function(struct _Unwind_Context *);
typedef void jump_function(struct __jmp_buf_tag *, int);

/* The program's are found by name, whatever header they came from. */
/* NOLINTNEXTLINE(readability-identifier-naming) */
MR_EXPORT void _Unwind_SetIP(struct _Unwind_Context *context, uintptr_t address);
MR_EXPORT MR_NORETURN void __longjmp_chk(struct __jmp_buf_tag environment[1], int value);

/* An unwinder: libgcc_s, or LLVM's libunwind. */
struct unwinder {
    uint64_t address,
        size; /* of its module; not of the one that is first in the program */
    set_address_function *set_address;
    get_stack_function *get_stack;
};

/* Which come with modules opened later, and are not seen by the whole program. */
#define OTHERS_MAX 4

static struct unwinder first, others[OTHERS_MAX];
static struct unwinder *_Atomic unwinder;
static _Atomic uint32_t other_count, is_adding;

enum jump { JUMP, JUMP_PLAIN, JUMP_SIGNAL, JUMP_CHECKED, JUMPS };

static const char *const jump_names[JUMPS] = {"longjmp", "_longjmp", "siglongjmp",
                                              "__longjmp_chk"};
static jump_function *_Atomic jumps[JUMPS];
static _Atomic bool are_jumps_known;

static jump_function *find_jump(enum jump which)
{
    jump_function *function = mr_load_relaxed(&jumps[which]);
    void *symbol;

    if (function)
        return function;
    symbol = dlsym(RTLD_NEXT, jump_names[which]);
    memcpy(&function, &symbol, sizeof(function)); /* ISO C has no such cast */
    mr_store_relaxed(&jumps[which], function);
    return function;
}

static MR_NORETURN void jump(enum jump which, struct __jmp_buf_tag *environment,
                             int value)
{
    if (mr_load_relaxed(&are_jumps_known) && mr_landing_is_told())
        mr_landing_jump(mr_landing_target(environment));
    find_jump(which)(environment, value);
    abort(); /* not reached */
}

MR_EXPORT void longjmp(struct __jmp_buf_tag environment[1], int value)
{
    jump(JUMP, environment, value);
}

MR_EXPORT void _longjmp(struct __jmp_buf_tag environment[1], int value)
{
    jump(JUMP_PLAIN, environment, value);
}

MR_EXPORT void siglongjmp(sigjmp_buf environment, int value)
{
    jump(JUMP_SIGNAL, environment, value);
}

void __longjmp_chk(struct __jmp_buf_tag environment[1], int value)
{
    jump(JUMP_CHECKED, environment, value);
}

/* `handle`: a module, or RTLD_NEXT. */
static bool look_up(struct unwinder *found, void *handle)
{
    void *set_address = dlsym(handle, "_Unwind_SetIP");
    void *get_stack = dlsym(handle, "_Unwind_GetCFA");

    if (!set_address || !get_stack)
        return false;
    memcpy(&found->set_address, &set_address, sizeof(set_address));
    memcpy(&found->get_stack, &get_stack, sizeof(get_stack));
    return true;
}

/*
 * The unwinder that calls the personality routine that calls us. It stays loaded from now
 * on. Opens nothing that is not open; libc may allocate, once for each.
 */
static bool look_up_caller(struct unwinder *found, const struct mr_frames *frames)
{
    void *address = (void *)(uintptr_t)frames->address, *handle;
    Dl_info info;

    *found =
        (struct unwinder){.address = frames->table.address, .size = frames->table.size};
    if (dladdr(address, &info) == 0)
        return false;
    handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle && look_up(found, handle);
}

static const struct unwinder *find_other(const struct mr_frames *frames)
{
    uint32_t count = mr_load_acquire(&other_count); /* [G] */

    for (uint32_t i = 0; i < count; i++)
        if (others[i].address == frames->table.address)
            return &others[i];
    return NULL;
}

static const struct unwinder *add_other(const struct mr_frames *frames,
                                        struct unwinder *own)
{
    uint32_t count, expected = 0;

    if (!look_up_caller(own, frames) && !look_up(own, RTLD_NEXT))
        abort(); /* who calls us has none to call */
    if (!mr_compare_exchange_acq_rel(&is_adding, &expected, 1))
        return own;
    count = mr_load_acquire(&other_count);
    if (count < OTHERS_MAX && !find_other(frames)) {
        others[count] = *own;
        mr_store_release(&other_count, count + 1); /* [P] */
    }
    mr_store_release(&is_adding, 0);
    return own;
}

/* Of the caller of our caller, of which `own` is a copy where there is no other. */
MR_NOINLINE static const struct unwinder *find_unwinder(struct unwinder *own)
{
    const struct unwinder *found = mr_load_acquire(&unwinder); /* [U] */
    struct mr_frames frames;

    if (found)
        return found;
    mr_frames_here(&frames);
    for (int i = 0; i < 4; i++) /* here, _Unwind_SetIP(), personality routine, unwinder */
        if (!mr_frames_next(&frames))
            break;
    found = find_other(&frames);
    return found ? found : add_other(&frames, own);
}

void _Unwind_SetIP(struct _Unwind_Context *context, uintptr_t address)
{
    struct unwinder own;
    const struct unwinder *real = find_unwinder(&own);

    if (mr_landing_is_told())
        mr_landing_pad(real->get_stack(context), (uintptr_t)real->set_address);
    real->set_address(context, address);
}

/* What setjmp() keeps must be the stack pointer: of another libc, we tell no jump. */
static void learn_jumps(void)
{
    jmp_buf environment;
    uint64_t here = MR_FRAME_ADDRESS(), stack;

    for (int i = 0; i < JUMPS; i++)
        (void)find_jump((enum jump)i);
    if (_setjmp(environment) != 0)
        return;
    stack = mr_landing_target(environment);
    mr_store_relaxed(&are_jumps_known, stack <= here && here - stack < 4096);
}

/* What is there from the start is never unloaded. */
MR_CONSTRUCTOR static void learn(void)
{
    if (look_up(&first, RTLD_NEXT))
        mr_store_release(&unwinder, &first); /* [F] */
    learn_jumps();
}
