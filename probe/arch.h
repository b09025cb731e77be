/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between processors on the path of an event; the only file of the probe
 * that does. Everything here is async-signal-safe and touches no floating-point state.
 */
#ifndef MR_PROBE_ARCH_H
#define MR_PROBE_ARCH_H

#include "base/clock.h"
#include "base/compiler.h"

#include <stdint.h>

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

/* Reads what a handler of the same thread may have changed since it was last read. */
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_arch_reload(const uint64_t *value)
{
    return *(const volatile uint64_t *)value;
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

#endif
