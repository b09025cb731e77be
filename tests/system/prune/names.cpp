/* SPDX-License-Identifier: Apache-2.0 */
/* Calls C++ functions that do next to nothing, until its input ends; answers each line. */
#include <cstdio>

namespace
{
__attribute__((noinline)) int quick(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}
} // namespace

namespace shop
{
struct item {
    int sum;
    __attribute__((noinline)) void add(int x)
    {
        sum += x;
        __asm__ volatile("" ::: "memory");
    }
};
} // namespace shop

int main()
{
    shop::item item = {0};
    char line[64];

    while (std::fgets(line, sizeof(line), stdin)) {
        for (int i = 0; i < 20000; i++)
            item.add(quick(i));
        (void)std::puts("done");
        (void)std::fflush(stdout);
    }
    return 0;
}
