/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a traced call leaves as it was, and calls that show whether it did (state.S):
 *
 *     state_set(&state_in);
 *     was_reached = state_call_avx512(function, ASK_STEP, n);
 *     same = state_is_same();
 */
#ifndef MR_TESTS_SYSTEM_STEPS_STATE_H
#define MR_TESTS_SYSTEM_STEPS_STATE_H

#define STATE_MASKS 2048
#define STATE_X87 2112
#define STATE_GENERAL 2240
#define STATE_FLAGS 2360
#define STATE_MXCSR 2368
#define STATE_CONTROL 2372

#ifndef __ASSEMBLER__
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct state {
    uint8_t vectors[32][64];
    uint64_t masks[8];
    uint8_t x87[8][16];
    uint64_t general[15]; /* all but %r11, the stack's last */
    uint64_t flags;
    uint32_t mxcsr;
    uint16_t control;
};

extern struct state state_in, state_out;

/*
 * Fills all registers, asks the stepper for `ask` `number`, calls, and says that it has ended; the stepper's answer to that. The
 * general registers and the flags that go in are written to state_in here.
 */
uint64_t state_call_sse(void (*function)(void), uint64_t ask, uint64_t number);
uint64_t state_call_avx512(void (*function)(void), uint64_t ask, uint64_t number);

#ifdef __cplusplus
}
#endif
#endif
#endif
