/* SPDX-License-Identifier: Apache-2.0 */
#include "stress_calls.h"

#include "base/compiler.h"

#include <stdarg.h>

/* No code of its own, but LOOSE_BYTES of it: what makes a function large. */
#if defined(__x86_64__)
#define LARGE() __asm__ volatile("jmp 1f\n.skip 1024, 0x90\n1:" : : : "cc")
#else
#define LARGE() __asm__ volatile("")
#endif

#define CALLED MR_NOINLINE

CALLED uint64_t firm_leaf(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 1;
}

CALLED static uint64_t firm_node(uint64_t value)
{
    uint64_t one = firm_leaf(value);

    return firm_leaf(one) + 1;
}

/* All argument registers are live at the exit of who calls it last. */
CALLED static double firm_all(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                              uint64_t f, double s, double t, double u, double v,
                              double w, double x, double y, double z)
{
    return (double)(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f) + s + 2 * t + 3 * u +
           4 * v + 5 * w + 6 * x + 7 * y + 8 * z;
}

CALLED static double loose_tail(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                uint64_t e, uint64_t f, double s, double t, double u,
                                double v, double w, double x, double y, double z)
{
    LARGE();
    return firm_all(b, a, d, c, f, e, t, s, v, u, x, w, z, y);
}

typedef double all_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                            double, double, double, double, double, double, double,
                            double);

/* The address that is jumped to is in a register, too. */
CALLED static double loose_indirect(all_function *function, uint64_t a, uint64_t b,
                                    uint64_t c, uint64_t d, uint64_t e, double s,
                                    double t, double u, double v, double w, double x,
                                    double y, double z)
{
    LARGE();
    return function(a, b, c, d, e, 6, s, t, u, v, w, x, y, z);
}

struct pair {
    uint64_t low, high;
};

/* Comes back in two registers. */
CALLED static struct pair loose_pair(uint64_t value)
{
    struct pair pair = {firm_leaf(value), 0};

    LARGE();
    pair.high = ~pair.low;
    return pair;
}

CALLED static long double loose_long_double(long double value)
{
    LARGE();
    return value * 2.0L;
}

CALLED static double loose_variadic(int count, ...)
{
    double sum = 0;
    va_list values;

    LARGE();
    va_start(values, count);
    for (int i = 0; i < count; i++)
        sum += va_arg(values, double);
    va_end(values);
    return sum;
}

CALLED static uint64_t loose_recursion(uint64_t depth)
{
    LARGE();
    if (depth == 0)
        return 0;
    return loose_recursion(depth - 1) + depth;
}

CALLED uint64_t firm_round(uint64_t seed)
{
    double small = (double)(seed % 1000);
    struct pair pair = loose_pair(seed);
    uint64_t sum = firm_node(seed) + firm_node(seed + 1);

    sum += pair.low + (pair.high ^ ~pair.low);
    sum += (uint64_t)loose_tail(1, 2, 3, 4, 5, 6, small, 1, 2, 3, 4, 5, 6, 7);
    sum += (uint64_t)loose_indirect(firm_all, 1, 2, 3, 4, 5, small, 1, 2, 3, 4, 5, 6, 7);
    sum += (uint64_t)loose_long_double((long double)small);
    sum += (uint64_t)loose_variadic(4, small, 1.0, 2.0, 3.0);
    sum += loose_recursion(6);
    return sum;
}

CALLED uint64_t firm_signal(uint64_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value ^ 1;
}

CALLED uint64_t loose_signal(uint64_t value)
{
    LARGE();
    return firm_signal(value) ^ 1;
}

/* The same by hand. */
MR_NO_INSTRUMENT uint64_t round_expected(uint64_t seed)
{
    uint64_t small = seed % 1000, sum = (seed + 3) + (seed + 4) + seed + 1;

    /* firm_all(2, 1, 4, 3, 6, 5, 1, small, 3, 2, 5, 4, 7, 6) */
    sum += 2 + 2 + 12 + 12 + 30 + 30 + 1 + 2 * small + 9 + 8 + 25 + 24 + 49 + 48;
    /* firm_all(1, 2, 3, 4, 5, 6, small, 1, 2, ... 7) */
    sum += 1 + 4 + 9 + 16 + 25 + 36 + small + 2 + 6 + 12 + 20 + 30 + 42 + 56;
    sum += 2 * small + (small + 6) + 21;
    return sum;
}
