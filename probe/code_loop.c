/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/code_loop.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include "probe/x86_decode.h"
#endif

/* Where a function goes from one of its instructions; offsets from its start. */
struct step {
    uint64_t next;  /* of the instruction behind it */
    int64_t target; /* of its jump; any number outside the function: it leaves it */
    bool falls;     /* may go on behind it */
    bool jumps;
};

#if defined(__x86_64__)

/* jmp, ret, jmp through a register or memory, ud2, hlt: nothing goes on behind them. */
static bool is_end(const uint8_t *at, const uint8_t *end)
{
    while (at + 1 < end && (*at == 0x66 || *at == 0xf2 || *at == 0xf3 || *at == 0x2e ||
                            *at == 0x3e || (*at & 0xf0) == 0x40))
        at++;
    if (*at == 0xff && at + 1 < end)
        return (at[1] >> 3 & 6) == 4;
    if (*at == 0x0f && at + 1 < end)
        return at[1] == 0x0b;
    return *at == 0xe9 || *at == 0xeb || *at == 0xc3 || *at == 0xc2 || *at == 0xf4;
}

/* False: it is no instruction. */
static bool follow(const uint8_t *start, uint64_t size, uint64_t offset,
                   struct step *step)
{
    const uint8_t *at = start + offset;
    struct mr_x86 instruction;

    if (!mr_x86_decode(at, start + size, &instruction))
        return false;
    step->next = offset + instruction.size;
    step->jumps = instruction.kind == MR_X86_JUMP;
    step->target = (int64_t)step->next + instruction.displacement;
    step->falls = !is_end(at, at + instruction.size);
    return true;
}

#elif defined(__aarch64__)

#define INSTRUCTION_BYTES 4

/* Bits from `low` on, as a signed count of instructions. */
static int64_t field(uint32_t instruction, unsigned low, unsigned bits)
{
    return (int32_t)(instruction << (32 - low - bits)) >> (32 - bits);
}

/* Arm ARM C4.1, "Branches". */
static bool follow(const uint8_t *start, uint64_t size, uint64_t offset,
                   struct step *step)
{
    uint32_t instruction;
    int64_t by = 0;

    if (size - offset < INSTRUCTION_BYTES)
        return false;
    memcpy(&instruction, start + offset, sizeof(instruction));
    *step =
        (struct step){.next = offset + INSTRUCTION_BYTES, .falls = true, .jumps = true};
    if ((instruction & 0xfc000000u) == 0x14000000u) { /* b */
        by = field(instruction, 0, 26);
        step->falls = false;
    } else if ((instruction & 0xff000000u) == 0x54000000u || /* b.cond, bc.cond */
               (instruction & 0x7e000000u) == 0x34000000u) { /* cbz, cbnz */
        by = field(instruction, 5, 19);
    } else if ((instruction & 0x7e000000u) == 0x36000000u) { /* tbz, tbnz */
        by = field(instruction, 5, 14);
    } else {
        step->jumps = false;
        step->falls = (instruction & 0xfe9f0000u) != 0xd61f0000u && /* br, ret */
                      (instruction & 0xffff0000u) != 0;             /* udf */
    }
    step->target = (int64_t)offset + by * INSTRUCTION_BYTES;
    return true;
}

#else

static bool follow(const uint8_t *start, uint64_t size, uint64_t offset,
                   struct step *step)
{
    (void)start;
    (void)size;
    (void)offset;
    (void)step;
    return false;
}

#endif

static bool is_within(const struct step *step, uint64_t size)
{
    return step->jumps && step->target >= 0 && (uint64_t)step->target < size;
}

static bool branches_back(const uint8_t *start, uint64_t size)
{
    struct step step = {0};

    for (uint64_t offset = 0; offset < size; offset = step.next) {
        if (!follow(start, size, offset, &step))
            return true;
        if (is_within(&step, size) && (uint64_t)step.target <= offset)
            return true;
    }
    return false;
}

/*
 * Depth first, over instructions. Each has two ways on, and is on the path until both were
 * taken; one that is met again while it is on the path closes a loop.
 */
enum { NEW, TO_FALL, TO_JUMP, TO_LEAVE, DONE };

struct path {
    uint8_t states[MR_CODE_LOOP_EXACT];
    uint16_t on[MR_CODE_LOOP_EXACT];
    uint32_t length;
};

/* True: it is on the path already. */
static bool enter(struct path *path, uint64_t offset)
{
    if (path->states[offset] != NEW)
        return path->states[offset] != DONE;
    path->states[offset] = TO_FALL;
    path->on[path->length++] = (uint16_t)offset;
    return false;
}

static bool has_cycle(const uint8_t *start, uint64_t size)
{
    struct path path = {.length = 0};
    struct step step = {0};

    (void)enter(&path, 0);
    while (path.length > 0) {
        uint64_t offset = path.on[path.length - 1];
        uint8_t state = path.states[offset]++;
        bool comes_back;

        if (state == TO_LEAVE) {
            path.length--;
            continue;
        }
        if (!follow(start, size, offset, &step))
            return true;
        if (state == TO_FALL)
            comes_back = step.falls && step.next < size && enter(&path, step.next);
        else
            comes_back = is_within(&step, size) && enter(&path, (uint64_t)step.target);
        if (comes_back)
            return true;
    }
    return false;
}

bool mr_code_has_loop(uint64_t address, uint64_t size)
{
    const uint8_t *start = (const uint8_t *)(uintptr_t)address;

    if (size == 0)
        return false;
    return size <= MR_CODE_LOOP_EXACT ? has_cycle(start, size)
                                      : branches_back(start, size);
}
