/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between processors on the path of an event; the only file of the probe
 * that does. Everything here is async-signal-safe and touches no floating-point state.
 */
#ifndef MR_PROBE_ARCH_H
#define MR_PROBE_ARCH_H

#include "base/clock.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/*
 * For code that runs on a thread before ThreadSanitizer knows the thread: where its
 * runtime starts threads through our pthread_create().
 */
#if MR_SANITIZE_THREAD
#define MR_ARCH_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define MR_ARCH_NO_TSAN
#endif

/*
 * Takes the next number: one instruction, so that a signal handler of the same thread
 * gets either this number or the next one, never the same. `cursor` belongs to the
 * calling thread, so no bus lock is needed. A plain `cursor++` compiles to load and
 * store on some compilers, with room for a handler in between.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_reserve(uint64_t *cursor)
{
#if defined(__x86_64__)
    uint64_t index = 1;

    __asm__ volatile("xaddq %0, %1" : "+r"(index), "+m"(*cursor) : : "cc");
    return index;
#else
    return __atomic_fetch_add(cursor, 1, __ATOMIC_RELAXED);
#endif
}

/*
 * Gives the number back that was taken last: one instruction again. False: a handler has
 * taken later ones.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT bool mr_arch_give_back(uint64_t *cursor,
                                                                uint64_t index)
{
    uint64_t after = index + 1;
#if defined(__x86_64__)
    bool is_back;

    __asm__ volatile("cmpxchgq %3, %1"
                     : "=@ccz"(is_back), "+m"(*cursor), "+a"(after)
                     : "r"(index)
                     : "cc");
    return is_back;
#else
    return __atomic_compare_exchange_n(cursor, &after, index, 0, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
#endif
}

/* Reads what a handler of the same thread may have changed since it was last read. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_reload(const uint64_t *value)
{
    return *(const volatile uint64_t *)value;
}

/*
 * Comparisons with such a value, in one instruction with the read of it: compilers do not
 * join the two where the value is volatile. On processors that hide nothing behind a read
 * of the counter each instruction of an event counts.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT bool mr_arch_has_reached(uint64_t index,
                                                                  const uint64_t *limit)
{
#if defined(__x86_64__)
    bool has;

    __asm__ volatile("cmpq %2, %1" : "=@ccae"(has) : "r"(index), "m"(*limit) : "cc");
    return has;
#else
    return index >= mr_arch_reload(limit);
#endif
}

static MR_ALWAYS_INLINE MR_NO_INSTRUMENT bool mr_arch_differs(uint64_t value,
                                                              const uint64_t *other)
{
#if defined(__x86_64__)
    bool differs;

    __asm__ volatile("cmpq %2, %1" : "=@ccne"(differs) : "r"(value), "m"(*other) : "cc");
    return differs;
#else
    return value != mr_arch_reload(other);
#endif
}

/* Of the low halves. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT bool mr_arch_differs_low(uint64_t value,
                                                                  const uint64_t *other)
{
#if defined(__x86_64__)
    bool differs;

    __asm__ volatile("cmpl %k2, %k1"
                     : "=@ccne"(differs)
                     : "r"(value), "m"(*other)
                     : "cc");
    return differs;
#else
    return (uint32_t)value != (uint32_t)mr_arch_reload(other);
#endif
}

/* Writes what a handler of the same thread may read, or write, at any moment. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_arch_set(uint64_t *value, uint64_t next)
{
    *(volatile uint64_t *)value = next;
}

/*
 * Asks for the cache line of `address`, to write to it; a hint, wherever it points. The
 * compiler's own makes one for reading of it, unless it is told of a newer processor; where
 * there is none, this is a nop.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_arch_prefetch_write(uintptr_t address)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(address));
#else
    __builtin_prefetch((const void *)address, 1, 3);
#endif
}

/* Whether mr_arch_flush() does anything. CPUID may cost a microsecond in a virtual machine. */
static inline bool mr_arch_can_flush(void)
{
#if defined(__x86_64__)
    unsigned a, b = 0, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_CLFLUSHOPT);
#else
    return false; /* aarch64's `dc civac` may be the kernel's alone */
#endif
}

#define MR_ARCH_FAMILY_ZEN5 26u

/* As AMD counts; 0: another maker's. */
static inline unsigned mr_arch_amd_family(void)
{
#if defined(__x86_64__)
    unsigned a, b = 0, c = 0, d = 0, family;

    if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx ||
        c != signature_AMD_ecx || d != signature_AMD_edx ||
        !__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    family = a >> 8 & 0xf;
    return family == 0xf ? family + (a >> 20 & 0xff) : family;
#else
    return 0;
#endif
}

/*
 * Whether it pays for lines that their owner writes again. From Zen 5 on a line that
 * another processor has read comes as soon as it is asked for ahead, and flushing makes
 * it slower in every second run (docs/why/2026-11-20-hybrid-clock.md).
 */
static inline bool mr_arch_should_flush(void)
{
    return mr_arch_can_flush() && mr_arch_amd_family() < MR_ARCH_FAMILY_ZEN5;
}

/*
 * Takes the cache line of `word` out of all caches, of this processor and of others; what
 * it holds is in memory then. Only where mr_arch_can_flush().
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_arch_flush(const _Atomic uint64_t *word)
{
#if defined(__x86_64__)
    __asm__ volatile("clflushopt %0" : : "m"(*word) : "memory");
#else
    (void)word;
#endif
}

/* What another thread reserves from. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_count(const uint64_t *cursor)
{
    return __atomic_load_n(cursor, __ATOMIC_RELAXED);
}

/* The same for `count` numbers in a row; the first of them. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_reserve_run(uint64_t *cursor,
                                                                      uint64_t count)
{
#if defined(__x86_64__)
    __asm__ volatile("xaddq %0, %1" : "+r"(count), "+m"(*cursor) : : "cc");
    return count;
#else
    return __atomic_fetch_add(cursor, count, __ATOMIC_RELAXED);
#endif
}

/* A performance counter of the processor, where the kernel lets programs read them. */
#if defined(__x86_64__)
#define MR_ARCH_HAS_PMC 1
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_pmc(uint32_t index)
{
    uint32_t low, high;

    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
}
#else
#define MR_ARCH_HAS_PMC 0
#endif

/*
 * Members of the public header's structs, which C++ reads too and so are not _Atomic.
 * Release and acquire pair with each other.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint32_t mr_arch_load_u32(uint32_t *value)
{
    return __atomic_load_n(value, __ATOMIC_ACQUIRE);
}

/* Sets what is still 0; what is there in the end. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint32_t mr_arch_set_u32(uint32_t *value,
                                                                  uint32_t first)
{
    uint32_t seen = 0;

    return __atomic_compare_exchange_n(value, &seen, first, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE)
               ? first
               : seen;
}

static MR_ALWAYS_INLINE MR_NO_INSTRUMENT void mr_arch_store_u8(unsigned char *value,
                                                               unsigned char next)
{
    __atomic_store_n(value, next, __ATOMIC_RELEASE);
}

/*
 * The registers that a called function gives back, the stack pointer, and an address at
 * which they are so, by their DWARF numbers (probe/unwind_row.h). A bit for each known one.
 */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_registers(uint64_t *values,
                                                                    uint64_t *address)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %%rbx, 24(%1)\n\t"
                     "movq %%rbp, 48(%1)\n\t"
                     "movq %%rsp, 56(%1)\n\t"
                     "movq %%r12, 96(%1)\n\t"
                     "movq %%r13, 104(%1)\n\t"
                     "movq %%r14, 112(%1)\n\t"
                     "movq %%r15, 120(%1)\n\t"
                     "leaq 0(%%rip), %0"
                     : "=r"(*address)
                     : "r"(values)
                     : "memory");
    return UINT64_C(0xf0c8); /* rbx, rbp, rsp, r12 to r15 */
#elif defined(__aarch64__)
    uint64_t here;

    __asm__ volatile("stp x19, x20, [%1, #152]\n\t"
                     "stp x21, x22, [%1, #168]\n\t"
                     "stp x23, x24, [%1, #184]\n\t"
                     "stp x25, x26, [%1, #200]\n\t"
                     "stp x27, x28, [%1, #216]\n\t"
                     "stp x29, x30, [%1, #232]\n\t"
                     "mov %0, sp\n\t"
                     "str %0, [%1, #248]\n\t"
                     "adr %0, ."
                     : "=&r"(here)
                     : "r"(values)
                     : "memory");
    *address = here;
    return UINT64_C(0xfff80000); /* x19 to x30, sp */
#else
    (void)values;
    *address = 0;
    return 0;
#endif
}

/* glibc's pointer guard, in the thread's control block; elsewhere 0, and nothing is known. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define MR_ARCH_HAS_POINTER_GUARD 1
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_pointer_guard(void)
{
    uint64_t guard;

    __asm__("movq %%fs:0x30, %0" : "=r"(guard));
    return guard;
}
#else
#define MR_ARCH_HAS_POINTER_GUARD 0
#endif

#endif
