/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that is traced, and counts its own calls:
 *
 *     TRACED int f3(int depth)
 *     {
 *         ENTER;
 *         return depth;
 *     }
 *
 * Before it is included: SPANS, if functions are traced by spans; EXITS_ON_UNWINDING, if what unwinds the stack gives exits;
 * EXITS_BEFORE_JUMP, if a function that ends with a call as a jump has its exit before.
 */
#ifndef MR_TESTS_SYSTEM_TRACED_H
#define MR_TESTS_SYSTEM_TRACED_H

#include "truth.h"

#include "probe/include/millrace/probe.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
#include <exception>
#endif

#if defined(__clang__)
#define TRACED __attribute__((noinline))
#define NEVER __attribute__((noinline)) MR_NEVER_TRACE
#else
#define TRACED __attribute__((noinline, noipa))
#define NEVER __attribute__((noinline, noipa)) MR_NEVER_TRACE
#endif
#define ALWAYS_INLINE static inline __attribute__((always_inline)) MR_NEVER_TRACE
#define KEEP __asm__ volatile("" ::: "memory")

#define MUST(condition_)                                                                 \
    do {                                                                                 \
        if (!(condition_)) {                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition_);             \
            abort();                                                                     \
        }                                                                                \
    } while (0)

/* --- a traced function ---------------------------------------------------------------- */

static __thread bool is_ending; /* pthread_exit() unwinds the stack */

/* What a call is that unwinding leaves: ok, if that gives an exit. If not, it is known to have been left once the program
 * goes on in a call below it; so not the outermost. */
ALWAYS_INLINE void leave_unwound(bool has_ended)
{
#ifdef EXITS_ON_UNWINDING
    (void)has_ended;
    truth_leave(TRUTH_OK);
#else
    if (!has_ended || truth_depth() > 1)
        truth_leave(TRUTH_FAILED);
#endif
}

#ifdef __cplusplus
struct guard {
    int thrown;
    bool was_ending;

    MR_NEVER_TRACE __attribute__((always_inline)) inline guard()
        : thrown(std::uncaught_exceptions()), was_ending(is_ending)
    {
    }
    MR_NEVER_TRACE __attribute__((always_inline)) inline ~guard()
    {
        if (is_ending != was_ending || std::uncaught_exceptions() > thrown)
            leave_unwound(is_ending);
        else
            truth_leave(TRUTH_OK);
    }
};
#define GUARD guard guard_
#else
ALWAYS_INLINE void guard_end(const bool *was_ending)
{
    if (is_ending != *was_ending)
        leave_unwound(true);
    else
        truth_leave(TRUTH_OK);
}
#define GUARD __attribute__((cleanup(guard_end))) const bool guard_ = is_ending
#endif

#ifdef SPANS
#define ENTER                                                                            \
    MR_SPAN(__func__);                                                                   \
    truth_enter(__func__);                                                               \
    GUARD
#define ENTER_OUTER
#else
#define ENTER                                                                            \
    truth_enter(__func__);                                                               \
    GUARD
#define ENTER_OUTER                                                                      \
    truth_enter_outer(__func__);                                                         \
    GUARD
#endif

/* Of a function whose last call is a jump at patchable sites: its exit comes first. */
#ifdef EXITS_BEFORE_JUMP
#define ENTER_TAIL                                                                       \
    truth_enter(__func__);                                                               \
    truth_leave(TRUTH_OK)
#else
#define ENTER_TAIL ENTER
#endif

#define TIMES(count_)                                                                    \
    for (unsigned index_ = 0, times_ = (count_); index_ < times_; index_++)

#endif
