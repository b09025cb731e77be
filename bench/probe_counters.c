/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/probe_counters.h"

#include "probe/counters_names.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The next name of a list with commas, its end kept in *names; false: there is none. */
static bool next_name(const char **names, char out[128])
{
    size_t size;

    *names += strspn(*names, ",");
    size = strcspn(*names, ",");
    (void)snprintf(out, 128, "%.*s", (int)(size < 127 ? size : 127), *names);
    *names += size;
    return size > 0;
}

enum mr_status mr_probe_counters_check(const char *option, const char *names,
                                       struct mr_error *error)
{
    struct mr_counter_event event;
    char name[128];

    while (next_name(&names, name)) {
        struct mr_error said = MR_ERROR_NONE;

        if (mr_counter_resolve(name, &event, &said) != MR_OK)
            return mr_error_set(error, MR_EUSAGE, "%s: %.60s: %.150s", option, name,
                                said.text);
    }
    return MR_OK;
}

/* Why the kernel does not count it for this process; 0: it does. */
static int refusal(const struct mr_counter_event *event, bool is_user_only)
{
    struct perf_event_attr attributes = {.size = sizeof(attributes),
                                         .type = event->type,
                                         .config = event->config,
                                         .config1 = event->config1,
                                         .config2 = event->config2,
                                         .exclude_hv = 1,
                                         .exclude_kernel = is_user_only};
    long fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd < 0)
        return errno;
    (void)close((int)fd);
    return 0;
}

void mr_probe_counters_leave_out(const char *names, struct mr_bench_report *report)
{
    struct mr_counter_event event;
    char name[128];

    while (next_name(&names, name)) {
        int failure;

        if (mr_counter_resolve(name, &event, NULL) != MR_OK)
            continue;
        failure = refusal(&event, event.is_user_only);
        /* As a probe does: who may not see into the kernel counts in user mode. */
        if (failure == EACCES && !event.is_user_only && !event.is_kernel_only)
            failure = refusal(&event, true);
        if (failure)
            mr_bench_report_skip(
                report, "counter %s: %s%s", name, strerrordesc_np(failure),
                failure == ENOENT ? " (this machine does not count it)" : "");
    }
}
