/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this folder share. Each is built for every door: TRACED functions are recorded (by hooks and
 * patchable sites as all functions are, by spans where HERE stands), PLAIN ones by none.
 *
 *     #include <millrace/probe.h>
 *
 *     TRACED static void leaf(void)
 *     {
 *         HERE;
 *     }
 */
#ifndef MR_TESTS_SYSTEM_SAFETY_H
#define MR_TESTS_SYSTEM_SAFETY_H

#if defined(__clang__)
#define TRACED __attribute__((noinline))
#define PLAIN __attribute__((noinline, no_instrument_function, xray_never_instrument))
#else
#define TRACED __attribute__((noinline, noipa))
#define PLAIN __attribute__((noinline, noipa, no_instrument_function))
#endif

/* Keeps the compiler from making the last call of a function a jump (at patchable sites its exit then comes first: what
 * it calls stands beside it), and from leaving a function out. */
#define KEEP __asm__ volatile("" ::: "memory")

#ifdef SPANS
#define HERE                                                                             \
    MR_SPAN(__func__);                                                                   \
    KEEP
#else
#define HERE KEEP
#endif

#define TIMES(count_) for (int index_ = 0; index_ < (count_); index_++)

#define MUST(condition_)                                                                 \
    do {                                                                                 \
        if (!(condition_)) {                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition_);             \
            abort();                                                                     \
        }                                                                                \
    } while (0)

#endif
