/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/site_table.h"

#include "probe/unwind_table.h"
#include "probe/x86_decode.h"

#include <string.h>
#include <sys/mman.h>

#define CALL_BYTES 5
#define PAGE_BYTES 4096

/* A range without an entry call in which something looks like one of our exits. */
struct fragment {
    uint64_t start;
    uint32_t size;
    uint32_t parent; /* function, or one of the next two */
};

#define PARENT_NONE UINT32_MAX
#define PARENT_SEVERAL (UINT32_MAX - 1)

struct finder {
    struct mr_site_table *table;
    const struct mr_module *module;
    uint64_t entry, entry_always, exit; /* __fentry__, __fentry_always__, __return__ */
    struct mr_unwind_table unwind;
    uint32_t next_unwind; /* where the next function of the XRay map may be */
    struct fragment *fragments;
    uint32_t fragment_count;
    uint64_t fragment_bytes;
    bool is_out_of_memory;
};

/* Room for item number `count`; grows by mapping. NULL: no memory. */
static void *grow(void *items, uint64_t *bytes, uint32_t count, size_t item_size)
{
    uint64_t need = ((uint64_t)count + 1) * item_size;
    uint64_t next = *bytes ? *bytes * 2 : (uint64_t)16 * PAGE_BYTES;
    void *memory;

    if (need <= *bytes)
        return items;
    memory = *bytes ? mremap(items, *bytes, next, MREMAP_MAYMOVE)
                    : mmap(NULL, next, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    *bytes = next;
    return memory;
}

static void *shrink(void *items, uint64_t *bytes, uint32_t count, size_t item_size)
{
    uint64_t need =
        ((uint64_t)count * item_size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

    if (*bytes == 0 || need == 0 || need >= *bytes)
        return items;
    (void)munmap((uint8_t *)items + need, *bytes - need);
    *bytes = need;
    return items;
}

static uint32_t add_function(struct finder *finder, uint64_t start, uint32_t size)
{
    struct mr_site_table *table = finder->table;
    struct mr_site_function *functions = grow(table->functions, &table->function_bytes,
                                              table->function_count, sizeof(*functions));

    if (!functions) {
        finder->is_out_of_memory = true;
        return UINT32_MAX;
    }
    table->functions = functions;
    functions[table->function_count] =
        (struct mr_site_function){.offset = (uint32_t)(start - finder->module->address),
                                  .size = size,
                                  .first = MR_SITE_POINT_NONE};
    return table->function_count++;
}

static void add_point(struct finder *finder, uint32_t function, uint64_t address,
                      enum mr_site_kind kind, uint8_t size)
{
    struct mr_site_table *table = finder->table;
    struct mr_site_point *points =
        grow(table->points, &table->point_bytes, table->point_count, sizeof(*points));

    if (!points) {
        finder->is_out_of_memory = true;
        return;
    }
    table->points = points;
    points[table->point_count] =
        (struct mr_site_point){.offset = (uint32_t)(address - finder->module->address),
                               .next = table->functions[function].first,
                               .function = function,
                               .kind = (uint8_t)kind,
                               .size = size};
    table->functions[function].first = table->point_count++;
}

static const uint8_t *bytes_at(uint64_t address)
{
    return (const uint8_t *)(uintptr_t)address;
}

/* Where a call through the global offset table goes; 0: not through one of ours. */
static uint64_t slot_target(const struct mr_module *module, uint64_t slot)
{
    uint64_t target;

    if (slot - module->address > module->size - sizeof(target))
        return 0;
    memcpy(&target, bytes_at(slot), sizeof(target));
    return target;
}

/* Where the call at `address` goes; 0: it is none, or not through one of our slots. */
static uint64_t call_target(const struct finder *finder, uint64_t address,
                            const struct mr_x86 *instruction)
{
    uint64_t next =
        address + instruction->size + (uint64_t)(int64_t)instruction->displacement;

    if (instruction->kind == MR_X86_CALL)
        return next;
    if (instruction->kind == MR_X86_CALL_MEMORY)
        return slot_target(finder->module, next);
    return 0;
}

/*
 * The instruction at `at`, which ends at `end` or before. Bytes behind `end` may be read:
 * where more code follows, that spares the decoder a copy.
 */
static bool decode(const struct finder *finder, uint64_t at, uint64_t end,
                   struct mr_x86 *instruction)
{
    const struct mr_module *module = finder->module;
    bool is_in_text =
        module->text_segments == 1 && at >= module->text_start && end <= module->text_end;

    return mr_x86_decode(bytes_at(at), bytes_at(is_in_text ? module->text_end : end),
                         instruction) &&
           instruction->size <= end - at;
}

static bool is_ours(const struct mr_x86 *instruction)
{
    return instruction->size == CALL_BYTES || instruction->size == CALL_BYTES + 1;
}

#define ENDBR64_BYTES 4

struct entry_call {
    uint64_t address;
    uint8_t size;
    bool is_always;
};

/* The entry call of a function that begins at `start`. False: it has none. */
static bool entry_call(const struct finder *finder, uint64_t start, uint32_t size,
                       struct entry_call *call)
{
    static const uint8_t endbr64[ENDBR64_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint64_t at = start, end = start + size, target;
    struct mr_x86 instruction;

    if (size > ENDBR64_BYTES && memcmp(bytes_at(start), endbr64, sizeof(endbr64)) == 0)
        at += ENDBR64_BYTES;
    if (!decode(finder, at, end, &instruction) || !is_ours(&instruction))
        return false;
    target = call_target(finder, at, &instruction);
    *call = (struct entry_call){.address = at,
                                .size = instruction.size,
                                .is_always = target == finder->entry_always};
    return target == finder->entry || call->is_always;
}

/* Bytes at `at`, behind those of an opcode, would make it a call of __return__. */
static bool is_exit_behind(const struct finder *finder, const uint8_t *at,
                           enum mr_x86_kind kind)
{
    struct mr_x86 instruction = {.kind = (uint8_t)kind};

    memcpy(&instruction.displacement, at, sizeof(instruction.displacement));
    return call_target(finder, (uint64_t)(uintptr_t)at + sizeof(int32_t), &instruction) ==
           finder->exit;
}

/* What would be calls of __return__, were they instructions: e8, and ff 15. */
static uint32_t count_candidates(const struct finder *finder, uint64_t start,
                                 uint32_t size)
{
    const uint8_t *end = bytes_at(start) + size, *at;
    uint32_t count = 0;

    if (size < CALL_BYTES)
        return 0;
    end -= sizeof(int32_t);
    for (at = bytes_at(start); (at = memchr(at, 0xe8, (size_t)(end - at))) != NULL; at++)
        count += is_exit_behind(finder, at + 1, MR_X86_CALL);
    end -= 1;
    for (at = bytes_at(start); (at = memchr(at, 0xff, (size_t)(end - at))) != NULL; at++)
        count += at[1] == 0x15 && is_exit_behind(finder, at + 2, MR_X86_CALL_MEMORY);
    return count;
}

static struct fragment *fragment_at(const struct finder *finder, uint64_t address)
{
    uint32_t low = 0, high = finder->fragment_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct fragment *fragment = &finder->fragments[middle];

        if (address < fragment->start)
            high = middle;
        else if (address - fragment->start >= fragment->size)
            low = middle + 1;
        else
            return fragment;
    }
    return NULL;
}

static void meet_jump(struct finder *finder, uint32_t function, uint64_t target)
{
    struct fragment *fragment = fragment_at(finder, target);

    if (!fragment || fragment->parent == function)
        return;
    fragment->parent = fragment->parent == PARENT_NONE ? function : PARENT_SEVERAL;
}

/*
 * Walks a range and adds its exits. False: the walk met what is no instruction, or did
 * not end with the range; what was added is taken back.
 */
static bool walk(struct finder *finder, uint32_t function, uint64_t start, uint32_t size)
{
    uint64_t at = start, end = start + size;
    uint32_t points = finder->table->point_count;
    uint32_t first = finder->table->functions[function].first;
    struct mr_x86 instruction;

    for (; at < end; at += instruction.size) {
        if (!decode(finder, at, end, &instruction)) {
            finder->table->point_count = points;
            finder->table->functions[function].first = first;
            return false;
        }
        if (instruction.kind == MR_X86_JUMP) {
            uint64_t target =
                at + instruction.size + (uint64_t)(int64_t)instruction.displacement;

            if (target < start || target >= end)
                meet_jump(finder, function, target);
        } else if (instruction.kind != MR_X86_OTHER && is_ours(&instruction) &&
                   call_target(finder, at, &instruction) == finder->exit) {
            add_point(finder, function, at, MR_SITE_EXIT, instruction.size);
        }
    }
    return true;
}

static void find_fragments(struct finder *finder)
{
    uint64_t start;
    uint32_t size;
    struct entry_call call;

    for (uint32_t i = 0; i < finder->unwind.count; i++) {
        struct fragment *fragments;

        if (!mr_unwind_range(&finder->unwind, i, &start, &size) ||
            entry_call(finder, start, size, &call) ||
            count_candidates(finder, start, size) == 0)
            continue;
        fragments = grow(finder->fragments, &finder->fragment_bytes,
                         finder->fragment_count, sizeof(*fragments));
        if (!fragments) {
            finder->is_out_of_memory = true;
            return;
        }
        finder->fragments = fragments;
        fragments[finder->fragment_count++] =
            (struct fragment){.start = start, .size = size, .parent = PARENT_NONE};
    }
}

/* Its number goes to the next function: what it jumped to before its walk failed has no owner. */
static void disown_fragments(struct finder *finder, uint32_t function)
{
    for (uint32_t i = 0; i < finder->fragment_count; i++)
        if (finder->fragments[i].parent == function)
            finder->fragments[i].parent = PARENT_SEVERAL;
}

static void find_function(struct finder *finder, uint64_t start, uint32_t size)
{
    struct entry_call call;
    uint32_t function;

    if (!entry_call(finder, start, size, &call))
        return;
    function = add_function(finder, start, size);
    if (finder->is_out_of_memory)
        return;
    if (!walk(finder, function, start, size)) {
        finder->table->unclear += 1 + count_candidates(finder, start, size);
        finder->table->function_count--;
        disown_fragments(finder, function);
        return;
    }
    finder->table->functions[function].is_always = call.is_always;
    add_point(finder, function, call.address, MR_SITE_ENTER, call.size);
}

static void find_functions(struct finder *finder)
{
    uint64_t start;
    uint32_t size;

    for (uint32_t i = 0; i < finder->unwind.count && !finder->is_out_of_memory; i++)
        if (mr_unwind_range(&finder->unwind, i, &start, &size))
            find_function(finder, start, size);
}

static void take_fragments(struct finder *finder)
{
    for (uint32_t i = 0; i < finder->fragment_count; i++) {
        const struct fragment *fragment = &finder->fragments[i];

        if (fragment->parent >= PARENT_SEVERAL ||
            !walk(finder, fragment->parent, fragment->start, fragment->size))
            finder->table->unclear +=
                count_candidates(finder, fragment->start, fragment->size);
    }
}

/* One entry of xray_instr_map, version 2: positions are relative to themselves. */
struct xray_entry {
    int64_t address, function;
    uint8_t kind, is_always, version, padding[13];
};

enum xray_kind { XRAY_ENTRY, XRAY_EXIT, XRAY_TAIL, XRAY_ENTRY_ARGUMENTS };

#define XRAY_SLED_BYTES 11
#define XRAY_VERSION 2

/* An entry or a tail call begins with a jump over 9 bytes, an exit with the return. */
static bool is_sled(const uint8_t *at, uint8_t kind)
{
    return kind == XRAY_EXIT ? at[0] == 0xc3 : at[0] == 0xeb && at[1] == 9;
}

/* Of the function at `address`; 0: the unwind table has none. Most follow each other. */
static uint32_t function_size(struct finder *finder, uint64_t address)
{
    const struct mr_unwind_table *unwind = &finder->unwind;
    uint32_t low = 0, high = unwind->count, size = 0;
    uint64_t start;

    if (finder->next_unwind < unwind->count &&
        mr_unwind_start(unwind, finder->next_unwind) == address)
        low = finder->next_unwind;
    else
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;

            if (mr_unwind_start(unwind, middle) < address)
                low = middle + 1;
            else
                high = middle;
        }
    finder->next_unwind = low + 1;
    return low < unwind->count && mr_unwind_range(unwind, low, &start, &size) &&
                   start == address
               ? size
               : 0;
}

static void find_sled(struct finder *finder, const struct xray_entry *entry,
                      uint64_t *function_start)
{
    static const uint8_t kinds[] = {MR_SITE_ENTER, MR_SITE_RETURN, MR_SITE_EXIT,
                                    MR_SITE_ENTER};
    uint64_t address = (uintptr_t)&entry->address + (uint64_t)entry->address;
    uint64_t function = (uintptr_t)&entry->function + (uint64_t)entry->function;
    const struct mr_module *module = finder->module;

    if (entry->kind > XRAY_ENTRY_ARGUMENTS)
        return; /* events of the program's own */
    if (entry->version != XRAY_VERSION || address < module->text_start ||
        address + XRAY_SLED_BYTES > module->text_end || function < module->text_start ||
        function > address || !is_sled(bytes_at(address), entry->kind)) {
        finder->table->unclear++;
        return;
    }
    if (function != *function_start) {
        (void)add_function(finder, function, function_size(finder, function));
        *function_start = function;
    }
    if (finder->is_out_of_memory)
        return;
    add_point(finder, finder->table->function_count - 1, address,
              (enum mr_site_kind)kinds[entry->kind], XRAY_SLED_BYTES);
    finder->table->functions[finder->table->function_count - 1].is_always |=
        entry->is_always != 0;
}

static void find_sleds(struct finder *finder, const struct mr_site_module *sites)
{
    const struct xray_entry *entry = (const void *)(uintptr_t)sites->xray_start;
    const struct xray_entry *end = (const void *)(uintptr_t)sites->xray_end;
    uint64_t function_start = 0;

    for (; entry < end && !finder->is_out_of_memory; entry++)
        find_sled(finder, entry, &function_start);
}

static void finish(struct finder *finder)
{
    struct mr_site_table *table = finder->table;

    if (finder->fragments)
        (void)munmap(finder->fragments, finder->fragment_bytes);
    table->functions = shrink(table->functions, &table->function_bytes,
                              table->function_count, sizeof(*table->functions));
    table->points = shrink(table->points, &table->point_bytes, table->point_count,
                           sizeof(*table->points));
}

enum mr_status mr_site_table_find(struct mr_site_table *table,
                                  const struct mr_module *module,
                                  const struct mr_site_module *sites,
                                  struct mr_error *error)
{
    struct finder finder = {.table = table,
                            .module = module,
                            .entry = sites->entry,
                            .entry_always = sites->entry_always,
                            .exit = sites->exit};
    bool has_unwind = mr_unwind_open(&finder.unwind, module);

    *table = (struct mr_site_table){0};
    if (module->size > UINT32_MAX)
        return mr_error_set(error, MR_ELIMIT, "%s: larger than 4 GiB", module->path);
    if (!has_unwind && sites->xray_start == sites->xray_end)
        return mr_error_set(error, MR_EFORMAT,
                            "%s: no .eh_frame_hdr to tell where functions begin: link "
                            "with -Wl,--eh-frame-hdr, do not compile with "
                            "-fno-asynchronous-unwind-tables",
                            module->path);
    if (has_unwind) {
        find_fragments(&finder);
        find_functions(&finder);
        take_fragments(&finder);
    }
    find_sleds(&finder, sites);
    finish(&finder);
    if (!finder.is_out_of_memory)
        return MR_OK;
    mr_site_table_fini(table);
    return mr_error_set(error, MR_ENOMEM, "%s: no memory for its sites", module->path);
}

void mr_site_table_fini(struct mr_site_table *table)
{
    if (table->functions)
        (void)munmap(table->functions, table->function_bytes);
    if (table->points)
        (void)munmap(table->points, table->point_bytes);
    *table = (struct mr_site_table){0};
}
