/* SPDX-License-Identifier: Apache-2.0 */
/* What a program may ask of stepper.c. */
#ifndef MR_TESTS_SYSTEM_STEPS_H
#define MR_TESTS_SYSTEM_STEPS_H

#define ASK_STEP 1
#define ASK_PAUSE 2
#define ASK_END 3
#define ASK_HOLD 4
#define ASK_LET_GO 5

#define PAUSE_MS 1300 /* more than any time-out of a second */

#endif
