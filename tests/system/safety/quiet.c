/* SPDX-License-Identifier: Apache-2.0 */
/* What heaps.c loads and unloads: with nothing that is recorded, so that it has the same name for every door. */
#include "safety.h"

int quiet_answer(void);

PLAIN __attribute__((visibility("default"))) int quiet_answer(void)
{
    return 42;
}
