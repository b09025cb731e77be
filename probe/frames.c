/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/frames.h"

#include "probe/sites.h"

#include <dlfcn.h>
#include <string.h>

#define WORD UINT64_C(8)
/* aarch64: bits of an address that pointer authentication leaves alone. */
#define ADDRESS_MASK ((UINT64_C(1) << 48) - 1)

#if defined(DLFO_STRUCT_HAS_EH_DBASE)
/* glibc 2.35; not there in an older one. Takes no lock, may be called from handlers. */
MR_WEAK int _dl_find_object(void *address, struct dl_find_object *result);

static bool open_table(struct mr_frames *frames, uint64_t address)
{
    struct dl_find_object found;
    uint64_t start, end, header;

    if (!_dl_find_object || _dl_find_object((void *)(uintptr_t)address, &found) != 0)
        return false;
    start = (uintptr_t)found.dlfo_map_start;
    end = (uintptr_t)found.dlfo_map_end;
    header = (uintptr_t)found.dlfo_eh_frame;
    return header >= start && header < end &&
           mr_unwind_open_at(&frames->table, start, end - start, header, end - header);
}
#else
static bool open_table(struct mr_frames *frames, uint64_t address)
{
    MR_UNUSED(frames);
    MR_UNUSED(address);
    return false;
}
#endif

static bool is_in_table(const struct mr_frames *frames, uint64_t address)
{
    return frames->table.count > 0 &&
           address - frames->table.address < frames->table.size;
}

static bool is_known(const struct mr_frames *frames, uint32_t number)
{
    return frames->registers.known >> number & 1;
}

static bool read_word(uint64_t address, uint64_t *value)
{
    if (address % WORD != 0 || address < 4096)
        return false;
    memcpy(value, (const void *)(uintptr_t)address, sizeof(*value));
    return true;
}

/* `base` of the frame at hand. */
static bool find_base(struct mr_frames *frames)
{
    const struct mr_unwind_place *frame = &frames->row.frame;

    if (frame->rule == MR_UNWIND_IS_EXPRESSION)
        return mr_unwind_evaluate(frame->expression, &frames->registers, false, 0,
                                  &frames->base);
    if (frame->rule != MR_UNWIND_REGISTER || !is_known(frames, frame->number))
        return false;
    frames->base = frames->registers.values[frame->number] + (uint64_t)frame->offset;
    return true;
}

#if defined(__x86_64__)
#define RETURN_COLUMN 16

/* Code that the probe itself has made, which calls nobody: a handler came there. */
static bool arrive_in_thunk(struct mr_frames *frames)
{
    struct mr_unwind_row *row = &frames->row;
    uint64_t pushed;

    if (!frames->is_interrupted || !is_known(frames, MR_UNWIND_STACK) ||
        !mr_sites_is_thunk(frames->address, &pushed))
        return false;
    memset(row, 0, sizeof(*row)); /* all registers are the caller's */
    row->registers[RETURN_COLUMN] =
        (struct mr_unwind_place){.rule = MR_UNWIND_AT, .offset = -(int64_t)WORD};
    frames->entry = (struct mr_unwind_entry){.return_column = RETURN_COLUMN};
    frames->function = frames->address;
    frames->stack = frames->registers.values[MR_UNWIND_STACK];
    frames->base = frames->stack + pushed + WORD;
    return true;
}
#else
static bool arrive_in_thunk(struct mr_frames *frames)
{
    MR_UNUSED(frames);
    return false;
}
#endif

/* Looks up what is known of the code at `address`; a call is the last thing before it. */
static bool arrive(struct mr_frames *frames)
{
    uint64_t address = frames->address - !frames->is_interrupted;

    if (!is_in_table(frames, address) && !open_table(frames, address)) {
        frames->table.count = 0;
        return arrive_in_thunk(frames);
    }
    if (!mr_unwind_find(&frames->table, address, &frames->entry) ||
        !mr_unwind_row_at(&frames->row, &frames->entry, address) ||
        frames->entry.return_column >= MR_UNWIND_REGISTERS ||
        !is_known(frames, MR_UNWIND_STACK))
        return false;
    frames->function = frames->entry.start;
    frames->stack = frames->registers.values[MR_UNWIND_STACK];
    return find_base(frames);
}

/* False: it is not known in the caller. */
static bool register_of_caller(const struct mr_frames *frames, uint32_t number,
                               uint64_t *value)
{
    const struct mr_unwind_place *place = &frames->row.registers[number];
    uint64_t address = frames->base + (uint64_t)place->offset;

    switch (place->rule) {
    case MR_UNWIND_SAME:
        *value = frames->registers.values[number];
        return is_known(frames, number);
    case MR_UNWIND_AT:
        return read_word(address, value);
    case MR_UNWIND_IS:
        *value = address;
        return true;
    case MR_UNWIND_REGISTER:
        *value = frames->registers.values[place->number];
        return is_known(frames, place->number);
    case MR_UNWIND_AT_EXPRESSION:
        return mr_unwind_evaluate(place->expression, &frames->registers, true,
                                  frames->base, &address) &&
               read_word(address, value);
    case MR_UNWIND_IS_EXPRESSION:
        return mr_unwind_evaluate(place->expression, &frames->registers, true,
                                  frames->base, value);
    default:
        return false;
    }
}

/* The caller's registers. Its stack pointer is `base` where nothing else is said. */
static bool leave(struct mr_frames *frames)
{
    uint8_t column = frames->entry.return_column;
    struct mr_unwind_registers caller = {.known = 0};

    for (uint32_t i = 0; i < MR_UNWIND_REGISTERS; i++)
        if (register_of_caller(frames, i, &caller.values[i]))
            caller.known |= UINT64_C(1) << i;
    if (!(caller.known >> column & 1))
        return false;
    frames->address = caller.values[column];
    if (frames->row.is_signed)
        frames->address &= ADDRESS_MASK;
    if (frames->row.registers[MR_UNWIND_STACK].rule == MR_UNWIND_SAME) {
        caller.values[MR_UNWIND_STACK] = frames->base;
        caller.known |= UINT64_C(1) << MR_UNWIND_STACK;
    }
    frames->is_interrupted = frames->entry.is_signal;
    frames->registers = caller;
    return frames->address != 0;
}

/* Frames of one stack lie one above the other; another stack begins at a signal's frame only. */
static bool is_outward(const struct mr_frames *frames, uint64_t stack)
{
    return frames->is_interrupted || frames->registers.values[MR_UNWIND_STACK] > stack;
}

bool mr_frames_next(struct mr_frames *frames)
{
    uint64_t stack = frames->stack;

    if (frames->function == 0)
        return arrive(frames);
    return leave(frames) && is_outward(frames, stack) && arrive(frames);
}
