/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only home of compiler extensions: everything that ISO C17 does not have is given a
 * name here, once, for gcc >= 12 and clang >= 14.
 *
 * Use:
 *     MR_PRINTF(2, 3) void report(int code, const char *format, ...);
 *     if (MR_UNLIKELY(size > limit))
 *         return MR_ELIMIT;
 */
#ifndef MR_BASE_COMPILER_H
#define MR_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

/* Branch hints; use them on hot paths only, where a benchmark shows the difference. */
#define MR_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define MR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * In an `if` that changes `value` by a constant: it stays a branch, which processors guess,
 * where compilers would make it a sum, which they wait for. Where a benchmark shows it.
 */
#define MR_KEEP_BRANCH(value) __asm__ volatile("" : "+r"(value))

/*
 * In a loop over bytes, on its index: it stays a loop, where compilers would make a call of memcpy() or strlen() of it, which
 * use vector registers.
 */
#define MR_KEEP_LOOP(index) __asm__ volatile("" : "+r"(index))

/* On an array that a vector was stored to: what is read of it then is loaded, where compilers would take it out of the register. */
#define MR_KEEP_STORED(array) __asm__ volatile("" : "+m"(array))

/* Asks for the cache line of `address`, which will be read, or written to; any address. */
#define MR_PREFETCH_READ(address) __builtin_prefetch((address), 0)
#define MR_PREFETCH_WRITE(address) __builtin_prefetch((address), 1)

/* Whether this processor, and the system, know 256-bit integers (AVX2), and whether such with masks, and 512-bit ones (AVX-512). Cheap. */
#if defined(__x86_64__)
#define MR_HAS_WIDE_BUILD 1
#define MR_CPU_IS_WIDE() (__builtin_cpu_supports("avx2") != 0)
#define MR_CPU_IS_WIDER()                                                                \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&          \
     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#else
#define MR_HAS_WIDE_BUILD 0
#define MR_CPU_IS_WIDE() 0
#define MR_CPU_IS_WIDER() 0
#endif

#define MR_NORETURN __attribute__((noreturn))
#define MR_MUST_USE __attribute__((warn_unused_result))
/* Argument number `at` is a printf format, its values begin at number `first`. */
#define MR_PRINTF(at, first) __attribute__((format(printf, at, first)))
#define MR_EXPORT __attribute__((visibility("default")))
#define MR_HIDDEN __attribute__((visibility("hidden")))
/*
 * Never calls the -finstrument-functions hooks: for everything that a hook itself may
 * call.
 */
#define MR_NO_INSTRUMENT __attribute__((no_instrument_function))
#define MR_ALWAYS_INLINE inline __attribute__((always_inline))
#define MR_NOINLINE __attribute__((noinline))
#define MR_COLD __attribute__((cold))
#define MR_WEAK __attribute__((weak))
#define MR_FALLTHROUGH __attribute__((fallthrough))
/*
 * Before and after main(); before the first and after the last of the program's own, where
 * both are linked into one file. 101 is the first number that is not the system's.
 */
#define MR_CONSTRUCTOR __attribute__((constructor(101)))
#define MR_DESTRUCTOR __attribute__((destructor(101)))
/*
 * Thread-local storage reached without a call to the loader; for the probe's per-thread
 * state.
 */
#define MR_TLS_INITIAL_EXEC __attribute__((tls_model("initial-exec")))

/* An address in the frame of the function that this stands in. */
#define MR_FRAME_ADDRESS() ((uintptr_t)__builtin_frame_address(0))

/* Zero bits above the highest, below the lowest one of a 64-bit value, which is not 0. */
#define MR_LEADING_ZEROS64(value) __builtin_clzll(value)
#define MR_TRAILING_ZEROS64(value) __builtin_ctzll(value)
#define MR_BYTE_SWAP64(value) __builtin_bswap64(value)

/* Bytes of a cache line on every machine we support (x86-64, most aarch64 servers). */
#define MR_CACHE_LINE 64
#define MR_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define MR_PACKED __attribute__((packed))

/* For parameters that an interface fixes and an implementation does not need. */
#define MR_UNUSED(name) ((void)(name))
#define MR_ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* The struct of `type` whose field `member` `pointer` points to. */
#define MR_CONTAINER_OF(pointer, type, member)                                           \
    ((type *)(void *)((uintptr_t)(pointer)-offsetof(type, member)))

#define MR_STRINGIFY_(text) #text
#define MR_STRINGIFY(text) MR_STRINGIFY_(text)

/* For sums of products that pass 64 bits, such as scaling ticks to nanoseconds. */
__extension__ typedef unsigned __int128 mr_u128;

#if defined(__SANITIZE_THREAD__)
#define MR_SANITIZE_THREAD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MR_SANITIZE_THREAD 1
#endif
#endif
#if !defined(MR_SANITIZE_THREAD)
#define MR_SANITIZE_THREAD 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MR_SANITIZE_ADDRESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MR_SANITIZE_ADDRESS 1
#endif
#endif
#if !defined(MR_SANITIZE_ADDRESS)
#define MR_SANITIZE_ADDRESS 0
#endif

/*
 * Tell ThreadSanitizer of a hand-off that it cannot see (a ring whose ordering is in
 * assembly). `address` is any address that both sides name. Nothing in other builds.
 */
#if MR_SANITIZE_THREAD
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define MR_TSAN_ACQUIRE(address) __tsan_acquire((void *)(uintptr_t)(address))
#define MR_TSAN_RELEASE(address) __tsan_release((void *)(uintptr_t)(address))
#else
#define MR_TSAN_ACQUIRE(address) ((void)(address))
#define MR_TSAN_RELEASE(address) ((void)(address))
#endif

/*
 * The same in a library built without it that a program under ThreadSanitizer loads: there it sees what we ask of libc,
 * as memset(), but not our atomics that order it. Nothing in other programs.
 */
#if MR_SANITIZE_THREAD
#define MR_PROGRAM_TSAN_ACQUIRE(address) MR_TSAN_ACQUIRE(address)
#define MR_PROGRAM_TSAN_RELEASE(address) MR_TSAN_RELEASE(address)
#else
MR_WEAK void __tsan_acquire(void *address);
MR_WEAK void __tsan_release(void *address);
#define MR_PROGRAM_TSAN_ACQUIRE(address)                                                 \
    (__tsan_acquire ? __tsan_acquire((void *)(uintptr_t)(address)) : (void)0)
#define MR_PROGRAM_TSAN_RELEASE(address)                                                 \
    (__tsan_release ? __tsan_release((void *)(uintptr_t)(address)) : (void)0)
#endif

/*
 * The processor's own counter, read without a fence: about 10 ns on x86-64.
 * MR_COMPILER_TICKS() exists when MR_COMPILER_HAS_TICKS is 1; use mr_clock_ticks()
 * (base/clock.h), which always exists.
 */
#if defined(__x86_64__)
#define MR_COMPILER_HAS_TICKS 1
#define MR_COMPILER_TICKS() ((uint64_t)__builtin_ia32_rdtsc())
#elif defined(__aarch64__)
#define MR_COMPILER_HAS_TICKS 1
static MR_ALWAYS_INLINE MR_NO_INSTRUMENT uint64_t mr_compiler_ticks(void)
{
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#define MR_COMPILER_TICKS() mr_compiler_ticks()

static inline MR_NO_INSTRUMENT uint64_t mr_compiler_ticks_hz(void)
{
    uint64_t hz;

    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz & UINT32_MAX; /* the register's upper half is reserved */
}
#define MR_COMPILER_TICKS_HZ() mr_compiler_ticks_hz()
#else
#define MR_COMPILER_HAS_TICKS 0
#endif

/* Its rate where the processor tells it, else 0. */
#if !defined(MR_COMPILER_TICKS_HZ)
#define MR_COMPILER_TICKS_HZ() UINT64_C(0)
#endif

#endif
