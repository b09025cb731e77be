/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include "base/clock.h"

#include <sched.h>
#include <time.h>

uint64_t mr_process_cpu_ns(void)
{
    struct timespec time = {0, 0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * MR_SECOND_NS + (uint64_t)time.tv_nsec;
}

uint32_t mr_process_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

    return count > 0 ? (uint32_t)count : 1;
}
