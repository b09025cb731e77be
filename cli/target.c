/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target.h"

#include "base/clock.h"
#include "cli/child.h"
#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libmillrace.so"

/* Beside this executable: DIR/bin/millrace and DIR/lib/libmillrace.so; else where the loader looks. */
static void find_library(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    path[length > 0 ? length : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash) {
        size_t room = size - (size_t)(slash - path);

        if (snprintf(slash, room, "/../lib/%s", LIBRARY) < (int)room &&
            access(path, R_OK) == 0)
            return;
    }
    (void)snprintf(path, size, "%s", LIBRARY);
}

static void set_preload(void)
{
    const char *others = getenv("LD_PRELOAD");
    char library[PATH_MAX];
    char value[2 * PATH_MAX];

    find_library(library, sizeof(library));
    if (others && *others &&
        snprintf(value, sizeof(value), "%s:%s", library, others) < (int)sizeof(value))
        (void)setenv("LD_PRELOAD", value, 1);
    else
        (void)setenv("LD_PRELOAD", library, 1);
}

static void set_environment(const struct mr_target *target)
{
    char timeout[32], prune[32], depth[32];

    if (!target->endpoint) {
        (void)setenv("MILLRACE_DISABLED", "1", 1);
        return;
    }
    (void)unsetenv("MILLRACE_DISABLED");
    (void)snprintf(timeout, sizeof(timeout), "%" PRIu64 "ns", target->block_timeout_ns);
    (void)setenv("MILLRACE_ENDPOINT", target->endpoint, 1);
    (void)setenv("MILLRACE_POLICY", target->policy, 1);
    (void)setenv("MILLRACE_BLOCK_TIMEOUT", timeout, 1);
    (void)setenv("MILLRACE_CLOCK", target->clock, 1);
    (void)snprintf(prune, sizeof(prune), "%" PRIu64 "ns", target->prune_ns);
    (void)setenv("MILLRACE_PRUNE", prune, 1);
    (void)snprintf(depth, sizeof(depth), "%" PRIu64, target->depth);
    (void)setenv("MILLRACE_DEPTH", depth, 1);
    if (target->counters && target->counters[0])
        (void)setenv("MILLRACE_COUNTERS", target->counters, 1);
}

/* In the child. `report` is a pipe that exec closes: what it carries is the errno of a failure. */
MR_NORETURN static void become_target(const struct mr_target *target, int report)
{
    int failure;
    ssize_t ignored;

    set_environment(target);
    if (target->preload)
        set_preload();
    (void)execv(target->path, target->argv);
    failure = errno;
    ignored = write(report, &failure, sizeof(failure));
    MR_UNUSED(ignored);
    _exit(126);
}

/* Its status of waitpid(). */
static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* What execv() means by it. */
static const char *hint(int failure)
{
    if (failure == ENOEXEC)
        return " (no program of this machine, and no script that begins with #!)";
    return failure == ENOENT ? " (the interpreter that it names is not there)" : "";
}

static enum mr_status start(struct mr_target *target, struct mr_error *error)
{
    int report[2];
    int failure = 0;
    ssize_t size;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) != 0)
        return mr_error_set_errno(error, MR_EIO, errno, "cannot start %s", target->path);
    pid = fork();
    if (pid == 0) {
        mr_signals_give_back();
        become_target(target, report[1]);
    }
    mr_signals_pass_to(pid);
    (void)close(report[1]);
    do
        size = pid > 0 ? read(report[0], &failure, sizeof(failure)) : 0;
    while (size < 0 && errno == EINTR);
    (void)close(report[0]);
    target->pid = pid;
    if (pid > 0 && size == 0)
        return MR_OK;
    if (pid < 0)
        failure = errno;
    else
        (void)wait_for(pid);
    return mr_error_set_errno(error, MR_EIO, failure, "cannot start %s%s", target->path,
                              hint(failure));
}

/* Ctrl-C reaches the program or us, but not nobody. */
static enum mr_status start_or_stop(struct mr_target *target, struct mr_error *error)
{
    enum mr_status status;

    mr_signals_hold();
    if (mr_signals_taken())
        status = mr_error_set(error, MR_END, "interrupted: the program was not started");
    else
        status = start(target, error);
    mr_signals_release();
    return status;
}

enum mr_status mr_target_run(struct mr_target *target, struct mr_error *error)
{
    uint64_t start_ns;
    enum mr_status status;

    (void)fflush(NULL);
    target->started_ns = mr_clock_realtime_ns();
    start_ns = mr_clock_monotonic_ns();
    status = start_or_stop(target, error);
    if (status == MR_OK) {
        int ended = wait_for(target->pid);

        target->exit_status = mr_child_exit_status(ended);
        target->was_killed = WIFSIGNALED(ended);
        target->wall_ns = mr_clock_monotonic_ns() - start_ns;
    }
    mr_signals_pass_to(0);
    return status;
}
