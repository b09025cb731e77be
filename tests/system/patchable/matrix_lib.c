/* SPDX-License-Identifier: Apache-2.0 */
__attribute__((noinline)) static int inner(int value)
{
    __asm__ volatile("" : "+r"(value));
    return value + 2;
}

__attribute__((visibility("default"))) int lib_work(int value);
int lib_work(int value)
{
    return inner(value) + inner(value);
}
