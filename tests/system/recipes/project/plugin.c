/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

KEEP static int plugin_leaf(int value)
{
    return value * 5;
}

KEEP int plugin_work(int value)
{
    return plugin_leaf(value) + 5;
}
