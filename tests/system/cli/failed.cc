/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that fail, by each way there is; docs/INSTRUMENTING.md, "What has failed", says what is shown of them. */
#include <csetjmp>

#include <millrace/probe.h>

static volatile int sink;
static jmp_buf place;

MR_ALWAYS_TRACE static void says_so(int i)
{
    if (i % 2)
        mr_status_failed();
    sink = i;
}

MR_ALWAYS_TRACE static void calls_one_that_says_so(int i)
{
    says_so(i);
    sink = i;
}

MR_ALWAYS_TRACE static void takes_it_back(int i)
{
    mr_status_failed();
    mr_status_ok();
    sink = i;
}

MR_ALWAYS_TRACE static void throws(int i)
{
    if (i % 2)
        throw i;
    sink = i;
}

MR_ALWAYS_TRACE static void catches(int i)
{
    try {
        throws(i);
    } catch (int) {
        sink = i;
    }
}

MR_ALWAYS_TRACE static void jumps(int i)
{
    if (i % 2)
        longjmp(place, 1);
    sink = i;
}

MR_ALWAYS_TRACE static void is_jumped_to(int i)
{
    if (setjmp(place) == 0)
        jumps(i);
    sink = i;
}

int main()
{
    for (int i = 0; i < 10; i++) {
        calls_one_that_says_so(i);
        takes_it_back(i);
        catches(i);
        is_jumped_to(i);
    }
}
