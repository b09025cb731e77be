/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins.c loads and unloads. */
#include "safety.h"

#include <millrace/probe.h>

void plugin_call(int count);

TRACED static void plugin_leaf(void)
{
    HERE;
}

TRACED __attribute__((constructor)) static void plugin_starts(void)
{
    HERE;
    plugin_leaf();
    KEEP;
}

TRACED __attribute__((destructor)) static void plugin_ends(void)
{
    HERE;
}

TRACED __attribute__((visibility("default"))) void plugin_call(int count)
{
    HERE;
    TIMES(count)
    plugin_leaf();
    KEEP;
}
