/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

KEEP static int shared_leaf(int value)
{
    return value * 2;
}

KEEP int shared_work(int value)
{
    return shared_leaf(value) + 2;
}
