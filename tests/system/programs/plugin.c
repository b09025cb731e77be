/* SPDX-License-Identifier: Apache-2.0 */
/* What random programs open and close while they run (ways.h). */
#include "traced.h"

TRACED static int plug_leaf(int depth)
{
    ENTER;
    return depth;
}

TRACED int plug(int depth)
{
    ENTER;
    TIMES((unsigned)depth)
    (void)plug_leaf(depth);
    return depth;
}
