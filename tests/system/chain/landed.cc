// SPDX-License-Identifier: Apache-2.0
// An exception leaves dive(), which calls itself. On its way out of each it runs for a line of the input; what comes then calls step().
#include <cstdio>

static volatile unsigned sink;

extern "C" void step()
{
    sink = sink + 1;
}

struct Guard {
    ~Guard()
    {
        char line[16];

        if (std::fgets(line, sizeof(line), stdin))
            step();
    }
};

extern "C" void dive(int levels)
{
    Guard guard;

    if (levels == 0)
        throw 1;
    dive(levels - 1);
    sink = sink + 1;
}

int main()
{
    try {
        dive(3);
    } catch (int) {
        step();
    }
    step();
    return 0;
}
