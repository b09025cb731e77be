/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes of `millrace record`: the program under test, and the private servers. One thread.
 *
 *     char *const argv[] = {"millrace", "worker", "--ready-file", path, NULL};
 *     status = mr_child_start_server(argv, &child, &error);       // own process group: no Ctrl-C
 *     status = mr_child_wait_ready(&child, path, listen, sizeof(listen), &error);
 *     ...
 *     mr_child_stop(&child, NULL, 30 * MR_SECOND_NS);             // SIGTERM, then SIGKILL
 */
#ifndef MR_CLI_CHILD_H
#define MR_CLI_CHILD_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mr_child {
    const char *name; /* for messages; borrowed */
    pid_t pid;        /* 0: not running */
    int status;       /* of waitpid(), once it ended */
};

/*
 * Runs this very executable with `argv` in a process group of its own, so that the terminal's
 * signals do not reach it, without MILLRACE_ variables (what it is told stands in argv), and to die
 * with its parent. Its stdin and stdout are /dev/null, its stderr is ours. MR_EIO.
 */
enum mr_status mr_child_start_server(const char *name, char *const argv[],
                                     struct mr_child *child, struct mr_error *error);

/*
 * Waits until the ready file is there and gives its "listen" value. MR_EIO when the child ended
 * before (what it said is on stderr); MR_ETIMEOUT; MR_END: a signal came (cli/signals.h).
 */
enum mr_status mr_child_wait_ready(struct mr_child *child, const char *path, char *listen,
                                   size_t size, struct mr_error *error);

/*
 * SIGTERM, waits up to `wait_ns`, then SIGKILL; at once if `needed`, which it cannot finish without (NULL: it needs none), has ended
 * by itself, or for a signal (cli/signals.h), the second one where it needs nobody and so ends soon. Its exit status, or 128 + the
 * signal that ended it.
 */
int mr_child_stop(struct mr_child *child, struct mr_child *needed, uint64_t wait_ns);

/* What a shell would say of a status of waitpid(): exit status, or 128 + signal. */
int mr_child_exit_status(int wait_status);

#endif
