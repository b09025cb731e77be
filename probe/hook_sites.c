/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field   written by              read by             access
 * code    who holds sites' lock   every thread that   single bytes; probe/patch.h
 *                                 runs it
 * state   who holds sites' lock   the same            plain
 * Checked by: tests/system/safety, tests/system/attach, tests/system/patchable
 */
#include "probe/hook_sites.h"

#if defined(__x86_64__)
#include "probe/modules.h"
#include "probe/patch.h"
#include "probe/unwind_table.h"
#include "probe/x86_decode.h"

#include <link.h>
#include <string.h>

/* Whose addresses they are is looked up: a program may have hooks of its own. */
void __cyg_profile_func_enter(void *function, void *call_site);
void __cyg_profile_func_exit(void *function, void *call_site);

#define CALL_BYTES 6
/* Of a function, in one walk; one with more is walked again from there. */
#define CALLS_KEPT 64

enum { FORM_SLOT, FORM_DIRECT, FORMS };

/* The byte that differs, where it lies and what it is in each state. */
static const struct form {
    uint8_t at, on, off, other; /* other: the byte beside it, before or behind */
    uint8_t other_at;
} forms[FORMS] = {
    [FORM_SLOT] = {.at = 0, .on = 0xff, .off = 0x85, .other_at = 1, .other = 0x15},
    [FORM_DIRECT] = {.at = 1, .on = 0xe8, .off = 0xa9, .other_at = 0, .other = 0x67}};

enum { ENTER, EXIT, HOOKS };

static struct {
    bool is_known, has_own;
    bool is_off;           /* and has been made so in what was loaded then */
    uint64_t generation;   /* of the modules, when it was last made so */
    uint64_t hooks[HOOKS]; /* addresses of ours */
} state;

/* One module, while it is worked on. */
struct work {
    struct mr_module module;
    struct mr_patch patch;
    uint64_t slots[HOOKS]; /* in its global offset table; 0: none */
    bool is_own;           /* the hooks themselves are in it */
    bool is_on;
};

/* Loaders differ in whether they have added the bias. */
static const void *pointer_of(const struct mr_module *module, uint64_t address)
{
    if (address - module->address >= module->size)
        address += module->bias;
    return address - module->address < module->size ? (const void *)(uintptr_t)address
                                                    : NULL;
}

struct relocations {
    const ElfW(Rela) * items;
    uint64_t bytes, relative_count;
    const ElfW(Sym) * symbols;
};

static void read_dynamic(const struct mr_module *module, struct relocations *found)
{
    const ElfW(Dyn) *entry = pointer_of(module, module->dynamic);

    *found = (struct relocations){0};
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_RELA)
            found->items = pointer_of(module, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_RELASZ)
            found->bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_RELACOUNT)
            found->relative_count = entry->d_un.d_val;
        else if (entry->d_tag == DT_SYMTAB)
            found->symbols = pointer_of(module, entry->d_un.d_ptr);
    }
}

/* The slot holds the address of one of our hooks: which it is, or HOOKS. */
static int hook_of(uint64_t target)
{
    int hook = 0;

    while (hook < HOOKS && state.hooks[hook] != target)
        hook++;
    return hook;
}

/*
 * The loader writes a function's address into its slot by a relocation that stands behind
 * the relative ones. What it wrote tells whether the function is ours.
 */
static void find_slots(struct work *work)
{
    struct relocations found;
    uint64_t count, target;

    read_dynamic(&work->module, &found);
    if (!found.items || !found.symbols)
        return;
    count = found.bytes / sizeof(*found.items);
    for (uint64_t i = found.relative_count; i < count; i++) {
        const ElfW(Rela) *item = &found.items[i];
        uint64_t slot = work->module.bias + item->r_offset;
        int hook;

        if (ELF64_R_TYPE(item->r_info) != R_X86_64_GLOB_DAT ||
            slot - work->module.address > work->module.size - sizeof(target))
            continue;
        memcpy(&target, (const void *)(uintptr_t)slot, sizeof(target));
        hook = hook_of(target);
        if (hook < HOOKS)
            work->slots[hook] = slot;
    }
}

/* Bytes that are a call of a hook, or were one, if they are an instruction. */
static const struct form *form_at(const struct work *work, const uint8_t *at)
{
    uint64_t next = (uintptr_t)at + CALL_BYTES, target;
    int32_t displacement;

    for (size_t i = 0; i < FORMS; i++) {
        const struct form *form = &forms[i];
        const uint64_t *targets = i == FORM_SLOT ? work->slots : state.hooks;

        if (at[form->other_at] != form->other ||
            (at[form->at] != form->on && at[form->at] != form->off) ||
            (i == FORM_DIRECT && !work->is_own))
            continue;
        memcpy(&displacement, at + 2, sizeof(displacement));
        target = next + (uint64_t)(int64_t)displacement;
        if (target == targets[ENTER] || target == targets[EXIT])
            return form;
    }
    return NULL;
}

/* Bytes of a direct call are rare: who calls hooks through slots alone has none. */
static bool may_have_calls(const struct work *work, const uint8_t *at, const uint8_t *end)
{
    const uint8_t prefix = forms[FORM_DIRECT].other;

    if (work->slots[ENTER] || work->slots[EXIT])
        return true;
    while (end - at >= CALL_BYTES) {
        at = memchr(at, prefix, (size_t)(end - at) - (CALL_BYTES - 1));
        if (!at)
            return false;
        if (form_at(work, at++))
            return true;
    }
    return false;
}

struct calls {
    uint32_t count, kept; /* found; of these, remembered */
    struct {
        const uint8_t *at;
        const struct form *form;
    } items[CALLS_KEPT];
};

/* False: something in the range is no instruction, or overshoots its end. */
static bool walk(const struct work *work, const uint8_t *at, const uint8_t *end,
                 struct calls *calls)
{
    struct mr_x86 instruction;

    calls->count = calls->kept = 0;
    for (; at < end && mr_x86_decode(at, end, &instruction); at += instruction.size) {
        const struct form *form =
            instruction.size == CALL_BYTES ? form_at(work, at) : NULL;

        if (!form)
            continue;
        if (calls->kept < CALLS_KEPT) {
            calls->items[calls->kept].at = at;
            calls->items[calls->kept++].form = form;
        }
        calls->count++;
    }
    return at == end;
}

static void switch_range(struct work *work, const uint8_t *at, const uint8_t *end)
{
    struct calls calls;

    do {
        if (!may_have_calls(work, at, end) || !walk(work, at, end, &calls))
            return;
        for (uint32_t i = 0; i < calls.kept && !work->patch.is_refused; i++) {
            const struct form *form = calls.items[i].form;

            (void)mr_patch_swap(&work->patch, (uintptr_t)calls.items[i].at + form->at,
                                work->is_on ? form->off : form->on,
                                work->is_on ? form->on : form->off);
        }
        if (calls.count > calls.kept) /* on from the last, an instruction's beginning */
            at = calls.items[calls.kept - 1].at;
    } while (calls.count > calls.kept);
}

static bool switch_module(const struct mr_module *module, void *context)
{
    const bool *is_on = context;
    struct work work = {.module = *module, .is_on = *is_on};
    struct mr_unwind_table unwind;
    uint64_t start;
    uint32_t size;

    work.is_own = state.hooks[ENTER] - module->address < module->size;
    find_slots(&work);
    if ((!work.is_own && !work.slots[ENTER] && !work.slots[EXIT]) ||
        !mr_unwind_open(&unwind, &work.module))
        return true;
    mr_patch_open(&work.patch, &work.module);
    for (uint32_t i = 0; i < unwind.count && !work.patch.is_refused; i++) {
        const uint8_t *code;

        if (!mr_unwind_range(&unwind, i, &start, &size))
            continue;
        code = (const uint8_t *)(uintptr_t)start;
        switch_range(&work, code, code + size);
    }
    (void)mr_patch_close(&work.patch);
    return true;
}

/* Ours are those in the module that this function is in; others would not be called back. */
static void find_own(void)
{
    struct mr_module module;

    state.is_known = true;
    state.hooks[ENTER] = (uintptr_t)__cyg_profile_func_enter;
    state.hooks[EXIT] = (uintptr_t)__cyg_profile_func_exit;
    state.has_own = mr_modules_find((uintptr_t)mr_hook_sites_switch, &module) &&
                    state.hooks[ENTER] - module.address < module.size &&
                    state.hooks[EXIT] - module.address < module.size;
}

void mr_hook_sites_switch(bool is_on)
{
    uint64_t generation;

    if (is_on && !state.is_off)
        return;
    if (!state.is_known)
        find_own();
    if (!state.has_own)
        return;
    generation = mr_modules_generation();
    if (!is_on && state.is_off && generation == state.generation)
        return;
    mr_modules_each(switch_module, &is_on);
    state.is_off = !is_on;
    state.generation = generation;
}

#else

void mr_hook_sites_switch(bool is_on)
{
    MR_UNUSED(is_on);
}

#endif
