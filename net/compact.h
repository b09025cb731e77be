/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack that reader and writer of a compact chunk keep in step (docs/FORMAT.md section 6.3). Inside net/ only.
 *
 * `open` counts how often a number is on the stack, so that the exit of a site that is not there costs no search, and a
 * search always ends in pops: any chunk costs time in proportion to its records.
 */
#ifndef MR_NET_COMPACT_H
#define MR_NET_COMPACT_H

#include "net/chunk.h"

enum mr_compact_record {
    MR_COMPACT_ENTER = 0,
    MR_COMPACT_EXIT_TOP = 1,
    MR_COMPACT_EXIT = 2,
    MR_COMPACT_OTHER = 3,
};

/* Number of the site on top, 0 for an empty stack. */
static inline uint16_t mr_compact_top(const struct mr_compact_stack *stack)
{
    return stack->depth ? stack->numbers[stack->depth - 1] : 0;
}

static inline void mr_compact_enter(struct mr_compact_stack *stack, uint16_t number)
{
    if (stack->depth == MR_CHUNK_STACK_MAX)
        return;
    stack->numbers[stack->depth++] = number;
    stack->open[number]++;
}

/* Pops everything up to and with the topmost `number`; nothing where there is none. */
static inline void mr_compact_leave(struct mr_compact_stack *stack, uint16_t number)
{
    uint16_t top;

    if (stack->open[number] == 0)
        return;
    do {
        top = stack->numbers[--stack->depth];
        stack->open[top]--;
    } while (top != number);
}

#endif
