/* SPDX-License-Identifier: Apache-2.0 */
/* Built twice, as a.so and b.so: functions NAME_work() and NAME_leaf(), which lie at the same offsets. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define WORK JOIN(NAME, _work)
#define LEAF JOIN(NAME, _leaf)

void WORK(int count);
void LEAF(void);

__attribute__((noipa)) void LEAF(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noipa)) void WORK(int count)
{
    for (int i = 0; i < count; i++)
        LEAF();
    __asm__ volatile("" ::: "memory");
}
