/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program under `millrace record`: run with its own stdin, stdout, stderr and terminal. Ctrl-C and
 * Ctrl-\ go to it, as to any program of the terminal's foreground; what of signals reaches us, and is
 * passed on, is cli/signals.h, which are taken before. One thread, one program at a time.
 *
 *     struct mr_target target = {.path = "/bin/x", .argv = argv, .endpoint = "tcp://127.0.0.1:7410"};
 *     status = mr_target_run(&target, &error);
 */
#ifndef MR_CLI_TARGET_H
#define MR_CLI_TARGET_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mr_target {
    char path[PATH_MAX];
    char **argv;
    const char *endpoint; /* NULL: run it untraced; "": nothing is sent */
    const char *policy, *clock, *counters;
    uint64_t depth; /* MILLRACE_DEPTH; 0: no limit */
    uint64_t block_timeout_ns;
    uint64_t prune_ns; /* 0: off */
    bool preload;      /* it has the hooks, but not the library */
    /* Results. */
    uint64_t started_ns; /* Unix time */
    uint64_t wall_ns;
    int exit_status; /* 128 + signal where one ended it */
    bool was_killed; /* by a signal */
    pid_t pid;
};

/* MR_EIO when it could not be started; MR_END: a signal came before. */
enum mr_status mr_target_run(struct mr_target *target, struct mr_error *error);

#endif
