/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <millrace/probe.h>

MR_NEVER_TRACE KEEP static int quiet(int value)
{
    return value * 3;
}

/* Small enough to be inlined, and to be below any threshold. */
MR_ALWAYS_TRACE static int archive_leaf(int value)
{
    return quiet(value) + 0;
}

KEEP int archive_work(int value)
{
    return archive_leaf(value) + 3;
}
