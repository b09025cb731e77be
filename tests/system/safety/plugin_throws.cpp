/* SPDX-License-Identifier: Apache-2.0 */
/* What throws.c loads: the only C++ of the process, with a runtime that the program does not have. */
#include "safety.h"

#include <millrace/probe.h>

#include <stdexcept>

extern "C" void plugin_throw();

TRACED static void plugin_leaf()
{
    HERE;
}

struct Guard {
    PLAIN ~Guard()
    {
        plugin_leaf();
    }
};

TRACED static void plugin_fall(int depth)
{
    HERE;
    Guard guard;
    if (depth == 0)
        throw std::runtime_error("plugin");
    plugin_fall(depth - 1);
    KEEP;
}

TRACED __attribute__((visibility("default"))) void plugin_throw()
{
    HERE;
    try {
        plugin_fall(2);
    } catch (const std::exception &) {
        plugin_leaf();
    }
    plugin_leaf();
    KEEP;
}
