/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lengths and direct jumps of x86-64 instructions: enough to walk a function from its
 * first instruction to its last and so to know where instructions begin. Intel SDM vol. 2
 * ch. 2 and app. A, AMD APM vol. 3 app. A.
 *
 *     struct mr_x86 instruction;
 *     for (at = start; at < end && mr_x86_decode(at, end, &instruction);
 *          at += instruction.size) ...
 *
 * Any thread, no memory.
 */
#ifndef MR_PROBE_X86_DECODE_H
#define MR_PROBE_X86_DECODE_H

#include <stdbool.h>
#include <stdint.h>

enum mr_x86_kind {
    MR_X86_OTHER,
    MR_X86_JUMP,        /* jmp rel8, rel32 and all jcc: `displacement` */
    MR_X86_CALL,        /* e8, with prefixes or without: `displacement` */
    MR_X86_CALL_MEMORY, /* ff 15: call *displacement(%rip) */
};

struct mr_x86 {
    uint8_t size;
    uint8_t kind;         /* enum mr_x86_kind */
    int32_t displacement; /* from the end of the instruction */
};

/* False: no instruction in 64-bit mode, unknown, or not whole before `end`. */
bool mr_x86_decode(const uint8_t *at, const uint8_t *end, struct mr_x86 *instruction);

#endif
