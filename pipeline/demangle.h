/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ names for people, by the demangler of the C++ runtime (Itanium C++ ABI, section
 * 5.1).
 *
 *     char text[MR_TEXT_MAX];
 *     if (mr_demangle("_ZN3fooC1Ev", text, sizeof(text)))
 *         puts(text);                                      // foo::foo()
 *
 * Any thread; allocates in between. Names longer than MR_DEMANGLE_NAME_MAX are left
 * alone: what they print to can grow exponentially with their length.
 */
#ifndef MR_PIPELINE_DEMANGLE_H
#define MR_PIPELINE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define MR_DEMANGLE_NAME_MAX 2048
#define MR_DEMANGLE_CUT "..." /* how a result ends that does not fit */

/* False, with `text` untouched, if `name` is not a mangled one. `size` is at least 8. */
bool mr_demangle(const char *name, char *text, size_t size);

#endif
