/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/unwind_row.h"

#include "probe/unwind_bytes.h"

/* Compilers nest one; two rows of the stack are enough for a signal handler's. */
#define REMEMBERED_MAX 2

/* DWARF 5, 7.24: the first three have an operand in their low six bits. */
enum {
    CFA_ADVANCE = 0x40,
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_ADVANCE_1 = 0x02,
    CFA_ADVANCE_2 = 0x03,
    CFA_ADVANCE_4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER = 0x0a,
    CFA_RECALL = 0x0b,
    CFA_FRAME = 0x0c,
    CFA_FRAME_REGISTER = 0x0d,
    CFA_FRAME_OFFSET = 0x0e,
    CFA_FRAME_EXPRESSION = 0x0f,
    CFA_AT_EXPRESSION = 0x10,
    CFA_OFFSET_SIGNED = 0x11,
    CFA_FRAME_SIGNED = 0x12,
    CFA_FRAME_OFFSET_SIGNED = 0x13,
    CFA_IS = 0x14,
    CFA_IS_SIGNED = 0x15,
    CFA_IS_EXPRESSION = 0x16,
    CFA_TOGGLE_SIGNED = 0x2d, /* aarch64: the return address is signed from here on */
    CFA_ARGUMENTS = 0x2e,     /* GNU: bytes pushed for a call; says nothing of frames */
};

struct machine {
    struct mr_unwind_bytes bytes;
    const struct mr_unwind_entry *entry;
    uint64_t location, address;
    struct mr_unwind_row *row, first, remembered[REMEMBERED_MAX];
    uint32_t remembered_count;
    bool is_unknown;
};

/* A register that we do not follow (floating point) goes nowhere. */
static void set(struct machine *machine, uint64_t number, struct mr_unwind_place place)
{
    if (number < MR_UNWIND_REGISTERS)
        machine->row->registers[number] = place;
}

static struct mr_unwind_place at_offset(enum mr_unwind_rule rule, int64_t offset)
{
    return (struct mr_unwind_place){.rule = (uint8_t)rule, .offset = offset};
}

/* Skips the expression, whose length is checked here for mr_unwind_evaluate(). */
static struct mr_unwind_place expression(struct machine *machine,
                                         enum mr_unwind_rule rule)
{
    struct mr_unwind_place place = {.rule = (uint8_t)rule,
                                    .expression = machine->bytes.at};

    (void)mr_unwind_take(&machine->bytes, mr_unwind_uleb(&machine->bytes));
    return place;
}

static int64_t scaled(const struct machine *machine, uint64_t offset)
{
    return (int64_t)(offset * (uint64_t)machine->entry->data_step);
}

static void set_frame(struct machine *machine, uint64_t number, int64_t offset)
{
    machine->is_unknown |= number >= MR_UNWIND_REGISTERS;
    machine->row->frame = (struct mr_unwind_place){
        .rule = MR_UNWIND_REGISTER, .number = (uint8_t)number, .offset = offset};
}

static void restore(struct machine *machine, uint64_t number)
{
    if (number < MR_UNWIND_REGISTERS)
        machine->row->registers[number] = machine->first.registers[number];
}

static void advance(struct machine *machine, uint64_t steps)
{
    machine->location += steps * machine->entry->code_step;
}

static void remember(struct machine *machine)
{
    if (machine->remembered_count == REMEMBERED_MAX)
        machine->is_unknown = true;
    else
        machine->remembered[machine->remembered_count++] = *machine->row;
}

static void recall(struct machine *machine)
{
    if (machine->remembered_count == 0)
        machine->is_unknown = true;
    else
        *machine->row = machine->remembered[--machine->remembered_count];
}

static void step_frame(struct machine *machine, uint8_t code)
{
    struct mr_unwind_bytes *bytes = &machine->bytes;
    struct mr_unwind_place *frame = &machine->row->frame;
    uint64_t number;

    switch (code) {
    case CFA_FRAME:
        number = mr_unwind_uleb(bytes);
        set_frame(machine, number, (int64_t)mr_unwind_uleb(bytes));
        break;
    case CFA_FRAME_SIGNED:
        number = mr_unwind_uleb(bytes);
        set_frame(machine, number, scaled(machine, (uint64_t)mr_unwind_sleb(bytes)));
        break;
    case CFA_FRAME_EXPRESSION:
        *frame = expression(machine, MR_UNWIND_IS_EXPRESSION);
        break;
    case CFA_FRAME_REGISTER:
        machine->is_unknown |= frame->rule != MR_UNWIND_REGISTER;
        set_frame(machine, mr_unwind_uleb(bytes), frame->offset);
        break;
    case CFA_FRAME_OFFSET:
        machine->is_unknown |= frame->rule != MR_UNWIND_REGISTER;
        frame->offset = (int64_t)mr_unwind_uleb(bytes);
        break;
    case CFA_FRAME_OFFSET_SIGNED:
        machine->is_unknown |= frame->rule != MR_UNWIND_REGISTER;
        frame->offset = scaled(machine, (uint64_t)mr_unwind_sleb(bytes));
        break;
    default:
        machine->is_unknown = true;
    }
}

/* Those whose first operand is a register. */
static void step_register(struct machine *machine, uint8_t code)
{
    struct mr_unwind_bytes *bytes = &machine->bytes;
    uint64_t number = mr_unwind_uleb(bytes), other;

    switch (code) {
    case CFA_OFFSET_EXTENDED:
        set(machine, number,
            at_offset(MR_UNWIND_AT, scaled(machine, mr_unwind_uleb(bytes))));
        break;
    case CFA_OFFSET_SIGNED:
        set(machine, number,
            at_offset(MR_UNWIND_AT, scaled(machine, (uint64_t)mr_unwind_sleb(bytes))));
        break;
    case CFA_IS:
        set(machine, number,
            at_offset(MR_UNWIND_IS, scaled(machine, mr_unwind_uleb(bytes))));
        break;
    case CFA_IS_SIGNED:
        set(machine, number,
            at_offset(MR_UNWIND_IS, scaled(machine, (uint64_t)mr_unwind_sleb(bytes))));
        break;
    case CFA_RESTORE_EXTENDED:
        restore(machine, number);
        break;
    case CFA_UNDEFINED:
        set(machine, number, at_offset(MR_UNWIND_LOST, 0));
        break;
    case CFA_SAME:
        set(machine, number, at_offset(MR_UNWIND_SAME, 0));
        break;
    case CFA_REGISTER:
        other = mr_unwind_uleb(bytes);
        machine->is_unknown |= other >= MR_UNWIND_REGISTERS;
        set(machine, number,
            (struct mr_unwind_place){.rule = MR_UNWIND_REGISTER,
                                     .number = (uint8_t)other});
        break;
    case CFA_AT_EXPRESSION:
        set(machine, number, expression(machine, MR_UNWIND_AT_EXPRESSION));
        break;
    case CFA_IS_EXPRESSION:
        set(machine, number, expression(machine, MR_UNWIND_IS_EXPRESSION));
        break;
    default:
        machine->is_unknown = true;
    }
}

static void step_other(struct machine *machine, uint8_t code)
{
    struct mr_unwind_bytes *bytes = &machine->bytes;

    switch (code) {
    case CFA_NOP:
        break;
    case CFA_ADVANCE_1:
        advance(machine, mr_unwind_fixed(bytes, 1));
        break;
    case CFA_ADVANCE_2:
        advance(machine, mr_unwind_fixed(bytes, 2));
        break;
    case CFA_ADVANCE_4:
        advance(machine, mr_unwind_fixed(bytes, 4));
        break;
    case CFA_REMEMBER:
        remember(machine);
        break;
    case CFA_RECALL:
        recall(machine);
        break;
    case CFA_TOGGLE_SIGNED:
        machine->row->is_signed = !machine->row->is_signed;
        break;
    case CFA_ARGUMENTS:
        (void)mr_unwind_uleb(bytes);
        break;
    case CFA_FRAME:
    case CFA_FRAME_SIGNED:
    case CFA_FRAME_REGISTER:
    case CFA_FRAME_OFFSET:
    case CFA_FRAME_OFFSET_SIGNED:
    case CFA_FRAME_EXPRESSION:
        step_frame(machine, code);
        break;
    default:
        step_register(machine, code);
    }
}

static void step(struct machine *machine)
{
    uint8_t code = (uint8_t)mr_unwind_fixed(&machine->bytes, 1), low = code & 0x3f;

    switch (code & 0xc0) {
    case CFA_ADVANCE:
        advance(machine, low);
        break;
    case CFA_OFFSET:
        set(machine, low,
            at_offset(MR_UNWIND_AT, scaled(machine, mr_unwind_uleb(&machine->bytes))));
        break;
    case CFA_RESTORE:
        restore(machine, low);
        break;
    default:
        step_other(machine, code);
    }
}

static bool run(struct machine *machine, const struct mr_unwind_code *code)
{
    machine->bytes = (struct mr_unwind_bytes){.at = code->at, .end = code->end};
    while (machine->bytes.at < machine->bytes.end &&
           machine->location <= machine->address && !machine->is_unknown)
        step(machine);
    return !machine->is_unknown && !machine->bytes.has_failed;
}

bool mr_unwind_row_at(struct mr_unwind_row *row, const struct mr_unwind_entry *entry,
                      uint64_t address)
{
    struct machine machine;

    memset(row, 0, sizeof(*row)); /* all SAME */
    row->frame.rule = MR_UNWIND_LOST;
    machine.entry = entry;
    machine.location = entry->start;
    machine.address = address;
    machine.row = row;
    machine.first = *row;
    machine.remembered_count = 0;
    machine.is_unknown = false;
    if (!run(&machine, &entry->shared))
        return false;
    machine.first = *row;
    return run(&machine, &entry->own) && row->frame.rule != MR_UNWIND_LOST;
}
