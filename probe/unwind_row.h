/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unwind information says of one address: where the frame of the function at it
 * begins, and where its caller's registers are (DWARF 5, section 6.4; System V ABI,
 * AMD64 supplement, 3.6.2; Arm, "DWARF for the Arm 64-bit Architecture").
 *
 *     struct mr_unwind_row row;
 *     if (mr_unwind_find(&table, address, &entry) && mr_unwind_row_at(&row, &entry, address))
 *         ok = mr_unwind_evaluate(row.frame.code, &registers, 0, &value) ...
 *
 * Any thread and signal handlers: nothing is allocated, no lock is taken. Instructions and
 * expressions are checked; the memory that an expression reads is the stack, which is
 * trusted as the unwinder of exceptions trusts it.
 */
#ifndef MR_PROBE_UNWIND_ROW_H
#define MR_PROBE_UNWIND_ROW_H

#include "probe/unwind_table.h"

#if defined(__x86_64__)
#define MR_UNWIND_REGISTERS 17 /* by their DWARF numbers; 16 is the return address */
#define MR_UNWIND_STACK 7
#else
#define MR_UNWIND_REGISTERS 33 /* aarch64: x0 to x30, sp; 32 is not used */
#define MR_UNWIND_STACK 31
#endif

/* Of a frame; `known` has a bit for each whose value is known. */
struct mr_unwind_registers {
    uint64_t known;
    uint64_t values[MR_UNWIND_REGISTERS];
};

enum mr_unwind_rule {
    MR_UNWIND_SAME,     /* as in the frame itself */
    MR_UNWIND_LOST,     /* not kept; of the return address: nobody called */
    MR_UNWIND_AT,       /* in memory, `offset` from the frame's address */
    MR_UNWIND_IS,       /* is that address */
    MR_UNWIND_REGISTER, /* in register `number` */
    MR_UNWIND_AT_EXPRESSION,
    MR_UNWIND_IS_EXPRESSION,
};

struct mr_unwind_place {
    uint8_t rule, number; /* enum mr_unwind_rule */
    union {
        int64_t offset;
        const uint8_t *expression; /* its length, and itself */
    };
};

struct mr_unwind_row {
    /* The frame's address: REGISTER with an offset, or IS_EXPRESSION. */
    struct mr_unwind_place frame;
    struct mr_unwind_place registers[MR_UNWIND_REGISTERS];
    bool is_signed; /* aarch64: the return address carries a signature */
};

/* `address` lies in the entry. False: instructions that are none, or unknown. */
bool mr_unwind_row_at(struct mr_unwind_row *row, const struct mr_unwind_entry *entry,
                      uint64_t address);
/*
 * Evaluates an expression of that row, `frame` pushed first where `has_frame`. False: an operation that
 * is none or unknown, a register that is not known, a stack that runs over.
 */
bool mr_unwind_evaluate(const uint8_t *expression,
                        const struct mr_unwind_registers *registers, bool has_frame,
                        uint64_t frame, uint64_t *value);

#endif
