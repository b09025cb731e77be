/* SPDX-License-Identifier: Apache-2.0 */
/* For C++: an inline function of two units, and what the library gives. */
#ifndef MR_TESTS_SYSTEM_PATCHABLE_MATRIX_H
#define MR_TESTS_SYSTEM_PATCHABLE_MATRIX_H

#if defined(__cplusplus)
template <typename T> __attribute__((noinline)) T twice(T value)
{
    __asm__ volatile("" : "+r"(value));
    return value + value;
}

__attribute__((noinline)) int other_unit(int value);
extern "C" int lib_work(int value);
#endif

#endif
