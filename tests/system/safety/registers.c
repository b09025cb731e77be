/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a traced call leaves as it was: vector registers to their full width, their masks, the stack of the x87, control
 * words with unusual rounding, errno; arguments and results of every kind.
 *
 *     registers N     N calls of each kind; a small ring makes many of them slow
 */
#include "safety.h"

#include <millrace/probe.h>

#include <complex.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is called with all registers filled: it has nothing to do but to be recorded. */
TRACED static void nothing(void)
{
    HERE;
}

#if defined(__x86_64__)
struct state {
    uint8_t vectors[32][64];
    uint64_t masks[8];
    uint8_t x87[8][16];
    uint32_t mxcsr;
    uint16_t control;
};
#define OFFSETS ".set MASKS, 2048\n.set X87, 2112\n.set MXCSR, 2240\n.set CONTROL, 2244\n"

/*
 * call_NAME(function, in, out): LOAD what is in `in`, call, STORE into `out`; control words and the stack of the x87 are
 * then as the ABI has them.
 */
#define CALL_WITH(name_, load_, store_)                                                  \
    void call_##name_(void (*function)(void), const struct state *in,                    \
                      struct state *out);                                                \
    __asm__(OFFSETS ".text\n.globl call_" #name_ "\n.type call_" #name_                  \
                    ", @function\ncall_" #name_ ":\n"                                    \
                    "push %rbx\npush %r12\npush %r13\n"                                  \
                    "mov %rdi, %rbx\nmov %rsi, %r12\nmov %rdx, %r13\n"                   \
                    "ldmxcsr MXCSR(%r12)\nfninit\nfldcw CONTROL(%r12)\n"                 \
                    ".irp i, 0,1,2,3,4,5,6,7\nfldt X87+16*\\i(%r12)\n.endr\n" load_      \
                    "call *%rbx\n" store_                                                \
                    ".irp i, 7,6,5,4,3,2,1,0\nfstpt X87+16*\\i(%r13)\n.endr\n"           \
                    "stmxcsr MXCSR(%r13)\nfnstcw CONTROL(%r13)\nfninit\n"                \
                    "push $0x1f80\nldmxcsr (%rsp)\npop %rax\ncld\n"                      \
                    "pop %r13\npop %r12\npop %rbx\nret\n.size call_" #name_              \
                    ", .-call_" #name_ "\n")

#define EACH16 ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
#define EACH32                                                                           \
    ".irp i, "                                                                           \
    "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,"   \
    "30,31\n"
CALL_WITH(sse, EACH16 "movdqu 64*\\i(%r12), %xmm\\i\n.endr\n",
          EACH16 "movdqu %xmm\\i, 64*\\i(%r13)\n.endr\n");
CALL_WITH(avx, EACH16 "vmovdqu 64*\\i(%r12), %ymm\\i\n.endr\n",
          EACH16 "vmovdqu %ymm\\i, 64*\\i(%r13)\n.endr\nvzeroupper\n");
CALL_WITH(avx512,
          EACH32 "vmovdqu64 64*\\i(%r12), %zmm\\i\n.endr\n"
                 ".irp i, 0,1,2,3,4,5,6,7\nkmovw MASKS+8*\\i(%r12), %k\\i\n.endr\n",
          EACH32 "vmovdqu64 %zmm\\i, 64*\\i(%r13)\n.endr\n"
                 ".irp i, 0,1,2,3,4,5,6,7\nkmovw %k\\i, MASKS+8*\\i(%r13)\n.endr\n"
                 "vzeroupper\n");

PLAIN static void fill(struct state *state, size_t vectors, size_t width, size_t masks)
{
    memset(state, 0, sizeof(*state));
    for (size_t i = 0; i < vectors; i++)
        for (size_t j = 0; j < width; j++)
            state->vectors[i][j] = (uint8_t)(17 * i + 3 * j + 1);
    for (size_t i = 0; i < masks; i++)
        state->masks[i] = 0x5a00u + i;
    for (size_t i = 0; i < 8; i++) {
        long double value = 1.25L * (long double)(i + 1);

        memcpy(state->x87[i], &value, 10);
    }
    state->mxcsr = 0xff80;  /* towards zero, denormals to zero */
    state->control = 0x87f; /* 24 bits, upwards: not what a C program has */
}

PLAIN static void check_state(const char *what,
                              void (*call)(void (*)(void), const struct state *,
                                           struct state *),
                              size_t vectors, size_t width, size_t masks)
{
    static struct state in, out;

    fill(&in, vectors, width, masks);
    memset(&out, 0, sizeof(out));
    errno = 4711;
    call(nothing, &in, &out);
    MUST(errno == 4711);
    for (size_t i = 0; i < sizeof(in); i++)
        if (((uint8_t *)&in)[i] != ((uint8_t *)&out)[i]) {
            fprintf(stderr, "%s: byte %zu of the registers has changed\n", what, i);
            abort();
        }
}

/* Three calls, whatever registers this processor has. Of the first, which does more than others, all are looked at. */
PLAIN static void check_registers(void)
{
    bool has_avx = __builtin_cpu_supports("avx"),
         has_avx512 = __builtin_cpu_supports("avx512f");

    if (has_avx512)
        check_state("avx512", call_avx512, 32, 64, 8);
    if (has_avx)
        check_state("avx", call_avx, 16, 32, 0);
    check_state("sse", call_sse, 16, 16, 0);
    if (!has_avx)
        nothing();
    if (!has_avx512)
        nothing();
}
#else
PLAIN static void check_registers(void)
{
    errno = 4711;
    nothing();
    nothing();
    nothing();
    MUST(errno == 4711);
}
#endif

struct pair {
    long whole;
    double part;
};

TRACED static struct pair mixed(long a, double b, long c, double d, long e, double f,
                                long g, double h, long i, double j, long k, double l,
                                float m, float n, long o, double p)
{
    HERE;
    return (struct pair){a + 2 * c + 3 * e + 5 * g + 7 * i + 11 * k + 13 * o,
                         b + 2 * d + 3 * f + 5 * h + 7 * j + 11 * l + 13 * (double)m +
                             17 * (double)n + 19 * p};
}

TRACED static double variable(int count, ...)
{
    va_list values;
    double sum = 0;

    HERE;
    va_start(values, count);
    TIMES(count)
    sum += va_arg(values, double);
    va_end(values);
    return sum;
}

TRACED static long double on_x87(long double value)
{
    HERE;
    return value + 1.0L;
}

TRACED static complex long double on_x87_twice(long double value)
{
    HERE;
    return value + 2.0L * I;
}

TRACED static __int128 wide(__int128 value)
{
    HERE;
    return value + 1;
}

PLAIN static void check_values(void)
{
    struct pair pair = mixed(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    complex long double both;

    MUST(pair.whole == 1 + 6 + 15 + 35 + 63 + 121 + 195);
    MUST(pair.part == 2 + 8 + 18 + 40 + 70 + 132 + 169 + 238 + 304);
    MUST(variable(9, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0) == 45.0);
    MUST(on_x87(3.5L) == 4.5L);
    both = on_x87_twice(1.5L);
    MUST(creall(both) == 1.5L && cimagl(both) == 2.0L);
    MUST(wide((__int128)1 << 80) == ((__int128)1 << 80) + 1);
}

TRACED static void all(void)
{
    HERE;
    check_registers();
    check_values();
    KEEP;
}

int main(int argc, char **argv)
{
    HERE;
    TIMES(argc > 1 ? atoi(argv[1]) : 1)
    all();
    return 0;
}
