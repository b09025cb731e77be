/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of unwind information: the operations that compilers and libc use there. */
#include "probe/unwind_bytes.h"
#include "probe/unwind_row.h"

#define STACK_MAX 8
#define OPERATIONS_MAX 64 /* no jumps backwards: a limit of what is sensible */

/* DWARF 5, 7.7.1. */
enum {
    OP_ADDRESS = 0x03,
    OP_READ = 0x06,
    OP_CONSTANT_U1 = 0x08,
    OP_CONSTANT_S1,
    OP_CONSTANT_U2,
    OP_CONSTANT_S2,
    OP_CONSTANT_U4,
    OP_CONSTANT_S4,
    OP_CONSTANT_U8,
    OP_CONSTANT_S8,
    OP_CONSTANT_ULEB,
    OP_CONSTANT_SLEB,
    OP_COPY,
    OP_DROP,
    OP_COPY_SECOND,
    OP_SWAP = 0x16,
    OP_AND = 0x1a,
    OP_MINUS = 0x1c,
    OP_TIMES = 0x1e,
    OP_NEGATIVE = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_ULEB = 0x23,
    OP_SHIFT_LEFT = 0x24,
    OP_SHIFT_RIGHT = 0x25,
    OP_XOR = 0x27,
    OP_EQUAL = 0x29,
    OP_NOT_LESS = 0x2a,
    OP_GREATER = 0x2b,
    OP_NOT_GREATER = 0x2c,
    OP_LESS = 0x2d,
    OP_NOT_EQUAL = 0x2e,
    OP_LITERAL = 0x30,
    OP_LITERAL_LAST = 0x4f,
    OP_REGISTER = 0x70, /* its value and an offset */
    OP_REGISTER_LAST = 0x8f,
    OP_REGISTER_ANY = 0x92,
    OP_NOP = 0x96,
};

struct machine {
    struct mr_unwind_bytes bytes;
    const struct mr_unwind_registers *registers;
    uint64_t stack[STACK_MAX];
    uint32_t depth;
    bool has_failed;
};

static void push(struct machine *machine, uint64_t value)
{
    if (machine->depth == STACK_MAX)
        machine->has_failed = true;
    else
        machine->stack[machine->depth++] = value;
}

static uint64_t pop(struct machine *machine)
{
    if (machine->depth > 0)
        return machine->stack[--machine->depth];
    machine->has_failed = true;
    return 0;
}

static void push_register(struct machine *machine, uint64_t number)
{
    int64_t offset = mr_unwind_sleb(&machine->bytes);

    if (number < MR_UNWIND_REGISTERS && machine->registers->known >> number & 1)
        push(machine, machine->registers->values[number] + (uint64_t)offset);
    else
        machine->has_failed = true;
}

static uint64_t read_word(struct machine *machine, uint64_t address)
{
    uint64_t value = 0;

    if (machine->has_failed || address % sizeof(value) != 0 || address == 0)
        machine->has_failed = true;
    else
        memcpy(&value, (const void *)(uintptr_t)address, sizeof(value));
    return value;
}

/* Of two numbers, the second one on top. False: no such operation. */
static bool combine(uint8_t code, uint64_t a, uint64_t b, uint64_t *value)
{
    int64_t left = (int64_t)a, right = (int64_t)b;

    switch (code) {
    case OP_AND:
        *value = a & b;
        break;
    case OP_OR:
        *value = a | b;
        break;
    case OP_XOR:
        *value = a ^ b;
        break;
    case OP_PLUS:
        *value = a + b;
        break;
    case OP_MINUS:
        *value = a - b;
        break;
    case OP_TIMES:
        *value = a * b;
        break;
    case OP_SHIFT_LEFT:
        *value = b < 64 ? a << b : 0;
        break;
    case OP_SHIFT_RIGHT:
        *value = b < 64 ? a >> b : 0;
        break;
    case OP_EQUAL:
        *value = left == right;
        break;
    case OP_NOT_EQUAL:
        *value = left != right;
        break;
    case OP_LESS:
        *value = left < right;
        break;
    case OP_NOT_LESS:
        *value = left >= right;
        break;
    case OP_GREATER:
        *value = left > right;
        break;
    case OP_NOT_GREATER:
        *value = left <= right;
        break;
    default:
        return false;
    }
    return true;
}

/* False: no such operation. */
static bool push_constant(struct machine *machine, uint8_t code)
{
    struct mr_unwind_bytes *bytes = &machine->bytes;

    if (code >= OP_LITERAL && code <= OP_LITERAL_LAST)
        push(machine, (uint64_t)code - OP_LITERAL);
    else if (code == OP_ADDRESS)
        push(machine, mr_unwind_fixed(bytes, 8));
    else if (code == OP_CONSTANT_ULEB)
        push(machine, mr_unwind_uleb(bytes));
    else if (code == OP_CONSTANT_SLEB)
        push(machine, (uint64_t)mr_unwind_sleb(bytes));
    else if (code < OP_CONSTANT_U1 || code > OP_CONSTANT_S8)
        return false;
    else if ((code - OP_CONSTANT_U1) % 2 == 0)
        push(machine, mr_unwind_fixed(bytes, 1U << (code - OP_CONSTANT_U1) / 2));
    else
        push(machine,
             (uint64_t)mr_unwind_fixed_signed(bytes, 1U << (code - OP_CONSTANT_U1) / 2));
    return true;
}

/* Of what is on top. False: no such operation. */
static bool change_top(struct machine *machine, uint8_t code)
{
    uint64_t top, second;

    switch (code) {
    case OP_READ:
        push(machine, read_word(machine, pop(machine)));
        break;
    case OP_NEGATIVE:
        push(machine, -pop(machine));
        break;
    case OP_NOT:
        push(machine, ~pop(machine));
        break;
    case OP_PLUS_ULEB:
        push(machine, pop(machine) + mr_unwind_uleb(&machine->bytes));
        break;
    case OP_DROP:
        (void)pop(machine);
        break;
    case OP_COPY:
        top = pop(machine);
        push(machine, top);
        push(machine, top);
        break;
    case OP_SWAP:
        top = pop(machine);
        second = pop(machine);
        push(machine, top);
        push(machine, second);
        break;
    case OP_COPY_SECOND:
        top = pop(machine);
        second = pop(machine);
        push(machine, second);
        push(machine, top);
        push(machine, second);
        break;
    default:
        return false;
    }
    return true;
}

static void step(struct machine *machine)
{
    uint8_t code = (uint8_t)mr_unwind_fixed(&machine->bytes, 1);
    uint64_t top, second, value;

    if (code == OP_NOP || push_constant(machine, code) || change_top(machine, code))
        return;
    if (code >= OP_REGISTER && code <= OP_REGISTER_LAST) {
        push_register(machine, (uint64_t)code - OP_REGISTER);
    } else if (code == OP_REGISTER_ANY) {
        push_register(machine, mr_unwind_uleb(&machine->bytes));
    } else {
        top = pop(machine);
        second = pop(machine);
        if (combine(code, second, top, &value))
            push(machine, value);
        else
            machine->has_failed = true;
    }
}

bool mr_unwind_evaluate(const uint8_t *expression,
                        const struct mr_unwind_registers *registers, bool has_frame,
                        uint64_t frame, uint64_t *value)
{
    struct machine machine = {.registers = registers};
    /* The length was checked in mr_unwind_row_at(): at most ten bytes tell it. */
    struct mr_unwind_bytes length = {.at = expression, .end = expression + 10};
    uint64_t size = mr_unwind_uleb(&length);

    machine.bytes = (struct mr_unwind_bytes){.at = length.at, .end = length.at + size};
    if (has_frame)
        push(&machine, frame);
    for (uint32_t i = 0; i < OPERATIONS_MAX && machine.bytes.at < machine.bytes.end &&
                         !machine.has_failed && !machine.bytes.has_failed;
         i++)
        step(&machine);
    *value = pop(&machine);
    return !machine.has_failed && !machine.bytes.has_failed &&
           machine.bytes.at == machine.bytes.end;
}
