/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programmer errors stop the program where they are seen, with place and condition on
 * stderr. Never for input from outside (that gets a status), and never in the probe,
 * which counts and drops.
 *
 * MR_ASSERT stays on in release builds; MR_DEBUG_ASSERT, for hot paths, is compiled out
 * with NDEBUG, and its condition is then not evaluated.
 *
 * Use:
 *     MR_ASSERT(index < count);
 */
#ifndef MR_BASE_ASSERT_H
#define MR_BASE_ASSERT_H

#include "base/compiler.h"

#define MR_ASSERT(condition)                                                             \
    (MR_LIKELY(condition) ? (void)0                                                      \
                          : mr_assert_fail(#condition, __FILE__, __LINE__, __func__))

#if defined(NDEBUG)
#define MR_DEBUG_ASSERT(condition) ((void)sizeof(!!(condition)))
#else
#define MR_DEBUG_ASSERT(condition) MR_ASSERT(condition)
#endif

/* Writes one line to stderr and aborts. For the macros. */
MR_NORETURN MR_COLD void mr_assert_fail(const char *condition, const char *file, int line,
                                        const char *function);

#endif
