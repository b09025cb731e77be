/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

KEEP static int archive_leaf(int value)
{
    return value * 3;
}

KEEP int archive_work(int value)
{
    return archive_leaf(value) + 3;
}
