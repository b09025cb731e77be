/* SPDX-License-Identifier: Apache-2.0 */
/* WORKLOAD_SPANS: spans are written by hand (door manual), else the compiler's flags decide. */
#include "bench/programs/workload.h"

#if defined(WORKLOAD_SPANS)
#include <millrace/probe.h>
#define SPAN(name) MR_SPAN(name)
#else
#define SPAN(name)
#endif

uint32_t workload_tiny(uint32_t x)
{
    SPAN("workload_tiny");
    return x + 1;
}

/* What follows the call keeps compilers from making a loop of it. */
uint32_t workload_rec10(uint32_t x, uint32_t depth)
{
    SPAN("workload_rec10");
    if (depth > 1)
        x = workload_rec10(x, depth - 1);
    return x ^ (x >> 3) ^ depth;
}

uint32_t workload_body(uint32_t x)
{
    SPAN("workload_body");
    for (int i = 0; i < WORKLOAD_STEPS; i++)
        x = WORKLOAD_STEP(x);
    return x;
}

uint32_t workload_trace(uint32_t x, uint32_t depth, uint64_t wait)
{
    SPAN("workload_trace");
    if (depth > 1) {
        x = workload_trace(x, depth - 1, wait);
    } else {
        uint64_t start = workload_ticks();

        while (workload_ticks() - start < wait)
            continue;
    }
    return x ^ (x >> 3) ^ depth;
}
