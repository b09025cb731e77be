/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include "base/clock.h"
#include "base/log.h"

#include <inttypes.h>
#include <sched.h>
#include <sys/resource.h>
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

uint64_t mr_process_files_max(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void mr_process_take_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* else it stays as it is */
}

void mr_process_tell_files(uint64_t connections, uint64_t others)
{
    uint64_t files = mr_process_files_max();

    mr_log_info("%" PRIu64 " files and connections may be open", files);
    if (files < connections + others)
        mr_log_warn("--max-connections %" PRIu64 " wants %" PRIu64
                    " open files, and there may be %" PRIu64
                    ": raise the hard limit (ulimit -Hn, LimitNOFILE= of a unit)",
                    connections, connections + others, files);
}
