/* SPDX-License-Identifier: Apache-2.0 */
/* Two builds of one program: with SECOND a function more, and another step. */
#ifdef SECOND
#define STEP 2
#else
#define STEP 1
#endif
static volatile int sum;

static __attribute__((noinline)) void step(void)
{
    sum += STEP;
}
#ifdef SECOND
static __attribute__((noinline)) void only_second(void)
{
    sum++;
}
#endif

static __attribute__((noinline)) void work(void)
{
    step();
    step();
}

int main(void)
{
    for (int i = 0; i < 2000; i++)
        work();
#ifdef SECOND
    only_second();
#endif
    return 0;
}
